/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops in a sequence of names (`int32_t text[count]`, symbols 0…alphabet-1): how long a round
 * is, and where each round lies. Nobody says how many rounds there are.
 *
 *	struct plumb_loops loops;
 *	if (plumb_loops_find(text, count, alphabet, &loops) < 0) …
 *	for (l = 0; l < loops.count; l++) {
 *		struct plumb_loop *loop = &loops.items[l];
 *		loop->period, loop->rounds.items[i].start …
 *		plumb_loop_places(loop, text, count, places);
 *		plumb_loop_turn(loop, text, count, by);     // a round begins elsewhere
 *	}
 *	plumb_loops_free(&loops);
 *
 * To find loops inside a round, search loop.pattern again. It needs 28 bytes for each symbol, the
 * text included.
 *
 * A symbol below 0 belongs to something else: it agrees with no other, and the functions that
 * follow rounds pass it by.
 */
#ifndef PLUMB_ANALYZE_PATTERN_PERIOD_H
#define PLUMB_ANALYZE_PATTERN_PERIOD_H

#include <stdbool.h>

#include "base/error.h"
#include "base/vec.h"

/* What lies between two rounds parts them if it is longer than this many rounds. */
#define PLUMB_LOOP_APART 2

struct plumb_round {
	int32_t start, end; /* of the text */
	int32_t edits;      /* symbols changed, inserted and missing against the pattern */
};

struct plumb_loop {
	int32_t period;   /* symbols of a round; 0: there is no loop */
	int32_t *pattern; /* what most rounds have, `period` symbols */
	uint32_t phase;   /* for callers, as is the next */
	bool layers;
	bool growing;    /* each round is longer than the one before (pattern/growing.h) */
	double match;    /* share of places whose symbol is that one period later */
	int64_t agree;   /* symbols that agree with a round's, or with part of one at the ends */
	double coverage; /* their share of the rounds and the little that lies between these */
	PLUMB_VEC(struct plumb_round) rounds; /* ascending, none overlaps another */
};

struct plumb_loops {
	struct plumb_loop *items; /* the one that most symbols agree with first */
	uint32_t count, capacity;
};

/* Finds the outermost loops, wherever they lie: no rounds of theirs overlap. PLUMB_EUSAGE as in
 * plumb_suffix_array; PLUMB_ESYSTEM: no memory. Call plumb_loops_free even after an error. The
 * text changes meanwhile. */
int plumb_loops_find(int32_t *text, int32_t count, int32_t alphabet,
                     struct plumb_loops *loops) PLUMB_MUST_CHECK;
void plumb_loops_free(struct plumb_loops *loops);
/* Hides the symbols of loops [FROM, END) in the text (they become less than 0), or shows them
 * again. */
void plumb_loops_hide(const struct plumb_loops *loops, uint32_t from, uint32_t end, int32_t *text);

/* Takes from the other loops the rounds that overlap those of loop OWN, or parts of a round before
 * or after these; frees loops that have less than two then. */
int plumb_loops_cut(struct plumb_loops *loops, uint32_t own, const int32_t *text,
                    int32_t count) PLUMB_MUST_CHECK;

/* Finds the loop that covers most. Returns 1, or 0 if that is less than a share of LEAST. Call
 * plumb_loop_free even after an error. */
int plumb_loop_find(int32_t *text, int32_t count, int32_t alphabet, double least,
                    struct plumb_loop *loop) PLUMB_MUST_CHECK;
void plumb_loop_free(struct plumb_loop *loop);

/* Finds the rounds of LOOP's pattern in a text. PLUMB_ESYSTEM: memory is out. */
int plumb_loop_follow(struct plumb_loop *loop, const int32_t *text, int32_t count) PLUMB_MUST_CHECK;
/* Measures how much LOOP covers: a share of the rounds and of what lies between two of them, if
 * that is not much and nothing else's. */
void plumb_loop_cover(struct plumb_loop *loop, const int32_t *text, int32_t count);
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
