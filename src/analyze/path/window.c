/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path through a window. What a node waited for is known, so the window can be played again
 * (play.c): a node is there once all that comes before it is there, and its own delay, what of its
 * time nothing explains, has passed. With nothing gone that gives the times as they were measured.
 */
#include <stdlib.h>

#include "analyze/path/path_private.h"
#include "base/search.h"
#include "base/sort.h"

/* What bound a node: an edge's number, or one of these. */
#define BY_BEFORE (PLUMB_NONE - 1)
#define BY_NOTHING PLUMB_NONE

/* ---- what comes before a node ---- */

/* When NODE could be, by node FROM and LENGTH after it; INT64_MIN: FROM does not count. */
static int64_t
time_after(const struct plumb_path_window *w, uint32_t node, uint32_t from, int64_t length)
{
	const uint32_t *position = w->path->position;
	int64_t at = w->path->nodes[from].at;

	if (position[from] >= position[node] && at > w->floor_ns)
		return INT64_MIN; /* it waits for this one itself: the trace contradicts itself */
	return at + length < w->floor_ns ? w->floor_ns : at + length;
}

/* What of all that comes before NODE is there last: an edge, or one of the above. */
static uint32_t
binding_of(const struct plumb_path_window *w, uint32_t node)
{
	const struct plumb_path *path = w->path;
	uint32_t binding = BY_NOTHING;
	const struct plumb_path_node *n = &path->nodes[node];
	int64_t best = INT64_MIN, at;

	if (n->before != PLUMB_NONE) {
		at = time_after(w, node, n->before, plumb_path_length_before(path, node));
		if (at > best) {
			best = at;
			binding = BY_BEFORE;
		}
	}
	for (uint32_t e = n->edge; e != PLUMB_NONE; e = path->edges.items[e].next) {
		const struct plumb_path_edge *edge = &path->edges.items[e];

		at = time_after(w, node, edge->from, edge->length);
		if (at > best) {
			best = at;
			binding = e;
		}
	}
	return binding;
}

/* ---- the order ---- */

/*
 * While what comes before a node is looked for, its position says where the search came from: a
 * node that it always comes before, or an edge. So the search needs no room of its own, however
 * long a chain is.
 */
#define PENDING (UINT32_C(1) << 31)
#define BY_EDGE (UINT32_C(1) << 30)
#define NUMBER (BY_EDGE - 1)
#define FROM_NOWHERE (PENDING | NUMBER)

struct search {
	struct plumb_path *path;
	int64_t start_ns;
	PLUMB_VEC(uint32_t) order;
};

/* Is the node in the window and not found yet? Then it is being looked at, from LINK. */
static bool
enter_node(const struct search *search, uint32_t node, uint32_t link)
{
	struct plumb_path *path = search->path;

	if (node == PLUMB_NONE || path->position[node] != PLUMB_NONE ||
	    path->nodes[node].at <= search->start_ns)
		return false;
	path->position[node] = link;
	return true;
}

/* The next node before one to look at, by its edges from EDGE on; PLUMB_NONE: none is left. */
static uint32_t
enter_by_edge(const struct search *search, uint32_t edge)
{
	const struct plumb_path_edge *edges = search->path->edges.items;

	for (; edge != PLUMB_NONE; edge = edges[edge].next)
		if (enter_node(search, edges[edge].from, PENDING | BY_EDGE | edge))
			return edges[edge].from;
	return PLUMB_NONE;
}

/* From where the search came to a node by LINK; PLUMB_NONE: from nowhere. */
static uint32_t
came_from(const struct plumb_path *path, uint32_t link)
{
	if (link == FROM_NOWHERE)
		return PLUMB_NONE;
	return link & BY_EDGE ? path->edges.items[link & NUMBER].to : link & NUMBER;
}

/* NODE has all that comes before it: it is next in the order. False: memory is out; nothing is
 * pending then. */
static bool
place_node(struct search *search, uint32_t node)
{
	struct plumb_path *path = search->path;
	uint32_t *added = plumb_vec_add(&search->order);

	if (added) {
		*added = node;
		path->position[node] = search->order.count - 1;
	}
	while (!added && node != PLUMB_NONE) {
		uint32_t link = path->position[node];

		path->position[node] = PLUMB_NONE;
		node = came_from(path, link);
	}
	return added != NULL;
}

/* All that comes before END in the window, each behind what it comes after. */
static bool
search_from(struct search *search, uint32_t end)
{
	struct plumb_path *path = search->path;
	uint32_t node = enter_node(search, end, FROM_NOWHERE) ? end : PLUMB_NONE;

	while (node != PLUMB_NONE) {
		uint32_t next = path->nodes[node].before;

		if (!enter_node(search, next, PENDING | node))
			next = enter_by_edge(search, path->nodes[node].edge);
		/* Where nothing is left, back to where it came from, and on from there. */
		while (next == PLUMB_NONE && node != PLUMB_NONE) {
			uint32_t link = path->position[node];

			if (!place_node(search, node))
				return false;
			node = came_from(path, link);
			if (node != PLUMB_NONE)
				next = enter_by_edge(search,
				                     link & BY_EDGE
				                             ? path->edges.items[link & NUMBER].next
				                             : path->nodes[node].edge);
		}
		node = next;
	}
	return true;
}

/* ---- the path ---- */

/* The node that bound NODE, and whose time lies between them. */
static uint32_t
step_back(const struct plumb_path *path, uint32_t node, uint32_t binding,
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

bool
plumb_path_walk(const struct plumb_path_window *w,
                bool (*visit)(void *data, const struct plumb_path_segment *segment), void *data)
{
	const struct plumb_path *path = w->path;
	uint32_t node = w->end;
	int64_t cursor = w->end_ns;

	while (cursor > w->start_ns) {
		struct plumb_path_segment segment = { PLUMB_NONE, PLUMB_NONE, PLUMB_PATH_UNKNOWN,
			                              w->start_ns, cursor };
		uint32_t binding =
			path->position[node] == PLUMB_NONE || path->nodes[node].at <= w->start_ns
				? BY_NOTHING
				: binding_of(w, node);

		if (binding == BY_NOTHING && w->whole)
			return true;
		if (binding != BY_NOTHING) {
			node = step_back(path, node, binding, &segment);
			if (path->nodes[node].at > w->start_ns)
				segment.start_ns = path->nodes[node].at;
		}
		if (segment.start_ns >= cursor)
			continue;
		if (!visit(data, &segment))
			return false;
		cursor = segment.start_ns;
	}
	return true;
}

struct measured {
	struct plumb_path_window *window;
	const struct plumb_track *tracks;
	uint32_t home; /* the process where it ends */
	int64_t start_ns;
};

static bool
measure_segment(void *data, const struct plumb_path_segment *segment)
{
	struct measured *m = data;
	int64_t ns = segment->end_ns - segment->start_ns;

	m->window->sums[segment->kind] += ns;
	if (segment->track != PLUMB_NONE && m->tracks[segment->track].process != m->home)
		m->window->peer_ns += ns;
	m->start_ns = segment->start_ns;
	return true;
}

static void
add_up_segments(struct plumb_path_window *w)
{
	const struct plumb_profile *p = w->path->profile;
	uint32_t last = w->end / 2;
	struct measured m = { w, p->tracks, p->tracks[p->spans[last].track].process, w->end_ns };

	plumb_path_walk(w, measure_segment, &m);
	if (w->whole)
		w->start_ns = m.start_ns;
}

struct listed {
	struct plumb_path_window *window;
	uint32_t capacity;
};

static bool
list_segment(void *data, const struct plumb_path_segment *segment)
{
	struct listed *listed = data;
	struct plumb_path_window *w = listed->window;
	struct plumb_path_segment *last = w->count ? &w->segments[w->count - 1] : NULL;

	if (last && last->context == segment->context && last->track == segment->track &&
	    last->kind == segment->kind) {
		last->start_ns = segment->start_ns;
		return true;
	}
	if (w->count == listed->capacity) {
		struct plumb_path_segment *grown = plumb_vec_grow(
			w->segments, &listed->capacity, (uint64_t)w->count + 1, sizeof *grown);

		if (!grown)
			return false;
		w->segments = grown;
	}
	w->segments[w->count++] = *segment;
	return true;
}

bool
plumb_path_list(struct plumb_path_window *w)
{
	struct listed listed = { w, 0 };

	free(w->segments);
	w->segments = NULL;
	w->count = 0;
	if (!plumb_path_walk(w, list_segment, &listed))
		return false;
	for (uint32_t i = 0; i < w->count / 2; i++) {
		struct plumb_path_segment swap = w->segments[i];

		w->segments[i] = w->segments[w->count - 1 - i];
		w->segments[w->count - 1 - i] = swap;
	}
	return true;
}

/* ---- windows ---- */

uint32_t
plumb_path_last(const struct plumb_path *path, uint32_t track, int64_t start_ns, int64_t end_ns)
{
	const struct plumb_span *spans = path->profile->spans;
	uint32_t first = path->first_span[track], best = PLUMB_NONE;
	uint32_t before = plumb_search(i, path->first_span[track + 1] - first,
	                               spans[first + i].start_ns < end_ns);

	for (uint32_t i = first + before; i-- > first && spans[i].start_ns >= start_ns;) {
		int64_t at = path->nodes[plumb_path_end(i)].at;

		if (at > start_ns && at <= end_ns &&
		    (best == PLUMB_NONE || at > path->nodes[plumb_path_end(best)].at))
			best = i;
	}
	return best == PLUMB_NONE ? PLUMB_NONE : plumb_path_end(best);
}

uint32_t
plumb_path_end_of(const struct plumb_path *path, uint32_t track)
{
	const struct plumb_track *t = &path->profile->tracks[track];
	uint32_t best = PLUMB_NONE;

	if (t->kind != PLUMB_TRACK_STREAM &&
	    (t->process >= path->profile->processes_count || path->busiest[t->process] != track))
		return PLUMB_NONE;
	for (uint32_t i = path->first_span[track]; i < path->first_span[track + 1]; i++) {
		uint32_t end = plumb_path_end(i);

		if (!(path->nodes[end].flags & PLUMB_PATH_LEFT_OUT) &&
		    (best == PLUMB_NONE || path->nodes[end].at > path->nodes[best].at))
			best = end;
	}
	return best;
}

int64_t
plumb_path_at(const struct plumb_path *path, uint32_t node)
{
	return path->nodes[node].at;
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
	if (!found)
		return plumb_fail_memory(error, "for the critical path");
	if (end == PLUMB_NONE)
		return plumb_fail(error, PLUMB_EEMPTY, "there is no work at that time");
	w->end = end;
	add_up_segments(w);
	return 0;
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
plumb_path_within(const struct plumb_path_window *whole, uint32_t track, int64_t start_ns,
                  int64_t end_ns, struct plumb_path_window *w, struct plumb_error *error)
{
	struct plumb_path *path = whole->path;
	uint32_t end = plumb_path_last(path, track, start_ns, end_ns);

	*w = (struct plumb_path_window){ .path = path };
	if (end == PLUMB_NONE)
		return plumb_fail(error, PLUMB_EEMPTY, "there is no work at that time");
	w->start_ns = w->floor_ns = start_ns;
	w->end_ns = path->nodes[end].at;
	w->end = end;
	add_up_segments(w);
	return 0;
}

/* All work, in the order in which it was over: what is near in time is near in the window, which
 * keeps plays small. It is looked for of itself, because nobody may have waited for the last
 * iterations' work. */
static bool
search_works(struct search *search)
{
	const struct plumb_path *path = search->path;
	uint32_t spans = path->profile->spans_count, count = 0;
	struct plumb_sort_item *works;
	bool done;

	for (uint32_t i = 0; i < spans; i++)
		count += (path->nodes[plumb_path_end(i)].flags & PLUMB_PATH_WORK) != 0;
	works = malloc(2 * ((size_t)count + 1) * sizeof *works);
	done = works;
	count = 0;
	for (uint32_t i = 0; done && i < spans; i++) {
		const struct plumb_path_node *end = &path->nodes[plumb_path_end(i)];

		if (end->flags & PLUMB_PATH_WORK)
			works[count++] = (struct plumb_sort_item){ plumb_sort_signed(end->at),
				                                   plumb_path_end(i) };
	}
	if (done)
		plumb_sort(works, works + count, count);
	for (uint32_t i = 0; done && i < count; i++)
		done = search_from(search, works[i].index);
	free(works);
	return done;
}

int
plumb_path_open_whole(struct plumb_path *path, struct plumb_path_window *window,
                      struct plumb_error *error)
{
	struct search search = { .path = path, .start_ns = INT64_MIN };
	uint32_t last = PLUMB_NONE;
	bool found = search_works(&search);

	for (uint32_t t = 0; found && t < path->profile->tracks_count; t++) {
		uint32_t end = plumb_path_end_of(path, t);
		int64_t later;

		if (end == PLUMB_NONE)
			continue;
		found = search_from(&search, end);
		later = last == PLUMB_NONE ? 1 : path->nodes[end].at - path->nodes[last].at;
		/* Of those that end together, as where a part is cut, what waits for the others. */
		if (later > 0 || (!later && path->nodes[last].flags & PLUMB_PATH_WORK &&
		                  !(path->nodes[end].flags & PLUMB_PATH_WORK)))
			last = end;
	}
	return open_found(&search, found, last, window, error);
}

void
plumb_path_close(struct plumb_path_window *w)
{
	for (uint32_t i = 0; i < w->nodes; i++)
		w->path->position[w->order[i]] = PLUMB_NONE;
	free(w->segments);
	free(w->order);
	free(w->slot);
	w->segments = NULL;
	w->order = w->slot = NULL;
	w->count = w->nodes = 0;
}
