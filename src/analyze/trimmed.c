/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/layers.h"

#include <math.h>
#include <stdlib.h>

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double
plumb_trimmed_mean(double *values, size_t count)
{
	size_t cut = count / 5, from = 0, to = count;
	double sum = 0;

	if (!count)
		return NAN;
	qsort(values, count, sizeof *values, ascending);
	if (count == 3) {
		from = 1;
		to = 2;
	} else if (count > 3) {
		from = cut;
		to = cut ? count - cut : count - 1;
	}
	for (size_t i = from; i < to; i++)
		sum += values[i];
	return round(sum / (double)(to - from) * 1000) / 1000;
}
