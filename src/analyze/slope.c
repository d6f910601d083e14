/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/slope.h"

#include <math.h>

#include "analyze/statistic.h"

#define LEAST 4

struct plumb_slope
plumb_slope_fit(const double *numbers, uint32_t count)
{
	struct plumb_slope line = { NAN, NAN, NAN };
	double n = 0, middle = 0, mean = 0, xx = 0, xy = 0, rest = 0;

	for (uint32_t i = 0; i < count; i++)
		if (!isnan(numbers[i])) {
			n++;
			middle += i;
			mean += numbers[i];
		}
	if (n < LEAST)
		return line;
	middle /= n;
	mean /= n;
	for (uint32_t i = 0; i < count; i++)
		if (!isnan(numbers[i])) {
			xx += (i - middle) * (i - middle);
			xy += (i - middle) * (numbers[i] - mean);
		}
	line.mean = mean;
	line.slope = xy / xx;
	for (uint32_t i = 0; i < count; i++)
		if (!isnan(numbers[i]))
			rest += pow(numbers[i] - mean - line.slope * (i - middle), 2);
	line.error = plumb_student(n - 2) * sqrt(rest / (n - 2) / xx);
	return line;
}
