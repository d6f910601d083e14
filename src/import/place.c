/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the contexts of a file's events. Each thread is swept once, in time, with a stack of what
 * is open; then GPU work is hung under the calls that were met (work.c).
 *
 * A forward operator must be met before the backward work that it caused: threads from which most
 * links go are swept first, and on one thread time sees to it.
 */
#include <string.h>

#include "base/runs.h"
#include "base/search.h"
#include "import/trace_private.h"
#include "model/nesting.h"

#define TOGETHER 256    /* spans that go into the builder at a time */
#define GIVE_BACK 65536 /* the room of so many, a multiple of these */
#define ENGINE "autograd::engine::evaluate_function: "

/* The stack is ordered by the time at which its items close: what closes first is on top. */
struct open {
	int64_t start_ns, end_ns;
	/* Nothing is open for longer than what it is in: two clocks may differ there. */
	int64_t closes_ns;
	int64_t own_ns; /* when nothing else with a time of its own was open above it */
	uint32_t context, flags, kind;
	uint32_t path; /* the context for what begins in it; PLUMB_NONE: something came below it */
	uint32_t shapes; /* of an operator, or PLUMB_NONE */
	uint32_t owner;  /* it, or what has a time of its own below it in the stack; PLUMB_NONE */
	bool fixed;      /* its context does not depend on what is below it */
};

struct sweep {
	struct plumb_trace *trace;
	uint32_t track, process;
	PLUMB_VEC(struct open) stack;
	int64_t now_ns;
	/* Edges that begin here, and that end here, by time; the next ones. */
	const uint32_t *from, *to;
	uint32_t from_count, to_count, from_at, to_at;
	/* Shapes of what begins here, by time; the next ones. */
	struct plumb_trace_shape *shapes;
	uint32_t shape_count, shape_at;
	int64_t straddles, deep;
};

static bool
is_wait(const char *call)
{
	return strstr(call, "Synchronize") && !strstr(call, "StreamWaitEvent");
}

/* ---- a thread ---- */

/* One call with TOP's shapes, which took OWN itself. */
static int
add_shapes(struct sweep *sweep, const struct open *top, int64_t own, uint32_t *near)
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
		.first_ns = top->start_ns,
		.last_ns = top->start_ns,
	};
	return plumb_builder_row_near(sweep->trace->builder, PLUMB_TABLE_VARIANTS, &variant, near) <
	                       0
	               ? plumb_trace_no_memory(sweep->trace)
	               : 0;
}

/* The shapes that the file has for SPAN, or PLUMB_NONE; each is given once. */
static uint32_t
shapes_of(struct sweep *sweep, const struct plumb_trace_span *span)
{
	struct plumb_trace_shape *shapes = sweep->shapes;
	while (sweep->shape_at < sweep->shape_count &&
	       shapes[sweep->shape_at].start_ns < span->start_ns)
		sweep->shape_at++;
	for (uint32_t i = sweep->shape_at;
	     i < sweep->shape_count && shapes[i].start_ns == span->start_ns; i++)
		if (span->state == PLUMB_TRACE_FRAMED && shapes[i].frame == span->frame) {
			shapes[i].frame = PLUMB_NONE;
			return shapes[i].shapes;
		}
	return PLUMB_NONE;
}

/* The time up to NS belongs to the operator or range on top. No moment counts twice, however ranges
 * overlap. */
static void
pass_time(struct sweep *sweep, int64_t ns)
{
	struct open *items = sweep->stack.items;
	uint32_t owner = sweep->stack.count ? items[sweep->stack.count - 1].owner : PLUMB_NONE;
	if (owner != PLUMB_NONE && ns > sweep->now_ns)
		items[owner].own_ns += ns - sweep->now_ns;
	if (!sweep->stack.count || ns > sweep->now_ns)
		sweep->now_ns = ns;
}

static int
close_top(struct sweep *sweep)
{
	struct plumb_trace *trace = sweep->trace;
	pass_time(sweep, sweep->stack.items[sweep->stack.count - 1].closes_ns);
	struct open *top = &sweep->stack.items[--sweep->stack.count];
	bool own = plumb_nesting_has_own(top->kind);
	uint32_t track = sweep->track, context = top->context;
	if (!own && top->kind != PLUMB_FRAME_MODULE)
		return 0;
	struct plumb_trace_near *near = plumb_trace_near(trace, context);
	if (!own)
		return plumb_trace_observe(trace, track, context, PLUMB_METRIC_MODULE_CALLS, 1,
		                           &near->values[0]);
	int code = plumb_trace_observe(trace, track, context, PLUMB_METRIC_OP_CALLS, 1,
	                               &near->values[0]);
	code |= plumb_trace_observe(trace, track, context, PLUMB_METRIC_OP_TIME, top->own_ns,
	                            &near->values[1]);
	code |= plumb_trace_observe(trace, track, context, PLUMB_METRIC_OP_DURATION,
	                            top->end_ns - top->start_ns, &near->values[2]);
	if (top->shapes != PLUMB_NONE)
		code |= add_shapes(sweep, top, top->own_ns, &near->variant);
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

/* The context for what begins in item AT. It changes when something is put below it. */
static uint32_t
path_of(struct sweep *sweep, uint32_t at)
{
	struct plumb_builder *builder = sweep->trace->builder;
	struct open *items = sweep->stack.items;
	uint32_t first = at + 1;
	while (first && items[first - 1].path == PLUMB_NONE)
		first--;
	for (uint32_t i = first; i <= at; i++) {
		uint32_t parent = i ? items[i - 1].path : 0;
		uint32_t frame = plumb_builder_get_context(builder, items[i].context).frame;
		items[i].path = plumb_builder_context(builder, parent, frame, items[i].flags);
		if (items[i].path == PLUMB_NONE)
			return PLUMB_NONE;
	}
	return items[at].path;
}

/* The edges that begin before START (which is about to be opened) get the operator that is open
 * there. */
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
				edge->context = path_of(sweep, i);
				edge->flags = open->flags;
				if (edge->context == PLUMB_NONE)
					return plumb_trace_no_memory(trace);
				break;
			}
		}
	}
	return 0;
}

/* The edge that SPAN is the end of, or NULL. */
static const struct plumb_trace_edge *
edge_of(struct sweep *sweep, const struct plumb_trace_span *span, const char *name)
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
frame_of(const struct plumb_trace *trace, const struct plumb_trace_span *span)
{
	uint32_t frame = span->state == PLUMB_TRACE_FRAMED
	                         ? span->frame
	                         : plumb_builder_get_context(trace->builder, span->context).frame;
	return plumb_builder_get_frame(trace->builder, frame);
}

/* How many of the stack's items stay below SPAN: what closes after it. */
static uint32_t
place_of(const struct sweep *sweep, const struct plumb_trace_span *span, uint32_t kind)
{
	uint32_t count = sweep->stack.count, at = count;
	const struct open *open = sweep->stack.items;
	while (at && plumb_nesting_outlives(span->start_ns, span->end_ns, kind, open[at - 1].end_ns,
	                                    open[at - 1].kind))
		if (count - --at > PLUMB_NESTING_OVERLAPS)
			return count;
	return at;
}

/* Puts NEW into the stack as item AT. */
static int
push_open(struct sweep *sweep, uint32_t at, const struct open *new)
{
	if (!plumb_vec_add(&sweep->stack))
		return plumb_trace_no_memory(sweep->trace);
	struct open *items = sweep->stack.items;
	memmove(items + at + 1, items + at, (sweep->stack.count - 1 - at) * sizeof *items);
	items[at] = *new;
	for (uint32_t i = at; i < sweep->stack.count; i++) {
		items[i].owner = plumb_nesting_has_own(items[i].kind) ? i
		                 : i                                  ? items[i - 1].owner
		                                                      : PLUMB_NONE;
		if (i > at && !items[i].fixed)
			items[i].path = PLUMB_NONE;
	}
	return 0;
}

/* Finds the context of SPAN, of this KIND, as item AT of the stack, and fills in NOW. */
static int
find_context(struct sweep *sweep, struct plumb_trace_span *span, uint32_t at, struct open *now)
{
	struct plumb_trace *trace = sweep->trace;
	const struct plumb_frame *frame = frame_of(trace, span);
	const char *name = plumb_builder_get_text(trace->builder, frame->name);
	uint32_t parent = at ? path_of(sweep, at - 1) : 0;
	now->flags = at ? sweep->stack.items[at - 1].flags : 0;
	const struct plumb_trace_edge *edge = sweep->to_count && frame->kind == PLUMB_FRAME_OPERATOR
	                                              ? edge_of(sweep, span, name ? name : "")
	                                              : NULL;
	if (edge) {
		parent = edge->context;
		now->flags = edge->flags | PLUMB_CONTEXT_BACKWARD;
	}
	bool given = span->state == PLUMB_TRACE_GIVEN;
	now->fixed = edge || given;
	if (parent == PLUMB_NONE)
		return plumb_trace_no_memory(trace);
	now->shapes = PLUMB_NONE;
	if (sweep->stack.count >= PLUMB_NESTING_DEPTH) {
		plumb_trace_put(span, given ? span->context : parent);
		return 0;
	}
	if (sweep->shape_count)
		now->shapes = shapes_of(sweep, span);
	plumb_trace_put(span, given ? span->context
	                            : plumb_builder_context(trace->builder, parent, span->frame,
	                                                    now->flags));
	now->context = now->path = span->context;
	return span->context == PLUMB_NONE ? plumb_trace_no_memory(trace) : 0;
}

/* Calls are asked for by the work that they started. */
static int
note_call(struct sweep *sweep, const struct plumb_trace_span *span, const char *name,
          uint32_t number)
{
	struct plumb_trace *trace = sweep->trace;
	bool waiting = name && is_wait(name);
	if (waiting && plumb_trace_value(trace, sweep->track, span->context, PLUMB_METRIC_HOST_WAIT,
	                                 span->end_ns - span->start_ns) < 0)
		return PLUMB_ESYSTEM;
	return span->correlation
	               ? plumb_trace_call_add(trace, sweep->process, sweep->track, number, waiting)
	               : 0;
}

static int
open_span(struct sweep *sweep, struct plumb_trace_span *span, uint32_t number)
{
	struct plumb_trace *trace = sweep->trace;
	const struct plumb_frame *frame = frame_of(trace, span);
	uint32_t kind = frame->kind, name = frame->name;
	uint32_t at = place_of(sweep, span, kind);
	int64_t closes = at ? sweep->stack.items[at - 1].closes_ns : span->end_ns;
	struct open now = {
		.start_ns = span->start_ns,
		.end_ns = span->end_ns,
		.closes_ns = closes < span->end_ns ? closes : span->end_ns,
		.kind = kind,
	};
	sweep->straddles += span->end_ns - now.closes_ns > PLUMB_NESTING_ROUNDING_NS;
	bool deep = sweep->stack.count >= PLUMB_NESTING_DEPTH;
	if (find_context(sweep, span, at, &now) < 0)
		return PLUMB_ESYSTEM;
	if (deep) {
		sweep->deep++;
		return 0;
	}
	if (push_open(sweep, at, &now) < 0)
		return PLUMB_ESYSTEM;
	return kind == PLUMB_FRAME_GPU_API
	               ? note_call(sweep, span, plumb_builder_get_text(trace->builder, name),
	                           number)
	               : 0;
}

static int
sweep_spans(struct sweep *sweep, struct plumb_trace_span *spans, uint32_t count)
{
	int code = 0;
	for (uint32_t i = 0; i < count && !code; i++) {
		if (sweep->from_count)
			code = leave_edges(sweep, spans[i].start_ns);
		if (!code)
			code = close_until(sweep, spans[i].start_ns);
		pass_time(sweep, spans[i].start_ns);
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
layer_of(const struct plumb_trace *trace, const struct plumb_trace_span *span)
{
	return layers[frame_of(trace, span)->kind];
}

/* Of a thread: before it is swept. */
static bool
swapped_host(const void *x, const void *y, const void *data)
{
	const struct plumb_trace_span *a = x, *b = y;
	if (a->start_ns != b->start_ns)
		return b->start_ns < a->start_ns;
	if (a->end_ns != b->end_ns)
		return b->end_ns > a->end_ns;
	/* A context was made after the one that it is in. */
	if (a->state == PLUMB_TRACE_GIVEN && b->state == PLUMB_TRACE_GIVEN)
		return b->context < a->context;
	return layer_of(data, b) < layer_of(data, a);
}

static bool
swapped_work(const void *x, const void *y, const void *data)
{
	const struct plumb_trace_span *a = x, *b = y;
	(void)data;
	return a->start_ns != b->start_ns ? b->start_ns < a->start_ns : b->end_ns > a->end_ns;
}

static int
sweep_track(struct plumb_trace *trace, struct sweep *sweep, uint32_t track)
{
	struct plumb_trace_span *spans = plumb_trace_spans_of(&trace->spans.items[track]);
	uint32_t count = plumb_trace_spans_count(&trace->spans.items[track]);
	sweep->track = track;
	sweep->process = plumb_builder_get_track(trace->builder, track)->process;
	if (plumb_runs_sort(spans, count, sizeof *spans, swapped_host, trace) < 0)
		return plumb_trace_no_memory(trace);
	return sweep_spans(sweep, spans, count);
}

/* COUNT spans of TRACK go into the builder. */
static int
keep_some(struct plumb_trace *trace, uint32_t track, const struct plumb_trace_span *spans,
          uint32_t count)
{
	struct plumb_span kept[TOGETHER];
	int64_t start = spans->start_ns, end = spans->end_ns;
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_trace_span *s = &spans[i];
		kept[i] = (struct plumb_span){ s->context,     track,    s->start_ns, s->end_ns,
			                       s->correlation, s->bytes, s->ends };
		start = s->start_ns < start ? s->start_ns : start;
		end = s->end_ns > end ? s->end_ns : end;
	}
	plumb_trace_extent(trace, track, start, end);
	int64_t took = plumb_builder_rows(trace->builder, PLUMB_TABLE_SPANS, kept, count);
	if (took < 0)
		return plumb_trace_no_memory(trace);
	trace->spans_left_out += (uint64_t)(count - took);
	return 0;
}

/* All spans go into the builder, track by track, which gives their room back as it goes. */
static int
keep_spans(struct plumb_trace *trace)
{
	uint64_t all = 0;
	for (uint32_t t = 0; t < trace->spans.count; t++)
		all += plumb_trace_spans_count(&trace->spans.items[t]);
	if (plumb_builder_room(trace->builder, PLUMB_TABLE_SPANS, all) < 0)
		return plumb_trace_no_memory(trace);
	for (uint32_t t = 0; t < trace->spans.count; t++) {
		struct plumb_trace_spans *own = &trace->spans.items[t];
		struct plumb_trace_span *spans = plumb_trace_spans_of(own);
		uint32_t count = plumb_trace_spans_count(own);
		if (count &&
		    plumb_builder_get_track(trace->builder, t)->kind == PLUMB_TRACK_STREAM &&
		    plumb_runs_sort(spans, count, sizeof *spans, swapped_work, NULL) < 0)
			return plumb_trace_no_memory(trace);
		for (uint32_t i = 0; i < count; i += TOGETHER) {
			uint32_t some = count - i < TOGETHER ? count - i : TOGETHER;
			if (keep_some(trace, t, spans + i, some) < 0)
				return PLUMB_ESYSTEM;
			if ((i + TOGETHER) % GIVE_BACK == 0)
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
