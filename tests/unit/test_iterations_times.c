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

static void
test_times(void **state)
{
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_profile profile = { 0 };
	struct plumb_iterations found;
	uint32_t frame, context;

	(void)state;
	plumb_builder_process(b,
	                      &(struct plumb_process){ .host = PLUMB_NONE, .command = PLUMB_NONE });
	plumb_builder_device(b, &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
	plumb_builder_track(
		b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM, .name = PLUMB_NONE });
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
