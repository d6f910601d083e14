/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/statistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

#define NORMAL 1.4826 /* standard deviation over median deviation, of a normal distribution */
#define Z 1.959964    /* what 97.5 % of that are below, in standard deviations */
#define PANELS 32     /* even */

/* The bits of a number from 0 on are in its order as a whole number; those of others are turned. */
static int64_t
turn_bits(int64_t bits)
{
	return bits < 0 ? bits ^ INT64_MAX : bits;
}

/* Puts COUNT values into ascending order. */
static void
sort_values(double *values, size_t count)
{
	int64_t *numbers = (int64_t *)(void *)values;

	_Static_assert(sizeof *numbers == sizeof *values, "a value is sorted as a number");
	for (size_t i = 0; i < count; i++) {
		int64_t bits;

		memcpy(&bits, &values[i], sizeof bits);
		bits = turn_bits(bits);
		memcpy(&values[i], &bits, sizeof bits);
	}
	plumb_sort_numbers(numbers, count);
	for (size_t i = 0; i < count; i++) {
		int64_t bits;

		memcpy(&bits, &values[i], sizeof bits);
		bits = turn_bits(bits);
		memcpy(&values[i], &bits, sizeof bits);
	}
}

double
plumb_percentile(double *values, size_t count, unsigned percent)
{
	size_t rank = (count * percent + 99) / 100;

	if (!count)
		return NAN;
	sort_values(values, count);
	return values[rank ? rank - 1 : 0];
}

double
plumb_median(double *values, size_t count)
{
	if (!count)
		return NAN;
	sort_values(values, count);
	return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

double
plumb_median_deviation(double *values, size_t count, double middle)
{
	for (size_t i = 0; i < count; i++)
		values[i] = fabs(values[i] - middle);
	return NORMAL * plumb_median(values, count);
}

/* Of (cos a)^POWER from LOW to HIGH, by Simpson's rule. */
static double
integrate_cosine(double low, double high, double power)
{
	double step = (high - low) / PANELS, sum = 0;

	for (int i = 0; i <= PANELS; i++)
		sum += (i % 2 ? 4 : i && i < PANELS ? 2 : 1) * pow(cos(low + i * step), power);
	return sum * step / 3;
}

double
plumb_student(double freedom)
{
	/* With t = sqrt(f) tan(a) the density is as (cos a)^(f - 1), for angles from -pi / 2 to pi
	 * / 2: looked for is the one within which 95 % of that lie. As it falls, Newton's steps
	 * from below never go beyond. They begin with the first terms for many degrees of
	 * freedom. */
	double f = fmin(fmax(freedom, 1), 1e6), angle = 0, within = 0;
	int sign; /* lgamma would write it to a variable of all threads */
	double all = sqrt(M_PI) / 2 * exp(lgamma_r(f / 2, &sign) - lgamma_r((f + 1) / 2, &sign));
	double next = atan((Z + (Z * Z * Z + Z) / (4 * f)) / sqrt(f));

	while ((next - angle) * sqrt(f) > 1e-7) {
		within += integrate_cosine(angle, next, f - 1);
		angle = next;
		next += (0.95 * all - within) / pow(cos(angle), f - 1);
	}
	return sqrt(f) * tan(angle);
}

int64_t
plumb_whole(double number)
{
	return (int64_t)floor(fmin(fmax(number, -9e18), 9e18));
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
	if (statistic->kind == PLUMB_STATISTIC_IS_TRIMMED) {
		size_t cut = count * percent / 100;
		sort_values(values, count);
		return mean_of(values, cut, count - cut);
	}
	return percent == 50 ? plumb_median(values, count)
	                     : plumb_percentile(values, count, (unsigned)percent);
}

double
plumb_trimmed_mean(double *values, size_t count)
{
	size_t cut = count / 5, from = 0, to = count;

	if (!count)
		return NAN;
	sort_values(values, count);
	if (count == 3) {
		from = 1;
		to = 2;
	} else if (count > 3) {
		from = cut;
		to = cut ? count - cut : count - 1;
	}
	return round(mean_of(values, from, to) * 1000) / 1000;
}
