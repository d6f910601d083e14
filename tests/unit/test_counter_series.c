/* SPDX-License-Identifier: Apache-2.0 */
/* Means of hardware counters over time, of the run and of stretches of it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/counter_series.h"
#include "base/format.h"

/* Device 0: bins of 10 ns from 100 on, without one at 120; device 1: one bin. */
static struct plumb_counter_series_bin bins[] = {
	{ 0, 0, 0, 1, 100, 10, 2, 10, 1, 2, 3 },         { 0, 0, 0, 1, 110, 10, 2, 10, 4, 5, 6 },
	{ 0, 0, 0, 1, 130, 10, 1, 5, 8, 8, 8 },          { 0, 0, 2, 1, 100, 10, 1, 10, 7, 7, 7 },
	{ 1, 0, 0, PLUMB_NONE, 100, 10, 1, 1, 9, 9, 9 },
};
static struct plumb_profile profile = {
	.counter_series = bins,
	.counter_series_count = sizeof bins / sizeof *bins,
};

static void
test_series_are_told_apart(void **state)
{
	static const struct plumb_profile empty;
	static const uint32_t counts[] = { 3, 1, 1 }, devices[] = { 0, 0, 1 };
	struct plumb_counter_series series;
	uint32_t at = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_true(plumb_counter_series_next(&profile, &at, &series));
		assert_true(series.count == counts[i] && series.device == devices[i]);
	}
	assert_false(plumb_counter_series_next(&profile, &at, &series));
	at = 0;
	assert_false(plumb_counter_series_next(&empty, &at, &series));
}

static void
test_means(void **state)
{
	static const struct {
		int64_t start, end;
		double mean; /* negative: not known */
	} cases[] = {
		{ 100, 110, 2 },   { 100, 120, 3.5 }, { 105, 115, 3.5 },
		{ 102, 112, 2.6 }, { 90, 110, 2 }, /* samples cover half of it, … */
		{ 89, 110, -1 },                   /* … or less */
		{ 100, 109, -1 },                  /* shorter than a bin */
		{ 120, 130, -1 },                  /* a hole */
		{ 130, 140, 8 },                   /* half of the bin is sampled */
		{ 110, 140, 6 },   { 500, 600, -1 },  { INT64_MIN, INT64_MAX, -1 },
	};
	struct plumb_counter_series series;
	uint32_t at = 0;

	(void)state;
	assert_true(plumb_counter_series_next(&profile, &at, &series));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		double mean = plumb_counter_series_mean(&series, cases[i].start, cases[i].end);
		if (cases[i].mean < 0 ? !isnan(mean) : !(fabs(mean - cases[i].mean) < 1e-9))
			fail_msg("case %zu: %g", i, mean);
	}
}

static void
test_summary(void **state)
{
	struct plumb_counter_series series;
	uint32_t at = 0;

	(void)state;
	assert_true(plumb_counter_series_next(&profile, &at, &series));
	struct plumb_counter_summary all = plumb_counter_series_summary(&series);
	assert_true(fabs(all.mean - (2 * 10 + 5 * 10 + 8 * 5) / 25.0) < 1e-9);
	assert_true(all.min == 1 && all.max == 8 && all.samples == 5 && all.sampled_ns == 25);
}

static void
test_texts(void **state)
{
	char text[PLUMB_FORMAT_SIZE];

	(void)state;
	assert_string_equal(plumb_counter_series_text(text, "ppm", 431234), "43.1 %");
	assert_string_equal(plumb_counter_series_text(text, "%", 12.5), "12.5 %");
	assert_string_equal(plumb_counter_series_text(text, "byte/s", 1 << 30), "1.00 GiB/s");
	assert_string_equal(plumb_counter_series_text(text, "count/s", 1234567), "1.235e+06/s");
	assert_string_equal(plumb_counter_series_text(text, NULL, 3), "3");
	assert_string_equal(plumb_counter_series_text(text, "ppm", (double)NAN), "?");
	assert_string_equal(plumb_counter_series_text(text, "byte/s", 1e300), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_series_are_told_apart),
		cmocka_unit_test(test_means),
		cmocka_unit_test(test_summary),
		cmocka_unit_test(test_texts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
