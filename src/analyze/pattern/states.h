/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rounds of a loop as a graph: which symbols follow which, and how often. A state is a segment:
 * symbols that always come one after another. A transition leads from one segment to the next.
 *
 *	struct plumb_states_input input = { .text = text, .rounds = rounds, .round_count = n };
 *	struct plumb_states states;
 *	if (plumb_states_find(&input, &states) < 0) …
 *	for (s = PLUMB_STATES_FIRST; s < states.count; s++)
 *		states.items[s].count, states.symbols[states.items[s].first] …
 *	plumb_states_free(&states);
 *
 * The same symbol may be part of several segments: what came before it in its round tells them
 * apart. `history` says how many symbols before count. With 0 each symbol is in one segment.
 */
#ifndef PLUMB_ANALYZE_PATTERN_STATES_H
#define PLUMB_ANALYZE_PATTERN_STATES_H

#include <stdbool.h>

#include "analyze/pattern/period.h"

#define PLUMB_STATES_HISTORY_MOST 4
#define PLUMB_STATES_NONE UINT32_MAX

struct plumb_states_input {
	const int32_t *text; /* symbols from 0 on */
	const struct plumb_round *rounds;
	uint32_t round_count;
	/* By place of the text: how much it matters; NULL: each as much. If there are more states
	 * than MOST, those that matter least become one. */
	const int64_t *weights;
	uint32_t most; /* at least 4; 0: any number */
	/* Below 0: the history with the smallest graph, of those with at most MOST states. */
	int history;
};

enum {
	PLUMB_STATES_BEGIN, /* a round begins */
	PLUMB_STATES_END,   /* it is over */
	PLUMB_STATES_FIRST, /* the first segment; they come in the order of the text */
};

struct plumb_state {
	uint32_t first, length; /* its symbols */
	uint64_t count;         /* how often it came */
};

struct plumb_transition {
	uint32_t from, to;
	uint64_t count;
};

struct plumb_states {
	uint32_t history;
	struct plumb_state *items;
	uint32_t count;
	int32_t *symbols; /* of all states */
	uint32_t joined;  /* the last state takes the place of so many, and has no symbols; 0: it
	                     does not */
	struct plumb_transition *transitions; /* by where they come first */
	uint32_t transition_count;
	/* By round, and in it by place, one after another without what lies between rounds: */
	uint32_t *state;
	uint32_t *within;  /* its place in the segment; 0 in joined ones */
	uint32_t *through; /* the transition that leads here; PLUMB_STATES_NONE: it is within
	                          a segment */
	uint32_t *out;     /* by round: the transition that leads to the end */
	uint32_t places;   /* how many there are */
};

/* Linear. PLUMB_ESYSTEM: no memory. Call plumb_states_free even after an error. */
int plumb_states_find(const struct plumb_states_input *input,
                      struct plumb_states *states) PLUMB_MUST_CHECK;
void plumb_states_free(struct plumb_states *states);

#endif
