/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the intervals of a thread lie in one another, where they overlap. Whoever makes a stack of
 * them goes by these rules, so that all find the same.
 */
#ifndef PLUMB_MODEL_NESTING_H
#define PLUMB_MODEL_NESTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/words.h"

#define PLUMB_NESTING_DEPTH 4096       /* what is deeper is not taken */
#define PLUMB_NESTING_OVERLAPS 64      /* what is open may be overlapped by so much */
#define PLUMB_NESTING_ROUNDING_NS 1000 /* traces in µs round begin and end apart */

/* Operators and ranges have the time that those within them do not have. */
static inline bool
plumb_nesting_has_own(uint32_t kind)
{
	return kind == PLUMB_FRAME_OPERATOR || kind == PLUMB_FRAME_RANGE;
}

/* Something of KIND, from START_NS to END_NS, begins in what is OPEN until OPEN_END_NS. Does it go
 * on after that, so that it does not belong into it? Ranges do: they begin within the call of
 * __enter__ and end within the call of __exit__. */
static inline bool
plumb_nesting_outlives(int64_t start_ns, int64_t end_ns, uint32_t kind, int64_t open_end_ns,
                       uint32_t open)
{
	bool follows = open_end_ns - start_ns <= PLUMB_NESTING_ROUNDING_NS;

	if (end_ns <= open_end_ns || end_ns - open_end_ns <= PLUMB_NESTING_ROUNDING_NS)
		return false;
	/* The clock of calls may differ: they stay in the operator that made them. */
	if (kind == PLUMB_FRAME_GPU_API)
		return follows && open == kind;
	return follows || kind != PLUMB_FRAME_OPERATOR || open != kind;
}

#endif
