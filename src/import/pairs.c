/* SPDX-License-Identifier: Apache-2.0 */
#include "import/pairs.h"

#include <stdlib.h>

struct pairing {
	struct plumb_trace *trace;
	uint32_t *stack; /* indexes of beginnings; room for all */
	int64_t last;
	void (*take)(void *own, const struct plumb_edge *begin, int64_t end, uint32_t around);
	void *own;
};

void
plumb_pairs_add(struct plumb_pairs *pairs, const struct plumb_edge *edge)
{
	struct plumb_edge *added = plumb_vec_add(&pairs->edges);
	if (!added) {
		pairs->no_memory = true;
		return;
	}
	*added = *edge;
	added->order = pairs->edges.count - 1;
}

void
plumb_pairs_free(struct plumb_pairs *pairs)
{
	plumb_vec_free(&pairs->edges);
}

static int
by_key(const void *x, const void *y)
{
	const struct plumb_edge *a = x, *b = y;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

/* EDGES of one key, in time. */
static void
pair(const struct pairing *p, const struct plumb_edge *edges, uint32_t count)
{
	uint32_t depth = 0;
	int64_t lost = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (edges[i].begins) {
			p->stack[depth++] = i;
		} else if (!depth) {
			lost++;
		} else {
			depth--;
			p->take(p->own, &edges[p->stack[depth]], edges[i].ns, depth);
		}
	}
	plumb_trace_count(p->trace, PLUMB_FATE_UNBALANCED, "ends without a beginning", lost);
	plumb_trace_count(p->trace, PLUMB_FATE_UNBALANCED,
	                  "slices without an end, shown to the end of the file", depth);
	while (depth) {
		depth--;
		p->take(p->own, &edges[p->stack[depth]], p->last, depth);
	}
}

void
plumb_pairs_close(struct plumb_pairs *pairs, struct plumb_trace *trace, int64_t last,
                  void (*take)(void *own, const struct plumb_edge *begin, int64_t end,
                               uint32_t around),
                  void *own)
{
	struct plumb_edge *edges = pairs->edges.items;
	uint32_t count = pairs->edges.count, next;
	struct pairing p = { trace, malloc(((size_t)count + 1) * sizeof *p.stack), last, take,
		             own };
	if (!p.stack) {
		pairs->no_memory = true;
		return;
	}
	if (count)
		qsort(edges, count, sizeof *edges, by_key);
	for (uint32_t i = 0; i < count; i = next) {
		for (next = i + 1; next < count && edges[next].key == edges[i].key; next++)
			;
		pair(&p, edges + i, next - i);
	}
	free(p.stack);
}
