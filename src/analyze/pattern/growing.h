/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops whose rounds grow: each round is longer than the one before by about the same amount. No
 * two rounds agree well enough for a normal loop (pattern/period.h). But the distances between
 * symbols that come once in a round lie on a line.
 */
#ifndef PLUMB_ANALYZE_PATTERN_GROWING_H
#define PLUMB_ANALYZE_PATTERN_GROWING_H

#include "analyze/pattern/period.h"

/* As plumb_loop_find. Of the places that come once a round a round begins with the one before which
 * GAPS (by symbol of the text; NULL: any) are the longest. The pattern is the shortest round, which
 * others hold with insertions; plumb_loop_turn is not for such a loop. */
int plumb_loop_find_growing(const int32_t *text, int32_t count, int32_t alphabet, double least,
                            const int64_t *gaps, struct plumb_loop *loop) PLUMB_MUST_CHECK;

/* places[i] for each i of ROUND, as of plumb_loop_places: those of the pattern in their order, and
 * -1 for what else there is. Returns how many are not -1. */
int32_t plumb_loop_place_growing(const struct plumb_loop *loop, const int32_t *text,
                                 const struct plumb_round *round, int32_t *places);

#endif
