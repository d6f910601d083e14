/* SPDX-License-Identifier: Apache-2.0 */
/* Under libplumb.so: CUPTI's one slot, taken by others, given to the program's own profiler,
 * kept. */
#include "cuda_mock.h"

static void
a_taken_slot_is_said(void **state)
{
	struct run run;
	char text[1000];
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=subscribe=39",
	            "launch:a:10 wait:stream:1000");
	assert_int_equal(run.status, 0);
	assert_true(run.recorded);
	assert_true(environment(&run, "gpu.cuda.off", text, sizeof text));
	/* From 13.0 on CUPTI tells the name. */
	assert_non_null(strstr(text, !strcmp(release, "13.0")
	                                     ? "and CUPTI for MockTool has it"
	                                     : "one tool at a time, and another tool"));
	assert_int_equal(LEDGER(LAUNCH, RECEIVED), 0);
	finish(&run);
}

static void
an_unknown_version_is_refused(void **state)
{
	struct run run;
	char text[1000];
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=version=990000", "launch:a:10");
	assert_int_equal(run.status, 0);
	assert_true(environment(&run, "gpu.cuda.off", text, sizeof text));
	assert_non_null(strstr(text, "CUPTI version 990000"));
	assert_int_equal(LEDGER(BUFFER, UNKNOWN_LAYOUT), 1);
	assert_null(total(&run, 0));
	finish(&run);
	run_program(&run, "mock-program", "PLUMB_MOCK=enable=5", "launch:a:10");
	assert_true(environment(&run, "gpu.cuda.off", text, sizeof text));
	assert_non_null(strstr(text, "CUPTI's records cannot be switched on"));
	finish(&run);
}

static void
the_environment_is_written(void **state)
{
	struct run run;
	char text[1000];
	(void)state;
	run_program(&run, "mock-profiled", "", "launch:a:10 sleep:50");
	assert_true(environment(&run, "cuda.driver", text, sizeof text));
	assert_string_equal(text, release);
	assert_true(environment(&run, "cuda.runtime", text, sizeof text));
	assert_string_equal(text, release);
	assert_true(environment(&run, "cudnn.version", text, sizeof text));
	assert_string_equal(text, "9.13.0");
	assert_true(environment(&run, "nccl.version", text, sizeof text));
	assert_string_equal(text, "2.27.3");
	assert_true(environment(&run, "cuda.cupti", text, sizeof text));
	assert_non_null(strstr(text, "/libcupti.so."));
	assert_false(environment(&run, "gpu.cuda.off", text, sizeof text));
	uint64_t cursor = 0;
	unsigned readings = 0;
	const struct plumb_record_clock *clock;
	while ((clock = (const void *)next_of(&run, &cursor, PLUMB_RECORD_CLOCK)))
		readings += clock->gpu != 0 && clock->monotonic && clock->realtime;
	assert_true(readings >= 2);
	finish(&run);
}

static void
the_programs_own_profiler_gets_the_slot(void **state)
{
	struct run run;
	(void)state;
	run_program(
		&run, "mock-profiled", "",
		"repeat:3 launch:a:10 profile:begin repeat:4 launch:b:10 profile:end sleep:400 "
		"repeat:5 launch:c:10 profile:begin launch:d:10 capture:2:d:1 profile:end "
		"sleep:400 "
		"repeat:6 launch:e:10 capture:2:e:1 profile:callbacks profile:leave launch:f:10");
	assert_int_equal(run.status, 0);
	assert_string_equal(run.output, "subscribe 0\nprofiled 4 kernels\nsubscribe 0\n"
	                                "profiled 1 kernels\n2 callbacks\nunsubscribe 0\n");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 3);
	assert_int_equal(KERNEL("b", GPU_TIME).count, 0);
	assert_int_equal(KERNEL("c", GPU_TIME).count, 5);
	assert_int_equal(KERNEL("d", GPU_TIME).count, 0);
	assert_int_equal(KERNEL("e", GPU_TIME).count, 6);
	assert_int_equal(KERNEL("e", GPU_TIME).sum,
	                 60); /* in ns, whatever the profiler made CUPTI count */
	assert_true(total(&run, 0)->last_end - total(&run, 0)->first_start < 60000000000u);
	assert_int_equal(KERNEL("f", GPU_TIME).count, 1);
	assert_int_equal(LEDGER(CUPTI_SLOT, RECEIVED), 2);
	assert_int_equal(LEDGER(CUPTI_SLOT, SLOT_GIVEN), 2);
	assert_int_equal(LEDGER(LAUNCH, NOT_DELIVERED), 0);
	char text[1000];
	assert_true(environment(&run, "gpu.cuda.gap", text, sizeof text));
	assert_non_null(strstr(text, "2 times"));
	finish(&run);
}

static void
a_profiler_that_unsubscribes_or_finalizes(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-profiled", "",
	            "launch:a:10 profile:begin launch:b:10 profile:end profile:leave sleep:400 "
	            "launch:c:10 "
	            "profile:begin launch:d:10 profile:finalize sleep:400 launch:e:10");
	assert_string_equal(run.output,
	                    "subscribe 0\nprofiled 1 kernels\nunsubscribe 0\nsubscribe 0\n");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 1);
	assert_int_equal(KERNEL("c", GPU_TIME).count, 1);
	assert_int_equal(KERNEL("e", GPU_TIME).count, 1);
	assert_int_equal(LEDGER(CUPTI_SLOT, SLOT_GIVEN), 2);
	finish(&run);
}

static void
the_slot_can_be_kept(void **state)
{
	struct run run;
	char text[1000];
	(void)state;
	run_program(&run, "mock-profiled", "PLUMB_KEEP_CUPTI=1",
	            "launch:a:10 profile:begin launch:b:10 profile:end launch:c:10");
	assert_string_equal(run.output, "subscribe 39\nprofiled 0 kernels\n");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 1);
	assert_int_equal(KERNEL("b", GPU_TIME).count, 1);
	assert_int_equal(KERNEL("c", GPU_TIME).count, 1);
	assert_int_equal(LEDGER(CUPTI_SLOT, SLOT_GIVEN), 0);
	assert_true(environment(&run, "gpu.cuda.kept", text, sizeof text));
	finish(&run);
}

static void
profiling_works_as_without_plumb(void **state)
{
	struct run run;
	(void)state;
	/* No collector at all: what the program prints is the same. */
	run_program(&run, "mock-profiled", "LD_PRELOAD=;CUDA_INJECTION64_PATH=",
	            "launch:a:10 profile:begin launch:b:10 profile:end profile:leave");
	assert_string_equal(run.output, "subscribe 0\nprofiled 1 kernels\nunsubscribe 0\n");
	assert_false(run.recorded);
	finish(&run);
	/* Loaded, but not told to record. */
	run_program(&run, "mock-profiled", "PLUMB_GPU=0",
	            "launch:a:10 profile:begin launch:b:10 profile:end profile:leave");
	assert_string_equal(run.output, "subscribe 0\nprofiled 1 kernels\nunsubscribe 0\n");
	finish(&run);
}

int
main(void)
{
#define T(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		T(a_taken_slot_is_said),
		T(an_unknown_version_is_refused),
		T(the_environment_is_written),
		T(the_programs_own_profiler_gets_the_slot),
		T(a_profiler_that_unsubscribes_or_finalizes),
		T(the_slot_can_be_kept),
		T(profiling_works_as_without_plumb),
	};
	return run_releases("cuda_mock_slot", tests, sizeof tests / sizeof *tests);
}
