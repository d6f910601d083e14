/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops in a sequence of names (`int32_t text[count]`, symbols 0…alphabet-1): how long a round is,
 * and where each round lies. Nobody says how many rounds there are.
 *
 *	struct plumb_loop loop;
 *	if (plumb_loop_find(text, count, alphabet, 0.5, &loop) > 0) {
 *		loop.period, loop.rounds.items[i].start …
 *		plumb_loop_places(&loop, text, count, places);
 *		plumb_loop_turn(&loop, text, count, by);     // a round begins elsewhere
 *	}
 *	plumb_loop_free(&loop);
 *
 * To find loops inside a round, search loop.pattern again. It needs 24 bytes for each symbol, the
 * text included.
 */
#ifndef PLUMB_ANALYZE_PATTERN_PERIOD_H
#define PLUMB_ANALYZE_PATTERN_PERIOD_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"

struct plumb_round {
	int32_t start, end; /* of the text */
	int32_t edits;      /* symbols changed, inserted and missing against the pattern */
};

struct plumb_loop {
	int32_t period;   /* symbols of a round; 0: there is no loop */
	int32_t *pattern; /* what most rounds have, `period` symbols */
	uint32_t phase;   /* for callers */
	bool growing;     /* each round is longer than the one before (pattern/growing.h) */
	double match;     /* share of places whose symbol is that one period later */
	double coverage;  /* share of symbols that agree with a round's, or with part of one at the
	                     ends */
	PLUMB_VEC(struct plumb_round) rounds; /* ascending, none overlaps another */
};

/* Finds the outermost loop. Returns 1, or 0 if no loop covers a share of LEAST. PLUMB_EUSAGE as in
 * plumb_suffix_array; PLUMB_ESYSTEM: no memory. Call plumb_loop_free even after an error. */
int plumb_loop_find(const int32_t *text, int32_t count, int32_t alphabet, double least,
                    struct plumb_loop *loop) PLUMB_MUST_CHECK;
void plumb_loop_free(struct plumb_loop *loop);

/* Finds the rounds of LOOP's pattern in a text. PLUMB_ESYSTEM: memory is out. */
int plumb_loop_follow(struct plumb_loop *loop, const int32_t *text, int32_t count) PLUMB_MUST_CHECK;
/* Sets the pattern to what most rounds have, and finds the rounds again. PLACES is scratch room for
 * COUNT. */
int plumb_loop_settle(struct plumb_loop *loop, const int32_t *text, int32_t count,
                      int32_t *places) PLUMB_MUST_CHECK;
/* Lets a round begin with symbol BY of the pattern, and finds the rounds again. */
int plumb_loop_turn(struct plumb_loop *loop, const int32_t *text, int32_t count,
                    int32_t by) PLUMB_MUST_CHECK;
/* places[i] becomes the place of text[i] in the pattern, -1 where it has none: outside of rounds,
 * or inserted in one. */
int plumb_loop_places(const struct plumb_loop *loop, const int32_t *text, int32_t count,
                      int32_t *places) PLUMB_MUST_CHECK;

#endif
