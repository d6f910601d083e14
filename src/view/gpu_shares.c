/* SPDX-License-Identifier: Apache-2.0 */
#include "view/gpu_shares.h"

#include <stdlib.h>

static int
by_rank(const void *x, const void *y)
{
	const struct plumb_gpu_share *a = x, *b = y;

	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->device != b->device)
		return a->device < b->device ? -1 : 1;
	return (a->process > b->process) - (a->process < b->process);
}

bool
plumb_gpu_shares_find(const struct plumb_profile *profile, struct plumb_gpu_shares *shares)
{
	struct plumb_rank_waits waits;
	bool done = plumb_rank_waits_find(profile, &waits) == 0;

	*shares = (struct plumb_gpu_shares){ .newest = waits.work.newest };
	shares->items = done ? calloc((size_t)waits.count + 1, sizeof *shares->items) : NULL;
	for (uint32_t r = 0; shares->items && r < waits.count; r++) {
		const struct plumb_waiting_rank *rank = &waits.ranks[r];

		shares->items[shares->count++] = (struct plumb_gpu_share){
			.process = rank->process,
			.device = rank->device,
			.rank = rank->rank,
			.communicates = rank->all > 0,
			.sums = plumb_rank_waits_sum(&waits, r, rank->first_ns, rank->last_ns),
		};
	}
	if (shares->count)
		qsort(shares->items, shares->count, sizeof *shares->items, by_rank);
	plumb_rank_waits_free(&waits);
	return shares->items != NULL;
}

void
plumb_gpu_shares_free(struct plumb_gpu_shares *shares)
{
	free(shares->items);
	*shares = (struct plumb_gpu_shares){ 0 };
}

const struct plumb_gpu_share *
plumb_gpu_shares_of(const struct plumb_gpu_shares *shares, uint32_t device)
{
	const struct plumb_gpu_share *found = NULL;

	for (uint32_t i = 0; i < shares->count; i++) {
		if (shares->items[i].device != device)
			continue;
		if (found)
			return NULL;
		found = &shares->items[i];
	}
	return found && found->communicates && found->sums.whole_ns > 0 ? found : NULL;
}

bool
plumb_gpu_shares_are_even(const struct plumb_gpu_shares *shares)
{
	for (uint32_t i = 0; i < shares->count; i++) {
		const struct plumb_gpu_share *s = &shares->items[i];

		if (!s->communicates || s->rank == PLUMB_UNKNOWN || s->sums.whole_ns <= 0 ||
		    (i && s->rank == s[-1].rank))
			return false;
	}
	return shares->count > 1;
}

bool
plumb_gpu_share_is_all(const struct plumb_gpu_shares *shares, const struct plumb_gpu_share *share,
                       const struct plumb_device *device)
{
	int64_t all;

	if (!shares->newest || device->first_ns == PLUMB_UNKNOWN ||
	    device->last_ns == PLUMB_UNKNOWN ||
	    __builtin_sub_overflow(device->last_ns, device->first_ns, &all))
		return true;
	return all - share->sums.whole_ns <= all / 100;
}

void
plumb_gpu_shares_json(const struct plumb_profile *profile, struct plumb_json *json)
{
	struct plumb_gpu_shares shares;

	plumb_json_key_array(json, "gpu_work");
	if (plumb_gpu_shares_find(profile, &shares))
		for (uint32_t i = 0; i < shares.count; i++) {
			const struct plumb_gpu_share *s = &shares.items[i];
			const struct plumb_process *process =
				s->process < profile->processes_count
					? &profile->processes[s->process]
					: NULL;

			plumb_json_object(json);
			plumb_json_key_quantity(json, "device", s->device);
			plumb_json_key_quantity(json, "pid",
			                        process ? process->pid : PLUMB_UNKNOWN);
			plumb_json_key_quantity(json, "rank", s->rank);
			plumb_json_key_quantity(json, "whole_ns", s->sums.whole_ns);
			plumb_json_key_quantity(json, "computing_ns", s->sums.compute_ns);
			plumb_json_key_quantity(json, "collectives_ns", s->sums.collectives_ns);
			plumb_json_key_quantity(json, "waiting_ns", s->sums.waiting_ns);
			plumb_json_key_quantity(json, "copies_ns", s->sums.copies_ns);
			plumb_json_key_quantity(json, "idle_ns", s->sums.idle_ns);
			plumb_json_key_quantity(json, "hidden_ns", s->sums.hidden_ns);
			plumb_json_key_text(json, "from", shares.newest ? "newest" : "spans");
			plumb_json_end(json);
		}
	plumb_json_end(json);
	plumb_gpu_shares_free(&shares);
}
