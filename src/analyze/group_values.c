/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/group_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/metric.h"

int64_t
plumb_stat_amount(uint32_t metric, const struct plumb_stat *stat)
{
	if (!stat->count)
		return 0;
	switch (plumb_metric_aggregation(metric)) {
	case PLUMB_MAX:
		return stat->max;
	case PLUMB_CALL:
		return isfinite(stat->mean) && fabs(stat->mean) < 9e18 ? llround(stat->mean) : 0;
	case PLUMB_SUM:
		break;
	}
	return stat->sum;
}

uint32_t
plumb_metric_default(const struct plumb_profile *profile)
{
	static const uint32_t wanted[] = { PLUMB_METRIC_GPU_TIME, PLUMB_METRIC_OP_TIME,
		                           PLUMB_METRIC_CPU_TIME };
	uint32_t best = (uint32_t)(sizeof wanted / sizeof *wanted), first = 0;
	for (uint32_t i = 0; best && i < profile->values_count; i++) {
		const struct plumb_value *value = &profile->values[i];
		for (uint32_t w = 0; w < best; w++)
			if (value->metric == wanted[w] && value->count)
				best = w;
		/* A profile of another tool may only have that tool's own metrics. */
		if (value->metric >= PLUMB_METRIC_USER && (!first || value->metric < first))
			first = value->metric;
	}
	if (best < sizeof wanted / sizeof *wanted)
		return wanted[best];
	return first ? first : PLUMB_METRIC_OP_TIME;
}

static void
merge_value(struct plumb_stat *stat, const struct plumb_value *value)
{
	struct plumb_stat other = plumb_value_stat(value);

	if (stat)
		plumb_stat_merge(stat, &other);
}

static void
clear_stats(struct plumb_stat *stats, uint32_t count)
{
	if (stats && count)
		memset(stats, 0, count * sizeof *stats);
}

/* METRIC of a variant. Its deviation is unknown. */
static struct plumb_stat
variant_stat(const struct plumb_variant *v, uint32_t metric)
{
	struct plumb_stat stat = { 0 };

	if (metric == PLUMB_METRIC_OP_CALLS)
		stat = (struct plumb_stat){ (int64_t)v->count, v->count, 1, 1, 1, 0 };
	else if (metric == PLUMB_METRIC_OP_TIME && v->count)
		stat = (struct plumb_stat){
			v->time, v->count, v->min, v->max, (double)v->time / (double)v->count, NAN
		};
	return stat;
}

/* If a context has shapes, they hold all of its time and calls. The other contexts are outside. */
static bool
shape_values(const struct plumb_grouping *g, uint32_t metric, struct plumb_stat *exclusive,
             struct plumb_stat *inclusive, struct plumb_stat *outside)
{
	bool known = metric == PLUMB_METRIC_OP_TIME || metric == PLUMB_METRIC_OP_CALLS;
	unsigned char *shaped = calloc(g->profile->contexts_count + 1u, 1);

	if (!shaped)
		return false;
	for (uint32_t i = 0; i < g->profile->variants_count; i++) {
		struct plumb_stat stat = variant_stat(&g->profile->variants[i], metric);

		if (g->row_of_variant[i] == PLUMB_NONE)
			continue;
		shaped[g->profile->variants[i].context] = known;
		if (exclusive)
			plumb_stat_merge(&exclusive[g->row_of_variant[i]], &stat);
		if (inclusive)
			plumb_stat_merge(&inclusive[g->row_of_variant[i]], &stat);
	}
	for (uint32_t i = 0; i < g->profile->values_count; i++)
		if (g->profile->values[i].metric == metric &&
		    !shaped[g->profile->values[i].context])
			merge_value(outside, &g->profile->values[i]);
	free(shaped);
	return true;
}

const struct plumb_stat *
plumb_grouping_whole(const struct plumb_grouping *g, uint32_t metric)
{
	struct plumb_group_whole *whole = g->whole;

	if (!whole->stats)
		whole->stats = malloc((g->profile->contexts_count + 1u) * sizeof *whole->stats);
	if (whole->stats && whole->metric != metric) {
		plumb_inclusive(g->profile, metric, PLUMB_NONE, NULL, whole->stats);
		whole->metric = metric;
	}
	return whole->stats;
}

int
plumb_grouping_values(const struct plumb_grouping *g, uint32_t metric, struct plumb_stat *exclusive,
                      struct plumb_stat *inclusive, struct plumb_stat *outside)
{
	const struct plumb_profile *p = g->profile;
	bool call = plumb_metric_aggregation(metric) == PLUMB_CALL;
	const struct plumb_stat *whole;

	if (g->by == PLUMB_BY_SHAPE) {
		clear_stats(exclusive, g->rows.count);
		clear_stats(inclusive, g->rows.count);
		clear_stats(outside, 1);
		return shape_values(g, metric, exclusive, inclusive, outside) ? 0 : PLUMB_ESYSTEM;
	}
	clear_stats(exclusive, g->rows.count);
	clear_stats(inclusive, g->rows.count);
	clear_stats(outside, 1);
	if (!g->rows.count && !outside)
		return 0;
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t row;

		if (v->metric != metric)
			continue;
		row = g->place ? plumb_grouping_place(g, v) : g->owner[v->context];
		if (row >= g->rows.count) {
			merge_value(outside, v);
			continue;
		}
		merge_value(exclusive ? &exclusive[row] : NULL, v);
		if (plumb_grouping_is_flat(g) && !call)
			merge_value(inclusive ? &inclusive[row] : NULL, v);
	}
	if (plumb_grouping_is_flat(g) || !inclusive || call || !g->rows.count)
		return 0;
	whole = plumb_grouping_whole(g, metric);
	if (!whole)
		return PLUMB_ESYSTEM;
	for (uint32_t c = 0; c < p->contexts_count; c++)
		if (g->entry[c] != PLUMB_NONE)
			plumb_stat_merge(&inclusive[g->entry[c]], &whole[c]);
	return 0;
}
