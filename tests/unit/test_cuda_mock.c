/* SPDX-License-Identifier: Apache-2.0 */
/* Under libplumb.so: GPU work and calls that go well, and the ends that programs come to. */
#include "cuda_mock.h"

/* ---- kernels ---- */

static void
kernels_have_their_times(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "",
	            "repeat:10 launch:_Z1av:1000 launch:_Z1bv:500 launch:_Z1bv:700");
	assert_int_equal(run.status, 0);
	assert_true(run.recorded);
	assert_int_equal(run.region.header.state, PLUMB_REGION_ENDED);
	assert_int_equal(KERNEL("_Z1av", GPU_TIME).sum, 10000);
	assert_int_equal(KERNEL("_Z1av", GPU_TIME).count, 10);
	assert_int_equal(KERNEL("_Z1av", GPU_TIME).nodes, 1);
	assert_int_equal(KERNEL("_Z1bv", GPU_TIME).sum, 1200);
	assert_int_equal(KERNEL("_Z1bv", GPU_TIME).min, 500);
	assert_int_equal(KERNEL("_Z1bv", GPU_TIME).max, 700);
	assert_int_equal(API("cuLaunchKernel", GPU_LAUNCHES).sum, 12);
	assert_int_equal(LEDGER(LAUNCH, RECEIVED), 12);
	assert_int_equal(LEDGER(LAUNCH, ATTRIBUTED), 12);
	assert_int_equal(LEDGER(LAUNCH, NOT_DELIVERED), 0);
	assert_int_equal(LEDGER(KERNEL, RECEIVED), 12);
	assert_int_equal(LEDGER(KERNEL, ATTRIBUTED), 12);
	const struct plumb_record_device_total *t = total(&run, 0);
	assert_non_null(t);
	assert_int_equal(t->kernels, 12);
	assert_int_equal(t->kernel_ns, 11200);
	assert_int_equal(busy(t), 11200); /* one after the other, without gaps */
	assert_int_equal(t->last_end - t->first_start, 11200);
	assert_int_equal(t->late, 0);
	finish(&run);
}

static void
kernels_have_their_configuration(void **state)
{
	struct run run;
	(void)state;
	/* 80 blocks of 256 threads, 64 registers, 16 and 4 KiB shared: 4 blocks by registers. */
	run_program(&run, "mock-program", "", "repeat:3 kernel:_Z1kv:1000:80:256:64:16384:4096");
	assert_int_equal(KERNEL("_Z1kv", GPU_BLOCKS).sum, 240);
	assert_int_equal(KERNEL("_Z1kv", GPU_WARPS).sum, 3 * 80 * 8);
	assert_int_equal(KERNEL("_Z1kv", GPU_REGISTERS).max, 64);
	assert_int_equal(KERNEL("_Z1kv", GPU_SHARED_BYTES).min, 20480);
	assert_int_equal(KERNEL("_Z1kv", GPU_OCCUPANCY).min, 500000);
	uint64_t cursor = 0;
	const struct plumb_record_variant *v =
		(const void *)next_of(&run, &cursor, PLUMB_RECORD_VARIANT);
	assert_non_null(v);
	assert_int_equal(v->grid[0], 80);
	assert_int_equal(v->block[0], 256);
	assert_int_equal(v->registers, 64);
	assert_int_equal(v->static_shared, 16384);
	assert_int_equal(v->dynamic_shared, 4096);
	assert_int_equal(v->occupancy, 500000);
	assert_int_equal(v->count, 3);
	assert_int_equal(v->time, 3000);
	assert_null(next_of(&run, &cursor, PLUMB_RECORD_VARIANT));
	finish(&run);
}

static void
streams_overlap_and_gaps_are_idle(void **state)
{
	struct run run;
	(void)state;
	/* Stream 0: [0, 1000) [1500, 2500); 1: [0, 600) [600, 1200): busy [0, 1200) [1500,
	 * 2500). */
	run_program(&run, "mock-program", "",
	            "launch:a:1000 gap:0:500 launch:a:1000 launch:b:600:1 launch:b:600:1");
	const struct plumb_record_device_total *t = total(&run, 0);
	assert_non_null(t);
	assert_int_equal(busy(t), 2200);
	assert_int_equal(t->kernel_ns, 3200);
	assert_int_equal(t->open_count, 2);
	uint64_t cursor = 0, streams = 0;
	const struct plumb_record_stream *s;
	while ((s = (const void *)next_of(&run, &cursor, PLUMB_RECORD_STREAM))) {
		streams++;
		assert_true(s->stream == 7 || s->stream == 8);
	}
	assert_int_equal(streams, 2);
	finish(&run);
}

static void
devices_are_told_apart(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_MOCK=devices=2",
	            "launch:a:1000:0:0 launch:a:300:0:1 launch:a:300:0:1");
	assert_int_equal(total(&run, 0)->kernel_ns, 1000);
	assert_int_equal(total(&run, 1)->kernel_ns, 600);
	uint64_t cursor = 0;
	const struct plumb_record_device *d;
	unsigned count = 0;
	while ((d = (const void *)next_of(&run, &cursor, PLUMB_RECORD_DEVICE))) {
		count++;
		assert_true(is_text(&run, d->name, "NVIDIA Mock GPU"));
		assert_int_equal(d->uuid[0], 0xa0);
		assert_int_equal(d->uuid[15], d->ordinal);
		assert_int_equal(d->capability_major, 9);
		assert_int_equal(d->multiprocessors, 132);
		assert_int_equal(d->warps_per_multiprocessor, 64);
		assert_int_equal(d->clock_khz, 1980000);
		assert_int_equal(d->memory_bytes, 80ull << 30);
	}
	assert_int_equal(count, 2);
	finish(&run);
}

static void
threads_launch_at_once(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "", "threads:8:2000:k:10");
	assert_int_equal(KERNEL("k", GPU_TIME).count, 16000);
	assert_int_equal(KERNEL("k", GPU_TIME).sum, 160000);
	assert_int_equal(API("cuLaunchKernel", GPU_LAUNCHES).sum, 16000);
	assert_int_equal(API("cuLaunchKernel", GPU_LAUNCHES).nodes, 8);
	assert_int_equal(LEDGER(LAUNCH, ATTRIBUTED), 16000);
	assert_int_equal(busy(total(&run, 0)), 160000);
	finish(&run);
}

/* ---- copies, waiting, memory ---- */

static void
copies_are_named_and_wait_where_they_block(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "",
	            "copy:pageable:device:4096:900:2000000 copy:pinned:device:100:10:2000000 "
	            "blocking:device:pageable:4:20:3000000 copy:device:device:8:30 "
	            "copy:device:peer:16:40 set:512:50");
#define COPY(name, which) metric(&run, PLUMB_FRAME_COPY, "copy " name, NULL, PLUMB_METRIC_##which)
	assert_int_equal(COPY("pageable→device", GPU_COPY_TIME).sum, 900);
	assert_int_equal(COPY("pageable→device", GPU_COPY_BYTES).sum, 4096);
	assert_true(COPY("pageable→device", HOST_WAIT).sum >= 2000000);
	assert_int_equal(COPY("pinned→device", GPU_COPY_TIME).sum, 10);
	assert_int_equal(COPY("pinned→device", HOST_WAIT).count, 0);
	assert_int_equal(COPY("device→pageable", GPU_COPY_TIME).sum, 20);
	assert_int_equal(COPY("device→pageable", HOST_WAIT).count, 0);
	assert_true(API("cuMemcpyDtoH", HOST_WAIT).sum >= 3000000);
	assert_int_equal(API("cuMemcpyHtoDAsync", HOST_WAIT).count, 0);
	assert_int_equal(COPY("device→device", GPU_COPY_BYTES).sum, 8);
	assert_int_equal(COPY("device→peer device", GPU_COPY_BYTES).sum, 16);
	assert_int_equal(metric(&run, PLUMB_FRAME_SET, "set device", "cuMemsetD8Async",
	                        PLUMB_METRIC_GPU_COPY_BYTES)
	                         .sum,
	                 512);
	const struct plumb_record_device_total *t = total(&run, 0);
	assert_int_equal(t->copies, 5);
	assert_int_equal(t->copy_bytes, 4224);
	assert_int_equal(t->copy_ns, 1000);
	assert_int_equal(t->sets, 1);
	assert_int_equal(t->set_bytes, 512);
	assert_int_equal(LEDGER(COPY, ATTRIBUTED), 5);
	assert_int_equal(LEDGER(SET, ATTRIBUTED), 1);
	finish(&run);
}

static void
waiting_is_measured(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "",
	            "wait:stream:2000000 wait:context:3000000 wait:event:1000000 waitevent");
	assert_true(API("cuStreamSynchronize", HOST_WAIT).sum >= 2000000);
	assert_int_equal(API("cuStreamSynchronize", HOST_WAIT).count, 1);
	assert_true(API("cuCtxSynchronize", HOST_WAIT).sum >= 3000000);
	assert_true(API("cuEventSynchronize", HOST_WAIT).sum >= 1000000);
	assert_int_equal(API("cuStreamWaitEvent", HOST_WAIT).count, 0);
	assert_int_equal(LEDGER(SYNC, RECEIVED), 3);
	assert_int_equal(LEDGER(SYNC, ATTRIBUTED), 3);
	finish(&run);
}

static void
device_memory_is_counted(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "",
	            "alloc:1000 free alloc:4096 allocasync:300 freeasync free");
	assert_int_equal(API("cuMemAlloc", GPU_ALLOC_BYTES).sum, 5096);
	assert_int_equal(API("cuMemFree", GPU_FREE_BYTES).sum,
	                 1000); /* the second is unknown by then */
	assert_int_equal(API("cuMemAllocAsync", GPU_ALLOC_BYTES).sum, 300);
	assert_int_equal(API("cuMemFreeAsync", GPU_FREE_BYTES).sum, 300);
	assert_int_equal(LEDGER(ALLOCATION, RECEIVED), 3);
	finish(&run);
}

static void
graph_kernels_stay_at_the_launch(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "", "capture:5:g:100 replay:3 launch:h:7");
	struct stat_of g =
		metric(&run, PLUMB_FRAME_KERNEL, "g", "cuLaunchKernel", PLUMB_METRIC_GPU_TIME);
	assert_int_equal(g.count, 15);
	assert_int_equal(g.sum, 1500);
	assert_int_equal(KERNEL("h", GPU_TIME).count, 1);
	assert_int_equal(API("cuGraphLaunch", GPU_REPLAYS).sum, 3);
	assert_int_equal(API("cuLaunchKernel", GPU_LAUNCHES).sum,
	                 1); /* captured ones started nothing */
	assert_int_equal(LEDGER(LAUNCH, RECEIVED), 4);
	assert_int_equal(LEDGER(LAUNCH, ATTRIBUTED), 4);
	assert_int_equal(LEDGER(KERNEL, ATTRIBUTED), 16);
	assert_int_equal(LEDGER(GRAPH, RECEIVED), 15);
	assert_int_equal(LEDGER(GRAPH, ATTRIBUTED), 15);
	assert_int_equal(LEDGER(LAUNCH, NOT_DELIVERED), 0);
	finish(&run);
}

/* One record a replay: the nodes are counted, and the time is the graph's. */
static void
replays_have_one_record(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_REPLAYS=1",
	            "capture:5:g:100 replay:25 launch:h:7");
	/* Releases before 13 are not known to bear it. */
	unsigned whole = strcmp(release, "13.0") ? 0 : 25, nodes = 5 * (25 - whole);
	struct stat_of g =
		metric(&run, PLUMB_FRAME_KERNEL, "g", "cuLaunchKernel", PLUMB_METRIC_GPU_TIME);
	assert_int_equal(g.count, nodes);
	assert_int_equal(g.sum, 100 * nodes);
	g = metric(&run, PLUMB_FRAME_KERNEL, "g", "cuLaunchKernel", PLUMB_METRIC_GPU_NODES);
	assert_int_equal(g.count, 5 * whole);
	g = metric(&run, PLUMB_FRAME_KERNEL, "CUDA graph of 5 nodes", "cuGraphLaunch",
	           PLUMB_METRIC_GPU_TIME);
	assert_int_equal(g.count, whole);
	assert_int_equal(g.sum, 500 * whole);
	assert_int_equal(API("cuGraphLaunch", GPU_REPLAYS).sum, 25);
	assert_int_equal(LEDGER(LAUNCH, RECEIVED), 26);
	assert_int_equal(LEDGER(LAUNCH, ATTRIBUTED), 26);
	assert_int_equal(LEDGER(KERNEL, ATTRIBUTED), nodes + 1);
	assert_int_equal(LEDGER(GRAPH, RECEIVED), 125);
	assert_int_equal(LEDGER(GRAPH, ATTRIBUTED), 125);
	assert_int_equal(LEDGER(REPLAY, RECEIVED), whole);
	assert_int_equal(LEDGER(REPLAY, ATTRIBUTED), whole);
	finish(&run);
}

/* ---- ends ---- */

static void
bad_ends_lose_nothing(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_FLUSH_MS=60000", "repeat:5 launch:a:10 _exit:3");
	assert_int_equal(run.status, 3);
	assert_int_equal(KERNEL("a", GPU_TIME).count, 5);
	finish(&run);
	run_program(&run, "mock-program", "PLUMB_FLUSH_MS=60000", "repeat:5 launch:a:10 exit:4");
	assert_int_equal(run.status, 4);
	assert_int_equal(KERNEL("a", GPU_TIME).count, 5);
	finish(&run);
	/* Killed well after a flush: all is there but the end. */
	run_program(&run, "mock-program", "", "repeat:5 launch:a:10 sleep:500 kill:9");
	assert_int_equal(run.status, 128 + SIGKILL);
	assert_int_equal(run.region.header.state, PLUMB_REGION_RECORDING);
	assert_int_equal(KERNEL("a", GPU_TIME).count, 5);
	finish(&run);
}

static void
a_hanging_cupti_does_not_hold_up_the_exit(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "",
	            "launch:a:10 sleep:200 mock:hang:1 launch:b:10 exit:0");
	assert_int_equal(run.status, 0);
	assert_int_equal(KERNEL("a", GPU_TIME).count, 1);
	assert_int_equal(LEDGER(LAUNCH, RECEIVED), 2);
	finish(&run);
}

static void
a_forked_child_leaves_cupti_alone(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "", "launch:a:10 fork:b:10 launch:a:10");
	assert_int_equal(run.status, 0);
	assert_string_equal(run.output, "child 0\n");
	assert_int_equal(KERNEL("a", GPU_TIME).count, 2);
	assert_int_equal(KERNEL("b", GPU_TIME).count, 0);
	finish(&run);
}

static void
a_full_region_drops_and_counts(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "PLUMB_LIMIT=400000", "names:2000:10");
	assert_int_equal(run.status, 0);
	assert_true(run.recorded);
	assert_int_equal(run.region.damaged, 0);
	assert_int_equal(LEDGER(KERNEL, RECEIVED), 2000);
	assert_true(LEDGER(KERNEL, ATTRIBUTED) > 0 && LEDGER(KERNEL, REGION_FULL) > 0);
	assert_int_equal(LEDGER(KERNEL, ATTRIBUTED) + LEDGER(KERNEL, REGION_FULL), 2000);
	assert_int_equal(LEDGER(LAUNCH, RECEIVED), 2000);
	assert_int_equal(LEDGER(LAUNCH, ATTRIBUTED), 2000);
	finish(&run);
}

static void
without_an_arena_records_are_counted(void **state)
{
	struct run run;
	(void)state;
	/* The one chunk is the process's. */
	run_program(&run, "mock-program",
	            "PLUMB_LIMIT=69632;PLUMB_CUPTI_CALLBACKS=0;PLUMB_FLUSH_MS=60000",
	            "repeat:1000 launch:a:10");
	assert_int_equal(run.status, 0);
	assert_true(run.recorded);
	assert_int_equal(LEDGER(KERNEL, RECEIVED), 0);
	assert_int_equal(run.region.header.lost[PLUMB_SOURCE_KERNEL].received, 1000);
	assert_int_equal(run.region.header.lost[PLUMB_SOURCE_KERNEL].full, 1000);
	assert_true(run.region.header.lost_full <= 20);
	finish(&run);
}

static void
a_child_forked_before_records_on_its_own(void **state)
{
	struct run run;
	(void)state;
	run_program(&run, "mock-program", "", "fork:b:10");
	assert_string_equal(run.output, "child 0\n");
	assert_true(run.recorded);
	assert_int_equal(KERNEL("b", GPU_TIME).count, 1);
	finish(&run);
}

int
main(void)
{
#define T(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		T(kernels_have_their_times),
		T(kernels_have_their_configuration),
		T(streams_overlap_and_gaps_are_idle),
		T(devices_are_told_apart),
		T(threads_launch_at_once),
		T(copies_are_named_and_wait_where_they_block),
		T(waiting_is_measured),
		T(device_memory_is_counted),
		T(graph_kernels_stay_at_the_launch),
		T(replays_have_one_record),
		T(bad_ends_lose_nothing),
		T(a_hanging_cupti_does_not_hold_up_the_exit),
		T(a_forked_child_leaves_cupti_alone),
		T(a_full_region_drops_and_counts),
		T(without_an_arena_records_are_counted),
		T(a_child_forked_before_records_on_its_own),
	};
	return run_releases("cuda_mock", tests, sizeof tests / sizeof *tests);
}
