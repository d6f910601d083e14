/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/group_private.h"

#include <stdlib.h>

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

typedef PLUMB_VEC(struct vote) votes;

static bool
cast_vote(votes *list, uint32_t row, uint32_t frame, uint32_t order, int64_t weight)
{
	struct vote *vote = plumb_vec_add(list);

	if (vote)
		*vote = (struct vote){ row, frame, order, weight };
	return vote != NULL;
}

static int
by_row_and_frame(const void *left, const void *right)
{
	const struct vote *a = left, *b = right;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
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

/* Adds up the votes of each (row, frame) and gives each row its best. */
static void
count_votes(votes *list, uint32_t *frames)
{
	struct vote best = { .row = PLUMB_NONE };

	if (list->count)
		qsort(list->items, list->count, sizeof *list->items, by_row_and_frame);
	for (uint32_t i = 0; i < list->count;) {
		struct vote sum = list->items[i++];

		while (i < list->count && list->items[i].row == sum.row &&
		       list->items[i].frame == sum.frame)
			if (__builtin_add_overflow(sum.weight, list->items[i++].weight,
			                           &sum.weight))
				sum.weight = INT64_MAX;
		if (best.row == sum.row && !outweighs(&sum, &best))
			continue;
		best = sum;
		frames[best.row] = best.frame;
	}
}

static bool
collect_votes(const struct plumb_grouping *g, uint32_t metric, const uint32_t *user_of, votes *list)
{
	const struct plumb_profile *p = g->profile;
	struct plumb_stat *whole;
	bool ok = true;

	if (g->place) {
		for (uint32_t i = 0; ok && i < p->values_count; i++) {
			const struct plumb_value *v = &p->values[i];
			uint32_t row =
				v->metric == metric ? plumb_grouping_place(g, v) : PLUMB_NONE;

			if (row != PLUMB_NONE)
				ok = cast_vote(list, row, user_of[v->context], v->context, v->sum);
		}
		return ok;
	}
	for (uint32_t i = 0; ok && g->by == PLUMB_BY_SHAPE && i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];

		if (g->row_of_variant[i] != PLUMB_NONE)
			ok = cast_vote(list, g->row_of_variant[i], user_of[v->context], v->context,
			               v->time);
	}
	for (uint32_t i = 0; ok && (g->by == PLUMB_BY_PHASE || g->places) && i < p->values_count;
	     i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t row = g->owner[v->context];

		if (v->metric == metric && row < g->rows.count)
			ok = cast_vote(list, row, user_of[v->context], v->context, v->sum);
	}
	if (plumb_grouping_is_flat(g))
		return ok;
	whole = calloc(p->contexts_count + 1u, sizeof *whole);
	if (!whole)
		return false;
	plumb_inclusive(p, metric, PLUMB_NONE, NULL, whole);
	for (uint32_t c = 0; ok && c < p->contexts_count; c++)
		if (g->entry[c] != PLUMB_NONE)
			ok = cast_vote(list, g->entry[c], user_of[c], c,
			               plumb_stat_amount(metric, &whole[c]));
	free(whole);
	return ok;
}

int
plumb_grouping_user(const struct plumb_grouping *g, uint32_t metric, const uint32_t *user_of,
                    uint32_t *frames)
{
	votes list = { 0 };
	bool ok;

	for (uint32_t r = 0; r < g->rows.count; r++)
		frames[r] = PLUMB_NONE;
	ok = collect_votes(g, metric, user_of, &list);
	if (ok)
		count_votes(&list, frames);
	plumb_vec_free(&list);
	return ok ? 0 : PLUMB_ESYSTEM;
}
