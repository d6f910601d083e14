/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window played again without some of its work: every node is there once all that comes before it is there
 * and its own delay has passed. Several plays go through the window side by side, because what takes time is to
 * walk through its nodes.
 */
#include <stdlib.h>

#include "analyze/path/path_private.h"

#define PLAYS PLUMB_PATH_PLAYS

struct plays {
	const struct plumb_path_window *window;
	const unsigned char *gone; /* by context: a bit for each play */
	int64_t *times;            /* PLAYS by place in the order */
};

/* The plays without SPAN. */
static unsigned
without(const struct plays *plays, uint32_t span)
{
	return span == PLUMB_NONE ? 0
	                          : plays->gone[plays->window->path->profile->spans[span].context];
}

/* BEST becomes what node FROM and LENGTH after it allow at PLACE, where that is later: but for the plays of SKIP, and
 * without the length in those of GONE. As window.c's after(). */
static void
after(const struct plays *plays, uint32_t place, uint32_t from, int64_t length, unsigned gone,
      unsigned skip, int64_t *best)
{
	const struct plumb_path_window *w = plays->window;
	uint32_t position = w->path->position[from];
	int64_t at = w->path->nodes[from].at;
	bool inside = position < place;

	if (!inside && at > w->floor_ns)
		return;
	for (unsigned k = 0; k < PLAYS; k++) {
		int64_t then = inside ? plays->times[(size_t)position * PLAYS + k] : at;

		then += gone >> k & 1 ? 0 : length;
		then = then < w->floor_ns ? w->floor_ns : then;
		if (!(skip >> k & 1) && then > best[k])
			best[k] = then;
	}
}

static void
play_node(const struct plays *plays, uint32_t place)
{
	const struct plumb_path *path = plays->window->path;
	uint32_t node = plays->window->order[place];
	const struct plumb_path_node *n = &path->nodes[node];
	unsigned own = plumb_path_is_gate(path, node) ? 0 : without(plays, node / 2);
	int64_t *times = &plays->times[(size_t)place * PLAYS], delay = plays->window->delay[place];

	for (unsigned k = 0; k < PLAYS; k++)
		times[k] = INT64_MIN;
	if (n->before != PLUMB_NONE)
		after(plays, place, n->before, plumb_path_length_before(path, node),
		      without(plays, n->owner), 0, times);
	for (uint32_t e = n->edge; e != PLUMB_NONE; e = path->edges.items[e].next) {
		const struct plumb_path_edge *edge = &path->edges.items[e];

		after(plays, place, edge->from, edge->length, without(plays, edge->owner),
		      edge->kind == PLUMB_PATH_BY_SYNC ? own : 0, times);
	}
	for (unsigned k = 0; k < PLAYS; k++)
		if (times[k] == INT64_MIN)
			times[k] = n->at;
		else if (!(own >> k & 1))
			times[k] += delay;
}

bool
plumb_path_savings(const struct plumb_path_window *w, const unsigned char *gone,
                   const uint32_t *nodes, uint32_t count, int64_t *saved)
{
	struct plays plays = { w, gone, NULL };

	plays.times = malloc(((size_t)w->nodes + 1) * PLAYS * sizeof *plays.times);
	if (!plays.times)
		return false;
	for (uint32_t i = 0; i < w->nodes; i++)
		play_node(&plays, i);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t place = nodes[i] == PLUMB_NONE ? PLUMB_NONE : w->path->position[nodes[i]];

		for (size_t k = 0; k < PLAYS; k++)
			saved[i * PLAYS + k] = place < w->nodes
			                               ? w->path->nodes[nodes[i]].at -
			                                         plays.times[place * PLAYS + k]
			                               : PLUMB_UNKNOWN;
	}
	free(plays.times);
	return true;
}

int64_t
plumb_path_saving(const struct plumb_path_window *w, const unsigned char *gone)
{
	uint32_t contexts = w->path->profile->contexts_count;
	unsigned char *first = calloc((size_t)contexts + 1, 1);
	int64_t saved[PLAYS] = { 0 };
	bool done = first;

	for (uint32_t c = 0; first && c < contexts; c++)
		first[c] = gone[c] != 0;
	if (done && w->nodes)
		done = plumb_path_savings(w, first, &w->order[w->last], 1, saved);
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
	return false;
}
