/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/ranks.h"

#include <stdlib.h>

static struct plumb_rank *
rank_of(const struct plumb_profile *p, const struct plumb_ranks *ranks, uint32_t process)
{
	if (process >= p->processes_count || p->processes[process].rank == PLUMB_UNKNOWN)
		return NULL;
	for (uint32_t i = 0; i < ranks->count; i++)
		if (ranks->items[i].rank == p->processes[process].rank)
			return &ranks->items[i];
	return NULL;
}

static int
by_rank(const void *x, const void *y)
{
	const struct plumb_rank *a = x, *b = y;

	return (a->rank > b->rank) - (a->rank < b->rank);
}

bool
plumb_ranks_find(const struct plumb_profile *p, struct plumb_ranks *ranks)
{
	/* A profile of an older schema has devices and does not tell whose. */
	int64_t gpu = p->device_processes_count ? 0 : PLUMB_UNKNOWN;

	ranks->count = 0;
	ranks->items = calloc(p->processes_count + 1u, sizeof *ranks->items);
	if (!ranks->items)
		return false;
	for (uint32_t i = 0; i < p->processes_count; i++)
		if (p->processes[i].rank != PLUMB_UNKNOWN && !rank_of(p, ranks, i))
			ranks->items[ranks->count++] =
				(struct plumb_rank){ p->processes[i].rank, 0, gpu, 0 };
	if (ranks->count)
		qsort(ranks->items, ranks->count, sizeof *ranks->items, by_rank);
	for (uint32_t i = 0; i < p->processes_count; i++) {
		struct plumb_rank *rank = rank_of(p, ranks, i);
		if (rank)
			rank->processes++;
	}
	for (uint32_t i = 0; i < p->device_processes_count; i++) {
		struct plumb_rank *rank = rank_of(p, ranks, p->device_processes[i].process);
		if (rank)
			rank->gpu_busy_ns =
				plumb_add_known(rank->gpu_busy_ns, p->device_processes[i].busy_ns);
	}
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		struct plumb_rank *rank;
		if (v->metric != PLUMB_METRIC_OP_TIME || v->track >= p->tracks_count)
			continue;
		rank = rank_of(p, ranks, p->tracks[v->track].process);
		if (rank)
			rank->op_time_ns = plumb_add_known(rank->op_time_ns, v->sum);
	}
	return true;
}

void
plumb_ranks_free(struct plumb_ranks *ranks)
{
	free(ranks->items);
	ranks->items = NULL;
	ranks->count = 0;
}
