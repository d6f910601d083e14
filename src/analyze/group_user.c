/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/group_private.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/map.h"
#include "model/fused.h"

uint32_t *
plumb_user_contexts(const struct plumb_profile *profile, const unsigned char *user)
{
	uint32_t *user_of = plumb_fused_lines(profile, user);

	for (uint32_t c = 0; user_of && c < profile->contexts_count; c++) {
		uint32_t frame = profile->contexts[c].frame;

		if (user_of[c] != PLUMB_NONE)
			continue; /* the line that it was compiled from */
		if (user[frame])
			user_of[c] = frame;
		else
			user_of[c] = c ? user_of[profile->contexts[c].parent] : PLUMB_NONE;
	}
	return user_of;
}

struct vote {
	uint32_t row, frame;
	uint32_t order; /* the first context that gave this vote */
	int64_t weight;
};

/* One for each (row, frame). */
struct votes {
	PLUMB_VEC(struct vote) list;
	struct plumb_map map;
};

/* Votes come in ascending ORDER. */
static bool
cast_vote(struct votes *votes, uint32_t row, uint32_t frame, uint32_t order, int64_t weight)
{
	uint64_t hash = plumb_hash_mix(row, frame);
	struct plumb_map_cursor at;
	struct vote *vote;

	for (uint32_t i = plumb_map_first(&votes->map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&votes->map, &at)) {
		vote = &votes->list.items[i];
		if (vote->row != row || vote->frame != frame)
			continue;
		if (__builtin_add_overflow(vote->weight, weight, &vote->weight))
			vote->weight = INT64_MAX;
		return true;
	}
	vote = plumb_vec_add(&votes->list);
	if (!vote || plumb_map_add(&votes->map, hash, votes->list.count - 1))
		return false;
	*vote = (struct vote){ row, frame, order, weight };
	return true;
}

static bool
outweighs(const struct vote *a, const struct vote *b)
{
	if (a->weight != b->weight)
		return a->weight > b->weight;
	if ((a->frame == PLUMB_NONE) != (b->frame == PLUMB_NONE))
		return b->frame == PLUMB_NONE;
	return a->order < b->order;
}

/* Gives each row its best. False: no memory. */
static bool
count_votes(const struct votes *votes, uint32_t rows, uint32_t *frames)
{
	const struct vote **best = calloc(rows + 1u, sizeof *best);

	for (uint32_t i = 0; best && i < votes->list.count; i++) {
		const struct vote *vote = &votes->list.items[i];
		if (best[vote->row] && !outweighs(vote, best[vote->row]))
			continue;
		best[vote->row] = vote;
		frames[vote->row] = vote->frame;
	}
	free(best);
	return best != NULL;
}

static bool
collect_votes(const struct plumb_grouping *g, uint32_t metric, const uint32_t *user_of,
              struct votes *votes)
{
	const struct plumb_profile *p = g->profile;
	const struct plumb_stat *whole;
	bool ok = true;

	if (g->place) {
		for (uint32_t i = 0; ok && i < p->values_count; i++) {
			const struct plumb_value *v = &p->values[i];
			uint32_t row =
				v->metric == metric ? plumb_grouping_place(g, v) : PLUMB_NONE;

			if (row != PLUMB_NONE)
				ok = cast_vote(votes, row, user_of[v->context], v->context, v->sum);
		}
		return ok;
	}
	for (uint32_t i = 0; ok && g->by == PLUMB_BY_SHAPE && i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];

		if (g->row_of_variant[i] != PLUMB_NONE)
			ok = cast_vote(votes, g->row_of_variant[i], user_of[v->context], v->context,
			               v->time);
	}
	for (uint32_t i = 0; ok && (g->by == PLUMB_BY_PHASE || g->places) && i < p->values_count;
	     i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t row = g->owner[v->context];

		if (v->metric == metric && row < g->rows.count)
			ok = cast_vote(votes, row, user_of[v->context], v->context, v->sum);
	}
	if (plumb_grouping_is_flat(g) || !g->rows.count)
		return ok;
	whole = plumb_grouping_whole(g, metric);
	if (!whole)
		return false;
	for (uint32_t c = 0; ok && c < p->contexts_count; c++)
		if (g->entry[c] != PLUMB_NONE)
			ok = cast_vote(votes, g->entry[c], user_of[c], c,
			               plumb_stat_amount(metric, &whole[c]));
	return ok;
}

int
plumb_grouping_user(const struct plumb_grouping *g, uint32_t metric, const uint32_t *user_of,
                    uint32_t *frames)
{
	struct votes votes = { 0 };
	bool ok;

	for (uint32_t r = 0; r < g->rows.count; r++)
		frames[r] = PLUMB_NONE;
	ok = collect_votes(g, metric, user_of, &votes) &&
	     count_votes(&votes, g->rows.count, frames);
	plumb_vec_free(&votes.list);
	plumb_map_free(&votes.map);
	return ok ? 0 : PLUMB_ESYSTEM;
}
