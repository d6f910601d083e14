/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Furthest-reaching points (Ukkonen 1985, Myers 1986): for e edits and each diagonal k = text -
 * pattern, the most of the pattern that can be aligned. Equal stretches cost one comparison a
 * symbol, so a round with e edits costs size + e², and an exact one no more than a comparison.
 */
#include "analyze/pattern/align.h"

#include <stdbool.h>
#include <stdlib.h>

#include "analyze/pattern/equal.h"

#define NOT_REACHED (-2)
#define LOOK_AHEAD 16 /* symbols that tell where the next round begins */
#define COUNT_FROM 8  /* edits; by then it pays to count the symbols that both have */

/* Row E has the diagonals -E…E, and two more on each side that are not reached. */
#define ROW_SIZE(e) (2 * (size_t)(e) + 5)

int
plumb_align_new(struct plumb_align *align)
{
	size_t rows = PLUMB_ALIGN_MOST + 1;

	*align = (struct plumb_align){ 0 };
	align->fronts = malloc(rows * (rows + 4) * sizeof *align->fronts);
	return align->fronts ? 0 : PLUMB_ESYSTEM;
}

void
plumb_align_free(struct plumb_align *align)
{
	free(align->fronts);
	free(align->counts);
	*align = (struct plumb_align){ 0 };
}

/* Diagonal 0 of row E. All rows lie one after the other; if they need not be KEPT for the way back,
 * two of them take turns, so that they stay in the processor's cache. */
static int32_t *
row_at(const struct plumb_align *align, int32_t e, bool kept)
{
	size_t first =
		kept ? (size_t)e * ((size_t)e + 4) : (size_t)(e & 1) * ROW_SIZE(PLUMB_ALIGN_MOST);

	return align->fronts + first + e + 2;
}

static int32_t
count_equal(const int32_t *pattern, int32_t size, const int32_t *text, int32_t count)
{
	int32_t most = size < count ? size : count;

	return plumb_equal(pattern, text, most < LOOK_AHEAD ? most : LOOK_AHEAD);
}

static void
go_back(const struct plumb_align *align, int32_t e, int32_t k, int32_t x, int32_t *places)
{
	for (; e > 0; e--) {
		const int32_t *before = row_at(align, e - 1, true);
		int32_t changed = before[k], inserted = before[k - 1], deleted = before[k + 1];
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

/* Makes room to count the symbols of PATTERN. False: no memory. */
static bool
reserve_counts(struct plumb_align *align, const int32_t *pattern, int32_t size)
{
	int32_t greatest = -1, *counts;

	for (int32_t i = 0; i < size; i++)
		greatest = pattern[i] > greatest ? pattern[i] : greatest;
	if (greatest < align->counted)
		return true;
	if (greatest >= INT32_MAX / 2)
		return false;
	counts = calloc(2 * (size_t)greatest + 2, sizeof *counts);
	if (!counts)
		return false;
	free(align->counts);
	align->counts = counts;
	align->counted = 2 * greatest + 2;
	return true;
}

/* How many symbols of PATTERN are not in TEXT: each of them takes an edit, wherever it is. */
static int32_t
count_missing(struct plumb_align *align, const int32_t *pattern, int32_t size, const int32_t *text,
              int32_t count)
{
	int32_t missing = 0;

	if (!reserve_counts(align, pattern, size))
		return 0;
	for (int32_t i = 0; i < size; i++) {
		missing += pattern[i] >= 0;
		if (pattern[i] >= 0)
			align->counts[pattern[i]]++;
	}
	for (int32_t i = 0; i < count; i++)
		if (text[i] >= 0 && text[i] < align->counted && align->counts[text[i]] > 0) {
			align->counts[text[i]]--;
			missing--;
		}
	for (int32_t i = 0; i < size; i++)
		if (pattern[i] >= 0)
			align->counts[pattern[i]] = 0;
	return missing;
}

/* Fills row E of the fronts from the row before. Returns the diagonal that reaches the end of the
 * pattern, the one after which the pattern begins again; NOT_REACHED and *FOLLOWS < 0 if none. */
static int32_t
fill_row(struct plumb_align *align, const int32_t *pattern, int32_t size, const int32_t *text,
         int32_t count, int32_t e, bool kept, int32_t *follows)
{
	int32_t *row = row_at(align, e, kept), best_k = 0;
	const int32_t *before = e ? row_at(align, e - 1, kept) : NULL;

	*follows = NOT_REACHED;
	row[-e - 2] = row[-e - 1] = row[e + 1] = row[e + 2] = NOT_REACHED;
	for (int32_t k = -e; k <= e; k++) {
		int32_t x = 0, from;

		if (e) {
			x = before[k] + 1;
			x = before[k - 1] > x ? before[k - 1] : x;
			x = before[k + 1] + 1 > x ? before[k + 1] + 1 : x;
		}
		if (x < 0 || x + k > count)
			x = NOT_REACHED;
		from = x;
		if (x >= 0 && x < size && x + k < count && pattern[x] == text[x + k])
			x += plumb_equal(pattern + x, text + x + k,
			                 size - x < count - x - k ? size - x : count - x - k);
		row[k] = x;
		align->work += (uint64_t)(x - from) + 1;
		if (x < size)
			continue;
		int32_t same = count_equal(pattern, size, text + x + k, count - x - k);
		if (same > *follows || (same == *follows && abs(k) < abs(best_k))) {
			*follows = same;
			best_k = k;
		}
	}
	return best_k;
}

int32_t
plumb_align_round(struct plumb_align *align, const int32_t *pattern, int32_t size,
                  const int32_t *text, int32_t count, int32_t most, int32_t *end, int32_t *places)
{
	if (most > PLUMB_ALIGN_MOST)
		most = PLUMB_ALIGN_MOST;
	for (int32_t e = 0; e <= most; e++) {
		int32_t follows, k;

		if (e == COUNT_FROM &&
		    count_missing(align, pattern, size, text,
		                  count - most > size ? size + most : count) > most)
			return -1;
		k = fill_row(align, pattern, size, text, count, e, places != NULL, &follows);
		if (follows != NOT_REACHED) {
			*end = size + k;
			if (places)
				go_back(align, e, k, size, places);
			return e;
		}
	}
	return -1;
}
