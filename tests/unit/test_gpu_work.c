/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU work of a profile is the spans of its streams, else the newest work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/gpu_work.h"

enum { THREAD, STREAM, OTHER_STREAM, TRACKS };

static struct plumb_track tracks[TRACKS] = {
	[THREAD] = { .kind = PLUMB_TRACK_THREAD },
	[STREAM] = { .kind = PLUMB_TRACK_STREAM },
	[OTHER_STREAM] = { .kind = PLUMB_TRACK_STREAM },
};
/* By device and start, as a profile has it. */
static struct plumb_work_item newest[] = {
	{ 1, OTHER_STREAM, 10, 20 },
	{ 2, STREAM, 15, 30 },
	{ 3, OTHER_STREAM, 40, 50 },
};
static struct plumb_span spans[] = {
	{ 4, THREAD, 0, 5, 1, 0 },
	{ 5, STREAM, 6, 9, 1, 0 },
	{ 6, STREAM, 9, 12, 2, 0 },
};

static struct plumb_profile
make_profile(uint32_t spans_count)
{
	return (struct plumb_profile){ .tracks = tracks,
		                       .tracks_count = TRACKS,
		                       .work = newest,
		                       .work_count = 3,
		                       .spans = spans,
		                       .spans_count = spans_count };
}

static void
check_range(const struct plumb_gpu_work *work, uint32_t track, uint32_t count, uint32_t context)
{
	struct plumb_gpu_range range = plumb_gpu_work_of(work, track);

	assert_int_equal(range.end - range.first, count);
	for (uint32_t i = range.first; i < range.end; i++)
		assert_int_equal(work->spans[i].track, track);
	if (count)
		assert_int_equal(work->spans[range.first].context, context);
}

static void
test_spans(void **state)
{
	struct plumb_profile profile = make_profile(3);
	struct plumb_gpu_work work;

	(void)state;
	assert_int_equal(plumb_gpu_work_find(&profile, &work), 0);
	assert_false(work.newest);
	check_range(&work, THREAD, 0, 0);
	check_range(&work, STREAM, 2, 5);
	check_range(&work, OTHER_STREAM, 0, 0);
	plumb_gpu_work_free(&work);
}

/* Spans of threads alone are no GPU work. */
static void
test_newest(void **state)
{
	(void)state;
	for (uint32_t count = 0; count < 2; count++) {
		struct plumb_profile profile = make_profile(count);
		struct plumb_gpu_work work;

		assert_int_equal(plumb_gpu_work_find(&profile, &work), 0);
		assert_true(work.newest);
		check_range(&work, THREAD, 0, 0);
		check_range(&work, STREAM, 1, 2);
		check_range(&work, OTHER_STREAM, 2, 1);
		assert_int_equal(work.spans[plumb_gpu_work_of(&work, OTHER_STREAM).end - 1].context,
		                 3);
		plumb_gpu_work_free(&work);
	}
}

static void
test_nothing(void **state)
{
	struct plumb_profile profile = { 0 };
	struct plumb_gpu_work work;

	(void)state;
	assert_int_equal(plumb_gpu_work_find(&profile, &work), 0);
	assert_true(work.newest);
	plumb_gpu_work_free(&work);
	plumb_gpu_work_free(&work);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spans),
		cmocka_unit_test(test_newest),
		cmocka_unit_test(test_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
