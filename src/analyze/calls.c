/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/calls.h"

#include <math.h>
#include <string.h>

/* The metric that counts entries of frames of KIND, 0: none does. */
static uint32_t
counted_by(uint32_t kind)
{
	return kind == PLUMB_FRAME_MODULE   ? PLUMB_METRIC_MODULE_CALLS
	       : kind == PLUMB_FRAME_KERNEL ? PLUMB_METRIC_GPU_TIME
	                                    : PLUMB_METRIC_OP_CALLS;
}

static void
take_value(struct plumb_calls *calls, uint32_t kind, const struct plumb_value *v)
{
	struct plumb_stat stat = plumb_value_stat(v);

	if (!v->count)
		return;
	if (v->metric == counted_by(kind)) {
		bool each = kind == PLUMB_FRAME_KERNEL;

		calls->known = true;
		calls->count += each || v->sum < 0 ? v->count : (uint64_t)v->sum;
		if (each)
			plumb_stat_merge(&calls->each, &stat);
	}
	if (v->metric == PLUMB_METRIC_OP_DURATION)
		plumb_stat_merge(&calls->each, &stat);
	if (v->metric == PLUMB_METRIC_OP_TIME)
		plumb_stat_merge(&calls->own, &stat);
}

/* The mean of some calls is not that of all. */
static void
forget_part(struct plumb_calls *calls)
{
	if (calls->each.count < calls->count)
		calls->each = (struct plumb_stat){ 0 };
}

/* The calls of CONTEXT. *NEXT is its first value, and becomes the first of the context after it:
 * values are in the order of their contexts. */
static struct plumb_calls
calls_of(const struct plumb_profile *p, uint32_t context, uint32_t *next)
{
	uint32_t kind = plumb_context_frame(p, context)->kind;
	struct plumb_calls own = { 0 };

	for (; *next < p->values_count && p->values[*next].context == context; ++*next)
		take_value(&own, kind, &p->values[*next]);
	/* Nothing is inside it, so its own time is all of it. */
	if (!own.each.count && p->contexts[context].last == context)
		own.each = own.own;
	/* Not every tool counts calls, but each call has a time. */
	if (!own.known && (own.each.count || own.own.count)) {
		own.known = true;
		own.count = own.each.count ? own.each.count : own.own.count;
	}
	forget_part(&own);
	return own;
}

void
plumb_calls_of_contexts(const struct plumb_profile *p, struct plumb_calls *calls)
{
	for (uint32_t c = 0, next = 0; c < p->contexts_count; c++)
		calls[c] = calls_of(p, c, &next);
}

static void
add_calls(struct plumb_calls *sum, const struct plumb_calls *calls)
{
	sum->known |= calls->known;
	sum->count += calls->count;
	plumb_stat_merge(&sum->each, &calls->each);
	plumb_stat_merge(&sum->own, &calls->own);
}

void
plumb_calls_of_rows(const struct plumb_grouping *grouping, const struct plumb_profile *p,
                    struct plumb_calls *rows)
{
	uint32_t count = plumb_grouping_count(grouping);
	const struct plumb_group_row *all = plumb_grouping_rows(grouping);

	memset(rows, 0, count * sizeof *rows);
	/* Rows of places, of phases and of shapes are not those of frames. */
	if (!count || all[0].frame == PLUMB_NONE ||
	    (all[0].kind == PLUMB_FRAME_OPERATOR && all[0].shapes != PLUMB_NONE))
		return;
	for (uint32_t c = 0, next = 0; c < p->contexts_count; c++) {
		struct plumb_calls calls = calls_of(p, c, &next);
		uint32_t row = calls.known ? plumb_grouping_owner(grouping, c) : PLUMB_NONE;

		if (row < count && all[row].kind == plumb_context_frame(p, c)->kind)
			add_calls(&rows[row], &calls);
	}
	for (uint32_t r = 0; r < count; r++)
		forget_part(&rows[r]);
}

bool
plumb_calls_apply(const struct plumb_calls *calls, bool inclusive, struct plumb_stat *stat)
{
	int64_t sum = stat->sum;

	if (!calls->known || !calls->count)
		return true;
	if (inclusive && calls->each.count) {
		*stat = calls->each;
		stat->sum = sum;
		return true;
	}
	if (calls->own.count && (inclusive || calls->own.count == stat->count))
		return true;
	stat->count = calls->count;
	stat->mean = (double)sum / (double)calls->count;
	stat->m2 = NAN;
	return false;
}
