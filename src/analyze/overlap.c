/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/overlap.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "model/gpu_work.h"
#include "model/intervals.h"

enum sort { NEITHER, COMMUNICATION, COMPUTATION };

struct share { /* of one rank */
	int64_t rank;
	PLUMB_VEC(struct plumb_interval_ns) intervals[2];
};

struct shares {
	PLUMB_VEC(struct share) items;
	uint32_t *of_process; /* share by process */
	unsigned char *sorts; /* enum sort by context */
};

/* What each context's time is. */
static bool
find_sorts(const struct plumb_profile *p, struct shares *shares)
{
	bool any = false;
	shares->sorts = calloc(p->contexts_count + 1u, 1);
	if (!shares->sorts)
		return false;
	for (uint32_t i = 0; i < p->contexts_count; i++) {
		if (plumb_context_frame(p, i)->kind != PLUMB_FRAME_KERNEL)
			continue;
		uint32_t parent = p->contexts[i].parent;
		bool collective = parent != PLUMB_NONE &&
		                  plumb_context_frame(p, parent)->kind == PLUMB_FRAME_COLLECTIVE;
		shares->sorts[i] = collective ? COMMUNICATION : COMPUTATION;
		any |= collective;
	}
	if (!any)
		memset(shares->sorts, NEITHER, p->contexts_count);
	return true;
}

/* Processes of one rank are one; of those without a rank each is one. */
static bool
find_shares(const struct plumb_profile *p, struct shares *shares)
{
	shares->of_process = calloc(p->processes_count + 1u, sizeof *shares->of_process);
	for (uint32_t i = 0; shares->of_process && i < p->processes_count; i++) {
		int64_t rank = p->processes[i].rank;
		uint32_t at = 0;
		while (at < shares->items.count &&
		       (rank == PLUMB_UNKNOWN || shares->items.items[at].rank != rank))
			at++;
		struct share *share = at < shares->items.count ? &shares->items.items[at]
		                                               : plumb_vec_add(&shares->items);
		if (!share)
			return false;
		share->rank = rank;
		shares->of_process[i] = at;
	}
	return shares->of_process != NULL;
}

static bool
add_work(const struct plumb_gpu_work *work, uint32_t track, struct shares *shares)
{
	const struct plumb_profile *p = work->profile;
	struct plumb_gpu_range range = plumb_gpu_work_of(work, track);

	for (uint32_t i = range.first; i < range.end; i++) {
		const struct plumb_span *span = &work->spans[i];
		unsigned char sort = shares->sorts[span->context];
		if (sort == NEITHER)
			continue;
		struct share *share =
			&shares->items.items[shares->of_process[p->tracks[track].process]];
		struct plumb_interval_ns *interval =
			plumb_vec_add(&share->intervals[sort == COMPUTATION]);
		if (!interval)
			return false;
		*interval = (struct plumb_interval_ns){ span->start_ns, span->end_ns };
	}
	return true;
}

static int
by_rank(const void *x, const void *y)
{
	const struct plumb_overlap *a = x, *b = y;
	return (a->rank > b->rank) - (a->rank < b->rank);
}

static bool
find_overlaps(struct shares *shares, struct plumb_overlaps *overlaps)
{
	overlaps->items = calloc(shares->items.count + 1u, sizeof *overlaps->items);
	for (uint32_t i = 0; overlaps->items && i < shares->items.count; i++) {
		struct share *share = &shares->items.items[i];
		uint32_t one = share->intervals[0].count, two = share->intervals[1].count;
		if (!one)
			continue;
		struct plumb_overlap *overlap = &overlaps->items[overlaps->count++];
		overlap->rank = share->rank;
		overlap->communication_ns = plumb_intervals_merge(share->intervals[0].items, &one);
		overlap->compute_ns = plumb_intervals_merge(share->intervals[1].items, &two);
		overlap->hidden_ns = plumb_intervals_common(share->intervals[0].items, one,
		                                            share->intervals[1].items, two);
	}
	if (overlaps->items)
		qsort(overlaps->items, overlaps->count, sizeof *overlaps->items, by_rank);
	return overlaps->items != NULL;
}

int
plumb_overlaps_find(const struct plumb_profile *p, struct plumb_overlaps *overlaps,
                    struct plumb_error *error)
{
	struct shares shares = { 0 };
	struct plumb_gpu_work work;
	bool done = plumb_gpu_work_find(p, &work) == 0 && find_sorts(p, &shares) &&
	            find_shares(p, &shares);
	*overlaps = (struct plumb_overlaps){ .newest = work.newest };
	for (uint32_t t = 0; done && t < p->tracks_count; t++)
		done = add_work(&work, t, &shares);
	done = done && find_overlaps(&shares, overlaps);
	for (uint32_t i = 0; i < shares.items.count; i++) {
		plumb_vec_free(&shares.items.items[i].intervals[0]);
		plumb_vec_free(&shares.items.items[i].intervals[1]);
	}
	plumb_vec_free(&shares.items);
	plumb_gpu_work_free(&work);
	free(shares.of_process);
	free(shares.sorts);
	return done ? 0 : plumb_fail_memory(error, NULL);
}

void
plumb_overlaps_free(struct plumb_overlaps *overlaps)
{
	free(overlaps->items);
	*overlaps = (struct plumb_overlaps){ 0 };
}
