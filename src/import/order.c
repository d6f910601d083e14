/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans of a thread come in a few ascending runs (what was written together), so they are merged run by
 * run, with a spare copy of the shorter run only: a large trace has no room for a second one of itself.
 */
#include <stdlib.h>

#include "import/trace_private.h"

/* What holds the others when both begin and end together: the outer layer. */
static const unsigned char layers[PLUMB_FRAME_KIND_COUNT] = {
	[PLUMB_FRAME_RANGE] = 1,    [PLUMB_FRAME_PYTHON] = 2,  [PLUMB_FRAME_MODULE] = 2,
	[PLUMB_FRAME_OPERATOR] = 3, [PLUMB_FRAME_LIBRARY] = 4, [PLUMB_FRAME_NATIVE] = 4,
	[PLUMB_FRAME_GPU_API] = 5,
};

static unsigned
layer_of(const struct plumb_trace *trace, const struct plumb_span *span)
{
	return layers[plumb_builder_get_frame(trace->builder, span->context)->kind];
}

/* Must B stand before A, which stood before it? */
static inline bool
swapped(const struct plumb_trace *trace, const struct plumb_span *a, const struct plumb_span *b)
{
	if (a->start_ns != b->start_ns)
		return b->start_ns < a->start_ns;
	if (a->end_ns != b->end_ns)
		return b->end_ns > a->end_ns;
	return layer_of(trace, b) < layer_of(trace, a);
}

/* Of the ascending run at AT the end. */
static uint32_t
run_end(const struct plumb_trace *trace, const struct plumb_span *spans, uint32_t at,
        uint32_t count)
{
	for (at++; at < count && !swapped(trace, &spans[at - 1], &spans[at]); at++)
		;
	return at;
}

/* Two runs, [0, MIDDLE) and [MIDDLE, COUNT), into one. SPARE holds the shorter. */
static void
merge(const struct plumb_trace *trace, struct plumb_span *spans, uint32_t middle, uint32_t count,
      struct plumb_span *spare)
{
	uint32_t right = count - middle;
	if (middle <= right) {
		memcpy(spare, spans, middle * sizeof *spans);
		uint32_t a = 0, b = middle;
		for (uint32_t to = 0; a < middle; to++)
			spans[to] = b < count && swapped(trace, &spare[a], &spans[b]) ? spans[b++]
			                                                              : spare[a++];
		return;
	}
	memcpy(spare, spans + middle, right * sizeof *spans);
	for (uint32_t to = count, a = middle, b = right; b > 0;) {
		bool left = a > 0 && swapped(trace, &spans[a - 1], &spare[b - 1]);
		spans[--to] = left ? spans[--a] : spare[--b];
	}
}

int
plumb_trace_order(struct plumb_trace *trace, struct plumb_span *spans, uint32_t count)
{
	PLUMB_VEC(uint32_t) ends = { 0 };
	struct plumb_span *spare = NULL;
	int code = 0;
	for (uint32_t at = 0; at < count && !code;) {
		uint32_t *end = plumb_vec_add(&ends);
		if (end)
			*end = at = run_end(trace, spans, at, count);
		else
			code = plumb_trace_no_memory(trace);
	}
	if (ends.count > 1 && !code && !(spare = malloc((size_t)(count / 2 + 1) * sizeof *spare)))
		code = plumb_trace_no_memory(trace);
	/* Neighbours in pairs, until one is left. */
	while (ends.count > 1 && !code) {
		uint32_t kept = 0;
		for (uint32_t i = 0, start = 0; i < ends.count; i += 2) {
			uint32_t last = i + 1 < ends.count ? i + 1 : i;
			if (last > i)
				merge(trace, spans + start, ends.items[i] - start,
				      ends.items[last] - start, spare);
			start = ends.items[last];
			ends.items[kept++] = start;
		}
		ends.count = kept;
	}
	free(spare);
	plumb_vec_free(&ends);
	return code;
}
