/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/hta.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/steps/tracks.h"
#include "base/search.h"
#include "base/vec.h"
#include "model/framework/framework.h"
#include "model/intervals.h"
#include "model/launches.h"

enum type { COMMUNICATION, COMPUTATION, NO_COMPUTATION, TYPES };

typedef PLUMB_VEC(struct plumb_interval_ns) intervals; /* in µs */

struct trace {
	const struct plumb_profile *profile;
	const struct plumb_track_index *index;
	uint32_t process;
	int64_t limit; /* launches from here on do not count, µs; INT64_MAX: all do */
	bool only_launched;
	int64_t base_ns; /* what was added to the file's times */
	struct plumb_launches *calls;
	intervals of_type[TYPES], all;
};

/* ---- µs ---- */

/*
 * HTA reads times as doubles of µs, adds durations to them, and rounds. Where times count from 1970
 * a double has steps of a quarter of a µs: what is lost there belongs to its figures, so the same
 * arithmetic is done here. NS has every µs exactly, and a long double keeps all of an int64_t, so
 * that the division gives what the decimal text would.
 */
static double
us_of(long double ns)
{
	return (double)(ns / 1000);
}

/* Of the file's own times. */
static struct plumb_interval_ns
round_interval(long double start_ns, long double end_ns)
{
	double start = us_of(start_ns), length = us_of(end_ns - start_ns);

	return (struct plumb_interval_ns){ (int64_t)ceil(start), (int64_t)floor(start + length) };
}

static struct plumb_interval_ns
rounded_span(const struct trace *trace, const struct plumb_span *span)
{
	long double start = (long double)span->start_ns - trace->base_ns;

	return round_interval(start, start + ((long double)span->end_ns - span->start_ns));
}

/* ---- what a kernel is to it ---- */

static enum type
type_of(const struct plumb_profile *p, uint32_t context)
{
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *name = plumb_text(p, frame->name);
	if (frame->kind != PLUMB_FRAME_KERNEL || !name)
		return NO_COMPUTATION;
	if (!strncmp(name, "nccl", 4) && strstr(name, "Kernel"))
		return COMMUNICATION;
	if (!strncmp(name, "Memset", 6) || strstr(name, "Memcpy") || strstr(name, "Sync") ||
	    !strncmp(name, "dma", 3))
		return NO_COMPUTATION;
	return COMPUTATION;
}

/* ---- the last step ---- */

/* The span from I on that is of the process: I itself, or the first one of its next track; else
 * there are no more. */
static uint32_t
skip_to_own(const struct trace *trace, uint32_t i)
{
	const struct plumb_profile *p = trace->profile;
	uint32_t low, count;
	const uint32_t *tracks =
		plumb_track_group(&trace->index->of_process, trace->process, &count);

	if (i >= p->spans_count || p->tracks[p->spans[i].track].process == trace->process)
		return i;
	low = plumb_search(k, count, tracks[k] < p->spans[i].track);
	while (low < count &&
	       trace->index->first_span[tracks[low]] == trace->index->first_span[tracks[low] + 1])
		low++;
	return low < count ? trace->index->first_span[tracks[low]] : p->spans_count;
}

/* What the file of the process says under KEY, or NULL. */
static const char *
find_fact(const struct trace *trace, const char *key)
{
	const struct plumb_profile *p = trace->profile;

	for (uint32_t i = 0; i < p->environment_count; i++) {
		const struct plumb_environment_row *row = &p->environment[i];
		const char *name = plumb_text(p, row->key);

		if (row->process == trace->process && name && !strcmp(name, key))
			return plumb_text(p, row->value);
	}
	return NULL;
}

static void
extend_step(struct plumb_interval_ns step, int64_t *last_start, int64_t *last_end)
{
	*last_start = step.start > *last_start ? step.start : *last_start;
	*last_end = step.end > *last_end ? step.end : *last_end;
}

/* When launches stop to count. Steps on a GPU, which last longer than their launches, count as
 * well. */
static void
find_limit(struct trace *trace, bool include_last)
{
	const struct plumb_profile *p = trace->profile;
	int64_t last_start = INT64_MIN, last_end = INT64_MIN;
	const char *on_gpu = find_fact(trace, PLUMB_PROFILER_GPU_STEPS);
	long long start, end;
	uint32_t steps = 0, names;

	for (uint32_t i = skip_to_own(trace, 0); i < p->spans_count;
	     i = skip_to_own(trace, i + 1)) {
		const struct plumb_span *span = &p->spans[i];
		const struct plumb_frame *frame = plumb_context_frame(p, span->context);
		const char *name =
			frame->kind == PLUMB_FRAME_RANGE ? plumb_text(p, frame->name) : NULL;
		const char *step = plumb_framework_step(name);
		if (!step || strcmp(name, step) != 0)
			continue;
		steps++;
		extend_step(rounded_span(trace, span), &last_start, &last_end);
	}
	if (on_gpu && sscanf(on_gpu, "%" SCNu32 " %lld %lld", &names, &start, &end) == 3) {
		steps = names;
		extend_step(round_interval(start, end), &last_start, &last_end);
	}
	trace->only_launched = steps > 1;
	trace->limit = steps < 2 ? INT64_MAX : include_last ? last_end + 1 : last_start;
}

/* Was it launched in time? */
static bool
is_counted(const struct trace *trace, const struct plumb_span *work)
{
	uint32_t call;
	if (!trace->only_launched)
		return true;
	/* To HTA all calls of one number started it: the first tells. */
	call = plumb_launch_place(trace->calls, trace->process, work->correlation);
	if (call == PLUMB_NONE)
		return false;
	long double at = (long double)trace->calls->spans[trace->calls->items[call]].start_ns -
	                 trace->base_ns;
	return round_interval(at, at).start < trace->limit;
}

/* ---- sums ---- */

static int
by_start(const void *x, const void *y)
{
	const struct plumb_interval_ns *a = x, *b = y;
	return (a->start > b->start) - (a->start < b->start);
}

/* As its merging does it: what begins after everything before it has ended begins a new interval,
 * which may then have a negative length, and that length is added too. */
static int64_t
merge_intervals(intervals *set)
{
	uint32_t kept = 0;
	int64_t length = 0, end = 0;
	if (set->count)
		qsort(set->items, set->count, sizeof *set->items, by_start);
	for (uint32_t i = 0; i < set->count; i++) {
		struct plumb_interval_ns now = set->items[i];
		bool fresh = !i || now.start > end;
		end = !i || now.end > end ? now.end : end;
		if (fresh)
			set->items[kept++] = now;
		else if (now.end > set->items[kept - 1].end)
			set->items[kept - 1].end = now.end;
	}
	set->count = kept;
	for (uint32_t i = 0; i < kept; i++)
		length += set->items[i].end - set->items[i].start;
	return length;
}

static int
take_span(struct trace *trace, const struct plumb_span *span)
{
	struct plumb_interval_ns us = rounded_span(trace, span);
	struct plumb_interval_ns *all = plumb_vec_add(&trace->all);
	struct plumb_interval_ns *own =
		plumb_vec_add(&trace->of_type[type_of(trace->profile, span->context)]);
	if (!all || !own)
		return PLUMB_ESYSTEM;
	*all = *own = us;
	return 0;
}

static int
sum_up(struct trace *trace, struct plumb_hta *hta)
{
	const struct plumb_profile *p = trace->profile;
	int64_t first = INT64_MAX, last = INT64_MIN, busy, communication;
	for (uint32_t i = skip_to_own(trace, 0); i < p->spans_count;
	     i = skip_to_own(trace, i + 1)) {
		const struct plumb_span *span = &p->spans[i];
		if (p->tracks[span->track].kind != PLUMB_TRACK_STREAM || !is_counted(trace, span))
			continue;
		if (take_span(trace, span) < 0)
			return PLUMB_ESYSTEM;
		struct plumb_interval_ns us = rounded_span(trace, span);
		first = us.start < first ? us.start : first;
		last = us.end > last ? us.end : last;
	}
	if (!trace->all.count)
		return 0;
	busy = merge_intervals(&trace->all);
	communication = merge_intervals(&trace->of_type[COMMUNICATION]);
	hta->rank = p->processes[trace->process].rank;
	hta->kernel_us = last - first;
	hta->idle_us = hta->kernel_us - busy;
	hta->compute_us = merge_intervals(&trace->of_type[COMPUTATION]);
	hta->non_compute_us = hta->kernel_us - hta->compute_us - hta->idle_us;
	int64_t common = plumb_intervals_common(
		trace->of_type[COMMUNICATION].items, trace->of_type[COMMUNICATION].count,
		trace->of_type[COMPUTATION].items, trace->of_type[COMPUTATION].count);
	hta->overlap_percent = communication ? 100.0 * (double)common / (double)communication : NAN;
	return 1;
}

int
plumb_hta_find(const struct plumb_profile *p, bool include_last, struct plumb_hta **items,
               uint32_t *count, struct plumb_error *error)
{
	*count = 0;
	*items = calloc(p->processes_count + 1u, sizeof **items);
	struct plumb_track_index index;
	int code = plumb_track_index_new(p, &index);
	if (!*items)
		code = PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < p->processes_count && code >= 0; i++) {
		struct trace trace = { .profile = p, .index = &index, .process = i };
		const char *base = find_fact(&trace, PLUMB_TRACE_BASE);

		trace.base_ns = base ? strtoll(base, NULL, 10) : 0;
		find_limit(&trace, include_last);
		trace.calls = plumb_track_index_launches(&index);
		code = trace.calls ? 0 : PLUMB_ESYSTEM;
		if (!code)
			code = sum_up(&trace, &(*items)[*count]);
		*count += code == 1;
		for (int t = 0; t < TYPES; t++)
			plumb_vec_free(&trace.of_type[t]);
		plumb_vec_free(&trace.all);
	}
	plumb_track_index_free(&index);
	if (code >= 0 && *count)
		return 0;
	free(*items);
	*items = NULL;
	*count = 0;
	return code < 0 ? plumb_fail_memory(error, NULL)
	                : plumb_fail(error, PLUMB_EEMPTY,
	                             "there are no spans of GPU work to compare with HTA; import a "
	                             "trace, or record with --trace");
}
