/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/statistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* "95" is 95; -1 for what is no whole number below 1000. */
static int
number_in(const char *text)
{
	int number = 0;

	if (!*text || strlen(text) > 3)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		number = number * 10 + (*text - '0');
	}
	return number;
}

bool
plumb_statistic_read(const char *text, struct plumb_statistic *statistic)
{
	static const char trimmed[] = "trimmed:";
	int number;

	*statistic = (struct plumb_statistic){ PLUMB_STATISTIC_IS_XSP, 0 };
	if (!strcmp(text, "trimmed"))
		return true;
	if (!strcmp(text, "mean")) {
		*statistic = (struct plumb_statistic){ PLUMB_STATISTIC_IS_TRIMMED, 0 };
		return true;
	}
	if (!strncmp(text, trimmed, sizeof trimmed - 1)) {
		number = number_in(text + sizeof trimmed - 1);
		statistic->kind = PLUMB_STATISTIC_IS_TRIMMED;
		statistic->percent = (unsigned)number;
		return number >= 0 && number < 50;
	}
	statistic->kind = PLUMB_STATISTIC_IS_PERCENTILE;
	number = !strcmp(text, "median") ? 50
	         : !strcmp(text, "min")  ? 0
	         : !strcmp(text, "max")  ? 100
	         : *text == 'p'          ? number_in(text + 1)
	                                 : -1;
	statistic->percent = (unsigned)number;
	return number >= 0 && number <= 100;
}

static double
mean_of(const double *values, size_t from, size_t to)
{
	double sum = 0;

	for (size_t i = from; i < to; i++)
		sum += values[i];
	return sum / (double)(to - from);
}

double
plumb_statistic_of(const struct plumb_statistic *statistic, double *values, size_t count)
{
	size_t percent = statistic->percent;

	if (!count)
		return NAN;
	if (statistic->kind == PLUMB_STATISTIC_IS_XSP)
		return plumb_trimmed_mean(values, count);
	qsort(values, count, sizeof *values, ascending);
	if (statistic->kind == PLUMB_STATISTIC_IS_TRIMMED) {
		size_t cut = count * percent / 100;
		return mean_of(values, cut, count - cut);
	}
	if (percent == 50)
		return (values[(count - 1) / 2] + values[count / 2]) / 2;
	size_t rank = (count * percent + 99) / 100;
	return values[rank ? rank - 1 : 0];
}

double
plumb_trimmed_mean(double *values, size_t count)
{
	size_t cut = count / 5, from = 0, to = count;

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
	return round(mean_of(values, from, to) * 1000) / 1000;
}
