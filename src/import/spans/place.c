/* SPDX-License-Identifier: Apache-2.0 */
/* From spans and who is whose parent to contexts, values, tracks and GPU work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "import/spans/spans_private.h"

#define DEPTH_MAX 4096
#define LANES_MAX 256

static int
add_value(struct plumb_spans *spans, uint32_t context, uint32_t metric, uint32_t track,
          int64_t number)
{
	struct plumb_value value = { context, metric, track,          number, 1,
		                     number,  number, (double)number, 0 };
	return plumb_builder_value(plumb_trace_builder(spans->trace), &value);
}

/* ---- processes ---- */

/* Origins that say the same of themselves are one process. */
static int
make_processes(struct plumb_spans *spans)
{
	struct plumb_builder *builder = plumb_trace_builder(spans->trace);
	struct plumb_map seen = { 0 };
	int code = 0;
	for (uint32_t i = 0; i < spans->origins.count && !code; i++) {
		struct plumb_spans_origin *own = &spans->origins.items[i];
		uint64_t hash =
			plumb_hash_mix(plumb_hash_mix((uint64_t)own->service << 32 | own->host,
		                                      (uint64_t)own->pid),
		                       (uint64_t)own->rank);
		struct plumb_map_cursor at;
		uint32_t same = plumb_map_first(&seen, hash, &at);
		for (; same != PLUMB_MAP_NONE; same = plumb_map_next(&seen, &at)) {
			const struct plumb_spans_origin *o = &spans->origins.items[same];
			if (o->service == own->service && o->host == own->host &&
			    o->pid == own->pid && o->rank == own->rank)
				break;
		}
		if (same != PLUMB_MAP_NONE) {
			own->process = spans->origins.items[same].process;
			continue;
		}
		own->process = plumb_trace_process(spans->trace, (int64_t)i);
		if (own->process == PLUMB_NONE || plumb_map_add(&seen, hash, i) < 0) {
			code = PLUMB_ESYSTEM;
			break;
		}
		struct plumb_process *row = plumb_builder_get_process(builder, own->process);
		row->pid = own->pid;
		row->host = own->host;
		row->command = own->command != PLUMB_NONE ? own->command : own->service;
		if (own->rank != PLUMB_UNKNOWN)
			row->rank = own->rank;
	}
	plumb_map_free(&seen);
	return code;
}

static const struct plumb_spans_origin *
origin_of(const struct plumb_spans *spans, uint32_t span)
{
	return &spans->origins.items[spans->rows.items[span].origin];
}

/* ---- parents ---- */

struct call {
	uint64_t key;
	uint32_t span;
};

static int
by_key(const void *x, const void *y)
{
	const struct call *a = x, *b = y;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

/* Correlations are unique within a process, and a trace may be of one of several runs. */
static uint64_t
call_key(const struct plumb_spans *spans, uint32_t span)
{
	const struct plumb_spans_row *row = &spans->rows.items[span];
	uint64_t hash = plumb_hash_mix(row->id.trace[0], row->id.trace[1]);
	return plumb_hash_mix(plumb_hash_mix(hash, origin_of(spans, span)->process),
	                      row->correlation);
}

/* Leaves one call of each number, the innermost; PLUMB_NONE where they do not lie one in the
 * other. */
static uint32_t
choose_calls(const struct plumb_spans *spans, struct call *calls, uint32_t count)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (!kept || calls[kept - 1].key != calls[i].key) {
			calls[kept++] = calls[i];
			continue;
		}
		uint32_t *best = &calls[kept - 1].span;
		if (*best == PLUMB_NONE)
			continue;
		const struct plumb_level_span *x = &spans->times.items[*best];
		const struct plumb_level_span *y = &spans->times.items[calls[i].span];
		if (y->start_ns >= x->start_ns && y->end_ns <= x->end_ns)
			*best = calls[i].span;
		else if (x->start_ns < y->start_ns || x->end_ns > y->end_ns)
			*best = PLUMB_NONE;
	}
	return kept;
}

/* By number alone. */
static int
by_number(const void *x, const void *y)
{
	const struct call *a = x, *b = y;
	return (a->key > b->key) - (a->key < b->key);
}

static int
find_launches(struct plumb_spans *spans)
{
	uint32_t count = 0;
	int64_t several = 0;
	struct call *calls = malloc(((size_t)spans->rows.count + 1) * sizeof *calls);
	if (!calls)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < spans->rows.count; i++)
		if (spans->rows.items[i].correlation && !spans->times.items[i].asynchronous)
			calls[count++] = (struct call){ call_key(spans, i), i };
	if (count)
		qsort(calls, count, sizeof *calls, by_key);
	count = choose_calls(spans, calls, count);
	for (uint32_t i = 0; i < spans->works.count; i++) {
		uint32_t span = spans->works.items[i].span;
		const struct plumb_spans_row *row = &spans->rows.items[span];
		uint32_t launch = plumb_spans_find(spans, &row->cause);
		if (launch == PLUMB_NONE && row->correlation && count) {
			struct call key = { call_key(spans, span), 0 };
			const struct call *call =
				bsearch(&key, calls, count, sizeof *calls, by_number);
			launch = call ? call->span : PLUMB_NONE;
			several += call && launch == PLUMB_NONE;
		}
		spans->times.items[span].launch = launch;
	}
	plumb_trace_count(spans->trace, PLUMB_FATE_AMBIGUOUS,
	                  "GPU work whose correlation several calls have", several);
	free(calls);
	return 0;
}

static bool
is_root(const struct plumb_spans *spans, const struct plumb_spans_id *id)
{
	for (uint32_t i = 0; i < spans->roots.count; i++)
		if (!memcmp(&spans->roots.items[i], id, sizeof *id))
			return true;
	return false;
}

static int
find_parents(struct plumb_spans *spans)
{
	struct plumb_level_counts counts = { 0 };
	int64_t missing = 0;
	for (uint32_t i = 0; i < spans->rows.count; i++) {
		const struct plumb_spans_row *row = &spans->rows.items[i];
		const struct plumb_spans_origin *origin = origin_of(spans, i);
		struct plumb_level_span *time = &spans->times.items[i];
		uint64_t hash = plumb_hash_mix(row->id.trace[0], row->id.trace[1]);
		time->group = plumb_hash_mix(hash, origin->host);
		time->thread = row->thread == PLUMB_UNKNOWN || time->asynchronous
		                       ? 0
		                       : plumb_hash_mix(origin->process, (uint64_t)row->thread) | 1;
		time->given = plumb_spans_find(spans, &row->parent);
		if (time->given == PLUMB_NONE && !time->asynchronous)
			time->given = plumb_spans_find(spans, &row->cause);
		missing += time->given == PLUMB_NONE && row->parent.span &&
		           !is_root(spans, &row->parent);
	}
	int code = find_launches(spans);
	if (!code)
		code = plumb_levels_find(spans->times.items, spans->times.count,
		                         plumb_trace_parents(spans->trace), &counts);
	plumb_trace_count(spans->trace, PLUMB_FATE_AMBIGUOUS,
	                  "spans that are inside several others", counts.ambiguous);
	plumb_trace_count(spans->trace, PLUMB_FATE_UNUSED, "parents that are their own descendants",
	                  counts.circles);
	plumb_trace_count(spans->trace, PLUMB_FATE_UNUSED, "parents that are not in the file",
	                  missing);
	return code;
}

/* ---- contexts ---- */

/* Gives SPAN and those above it their contexts. GPU work has the context that it hangs under. */
static int
place_span(struct plumb_spans *spans, uint32_t span, uint32_t *path, int64_t *deep)
{
	struct plumb_builder *builder = plumb_trace_builder(spans->trace);
	uint32_t length = 0, context = 0, depth = 0;
	for (uint32_t at = span; at != PLUMB_NONE; at = spans->times.items[at].parent) {
		if (spans->rows.items[at].placed) {
			context = spans->rows.items[at].context;
			depth = spans->rows.items[at].depth;
			break;
		}
		path[length++] = at;
	}
	while (length-- > 0) {
		struct plumb_spans_row *row = &spans->rows.items[path[length]];
		row->placed = true;
		row->context = context;
		row->depth = depth;
		if (depth == DEPTH_MAX) {
			++*deep;
		} else if (!spans->times.items[path[length]].asynchronous) {
			context = plumb_builder_context(builder, context, row->frame, 0);
			if (context == PLUMB_NONE)
				return PLUMB_ESYSTEM;
			row->context = context;
			row->depth = ++depth;
		}
	}
	return 0;
}

static int
place_all(struct plumb_spans *spans)
{
	uint32_t *path = malloc(((size_t)spans->rows.count + 1) * sizeof *path);
	int64_t deep = 0;
	int code = path ? 0 : PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < spans->rows.count && !code; i++)
		code = place_span(spans, i, path, &deep);
	if (deep)
		plumb_builder_ledger(plumb_trace_builder(spans->trace), PLUMB_NONE,
		                     PLUMB_SOURCE_SPAN, PLUMB_FATE_TOO_DEEP, PLUMB_NONE, deep);
	free(path);
	return code;
}

/* ---- tracks ---- */

struct begun {
	int64_t start_ns, end_ns;
	uint32_t process, span;
};

static int
by_begin(const void *x, const void *y)
{
	const struct begun *a = x, *b = y;
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

struct lane {
	PLUMB_VEC(int64_t) ends;
	uint32_t track;
};

static uint32_t
lane_track(struct plumb_spans *spans, uint32_t process, uint32_t lane)
{
	struct plumb_builder *builder = plumb_trace_builder(spans->trace);
	/* Numbers that no thread has. */
	uint32_t track = plumb_trace_thread(spans->trace, process, INT64_MIN + 1 + lane);
	char name[32] = "spans";
	if (track == PLUMB_NONE)
		return track;
	if (lane)
		snprintf(name, sizeof name, "spans %u", lane + 1);
	uint32_t text = plumb_builder_text(builder, name);
	plumb_builder_get_track(builder, track)->tid = PLUMB_UNKNOWN;
	plumb_builder_get_track(builder, track)->name = text;
	return track;
}

/* Spans of no known thread lie side by side, on as many tracks as it takes for each to nest. */
static int
lay_out(struct plumb_spans *spans, const struct begun *begun, uint32_t count)
{
	struct lane lanes[LANES_MAX] = { 0 };
	uint32_t used = 0;
	int code = 0;
	for (uint32_t i = 0; i < count && !code; i++) {
		uint32_t lane = 0;
		if (i && begun[i].process != begun[i - 1].process)
			for (; used > 0; used--)
				lanes[used - 1].ends.count = 0;
		for (; lane < used; lane++) {
			struct lane *l = &lanes[lane];
			while (l->ends.count &&
			       l->ends.items[l->ends.count - 1] <= begun[i].start_ns)
				l->ends.count--;
			if (!l->ends.count || l->ends.items[l->ends.count - 1] >= begun[i].end_ns)
				break;
		}
		if (lane == LANES_MAX)
			lane--; /* they overlap */
		if (lane == used) {
			lanes[lane].track = lane_track(spans, begun[i].process, lane);
			used++;
		}
		int64_t *end = plumb_vec_add(&lanes[lane].ends);
		if (!end || lanes[lane].track == PLUMB_NONE)
			code = PLUMB_ESYSTEM;
		else
			*end = begun[i].end_ns;
		spans->rows.items[begun[i].span].track = lanes[lane].track;
	}
	for (uint32_t i = 0; i < LANES_MAX; i++)
		plumb_vec_free(&lanes[i].ends);
	return code;
}

static int
make_tracks(struct plumb_spans *spans)
{
	struct plumb_builder *builder = plumb_trace_builder(spans->trace);
	struct begun *begun = malloc(((size_t)spans->rows.count + 1) * sizeof *begun);
	uint32_t count = 0;
	int code = begun ? 0 : PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < spans->rows.count && !code; i++) {
		struct plumb_spans_row *row = &spans->rows.items[i];
		const struct plumb_level_span *time = &spans->times.items[i];
		uint32_t process = origin_of(spans, i)->process;
		if (time->asynchronous)
			continue;
		if (row->thread == PLUMB_UNKNOWN) {
			begun[count++] = (struct begun){ time->start_ns, time->end_ns, process, i };
			continue;
		}
		row->track = plumb_trace_thread(spans->trace, process, row->thread);
		if (row->track == PLUMB_NONE)
			code = PLUMB_ESYSTEM;
		else if (row->thread_name != PLUMB_NONE)
			plumb_builder_get_track(builder, row->track)->name = row->thread_name;
	}
	if (!code && count) {
		qsort(begun, count, sizeof *begun, by_begin);
		code = lay_out(spans, begun, count);
	}
	free(begun);
	return code;
}

/* ---- values ---- */

static bool
has_time(const struct plumb_spans_row *row)
{
	return row->kind == PLUMB_FRAME_OPERATOR || row->kind == PLUMB_FRAME_RANGE ||
	       row->kind == PLUMB_FRAME_LIBRARY ||
	       (row->kind == PLUMB_FRAME_MODULE && !row->untimed);
}

/* For each span the nearest one above that has a time, PLUMB_NONE where there is none. NULL: no
 * memory. */
static uint32_t *
find_timed(const struct plumb_spans *spans)
{
	uint32_t count = spans->rows.count, *timed = malloc(((size_t)count + 1) * sizeof *timed);
	unsigned char *known = calloc((size_t)count + 1, 1);
	for (uint32_t i = 0; i < count && timed && known; i++) {
		uint32_t at = i, found = PLUMB_NONE;
		while (!known[at]) {
			uint32_t above = spans->times.items[at].parent;
			if (above == PLUMB_NONE || has_time(&spans->rows.items[above])) {
				timed[at] = above;
				known[at] = 1;
				break;
			}
			at = above;
		}
		found = timed[at];
		for (at = i; !known[at]; at = spans->times.items[at].parent) {
			timed[at] = found;
			known[at] = 1;
		}
	}
	if (!known) {
		free(timed);
		timed = NULL;
	}
	free(known);
	return timed;
}

static int
by_parent(const void *x, const void *y)
{
	const struct begun *a = x, *b = y; /* process: the parent */
	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

/* How long something else that has a time was within each span: the union of the nearest such spans
 * below it. */
static int
inner_times(struct plumb_spans *spans, int64_t *inner)
{
	struct begun *begun = malloc(((size_t)spans->rows.count + 1) * sizeof *begun);
	uint32_t count = 0, *timed = find_timed(spans);
	if (!begun || !timed) {
		free(begun);
		free(timed);
		return PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; i < spans->rows.count; i++) {
		const struct plumb_level_span *time = &spans->times.items[i];
		if (timed[i] != PLUMB_NONE && has_time(&spans->rows.items[i]))
			begun[count++] =
				(struct begun){ time->start_ns, time->end_ns, timed[i], i };
	}
	free(timed);
	if (count)
		qsort(begun, count, sizeof *begun, by_parent);
	int64_t until = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_level_span *parent = &spans->times.items[begun[i].process];
		int64_t start = begun[i].start_ns, end = begun[i].end_ns;
		if (!i || begun[i].process != begun[i - 1].process)
			until = parent->start_ns;
		start = start > until ? start : until;
		end = end < parent->end_ns ? end : parent->end_ns;
		if (end > start) {
			inner[begun[i].process] += end - start;
			until = end;
		}
	}
	free(begun);
	return 0;
}

static int
host_values(struct plumb_spans *spans, uint32_t span, int64_t inner)
{
	const struct plumb_spans_row *row = &spans->rows.items[span];
	const struct plumb_level_span *time = &spans->times.items[span];
	struct plumb_builder *builder = plumb_trace_builder(spans->trace);
	int64_t length = time->end_ns - time->start_ns;
	int code = 0;
	if (has_time(row)) {
		code |= add_value(spans, row->context, PLUMB_METRIC_OP_CALLS, row->track, 1);
		code |= add_value(spans, row->context, PLUMB_METRIC_OP_TIME, row->track,
		                  length - inner);
		code |= add_value(spans, row->context, PLUMB_METRIC_OP_DURATION, row->track,
		                  length);
	}
	if (row->kind == PLUMB_FRAME_MODULE)
		code |= add_value(spans, row->context, PLUMB_METRIC_MODULE_CALLS, row->track, 1);
	if (row->kind == PLUMB_FRAME_GPU_API) {
		const char *name = plumb_builder_get_text(
			builder, plumb_builder_get_frame(builder, row->frame)->name);
		if (name && strstr(name, "Synchronize"))
			code |= add_value(spans, row->context, PLUMB_METRIC_HOST_WAIT, row->track,
			                  length);
	}
	return code;
}

static int
give_host(struct plumb_spans *spans)
{
	int64_t *inner = calloc((size_t)spans->rows.count + 1, sizeof *inner);
	int code = inner ? inner_times(spans, inner) : PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < spans->rows.count && !code; i++) {
		const struct plumb_spans_row *row = &spans->rows.items[i];
		const struct plumb_level_span *time = &spans->times.items[i];
		if (time->asynchronous)
			continue;
		code = host_values(spans, i, inner[i]);
		if (!code)
			code = plumb_trace_span(spans->trace, row->track, row->context,
			                        time->start_ns, time->end_ns, row->correlation);
	}
	free(inner);
	return code;
}

/* ---- counters ---- */

/* For each call the one kernel that it started; PLUMB_NONE for others. NULL: no memory. */
static uint32_t *
find_kernels(const struct plumb_spans *spans)
{
	uint32_t *kernels = malloc(((size_t)spans->rows.count + 1) * sizeof *kernels);
	unsigned char *started = calloc((size_t)spans->rows.count + 1, 1);
	for (uint32_t i = 0; kernels && i < spans->rows.count; i++)
		kernels[i] = PLUMB_NONE;
	for (uint32_t i = 0; kernels && started && i < spans->works.count; i++) {
		uint32_t work = spans->works.items[i].span, call = spans->times.items[work].parent;
		if (call == PLUMB_NONE || spans->rows.items[call].kind != PLUMB_FRAME_GPU_API)
			continue;
		kernels[call] = !started[call] && spans->rows.items[work].kind == PLUMB_FRAME_KERNEL
		                        ? work
		                        : PLUMB_NONE;
		started[call] = 1;
	}
	if (!started) {
		free(kernels);
		kernels = NULL;
	}
	free(started);
	return kernels;
}

/* What was counted while a call started one kernel is that kernel's: calls of one place may start
 * several. */
static int
give_numbers(struct plumb_spans *spans)
{
	uint32_t *kernels = spans->numbers.count ? find_kernels(spans) : NULL;
	int code = kernels || !spans->numbers.count ? 0 : PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < spans->numbers.count && !code; i++) {
		const struct plumb_spans_number *n = &spans->numbers.items[i];
		uint32_t span = kernels[n->span] == PLUMB_NONE ? n->span : kernels[n->span];
		const struct plumb_spans_row *row = &spans->rows.items[span];
		uint32_t context = row->context;
		if (spans->times.items[span].asynchronous)
			context = plumb_builder_context(plumb_trace_builder(spans->trace), context,
			                                row->frame, 0);
		if (row->track != PLUMB_NONE && context != PLUMB_NONE)
			code = add_value(spans, context, n->metric, row->track, n->number);
	}
	free(kernels);
	return code;
}

/* ---- GPU work ---- */

static uint32_t
stream_of(struct plumb_spans *spans, const struct plumb_spans_work *work)
{
	struct plumb_builder *builder = plumb_trace_builder(spans->trace);
	uint32_t process = origin_of(spans, work->span)->process;
	const char *uuid =
		work->uuid == PLUMB_NONE ? NULL : plumb_builder_get_text(builder, work->uuid);
	uint32_t device = plumb_trace_device(spans->trace, process, work->device, uuid);
	if (device != PLUMB_NONE && work->model != PLUMB_NONE)
		plumb_builder_get_device(builder, device)->name = work->model;
	return plumb_trace_stream(spans->trace, process, device, work->context, work->stream);
}

/* Gives a call and the work that it started one number. If the file has a reference instead, a
 * number is made. */
static void
join_correlations(struct plumb_spans *spans, uint32_t call, uint32_t work)
{
	uint64_t *from = &spans->rows.items[call].correlation;
	uint64_t *to = &spans->rows.items[work].correlation;
	if (spans->rows.items[call].kind != PLUMB_FRAME_GPU_API)
		return;
	if (!*from)
		*from = *to ? *to : UINT64_C(1) << 62 | call;
	if (!*to)
		*to = *from;
}

/* Calls that started something are launches; what started several is a graph. */
static int
count_launches(struct plumb_spans *spans, const uint32_t *started)
{
	int code = 0;
	for (uint32_t i = 0; i < spans->rows.count && !code; i++) {
		const struct plumb_spans_row *row = &spans->rows.items[i];
		if (started[i] && row->kind == PLUMB_FRAME_GPU_API)
			code = add_value(spans, row->context,
			                 started[i] == 1 ? PLUMB_METRIC_GPU_LAUNCHES
			                                 : PLUMB_METRIC_GPU_REPLAYS,
			                 row->track, 1);
	}
	return code;
}

/* What the file says of several copies at once. */
static int
give_bytes(struct plumb_spans *spans, const struct plumb_spans_work *work)
{
	const struct plumb_spans_row *row = &spans->rows.items[work->span];
	int64_t least, most;
	if (work->all_bytes < 0 || work->all_count <= 0 || work->all_least < 0 ||
	    work->all_most < work->all_least || work->all_deviation < 0 ||
	    row->track == PLUMB_NONE ||
	    __builtin_mul_overflow(work->all_least, work->all_count, &least) ||
	    least > work->all_bytes ||
	    (!__builtin_mul_overflow(work->all_most, work->all_count, &most) &&
	     most < work->all_bytes))
		return 0;
	uint32_t context = plumb_builder_context(plumb_trace_builder(spans->trace), row->context,
	                                         row->frame, 0);
	double deviation = (double)work->all_deviation;
	struct plumb_value bytes = { .context = context,
		                     .metric = PLUMB_METRIC_GPU_COPY_BYTES,
		                     .track = row->track,
		                     .sum = work->all_bytes,
		                     .count = (uint64_t)work->all_count,
		                     .min = work->all_least,
		                     .max = work->all_most,
		                     .mean = (double)work->all_bytes / (double)work->all_count,
		                     .m2 = deviation * deviation * (double)(work->all_count - 1) };
	return context == PLUMB_NONE
	               ? PLUMB_ESYSTEM
	               : plumb_trace_bytes(spans->trace, &bytes, row->kind == PLUMB_FRAME_SET);
}

static int
give_work(struct plumb_spans *spans)
{
	uint32_t *started = calloc((size_t)spans->rows.count + 1, sizeof *started);
	int code = started ? 0 : PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < spans->works.count && !code; i++) {
		struct plumb_spans_work *own = &spans->works.items[i];
		struct plumb_spans_row *row = &spans->rows.items[own->span];
		const struct plumb_level_span *time = &spans->times.items[own->span];
		row->track = stream_of(spans, own);
		struct plumb_trace_work work = {
			.track = row->track,
			.frame = row->frame,
			.start_ns = time->start_ns,
			.end_ns = time->end_ns,
			.correlation = row->correlation,
			.bytes = own->bytes,
			.launch = own->launched ? &own->launch : NULL,
			.collective = PLUMB_NONE,
			.placed = time->parent == PLUMB_NONE ? PLUMB_NONE : row->context,
		};
		if (time->parent != PLUMB_NONE) {
			started[time->parent]++;
			join_correlations(spans, time->parent, own->span);
			work.correlation = row->correlation;
		}
		code = plumb_trace_work(spans->trace, &work);
		if (!code && row->kind != PLUMB_FRAME_KERNEL)
			code = give_bytes(spans, own);
	}
	if (!code)
		code = count_launches(spans, started);
	free(started);
	return code;
}

int
plumb_spans_finish(struct plumb_spans *spans, struct plumb_import_file *file,
                   struct plumb_error *error)
{
	int code = spans->no_memory ? PLUMB_ESYSTEM : 0;
	for (uint32_t i = 0; i < spans->rows.count && !code; i++)
		if (spans->rows.items[i].origin >= spans->origins.count)
			spans->rows.items[i].origin = plumb_spans_origin(
				spans, UINT64_MAX, (struct plumb_slice){ NULL, 0 });
	if (!code && !spans->no_memory)
		code = make_processes(spans);
	if (!code)
		code = find_parents(spans);
	if (!code)
		code = plumb_spans_layers(spans);
	if (!code)
		code = place_all(spans);
	if (!code)
		code = make_tracks(spans);
	if (!code)
		code = give_work(spans);
	if (!code)
		code = give_host(spans);
	if (!code)
		code = give_numbers(spans);
	plumb_trace_count(spans->trace, PLUMB_FATE_BACKWARDS, NULL, spans->backwards);
	plumb_trace_count(spans->trace, PLUMB_FATE_REPEATED, "spans that are in the file twice",
	                  spans->repeated);
	return code ? plumb_fail_memory(error, "for the spans of %s", file->path) : 0;
}
