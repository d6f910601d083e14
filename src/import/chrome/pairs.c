/* SPDX-License-Identifier: Apache-2.0 */
#include "import/chrome/pairs.h"

void
plumb_chrome_edge(struct plumb_chrome_pairs *pairs, struct plumb_chrome_edge edge)
{
	edge.order = pairs->edges.count;
	struct plumb_chrome_edge *added = plumb_vec_add(&pairs->edges);
	if (added)
		*added = edge;
	pairs->no_memory |= !added;
}

static int
by_key(const void *x, const void *y)
{
	const struct plumb_chrome_edge *a = x, *b = y;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* EDGES of one key, in time. STACK: room for the indexes of all. */
static void
pair_edges(const struct plumb_chrome_edge *edges, uint32_t count, uint32_t *stack,
           struct plumb_trace *trace, int64_t last, plumb_chrome_paired *paired, void *own)
{
	uint32_t depth = 0;
	int64_t lost = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (edges[i].begins) {
			stack[depth++] = i;
		} else if (depth) {
			depth--;
			paired(own, &edges[stack[depth]], edges[i].ns, depth);
		} else {
			lost++;
		}
	}
	plumb_trace_count(trace, PLUMB_FATE_UNBALANCED, "ends without a start", lost);
	plumb_trace_count(trace, PLUMB_FATE_UNBALANCED,
	                  "slices without an end, drawn to the end of the file", depth);
	while (depth) {
		depth--;
		paired(own, &edges[stack[depth]], last, depth);
	}
}

void
plumb_chrome_pair(struct plumb_chrome_pairs *pairs, struct plumb_trace *trace, int64_t last,
                  plumb_chrome_paired *paired, void *own)
{
	struct plumb_chrome_edge *edges = pairs->edges.items;
	uint32_t count = pairs->edges.count, next;
	uint32_t *stack = count ? malloc(count * sizeof *stack) : NULL;
	pairs->no_memory |= count && !stack;
	if (!stack)
		return;
	qsort(edges, count, sizeof *edges, by_key);
	for (uint32_t i = 0; i < count; i = next) {
		for (next = i + 1; next < count && edges[next].key == edges[i].key; next++)
			;
		pair_edges(edges + i, next - i, stack, trace, last, paired, own);
	}
	free(stack);
}
