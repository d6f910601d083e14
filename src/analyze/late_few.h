/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that come late in few steps only. The mean of all steps would hide how long the others wait
 * in these. Private to analyze/.
 */
#ifndef PLUMB_ANALYZE_LATE_FEW_H
#define PLUMB_ANALYZE_LATE_FEW_H

#include "analyze/late.h"

/* The steps in which the others wait for the late ranks. */
struct plumb_late_few {
	uint32_t steps; /* 0: they are not few, or not known */
	double ns;      /* mean wait of each of the others in one of these steps */
};

/* COUNT: how many ranks are late. False: out of memory. */
bool plumb_late_find_few(const struct plumb_late *late, uint32_t count, struct plumb_late_few *few);

/* "in 1 of 100 steps, 60.0 ms,". FEW has steps. Returns TEXT. */
const char *plumb_late_name_few(const struct plumb_late *late, const struct plumb_late_few *few,
                                char *text, size_t size);

#endif
