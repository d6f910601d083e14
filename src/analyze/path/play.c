/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window played again without some of its work: every node is there once all that comes before it
 * is there and its own delay has passed. Several plays go through the window side by side, because
 * what takes time is to walk through its nodes. Times are kept only until the last node that comes
 * after them is played: as many as there are threads and streams, and launches that the host is
 * ahead, not as many as nodes.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/path/path_private.h"
#include "base/sort.h"

#define PLAYS PLUMB_PATH_PLAYS
#define NO_SLOT PLUMB_NONE /* nothing comes after it */

/* ---- where times are kept ---- */

struct slots {
	struct plumb_path_window *window;
	PLUMB_VEC(uint32_t) unused;
};

/* FROM is used at PLACE, and nowhere later unless it has a slot. */
static void
keep_until(struct slots *s, uint32_t from, uint32_t place)
{
	struct plumb_path_window *w = s->window;
	uint32_t position = w->path->position[from];

	if (position < place && w->slot[position] == NO_SLOT)
		w->slot[position] =
			s->unused.count ? s->unused.items[--s->unused.count] : w->slots++;
}

/* From the last place back to the first: a node is first met where it is used last. Its slot is
 * free before it, because a play reads all times that a node needs before it writes the node's
 * own. */
static bool
share_slots(struct slots *s)
{
	struct plumb_path_window *w = s->window;
	const struct plumb_path_edge *edges = w->path->edges.items;

	for (uint32_t place = w->nodes; place--;) {
		const struct plumb_path_node *n = &w->path->nodes[w->order[place]];

		if (w->slot[place] != NO_SLOT) {
			uint32_t *added = plumb_vec_add(&s->unused);

			if (!added)
				return false;
			*added = w->slot[place];
		}
		if (n->before != PLUMB_NONE)
			keep_until(s, n->before, place);
		for (uint32_t e = n->edge; e != PLUMB_NONE; e = edges[e].next)
			keep_until(s, edges[e].from, place);
	}
	return true;
}

/* Once for all plays of a window. */
static bool
find_slots(struct plumb_path_window *w)
{
	struct slots s = { .window = w };
	bool done;

	if (w->slot)
		return true;
	w->slots = 0;
	w->slot = malloc(((size_t)w->nodes + 1) * sizeof *w->slot);
	done = w->slot != NULL;
	if (done) {
		memset(w->slot, 0xff, (size_t)w->nodes * sizeof *w->slot); /* NO_SLOT */
		done = share_slots(&s);
	}
	if (!done) {
		free(w->slot);
		w->slot = NULL;
	}
	plumb_vec_free(&s.unused);
	return done;
}

/* ---- plays ---- */

struct plays {
	const struct plumb_path_window *window;
	const unsigned char *gone; /* by context: a bit for each play */
	int64_t *times;            /* PLAYS by slot */
};

/* When a node is there: in each play, and as it was measured. */
struct then {
	int64_t at[PLAYS], measured;
};

/* The plays without SPAN. */
static unsigned
plays_without(const struct plays *plays, uint32_t span)
{
	return span == PLUMB_NONE ? 0
	                          : plays->gone[plays->window->path->profile->spans[span].context];
}

/* The plays without the time of OWNER, or of threads between two spans where it is PLUMB_NONE. */
static unsigned
without_time(const struct plays *plays, uint32_t owner)
{
	return owner == PLUMB_NONE ? plays->gone[plays->window->path->profile->contexts_count]
	                           : plays_without(plays, owner);
}

/* THEN becomes what node FROM and LENGTH after it allow at PLACE, where that is later: but for the
 * plays of SKIP, and without the length in those of GONE. As window.c's time_after(). */
static void
move_after(const struct plays *plays, uint32_t place, uint32_t from, int64_t length, unsigned gone,
           unsigned skip, struct then *then)
{
	const struct plumb_path_window *w = plays->window;
	uint32_t position = w->path->position[from];
	int64_t at = w->path->nodes[from].at, measured = at + length;
	bool inside = position < place;
	const int64_t *times = inside ? &plays->times[(size_t)w->slot[position] * PLAYS] : NULL;

	if (!inside && at > w->floor_ns)
		return;
	measured = measured < w->floor_ns ? w->floor_ns : measured;
	if (measured > then->measured)
		then->measured = measured;
	for (unsigned k = 0; k < PLAYS; k++) {
		int64_t best = inside ? times[k] : at;

		best += gone >> k & 1 ? 0 : length;
		best = best < w->floor_ns ? w->floor_ns : best;
		if (!(skip >> k & 1) && best > then->at[k])
			then->at[k] = best;
	}
}

static void
play_node(const struct plays *plays, uint32_t place, struct then *then)
{
	const struct plumb_path *path = plays->window->path;
	uint32_t node = plays->window->order[place], slot = plays->window->slot[place];
	const struct plumb_path_node *n = &path->nodes[node];
	unsigned own = plumb_path_is_gate(path, node) ? 0 : plays_without(plays, node / 2);
	/* What comes before a span begins is not the span's time: it stays. So a span saves its own
	 * length at most. */
	unsigned over = node % 2 ? own : 0;
	int64_t delay;

	then->measured = INT64_MIN;
	for (unsigned k = 0; k < PLAYS; k++)
		then->at[k] = INT64_MIN;
	if (n->before != PLUMB_NONE)
		move_after(plays, place, n->before, plumb_path_length_before(path, node),
		           without_time(plays, n->owner), 0, then);
	for (uint32_t e = n->edge; e != PLUMB_NONE; e = path->edges.items[e].next) {
		const struct plumb_path_edge *edge = &path->edges.items[e];

		bool thread =
			edge->kind == PLUMB_PATH_BY_THREAD || edge->kind == PLUMB_PATH_BY_RETURN;

		move_after(plays, place, edge->from, edge->length,
		           thread ? without_time(plays, edge->owner) : 0,
		           edge->kind == PLUMB_PATH_BY_SYNC ? own : 0, then);
	}
	delay = then->measured == INT64_MIN ? 0 : n->at - then->measured;
	for (unsigned k = 0; k < PLAYS; k++)
		if (then->at[k] == INT64_MIN)
			then->at[k] = n->at;
		else if (!(over >> k & 1))
			then->at[k] += delay;
	for (unsigned k = 0; slot != NO_SLOT && k < PLAYS; k++)
		plays->times[(size_t)slot * PLAYS + k] = then->at[k];
}

/* The NODES by their places, those in the window first. */
static uint32_t
list_asked(const struct plumb_path_window *w, const uint32_t *nodes, uint32_t count,
           struct plumb_sort_item *asked)
{
	uint32_t inside = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = nodes[i] == PLUMB_NONE ? PLUMB_NONE : w->path->position[nodes[i]];

		asked[i] = (struct plumb_sort_item){ place, i };
		inside += place < w->nodes;
	}
	plumb_sort(asked, asked + count, count);
	return inside;
}

bool
plumb_path_savings(struct plumb_path_window *w, const unsigned char *gone, const uint32_t *nodes,
                   uint32_t count, int64_t *saved)
{
	struct plays plays = { w, gone, NULL };
	struct plumb_sort_item *asked = malloc(2 * ((size_t)count + 1) * sizeof *asked);
	struct then then;
	uint32_t inside, next = 0;

	if (find_slots(w))
		plays.times = malloc(((size_t)w->slots + 1) * PLAYS * sizeof *plays.times);
	if (!plays.times || !asked) {
		free(plays.times);
		free(asked);
		return false;
	}
	for (size_t i = 0; i < (size_t)count * PLAYS; i++)
		saved[i] = PLUMB_UNKNOWN;
	inside = list_asked(w, nodes, count, asked);
	for (uint32_t i = 0; i < w->nodes && next < inside; i++) {
		play_node(&plays, i, &then);
		for (; next < inside && asked[next].key == i; next++)
			for (size_t k = 0; k < PLAYS; k++)
				saved[asked[next].index * PLAYS + k] =
					w->path->nodes[w->order[i]].at - then.at[k];
	}
	free(plays.times);
	free(asked);
	return true;
}

int64_t
plumb_path_saving(struct plumb_path_window *w, const unsigned char *gone)
{
	uint32_t contexts = w->path->profile->contexts_count;
	unsigned char *first = calloc((size_t)contexts + 1, 1);
	int64_t saved[PLAYS] = { 0 };
	bool done = first;

	for (uint32_t c = 0; first && c < contexts; c++)
		first[c] = gone[c] != 0;
	if (done && w->nodes)
		done = plumb_path_savings(w, first, &w->end, 1, saved);
	free(first);
	return done ? saved[0] : PLUMB_UNKNOWN;
}

bool
plumb_path_has(const struct plumb_path_window *w, const unsigned char *gone)
{
	for (uint32_t i = 0; i < w->nodes; i++)
		if (!plumb_path_is_gate(w->path, w->order[i]) &&
		    gone[w->path->profile->spans[w->order[i] / 2].context])
			return true;
	return w->nodes && gone[w->path->profile->contexts_count];
}
