/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables whose rows are not of a time are copied, so that ids stay. The others keep what lies in
 * the window.
 */
#include "model/window_cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/search.h"
#include "base/sort.h"
#include "model/order.h"
#include "model/rows.h"

struct stretch {
	uint32_t process;
	int64_t start, end;
};

struct cut {
	const struct plumb_profile *from;
	struct plumb_profile *to;
	bool *chosen;              /* by window */
	struct stretch *stretches; /* by process, then start */
	uint32_t stretch_count;
	bool *peaks;           /* by track: its peak of memory is in the window */
	struct plumb_map uses; /* from a device and process to the row of device_processes */
};

/* ---- when ---- */

static uint64_t
stretch_key(const void *row, int which, const void *data)
{
	const struct stretch *s = row;
	(void)data;
	return which ? plumb_sort_signed(s->start) : s->process;
}

static int
find_stretches(struct cut *cut, const struct plumb_window_sum *sum)
{
	const struct plumb_profile *from = cut->from;

	cut->chosen = calloc((size_t)from->windows_count + 1, sizeof *cut->chosen);
	cut->stretches = calloc((size_t)from->window_stretches_count + 1, sizeof *cut->stretches);
	if (!cut->chosen || !cut->stretches)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < from->windows_count; i++)
		cut->chosen[i] = from->windows[i].kind == sum->kind &&
		                 from->windows[i].number == sum->number;
	for (uint32_t i = 0; i < from->window_stretches_count; i++) {
		const struct plumb_window_stretch *s = &from->window_stretches[i];
		if (cut->chosen[s->window] && plumb_is_time(s->start_ns, s->end_ns))
			cut->stretches[cut->stretch_count++] =
				(struct stretch){ from->windows[s->window].process, s->start_ns,
				                  s->end_ns };
	}
	return plumb_sort_rows(cut->stretches, cut->stretch_count, sizeof *cut->stretches,
	                       stretch_key, 2, NULL);
}

/* The first stretch of PROCESS that ends after AT, or a later process's. */
static uint32_t
first_stretch(const struct cut *cut, uint32_t process, int64_t at)
{
	const struct stretch *s = cut->stretches;

	return plumb_search(i, cut->stretch_count,
	                    s[i].process < process || (s[i].process == process && s[i].end <= at));
}

static bool
is_within(const struct cut *cut, uint32_t process, int64_t at)
{
	uint32_t i = first_stretch(cut, process, at);

	return i < cut->stretch_count && cut->stretches[i].process == process &&
	       cut->stretches[i].start <= at;
}

static bool
track_is_within(const struct cut *cut, uint32_t track, int64_t at)
{
	return track < cut->from->tracks_count &&
	       is_within(cut, cut->from->tracks[track].process, at);
}

/* Clips a process's [*START, *END], either of which may be unknown, to its part of the window. */
static void
clip(const struct cut *cut, uint32_t process, int64_t *start, int64_t *end)
{
	uint32_t first = first_stretch(cut, process, INT64_MIN), last = first;

	while (last + 1 < cut->stretch_count && cut->stretches[last + 1].process == process)
		last++;
	if (first >= cut->stretch_count || cut->stretches[first].process != process)
		return;
	if (*start != PLUMB_UNKNOWN && *start < cut->stretches[first].start)
		*start = cut->stretches[first].start;
	if (*end != PLUMB_UNKNOWN && *end > cut->stretches[last].end)
		*end = cut->stretches[last].end;
	if (*end != PLUMB_UNKNOWN && *start != PLUMB_UNKNOWN && *end < *start)
		*end = *start;
}

/* ---- rows ---- */

static int
copy_rows(struct cut *cut, const struct plumb_row_table *table)
{
	struct plumb_row_array rows = plumb_row_array_of(cut->from, table);
	void *room = rows.count ? plumb_row_reserve(cut->to, table, rows.count) : NULL;

	if (!rows.count)
		return PLUMB_OK;
	if (!room)
		return PLUMB_ESYSTEM;
	memcpy(room, rows.items, (size_t)rows.count * table->row_size);
	plumb_row_set_count(cut->to, table, rows.count);
	return PLUMB_OK;
}

static int
add_row(struct cut *cut, enum plumb_table_number number, const void *row)
{
	void *added = plumb_row_add(cut->to, &plumb_row_tables[number]);

	if (!added)
		return PLUMB_ESYSTEM;
	memcpy(added, row, plumb_row_tables[number].row_size);
	return PLUMB_OK;
}

/* Texts and metrics: the texts themselves are the other profile's. */
static int
copy_names(struct cut *cut)
{
	const struct plumb_profile *from = cut->from;
	struct plumb_profile *to = cut->to;

	to->run = from->run;
	to->strings = malloc(((size_t)from->strings_count + 1) * sizeof *to->strings);
	to->user_metrics =
		malloc(((size_t)from->user_metrics_count + 1) * sizeof *to->user_metrics);
	if (!to->strings || !to->user_metrics)
		return PLUMB_ESYSTEM;
	if (from->strings_count)
		memcpy(to->strings, from->strings, from->strings_count * sizeof *to->strings);
	if (from->user_metrics_count)
		memcpy(to->user_metrics, from->user_metrics,
		       from->user_metrics_count * sizeof *to->user_metrics);
	to->strings_count = to->strings_room = from->strings_count;
	to->user_metrics_count = to->user_metrics_room = from->user_metrics_count;
	return PLUMB_OK;
}

/* ---- values ---- */

static int
compare_values(const struct plumb_value *v, const struct plumb_window_value *w)
{
	const uint32_t a[] = { v->context, v->metric, v->track, v->ends.from, v->ends.to };
	const uint32_t b[] = { w->context, w->metric, w->track, w->ends.from, w->ends.to };

	for (size_t i = 0; i < sizeof a / sizeof *a; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

/* WHOLE as far as the window has it, which is STAT. */
static int
add_value(struct cut *cut, const struct plumb_value *whole, struct plumb_stat stat)
{
	struct plumb_value value = *whole;

	if (!stat.count)
		return PLUMB_OK;
	value.sum = stat.sum;
	value.count = stat.count;
	value.mean = (double)stat.sum / (double)stat.count;
	value.m2 = stat.m2;
	if (stat.count != whole->count && whole->min != whole->max) {
		value.min = stat.max == PLUMB_UNKNOWN ? PLUMB_UNKNOWN : stat.min;
		value.max = stat.max;
	}
	return add_row(cut, PLUMB_TABLE_VALUES, &value);
}

/* Both tables have the same order. */
static int
cut_values(struct cut *cut)
{
	const struct plumb_profile *from = cut->from;
	uint32_t w = 0;

	cut->peaks = calloc((size_t)from->tracks_count + 1, sizeof *cut->peaks);
	if (!cut->peaks)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < from->memory_count; i++)
		cut->peaks[from->memory[i].track] =
			track_is_within(cut, from->memory[i].track, from->memory[i].peak_ns);
	for (uint32_t i = 0; i < from->values_count; i++) {
		const struct plumb_value *v = &from->values[i];
		struct plumb_stat stat = { 0 };
		int code = PLUMB_OK;
		while (w < from->window_values_count &&
		       compare_values(v, &from->window_values[w]) > 0)
			w++;
		for (; w < from->window_values_count &&
		       compare_values(v, &from->window_values[w]) == 0;
		     w++) {
			const struct plumb_window_value *row = &from->window_values[w];
			struct plumb_stat part = plumb_window_value_stat(row);
			if (cut->chosen[row->window])
				plumb_stat_merge(&stat, &part);
		}
		/* What was held at the peak is of the window that has the peak. */
		if (v->metric == PLUMB_METRIC_MEM_HELD && v->track != PLUMB_NONE &&
		    cut->peaks[v->track])
			code = add_row(cut, PLUMB_TABLE_VALUES, v);
		else
			code = add_value(cut, v, stat);
		if (code)
			return code;
	}
	return PLUMB_OK;
}

/* ---- variants ---- */

static bool
is_same_variant(const struct plumb_variant *a, const struct plumb_variant *b)
{
	return a->context == b->context && a->track == b->track && a->shapes == b->shapes &&
	       !memcmp(a->grid, b->grid, sizeof a->grid) &&
	       !memcmp(a->block, b->block, sizeof a->block) && a->registers == b->registers &&
	       a->static_shared == b->static_shared && a->dynamic_shared == b->dynamic_shared &&
	       a->occupancy == b->occupancy;
}

/* What the window has of WHOLE, the rows for whose context and track are [FIRST, END). */
static int
add_variant(struct cut *cut, const struct plumb_variant *whole, uint32_t first, uint32_t end)
{
	struct plumb_variant sum = *whole;

	sum.count = 0;
	sum.time = 0;
	for (uint32_t i = first; i < end; i++) {
		const struct plumb_window_variant *row = &cut->from->window_variants[i];
		if (!cut->chosen[row->window] || !is_same_variant(whole, &row->variant))
			continue;
		sum.count += row->variant.count;
		if (__builtin_add_overflow(sum.time, row->variant.time, &sum.time))
			sum.time = INT64_MAX;
	}
	if (!sum.count)
		return PLUMB_OK;
	if (sum.count != whole->count && whole->min != whole->max)
		sum.min = sum.max = PLUMB_UNKNOWN;
	return add_row(cut, PLUMB_TABLE_VARIANTS, &sum);
}

static bool
is_before(const struct plumb_variant *a, const struct plumb_variant *b)
{
	return a->context != b->context ? a->context < b->context : a->track < b->track;
}

static int
cut_variants(struct cut *cut)
{
	const struct plumb_profile *from = cut->from;
	uint32_t first = 0, end = 0;
	int code = PLUMB_OK;

	for (uint32_t i = 0; !code && i < from->variants_count; i++) {
		const struct plumb_variant *v = &from->variants[i];
		if (!i || is_before(v - 1, v)) {
			for (first = end; first < from->window_variants_count &&
			                  is_before(&from->window_variants[first].variant, v);)
				first++;
			for (end = first; end < from->window_variants_count &&
			                  !is_before(v, &from->window_variants[end].variant);)
				end++;
		}
		code = add_variant(cut, v, first, end);
	}
	return code ? code : plumb_row_order(cut->to, &plumb_row_tables[PLUMB_TABLE_VARIANTS]);
}

/* ---- devices ---- */

static void
add_device(struct plumb_device *to, const struct plumb_window_device *row)
{
	plumb_device_work_add(&to->work, &row->work);
	/* Processes that worked at the same time cannot be told apart any more. */
	to->busy_ns = to->contended_ns == 0 || !row->busy_ns || !to->busy_ns
	                      ? plumb_add_known(to->busy_ns, row->busy_ns)
	                      : PLUMB_UNKNOWN;
}

static int
cut_devices(struct cut *cut)
{
	const struct plumb_profile *from = cut->from;
	bool *known = calloc((size_t)from->devices_count + 1, sizeof *known);

	if (!known)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < from->window_devices_count; i++)
		known[from->window_devices[i].device] = true;
	for (uint32_t i = 0; i < from->devices_count; i++) {
		struct plumb_device *to = &cut->to->devices[i];
		to->kernels = to->kernel_ns = to->copies = to->copy_ns = to->copy_bytes = to->sets =
			to->set_ns = to->set_bytes = to->busy_ns = known[i] ? 0 : PLUMB_UNKNOWN;
		to->contended_ns = to->contended_ns == 0 ? 0 : PLUMB_UNKNOWN;
		to->late = to->late == 0 ? 0 : PLUMB_UNKNOWN;
		to->first_ns = to->last_ns = PLUMB_UNKNOWN;
	}
	free(known);
	for (uint32_t i = 0; i < from->window_devices_count; i++) {
		const struct plumb_window_device *row = &from->window_devices[i];
		if (cut->chosen[row->window])
			add_device(&cut->to->devices[row->device], row);
	}
	return PLUMB_OK;
}

static uint64_t
use_hash(uint32_t device, uint32_t process)
{
	return plumb_hash_mix(device, process);
}

/* The row of what PROCESS did on DEVICE, or NULL. */
static struct plumb_device_process *
find_use(const struct cut *cut, uint32_t device, uint32_t process)
{
	struct plumb_map_cursor at;

	for (uint32_t id = plumb_map_first(&cut->uses, use_hash(device, process), &at);
	     id != PLUMB_MAP_NONE; id = plumb_map_next(&cut->uses, &at)) {
		struct plumb_device_process *row = &cut->to->device_processes[id];
		if (row->device == device && row->process == process)
			return row;
	}
	return NULL;
}

/* From the first work to the last, as far as it lies in the window. */
static void
clip_use(const struct cut *cut, struct plumb_device_process *row)
{
	struct plumb_device *device = &cut->to->devices[row->device];

	if (!row->busy_ns || row->first_ns == PLUMB_UNKNOWN || row->last_ns == PLUMB_UNKNOWN) {
		row->first_ns = row->last_ns = PLUMB_UNKNOWN;
		return;
	}
	clip(cut, row->process, &row->first_ns, &row->last_ns);
	if (device->first_ns == PLUMB_UNKNOWN || row->first_ns < device->first_ns)
		device->first_ns = row->first_ns;
	if (row->last_ns > device->last_ns)
		device->last_ns = row->last_ns;
}

static int
cut_device_processes(struct cut *cut)
{
	const struct plumb_profile *from = cut->from;
	int code = copy_rows(cut, &plumb_row_tables[PLUMB_TABLE_DEVICE_PROCESSES]);

	for (uint32_t i = 0; !code && i < from->device_processes_count; i++) {
		struct plumb_device_process *row = &cut->to->device_processes[i];
		row->busy_ns = PLUMB_UNKNOWN;
		code = plumb_map_add(&cut->uses, use_hash(row->device, row->process), i);
	}
	/* What is known by window is 0 in windows that do not tell of it. */
	for (uint32_t pass = 0; !code && pass < 2; pass++) {
		for (uint32_t i = 0; i < from->window_devices_count; i++) {
			const struct plumb_window_device *w = &from->window_devices[i];
			struct plumb_device_process *row =
				find_use(cut, w->device, from->windows[w->window].process);
			if (row && !pass)
				row->busy_ns = 0;
			else if (row && cut->chosen[w->window])
				row->busy_ns = plumb_add_known(row->busy_ns, w->busy_ns);
		}
	}
	for (uint32_t i = 0; !code && i < from->device_processes_count; i++)
		clip_use(cut, &cut->to->device_processes[i]);
	return code ? PLUMB_ESYSTEM : PLUMB_OK;
}

static int
cut_series(struct cut *cut)
{
	int code = PLUMB_OK;

	for (uint32_t i = 0; !code && i < cut->from->series_count; i++) {
		const struct plumb_series_bin *bin = &cut->from->series[i];
		int64_t middle;
		if (!__builtin_add_overflow(bin->start_ns, bin->width_ns / 2, &middle) &&
		    is_within(cut, bin->process, middle))
			code = add_row(cut, PLUMB_TABLE_SERIES, bin);
	}
	return code;
}

static int
cut_counter_series(struct cut *cut)
{
	int code = PLUMB_OK;

	for (uint32_t i = 0; !code && i < cut->from->counter_series_count; i++) {
		const struct plumb_counter_series_bin *bin = &cut->from->counter_series[i];
		int64_t middle;
		if (!__builtin_add_overflow(bin->start_ns, bin->width_ns / 2, &middle) &&
		    is_within(cut, bin->process, middle))
			code = add_row(cut, PLUMB_TABLE_COUNTER_SERIES, bin);
	}
	return code;
}

static int
cut_memory_series(struct cut *cut)
{
	int code = PLUMB_OK;

	for (uint32_t i = 0; !code && i < cut->from->memory_series_count; i++) {
		const struct plumb_memory_series_bin *bin = &cut->from->memory_series[i];
		int64_t middle;
		if (!__builtin_add_overflow(bin->start_ns, bin->width_ns / 2, &middle) &&
		    track_is_within(cut, bin->track, middle))
			code = add_row(cut, PLUMB_TABLE_MEMORY_SERIES, bin);
	}
	return code;
}

static int
cut_memory(struct cut *cut)
{
	int code = PLUMB_OK;

	for (uint32_t i = 0; !code && i < cut->from->memory_count; i++) {
		struct plumb_memory row = cut->from->memory[i];
		if (!track_is_within(cut, row.track, row.peak_ns))
			continue;
		row.allocations = row.allocated_bytes = row.frees = row.freed_bytes =
			row.live_bytes = PLUMB_UNKNOWN;
		code = add_row(cut, PLUMB_TABLE_MEMORY, &row);
	}
	return code;
}

/* ---- moments ---- */

static int
cut_work(struct cut *cut)
{
	int code = PLUMB_OK;

	for (uint32_t i = 0; !code && i < cut->from->work_count; i++) {
		const struct plumb_work_item *item = &cut->from->work[i];
		if (track_is_within(cut, item->track, item->start_ns))
			code = add_row(cut, PLUMB_TABLE_WORK, item);
	}
	return code;
}

/* The parts of a thread's span that lie in the window. A call is known by its first part. */
static int
add_parts(struct cut *cut, const struct plumb_span *span, uint32_t process)
{
	struct plumb_span part = *span;

	for (uint32_t i = first_stretch(cut, process, span->start_ns);
	     i < cut->stretch_count && cut->stretches[i].process == process &&
	     cut->stretches[i].start <= span->end_ns;
	     i++) {
		const struct stretch *s = &cut->stretches[i];
		part.start_ns = span->start_ns > s->start ? span->start_ns : s->start;
		part.end_ns = span->end_ns < s->end ? span->end_ns : s->end;
		if (part.start_ns == part.end_ns && span->start_ns != part.start_ns)
			continue;
		if (add_row(cut, PLUMB_TABLE_SPANS, &part))
			return PLUMB_ESYSTEM;
		part.correlation = part.bytes = 0;
	}
	return PLUMB_OK;
}

static int
cut_spans(struct cut *cut)
{
	int code = PLUMB_OK;

	for (uint32_t i = 0; !code && i < cut->from->spans_count; i++) {
		const struct plumb_span *span = &cut->from->spans[i];
		const struct plumb_track *track = &cut->from->tracks[span->track];
		if (track->kind != PLUMB_TRACK_STREAM)
			code = add_parts(cut, span, track->process);
		else if (is_within(cut, track->process, span->start_ns))
			code = add_row(cut, PLUMB_TABLE_SPANS, span);
	}
	return code ? code : plumb_order_spans(cut->to->spans, cut->to->spans_count);
}

static int
cut_samples(struct cut *cut)
{
	int code = PLUMB_OK;

	for (uint32_t i = 0; !code && i < cut->from->cpu_samples_count; i++)
		if (track_is_within(cut, cut->from->cpu_samples[i].track,
		                    cut->from->cpu_samples[i].at_ns))
			code = add_row(cut, PLUMB_TABLE_CPU_SAMPLES, &cut->from->cpu_samples[i]);
	return code;
}

static int
cut_collectives(struct cut *cut)
{
	int code = PLUMB_OK;

	for (uint32_t i = 0; !code && i < cut->from->collectives_count; i++)
		if (track_is_within(cut, cut->from->collectives[i].track,
		                    cut->from->collectives[i].start_ns))
			code = add_row(cut, PLUMB_TABLE_COLLECTIVES, &cut->from->collectives[i]);
	return code;
}

/* ---- the whole ---- */

/* Findings are of the whole, and windows have no windows. Transfers have no times: which of them
 * were in a window is not known, nor what its objects were. */
static int
drop_rows(struct cut *cut)
{
	(void)cut;
	return PLUMB_OK;
}

/* NULL: all rows are copied. */
static int (*const cuts[PLUMB_TABLES])(struct cut *cut) = {
	[PLUMB_TABLE_VALUES] = cut_values,
	[PLUMB_TABLE_VARIANTS] = cut_variants,
	[PLUMB_TABLE_FINDINGS] = drop_rows,
	[PLUMB_TABLE_SERIES] = cut_series,
	[PLUMB_TABLE_MEMORY] = cut_memory,
	[PLUMB_TABLE_MEMORY_SERIES] = cut_memory_series,
	[PLUMB_TABLE_COUNTER_SERIES] = cut_counter_series,
	[PLUMB_TABLE_DEVICE_PROCESSES] = cut_device_processes,
	[PLUMB_TABLE_COLLECTIVES] = cut_collectives,
	[PLUMB_TABLE_OBJECTS] = drop_rows,
	[PLUMB_TABLE_OBJECT_RANGES] = drop_rows,
	[PLUMB_TABLE_OBJECT_BINS] = drop_rows,
	[PLUMB_TABLE_TRANSFERS] = drop_rows,
	[PLUMB_TABLE_WINDOWS] = drop_rows,
	[PLUMB_TABLE_WINDOW_STRETCHES] = drop_rows,
	[PLUMB_TABLE_WINDOW_VALUES] = drop_rows,
	[PLUMB_TABLE_WINDOW_VARIANTS] = drop_rows,
	[PLUMB_TABLE_WINDOW_DEVICES] = drop_rows,
	[PLUMB_TABLE_CPU_SAMPLES] = cut_samples,
	[PLUMB_TABLE_WORK] = cut_work,
	[PLUMB_TABLE_SPANS] = cut_spans,
};

static void
amend_run(struct cut *cut, const struct plumb_window_sum *sum)
{
	struct plumb_profile *to = cut->to;

	to->run.start_ns = sum->stretches ? sum->start_ns : PLUMB_UNKNOWN;
	to->run.wall_ns = sum->stretches ? sum->wall_ns : PLUMB_UNKNOWN;
	to->run.overhead_ns = PLUMB_UNKNOWN;
	to->run.analyses = PLUMB_UNKNOWN;
	for (uint32_t i = 0; i < to->processes_count; i++) {
		to->processes[i].overhead_ns = PLUMB_UNKNOWN;
		clip(cut, i, &to->processes[i].start_ns, &to->processes[i].end_ns);
	}
	for (uint32_t i = 0; i < to->tracks_count; i++)
		to->tracks[i].overhead_ns = PLUMB_UNKNOWN;
}

int
plumb_window_cut(const struct plumb_profile *profile, const struct plumb_window_sum *sum,
                 struct plumb_profile *out)
{
	struct cut cut = { .from = profile, .to = out };
	int code = copy_names(&cut);

	if (!code && sum)
		code = find_stretches(&cut, sum);
	for (int t = 0; !code && t < PLUMB_TABLES; t++) {
		if (plumb_row_tables[t].single)
			continue;
		code = sum && cuts[t] ? cuts[t](&cut) : copy_rows(&cut, &plumb_row_tables[t]);
		if (!code && sum && t == PLUMB_TABLE_DEVICES)
			code = cut_devices(&cut);
	}
	if (!code && sum)
		amend_run(&cut, sum);
	free(cut.chosen);
	free(cut.stretches);
	free(cut.peaks);
	plumb_map_free(&cut.uses);
	return code;
}
