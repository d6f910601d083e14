/* SPDX-License-Identifier: Apache-2.0 */
/* Which call started a piece of GPU work: of its process, and of several with its number the last
 * before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "model/launches.h"

static struct plumb_track tracks[] = {
	{ .kind = PLUMB_TRACK_THREAD, .process = 0 },
	{ .kind = PLUMB_TRACK_THREAD, .process = 0 },
	{ .kind = PLUMB_TRACK_THREAD, .process = 1 },
	{ .kind = PLUMB_TRACK_STREAM, .process = 0 },
};
static struct plumb_span spans[] = {
	{ .track = 0, .start_ns = 10, .end_ns = 20, .correlation = 7 },
	{ .track = 0, .start_ns = 12, .end_ns = 18, .correlation = 7 }, /* within it */
	{ .track = 0, .start_ns = 15, .end_ns = 16 },
	{ .track = 0, .start_ns = 50, .end_ns = 60, .correlation = 7 }, /* the number comes again */
	{ .track = 1, .start_ns = 30, .end_ns = 40, .correlation = 7 },
	{ .track = 1, .start_ns = 31, .end_ns = 32, .correlation = 8 },
	{ .track = 2, .start_ns = 33, .end_ns = 34, .correlation = 7 },
	{ .track = 3, .start_ns = 35, .end_ns = 36, .correlation = 9 },
};
static const struct plumb_profile profile = {
	.tracks = tracks, .tracks_count = 4, .spans = spans, .spans_count = 8
};

static void
test_launches(void **state)
{
	struct plumb_launches launches = { 0 };

	(void)state;
	assert_int_equal(plumb_launches_find(&profile, PLUMB_NONE, &launches), 0);
	assert_int_equal(launches.count, 6);
	assert_int_equal(plumb_launch_before(&launches, 0, 7, 25), 1); /* the inner one */
	assert_int_equal(plumb_launch_before(&launches, 0, 7, 11), 0);
	assert_int_equal(plumb_launch_before(&launches, 0, 7, 45), 4); /* another thread's */
	assert_int_equal(plumb_launch_before(&launches, 0, 7, 50), 3);
	assert_int_equal(plumb_launch_before(&launches, 0, 7, 5), 0); /* clocks differ */
	assert_int_equal(plumb_launch_of(&launches, 0, 7), 3);
	assert_int_equal(plumb_launch_before(&launches, 1, 7, 40), 6);
	assert_int_equal(plumb_launch_before(&launches, 0, 9, 40), PLUMB_NONE); /* no call */
	assert_int_equal(plumb_launch_before(&launches, 0, 0, 40), PLUMB_NONE);
	assert_int_equal(plumb_launch_before(&launches, 2, 7, 40), PLUMB_NONE);
	assert_int_equal(launches.items[plumb_launch_place(&launches, 0, 7)], 0);
	assert_int_equal(launches.items[plumb_launch_place(&launches, 0, 8)], 5);
	assert_int_equal(plumb_launch_place(&launches, 1, 8), PLUMB_NONE);
	plumb_vec_free(&launches);
	assert_int_equal(plumb_launches_find(&profile, 1, &launches), 0);
	assert_int_equal(launches.count, 1);
	plumb_vec_free(&launches);
}

/* Calls whose numbers are not in order: a few places, or far away. */
static void
test_order(void **state)
{
	enum { CALLS = 400 };
	static struct plumb_span calls[CALLS];
	struct plumb_profile p = profile;
	struct plumb_launches launches = { 0 };

	(void)state;
	p.spans = calls;
	p.spans_count = CALLS;
	for (uint32_t far = 1; far <= CALLS; far *= 20) {
		for (uint32_t i = 0; i < CALLS; i++)
			calls[i] = (struct plumb_span){ .track = i < CALLS / 2 ? 0 : 1,
				                        .start_ns = 10 * i,
				                        .end_ns = 10 * i + 5,
				                        .correlation = 1 + (i + far) % CALLS };
		for (uint32_t i = 0; i + 20 < CALLS; i += 20) { /* two calls swap their numbers */
			uint64_t number = calls[i].correlation;

			calls[i].correlation = calls[i + 3].correlation;
			calls[i + 3].correlation = number;
		}
		assert_int_equal(plumb_launches_find(&p, PLUMB_NONE, &launches), 0);
		assert_int_equal(launches.count, CALLS);
		for (uint32_t i = 0; i < CALLS; i++) {
			uint32_t at = 7 * i % CALLS;

			assert_int_equal(plumb_launch_of(&launches, 0, calls[at].correlation), at);
			assert_int_equal(calls[launches.items[i]].correlation, i + 1);
		}
		plumb_vec_free(&launches);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_launches),
		                            cmocka_unit_test(test_order) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
