/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the contexts of a file's events. Each thread is swept once, in time, with a stack of what is open;
 * then GPU work is hung under the calls that were met.
 *
 * A forward operator must be met before the backward work that it caused: threads from which most links go
 * are swept first, and on one thread time sees to it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/runs.h"
#include "import/trace_private.h"
#include "model/collective.h"

#define DEPTH_MAX 4096
#define GIVE_BACK 65536  /* spans at a time */
#define ROUNDING_NS 1000 /* traces in µs round begin and end apart */
#define ENGINE "autograd::engine::evaluate_function: "

struct open {
	int64_t start_ns, end_ns;
	int64_t closes_ns; /* nothing is open for longer than what it is in: two clocks may differ there */
	int64_t inner_ns; /* of operators within */
	uint32_t context, flags, kind;
};

struct sweep {
	struct plumb_trace *trace;
	uint32_t track, process;
	PLUMB_VEC(struct open) stack;
	/* Edges that begin here, and that end here, by time; the next ones. */
	uint32_t *from, *to;
	uint32_t from_count, to_count, from_at, to_at;
	int64_t straddles, deep;
};

static int
add_value(struct plumb_trace *trace, uint32_t context, uint32_t metric, uint32_t track,
          int64_t number)
{
	struct plumb_value value = { context, metric, track,          number, 1,
		                     number,  number, (double)number, 0 };
	return plumb_builder_value(trace->builder, &value) < 0 ? plumb_trace_no_memory(trace) : 0;
}

/* ---- calls ---- */

static uint64_t
call_hash(uint64_t correlation)
{
	return plumb_hash_mix(correlation, 0);
}

static const struct plumb_span *
span_of(const struct plumb_trace *trace, const struct plumb_trace_call *call)
{
	return plumb_trace_spans_of(&trace->spans.items[call->track]) + call->span;
}

static uint32_t
process_of(const struct plumb_trace *trace, uint32_t track)
{
	return plumb_builder_get_track(trace->builder, track)->process;
}

/* OTHERS: of another process, if only one has it. */
static struct plumb_trace_call *
call_find(struct plumb_trace *trace, uint32_t process, uint64_t correlation, bool others)
{
	struct plumb_map_cursor at;
	struct plumb_trace_call *other = NULL;
	bool several = false;
	for (uint32_t i = plumb_map_first(&trace->call_map, call_hash(correlation), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&trace->call_map, &at)) {
		struct plumb_trace_call *call = &trace->calls.items[i];
		if (span_of(trace, call)->correlation != correlation)
			continue;
		if (process_of(trace, call->track) == process)
			return call;
		several = other != NULL;
		other = call;
	}
	return others && !several ? other : NULL;
}

/* A runtime call and the driver call within it share a number: the inner one counts. */
static int
call_add(struct plumb_trace *trace, uint32_t process, uint32_t track, uint32_t at)
{
	const struct plumb_span *span = plumb_trace_spans_of(&trace->spans.items[track]) + at;
	struct plumb_trace_call *call = call_find(trace, process, span->correlation, false);
	const struct plumb_span *outer = call ? span_of(trace, call) : NULL;
	if (outer && (span->start_ns < outer->start_ns || span->start_ns >= outer->end_ns)) {
		plumb_trace_count(trace, PLUMB_FATE_AMBIGUOUS, "calls with the number of another",
		                  1);
		return 0;
	}
	if (!call && (!(call = plumb_vec_add(&trace->calls)) ||
	              plumb_map_add(&trace->call_map, call_hash(span->correlation),
	                            trace->calls.count - 1) < 0))
		return plumb_trace_no_memory(trace);
	*call = (struct plumb_trace_call){ track, at, 0 };
	return 0;
}

static bool
waits(const char *call)
{
	return strstr(call, "Synchronize") && !strstr(call, "StreamWaitEvent");
}

/* ---- a thread ---- */

/* Operators and ranges have the time that those within them have not. */
static bool
has_own_time(uint32_t kind)
{
	return kind == PLUMB_FRAME_OPERATOR || kind == PLUMB_FRAME_RANGE;
}

static int
close_top(struct sweep *sweep)
{
	struct plumb_trace *trace = sweep->trace;
	struct open *top = &sweep->stack.items[--sweep->stack.count];
	int64_t length = top->end_ns - top->start_ns;
	int code = 0;
	if (has_own_time(top->kind)) {
		int64_t own = top->inner_ns < length ? length - top->inner_ns : 0;
		code = add_value(trace, top->context, PLUMB_METRIC_OP_CALLS, sweep->track, 1);
		code |= add_value(trace, top->context, PLUMB_METRIC_OP_TIME, sweep->track, own);
		code |= add_value(trace, top->context, PLUMB_METRIC_OP_DURATION, sweep->track,
		                  length);
		for (uint32_t i = sweep->stack.count; i-- > 0;)
			if (has_own_time(sweep->stack.items[i].kind)) {
				sweep->stack.items[i].inner_ns += length;
				break;
			}
	} else if (top->kind == PLUMB_FRAME_MODULE) {
		code = add_value(trace, top->context, PLUMB_METRIC_MODULE_CALLS, sweep->track, 1);
	}
	return code;
}

/* Everything that is over when something begins at START. */
static int
close_until(struct sweep *sweep, int64_t start)
{
	int code = 0;
	while (sweep->stack.count && !code &&
	       sweep->stack.items[sweep->stack.count - 1].closes_ns <= start)
		code = close_top(sweep);
	return code;
}

/* The edges that begin before START (which is about to be opened) get the operator that is open there. */
static int
leave_edges(struct sweep *sweep, int64_t start)
{
	struct plumb_trace *trace = sweep->trace;
	while (sweep->from_at < sweep->from_count) {
		struct plumb_trace_edge *edge = &trace->edges.items[sweep->from[sweep->from_at]];
		if (edge->from_ns >= start)
			break;
		sweep->from_at++;
		for (uint32_t i = sweep->stack.count; i-- > 0;) {
			const struct open *open = &sweep->stack.items[i];
			if (open->kind == PLUMB_FRAME_OPERATOR && open->end_ns >= edge->from_ns) {
				edge->context = open->context;
				edge->flags = open->flags;
				break;
			}
		}
	}
	return 0;
}

/* The edge that SPAN is the end of, or NULL. */
static const struct plumb_trace_edge *
edge_of(struct sweep *sweep, const struct plumb_span *span, const char *name)
{
	struct plumb_trace *trace = sweep->trace;
	const struct plumb_trace_edge *edge = NULL;
	while (sweep->to_at < sweep->to_count &&
	       trace->edges.items[sweep->to[sweep->to_at]].to_ns < span->start_ns)
		sweep->to_at++;
	if (sweep->to_at == sweep->to_count)
		return NULL;
	edge = &trace->edges.items[sweep->to[sweep->to_at]];
	/* What the engine does around a backward operator is that one's too. */
	bool engine = !strncmp(name, ENGINE, strlen(ENGINE)) && edge->to_ns < span->end_ns;
	if (edge->to_ns != span->start_ns && !engine)
		return NULL;
	sweep->to_at++;
	return edge->context == PLUMB_NONE ? NULL : edge;
}

static const struct plumb_frame *
frame_of(const struct plumb_trace *trace, const struct plumb_span *span)
{
	uint32_t frame = span->context;
	if (frame & PLUMB_TRACE_IS_CONTEXT)
		frame = plumb_builder_get_context(trace->builder, frame & ~PLUMB_TRACE_IS_CONTEXT)
		                .frame;
	return plumb_builder_get_frame(trace->builder, frame);
}

static int
open_span(struct sweep *sweep, struct plumb_span *span, uint32_t at)
{
	struct plumb_trace *trace = sweep->trace;
	const struct plumb_frame *frame = frame_of(trace, span);
	const char *name = plumb_builder_get_text(trace->builder, frame->name);
	const struct open *top =
		sweep->stack.count ? &sweep->stack.items[sweep->stack.count - 1] : NULL;
	uint32_t parent = top ? top->context : 0, flags = top ? top->flags : 0;
	int64_t closes = top && top->closes_ns < span->end_ns ? top->closes_ns : span->end_ns;
	sweep->straddles += span->end_ns - closes > ROUNDING_NS;
	const struct plumb_trace_edge *edge = sweep->to_count && frame->kind == PLUMB_FRAME_OPERATOR
	                                              ? edge_of(sweep, span, name ? name : "")
	                                              : NULL;
	if (edge) {
		parent = edge->context;
		flags = edge->flags | PLUMB_CONTEXT_BACKWARD;
	}
	uint32_t kind = frame->kind;
	if (sweep->stack.count >= DEPTH_MAX) {
		sweep->deep++;
		span->context = span->context & PLUMB_TRACE_IS_CONTEXT
		                        ? span->context & ~PLUMB_TRACE_IS_CONTEXT
		                        : parent;
		return 0;
	}
	if (span->context & PLUMB_TRACE_IS_CONTEXT)
		span->context &= ~PLUMB_TRACE_IS_CONTEXT;
	else
		span->context = plumb_builder_context(trace->builder, parent, span->context, flags);
	struct open *now = span->context == PLUMB_NONE ? NULL : plumb_vec_add(&sweep->stack);
	if (!now)
		return plumb_trace_no_memory(trace);
	*now = (struct open){ span->start_ns, span->end_ns, closes, 0, span->context, flags, kind };
	if (kind != PLUMB_FRAME_GPU_API)
		return 0;
	if (name && waits(name) &&
	    add_value(trace, span->context, PLUMB_METRIC_HOST_WAIT, sweep->track,
	              span->end_ns - span->start_ns) < 0)
		return PLUMB_ESYSTEM;
	return span->correlation ? call_add(trace, sweep->process, sweep->track, at) : 0;
}

static int
sweep_spans(struct sweep *sweep, struct plumb_span *spans, uint32_t count)
{
	int code = 0;
	for (uint32_t i = 0; i < count && !code; i++) {
		if (sweep->from_count)
			code = leave_edges(sweep, spans[i].start_ns);
		if (!code)
			code = close_until(sweep, spans[i].start_ns);
		if (!code)
			code = open_span(sweep, &spans[i], i);
	}
	if (!code && sweep->from_count)
		code = leave_edges(sweep, INT64_MAX);
	while (sweep->stack.count && !code)
		code = close_top(sweep);
	return code;
}

/* ---- the order of a track ---- */

/* What holds the others when both begin and end together: the outer layer. */
static const unsigned char layers[PLUMB_FRAME_KIND_COUNT] = {
	[PLUMB_FRAME_RANGE] = 1,    [PLUMB_FRAME_PYTHON] = 2,  [PLUMB_FRAME_MODULE] = 2,
	[PLUMB_FRAME_OPERATOR] = 3, [PLUMB_FRAME_LIBRARY] = 4, [PLUMB_FRAME_NATIVE] = 4,
	[PLUMB_FRAME_GPU_API] = 5,
};

static unsigned
layer_of(const struct plumb_trace *trace, const struct plumb_span *span)
{
	return layers[frame_of(trace, span)->kind];
}

/* Of a thread: before it is swept. */
static bool
swapped_host(const void *x, const void *y, const void *data)
{
	const struct plumb_span *a = x, *b = y;
	if (a->start_ns != b->start_ns)
		return b->start_ns < a->start_ns;
	if (a->end_ns != b->end_ns)
		return b->end_ns > a->end_ns;
	/* A context was made after the one that it is in. */
	if (a->context & b->context & PLUMB_TRACE_IS_CONTEXT)
		return b->context < a->context;
	return layer_of(data, b) < layer_of(data, a);
}

static bool
swapped_work(const void *x, const void *y, const void *data)
{
	const struct plumb_span *a = x, *b = y;
	(void)data;
	return a->start_ns != b->start_ns ? b->start_ns < a->start_ns : b->end_ns > a->end_ns;
}

static int
sweep_track(struct plumb_trace *trace, struct sweep *sweep, uint32_t track)
{
	struct plumb_span *spans = plumb_trace_spans_of(&trace->spans.items[track]);
	uint32_t count = plumb_trace_spans_count(&trace->spans.items[track]);
	sweep->track = track;
	sweep->process = plumb_builder_get_track(trace->builder, track)->process;
	if (plumb_runs_sort(spans, count, sizeof *spans, swapped_host, trace) < 0)
		return plumb_trace_no_memory(trace);
	return sweep_spans(sweep, spans, count);
}

/* All spans go into the builder, track by track, which gives their room back as it goes. */
static int
keep_spans(struct plumb_trace *trace)
{
	for (uint32_t t = 0; t < trace->spans.count; t++) {
		struct plumb_trace_spans *own = &trace->spans.items[t];
		struct plumb_span *spans = plumb_trace_spans_of(own);
		uint32_t count = plumb_trace_spans_count(own);
		if (count &&
		    plumb_builder_get_track(trace->builder, t)->kind == PLUMB_TRACK_STREAM &&
		    plumb_runs_sort(spans, count, sizeof *spans, swapped_work, NULL) < 0)
			return plumb_trace_no_memory(trace);
		for (uint32_t i = 0; i < count; i++) {
			plumb_trace_extent(trace, &spans[i]);
			int code = plumb_builder_span(trace->builder, &spans[i]);
			if (code < 0)
				return plumb_trace_no_memory(trace);
			trace->spans_left_out += code == 1;
			if (i % GIVE_BACK == GIVE_BACK - 1)
				plumb_pages_drop(&own->pages, (size_t)i * sizeof *spans);
		}
		plumb_pages_free(&own->pages);
	}
	return 0;
}

/* ---- edges ---- */

static const struct plumb_trace_edge *sorted_edges; /* qsort has no room for it */

static int
by_from(const void *x, const void *y)
{
	const struct plumb_trace_edge *a = &sorted_edges[*(const uint32_t *)x];
	const struct plumb_trace_edge *b = &sorted_edges[*(const uint32_t *)y];
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

static int
by_to(const void *x, const void *y)
{
	const struct plumb_trace_edge *a = &sorted_edges[*(const uint32_t *)x];
	const struct plumb_trace_edge *b = &sorted_edges[*(const uint32_t *)y];
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return (a->to_ns > b->to_ns) - (a->to_ns < b->to_ns);
}

/* Tracks in the order in which they are swept: the most edges first. */
struct turn {
	uint32_t track, edges;
};

static int
by_edges(const void *x, const void *y)
{
	const struct turn *a = x, *b = y;
	if (a->edges != b->edges)
		return a->edges > b->edges ? -1 : 1;
	return (a->track > b->track) - (a->track < b->track);
}

/* [first, end) of the COUNT at ORDER that belong to TRACK. */
static uint32_t
part_of(const struct plumb_trace *trace, const uint32_t *order, uint32_t track, bool to,
        uint32_t *first)
{
	uint32_t count = trace->edges.count, low = 0, high = count, end;
	const struct plumb_trace_edge *edges = trace->edges.items;
#define TRACK_OF(i) (to ? edges[order[i]].to : edges[order[i]].from)
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (TRACK_OF(middle) < track)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < count && TRACK_OF(end) == track; end++)
		;
#undef TRACK_OF
	*first = low;
	return end - low;
}

static int
place_hosts(struct plumb_trace *trace)
{
	uint32_t edges = trace->edges.count, tracks = trace->spans.count;
	uint32_t *from = malloc((edges + 1) * sizeof *from), *to = malloc((edges + 1) * sizeof *to);
	struct turn *turns = calloc(tracks + 1, sizeof *turns);
	struct sweep sweep = { .trace = trace };
	int code = from && to && turns ? 0 : plumb_trace_no_memory(trace);
	for (uint32_t i = 0; i < edges && !code; i++) {
		from[i] = to[i] = i;
		if (trace->edges.items[i].from < tracks)
			turns[trace->edges.items[i].from].edges++;
	}
	for (uint32_t i = 0; i < tracks && !code; i++)
		turns[i].track = i;
	if (!code) {
		sorted_edges = trace->edges.items;
		qsort(from, edges, sizeof *from, by_from);
		qsort(to, edges, sizeof *to, by_to);
		qsort(turns, tracks, sizeof *turns, by_edges);
	}
	for (uint32_t i = 0; i < tracks && !code; i++) {
		uint32_t track = turns[i].track, first;
		if (!plumb_trace_spans_count(&trace->spans.items[track]))
			continue;
		sweep.from_at = sweep.to_at = 0;
		sweep.from_count = part_of(trace, from, track, false, &first);
		sweep.from = from + first;
		sweep.to_count = part_of(trace, to, track, true, &first);
		sweep.to = to + first;
		code = sweep_track(trace, &sweep, track);
	}
	plumb_trace_ledger(trace, PLUMB_NONE, PLUMB_SOURCE_SPAN, PLUMB_FATE_STRADDLES,
	                   sweep.straddles);
	plumb_trace_ledger(trace, PLUMB_NONE, PLUMB_SOURCE_SPAN, PLUMB_FATE_TOO_DEEP, sweep.deep);
	plumb_vec_free(&sweep.stack);
	free(from);
	free(to);
	free(turns);
	return code;
}

/* ---- GPU work ---- */

/* Under PARENT the operation of a communication library that KERNEL is of, else PARENT. */
static uint32_t
collective_of(struct plumb_trace *trace, uint32_t parent, const struct plumb_trace_item *item)
{
	const struct plumb_frame *kernel =
		plumb_builder_get_frame(trace->builder, item->span.context);
	const char *text = plumb_builder_get_text(trace->builder, kernel->name);
	const char *known = text ? plumb_collective_name(text) : NULL;
	uint32_t name = item->collective;
	if (known && (name == PLUMB_NONE || strcmp(known, "Generic")))
		name = plumb_builder_text(trace->builder, known);
	if (name == PLUMB_NONE)
		return parent;
	uint32_t frame =
		plumb_builder_frame(trace->builder, PLUMB_FRAME_COLLECTIVE, name, PLUMB_NONE, 0);
	return plumb_builder_context(trace->builder, parent, frame, 0);
}

static int
launch_values(struct plumb_trace *trace, const struct plumb_trace_item *item)
{
	uint32_t context = item->span.context, track = item->span.track;
	int64_t length = item->span.end_ns - item->span.start_ns, blocks;
	if (item->launch == PLUMB_NONE)
		return 0;
	const struct plumb_trace_launch *l = &trace->launches.items[item->launch];
	struct plumb_variant variant = {
		.context = context,
		.track = track,
		.shapes = PLUMB_NONE,
		.grid = { l->grid[0], l->grid[1], l->grid[2] },
		.block = { l->block[0], l->block[1], l->block[2] },
		.registers = l->registers,
		.static_shared = l->static_shared,
		.dynamic_shared = l->dynamic_shared,
		.occupancy = l->occupancy,
		.count = 1,
		.time = length,
		.min = length,
		.max = length,
	};
	int code = plumb_builder_variant(trace->builder, &variant) < 0
	                   ? plumb_trace_no_memory(trace)
	                   : 0;
	if (l->grid[0] != PLUMB_UNKNOWN &&
	    !__builtin_mul_overflow(l->grid[0], l->grid[1], &blocks) &&
	    !__builtin_mul_overflow(blocks, l->grid[2], &blocks))
		code |= add_value(trace, context, PLUMB_METRIC_GPU_BLOCKS, track, blocks);
	if (l->registers != PLUMB_UNKNOWN)
		code |= add_value(trace, context, PLUMB_METRIC_GPU_REGISTERS, track, l->registers);
	if (l->static_shared != PLUMB_UNKNOWN && l->dynamic_shared != PLUMB_UNKNOWN)
		code |= add_value(trace, context, PLUMB_METRIC_GPU_SHARED_BYTES, track,
		                  l->static_shared + l->dynamic_shared);
	else if (l->shared != PLUMB_UNKNOWN)
		code |= add_value(trace, context, PLUMB_METRIC_GPU_SHARED_BYTES, track, l->shared);
	if (l->occupancy != PLUMB_UNKNOWN)
		code |= add_value(trace, context, PLUMB_METRIC_GPU_OCCUPANCY, track, l->occupancy);
	return code;
}

/* A file of several processes whose GPU events name none: it is on that process's device and stream. */
static int
move_to(struct plumb_trace *trace, struct plumb_trace_item *item, uint32_t process)
{
	struct plumb_track old = *plumb_builder_get_track(trace->builder, item->span.track);
	int64_t ordinal = plumb_builder_get_device(trace->builder, old.device)->ordinal;
	uint32_t device = plumb_trace_device(trace, process, ordinal, NULL);
	uint32_t track = plumb_trace_stream(trace, process, device, old.gpu_context, old.stream);
	if (track == PLUMB_NONE)
		return plumb_trace_no_memory(trace);
	item->span.track = track;
	return 0;
}

static int
place_work(struct plumb_trace *trace, struct plumb_trace_item *item)
{
	struct plumb_builder *builder = trace->builder;
	struct plumb_track *track = plumb_builder_get_track(builder, item->span.track);
	uint32_t kind = plumb_builder_get_frame(builder, item->span.context)->kind;
	uint32_t source = kind == PLUMB_FRAME_KERNEL ? PLUMB_SOURCE_KERNEL
	                  : kind == PLUMB_FRAME_COPY ? PLUMB_SOURCE_COPY
	                                             : PLUMB_SOURCE_SET;
	struct plumb_trace_call *call =
		(item->placed == PLUMB_NONE || item->whole) && item->span.correlation
			? call_find(trace, track->process, item->span.correlation, !item->here)
			: NULL;
	uint32_t parent = item->placed != PLUMB_NONE ? item->placed
	                  : call                     ? span_of(trace, call)->context
	                                             : 0;
	bool matched = call || item->placed != PLUMB_NONE;
	if (call && process_of(trace, call->track) != track->process) {
		if (move_to(trace, item, process_of(trace, call->track)) < 0)
			return PLUMB_ESYSTEM;
		track = plumb_builder_get_track(builder, item->span.track);
	}
	if (call)
		call->works++;
	plumb_trace_ledger(trace, track->process, source, PLUMB_FATE_RECEIVED, 1);
	plumb_trace_ledger(trace, track->process, source,
	                   matched ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_UNMATCHED, 1);
	plumb_trace_add_work(trace, item, kind);
	for (unsigned i = 0; i < PLUMB_TRACE_INNER && !item->whole; i++)
		if (item->inner[i])
			parent = plumb_builder_context(builder, parent, item->inner[i], 0);
	if (kind == PLUMB_FRAME_KERNEL && !item->whole)
		parent = collective_of(trace, parent, item);
	item->span.context =
		item->whole ? item->placed
			    : plumb_builder_context(builder, parent, item->span.context, 0);
	if (item->span.context == PLUMB_NONE)
		return plumb_trace_no_memory(trace);
	int64_t length = item->span.end_ns - item->span.start_ns;
	int code = add_value(trace, item->span.context,
	                     kind == PLUMB_FRAME_KERNEL ? PLUMB_METRIC_GPU_TIME
	                                                : PLUMB_METRIC_GPU_COPY_TIME,
	                     item->span.track, length);
	if (item->bytes != PLUMB_UNKNOWN && kind != PLUMB_FRAME_KERNEL)
		code |= add_value(trace, item->span.context, PLUMB_METRIC_GPU_COPY_BYTES,
		                  item->span.track, item->bytes);
	if (kind == PLUMB_FRAME_KERNEL)
		code |= launch_values(trace, item);
	return code | plumb_trace_add_span(trace, &item->span);
}

/* Calls that started something are launches; one that started several is a graph's. */
static int
count_launches(struct plumb_trace *trace)
{
	int code = 0;
	for (uint32_t i = 0; i < trace->calls.count && !code; i++) {
		const struct plumb_trace_call *call = &trace->calls.items[i];
		if (call->works)
			code = add_value(trace, span_of(trace, call)->context,
			                 call->works == 1 ? PLUMB_METRIC_GPU_LAUNCHES
			                                  : PLUMB_METRIC_GPU_REPLAYS,
			                 call->track, 1);
	}
	return code;
}

int
plumb_trace_place_all(struct plumb_trace *trace)
{
	int code = place_hosts(trace);
	for (uint32_t i = 0; i < trace->works.count && !code; i++)
		code = place_work(trace, &trace->works.items[i]);
	plumb_vec_free(&trace->works);
	if (!code)
		code = count_launches(trace);
	plumb_vec_free(&trace->calls);
	plumb_map_free(&trace->call_map);
	return code ? code : keep_spans(trace);
}
