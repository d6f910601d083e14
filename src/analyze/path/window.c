/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path through a window. What a node waited for is known, so the window can be played again (play.c): a
 * node is there once all that comes before it is there, and its own delay, what of its time nothing explains,
 * has passed. With nothing gone that gives the times as they were measured.
 */
#include <stdlib.h>

#include "analyze/path/path_private.h"

/* What bound a node: an edge's number, or one of these. */
#define BY_BEFORE (PLUMB_NONE - 1)
#define BY_NOTHING PLUMB_NONE
#define PENDING (PLUMB_NONE - 1) /* a position: it is being looked at */

/* ---- what comes before a node ---- */

struct play {
	const struct plumb_path_window *window;
	const int64_t *times; /* by place in the order */
};

/* When the node at PLACE could be, by node FROM and LENGTH after it; INT64_MIN: FROM does not count. */
static int64_t
after(const struct play *play, uint32_t place, uint32_t from, int64_t length)
{
	const struct plumb_path_window *w = play->window;
	uint32_t position = w->path->position[from];
	int64_t at = w->path->nodes[from].at;

	if (position < place)
		at = play->times[position] + length;
	else if (at <= w->floor_ns)
		at += length;
	else
		return INT64_MIN; /* it waits for this one itself: the trace contradicts itself */
	return at < w->floor_ns ? w->floor_ns : at;
}

/* When all that comes before the node at PLACE is there; INT64_MIN: nothing does. *BINDING is the last. */
static int64_t
ready(const struct play *play, uint32_t place, uint32_t *binding)
{
	const struct plumb_path *path = play->window->path;
	uint32_t node = play->window->order[place];
	const struct plumb_path_node *n = &path->nodes[node];
	int64_t best = INT64_MIN, at;

	*binding = BY_NOTHING;
	if (n->before != PLUMB_NONE) {
		at = after(play, place, n->before, plumb_path_length_before(path, node));
		if (at > best) {
			best = at;
			*binding = BY_BEFORE;
		}
	}
	for (uint32_t e = n->edge; e != PLUMB_NONE; e = path->edges.items[e].next) {
		const struct plumb_path_edge *edge = &path->edges.items[e];

		at = after(play, place, edge->from, edge->length);
		if (at > best) {
			best = at;
			*binding = e;
		}
	}
	return best;
}

/* ---- the order ---- */

struct visit {
	uint32_t node, edge; /* the next edge to look at */
	bool entered;
};

struct search {
	struct plumb_path *path;
	int64_t start_ns;
	PLUMB_VEC(struct visit) stack;
	PLUMB_VEC(uint32_t) order;
};

static bool
enter(struct search *search, uint32_t node)
{
	struct plumb_path *path = search->path;
	struct visit *visit;

	if (node == PLUMB_NONE || path->position[node] != PLUMB_NONE ||
	    path->nodes[node].at <= search->start_ns)
		return true;
	visit = plumb_vec_add(&search->stack);
	if (!visit)
		return false;
	*visit = (struct visit){ node, path->nodes[node].edge, false };
	path->position[node] = PENDING;
	return true;
}

/* All that comes before END in the window, each behind what it comes after. */
static bool
search_from(struct search *search, uint32_t end)
{
	struct plumb_path *path = search->path;
	bool done = enter(search, end);

	while (done && search->stack.count) {
		struct visit *top = &search->stack.items[search->stack.count - 1];

		if (!top->entered) {
			top->entered = true;
			done = enter(search, path->nodes[top->node].before);
		} else if (top->edge != PLUMB_NONE) {
			uint32_t from = path->edges.items[top->edge].from;

			top->edge = path->edges.items[top->edge].next;
			done = enter(search, from);
		} else {
			uint32_t *added = plumb_vec_add(&search->order);

			done = added;
			if (added) {
				*added = top->node;
				path->position[top->node] = search->order.count - 1;
				search->stack.count--;
			}
		}
	}
	for (uint32_t i = 0; i < search->stack.count; i++)
		path->position[search->stack.items[i].node] = PLUMB_NONE;
	search->stack.count = 0;
	return done;
}

/* ---- the path ---- */

/* The node that bound NODE, and whose time lies between them. */
static uint32_t
step(const struct plumb_path *path, uint32_t node, uint32_t binding,
     struct plumb_path_segment *segment)
{
	const struct plumb_profile *p = path->profile;
	const struct plumb_path_node *n = &path->nodes[node];
	uint32_t span = plumb_path_is_gate(path, node) ? PLUMB_NONE : node / 2, owner = n->owner;
	uint32_t from = n->before, at = span;

	segment->kind = PLUMB_PATH_HOST;
	if (binding == BY_BEFORE) {
		if (n->flags & PLUMB_PATH_WORK)
			segment->kind =
				node % 2 ? path->kinds[p->spans[span].context] : PLUMB_PATH_GAP;
	} else {
		const struct plumb_path_edge *edge = &path->edges.items[binding];

		from = edge->from;
		owner = edge->kind == PLUMB_PATH_BY_THREAD || edge->kind == PLUMB_PATH_BY_RETURN
		                ? edge->owner
		                : span;
		if (edge->kind == PLUMB_PATH_BY_LAUNCH)
			segment->kind = PLUMB_PATH_LAUNCH;
		else if (edge->kind == PLUMB_PATH_BY_EVENT || edge->kind == PLUMB_PATH_BY_PEER)
			segment->kind = PLUMB_PATH_GAP;
		else if (edge->kind == PLUMB_PATH_BY_THREAD)
			at = from / 2;
	}
	segment->context = owner == PLUMB_NONE ? PLUMB_NONE : p->spans[owner].context;
	segment->track = owner != PLUMB_NONE ? p->spans[owner].track
	                 : at != PLUMB_NONE  ? p->spans[at].track
	                                     : PLUMB_NONE;
	return from;
}

static bool
add_segment(struct plumb_path_window *w, uint32_t *capacity, struct plumb_path_segment segment)
{
	struct plumb_path_segment *last = w->count ? &w->segments[w->count - 1] : NULL;

	if (segment.start_ns >= segment.end_ns)
		return true;
	w->sums[segment.kind] += segment.end_ns - segment.start_ns;
	if (last && last->context == segment.context && last->track == segment.track &&
	    last->kind == segment.kind) {
		last->start_ns = segment.start_ns;
		return true;
	}
	if (w->count == *capacity) {
		struct plumb_path_segment *grown = plumb_vec_grow(
			w->segments, capacity, (uint64_t)w->count + 1, sizeof *grown);

		if (!grown)
			return false;
		w->segments = grown;
	}
	w->segments[w->count++] = segment;
	return true;
}

/* From its end to its beginning; then turned round. */
static bool
walk(struct plumb_path_window *w)
{
	const struct plumb_path *path = w->path;
	uint32_t capacity = 0, node = w->order[w->last];
	int64_t cursor = w->end_ns;

	while (cursor > w->start_ns) {
		struct plumb_path_segment segment = { PLUMB_NONE, PLUMB_NONE, PLUMB_PATH_UNKNOWN,
			                              w->start_ns, cursor };
		uint32_t place = path->position[node];
		uint32_t binding = place == PLUMB_NONE ? BY_NOTHING : w->binding[place];

		if (binding == BY_NOTHING) {
			if (w->whole)
				break;
		} else {
			node = step(path, node, binding, &segment);
			if (path->nodes[node].at > w->start_ns)
				segment.start_ns = path->nodes[node].at;
		}
		if (!add_segment(w, &capacity, segment))
			return false;
		if (segment.start_ns < cursor)
			cursor = segment.start_ns;
	}
	if (w->whole)
		w->start_ns = cursor;
	for (uint32_t i = 0; i < w->count / 2; i++) {
		struct plumb_path_segment swap = w->segments[i];

		w->segments[i] = w->segments[w->count - 1 - i];
		w->segments[w->count - 1 - i] = swap;
	}
	return true;
}

static void
sum_peers(struct plumb_path_window *w)
{
	const struct plumb_profile *p = w->path->profile;
	uint32_t last = w->order[w->last] / 2;
	uint32_t home = p->tracks[p->spans[last].track].process;

	for (uint32_t i = 0; i < w->count; i++) {
		uint32_t track = w->segments[i].track;

		if (track != PLUMB_NONE && p->tracks[track].process != home)
			w->peer_ns += w->segments[i].end_ns - w->segments[i].start_ns;
	}
}

/* ---- windows ---- */

uint32_t
plumb_path_last(const struct plumb_path *path, uint32_t track, int64_t start_ns, int64_t end_ns)
{
	const struct plumb_span *spans = path->profile->spans;
	uint32_t low = path->first_span[track], high = path->first_span[track + 1];
	uint32_t first = low, best = PLUMB_NONE;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (spans[middle].start_ns < end_ns)
			low = middle + 1;
		else
			high = middle;
	}
	for (uint32_t i = low; i-- > first && spans[i].start_ns >= start_ns;) {
		int64_t at = path->nodes[plumb_path_end(i)].at;

		if (at > start_ns && at <= end_ns &&
		    (best == PLUMB_NONE || at > path->nodes[plumb_path_end(best)].at))
			best = i;
	}
	return best == PLUMB_NONE ? PLUMB_NONE : plumb_path_end(best);
}

uint32_t
plumb_path_end_of(const struct plumb_path *path, uint32_t process)
{
	const struct plumb_profile *p = path->profile;
	uint32_t best = PLUMB_NONE;

	for (uint32_t t = path->first_track[process]; t != PLUMB_NONE; t = path->next_track[t]) {
		if (p->tracks[t].kind != PLUMB_TRACK_STREAM && path->busiest[process] != t)
			continue;
		for (uint32_t i = path->first_span[t]; i < path->first_span[t + 1]; i++) {
			uint32_t end = plumb_path_end(i);

			if (!(path->nodes[end].flags & PLUMB_PATH_LEFT_OUT) &&
			    (best == PLUMB_NONE || path->nodes[end].at > path->nodes[best].at))
				best = end;
		}
	}
	return best;
}

/* The times as measured give every node's delay and what bound it. */
static void
measure(struct plumb_path_window *w)
{
	struct play play = { w, w->at };

	for (uint32_t i = 0; i < w->nodes; i++) {
		int64_t then = ready(&play, i, &w->binding[i]);

		w->at[i] = w->path->nodes[w->order[i]].at;
		w->delay[i] = then == INT64_MIN ? 0 : w->at[i] - then;
	}
}

/* The window that SEARCH has found. */
static int
open_found(struct search *search, bool found, uint32_t end, struct plumb_path_window *w,
           struct plumb_error *error)
{
	*w = (struct plumb_path_window){
		.path = search->path,
		.start_ns = search->start_ns,
		.floor_ns = search->start_ns,
		.end_ns = end == PLUMB_NONE ? 0 : search->path->nodes[end].at,
		.whole = search->start_ns == INT64_MIN,
		.order = search->order.items,
		.nodes = search->order.count,
	};
	plumb_vec_free(&search->stack);
	if (end == PLUMB_NONE)
		return plumb_fail(error, PLUMB_EEMPTY, "there is no work at that time");
	w->at = malloc(((size_t)w->nodes + 1) * sizeof *w->at);
	w->delay = malloc(((size_t)w->nodes + 1) * sizeof *w->delay);
	w->binding = malloc(((size_t)w->nodes + 1) * sizeof *w->binding);
	if (found && w->nodes && w->at && w->delay && w->binding) {
		w->last = search->path->position[end];
		measure(w);
		if (walk(w)) {
			sum_peers(w);
			return 0;
		}
	}
	return plumb_fail(error, PLUMB_ESYSTEM, "not enough memory for the critical path");
}

int
plumb_path_open(struct plumb_path *path, uint32_t track, int64_t start_ns, int64_t end_ns,
                struct plumb_path_window *window, struct plumb_error *error)
{
	struct search search = { .path = path, .start_ns = start_ns };
	uint32_t end = plumb_path_last(path, track, start_ns, end_ns);
	bool found = search_from(&search, end);

	return open_found(&search, found, end, window, error);
}

int
plumb_path_open_whole(struct plumb_path *path, struct plumb_path_window *window,
                      struct plumb_error *error)
{
	struct search search = { .path = path, .start_ns = INT64_MIN };
	uint32_t last = PLUMB_NONE;
	bool found = true;

	for (uint32_t i = 0; found && i < path->profile->processes_count; i++) {
		uint32_t end = plumb_path_end_of(path, i);

		found = search_from(&search, end);
		if (end != PLUMB_NONE &&
		    (last == PLUMB_NONE || path->nodes[end].at > path->nodes[last].at))
			last = end;
	}
	/* Nobody may have waited for the last iterations' work. */
	for (uint32_t i = 0; found && i < path->profile->spans_count; i++)
		if (path->nodes[plumb_path_end(i)].flags & PLUMB_PATH_WORK)
			found = search_from(&search, plumb_path_end(i));
	return open_found(&search, found, last, window, error);
}

void
plumb_path_close(struct plumb_path_window *w)
{
	for (uint32_t i = 0; i < w->nodes; i++)
		w->path->position[w->order[i]] = PLUMB_NONE;
	free(w->segments);
	free(w->order);
	free(w->binding);
	free(w->at);
	free(w->delay);
	w->segments = NULL;
	w->order = w->binding = NULL;
	w->at = w->delay = NULL;
	w->count = w->nodes = 0;
}
