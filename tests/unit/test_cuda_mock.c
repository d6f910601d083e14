/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA runtime against the stand-in drivers of tests/mock, once for each set of CUPTI's
 * headers: programs with known kernels, times and faults run under the real collector, and their
 * regions are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/words.h"
#include "region/reader.h"

static const char *const releases[] = { "11.8", "12.1", "12.8", "13.0" };
#define RELEASES (sizeof releases / sizeof *releases)

static char build[4096];    /* where the libraries are */
static const char *release; /* of the test that runs */

struct run {
	int status; /* exit code, or 128 + signal */
	char output[4096];
	char folder[64];
	struct plumb_region_reader region;
	bool recorded; /* there was a region */
};

/* ---- running ---- */

static void
child(const struct run *run, const char *program, const char *environment, char **arguments,
      int out)
{
	char path[8192], text[8192];
	snprintf(path, sizeof path, "%s/mock/%s/%s", build, release, program);
	arguments[0] = path;
	dup2(out, 1);
	setenv("PLUMB_FOLDER", run->folder, 1);
	setenv("PLUMB_LIMIT", "33554432", 1);
	setenv("PLUMB_FLUSH_MS", "20", 1);
	snprintf(text, sizeof text, "%s/libplumb.so", build);
	setenv("CUDA_INJECTION64_PATH", text, 1);
	/* A sanitizer's runtime has to come first. */
	const char *first = getenv("PLUMB_TEST_PRELOAD");
	snprintf(text, sizeof text, "%s%s%s/libplumb.so", first ? first : "", first ? " " : "",
	         build);
	setenv("LD_PRELOAD", text, 1);
	/* KEY=VALUE;KEY=VALUE */
	snprintf(text, sizeof text, "%s", environment);
	for (char *item = strtok(text, ";"); item; item = strtok(NULL, ";"))
		putenv(strdup(item));
	execv(path, arguments);
	_exit(127);
}

static void
open_region(struct run *run)
{
	struct plumb_error error;
	char path[512];
	DIR *folder = opendir(run->folder);
	assert_non_null(folder);
	struct dirent *entry;
	while ((entry = readdir(folder))) {
		if (!strstr(entry->d_name, PLUMB_REGION_SUFFIX))
			continue;
		assert_false(run->recorded); /* one process, one region */
		snprintf(path, sizeof path, "%s/%s", run->folder, entry->d_name);
		if (plumb_region_open(&run->region, path, &error))
			fail_msg("%s", error.message);
		unlink(path);
		run->recorded = true;
	}
	closedir(folder);
	rmdir(run->folder);
}

/* Runs PROGRAM with ACTIONS (split at spaces). */
static void
run_program(struct run *run, const char *program, const char *environment, const char *actions)
{
	char *arguments[64] = { NULL }, text[4096];
	int pipes[2], count = 1;
	memset(run, 0, sizeof *run);
	strcpy(run->folder, "/tmp/plumb-mock-XXXXXX");
	assert_non_null(mkdtemp(run->folder));
	snprintf(text, sizeof text, "%s", actions);
	for (char *action = strtok(text, " "); action; action = strtok(NULL, " "))
		arguments[count++] = action;
	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		child(run, program, environment, arguments, pipes[1]);
	close(pipes[1]);
	size_t have = 0;
	ssize_t got;
	while ((got = read(pipes[0], run->output + have, sizeof run->output - 1 - have)) > 0)
		have += (size_t)got;
	close(pipes[0]);
	waitpid(pid, &run->status, 0);
	run->status =
		WIFEXITED(run->status) ? WEXITSTATUS(run->status) : 128 + WTERMSIG(run->status);
	open_region(run);
}

static void
finish(struct run *run)
{
	if (run->recorded)
		plumb_region_reader_close(&run->region);
}

/* ---- reading ---- */

static const struct plumb_record *
next_of(const struct run *run, uint64_t *cursor, enum plumb_record_type type)
{
	const struct plumb_record *record;
	while ((record = plumb_region_next(&run->region, cursor)))
		if (record->type == type)
			return record;
	return NULL;
}

static bool
is_text(const struct run *run, plumb_id id, const char *text)
{
	size_t bytes;
	const char *have = plumb_region_string(&run->region, id, &bytes);
	return have && bytes == strlen(text) && !memcmp(have, text, bytes);
}

static uint64_t
ledger(const struct run *run, enum plumb_source source, enum plumb_fate fate)
{
	uint64_t cursor = 0, sum = 0;
	const struct plumb_record_ledger *row;
	while ((row = (const void *)next_of(run, &cursor, PLUMB_RECORD_LEDGER)))
		if (row->source == source && row->fate == fate)
			sum += row->count;
	return sum;
}

struct stat_of {
	int64_t sum, min, max;
	uint64_t count, nodes;
};

/* METRIC over all nodes named NAME of KIND whose parent is named UNDER (NULL: any). */
static struct stat_of
metric(const struct run *run, enum plumb_frame_kind kind, const char *name, const char *under,
       enum plumb_metric which)
{
	struct stat_of all = { .min = INT64_MAX, .max = INT64_MIN };
	uint64_t cursor = 0;
	const struct plumb_record_value *value;
	while ((value = (const void *)next_of(run, &cursor, PLUMB_RECORD_VALUE))) {
		const struct plumb_record_node *node = plumb_region_get(
			&run->region, value->node, PLUMB_RECORD_NODE, sizeof *node);
		if (value->metric != which || !node || node->kind != kind ||
		    !is_text(run, node->name, name))
			continue;
		const struct plumb_record_node *parent = plumb_region_get(
			&run->region, node->parent, PLUMB_RECORD_NODE, sizeof *node);
		if (under && (!parent || !is_text(run, parent->name, under)))
			continue;
		all.sum += value->sum;
		all.count += value->count;
		all.nodes++;
		if (value->min < all.min)
			all.min = value->min;
		if (value->max > all.max)
			all.max = value->max;
	}
	return all;
}

#define KERNEL(name, which)                                                                        \
	metric(&run, PLUMB_FRAME_KERNEL, name, "cuLaunchKernel", PLUMB_METRIC_##which)
#define API(name, which) metric(&run, PLUMB_FRAME_GPU_API, name, NULL, PLUMB_METRIC_##which)
#define LEDGER(source, fate) ledger(&run, PLUMB_SOURCE_##source, PLUMB_FATE_##fate)

static const struct plumb_record_device_total *
total(const struct run *run, unsigned device)
{
	uint64_t cursor = 0;
	const struct plumb_record_device_total *record;
	while ((record = (const void *)next_of(run, &cursor, PLUMB_RECORD_DEVICE_TOTAL))) {
		const struct plumb_record_device *owner = plumb_region_get(
			&run->region, record->device, PLUMB_RECORD_DEVICE, sizeof *owner);
		if (owner && owner->ordinal == device)
			return record;
	}
	return NULL;
}

static uint64_t
busy(const struct plumb_record_device_total *record)
{
	uint64_t sum = record->busy_ns;
	for (uint64_t i = 0; i < record->open_count; i++)
		sum += record->open[i].end - record->open[i].start;
	return sum;
}

/* The text of environment row KEY into TEXT; false: there is none. */
static bool
environment(const struct run *run, const char *key, char *text, size_t size)
{
	uint64_t cursor = 0;
	const struct plumb_record_environment *row;
	while ((row = (const void *)next_of(run, &cursor, PLUMB_RECORD_ENVIRONMENT))) {
		size_t bytes;
		const char *value = plumb_region_string(&run->region, row->value, &bytes);
		if (!is_text(run, row->key, key) || !value)
			continue;
		snprintf(text, size, "%.*s", (int)bytes, value);
		return true;
	}
	return false;
}

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
	/* Stream 0: [0, 1000) [1500, 2500); 1: [0, 600) [600, 1200): busy [0, 1200) [1500, 2500). */
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

/* ---- faults ---- */

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

/* ---- the slot ---- */

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
	                                     ? "CUPTI's slot is taken by CUPTI for MockTool"
	                                     : "CUPTI's slot is taken by another tool"));
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
	assert_non_null(strstr(text, "CUPTI's records cannot be enabled"));
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
	assert_true(run.region.header.lost_full >= 1000);
	assert_true(run.region.header.lost_full <= 1020);
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

/* ---- */

#define TEST(function) { #function, function, NULL, NULL, NULL }

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernels_have_their_times),
		TEST(kernels_have_their_configuration),
		TEST(streams_overlap_and_gaps_are_idle),
		TEST(devices_are_told_apart),
		TEST(threads_launch_at_once),
		TEST(copies_are_named_and_wait_where_they_block),
		TEST(waiting_is_measured),
		TEST(device_memory_is_counted),
		TEST(graph_kernels_stay_at_the_launch),
		TEST(replays_have_one_record),
		TEST(failed_launches_are_no_launches),
		TEST(lost_records_are_missed),
		TEST(duplicates_count_once),
		TEST(order_does_not_matter),
		TEST(strangers_are_never_attributed),
		TEST(a_small_ring_misses_and_says_so),
		TEST(correlation_ids_may_wrap),
		TEST(records_without_times_are_dropped),
		TEST(unknown_records_are_skipped),
		TEST(full_buffers_drop_and_count),
		TEST(late_buffers_are_read_or_counted),
		TEST(buffers_may_come_on_the_flushing_thread),
		TEST(a_taken_slot_is_said),
		TEST(an_unknown_version_is_refused),
		TEST(the_environment_is_written),
		TEST(the_programs_own_profiler_gets_the_slot),
		TEST(a_profiler_that_unsubscribes_or_finalizes),
		TEST(the_slot_can_be_kept),
		TEST(profiling_works_as_without_plumb),
		TEST(bad_ends_lose_nothing),
		TEST(a_hanging_cupti_does_not_hold_up_the_exit),
		TEST(a_forked_child_leaves_cupti_alone),
		TEST(a_full_region_drops_and_counts),
		TEST(without_an_arena_records_are_counted),
		TEST(a_child_forked_before_records_on_its_own),
	};
	int failed = 0;
	ssize_t length = readlink("/proc/self/exe", build, sizeof build - 1);
	if (length <= 0)
		return 1;
	build[length] = '\0';
	/* BUILD/unit/test_cuda_mock */
	for (int i = 0; i < 2; i++)
		*strrchr(build, '/') = '\0';
	for (size_t i = 0; i < RELEASES; i++) {
		release = releases[i];
		fprintf(stderr, "CUPTI of CUDA %s\n", release);
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed ? 1 : 0;
}
