/* SPDX-License-Identifier: Apache-2.0 */
/* One round of a loop against the text: edit distance in a band, with the way back. */
#ifndef PLUMB_ANALYZE_PATTERN_ALIGN_H
#define PLUMB_ANALYZE_PATTERN_ALIGN_H

#include <stdint.h>

#include "base/error.h"

/* No more edits than this are looked for. */
#define PLUMB_ALIGN_MOST 512

struct plumb_align {
	int32_t *fronts;          /* private: how far each diagonal gets, edit by edit */
	int32_t *counts, counted; /* private: by symbol below `counted`, all 0 between calls */
	uint64_t work;            /* steps taken so far, over all calls */
};

int plumb_align_new(struct plumb_align *align) PLUMB_MUST_CHECK;
void plumb_align_free(struct plumb_align *align);

/*
 * Aligns all of PATTERN (SIZE symbols) with the beginning of TEXT (COUNT symbols; the end is free)
 * by at most MOST (≤ PLUMB_ALIGN_MOST) changes, insertions and deletions. Returns how many it took,
 * or -1. *END is how much of the text it is; where there is a choice, the end after which the
 * pattern begins again. If PLACES is not NULL, places[i] becomes the place in PATTERN of text
 * symbol i < *END, also of a changed one, or -1 for an inserted one.
 */
int32_t
plumb_align_round(struct plumb_align *align, const int32_t *pattern, int32_t size,
                  const int32_t *text, int32_t count, int32_t most, int32_t *end, int32_t *places);

#endif
