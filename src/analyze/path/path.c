/* SPDX-License-Identifier: Apache-2.0 */
/* The graph as a whole: made part by part, and what the parts share. */
#include <stdlib.h>

#include "analyze/path/path_private.h"
#include "base/search.h"
#include "model/collective.h"

const char *const plumb_path_kinds[PLUMB_PATH_KINDS] = {
	"host", "launch", "kernel", "copy", "communication", "gap", "unknown",
};

/* ---- what parts share ---- */

bool
plumb_path_add_edge(struct plumb_path *path, struct plumb_path_node *node, uint32_t number,
                    struct plumb_path_edge edge)
{
	struct plumb_path_edge *added =
		path->edges.count < PLUMB_PATH_EDGES_MOST ? plumb_vec_add(&path->edges) : NULL;

	if (!added)
		return false;
	*added = edge;
	added->next = node->edge;
	added->to = number & (PLUMB_PATH_NODES_MOST - 1);
	node->edge = path->edges.count - 1;
	return true;
}

bool
plumb_path_edge(struct plumb_path *path, uint32_t from, uint32_t to, uint32_t kind, int64_t length,
                uint32_t owner)
{
	struct plumb_path_edge edge = {
		.length = length, .from = from, .owner = owner, .kind = kind & 7
	};

	return plumb_path_add_edge(path, &path->nodes[to], to, edge);
}

uint32_t
plumb_path_process(const struct plumb_path *path, uint32_t span)
{
	return path->profile->tracks[path->profile->spans[span].track].process;
}

uint32_t
plumb_path_call(struct plumb_path *path, uint32_t process, uint64_t correlation)
{
	uint32_t call = plumb_launch_of(&path->calls, process, correlation);

	return call != PLUMB_NONE && path->nodes[plumb_path_begin(call)].flags & PLUMB_PATH_LEFT_OUT
	               ? PLUMB_NONE
	               : call;
}

uint32_t
plumb_path_last_done(const struct plumb_path *path, uint32_t process, uint32_t device,
                     uint32_t not_on, int64_t at)
{
	enum { LOOK_BACK = 64 }; /* works of a track that is left out may come one after another */
	const struct plumb_span *spans = path->profile->spans;
	uint32_t best = PLUMB_NONE;

	for (uint32_t i = 0; i < path->places.count; i++) {
		const struct plumb_path_place *place = &path->places.items[i];

		if (place->process != process || (device != PLUMB_NONE && place->device != device))
			continue;
		/* How many of the place's works were over by AT. */
		uint32_t n = plumb_search(k, place->count, place->done[k].at <= at);
		uint32_t least = n > LOOK_BACK ? n - LOOK_BACK : 0;
		while (n > least && spans[place->done[n - 1].span].track == not_on)
			n--;
		if (n > least && (best == PLUMB_NONE ||
		                  place->done[n - 1].at > path->nodes[plumb_path_end(best)].at))
			best = place->done[n - 1].span;
	}
	return best;
}

/* ---- the whole ---- */

static void
find_kinds(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		const struct plumb_frame *frame = plumb_context_frame(p, c);
		uint32_t parent = p->contexts[c].parent;
		const char *name = plumb_text(p, frame->name);

		if (frame->kind == PLUMB_FRAME_COPY || frame->kind == PLUMB_FRAME_SET)
			path->kinds[c] = PLUMB_PATH_COPY;
		else if (frame->kind == PLUMB_FRAME_COLLECTIVE ||
		         (parent != PLUMB_NONE &&
		          path->kinds[parent] == PLUMB_PATH_COMMUNICATION) ||
		         (frame->kind == PLUMB_FRAME_KERNEL && name && plumb_collective_name(name)))
			path->kinds[c] = PLUMB_PATH_COMMUNICATION;
		else if (frame->kind == PLUMB_FRAME_KERNEL)
			path->kinds[c] = PLUMB_PATH_KERNEL;
	}
}

static void
begin_nodes(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;
	uint32_t track = 0;

	path->count = 2 * p->spans_count;
	for (uint32_t i = 0; i < p->spans_count; i++) {
		const struct plumb_span *span = &p->spans[i];
		bool sound = plumb_is_time(span->start_ns, span->end_ns);
		uint32_t flags = !sound ? PLUMB_PATH_LEFT_OUT
		                 : p->tracks[span->track].kind == PLUMB_TRACK_STREAM
		                         ? PLUMB_PATH_WORK
		                         : 0;

		while (track <= span->track)
			path->first_span[track++] = i;
		path->nodes[plumb_path_begin(i)] =
			(struct plumb_path_node){ span->start_ns, PLUMB_NONE, PLUMB_NONE,
			                          PLUMB_NONE, flags };
		path->nodes[plumb_path_end(i)] =
			(struct plumb_path_node){ span->end_ns, PLUMB_NONE, PLUMB_NONE, PLUMB_NONE,
			                          flags };
		path->launch[i] = PLUMB_NONE;
		path->submitted[i] = INT64_MIN;
	}
	while (track <= p->tracks_count)
		path->first_span[track++] = p->spans_count;
}

static void
list_tracks(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;

	for (uint32_t i = 0; i < p->processes_count; i++)
		path->busiest[i] = path->first_track[i] = PLUMB_NONE;
	for (uint32_t t = 0; t < p->tracks_count; t++) {
		uint32_t process = p->tracks[t].process, best;
		uint32_t spans = path->first_span[t + 1] - path->first_span[t];

		if (process >= p->processes_count)
			continue;
		path->next_track[t] = path->first_track[process];
		path->first_track[process] = t;
		best = path->busiest[process];
		if (p->tracks[t].kind == PLUMB_TRACK_THREAD &&
		    (best == PLUMB_NONE ||
		     spans > path->first_span[best + 1] - path->first_span[best]))
			path->busiest[process] = t;
	}
}

/* Behind the others, now that all are known. */
static bool
place_gates(struct plumb_path *path)
{
	for (uint32_t i = 0; i < path->gates.count; i++)
		path->nodes[path->count + i] = path->gates.items[i];
	path->count += path->gates.count;
	plumb_vec_free(&path->gates);
	return true;
}

/* What only the making needs goes before the search takes its own. */
static bool
finish_nodes(struct plumb_path *path)
{
	for (uint32_t i = 0; i < path->places.count; i++)
		free(path->places.items[i].done);
	plumb_vec_free(&path->places);
	plumb_vec_free(&path->calls);
	free(path->launch);
	free(path->submitted);
	path->launch = NULL;
	path->submitted = NULL;
	path->position = malloc(((size_t)path->count + 1) * sizeof *path->position);
	for (uint32_t i = 0; path->position && i < path->count; i++)
		path->position[i] = PLUMB_NONE;
	return path->position != NULL;
}

static bool
make_nodes(struct plumb_path *path)
{
	const struct plumb_profile *p = path->profile;
	size_t n = p->spans_count;

	/* A gate has at least two works. */
	path->nodes = malloc((2 * n + n / 2 + 1) * sizeof *path->nodes);
	path->first_span = malloc(((size_t)p->tracks_count + 2) * sizeof *path->first_span);
	path->last_node = malloc(((size_t)p->tracks_count + 1) * sizeof *path->last_node);
	path->busiest = malloc(((size_t)p->processes_count + 1) * sizeof *path->busiest);
	path->first_track = malloc(((size_t)p->processes_count + 1) * sizeof *path->first_track);
	path->next_track = malloc(((size_t)p->tracks_count + 1) * sizeof *path->next_track);
	path->launch = malloc((n + 1) * sizeof *path->launch);
	path->submitted = malloc((n + 1) * sizeof *path->submitted);
	path->kinds = calloc((size_t)p->contexts_count + 1, 1);
	if (!path->nodes || !path->first_span || !path->last_node || !path->busiest ||
	    !path->first_track || !path->next_track || !path->launch || !path->submitted ||
	    !path->kinds)
		return false;
	find_kinds(path);
	begin_nodes(path);
	list_tracks(path);
	if (plumb_launches_find(p, PLUMB_NONE, &path->calls) < 0)
		return false;
	return plumb_path_threads(path) && plumb_path_streams(path) &&
	       plumb_path_collectives(path) && place_gates(path) && plumb_path_waits(path) &&
	       plumb_path_engine(path) && finish_nodes(path);
}

/* What lies outside of the part is not there at all. LAST: the profile, if it gives its spans up.
 * False: memory is out. */
static bool
cut_to_part(struct plumb_path *path, const struct plumb_profile *profile,
            struct plumb_profile *last)
{
	uint32_t count;

	path->spans = last ? plumb_path_part_take(last, &path->part, &count)
	                   : plumb_path_part_spans(profile, &path->part, &count);
	path->cut = *profile;
	path->cut.spans = path->spans;
	path->cut.spans_count = count;
	path->profile = &path->cut;
	return path->spans != NULL;
}

static struct plumb_path *
make_path(const struct plumb_profile *profile, struct plumb_profile *last,
          const struct plumb_path_part *part, struct plumb_error *error)
{
	static const struct plumb_path_part whole = { .whole = true,
		                                      .start_ns = INT64_MIN,
		                                      .end_ns = INT64_MAX,
		                                      .most = UINT32_MAX,
		                                      .track = PLUMB_NONE };
	struct plumb_path *path = calloc(1, sizeof *path);
	bool done = path;

	if (path) {
		path->profile = profile;
		path->part = part ? *part : whole;
		done = path->part.whole || cut_to_part(path, profile, last);
	}
	/* Two nodes for each, and a gate for two at most. */
	if (done && (!path->profile->spans_count ||
	             path->profile->spans_count > PLUMB_PATH_NODES_MOST / 3)) {
		plumb_fail(error, PLUMB_EEMPTY,
		           path->profile->spans_count ? "the profile has too many spans"
		                                      : "the profile has no spans");
		plumb_path_free(path);
		return NULL;
	}
	if (!done || !make_nodes(path)) {
		plumb_path_free(path);
		plumb_fail_memory(error, "for the critical path");
		return NULL;
	}
	return path;
}

struct plumb_path *
plumb_path_new(const struct plumb_profile *profile, const struct plumb_path_part *part,
               struct plumb_error *error)
{
	return make_path(profile, NULL, part, error);
}

struct plumb_path *
plumb_path_new_last(struct plumb_profile *profile, const struct plumb_path_part *part,
                    struct plumb_error *error)
{
	return make_path(profile, profile, part, error);
}

void
plumb_path_free(struct plumb_path *path)
{
	if (!path)
		return;
	for (uint32_t i = 0; i < path->places.count; i++)
		free(path->places.items[i].done);
	plumb_vec_free(&path->places);
	plumb_vec_free(&path->edges);
	plumb_vec_free(&path->gates);
	plumb_vec_free(&path->calls);
	free(path->nodes);
	free(path->first_span);
	free(path->busiest);
	free(path->first_track);
	free(path->next_track);
	free(path->last_node);
	free(path->launch);
	free(path->submitted);
	free(path->kinds);
	free(path->position);
	free(path->spans);
	free(path);
}

const struct plumb_path_facts *
plumb_path_facts(const struct plumb_path *path)
{
	return &path->facts;
}

const struct plumb_path_part *
plumb_path_part(const struct plumb_path *path)
{
	return &path->part;
}

const struct plumb_profile *
plumb_path_profile(const struct plumb_path *path)
{
	return path->profile;
}
