/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels whose times no program has: a file may hold any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/iterations.h"
#include "model/builder.h"

static void
kernel(struct plumb_builder *b, uint32_t context, int64_t start_ns, int64_t end_ns)
{
	assert_int_equal(plumb_builder_span(b, &(struct plumb_span){ .context = context,
	                                                             .start_ns = start_ns,
	                                                             .end_ns = end_ns }),
	                 0);
}

/* A device with one stream. */
static struct plumb_builder *
with_stream(void)
{
	struct plumb_builder *b = plumb_builder_new();

	plumb_builder_process(b,
	                      &(struct plumb_process){ .host = PLUMB_NONE, .command = PLUMB_NONE });
	plumb_builder_device(b, &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
	plumb_builder_track(
		b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM, .name = PLUMB_NONE });
	return b;
}

static void
test_times(void **state)
{
	struct plumb_builder *b = with_stream();
	struct plumb_profile profile = { 0 };
	struct plumb_iterations found;
	uint32_t frame, context;

	(void)state;
	frame = plumb_builder_frame(b, PLUMB_FRAME_KERNEL, plumb_builder_text(b, "gemm"),
	                            PLUMB_NONE, 0);
	context = plumb_builder_context(b, 0, frame, 0);
	kernel(b, context, INT64_MIN + 1, INT64_MAX); /* no time at all */
	for (int i = 0; i < 4; i++)                   /* each is one, but not their sum */
		kernel(b, context, i - PLUMB_TIME_MOST + 1, PLUMB_TIME_MOST - 1);
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	plumb_builder_free(b);
	assert_int_equal(plumb_iterations_find(&profile, NULL, &found, NULL), 0);
	assert_int_equal(found.count, 1);
	assert_int_equal(found.tracks[0].ops, 4);
	assert_int_equal(found.tracks[0].kernel_ns, INT64_MAX);
	assert_true(found.tracks[0].op_gap_ns < 0);
	plumb_iterations_free(&found);
	plumb_profile_free(&profile);
}

/* A stream may run kernels at once, and some tools tell no streams apart: what another iteration
 * still runs is no wait, and never less than none. */
static void
test_kernels_that_outlast_iterations(void **state)
{
	struct plumb_builder *b = with_stream();
	struct plumb_profile profile = { 0 };
	struct plumb_iterations found;
	const struct plumb_iteration_level *level;
	uint32_t contexts[2];

	(void)state;
	for (int i = 0; i < 2; i++)
		contexts[i] = plumb_builder_context(
			b, 0,
			plumb_builder_frame(b, PLUMB_FRAME_KERNEL,
		                            plumb_builder_text(b, i ? "norm" : "gemm"), PLUMB_NONE,
		                            0),
			0);
	for (int i = 0; i < 8;
	     i++) { /* an iteration each 1000 ns; the first kernel of the third lasts for more */
		kernel(b, contexts[0], 1000 * i, i == 2 ? 4250 : 1000 * i + 300);
		kernel(b, contexts[1], 1000 * i + 300, 1000 * i + 400);
	}
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	plumb_builder_free(b);
	assert_int_equal(plumb_iterations_find(&profile, NULL, &found, NULL), 0);
	level = &found.tracks[0].levels[0];
	assert_int_equal(level->count, 8);
	static const int64_t intervals[] = { PLUMB_UNKNOWN, 600, 600, 0, 0, 600, 600, 600 };
	static const int64_t idle[] = { PLUMB_UNKNOWN, 600, 600, 0, 0, 600, 600, 600 };
	for (uint32_t i = 0; i < level->count; i++) {
		assert_int_equal(level->items[i].interval_ns, intervals[i]);
		assert_int_equal(level->items[i].idle_ns, idle[i]);
	}
	plumb_iterations_free(&found);
	plumb_profile_free(&profile);
}

/* Times of whole µs: short kernels begin together, and with others that are longer. */
static void
test_kernels_that_begin_together(void **state)
{
	enum { KERNELS = 6, ROUNDS = 8 };
	static const char *const names[KERNELS] = { "f", "e", "d", "c", "b", "a" };
	struct plumb_builder *b = with_stream();
	struct plumb_profile profile = { 0 };
	struct plumb_iterations found;
	uint32_t contexts[KERNELS], random = 1;
	int64_t now = 1000000;

	(void)state;
	for (int i = KERNELS - 1; i >= 0; i--)
		contexts[i] = plumb_builder_context(
			b, 0,
			plumb_builder_frame(b, PLUMB_FRAME_KERNEL, plumb_builder_text(b, names[i]),
		                            PLUMB_NONE, 0),
			0);
	for (uint32_t i = 0; i < KERNELS * ROUNDS; i++) {
		int64_t start = now / 1000 * 1000;

		now += 200 + (int64_t)(random = random * 1103515245 + 12345) % 1000;
		assert_int_equal(plumb_builder_span(
					 b, &(struct plumb_span){ .context = contexts[i % KERNELS],
		                                                  .start_ns = start,
		                                                  .end_ns = now / 1000 * 1000,
		                                                  .correlation = i + 1 }),
		                 0);
		now += i % KERNELS == KERNELS - 1 ? 20000 : 50;
	}
	assert_int_equal(plumb_builder_finish(b, &profile, NULL), 0);
	plumb_builder_free(b);
	assert_int_equal(plumb_iterations_find(&profile, NULL, &found, NULL), 0);
	assert_int_equal(found.tracks[0].level_count, 1);
	assert_int_equal(found.tracks[0].levels[0].period_ops, KERNELS);
	assert_int_equal(found.tracks[0].levels[0].count, ROUNDS);
	for (uint32_t i = 0; i < ROUNDS; i++)
		assert_int_equal(found.tracks[0].levels[0].items[i].edits, 0);
	plumb_iterations_free(&found);
	plumb_profile_free(&profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_kernels_that_outlast_iterations),
		cmocka_unit_test(test_kernels_that_begin_together),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
