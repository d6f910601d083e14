/* SPDX-License-Identifier: Apache-2.0 */
/* Which edges leave a thread and which arrive, in time; and which threads come first. */
#include <stdlib.h>

#include "import/trace_private.h"

#include "base/search.h"

static int
by_from(const void *x, const void *y, void *data)
{
	const struct plumb_trace_edge *edges = data;
	const struct plumb_trace_edge *a = &edges[*(const uint32_t *)x];
	const struct plumb_trace_edge *b = &edges[*(const uint32_t *)y];
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return (a->from_ns > b->from_ns) - (a->from_ns < b->from_ns);
}

static int
by_to(const void *x, const void *y, void *data)
{
	const struct plumb_trace_edge *edges = data;
	const struct plumb_trace_edge *a = &edges[*(const uint32_t *)x];
	const struct plumb_trace_edge *b = &edges[*(const uint32_t *)y];
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	return (a->to_ns > b->to_ns) - (a->to_ns < b->to_ns);
}

static int
by_edges(const void *x, const void *y)
{
	const struct plumb_trace_turn *a = x, *b = y;
	if (a->edges != b->edges)
		return a->edges > b->edges ? -1 : 1;
	return (a->track > b->track) - (a->track < b->track);
}

/* Those of the COUNT at ORDER whose track is TRACK: their number, and from where on. */
static uint32_t
part_of(const struct plumb_trace_edges *edges, const uint32_t *order, uint32_t track, bool to,
        const uint32_t **first)
{
#define TRACK_OF(i) (to ? edges->items[order[i]].to : edges->items[order[i]].from)
	uint32_t low = plumb_search(i, edges->count, TRACK_OF(i) < track), end;
	for (end = low; end < edges->count && TRACK_OF(end) == track; end++)
		;
#undef TRACK_OF
	*first = order + low;
	return end - low;
}

uint32_t
plumb_trace_edges_from(const struct plumb_trace_edges *edges, uint32_t track,
                       const uint32_t **first)
{
	return part_of(edges, edges->from, track, false, first);
}

uint32_t
plumb_trace_edges_to(const struct plumb_trace_edges *edges, uint32_t track, const uint32_t **first)
{
	return part_of(edges, edges->to, track, true, first);
}

int
plumb_trace_edges_order(struct plumb_trace *trace, struct plumb_trace_edges *edges)
{
	uint32_t count = trace->edges.count, tracks = trace->spans.count;
	*edges = (struct plumb_trace_edges){
		.items = trace->edges.items,
		.count = count,
		.from = malloc((count + 1) * sizeof *edges->from),
		.to = malloc((count + 1) * sizeof *edges->to),
		.turns = calloc(tracks + 1, sizeof *edges->turns),
	};
	if (!edges->from || !edges->to || !edges->turns)
		return plumb_trace_no_memory(trace);
	for (uint32_t i = 0; i < tracks; i++)
		edges->turns[i].track = i;
	for (uint32_t i = 0; i < count; i++) {
		edges->from[i] = edges->to[i] = i;
		if (edges->items[i].from < tracks)
			edges->turns[edges->items[i].from].edges++;
	}
	qsort_r(edges->from, count, sizeof *edges->from, by_from, trace->edges.items);
	qsort_r(edges->to, count, sizeof *edges->to, by_to, trace->edges.items);
	qsort(edges->turns, tracks, sizeof *edges->turns, by_edges);
	return 0;
}

void
plumb_trace_edges_free(struct plumb_trace_edges *edges)
{
	free(edges->from);
	free(edges->to);
	free(edges->turns);
}
