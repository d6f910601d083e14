/* SPDX-License-Identifier: Apache-2.0 */
/* What each device did: sums, and the exact union of its intervals. */
#include "base/runs.h"
#include "import/trace_private.h"

static void
add_known(int64_t *field, int64_t number)
{
	int64_t sum;
	if (*field == PLUMB_UNKNOWN)
		*field = number;
	else
		*field = __builtin_add_overflow(*field, number, &sum) ? INT64_MAX : sum;
}

/* The sum of those that are known (gpu.copy_bytes has their number); unknown when none is. FIRST:
 * there was no other before. */
static void
add_bytes(int64_t *field, int64_t bytes, bool first)
{
	if (bytes != PLUMB_UNKNOWN)
		add_known(field, bytes);
	else if (first && !*field)
		*field = PLUMB_UNKNOWN;
}

static struct plumb_device *
device_of(struct plumb_trace *trace, uint32_t track)
{
	struct plumb_device *device = plumb_builder_get_device(
		trace->builder, plumb_builder_get_track(trace->builder, track)->device);
	if (device->kernels == PLUMB_UNKNOWN)
		device->kernels = device->kernel_ns = device->copies = device->copy_ns =
			device->copy_bytes = device->sets = device->set_ns = device->set_bytes = 0;
	return device;
}

int
plumb_trace_bytes(struct plumb_trace *trace, const struct plumb_value *bytes, bool set)
{
	struct plumb_device *device = device_of(trace, bytes->track);
	add_known(set ? &device->set_bytes : &device->copy_bytes, bytes->sum);
	return plumb_builder_value(trace->builder, bytes) < 0 ? plumb_trace_no_memory(trace) : 0;
}

void
plumb_trace_add_work(struct plumb_trace *trace, const struct plumb_trace_item *item, uint32_t kind)
{
	const struct plumb_track *track = plumb_builder_get_track(trace->builder, item->span.track);
	struct plumb_device *device = device_of(trace, item->span.track);
	int64_t length = item->span.end_ns - item->span.start_ns;
	if (kind == PLUMB_FRAME_KERNEL) {
		add_known(&device->kernels, 1);
		add_known(&device->kernel_ns, length);
	} else if (kind == PLUMB_FRAME_COPY) {
		add_bytes(&device->copy_bytes, item->bytes, !device->copies);
		add_known(&device->copies, 1);
		add_known(&device->copy_ns, length);
	} else {
		add_bytes(&device->set_bytes, item->bytes, !device->sets);
		add_known(&device->sets, 1);
		add_known(&device->set_ns, length);
	}
	struct plumb_trace_busy *busy = plumb_vec_add(&trace->busy);
	if (!busy) {
		plumb_trace_no_memory(trace);
		return;
	}
	*busy = (struct plumb_trace_busy){ track->device, track->process, item->span.start_ns,
		                           item->span.end_ns };
}

int
plumb_trace_more_bytes(struct plumb_trace *trace, uint32_t device, int64_t copied, int64_t set)
{
	struct plumb_trace_bytes *bytes =
		device == PLUMB_NONE ? NULL : plumb_vec_add(&trace->bytes);
	if (!bytes)
		return plumb_trace_no_memory(trace);
	*bytes = (struct plumb_trace_bytes){ device, copied, set };
	return 0;
}

static void
add_more_bytes(struct plumb_trace *trace)
{
	for (uint32_t i = 0; i < trace->bytes.count; i++) {
		const struct plumb_trace_bytes *bytes = &trace->bytes.items[i];
		struct plumb_device *device =
			plumb_builder_get_device(trace->builder, bytes->device);
		if (bytes->copied > 0 && device->copies > 0)
			add_known(&device->copy_bytes, bytes->copied);
		if (bytes->set > 0 && device->sets > 0)
			add_known(&device->set_bytes, bytes->set);
	}
}

/* By device and start. Works come in few ascending runs, as files have them. */
static bool
swapped_device(const void *x, const void *y, const void *data)
{
	const struct plumb_trace_busy *a = x, *b = y;
	(void)data;
	return a->device != b->device ? b->device < a->device : b->start_ns < a->start_ns;
}

/* By device, process and start. */
static bool
swapped_process(const void *x, const void *y, const void *data)
{
	const struct plumb_trace_busy *a = x, *b = y;
	return a->device == b->device && a->process != b->process ? b->process < a->process
	                                                          : swapped_device(x, y, data);
}

/* The union of the COUNT intervals at BUSY, ascending by start. */
static int64_t
union_of(const struct plumb_trace_busy *busy, uint32_t count, int64_t *first, int64_t *last)
{
	int64_t sum = 0, end = busy[0].start_ns;
	for (uint32_t i = 0; i < count; i++) {
		int64_t from = busy[i].start_ns > end ? busy[i].start_ns : end;
		if (busy[i].end_ns > from)
			sum += busy[i].end_ns - from;
		if (busy[i].end_ns > end)
			end = busy[i].end_ns;
	}
	*first = busy[0].start_ns;
	*last = end;
	return sum;
}

/* A device has a rank when all its processes have that one. */
static void
rank_devices(struct plumb_trace *trace)
{
	const struct plumb_trace_busy *busy = trace->busy.items;
	for (uint32_t i = 0; i < trace->busy.count; i++) {
		struct plumb_device *device =
			plumb_builder_get_device(trace->builder, busy[i].device);
		int64_t rank = plumb_builder_get_process(trace->builder, busy[i].process)->rank;
		bool first = !i || busy[i - 1].device != busy[i].device;
		device->rank = first || device->rank == rank ? rank : PLUMB_UNKNOWN;
	}
}

int
plumb_trace_totals(struct plumb_trace *trace)
{
	const struct plumb_trace_busy *busy = trace->busy.items;
	uint32_t count = trace->busy.count, next;
	add_more_bytes(trace);
	if (!count)
		return trace->no_memory ? PLUMB_ESYSTEM : 0;
	if (plumb_runs_sort(trace->busy.items, count, sizeof *busy, swapped_device, NULL) < 0)
		return plumb_trace_no_memory(trace);
	for (uint32_t i = 0; i < count; i = next) {
		struct plumb_device *device =
			plumb_builder_get_device(trace->builder, busy[i].device);
		for (next = i; next < count && busy[next].device == busy[i].device; next++)
			;
		device->busy_ns = union_of(busy + i, next - i, &device->first_ns, &device->last_ns);
	}
	if (plumb_runs_sort(trace->busy.items, count, sizeof *busy, swapped_process, NULL) < 0)
		return plumb_trace_no_memory(trace);
	for (uint32_t i = 0; i < count; i = next) {
		struct plumb_device_process row = { .device = busy[i].device,
			                            .process = busy[i].process };
		for (next = i; next < count && busy[next].device == row.device &&
		               busy[next].process == row.process;
		     next++)
			;
		row.busy_ns = union_of(busy + i, next - i, &row.first_ns, &row.last_ns);
		if (plumb_builder_device_process(trace->builder, &row) < 0)
			return plumb_trace_no_memory(trace);
	}
	rank_devices(trace);
	return trace->no_memory ? PLUMB_ESYSTEM : 0;
}
