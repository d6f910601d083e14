/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device did: exact totals, the union of its busy time merged online in a bounded set, a
 * series that coarsens instead of growing, and a ring of the newest work. One thread at a time.
 *
 * Times are the GPU runtime's (the CLOCK records' `gpu`); settle maps them.
 */
#include <string.h>

#include "collect/gpu/device.h"
#include "collect/table.h"

#define WORK_CAPACITY (1u << 17) /* 3 MiB */
#define WORK_LEAST 1024u
#define STAGED (1u << 16)
#define SERIES_WIDTH 1000000u       /* ns, at first */
#define SERIES_LONGEST (1ull << 52) /* ns, 52 days: no work ends later than that after the first */

struct stream {
	uint32_t context;
	uint64_t number;
	plumb_id id;
};

struct plumb_gpu_device {
	plumb_id id;
	struct plumb_record_device_total *total;
	struct plumb_record_work_ring *ring;
	struct plumb_record_series *series;
	struct plumb_id_table streams; /* of STREAM records */
	uint32_t staged_count;
	struct plumb_interval staged[STAGED]; /* busy time that is not merged yet */
};

plumb_id
plumb_gpu_device_id(const struct plumb_gpu_device *device)
{
	return device->id;
}

/* A ring as large as finds room. */
static struct plumb_record_work_ring *
ring_new(struct plumb_arena *arena, plumb_id device)
{
	for (uint32_t capacity = WORK_CAPACITY; capacity >= WORK_LEAST; capacity /= 2) {
		struct plumb_record_work_ring *ring =
			plumb_arena_append(arena, PLUMB_RECORD_WORK_RING,
		                           sizeof *ring + capacity * sizeof(struct plumb_work));
		if (!ring)
			continue;
		ring->device = device;
		ring->capacity = capacity;
		plumb_arena_commit(arena, ring);
		return ring;
	}
	return NULL;
}

struct plumb_gpu_device *
plumb_gpu_device_new(struct plumb_thread *thread, const struct plumb_record_device *description,
                     const char *name)
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_gpu_device *device = plumb_map(sizeof *device, false);
	plumb_id name_id = name ? plumb_intern(thread, name, strlen(name)) : 0;
	if (!device)
		return NULL;
	struct plumb_record_device *record =
		plumb_arena_append(arena, PLUMB_RECORD_DEVICE, sizeof *record);
	if (record) {
		struct plumb_record head = record->head;
		*record = *description;
		record->head = head;
		record->name = name_id;
		plumb_arena_commit(arena, record);
		device->id = plumb_region_id(arena->region, record);
	}
	device->total = plumb_arena_append(arena, PLUMB_RECORD_DEVICE_TOTAL, sizeof *device->total);
	if (device->total) {
		device->total->device = device->id;
		plumb_arena_commit(arena, device->total);
	}
	device->series = plumb_arena_append(arena, PLUMB_RECORD_SERIES, sizeof *device->series);
	if (device->series) {
		device->series->device = device->id;
		plumb_arena_commit(arena, device->series);
	}
	device->ring = ring_new(arena, device->id);
	if (!record || !device->total || !device->series || !device->ring)
		plumb_count(thread, PLUMB_SOURCE_REGION, arena->fate, 1);
	return device;
}

plumb_id
plumb_gpu_stream(struct plumb_thread *thread, struct plumb_gpu_device *device, uint32_t context,
                 uint64_t stream)
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	uint64_t mixed = plumb_mix(context, stream);
	uint32_t hash = (uint32_t)(mixed ^ (mixed >> 32)), at = hash, id;
	struct plumb_record_stream *record;
	while ((id = plumb_id_table_next(&device->streams, hash, &at))) {
		record = plumb_region_at(arena->region, id);
		if (record->context == context && record->stream == stream)
			return id;
	}
	record = plumb_arena_append(arena, PLUMB_RECORD_STREAM, sizeof *record);
	if (!record) {
		plumb_count(thread, PLUMB_SOURCE_REGION, arena->fate, 1);
		return 0;
	}
	record->device = device->id;
	record->context = context;
	record->stream = stream;
	plumb_arena_commit(arena, record);
	id = plumb_region_id(arena->region, record);
	plumb_id_table_add(&device->streams, hash, id);
	return id;
}

/* ---- busy time ---- */

/* Folds the oldest interval: nothing before its end can be told apart any more. */
static void
busy_fold(struct plumb_record_device_total *total)
{
	total->busy_ns += total->open[0].end - total->open[0].start;
	total->horizon = total->open[0].end;
	total->open_count--;
	memmove(&total->open[0], &total->open[1], total->open_count * sizeof total->open[0]);
}

static void
busy_add(struct plumb_record_device_total *total, uint64_t start, uint64_t end)
{
	if (start < total->horizon) {
		total->late++;
		start = total->horizon;
	}
	if (start >= end)
		return;
	/* [first, last) are the intervals that the new one touches. */
	uint64_t last = total->open_count;
	while (last > 0 && total->open[last - 1].start > end)
		last--;
	uint64_t first = last;
	while (first > 0 && total->open[first - 1].end >= start)
		first--;
	if (first < last) {
		struct plumb_interval *into = &total->open[first];
		if (start < into->start)
			into->start = start;
		into->end = total->open[last - 1].end > end ? total->open[last - 1].end : end;
		memmove(into + 1, &total->open[last], (total->open_count - last) * sizeof *into);
		total->open_count -= last - first - 1;
		return;
	}
	if (total->open_count == PLUMB_BUSY_OPEN) {
		if (first == 0) { /* older than all that are open: fold it itself */
			total->busy_ns += end - start;
			total->horizon = end;
			return;
		}
		busy_fold(total);
		first--;
	}
	memmove(&total->open[first + 1], &total->open[first],
	        (total->open_count - first) * sizeof total->open[0]);
	total->open[first] = (struct plumb_interval){ start, end };
	total->open_count++;
}

static void
sift_down(struct plumb_interval *heap, uint32_t root, uint32_t count)
{
	struct plumb_interval moved = heap[root];
	for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && heap[child + 1].start > heap[child].start)
			child++;
		if (heap[child].start <= moved.start)
			break;
		heap[root] = heap[child];
	}
	heap[root] = moved;
}

/* By start; in place and off the heap, unlike qsort. */
static void
sort_intervals(struct plumb_interval *intervals, uint32_t count)
{
	bool sorted = true;
	for (uint32_t i = 1; i < count && sorted; i++)
		sorted = intervals[i - 1].start <= intervals[i].start;
	if (sorted)
		return;
	for (uint32_t i = count / 2; i-- > 0;)
		sift_down(intervals, i, count);
	for (uint32_t left = count; left-- > 1;) {
		struct plumb_interval last = intervals[left];
		intervals[left] = intervals[0];
		intervals[0] = last;
		sift_down(intervals, 0, left);
	}
}

/* Threads that launch at once deliver interleaved work one buffer after the other; in order, it
 * needs few open intervals. */
void
plumb_gpu_merge(struct plumb_gpu_device *device)
{
	struct plumb_record_device_total *total = device->total;
	if (!total || !device->staged_count)
		return;
	sort_intervals(device->staged, device->staged_count);
	plumb_sequence_begin(&total->sequence);
	for (uint32_t i = 0; i < device->staged_count; i++)
		busy_add(total, device->staged[i].start, device->staged[i].end);
	plumb_sequence_end(&total->sequence);
	device->staged_count = 0;
}

static void
total_count(struct plumb_record_device_total *total, enum plumb_gpu_work_kind kind, uint64_t times,
            uint64_t ns, uint64_t bytes)
{
	if (kind == PLUMB_GPU_WORK_KERNEL) {
		total->kernels += times;
		total->kernel_ns += ns;
	} else if (kind == PLUMB_GPU_WORK_COPY) {
		total->copies += times;
		total->copy_ns += ns;
		total->copy_bytes += bytes;
	} else {
		total->sets += times;
		total->set_ns += ns;
		total->set_bytes += bytes;
	}
}

static void
total_reach(struct plumb_record_device_total *total, uint64_t start, uint64_t end)
{
	if (!total->first_start || start < total->first_start)
		total->first_start = start;
	if (end > total->last_end)
		total->last_end = end;
}

/* ---- series ---- */

static void
series_coarsen(struct plumb_record_series *series)
{
	for (unsigned i = 0; i < PLUMB_SERIES_BINS; i++) {
		unsigned a = 2 * i, b = 2 * i + 1;
		if (b < PLUMB_SERIES_BINS) {
			series->bins[i].busy_ns = series->bins[a].busy_ns + series->bins[b].busy_ns;
			series->bins[i].kernels = series->bins[a].kernels + series->bins[b].kernels;
			series->bins[i].copies = series->bins[a].copies + series->bins[b].copies;
		} else {
			memset(&series->bins[i], 0, sizeof series->bins[i]);
		}
	}
	series->width *= 2;
}

/* Records come out of order, so the first one is not the earliest: bins begin a little before it,
 * and what is earlier still falls into the first bin. */
static void
series_add(struct plumb_record_series *series, enum plumb_gpu_work_kind kind, uint64_t start,
           uint64_t end)
{
	plumb_sequence_begin(&series->sequence);
	if (!series->width) {
		series->width = SERIES_WIDTH;
		uint64_t before = 16 * series->width;
		series->start = start > before ? start - before : 0;
	}
	if (start < series->start)
		start = series->start;
	if (end < start)
		end = start;
	if (end - series->start > SERIES_LONGEST) {
		plumb_sequence_end(&series->sequence);
		return;
	}
	while (end - series->start >= PLUMB_SERIES_BINS * series->width)
		series_coarsen(series);
	uint64_t bin = (start - series->start) / series->width;
	if (kind == PLUMB_GPU_WORK_KERNEL)
		series->bins[bin].kernels++;
	else
		series->bins[bin].copies++;
	while (start < end) {
		uint64_t edge = series->start + (bin + 1) * series->width;
		uint64_t stop = end < edge ? end : edge;
		series->bins[bin++].busy_ns += stop - start;
		start = stop;
	}
	plumb_sequence_end(&series->sequence);
}

void
plumb_gpu_count(struct plumb_gpu_device *device, enum plumb_gpu_work_kind kind, uint64_t times,
                uint64_t ns, uint64_t bytes)
{
	if (!device->total)
		return;
	plumb_sequence_begin(&device->total->sequence);
	total_count(device->total, kind, times, ns, bytes);
	plumb_sequence_end(&device->total->sequence);
}

void
plumb_gpu_busy(struct plumb_gpu_device *device, enum plumb_gpu_work_kind kind, plumb_id node,
               plumb_id stream, uint64_t start, uint64_t end)
{
	if (device->total) {
		if (device->staged_count == STAGED)
			plumb_gpu_merge(device);
		device->staged[device->staged_count++] = (struct plumb_interval){ start, end };
		plumb_sequence_begin(&device->total->sequence);
		total_reach(device->total, start, end);
		plumb_sequence_end(&device->total->sequence);
	}
	if (device->series)
		series_add(device->series, kind, start, end);
	struct plumb_record_work_ring *ring = device->ring;
	if (!ring)
		return;
	uint64_t written = atomic_load_explicit(&ring->written, memory_order_relaxed);
	struct plumb_work *work = (struct plumb_work *)(ring + 1) + written % ring->capacity;
	*work = (struct plumb_work){
		.node = node == PLUMB_LOST ? 0 : node,
		.stream = stream,
		.start = start,
		.end = end,
	};
	atomic_store_explicit(&ring->written, written + 1, memory_order_release);
}

void
plumb_gpu_work(struct plumb_gpu_device *device, enum plumb_gpu_work_kind kind, plumb_id node,
               plumb_id stream, uint64_t start, uint64_t end, uint64_t bytes)
{
	plumb_gpu_count(device, kind, 1, end - start, bytes);
	plumb_gpu_busy(device, kind, node, stream, start, end);
}
