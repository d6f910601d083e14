/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Furthest-reaching points (Ukkonen 1985, Myers 1986): for e edits and each diagonal k = text -
 * pattern, the most of the pattern that can be aligned. Equal stretches cost one comparison a
 * symbol, so a round with e edits costs size + e², and an exact one no more than a comparison.
 */
#include "analyze/pattern/align.h"

#include <stdlib.h>

#include "analyze/pattern/equal.h"

#define NOT_REACHED (-2)
#define LOOK_AHEAD 16 /* symbols that tell where the next round begins */

int
plumb_align_new(struct plumb_align *align)
{
	size_t rows = PLUMB_ALIGN_MOST + 1;

	align->work = 0;
	align->fronts = malloc(rows * rows * sizeof *align->fronts);
	return align->fronts ? 0 : PLUMB_ESYSTEM;
}

void
plumb_align_free(struct plumb_align *align)
{
	free(align->fronts);
	align->fronts = NULL;
}

/* Row E has the diagonals -E…E; rows lie behind one another, so row E begins at E². */
static int32_t *
front_at(const struct plumb_align *align, int32_t edits, int32_t diagonal)
{
	return &align->fronts[edits * edits + edits + diagonal];
}

static int32_t
get_reached(const struct plumb_align *align, int32_t edits, int32_t diagonal)
{
	return abs(diagonal) > edits ? NOT_REACHED : *front_at(align, edits, diagonal);
}

static int32_t
count_equal(const int32_t *pattern, int32_t size, const int32_t *text, int32_t count)
{
	int32_t most = size < count ? size : count;

	return plumb_equal(pattern, text, most < LOOK_AHEAD ? most : LOOK_AHEAD);
}

/* How far diagonal K gets with E edits, before equal symbols; NOT_REACHED where it does not. */
static int32_t
extend_diagonal(const struct plumb_align *align, int32_t e, int32_t k, int32_t size, int32_t count)
{
	int32_t best, changed, inserted, deleted;

	if (!e)
		return 0;
	changed = get_reached(align, e - 1, k);
	inserted = get_reached(align, e - 1, k - 1);
	deleted = get_reached(align, e - 1, k + 1);
	best = changed >= 0 && changed < size ? changed + 1 : NOT_REACHED;
	if (inserted > best)
		best = inserted;
	if (deleted >= 0 && deleted < size && deleted + 1 > best)
		best = deleted + 1;
	return best < 0 || best + k < 0 || best + k > count ? NOT_REACHED : best;
}

static void
go_back(const struct plumb_align *align, int32_t e, int32_t k, int32_t x, int32_t *places)
{
	for (; e > 0; e--) {
		int32_t changed = get_reached(align, e - 1, k),
			inserted = get_reached(align, e - 1, k - 1);
		int32_t deleted = get_reached(align, e - 1, k + 1);
		int32_t from = changed >= 0 ? changed + 1 : NOT_REACHED;

		if (inserted > from)
			from = inserted;
		if (deleted >= 0 && deleted + 1 > from)
			from = deleted + 1;
		for (; x > from; x--)
			places[x - 1 + k] = x - 1;
		if (from == inserted && inserted >= 0) {
			places[x + k - 1] = -1;
			k--;
		} else if (deleted >= 0 && from == deleted + 1) {
			x--;
			k++;
		} else {
			places[x - 1 + k] = x - 1;
			x--;
		}
	}
	for (; x > 0; x--)
		places[x - 1] = x - 1;
}

int32_t
plumb_align_round(struct plumb_align *align, const int32_t *pattern, int32_t size,
                  const int32_t *text, int32_t count, int32_t most, int32_t *end, int32_t *places)
{
	if (most > PLUMB_ALIGN_MOST)
		most = PLUMB_ALIGN_MOST;
	for (int32_t e = 0; e <= most; e++) {
		int32_t best = NOT_REACHED, best_k = 0;

		for (int32_t k = -e; k <= e; k++) {
			int32_t x = extend_diagonal(align, e, k, size, count), from = x;

			if (x >= 0)
				x += plumb_equal(pattern + x, text + x + k,
				                 size - x < count - x - k ? size - x
				                                          : count - x - k);
			*front_at(align, e, k) = x;
			align->work += (uint64_t)(x - from) + 1;
			if (x < size)
				continue;
			int32_t follows = count_equal(pattern, size, text + x + k, count - x - k);
			if (follows > best || (follows == best && abs(k) < abs(best_k))) {
				best = follows;
				best_k = k;
			}
		}
		if (best != NOT_REACHED) {
			*end = size + best_k;
			if (places)
				go_back(align, e, best_k, size, places);
			return e;
		}
	}
	return -1;
}
