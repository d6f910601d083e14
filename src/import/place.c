/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the contexts of a file's events. Each thread is swept once, in time, with a stack of what is open;
 * then GPU work is hung under the calls that were met (work.c).
 *
 * A forward operator must be met before the backward work that it caused: threads from which most links go
 * are swept first, and on one thread time sees to it.
 */
#include <string.h>

#include "base/runs.h"
#include "base/search.h"
#include "import/trace_private.h"

#define DEPTH_MAX 4096
#define GIVE_BACK 65536  /* spans at a time */
#define ROUNDING_NS 1000 /* traces in µs round begin and end apart */
#define ENGINE "autograd::engine::evaluate_function: "

struct open {
	int64_t start_ns, end_ns;
	int64_t closes_ns; /* nothing is open for longer than what it is in: two clocks may differ there */
	int64_t inner_ns; /* of operators within */
	uint32_t context, flags, kind;
	uint32_t shapes; /* of an operator, or PLUMB_NONE */
};

struct sweep {
	struct plumb_trace *trace;
	uint32_t track, process;
	PLUMB_VEC(struct open) stack;
	/* Edges that begin here, and that end here, by time; the next ones. */
	const uint32_t *from, *to;
	uint32_t from_count, to_count, from_at, to_at;
	/* Shapes of what begins here, by time; the next ones. */
	struct plumb_trace_shape *shapes;
	uint32_t shape_count, shape_at;
	int64_t straddles, deep;
};

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

/* One call with TOP's shapes, which took OWN itself. */
static int
add_shapes(struct sweep *sweep, const struct open *top, int64_t own)
{
	struct plumb_variant variant = {
		.context = top->context,
		.track = sweep->track,
		.shapes = top->shapes,
		.grid = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
		.block = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
		.registers = PLUMB_UNKNOWN,
		.static_shared = PLUMB_UNKNOWN,
		.dynamic_shared = PLUMB_UNKNOWN,
		.occupancy = PLUMB_UNKNOWN,
		.count = 1,
		.time = own,
		.min = own,
		.max = own,
	};
	return plumb_builder_variant(sweep->trace->builder, &variant) < 0
	               ? plumb_trace_no_memory(sweep->trace)
	               : 0;
}

/* The shapes that the file has for SPAN, or PLUMB_NONE; each is given once. */
static uint32_t
shapes_of(struct sweep *sweep, const struct plumb_span *span)
{
	struct plumb_trace_shape *shapes = sweep->shapes;
	while (sweep->shape_at < sweep->shape_count &&
	       shapes[sweep->shape_at].start_ns < span->start_ns)
		sweep->shape_at++;
	for (uint32_t i = sweep->shape_at;
	     i < sweep->shape_count && shapes[i].start_ns == span->start_ns; i++)
		if (shapes[i].frame == span->context) {
			shapes[i].frame = PLUMB_NONE;
			return shapes[i].shapes;
		}
	return PLUMB_NONE;
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
		code = plumb_trace_value(trace, sweep->track, top->context, PLUMB_METRIC_OP_CALLS,
		                         1);
		code |= plumb_trace_value(trace, sweep->track, top->context, PLUMB_METRIC_OP_TIME,
		                          own);
		code |= plumb_trace_value(trace, sweep->track, top->context,
		                          PLUMB_METRIC_OP_DURATION, length);
		if (top->shapes != PLUMB_NONE)
			code |= add_shapes(sweep, top, own);
		for (uint32_t i = sweep->stack.count; i-- > 0;)
			if (has_own_time(sweep->stack.items[i].kind)) {
				sweep->stack.items[i].inner_ns += length;
				break;
			}
	} else if (top->kind == PLUMB_FRAME_MODULE) {
		code = plumb_trace_value(trace, sweep->track, top->context,
		                         PLUMB_METRIC_MODULE_CALLS, 1);
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
	uint32_t shapes = sweep->shape_count ? shapes_of(sweep, span) : PLUMB_NONE;
	if (span->context & PLUMB_TRACE_IS_CONTEXT)
		span->context &= ~PLUMB_TRACE_IS_CONTEXT;
	else
		span->context = plumb_builder_context(trace->builder, parent, span->context, flags);
	struct open *now = span->context == PLUMB_NONE ? NULL : plumb_vec_add(&sweep->stack);
	if (!now)
		return plumb_trace_no_memory(trace);
	*now = (struct open){ span->start_ns, span->end_ns, closes, 0,
		              span->context,  flags,        kind,   shapes };
	if (kind != PLUMB_FRAME_GPU_API)
		return 0;
	bool waiting = name && waits(name);
	if (waiting && plumb_trace_value(trace, sweep->track, span->context, PLUMB_METRIC_HOST_WAIT,
	                                 span->end_ns - span->start_ns) < 0)
		return PLUMB_ESYSTEM;
	return span->correlation
	               ? plumb_trace_call_add(trace, sweep->process, sweep->track, at, waiting)
	               : 0;
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

static bool
swapped_shapes(const void *x, const void *y, const void *data)
{
	const struct plumb_trace_shape *a = x, *b = y;
	(void)data;
	return a->track != b->track ? b->track < a->track : b->start_ns < a->start_ns;
}

/* Those of TRACK, which follow those of the tracks before it. */
static void
take_shapes(struct sweep *sweep, uint32_t track)
{
	struct plumb_trace_shape *all = sweep->trace->shapes.items;
	uint32_t low = plumb_search(i, sweep->trace->shapes.count, all[i].track < track), end;
	for (end = low; end < sweep->trace->shapes.count && all[end].track == track; end++)
		;
	sweep->shapes = end > low ? all + low : NULL;
	sweep->shape_count = end - low;
	sweep->shape_at = 0;
}

static int
place_hosts(struct plumb_trace *trace)
{
	struct sweep sweep = { .trace = trace };
	struct plumb_trace_edges edges;
	int code = plumb_trace_edges_order(trace, &edges);
	if (!code && plumb_runs_sort(trace->shapes.items, trace->shapes.count,
	                             sizeof *trace->shapes.items, swapped_shapes, NULL) < 0)
		code = plumb_trace_no_memory(trace);
	for (uint32_t i = 0; i < trace->spans.count && !code; i++) {
		uint32_t track = edges.turns[i].track;
		if (!plumb_trace_spans_count(&trace->spans.items[track]))
			continue;
		sweep.from_at = sweep.to_at = 0;
		sweep.from_count = plumb_trace_edges_from(&edges, track, &sweep.from);
		sweep.to_count = plumb_trace_edges_to(&edges, track, &sweep.to);
		take_shapes(&sweep, track);
		code = sweep_track(trace, &sweep, track);
	}
	plumb_trace_ledger(trace, PLUMB_NONE, PLUMB_SOURCE_SPAN, PLUMB_FATE_STRADDLES,
	                   sweep.straddles);
	plumb_trace_ledger(trace, PLUMB_NONE, PLUMB_SOURCE_SPAN, PLUMB_FATE_TOO_DEEP, sweep.deep);
	plumb_vec_free(&sweep.stack);
	plumb_trace_edges_free(&edges);
	plumb_vec_free(&trace->shapes);
	return code;
}

int
plumb_trace_place_all(struct plumb_trace *trace)
{
	int code = place_hosts(trace);
	if (!code)
		code = plumb_trace_place_work(trace);
	return code ? code : keep_spans(trace);
}
