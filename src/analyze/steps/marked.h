/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations against what the program marks, and against other processes on the device. Iterations
 * are found without marks; where there are some they tell where one begins, and whether that is
 * right.
 */
#ifndef PLUMB_ANALYZE_STEPS_MARKED_H
#define PLUMB_ANALYZE_STEPS_MARKED_H

#include "analyze/iterations.h"
#include "analyze/steps/moments.h"

struct plumb_marked {
	uint32_t frame;  /* of a range that marks steps (marks.h), or PLUMB_NONE */
	char name[120];  /* of these ranges, without the number: "ProfilerStep"; cut off */
	uint32_t steps;  /* marked, from the first iteration's launch on */
	uint32_t before; /* of all marks, those that begin before the first iteration is launched */
	uint32_t agree;  /* from whose begin to the next one's exactly one iteration is launched */
	/* By iteration the number that the program has for it: that of the one mark in which the
	 * middle of it was launched; PLUMB_UNKNOWN for others. NULL: the program numbers no
	 * steps. */
	int64_t *numbers;
	char numbered[120]; /* as name, of the ranges that have the numbers */
};

/* For plumb_marked_free in any case. PLUMB_ESYSTEM: memory is out. */
int
plumb_marked_find(const struct plumb_moments *moments, const struct plumb_iteration_level *level,
                  struct plumb_marked *marked) PLUMB_MUST_CHECK;
void plumb_marked_free(struct plumb_marked *marked);

/* By iteration: how long both this process and another had work on the device, from the end of the
 * iteration before on; malloced. *OTHERS: there is another one's work. NULL: no memory. */
int64_t *plumb_contended_find(const struct plumb_moments *moments,
                              const struct plumb_iteration_level *level, bool *others);

#endif
