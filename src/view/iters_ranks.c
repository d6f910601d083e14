/* SPDX-License-Identifier: Apache-2.0 */
/* The iterations of several ranks side by side, as JSON. */
#include "view/iters_private.h"

static const char *const matched[] = { "step", "time", "mark", "index" };
static const char *const straggler_by[] = { NULL, "collectives", "end", "duration" };

static void
write_item(const struct plumb_iters *iters, uint32_t k, struct plumb_json *json)
{
	const struct plumb_rank_match *match = &iters->steps.match;
	const struct plumb_matched_item *one = &match->items[k];

	plumb_json_object(json);
	plumb_json_key_quantity(json, "step", one->step);
	plumb_json_key_quantity(json, "start_skew_ns", one->start_skew_ns);
	plumb_json_key_quantity(json, "end_skew_ns", one->end_skew_ns);
	plumb_json_key_quantity(
		json, "straggler",
		one->straggler == PLUMB_NONE
			? PLUMB_UNKNOWN
			: iters->found.tracks[match->ranks[one->straggler].place].track);
	plumb_json_key_quantity(json, "straggler_rank",
	                        one->straggler == PLUMB_NONE ? PLUMB_UNKNOWN
	                                                     : match->ranks[one->straggler].rank);
	plumb_json_key_array(json, "ranks");
	for (uint32_t r = 0; r < match->rank_count; r++) {
		const struct plumb_rank_iteration *each = plumb_rank_of(match, k, r);
		const struct plumb_iteration *item = &iters->found.tracks[match->ranks[r].place]
		                                              .levels[0]
		                                              .items[each->iteration];

		plumb_json_object(json);
		plumb_json_key_quantity(json, "iteration", each->iteration);
		plumb_json_key_quantity(json, "start_ns", item->start_ns);
		plumb_json_key_quantity(json, "duration_ns", item->end_ns - item->start_ns);
		plumb_json_key_quantity(json, "waiting_ns", each->waiting_ns);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_end(json);
}

static void
write_left_out(const struct plumb_iters *iters, struct plumb_json *json)
{
	const struct plumb_rank_match *match = &iters->steps.match;

	plumb_json_key_array(json, "left_out");
	for (uint32_t i = 0; i < match->left_out.count; i++) {
		const struct plumb_left_out *out = &match->left_out.items[i];
		const struct plumb_matched_rank *rank = &match->ranks[out->rank];

		plumb_json_object(json);
		plumb_json_key_quantity(json, "track", iters->found.tracks[rank->place].track);
		plumb_json_key_quantity(json, "rank", rank->rank);
		plumb_json_key_quantity(json, "iteration", out->iteration);
		plumb_json_key_quantity(json, "step",
		                        plumb_iters_step(iters, rank->place, out->iteration));
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

void
plumb_iters_ranks_json(const struct plumb_iters *iters, struct plumb_json *json)
{
	const struct plumb_rank_match *match = &iters->steps.match;

	plumb_json_key(json, "ranks");
	if (!match->rank_count) {
		plumb_json_null(json);
		return;
	}
	plumb_json_object(json);
	plumb_json_key_text(json, "matched_by", matched[match->matched]);
	plumb_json_key_text(json, "straggler_by", match->count ? straggler_by[match->by] : NULL);
	plumb_json_key_array(json, "summary");
	for (uint32_t r = 0; r < match->rank_count; r++) {
		const struct plumb_matched_rank *rank = &match->ranks[r];

		plumb_json_object(json);
		plumb_json_key_quantity(json, "track", iters->found.tracks[rank->place].track);
		plumb_json_key_quantity(json, "rank", rank->rank);
		plumb_json_key_quantity(json, "straggler_in", rank->straggles);
		plumb_json_key_quantity(json, "duration_ns",
		                        match->count ? rank->duration_ns : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "waiting_ns",
		                        match->count ? rank->waiting_ns : PLUMB_UNKNOWN);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_key_array(json, "iterations");
	for (uint32_t k = 0; k < match->count; k++)
		write_item(iters, k, json);
	plumb_json_end(json);
	write_left_out(iters, json);
	plumb_json_end(json);
}
