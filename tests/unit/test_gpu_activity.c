/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a piece of work as gpu/work.h has it, driven by a stand-in runtime that is no CUDA:
 * driver calls, records, host waits, device memory, captured graphs, and what is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/gpu/work.h"

static struct plumb_gpu_activity *activity;
static struct plumb_gpu_device *device;
static uint64_t next_correlation = 1;

/* ---- the runtime ---- */

/* A call NAME of KIND, whole; returns its correlation id. ADDRESS not 0: it allocates (BYTES) or
 * frees (0) what is there. */
static uint64_t
call(unsigned kind, const char *name, bool succeeded, uint64_t address, uint64_t bytes)
{
	uint64_t correlation = next_correlation++;
	struct plumb_thread *thread = plumb_gpu_call_begin(activity, kind, correlation);
	assert_non_null(thread);
	struct plumb_gpu_call *made =
		plumb_gpu_call_enter(activity, thread, kind, plumb_name(thread, name), correlation);
	plumb_gpu_call_clock(thread, kind, made);
	assert_ptr_equal(plumb_gpu_call_current(), made);
	plumb_leave(thread);

	thread = plumb_gpu_call_end();
	assert_non_null(thread);
	made = plumb_gpu_call_leave(correlation);
	assert_non_null(made);
	bool counts = plumb_gpu_call_count(activity, thread, kind, made, succeeded);
	assert_int_equal(counts, succeeded);
	if (address && bytes)
		plumb_gpu_allocated(activity, thread, made->node, 1, address, bytes);
	else if (address)
		plumb_gpu_freed(activity, thread, made->node, address);
	plumb_leave(thread);
	assert_null(plumb_gpu_call_end());
	return correlation;
}

static struct plumb_thread *
enter_reader(void)
{
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	assert_non_null(thread);
	if (!device) {
		struct plumb_record_device description = { .ordinal = 0 };
		device = plumb_gpu_device_new(thread, &description, "Other GPU");
	}
	return thread;
}

/* The record of a kernel NAME that ran from START for NS. False: it told nothing. */
static bool
kernel(const char *name, uint64_t correlation, uint64_t start, uint64_t ns, uint64_t graph_node)
{
	static const struct plumb_record_variant configuration = { .grid = { 10, 2, 1 },
		                                                   .block = { 96, 1, 1 },
		                                                   .registers = 32,
		                                                   .occupancy = UINT32_MAX };
	struct plumb_gpu_record record = {
		.source = PLUMB_SOURCE_KERNEL,
		.kind = PLUMB_GPU_WORK_KERNEL,
		.start = start,
		.end = start + ns,
		.correlation = correlation,
		.graph_node = graph_node,
		.stream = UINT64_C(1) << 40,
	};
	struct plumb_thread *thread = enter_reader();
	bool told = plumb_gpu_record_begin(activity, thread, &record);
	if (told)
		plumb_gpu_kernel(activity, thread, &record, device, name, &configuration, 64);
	plumb_leave(thread);
	return told;
}

static void
copy(struct plumb_transfer kinds, uint64_t correlation, uint64_t start, bool blocked)
{
	struct plumb_gpu_record record = {
		.source = PLUMB_SOURCE_COPY,
		.kind = PLUMB_GPU_WORK_COPY,
		.start = start,
		.end = start + 5,
		.bytes = 4096,
		.correlation = correlation,
	};
	struct plumb_thread *thread = enter_reader();
	assert_true(plumb_gpu_record_begin(activity, thread, &record));
	plumb_gpu_transfer(thread, &record, device,
	                   &(struct plumb_gpu_copy){ .kinds = kinds, .blocked = blocked });
	plumb_leave(thread);
}

/* ---- what came of it ---- */

/* Calls SEE for each record of the region. */
static void
each_record(void (*see)(const struct plumb_record *record, void *data), void *data)
{
	char *base = (char *)plumb_region_of_process()->header;
	const struct plumb_region_header *header = (const void *)base;
	for (uint64_t at = PLUMB_REGION_HEADER_SIZE; at < header->next;) {
		const struct plumb_chunk_header *chunk = (const void *)(base + at);
		const char *record = (const char *)(chunk + 1), *end = record + chunk->used;
		for (; record < end; record += ((const struct plumb_record *)record)->length)
			see((const void *)record, data);
		at += chunk->size;
	}
}

struct wanted {
	const char *name, *under; /* the frame and its parent */
	enum plumb_metric metric;
	int64_t sum;
	uint64_t count;
};

static bool
is_named(plumb_id id, const char *name)
{
	struct plumb_region *region = plumb_region_of_process();
	const struct plumb_record_node *node = plumb_region_at(region, id);
	const struct plumb_record_string *text = plumb_region_at(region, node->name);
	return node->name && text->bytes == strlen(name) && !memcmp(text + 1, name, text->bytes);
}

static void
see_value(const struct plumb_record *record, void *data)
{
	struct wanted *wanted = data;
	const struct plumb_record_value *value = (const void *)record;
	if (record->type != PLUMB_RECORD_VALUE || value->metric != wanted->metric ||
	    !is_named(value->node, wanted->name))
		return;
	const struct plumb_record_node *node =
		plumb_region_at(plumb_region_of_process(), value->node);
	if (wanted->under && !is_named(node->parent, wanted->under))
		return;
	wanted->sum += value->sum;
	wanted->count += value->count;
}

static struct wanted
metric(const char *name, const char *under, enum plumb_metric which)
{
	struct wanted wanted = { name, under, which, 0, 0 };
	each_record(see_value, &wanted);
	return wanted;
}

struct tally {
	enum plumb_source source;
	enum plumb_fate fate;
	uint64_t count;
};

static void
see_ledger(const struct plumb_record *record, void *data)
{
	struct tally *tally = data;
	const struct plumb_record_ledger *row = (const void *)record;
	if (record->type == PLUMB_RECORD_LEDGER && row->source == tally->source &&
	    row->fate == tally->fate)
		tally->count += row->count;
}

static uint64_t
counted(enum plumb_source source, enum plumb_fate fate)
{
	struct tally tally = { source, fate, 0 };
	each_record(see_ledger, &tally);
	return tally.count;
}

/* ---- tests ---- */

static void
a_kernel_hangs_under_its_call(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < 3; i++) {
		uint64_t correlation = call(PLUMB_CALL_LAUNCH, "hipLaunchKernel", true, 0, 0);
		assert_false(plumb_gpu_activity_complete(activity));
		assert_true(kernel("vector_add", correlation, 1000 + 100 * i, 7, 0));
		assert_true(plumb_gpu_activity_complete(activity));
	}
	struct wanted time = metric("vector_add", "hipLaunchKernel", PLUMB_METRIC_GPU_TIME);
	assert_int_equal(time.sum, 21);
	assert_int_equal(time.count, 3);
	assert_int_equal(metric("vector_add", NULL, PLUMB_METRIC_GPU_BLOCKS).sum, 60);
	/* 96 threads are two wavefronts of 64. */
	assert_int_equal(metric("vector_add", NULL, PLUMB_METRIC_GPU_WARPS).sum, 120);
	assert_int_equal(metric("vector_add", NULL, PLUMB_METRIC_GPU_OCCUPANCY).count, 0);
	assert_int_equal(metric("hipLaunchKernel", NULL, PLUMB_METRIC_GPU_LAUNCHES).sum, 3);
}

static void
a_copy_says_how_long_the_host_waited(void **state)
{
	(void)state;
	copy((struct plumb_transfer){ PLUMB_MEMORY_PAGEABLE, PLUMB_MEMORY_DEVICE },
	     call(PLUMB_CALL_COPY, "hipMemcpyAsync", true, 0, 0), 2000, true);
	copy((struct plumb_transfer){ PLUMB_MEMORY_PINNED, PLUMB_MEMORY_DEVICE },
	     call(PLUMB_CALL_COPY, "hipMemcpyAsync", true, 0, 0), 2100, false);
	call(PLUMB_CALL_SYNC, "hipDeviceSynchronize", true, 0, 0);
	assert_int_equal(
		metric("copy pageable→device", "hipMemcpyAsync", PLUMB_METRIC_HOST_WAIT).count, 1);
	assert_int_equal(metric("copy pinned→device", NULL, PLUMB_METRIC_HOST_WAIT).count, 0);
	assert_int_equal(metric("copy pinned→device", NULL, PLUMB_METRIC_GPU_COPY_BYTES).sum, 4096);
	assert_int_equal(metric("hipDeviceSynchronize", NULL, PLUMB_METRIC_HOST_WAIT).count, 1);
}

static void
device_memory_is_known_until_it_is_freed(void **state)
{
	(void)state;
	call(PLUMB_CALL_MEMORY, "hipMalloc", true, 0x1000, 512);
	call(PLUMB_CALL_MEMORY + 1, "hipFree", true, 0x1000, 0);
	call(PLUMB_CALL_MEMORY + 1, "hipFree", true, 0x1000, 0); /* nothing is there any more */
	assert_int_equal(metric("hipMalloc", NULL, PLUMB_METRIC_GPU_ALLOC_BYTES).sum, 512);
	assert_int_equal(metric("hipFree", NULL, PLUMB_METRIC_GPU_FREE_BYTES).sum, 512);
	assert_int_equal(metric("hipFree", NULL, PLUMB_METRIC_GPU_FREE_BYTES).count, 1);
}

static void
what_is_lost_is_counted(void **state)
{
	(void)state;
	call(PLUMB_CALL_LAUNCH, "hipModuleLaunchKernel", false, 0, 0);
	assert_int_equal(metric("hipModuleLaunchKernel", NULL, PLUMB_METRIC_GPU_LAUNCHES).count, 0);
	uint64_t correlation = call(PLUMB_CALL_LAUNCH, "hipLaunchKernel", true, 0, 0);
	assert_true(kernel("twice", correlation, 3000, 10, 0));
	assert_false(kernel("twice", correlation, 3000, 10, 0));
	assert_int_equal(counted(PLUMB_SOURCE_KERNEL, PLUMB_FATE_DUPLICATE), 1);
	/* A record that nobody launched shows at the root. */
	assert_true(kernel("stray", 1u << 20, 3100, 10, 0));
	assert_int_equal(counted(PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_LAUNCH), 1);
	assert_int_equal(metric("stray", NULL, PLUMB_METRIC_GPU_TIME).sum, 10);
	/* Times that the runtime does not know. */
	correlation = call(PLUMB_CALL_LAUNCH, "hipLaunchKernel", true, 0, 0);
	assert_false(kernel("timeless", correlation, 0, 0, 0));
	assert_int_equal(counted(PLUMB_SOURCE_KERNEL, PLUMB_FATE_CUPTI_DROPPED), 1);
	/* Records are off. */
	plumb_gpu_activity_pause(activity, true);
	struct plumb_thread *thread =
		plumb_gpu_call_begin(activity, PLUMB_CALL_LAUNCH, next_correlation);
	struct plumb_gpu_call *made =
		plumb_gpu_call_enter(activity, thread, PLUMB_CALL_LAUNCH,
	                             plumb_name(thread, "hipLaunchKernel"), next_correlation);
	assert_true(made->captured);
	assert_ptr_equal(plumb_gpu_call_leave(next_correlation), made);
	assert_false(plumb_gpu_call_count(activity, thread, PLUMB_CALL_LAUNCH, made, true));
	plumb_leave(thread);
	plumb_gpu_activity_pause(activity, false);
	assert_false(kernel("paused", next_correlation++, 3200, 10, 0));
	assert_int_equal(counted(PLUMB_SOURCE_KERNEL, PLUMB_FATE_PAUSED), 1);
	/* A launch without a record. */
	call(PLUMB_CALL_LAUNCH, "hipLaunchKernel", true, 0, 0);
	thread = enter_reader();
	plumb_gpu_activity_finish(activity, thread, 0);
	plumb_leave(thread);
	assert_int_equal(counted(PLUMB_SOURCE_LAUNCH, PLUMB_FATE_NOT_DELIVERED), 1);
}

/* A launch that is captured as node NUMBER. */
static void
capture(uint64_t number)
{
	uint64_t correlation = next_correlation++;
	struct plumb_thread *thread =
		plumb_gpu_call_begin(activity, PLUMB_CALL_LAUNCH, correlation);
	struct plumb_gpu_call *made =
		plumb_gpu_call_enter(activity, thread, PLUMB_CALL_LAUNCH,
	                             plumb_name(thread, "hipLaunchKernel"), correlation);
	plumb_graph_captured(activity, number, made->node);
	plumb_graph_named(activity, number, plumb_name(thread, "captured"));
	made->captured = true;
	assert_false(plumb_gpu_call_count(activity, thread, PLUMB_CALL_LAUNCH,
	                                  plumb_gpu_call_leave(correlation), true));
	plumb_leave(thread);
}

static void
a_replay_counts_its_nodes(void **state)
{
	(void)state;
	enum { GRAPH = 5 };
	assert_true(plumb_gpu_replays_init(activity));
	capture(70);
	plumb_graph_cloned(activity, 70, 71);
	plumb_graph_begin(true);
	for (int i = 0; i < 1000; i++)
		plumb_graph_add(activity, 70, PLUMB_GPU_WORK_KERNEL);
	plumb_graph_add(activity, 99, PLUMB_GPU_WORK_SET);
	plumb_graph_end(activity, GRAPH);

	uint64_t correlation = next_correlation++;
	struct plumb_thread *thread = plumb_gpu_call_begin(activity, PLUMB_CALL_GRAPH, correlation);
	struct plumb_gpu_call *made =
		plumb_gpu_call_enter(activity, thread, PLUMB_CALL_GRAPH,
	                             plumb_name(thread, "hipGraphLaunch"), correlation);
	plumb_gpu_replay_launched(activity, GRAPH, correlation, made->node);
	assert_true(plumb_gpu_call_count(activity, thread, PLUMB_CALL_GRAPH,
	                                 plumb_gpu_call_leave(correlation), true));
	plumb_leave(thread);

	struct plumb_gpu_record record = {
		.source = PLUMB_SOURCE_REPLAY,
		.kind = PLUMB_GPU_WORK_KERNEL,
		.start = 5000,
		.end = 5300,
		.correlation = correlation,
	};
	thread = enter_reader();
	assert_true(plumb_gpu_record_begin(activity, thread, &record));
	plumb_gpu_replay(activity, thread, &record, device);
	plumb_gpu_replays_tell(activity, thread);
	plumb_leave(thread);
	assert_int_equal(
		metric("HIP graph of 1001 nodes", "hipGraphLaunch", PLUMB_METRIC_GPU_TIME).sum,
		300);
	assert_int_equal(metric("captured", NULL, PLUMB_METRIC_GPU_NODES).sum, 1000);
	assert_int_equal(metric("set", NULL, PLUMB_METRIC_GPU_NODES).sum, 1);
	assert_int_equal(counted(PLUMB_SOURCE_GRAPH, PLUMB_FATE_NO_CAPTURE), 1);

	/* A record that names the clone is placed where the node was captured. */
	uint64_t received = counted(PLUMB_SOURCE_GRAPH, PLUMB_FATE_ATTRIBUTED);
	assert_true(kernel("of a node", call(PLUMB_CALL_GRAPH, "hipGraphLaunch", true, 0, 0), 6000,
	                   3, 71));
	assert_int_equal(counted(PLUMB_SOURCE_GRAPH, PLUMB_FATE_ATTRIBUTED), received + 1);
	assert_int_equal(metric("of a node", "hipGraphLaunch", PLUMB_METRIC_GPU_TIME).count, 0);
}

int
main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kernel_hangs_under_its_call),
		cmocka_unit_test(a_copy_says_how_long_the_host_waited),
		cmocka_unit_test(device_memory_is_known_until_it_is_freed),
		cmocka_unit_test(what_is_lost_is_counted),
		cmocka_unit_test(a_replay_counts_its_nodes),
	};
	char folder[] = "/tmp/plumb-gpu-XXXXXX", command[64];
	(void)count;
	if (!getenv("PLUMB_FOLDER")) { /* the collector reads it when the process starts */
		if (!mkdtemp(folder))
			return 1;
		setenv("PLUMB_FOLDER", folder, 1);
		execv("/proc/self/exe", arguments);
		return 1;
	}
	activity = plumb_gpu_activity_new(10, "HIP graph");
	int failed = activity ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
	snprintf(command, sizeof command, "rm -rf %s", getenv("PLUMB_FOLDER"));
	return system(command) || failed;
}
