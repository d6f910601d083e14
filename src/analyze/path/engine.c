/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Autograd's engine works on threads of its own while the thread that called backward waits. No
 * trace says who waited, so it is inferred: what an engine's thread did within a stretch in which
 * the main thread did nothing (between two spans, or within one of Python) is what it waited for,
 * and came after what the main thread had done before.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/path/path_private.h"
#include "model/framework/framework.h"

#define LEAST_SHARE                                                                                \
	0.25 /* of a thread's outermost spans: the engine's own; hooks and DDP's are others */

struct engine {
	struct plumb_path *path;
	unsigned char *engines; /* by track */
	unsigned char *forward; /* by context: it caused backward work */
	uint32_t main;          /* the main thread whose nodes these are, in time */
	uint32_t *nodes;
	uint32_t count;
};

static bool
is_flagged(const struct plumb_profile *p, uint32_t context)
{
	return p->contexts[context].flags & (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION);
}

static bool
is_backward(const struct plumb_profile *p, uint32_t context)
{
	const char *name = plumb_text(p, plumb_context_frame(p, context)->name);

	return (name && plumb_framework_is_backward(name)) || is_flagged(p, context);
}

static bool
find_forward(struct engine *engine)
{
	const struct plumb_profile *p = engine->path->profile;

	engine->forward = calloc((size_t)p->contexts_count + 1, 1);
	for (uint32_t c = 1; engine->forward && c < p->contexts_count; c++)
		if (is_flagged(p, c) && !is_flagged(p, p->contexts[c].parent) &&
		    p->contexts[c].flags & PLUMB_CONTEXT_BACKWARD)
			engine->forward[p->contexts[c].parent] = 1;
	if (engine->forward)
		engine->forward[0] = 0;
	return engine->forward != NULL;
}

static bool
is_outermost(const struct plumb_path *path, uint32_t span)
{
	const struct plumb_path_node *begin = &path->nodes[plumb_path_begin(span)];

	return !(begin->flags & PLUMB_PATH_LEFT_OUT) && begin->owner == PLUMB_NONE;
}

/* Much of what it does is backward work, and none of it what backward work is of. */
static bool
is_engine(const struct engine *engine, uint32_t track)
{
	const struct plumb_path *path = engine->path;
	const struct plumb_profile *p = path->profile;
	uint32_t own = 0, all = 0;

	if (p->tracks[track].kind != PLUMB_TRACK_THREAD)
		return false;
	for (uint32_t i = path->first_span[track]; i < path->first_span[track + 1]; i++) {
		if (engine->forward[p->spans[i].context])
			return false;
		if (is_outermost(path, i)) {
			all++;
			own += is_backward(p, p->spans[i].context);
		}
	}
	return all && own >= LEAST_SHARE * all;
}

/* The thread of PROCESS with most spans that is no engine's; PLUMB_NONE. */
static uint32_t
find_main(const struct engine *engine, uint32_t process)
{
	const struct plumb_path *path = engine->path;
	const struct plumb_profile *p = path->profile;
	uint32_t best = PLUMB_NONE, most = 0;

	for (uint32_t t = 0; t < p->tracks_count; t++) {
		uint32_t spans = path->first_span[t + 1] - path->first_span[t];

		if (p->tracks[t].kind == PLUMB_TRACK_THREAD && p->tracks[t].process == process &&
		    !engine->engines[t] && spans > most) {
			best = t;
			most = spans;
		}
	}
	return best;
}

static bool
list_nodes(struct engine *engine, uint32_t main)
{
	const struct plumb_path *path = engine->path;
	uint32_t most = 2 * (path->first_span[main + 1] - path->first_span[main]), n = most;

	if (engine->nodes && engine->main == main)
		return true;
	free(engine->nodes);
	engine->main = main;
	engine->nodes = malloc(((size_t)most + 1) * sizeof *engine->nodes);
	if (!engine->nodes)
		return false;
	for (uint32_t i = path->last_node[main]; i != PLUMB_NONE && n; i = path->nodes[i].before)
		engine->nodes[--n] = i;
	engine->count = most - n;
	memmove(engine->nodes, engine->nodes + n, engine->count * sizeof *engine->nodes);
	return true;
}

/* Does the thread do nothing itself in a span like this? */
static bool
is_idle(const struct plumb_profile *p, uint32_t span)
{
	if (span == PLUMB_NONE)
		return true;
	uint32_t kind = plumb_context_frame(p, p->spans[span].context)->kind;
	return kind == PLUMB_FRAME_PYTHON || kind == PLUMB_FRAME_MODULE ||
	       kind == PLUMB_FRAME_RANGE || kind == PLUMB_FRAME_NATIVE;
}

/* A stretch: what the engine's thread did between the main thread's nodes BEFORE and BEFORE + 1. */
struct stretch {
	uint32_t before;
	uint32_t first; /* its first span, or PLUMB_NONE: it had been at work already */
	uint32_t last;  /* the last one that was over in it, or PLUMB_NONE */
};

static bool
link_stretch(struct engine *engine, const struct stretch *s)
{
	struct plumb_path *path = engine->path;
	struct plumb_path_node *nodes = path->nodes;
	uint32_t from = engine->nodes[s->before];
	uint32_t back = s->before + 1 < engine->count ? engine->nodes[s->before + 1] : PLUMB_NONE;
	uint32_t owner = back == PLUMB_NONE ? PLUMB_NONE : nodes[back].owner;

	if (!is_idle(path->profile, owner) ||
	    (back != PLUMB_NONE && nodes[back].flags & PLUMB_PATH_WAITS))
		return true;
	path->facts.inferred_threads++;
	if (s->first != PLUMB_NONE) {
		uint32_t begin = plumb_path_begin(s->first);

		nodes[begin].flags |= PLUMB_PATH_WAITS;
		if (!plumb_path_edge(path, from, begin, PLUMB_PATH_BY_THREAD,
		                     nodes[begin].at - nodes[from].at, owner))
			return false;
	}
	if (back == PLUMB_NONE || s->last == PLUMB_NONE)
		return true;
	nodes[back].flags |= PLUMB_PATH_WAITS;
	return plumb_path_edge(path, plumb_path_end(s->last), back, PLUMB_PATH_BY_RETURN,
	                       nodes[back].at - nodes[plumb_path_end(s->last)].at, owner);
}

static bool
link_thread(struct engine *engine, uint32_t track)
{
	const struct plumb_path *path = engine->path;
	const struct plumb_path_node *nodes = path->nodes;
	uint32_t at = 0, until = path->first_span[track + 1];
	int64_t busy = INT64_MIN; /* until then the engine's thread was at work */

	for (uint32_t i = path->first_span[track]; engine->count && i < until;) {
		int64_t begin = nodes[plumb_path_begin(i)].at, end = INT64_MAX;
		struct stretch stretch = { 0, PLUMB_NONE, PLUMB_NONE };

		while (at + 1 < engine->count && nodes[engine->nodes[at + 1]].at <= begin)
			at++;
		if (!is_outermost(path, i) || nodes[engine->nodes[at]].at > begin) {
			i++;
			continue;
		}
		stretch.before = at;
		if (busy <= nodes[engine->nodes[at]].at)
			stretch.first = i;
		if (at + 1 < engine->count)
			end = nodes[engine->nodes[at + 1]].at;
		for (; i < until && nodes[plumb_path_begin(i)].at < end; i++)
			if (is_outermost(path, i)) {
				busy = nodes[plumb_path_end(i)].at;
				if (busy <= end)
					stretch.last = i;
			}
		if (!link_stretch(engine, &stretch))
			return false;
	}
	return true;
}

bool
plumb_path_engine(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;
	struct engine engine = { .path = path };
	bool done = true, any = false;

	engine.engines = calloc((size_t)p->tracks_count + 1, 1);
	if (!engine.engines || !find_forward(&engine)) {
		free(engine.engines);
		return false;
	}
	for (uint32_t t = 0; t < p->tracks_count; t++)
		any |= engine.engines[t] = is_engine(&engine, t);
	for (uint32_t t = 0; any && done && t < p->tracks_count; t++) {
		uint32_t main =
			engine.engines[t] ? find_main(&engine, p->tracks[t].process) : PLUMB_NONE;

		if (main == PLUMB_NONE)
			continue;
		done = list_nodes(&engine, main) && link_thread(&engine, t);
	}
	free(engine.nodes);
	free(engine.engines);
	free(engine.forward);
	return done;
}
