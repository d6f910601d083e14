/* SPDX-License-Identifier: Apache-2.0 */
/* The line through numbers that come one after the other. */
#ifndef PLUMB_ANALYZE_SLOPE_H
#define PLUMB_ANALYZE_SLOPE_H

#include <stdint.h>

struct plumb_slope {
	double slope; /* from one to the next; NAN under four numbers */
	double error; /* half its interval of 95 % */
	double mean;
};

/* Of COUNT numbers; those that are NAN are left out, the others keep their places. */
struct plumb_slope plumb_slope_fit(const double *numbers, uint32_t count);

#endif
