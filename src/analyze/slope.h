/* SPDX-License-Identifier: Apache-2.0 */
/* Fits a line to a sequence of numbers. */
#ifndef PLUMB_ANALYZE_SLOPE_H
#define PLUMB_ANALYZE_SLOPE_H

#include <stdint.h>

struct plumb_slope {
	double slope; /* from one to the next; NAN under four numbers */
	double error; /* half its interval of 95 % */
	double mean;
};

/* Fits the line to COUNT numbers. It leaves out NAN; the others keep their places. */
struct plumb_slope plumb_slope_fit(const double *numbers, uint32_t count);

#endif
