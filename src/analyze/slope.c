/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/slope.h"

#include <math.h>

#include "model/profile.h"

#define LEAST 4

/* Of Student's distribution: half an interval of 95 % in standard errors. */
static double
student(uint32_t freedom)
{
	static const double few[] = { 12.71, 4.303, 3.182, 2.776, 2.571,
		                      2.447, 2.365, 2.306, 2.262, 2.228 };

	return freedom <= 10 ? few[freedom - 1] : 1.96 + 2.4 / freedom + 3.0 / freedom / freedom;
}

struct plumb_slope
plumb_slope_fit(const int64_t *numbers, uint32_t count)
{
	struct plumb_slope line = { NAN, NAN, NAN };
	double n = 0, middle = 0, mean = 0, xx = 0, xy = 0, rest = 0;

	for (uint32_t i = 0; i < count; i++)
		if (numbers[i] != PLUMB_UNKNOWN) {
			n++;
			middle += i;
			mean += (double)numbers[i];
		}
	if (n < LEAST)
		return line;
	middle /= n;
	mean /= n;
	for (uint32_t i = 0; i < count; i++)
		if (numbers[i] != PLUMB_UNKNOWN) {
			xx += (i - middle) * (i - middle);
			xy += (i - middle) * ((double)numbers[i] - mean);
		}
	line.mean = mean;
	line.slope = xy / xx;
	for (uint32_t i = 0; i < count; i++)
		if (numbers[i] != PLUMB_UNKNOWN)
			rest += pow((double)numbers[i] - mean - line.slope * (i - middle), 2);
	line.error = student((uint32_t)n - 2) * sqrt(rest / (n - 2) / xx);
	return line;
}
