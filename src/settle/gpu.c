/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPUs did. Several processes may have used one GPU. Their counts and times add up, but their
 * busy times only do if they do not overlap. So the shares of all processes are kept until the end.
 */
#include "settle/settle_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "settle/contention.h"

static void
count_damaged(struct plumb_settle_region *region, const char *what)
{
	plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED, what, 1);
}

/* Adds NUMBER ≥ 0 to a field that may still be unknown. */
static void
add_known(int64_t *field, int64_t number)
{
	*field = *field == PLUMB_UNKNOWN ? number : plumb_settle_sum(*field, number);
}

static void
add_tally(struct plumb_device *device, const struct plumb_settle_tally *tally)
{
	add_known(&device->kernels, tally->kernels);
	add_known(&device->kernel_ns, tally->kernel_ns);
	add_known(&device->copies, tally->copies);
	add_known(&device->copy_ns, tally->copy_ns);
	add_known(&device->copy_bytes, tally->copy_bytes);
	add_known(&device->sets, tally->sets);
	add_known(&device->set_ns, tally->set_ns);
	add_known(&device->set_bytes, tally->set_bytes);
}

static struct plumb_settle_share *
new_share(struct plumb_settle_region *region, uint32_t device)
{
	struct plumb_settle_share *share = plumb_vec_add(&region->settler->shares);

	if (!share) {
		region->settler->no_memory = true;
		return NULL;
	}
	share->device = device;
	share->process = region->process;
	share->serial = region->serial;
	share->first = share->last = share->busy = PLUMB_UNKNOWN;
	return share;
}

static bool
add_interval(struct plumb_settler *settler, int64_t start, int64_t end)
{
	struct plumb_settle_interval *interval = plumb_vec_add(&settler->intervals);

	if (!interval) {
		settler->no_memory = true;
		return false;
	}
	interval->start = start;
	interval->end = end;
	return true;
}

/* ---- totals ---- */

/* Are the open intervals ascending, disjoint and after the horizon? */
static bool
open_is_sound(const struct plumb_record_device_total *record)
{
	uint64_t end = record->horizon;

	if (record->open_count > PLUMB_BUSY_OPEN)
		return false;
	for (uint64_t i = 0; i < record->open_count; i++) {
		if (record->open[i].start < end || record->open[i].end < record->open[i].start)
			return false;
		end = record->open[i].end;
	}
	return end <= INT64_MAX;
}

static bool
total_is_sound(const struct plumb_record_device_total *record)
{
	const uint64_t numbers[] = {
		record->kernels,    record->kernel_ns, record->copies, record->copy_ns,
		record->copy_bytes, record->sets,      record->set_ns, record->set_bytes,
		record->busy_ns,    record->late,
	};

	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (numbers[i] > INT64_MAX)
			return false;
	return record->first_start <= record->last_end && open_is_sound(record);
}

/* What the busy union knows: its folded part and its open intervals. */
static void
share_busy(struct plumb_settle_region *region, struct plumb_settle_share *share,
           const struct plumb_record_device_total *record, const struct plumb_settle_line *line)
{
	bool exact = line && !record->busy_ns && !record->late;
	uint32_t from = region->settler->intervals.count;

	share->busy = (int64_t)record->busy_ns;
	for (uint64_t i = 0; i < record->open_count; i++) {
		const struct plumb_interval *open = &record->open[i];
		int64_t start = plumb_settle_time(line, open->start);
		int64_t end = plumb_settle_time(line, open->end);

		share->busy = plumb_settle_sum(share->busy, (int64_t)(open->end - open->start));
		if (!exact || start == PLUMB_UNKNOWN || end < start ||
		    !add_interval(region->settler, start, end))
			exact = false;
	}
	share->exact = exact;
	share->from = from;
	share->count = region->settler->intervals.count - from;
}

void
plumb_settle_total(struct plumb_settle_region *region,
                   const struct plumb_record_device_total *record)
{
	uint32_t device = plumb_settle_device(region, record->device);
	const struct plumb_settle_line *line = plumb_settle_line_of(region, record->device);
	struct plumb_settle_share *share;

	/* Odd: the process ended inside an update, so the numbers do not fit together. */
	if (atomic_load_explicit(&record->sequence, memory_order_relaxed) & 1) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_TORN,
		                   "totals of devices", 1);
		return;
	}
	if (device == PLUMB_NONE || !total_is_sound(record)) {
		count_damaged(region, "totals of devices");
		return;
	}
	share = new_share(region, device);
	if (!share)
		return;
	region->settler->devices.items[device].total = true;
	share->pieces = record->kernels + record->copies + record->sets;
	if (share->pieces) {
		share->first = plumb_settle_time(line, record->first_start);
		share->last = plumb_settle_time(line, record->last_end);
		if (share->last != PLUMB_UNKNOWN && share->last > region->seen)
			region->seen = share->last;
	}
	share_busy(region, share, record, line);
	struct plumb_device *row = plumb_builder_get_device(region->settler->builder, device);
	add_tally(row, &(struct plumb_settle_tally){
			       .kernels = (int64_t)record->kernels,
			       .kernel_ns = (int64_t)record->kernel_ns,
			       .copies = (int64_t)record->copies,
			       .copy_ns = (int64_t)record->copy_ns,
			       .copy_bytes = (int64_t)record->copy_bytes,
			       .sets = (int64_t)record->sets,
			       .set_ns = (int64_t)record->set_ns,
			       .set_bytes = (int64_t)record->set_bytes,
		       });
	add_known(&row->late, (int64_t)record->late);
}

void
plumb_settle_tally(struct plumb_settle_region *region, const struct plumb_value *value)
{
	const struct plumb_track *track =
		plumb_builder_get_track(region->settler->builder, value->track);
	bool set = region->settler->contexts.items[value->context].kind == PLUMB_FRAME_SET;
	struct plumb_settle_tally *tally;
	int64_t count = (int64_t)value->count, sum = value->sum < 0 ? 0 : value->sum;

	if (!track || track->kind != PLUMB_TRACK_STREAM || track->device == PLUMB_NONE)
		return;
	tally = &region->settler->devices.items[track->device].tally;
	if (value->metric == PLUMB_METRIC_GPU_TIME) {
		tally->kernels = plumb_settle_sum(tally->kernels, count);
		tally->kernel_ns = plumb_settle_sum(tally->kernel_ns, sum);
	} else if (value->metric == PLUMB_METRIC_GPU_COPY_TIME) {
		int64_t *counts = set ? &tally->sets : &tally->copies;
		int64_t *times = set ? &tally->set_ns : &tally->copy_ns;
		*counts = plumb_settle_sum(*counts, count);
		*times = plumb_settle_sum(*times, sum);
	} else if (value->metric == PLUMB_METRIC_GPU_COPY_BYTES) {
		int64_t *bytes = set ? &tally->set_bytes : &tally->copy_bytes;
		*bytes = plumb_settle_sum(*bytes, sum);
	}
}

void
plumb_settle_tallies(struct plumb_settle_region *region)
{
	struct plumb_settler *settler = region->settler;

	for (uint32_t i = 0; i < settler->devices.count; i++) {
		struct plumb_settle_device *own = &settler->devices.items[i];
		const struct plumb_settle_tally *t = &own->tally;
		if (own->serial != region->serial || own->total ||
		    (!t->kernels && !t->copies && !t->sets))
			continue;
		add_tally(plumb_builder_get_device(settler->builder, i), t);
		new_share(region, i); /* of unknown busy time */
	}
}

/* ---- the newest work ---- */

/* Entry NUMBER of a ring, when it is whole. */
static bool
take_work(struct plumb_settle_region *region, const struct plumb_work *work, uint32_t device,
          const struct plumb_settle_line *line, struct plumb_work_item *item)
{
	const struct plumb_track *track;

	item->context = plumb_settle_node(region, work->node);
	item->track = plumb_settle_track(region, work->stream);
	item->start_ns = plumb_settle_time(line, work->start);
	item->end_ns = plumb_settle_time(line, work->end);
	track = plumb_builder_get_track(region->settler->builder, item->track);
	return work->node && item->context != PLUMB_NONE && track &&
	       track->kind == PLUMB_TRACK_STREAM && track->device == device && work->start &&
	       work->end >= work->start && item->start_ns != PLUMB_UNKNOWN &&
	       item->end_ns != PLUMB_UNKNOWN && item->end_ns >= item->start_ns;
}

static void
keep_ring(struct plumb_settle_region *region, uint32_t device, uint32_t from)
{
	struct plumb_settle_ring *ring = plumb_vec_add(&region->settler->rings);

	if (!ring) {
		region->settler->no_memory = true;
		return;
	}
	ring->device = device;
	ring->serial = region->serial;
	ring->from = from;
	ring->count = region->settler->intervals.count - from;
}

void
plumb_settle_ring(struct plumb_settle_region *region, const struct plumb_record_work_ring *record)
{
	const struct plumb_work *works = (const struct plumb_work *)(record + 1);
	uint64_t room = (record->head.length - sizeof *record) / sizeof *works;
	uint64_t written = atomic_load_explicit(&record->written, memory_order_relaxed);
	uint64_t count = written < record->capacity ? written : record->capacity;
	uint32_t device = plumb_settle_device(region, record->device);
	const struct plumb_settle_line *line = plumb_settle_line_of(region, record->device);
	uint32_t from = region->settler->intervals.count;
	bool wrapped = written > record->capacity;

	if (device == PLUMB_NONE || record->capacity > room) {
		count_damaged(region, "newest GPU work");
		return;
	}
	/* A process that was killed may have been overwriting the oldest entry. */
	if (written >= record->capacity && count &&
	    region->reader->header.state != PLUMB_REGION_ENDED)
		count--;
	for (uint64_t i = written - count; i < written; i++) {
		struct plumb_work_item item;
		if (!take_work(region, &works[i % record->capacity], device, line, &item)) {
			count_damaged(region,
			              line ? "newest GPU work" : "GPU work without a clock");
			continue;
		}
		if (plumb_builder_work(region->settler->builder, &item) == 1)
			plumb_settle_count(region, PLUMB_SOURCE_SPAN, PLUMB_FATE_OVERWRITTEN,
			                   "a profile cannot hold more", 1);
		if (item.end_ns > region->seen)
			region->seen = item.end_ns;
		if (!wrapped)
			add_interval(region->settler, item.start_ns, item.end_ns);
	}
	if (!wrapped)
		keep_ring(region, device, from);
}

/* ---- series ---- */

void
plumb_settle_series(struct plumb_settle_region *region, const struct plumb_record_series *record)
{
	uint32_t device = plumb_settle_device(region, record->device);
	const struct plumb_settle_line *line = plumb_settle_line_of(region, record->device);
	int64_t start = plumb_settle_time(line, record->start), reach;
	int used = PLUMB_SERIES_BINS;

	if (atomic_load_explicit(&record->sequence, memory_order_relaxed) & 1) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_TORN, "series", 1);
		return;
	}
	while (used && !record->bins[used - 1].busy_ns && !record->bins[used - 1].kernels &&
	       !record->bins[used - 1].copies)
		used--;
	if (!used)
		return;
	if (device == PLUMB_NONE || start == PLUMB_UNKNOWN || !record->width ||
	    record->width > INT64_MAX / (PLUMB_SERIES_BINS + 1) ||
	    __builtin_add_overflow(start, (int64_t)record->width * PLUMB_SERIES_BINS, &reach)) {
		count_damaged(region, "series");
		return;
	}
	for (int i = 0; i < used; i++) {
		struct plumb_series_bin bin = {
			.device = device,
			.process = region->process,
			.start_ns = start + i * (int64_t)record->width,
			.width_ns = (int64_t)record->width,
			.busy_ns = plumb_settle_number(record->bins[i].busy_ns),
			.kernels = record->bins[i].kernels,
			.copies = record->bins[i].copies,
		};
		plumb_builder_series(region->settler->builder, &bin);
	}
}

/* Can BIN be what samples made of it? */
static bool
is_counter_bin(const struct plumb_counter_bin *bin)
{
	double mean = bin->sum / (double)bin->ns;

	/* The least and the greatest are rounded, the sum is not. */
	return bin->ns && bin->ns <= INT64_MAX && isfinite(mean) && isfinite(bin->least) &&
	       isfinite(bin->most) && (float)mean >= bin->least - fabsf(bin->least) * 1e-5f &&
	       (float)mean <= bin->most + fabsf(bin->most) * 1e-5f;
}

/* False: the rows end with one that cannot be true. */
static bool
add_counter_bins(struct plumb_settle_region *region,
                 const struct plumb_record_counter_series *record, uint32_t device, int64_t start)
{
	struct plumb_counter_series_bin row = {
		.device = device,
		.process = region->process,
		.metric = plumb_settle_string(region, record->name),
		.unit = record->unit ? plumb_settle_string(region, record->unit) : PLUMB_NONE,
		.width_ns = (int64_t)record->width,
	};

	for (int i = 0; i < PLUMB_COUNTER_BINS; i++) {
		const struct plumb_counter_bin *bin = &record->bins[i];

		if (!bin->samples)
			continue;
		if (!is_counter_bin(bin))
			return false;
		row.start_ns = start + i * (int64_t)record->width;
		row.samples = bin->samples;
		row.sampled_ns = (int64_t)bin->ns;
		row.min = (double)bin->least;
		row.mean = bin->sum / (double)bin->ns;
		row.max = (double)bin->most;
		plumb_builder_counter_series(region->settler->builder, &row);
	}
	return true;
}

void
plumb_settle_counter_series(struct plumb_settle_region *region,
                            const struct plumb_record_counter_series *record)
{
	uint32_t device = plumb_settle_device(region, record->device);
	const struct plumb_settle_line *line = plumb_settle_line_of(region, record->device);
	int64_t start = plumb_settle_time(line, record->start), reach;

	if (atomic_load_explicit(&record->sequence, memory_order_relaxed) & 1) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_TORN,
		                   "counters over time", 1);
		return;
	}
	if (!record->width) /* no sample came */
		return;
	if (device == PLUMB_NONE || start == PLUMB_UNKNOWN ||
	    record->width > INT64_MAX / (PLUMB_COUNTER_BINS + 1) ||
	    __builtin_add_overflow(start, (int64_t)record->width * PLUMB_COUNTER_BINS, &reach) ||
	    !add_counter_bins(region, record, device, start))
		count_damaged(region, "counters over time");
}

/* ---- busy time of all processes together ---- */

static int
by_device_and_first(const void *x, const void *y)
{
	const struct plumb_settle_share *a = x, *b = y;

	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->first > b->first) - (a->first < b->first);
}

/* If the older intervals of a share were folded, it is still exact as long as a ring has all its
 * work. */
static void
complete_from_ring(struct plumb_settler *settler, struct plumb_settle_share *share)
{
	for (uint32_t i = 0; !share->exact && i < settler->rings.count; i++) {
		const struct plumb_settle_ring *ring = &settler->rings.items[i];
		if (ring->device != share->device || ring->serial != share->serial ||
		    ring->count != share->pieces)
			continue;
		share->exact = true;
		share->from = ring->from;
		share->count = ring->count;
	}
}

/* The intervals of all COUNT shares together. False: one of them is not exact. */
static bool
find_exact(struct plumb_settler *settler, struct plumb_settle_share *shares, uint32_t count,
           struct plumb_contention *result)
{
	struct plumb_use *all;
	uint64_t total = 0;
	size_t used = 0;
	bool found;

	for (uint32_t i = 0; i < count; i++) {
		complete_from_ring(settler, &shares[i]);
		if (!shares[i].exact)
			return false;
		total += shares[i].count;
	}
	all = total < UINT32_MAX ? malloc((size_t)total * sizeof *all + 1) : NULL;
	if (!all)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t k = 0; k < shares[i].count; k++) {
			const struct plumb_settle_interval *interval =
				&settler->intervals.items[shares[i].from + k];
			all[used++] = (struct plumb_use){ interval->start, interval->end,
				                          shares[i].process };
		}
	}
	found = plumb_contention_find(all, used, result);
	free(all);
	return found;
}

/* Keeps what each process did on its device. */
static void
keep_shares(struct plumb_settler *settler, const struct plumb_settle_share *shares, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_device_process row = {
			.device = shares[i].device,
			.process = shares[i].process,
			.busy_ns = shares[i].busy,
			.first_ns = shares[i].first,
			.last_ns = shares[i].last,
		};
		plumb_builder_device_process(settler->builder, &row);
	}
}

/* Says in the environment that a device's busy time is not exact. */
static void
note_busy(struct plumb_settler *settler, uint32_t device, const char *what)
{
	const struct plumb_device *row = plumb_builder_get_device(settler->builder, device);
	const char *uuid = plumb_builder_get_text(settler->builder, row->uuid);
	char key[128];

	snprintf(key, sizeof key, "gpu.busy.%s", uuid ? uuid : "unknown");
	plumb_builder_environment(settler->builder, PLUMB_NONE, key, what);
}

/* Busy time from COUNT shares, ordered by their first work, and the device's span in *ROW. */
static void
join_shares(struct plumb_settler *settler, struct plumb_settle_share *shares, uint32_t count,
            struct plumb_device *row)
{
	struct plumb_contention exact;
	int64_t sum = 0;
	bool known = true, apart = true;

	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_settle_share *share = &shares[i];
		known = known && share->busy != PLUMB_UNKNOWN;
		sum = plumb_settle_sum(sum, known ? share->busy : 0);
		if (share->first == PLUMB_UNKNOWN || share->last == PLUMB_UNKNOWN) {
			apart = apart && !share->pieces;
			continue;
		}
		if (row->last_ns != PLUMB_UNKNOWN && share->first < row->last_ns)
			apart = false;
		if (row->first_ns == PLUMB_UNKNOWN || share->first < row->first_ns)
			row->first_ns = share->first;
		if (row->last_ns == PLUMB_UNKNOWN || share->last > row->last_ns)
			row->last_ns = share->last;
	}
	row->contended_ns = count < 2 || apart ? 0 : PLUMB_UNKNOWN;
	if (!known) {
		note_busy(settler, shares->device,
		          "unknown: a process ended while its totals were written");
		return;
	}
	row->busy_ns = sum;
	if (count < 2 || apart)
		return;
	if (find_exact(settler, shares, count, &exact)) {
		row->busy_ns = exact.busy;
		row->contended_ns = exact.contended;
		return;
	}
	/* Work of several processes may overlap, and nothing says any more how much. */
	note_busy(settler, shares->device,
	          "an upper bound: several processes used the device at once");
}

void
plumb_settle_busy(struct plumb_settler *settler)
{
	struct plumb_settle_share *shares = settler->shares.items;
	uint32_t count = settler->shares.count, end;

	if (!count)
		return;
	qsort(shares, count, sizeof *shares, by_device_and_first);
	for (uint32_t i = 0; i < count; i = end) {
		for (end = i + 1; end < count && shares[end].device == shares[i].device; end++)
			;
		struct plumb_device *row =
			plumb_builder_get_device(settler->builder, shares[i].device);
		join_shares(settler, shares + i, end - i, row);
		keep_shares(settler, shares + i, end - i);
		/* A device cannot be busy for longer than its span. The sum may be: the ends of the
		 * span are rounded to the host's clock, and work of several processes may count
		 * twice. */
		if (row->first_ns != PLUMB_UNKNOWN && row->last_ns >= row->first_ns &&
		    row->busy_ns > row->last_ns - row->first_ns)
			row->busy_ns = row->last_ns - row->first_ns;
	}
}
