/* SPDX-License-Identifier: Apache-2.0 */
/* Where a sequence of names may repeat, and at which distance: what pattern/period.c confirms. */
#ifndef PLUMB_ANALYZE_PATTERN_CANDIDATES_H
#define PLUMB_ANALYZE_PATTERN_CANDIDATES_H

#include <stdint.h>

#include "base/error.h"

#define PLUMB_CANDIDATES_SCALE 10 /* of one scale */
#define PLUMB_CANDIDATES_MOST (5 * PLUMB_CANDIDATES_SCALE)

/* Places [from, end) mostly have the symbol that is PERIOD before them. */
struct plumb_candidate {
	int32_t period, from, end;
	int32_t votes;
};

/* Arrays for as many symbols as the text or the alphabet has, and one more. */
struct plumb_candidates {
	int32_t *suffixes, *common, *number, *last;
	struct plumb_candidate *open; /* half as many */
	struct plumb_candidate items[PLUMB_CANDIDATES_MOST];
	int count;
};

/* Finds them, by their period, then by where they begin. Errors as of plumb_suffix_array. */
int plumb_candidates_find(struct plumb_candidates *candidates, const int32_t *text, int32_t count,
                          int32_t alphabet) PLUMB_MUST_CHECK;
/* The arrays, but for `number`, which is free for other use. */
void plumb_candidates_free(struct plumb_candidates *candidates);

#endif
