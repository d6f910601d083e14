/* SPDX-License-Identifier: Apache-2.0 */
#include "settle/contention.h"

#include <stdlib.h>

struct edge {
	int64_t time;
	int step; /* +1: a process begins to be busy, -1: it ends */
};

static int
by_process_and_start(const void *x, const void *y)
{
	const struct plumb_use *a = x, *b = y;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

static int
by_time(const void *x, const void *y)
{
	const struct edge *a = x, *b = y;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->step - b->step; /* two pieces do not overlap if one ends when the other begins */
}

/* The moments at which each process begins and stops being busy. Returns how many. */
static size_t
find_edges(const struct plumb_use *uses, size_t count, struct edge *edges)
{
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		const struct plumb_use *use = &uses[i];
		bool same = i && uses[i - 1].process == use->process && used;
		if (use->end <= use->start)
			continue;
		if (same && edges[used - 1].time >= use->start) {
			if (use->end > edges[used - 1].time)
				edges[used - 1].time = use->end;
			continue;
		}
		edges[used++] = (struct edge){ use->start, 1 };
		edges[used++] = (struct edge){ use->end, -1 };
	}
	return used;
}

bool
plumb_contention_find(struct plumb_use *uses, size_t count, struct plumb_contention *result)
{
	struct edge *edges = malloc((2 * count + 1) * sizeof *edges);
	int64_t before = 0;
	size_t used;
	int depth = 0;

	*result = (struct plumb_contention){ 0, 0 };
	if (!edges)
		return false;
	if (count)
		qsort(uses, count, sizeof *uses, by_process_and_start);
	used = find_edges(uses, count, edges);
	qsort(edges, used, sizeof *edges, by_time);
	for (size_t i = 0; i < used; i++) {
		int64_t ns = edges[i].time - before;
		if (depth >= 1)
			result->busy += ns;
		if (depth >= 2)
			result->contended += ns;
		depth += edges[i].step;
		before = edges[i].time;
	}
	free(edges);
	return true;
}
