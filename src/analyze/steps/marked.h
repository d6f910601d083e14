/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations against what the program marks, and against other processes on the device. Iterations are
 * found without marks; where there are some they tell whether that is right.
 */
#ifndef PLUMB_ANALYZE_STEPS_MARKED_H
#define PLUMB_ANALYZE_STEPS_MARKED_H

#include "analyze/iterations.h"
#include "analyze/steps/moments.h"

struct plumb_marked {
	uint32_t frame;  /* of the range that marks steps (ProfilerStep, else one that comes once an
	                   iteration), or PLUMB_NONE */
	uint32_t steps;  /* marked, from the first iteration's launch on */
	uint32_t before; /* of all marks, those that begin before the first iteration is launched */
	uint32_t agree;  /* from whose begin to the next one's exactly one iteration is launched */
};

/* PLUMB_ESYSTEM: memory is out. */
int
plumb_marked_find(const struct plumb_moments *moments, const struct plumb_iteration_level *level,
                  struct plumb_marked *marked) PLUMB_MUST_CHECK;

/* By iteration: how long both this process and another had work on the device, from the end of the
 * iteration before on; malloced. *OTHERS: there is another one's work. NULL: no memory. */
int64_t *plumb_contended_find(const struct plumb_moments *moments,
                              const struct plumb_iteration_level *level, bool *others);

#endif
