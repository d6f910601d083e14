/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waited for what: as the profile has it, and where it does not, as names and times tell.
 * Inferred:
 *
 * - a call that waits by its name (cudaStreamSynchronize) waited for the work of its process that
 *   was over last before it returned, if that was after it began; a copy's call that returned after
 *   its copy for that;
 * - a work that began within 5 µs of the end of one on another stream, 50 µs or more after its
 *   launch and 10 after its own stream and everything else that it is known to wait for, waited for
 *   that one.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/path/path_private.h"
#include "base/search.h"

#define EVENT_NS 5000 /* from the end of one work to the begin of one that waited for it */
#define LONG_LAUNCHED_NS 50000
#define LONG_IDLE_NS 10000

/* ---- as recorded ---- */

/* The last work on the stream TRACK that was handed over by the time AT, or the first one after.
 * CALL, if it is not 0: by that call instead, which has no span of its own; numbers ascend in the
 * order of the calls, and the works of a stream run in that order. */
static uint32_t
handed_over(const struct plumb_path *path, uint32_t track, int64_t at, uint64_t call, bool after)
{
	uint32_t first = path->first_span[track], count = path->first_span[track + 1] - first;
	uint32_t n = plumb_search(i, count,
	                          call ? path->profile->spans[first + i].correlation <= call
	                               : path->submitted[first + i] <= at);

	if (after)
		return n < count ? first + n : PLUMB_NONE;
	return n ? first + n - 1 : PLUMB_NONE;
}

/* Node TO waited for the end of WORK. */
static bool
wait_for(struct plumb_path *path, uint32_t work, uint32_t to, uint32_t kind)
{
	struct plumb_path_node *nodes = path->nodes;
	uint32_t from = plumb_path_end(work);
	int64_t late;

	if ((nodes[from].flags | nodes[to].flags) & PLUMB_PATH_LEFT_OUT)
		return true;
	late = nodes[from].at - nodes[to].at;
	if (late > PLUMB_PATH_ROUNDING_NS) {
		path->facts.impossible++;
		return true;
	}
	/* A call takes its own time once it need not wait any more. */
	if (kind == PLUMB_PATH_BY_SYNC)
		nodes[to].flags |= PLUMB_PATH_WAITS;
	return plumb_path_edge(path, from, to, kind, late > 0 ? -late : 0, PLUMB_NONE);
}

/* The call waited for all that was handed over to the streams of its device; with very many of
 * them, for what was over last. False: memory is out. *ANY: there was something. */
static bool
wait_for_all(struct plumb_path *path, const struct plumb_wait *wait, uint32_t call, bool *any)
{
	enum { STREAMS_MOST = 64 };
	const struct plumb_profile *p = path->profile;
	uint32_t process = p->tracks[wait->track].process, end = plumb_path_end(call);
	int64_t at = path->nodes[plumb_path_begin(call)].at;
	uint32_t streams = 0;
	uint32_t work =
		plumb_path_last_done(path, process, wait->device, PLUMB_NONE, path->nodes[end].at);

	for (uint32_t i = 0; i < path->places.count; i++)
		if (path->places.items[i].process == process)
			streams += path->places.items[i].streams;
	*any = work != PLUMB_NONE;
	if (!*any || streams > STREAMS_MOST || process >= p->processes_count)
		return !*any || wait_for(path, work, end, PLUMB_PATH_BY_SYNC);
	for (uint32_t t = path->first_track[process]; t != PLUMB_NONE; t = path->next_track[t]) {
		if (p->tracks[t].kind != PLUMB_TRACK_STREAM ||
		    (wait->device != PLUMB_NONE && p->tracks[t].device != wait->device))
			continue;
		work = handed_over(path, t, at, 0, false);
		if (work != PLUMB_NONE && !wait_for(path, work, end, PLUMB_PATH_BY_SYNC))
			return false;
	}
	return true;
}

static bool
add_sync(struct plumb_path *path, const struct plumb_wait *wait, uint32_t call, uint32_t work)
{
	bool any = work != PLUMB_NONE, done = true;

	if (wait->awaited == PLUMB_NONE)
		done = wait_for_all(path, wait, call, &any);
	else if (any)
		done = wait_for(path, work, plumb_path_end(call), PLUMB_PATH_BY_SYNC);
	path->facts.syncs += any;
	path->facts.unmatched += !any;
	return done;
}

/* When the call SPAN began; 0 for none. */
static int64_t
begin_of(const struct plumb_path *path, uint32_t span)
{
	return span == PLUMB_NONE ? 0 : path->nodes[plumb_path_begin(span)].at;
}

static bool
add_wait(struct plumb_path *path, const struct plumb_wait *wait, unsigned char *known)
{
	const struct plumb_profile *p = path->profile;
	uint32_t process = p->tracks[wait->track].process, work = PLUMB_NONE;
	uint32_t call = plumb_path_call(path, process, wait->call);
	uint32_t after = plumb_path_call(path, process, wait->after);
	bool by_stream = p->tracks[wait->track].kind == PLUMB_TRACK_STREAM;

	/* Of a part, what lies outside of it is no lack. */
	bool counted = call != PLUMB_NONE || path->part.whole;

	if (call == PLUMB_NONE && !by_stream) {
		path->facts.unmatched += counted;
		return true;
	}
	if (call != PLUMB_NONE)
		known[call] = 1;
	if (wait->awaited != PLUMB_NONE && p->tracks[wait->awaited].kind == PLUMB_TRACK_STREAM) {
		uint32_t until = wait->after ? after : call;
		uint64_t number = wait->after ? wait->after : wait->call;

		work = handed_over(path, wait->awaited, begin_of(path, until),
		                   until == PLUMB_NONE ? number : 0, false);
	}
	if (!by_stream)
		return add_sync(path, wait, call, work);
	if (work == PLUMB_NONE) {
		path->facts.unmatched += counted;
		return true;
	}
	uint32_t next = handed_over(path, wait->track, begin_of(path, call),
	                            call == PLUMB_NONE ? wait->call : 0, true);
	if (next == PLUMB_NONE || next == work)
		return true; /* nothing came after it */
	path->facts.events++;
	return wait_for(path, work, plumb_path_begin(next), PLUMB_PATH_BY_EVENT);
}

/* ---- inferred ---- */

enum { NAMED_WAIT = 1, NAMED_COPY = 2 };

static unsigned char *
find_names(const struct plumb_profile *p)
{
	unsigned char *names = calloc((size_t)p->frames_count + 1, 1);

	for (uint32_t f = 0; names && f < p->frames_count; f++) {
		const char *name = plumb_text(p, p->frames[f].name);

		if (p->frames[f].kind != PLUMB_FRAME_GPU_API || !name)
			continue;
		if (strstr(name, "Synchronize") && !strstr(name, "StreamWaitEvent"))
			names[f] = NAMED_WAIT;
		else if (strstr(name, "Memcpy"))
			names[f] = NAMED_COPY;
	}
	return names;
}

/* Calls that wait, by their names. */
static bool
infer_syncs(struct plumb_path *path, const unsigned char *names, const unsigned char *known)
{
	const struct plumb_profile *p = path->profile;

	for (uint32_t i = 0; i < p->spans_count; i++) {
		const struct plumb_path_node *end = &path->nodes[plumb_path_end(i)];
		uint32_t work = PLUMB_NONE, call = i;

		if (end->flags & PLUMB_PATH_LEFT_OUT)
			continue;
		if (end->flags & PLUMB_PATH_WORK) {
			call = path->launch[i];
			if (call != PLUMB_NONE &&
			    path->kinds[p->spans[i].context] == PLUMB_PATH_COPY &&
			    names[p->contexts[p->spans[call].context].frame] == NAMED_COPY)
				work = i;
		} else if (names[p->contexts[p->spans[i].context].frame] == NAMED_WAIT) {
			work = plumb_path_last_done(path, plumb_path_process(path, i), PLUMB_NONE,
			                            PLUMB_NONE, end->at);
		}
		if (work == PLUMB_NONE || known[call])
			continue;
		const struct plumb_path_node *back = &path->nodes[plumb_path_end(call)];
		int64_t over = path->nodes[plumb_path_end(work)].at;
		if (over > back->at || over <= path->nodes[back->before].at)
			continue;
		path->facts.inferred_syncs++;
		if (!wait_for(path, work, plumb_path_end(call), PLUMB_PATH_BY_SYNC))
			return false;
	}
	return true;
}

/* When the node could have been, by what it is known to come after. */
static int64_t
find_ready(const struct plumb_path *path, uint32_t node)
{
	const struct plumb_path_node *n = &path->nodes[node];
	int64_t at = n->before == PLUMB_NONE ? INT64_MIN : path->nodes[n->before].at;

	for (uint32_t e = n->edge; e != PLUMB_NONE; e = path->edges.items[e].next) {
		const struct plumb_path_edge *edge = &path->edges.items[e];
		int64_t then = path->nodes[edge->from].at + edge->length;

		at = then > at ? then : at;
	}
	return at;
}

/* Streams that waited for others. */
static bool
infer_events(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;

	for (uint32_t i = 0; i < p->spans_count; i++) {
		const struct plumb_path_node *begin = &path->nodes[plumb_path_begin(i)];

		if (!(begin->flags & PLUMB_PATH_WORK) || path->launch[i] == PLUMB_NONE ||
		    begin->at - path->nodes[plumb_path_begin(path->launch[i])].at <
		            LONG_LAUNCHED_NS ||
		    begin->at - find_ready(path, plumb_path_begin(i)) < LONG_IDLE_NS)
			continue;
		uint32_t work = plumb_path_last_done(path, plumb_path_process(path, i), PLUMB_NONE,
		                                     p->spans[i].track, begin->at);
		if (work == PLUMB_NONE ||
		    begin->at - path->nodes[plumb_path_end(work)].at > EVENT_NS)
			continue;
		path->facts.inferred_events++;
		if (!wait_for(path, work, plumb_path_begin(i), PLUMB_PATH_BY_EVENT))
			return false;
	}
	return true;
}

bool
plumb_path_waits(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;
	unsigned char *names = find_names(p), *known = calloc((size_t)p->spans_count + 1, 1);
	bool done = names && known;

	for (uint32_t i = 0; done && i < p->waits_count; i++)
		done = add_wait(path, &p->waits[i], known);
	done = done && infer_syncs(path, names, known) && infer_events(path);
	free(names);
	free(known);
	return done;
}
