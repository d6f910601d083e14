/* SPDX-License-Identifier: Apache-2.0 */
/* Means, medians, percentiles, Student's quantiles and lines through numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "near.h"

#include "analyze/slope.h"
#include "analyze/statistic.h"

static double
trimmed(size_t count, const double *from)
{
	double values[16];

	memcpy(values, from, count * sizeof *values);
	return plumb_trimmed_mean(values, count);
}

static void
test_trimmed_mean(void **state)
{
	(void)state;
	assert_true(isnan(plumb_trimmed_mean(NULL, 0)));
	near(trimmed(2, (double[]){ 1, 4 }), 2.5, 0);
	near(trimmed(3, (double[]){ 100, 1, 4 }), 4, 0);
	/* min(n-1, n-0) leaves out the greatest, and nothing below */
	near(trimmed(4, (double[]){ 100, 1, 2, 6 }), 3, 0);
	near(trimmed(5, (double[]){ 100, 1, 2, 6, 7 }), 5, 0);
	near(trimmed(10, (double[]){ 1, 1, 5, 5, 5, 5, 5, 11, 90, 90 }), 6, 0);
	near(trimmed(4, (double[]){ 1, 1, 2, 9 }), 1.333, 1e-12); /* three decimals */
}

static double
statistic(const char *name, size_t count, const double *from)
{
	struct plumb_statistic of;
	double values[16];

	assert_true(plumb_statistic_read(name, &of));
	memcpy(values, from, count * sizeof *values);
	return plumb_statistic_of(&of, values, count);
}

static void
test_statistics(void **state)
{
	static const double ten[] = { 10, 9, 8, 7, 100, 5, 4, 3, 2, 1 };
	static const char *const wrong[] = { "",           "Mean",      "p",   "p101", "p-1",
		                             "p1x",        "p0100",     "95",  "mode", "trimmed:",
		                             "trimmed:50", "trimmed:x", "p95 " };
	struct plumb_statistic of;

	(void)state;
	near(statistic("mean", 10, ten), 14.9, 1e-12);
	near(statistic("median", 10, ten), 6, 0); /* of 5 and 7 */
	near(statistic("median", 9, ten), 7, 0);
	near(statistic("min", 10, ten), 1, 0);
	near(statistic("max", 10, ten), 100, 0);
	near(statistic("p50", 10, ten), 6, 0);
	near(statistic("p90", 10, ten), 10, 0); /* the ninth */
	near(statistic("p91", 10, ten), 100, 0);
	near(statistic("p10", 10, ten), 1, 0);
	near(statistic("p0", 10, ten), 1, 0);
	/* 1 to 5 and 7 to 10 without 1 and 100 */
	near(statistic("trimmed:10", 10, ten), 6, 1e-12);
	near(statistic("trimmed:9", 10, ten), 14.9, 1e-12);
	near(statistic("trimmed:49", 10, ten), 6, 1e-12);
	near(statistic("trimmed", 10, ten), trimmed(10, ten), 0);
	near(statistic("trimmed:29", 1, ten), 10, 0);
	near(statistic("p95", 1, ten), 10, 0);
	assert_true(isnan(statistic("p95", 0, ten)));
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (plumb_statistic_read(wrong[i], &of))
			fail_msg("\"%s\" is a statistic", wrong[i]);
}

static void
test_medians(void **state)
{
	double even[] = { 9, 1, 4, 2 }, odd[] = { 5, 1, 100, 3, 4 };

	(void)state;
	assert_true(isnan(plumb_median(NULL, 0)) && isnan(plumb_percentile(NULL, 0, 95)));
	near(plumb_median(even, 4), 3, 0);
	near(plumb_percentile(even, 4, 50), 2, 0); /* one that is there */
	near(plumb_percentile(even, 4, 51), 4, 0);
	near(plumb_median(odd, 5), 4, 0);
	near(plumb_median_deviation(odd, 5, 4), 1.4826, 0); /* 0, 1, 1, 3, 96 */
	assert_int_equal(plumb_whole(2.5), 2);
	assert_int_equal(plumb_whole(1e19), INT64_C(9000000000000000000));
}

/* How much of Student's distribution lies within T, for whole degrees of freedom: a finite sum
 * (Abramowitz and Stegun, 26.7.3 and 26.7.4). */
static double
within(double t, int freedom)
{
	double angle = atan(t / sqrt(freedom)), c = cos(angle), term = freedom % 2 ? c : 1, sum = 0;

	for (int i = freedom % 2 ? 1 : 0; i <= freedom - 2; i += 2) {
		sum += term;
		term *= c * c * (i + 1) / (i + 2);
	}
	return freedom % 2 ? (angle + sin(angle) * sum) * 2 / M_PI : sin(angle) * sum;
}

static void
test_student(void **state)
{
	static const struct {
		double freedom, quantile;
	} printed[] = { { 1, 12.7062 },  { 2, 4.3027 },   { 3, 3.1824 },   { 4, 2.7764 },
		        { 5, 2.5706 },   { 10, 2.2281 },  { 29, 2.0452 },  { 60, 2.0003 },
		        { 120, 1.9799 }, { 200, 1.9719 }, { 1e9, 1.9600 }, { 0.5, 12.7062 } };

	(void)state;
	for (size_t i = 0; i < sizeof printed / sizeof *printed; i++)
		near(plumb_student(printed[i].freedom), printed[i].quantile, 6e-5);
	for (int f = 1; f <= 200; f++) /* 1e-4 of the quantile and more */
		near(within(plumb_student(f), f), 0.95, 1e-7);
	for (double f = 1; f < 300; f += 0.125) /* so is what lies between */
		assert_true(plumb_student(f) > plumb_student(f + 0.125));
	near(plumb_student(NAN), plumb_student(1), 0);
}

static void
test_slope(void **state)
{
	static const double line[] = { 10, 13, NAN, 19, 22, 25 };
	static const double flat[] = { 4, 6, 4, 6, 4, 6, 4, 6 };
	struct plumb_slope slope = plumb_slope_fit(line, 6);

	(void)state;
	assert_true(fabs(slope.slope - 3) < 1e-9);
	assert_true(fabs(slope.error - 0) < 1e-6);
	slope = plumb_slope_fit(flat, 8);
	assert_true(fabs(slope.slope) < slope.error);
	assert_true(fabs(slope.mean - 5) < 1e-9);
	assert_true(isnan(plumb_slope_fit(line, 3).slope));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trimmed_mean), cmocka_unit_test(test_statistics),
		cmocka_unit_test(test_medians),      cmocka_unit_test(test_student),
		cmocka_unit_test(test_slope),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
