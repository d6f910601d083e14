/* SPDX-License-Identifier: Apache-2.0 */
/* Under libplumb.so: launches that fail, and records that are lost, late, doubled or strange. */
#include "cuda_mock.h"

static void
failed_launches_are_no_launches(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=fail=3", "repeat:9 launch:a:10");
	assert_int_equal(API("cuLaunchKernel", GPU_LAUNCHES).sum, 6);
	assert_int_equal(LEDGER(LAUNCH, RECEIVED), 6);
	assert_int_equal(LEDGER(LAUNCH, NOT_DELIVERED), 0);
	assert_int_equal(KERNEL("a", GPU_TIME).count, 6);
	finish(&run);
}

static void
lost_records_are_missed(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=lose=4", "repeat:12 launch:a:10");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 9);
	assert_int_equal(LEDGER(LAUNCH, RECEIVED), 12);
	assert_int_equal(LEDGER(LAUNCH, ATTRIBUTED), 9);
	assert_int_equal(LEDGER(LAUNCH, NOT_DELIVERED), 3);
	finish(&run);
	run_program(&run, "mock-program", "PLUMB_MOCK=drop=4", "repeat:12 launch:a:10");
	assert_int_equal(LEDGER(LAUNCH, CUPTI_DROPPED), 3);
	assert_int_equal(LEDGER(LAUNCH, NOT_DELIVERED), 0);
	finish(&run);
}

static void
duplicates_count_once(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=duplicate=2", "repeat:10 launch:a:10");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 10);
	assert_int_equal(KERNEL("a", GPU_TIME).sum, 100);
	assert_int_equal(LEDGER(KERNEL, RECEIVED), 15);
	assert_int_equal(LEDGER(KERNEL, DUPLICATE), 5);
	assert_int_equal(total(&run, 0)->kernels, 10);
	finish(&run);
}

static void
order_does_not_matter(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=reverse=1;PLUMB_FLUSH_MS=1000",
	            "repeat:100 launch:a:10 gap:0:5 repeat:100 launch:b:20");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 100);
	assert_int_equal(KERNEL("b", GPU_TIME).sum, 2000);
	assert_int_equal(busy(total(&run, 0)), 3000);
	assert_int_equal(total(&run, 0)->late, 0);
	assert_int_equal(LEDGER(KERNEL, ATTRIBUTED), 200);
	finish(&run);
}

static void
strangers_are_never_attributed(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=foreign=5", "repeat:20 launch:a:10");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 16);
	assert_int_equal(LEDGER(KERNEL, NO_LAUNCH), 4);
	assert_int_equal(LEDGER(KERNEL, ATTRIBUTED), 16);
	/* Their time shows all the same, at the root. */
	assert_int_equal(metric(&run, PLUMB_FRAME_KERNEL, "a", NULL, PLUMB_METRIC_GPU_TIME).count,
	                 20);
	assert_int_equal(total(&run, 0)->kernels, 20);
	finish(&run);
}

static void
a_small_ring_misses_and_says_so(void **state)
{
	struct run run;
	(void)state;
	/* Sixteen slots, and nothing delivered before all are launched. */
	run_program(&run, "mock-program", "PLUMB_CUPTI_RING_LOG2=4;PLUMB_FLUSH_MS=60000",
	            "repeat:50 launch:a:10 launch:b:10");
	assert_int_equal(LEDGER(KERNEL, RECEIVED), 51);
	assert_int_equal(LEDGER(KERNEL, RING_MISS), 35);
	assert_int_equal(LEDGER(KERNEL, ATTRIBUTED), 16);
	assert_int_equal(KERNEL("b", GPU_TIME).count, 1);
	finish(&run);
	/* Numbers with large holes, as when another thread polls, do not crowd each other out. */
	run_program(&run, "mock-program", "PLUMB_MOCK=stride=4099;PLUMB_FLUSH_MS=60000",
	            "repeat:5000 launch:a:10");
	assert_int_equal(LEDGER(KERNEL, ATTRIBUTED), 5000);
	finish(&run);
}

static void
correlation_ids_may_wrap(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=correlation=4294967290",
	            "repeat:20 launch:a:10");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 20);
	assert_int_equal(LEDGER(LAUNCH, ATTRIBUTED), 20);
	finish(&run);
}

static void
records_without_times_are_dropped(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=zero=5", "repeat:10 launch:a:10");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 8);
	assert_int_equal(LEDGER(KERNEL, CUPTI_DROPPED), 2);
	assert_int_equal(LEDGER(LAUNCH, ATTRIBUTED), 10);
	finish(&run);
}

static void
unknown_records_are_skipped(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=unknown=2", "repeat:10 launch:a:10");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 10);
	assert_int_equal(LEDGER(BUFFER, UNKNOWN_LAYOUT), 5);
	finish(&run);
}

static void
full_buffers_drop_and_count(void **state)
{
	struct run run;
	(void)state;
	/* Two buffers of one record each, and nobody empties them: see the stopped flush. */
	run_program(&run, "mock-program",
	            "PLUMB_MOCK=buffer_records=1;PLUMB_CUPTI_BUFFERS=2;PLUMB_FLUSH_MS=60000",
	            "threads:40:1:a:10");
	assert_true(LEDGER(BUFFER, BUFFERS_CAPPED) + LEDGER(BUFFER, ATTRIBUTED) ==
	            LEDGER(BUFFER, RECEIVED));
	assert_int_equal(LEDGER(LAUNCH, ATTRIBUTED) + LEDGER(LAUNCH, CUPTI_DROPPED), 40);
	assert_int_equal(LEDGER(LAUNCH, NOT_DELIVERED), 0);
	assert_int_equal(LEDGER(BUFFER, BUFFERS_CAPPED), LEDGER(LAUNCH, CUPTI_DROPPED));
	finish(&run);
	/* A buffer size of no use to CUPTI: all is dropped, all is counted. */
	run_program(&run, "mock-program", "PLUMB_CUPTI_BUFFERS=0", "repeat:6 launch:a:10");
	assert_int_equal(LEDGER(BUFFER, BUFFERS_CAPPED), 6);
	assert_int_equal(LEDGER(LAUNCH, CUPTI_DROPPED), 6);
	finish(&run);
}

static void
late_buffers_are_read_or_counted(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=late=1;PLUMB_FLUSH_MS=60000",
	            "repeat:5 launch:a:10");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 5);
	finish(&run);
	run_program(&run, "mock-profiled", "PLUMB_MOCK=late=2;PLUMB_FLUSH_MS=60000",
	            "repeat:5 launch:a:10");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 0);
	assert_int_equal(LEDGER(LAUNCH, NOT_DELIVERED), 5);
	assert_int_equal(LEDGER(BUFFER, LATE), 1);
	finish(&run);
}

static void
buffers_may_come_on_the_flushing_thread(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=flush_on_caller=1", "repeat:10 launch:a:10");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 10);
	finish(&run);
}

int
main(void)
{
#define T(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		T(failed_launches_are_no_launches),
		T(lost_records_are_missed),
		T(duplicates_count_once),
		T(order_does_not_matter),
		T(strangers_are_never_attributed),
		T(a_small_ring_misses_and_says_so),
		T(correlation_ids_may_wrap),
		T(records_without_times_are_dropped),
		T(unknown_records_are_skipped),
		T(full_buffers_drop_and_count),
		T(late_buffers_are_read_or_counted),
		T(buffers_may_come_on_the_flushing_thread),
	};
	return run_releases("cuda_mock_faults", tests, sizeof tests / sizeof *tests);
}
