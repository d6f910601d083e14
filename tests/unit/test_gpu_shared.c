/* SPDX-License-Identifier: Apache-2.0 */
/* What GPU runtimes share: the ring of launches; a device's busy time, series and newest work. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/gpu/device.h"
#include "collect/gpu/launch.h"

/* ---- launches ---- */

static struct plumb_ring_launch
launch_of(uint64_t id)
{
	return (struct plumb_ring_launch){ .node = (plumb_id)id * 2 + 1,
		                           .track = (plumb_id)id + 7 };
}

static void
launches_are_found_again(void **state)
{
	struct plumb_launch_ring *ring = plumb_launch_ring_new(8);
	struct plumb_ring_launch launch;
	bool overwritten;
	(void)state;
	assert_non_null(ring);
	assert_null(plumb_launch_ring_new(1));
	for (uint64_t id = 1; id <= 1000; id++) {
		launch = launch_of(id);
		plumb_launch_put(ring, id, &launch);
	}
	plumb_launch_waited(ring, 1000, 55);
	plumb_launch_waited(ring, 999, UINT64_MAX);
	plumb_launch_waited(ring, 998, 5000000000); /* more than 32 bits */
	for (uint64_t id = 745; id <= 1000; id++) {
		assert_true(plumb_launch_take(ring, id, &launch, &overwritten));
		assert_int_equal(launch.node, id * 2 + 1);
		assert_int_equal(launch.track, id + 7);
		assert_int_equal(launch.taken, 0);
		assert_int_equal(launch.host_wait, id == 1000  ? 55
		                                   : id == 999 ? (1ull << 47) - 1
		                                   : id == 998 ? 5000000000
		                                               : 0);
		assert_true(plumb_launch_take(ring, id, &launch, &overwritten));
		assert_int_equal(launch.taken, 1); /* a graph's records all find it */
	}
	for (uint64_t id = 1; id < 745; id++) {
		assert_false(plumb_launch_take(ring, id, &launch, &overwritten));
		assert_true(overwritten);
	}
	assert_false(plumb_launch_take(ring, 1001, &launch, &overwritten));
	assert_false(overwritten);
}

static struct plumb_launch_ring *shared_ring;

static void *
put_many(void *data)
{
	uint64_t first = *(uint64_t *)data;
	for (uint64_t id = first; id < 400000; id += 4) {
		struct plumb_ring_launch launch = launch_of(id);
		plumb_launch_put(shared_ring, id, &launch);
		plumb_launch_waited(shared_ring, id, id + 9);
	}
	return NULL;
}

static void
threads_never_mix_launches(void **state)
{
	static uint64_t firsts[4] = { 1, 2, 3, 4 };
	static bool taken[400000];
	pthread_t threads[4];
	struct plumb_ring_launch launch;
	bool overwritten;
	unsigned found = 0;
	(void)state;
	shared_ring = plumb_launch_ring_new(10);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, put_many, &firsts[i]);
	for (int turn = 0; turn < 200; turn++)
		for (uint64_t id = 1; id < 400000; id += 397)
			if (plumb_launch_take(shared_ring, id, &launch, &overwritten)) {
				assert_int_equal(launch.node, (plumb_id)(id * 2 + 1));
				assert_int_equal(launch.track, id + 7);
				assert_true(!launch.host_wait || launch.host_wait == id + 9);
				/* Set by no other launch of its slot. */
				assert_int_equal(launch.taken, taken[id]);
				taken[id] = true;
				found++;
			}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (uint64_t id = 399999; id > 399999 - 64; id--)
		found += plumb_launch_take(shared_ring, id, &launch, &overwritten);
	assert_true(found >= 64);
}

/* ---- devices ---- */

static struct plumb_thread *thread;

static struct plumb_gpu_device *
device_new(void)
{
	struct plumb_record_device description = { .ordinal = 0 };
	struct plumb_gpu_device *device = plumb_gpu_device_new(thread, &description, "test");
	assert_non_null(device);
	return device;
}

/* The device's newest record of TYPE, which names its device right after the head. */
static void *
record_of(const struct plumb_gpu_device *device, enum plumb_record_type type)
{
	struct plumb_region *region = plumb_region_of_process();
	char *base = (char *)region->header;
	for (uint64_t at = PLUMB_REGION_HEADER_SIZE; at < region->header->next;) {
		struct plumb_chunk_header *chunk = (void *)(base + at);
		char *record = (char *)(chunk + 1), *end = record + chunk->used;
		while (record < end) {
			struct plumb_record *head = (void *)record;
			plumb_id owner;
			memcpy(&owner, head + 1, sizeof owner);
			if (head->type == type && owner == plumb_gpu_device_id(device))
				return head;
			record += head->length;
		}
		at += chunk->size;
	}
	return NULL;
}

static uint64_t
busy_of(const struct plumb_gpu_device *device)
{
	const struct plumb_record_device_total *total =
		record_of(device, PLUMB_RECORD_DEVICE_TOTAL);
	uint64_t sum = total->busy_ns, last = total->horizon;
	for (uint64_t i = 0; i < total->open_count; i++) {
		assert_true(total->open[i].start >= last &&
		            total->open[i].end > total->open[i].start);
		last = total->open[i].end;
		sum += total->open[i].end - total->open[i].start;
	}
	return sum;
}

enum { WORKS = 20000, SPAN = 200000 };
static unsigned char touched[SPAN + 1000];

static void
busy_time_is_the_union(void **state)
{
	(void)state;
	srand(7);
	for (int density = 1; density <= 64; density *= 8) {
		struct plumb_gpu_device *device = device_new();
		uint64_t expected = 0, base = 1000000000;
		memset(touched, 0, sizeof touched);
		for (int i = 0; i < WORKS; i++) {
			/* Out of order by up to a thirtieth, as threads' buffers come. */
			uint64_t start = (uint64_t)(i * (SPAN / WORKS) + rand() % (SPAN / 30));
			uint64_t length = (uint64_t)(rand() % density + 1);
			if (start >= SPAN)
				continue;
			memset(touched + start, 1, length);
			plumb_gpu_work(device, PLUMB_GPU_WORK_KERNEL, 0, 0, base + start,
			               base + start + length, 0);
		}
		for (size_t i = 0; i < sizeof touched; i++)
			expected += touched[i];
		plumb_gpu_merge(device);
		const struct plumb_record_device_total *total =
			record_of(device, PLUMB_RECORD_DEVICE_TOTAL);
		assert_int_equal(total->late, 0);
		assert_int_equal(busy_of(device), expected);
	}
}

static void
late_work_is_counted(void **state)
{
	struct plumb_gpu_device *device = device_new();
	(void)state;
	for (uint64_t i = 0; i < 200; i++) /* 200 intervals with gaps: 72 are folded */
		plumb_gpu_work(device, PLUMB_GPU_WORK_COPY, 0, 0, 1000 + i * 10, 1005 + i * 10, 3);
	plumb_gpu_merge(device);
	plumb_gpu_work(device, PLUMB_GPU_WORK_SET, 0, 0, 1001, 1002, 9);
	plumb_gpu_merge(device);
	const struct plumb_record_device_total *total =
		record_of(device, PLUMB_RECORD_DEVICE_TOTAL);
	assert_int_equal(total->late, 1);
	assert_int_equal(total->open_count, PLUMB_BUSY_OPEN);
	assert_int_equal(busy_of(device), 1000);
	assert_int_equal(total->copies, 200);
	assert_int_equal(total->copy_bytes, 600);
	assert_int_equal(total->sets, 1);
	assert_int_equal(total->set_bytes, 9);
	assert_int_equal(total->first_start, 1000);
	assert_int_equal(total->last_end, 1000 + 199 * 10 + 5);
}

static void
the_series_coarsens_and_keeps_its_sums(void **state)
{
	struct plumb_gpu_device *device = device_new();
	uint64_t base = 5000000000, busy = 0, kernels = 0, copies = 0;
	(void)state;
	/* A minute of work: bins of 1 ms become bins of 64 ms. */
	for (uint64_t i = 0; i < 6000; i++)
		plumb_gpu_work(device, i % 3 ? PLUMB_GPU_WORK_KERNEL : PLUMB_GPU_WORK_COPY, 0, 0,
		               base + i * 10000000, base + i * 10000000 + 7000000, 0);
	const struct plumb_record_series *series = record_of(device, PLUMB_RECORD_SERIES);
	for (int i = 0; i < PLUMB_SERIES_BINS; i++) {
		busy += series->bins[i].busy_ns;
		kernels += series->bins[i].kernels;
		copies += series->bins[i].copies;
		assert_true(series->bins[i].busy_ns <= series->width);
	}
	assert_int_equal(series->width, 64000000);
	assert_int_equal(busy, 6000ull * 7000000);
	assert_int_equal(kernels, 4000);
	assert_int_equal(copies, 2000);
	/* Times that cannot be do not hang it or spoil it. */
	plumb_gpu_work(device, PLUMB_GPU_WORK_KERNEL, 0, 0, base, UINT64_MAX, 0);
	assert_int_equal(series->width, 64000000);
}

static void
the_ring_keeps_the_newest_work(void **state)
{
	struct plumb_gpu_device *device = device_new();
	(void)state;
	struct plumb_record_work_ring *ring = record_of(device, PLUMB_RECORD_WORK_RING);
	uint64_t count = ring->capacity + 10ull;
	for (uint64_t i = 0; i < count; i++)
		plumb_gpu_work(device, PLUMB_GPU_WORK_KERNEL, (plumb_id)i + 1, 3, 100 + i, 101 + i,
		               0);
	const struct plumb_work *work = (const struct plumb_work *)(ring + 1);
	assert_int_equal(ring->written, count);
	for (uint64_t i = count - ring->capacity; i < count; i++) {
		assert_int_equal(work[i % ring->capacity].start, 100 + i);
		assert_int_equal(work[i % ring->capacity].node, i + 1);
		assert_int_equal(work[i % ring->capacity].stream, 3);
	}
}

static void
streams_are_made_once(void **state)
{
	struct plumb_gpu_device *device = device_new();
	(void)state;
	plumb_id a = plumb_gpu_stream(thread, device, 1, 7),
		 b = plumb_gpu_stream(thread, device, 1, 8);
	plumb_id c = plumb_gpu_stream(thread, device, 2, 7);
	assert_true(a && b && c && a != b && b != c && a != c);
	assert_int_equal(plumb_gpu_stream(thread, device, 1, 7), a);
	assert_int_equal(plumb_gpu_stream(thread, device, 2, 7), c);
}

int
main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_are_found_again),
		cmocka_unit_test(threads_never_mix_launches),
		cmocka_unit_test(busy_time_is_the_union),
		cmocka_unit_test(late_work_is_counted),
		cmocka_unit_test(the_series_coarsens_and_keeps_its_sums),
		cmocka_unit_test(the_ring_keeps_the_newest_work),
		cmocka_unit_test(streams_are_made_once),
	};
	char folder[] = "/tmp/plumb-gpu-XXXXXX", command[64];
	(void)count;
	if (!getenv("PLUMB_FOLDER")) { /* the collector reads it when the process starts */
		if (!mkdtemp(folder))
			return 1;
		setenv("PLUMB_FOLDER", folder, 1);
		setenv("PLUMB_LIMIT", "134217728", 1);
		execv("/proc/self/exe", arguments);
		return 1;
	}
	thread = plumb_enter(PLUMB_CALLBACK_GPU_RECORDS);
	int failed = thread ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
	if (thread)
		plumb_leave(thread);
	snprintf(command, sizeof command, "rm -rf %s", getenv("PLUMB_FOLDER"));
	return system(command) || failed;
}
