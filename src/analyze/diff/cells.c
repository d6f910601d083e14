/* SPDX-License-Identifier: Apache-2.0 */
/* What each row of a run amounts to, and how sure that is. */
#include "analyze/diff/cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "model/metric.h"

/* What of a metric is known of a row before it is an estimate. */
struct amounts {
	struct plumb_stat *own, *all; /* by key; all: with what lies under it (contexts) */
	double *variance;             /* of the sum, from single calls */
	double *variance_all;
	struct diff_sums sums;
	struct plumb_stat outside;
};

/* ---- one run ---- */

/* From single calls: the sum of N of them varies as N times what one does. */
double
diff_variance(const struct plumb_value *v)
{
	return v->count > 1 ? (double)v->count * v->m2 / (double)(v->count - 1) : NAN;
}

bool
diff_is_recorded(const struct diff_run *run, uint32_t metric)
{
	const struct plumb_profile *p = run->profile;
	bool copies = metric == PLUMB_METRIC_GPU_COPY_TIME || metric == PLUMB_METRIC_GPU_COPY_BYTES;

	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == metric && p->values[i].count)
			return true;
	/* Devices whose work was counted may have had none. */
	bool none = p->devices_count && (copies || metric == PLUMB_METRIC_GPU_TIME);
	for (uint32_t i = 0; i < p->devices_count; i++)
		none &= copies ? !p->devices[i].copies && !p->devices[i].sets
		               : !p->devices[i].kernels;
	return none;
}

struct plumb_estimate
diff_estimate(const struct diff_run *run, uint32_t metric, const struct plumb_stat *stat,
              double variance, const double *sums, uint32_t windows)
{
	struct plumb_estimate e = plumb_estimate_unknown();
	enum plumb_aggregation aggregation = plumb_metric_aggregation(metric);

	if (aggregation != PLUMB_SUM) {
		e.value = stat->count ? (double)plumb_stat_amount(metric, stat) : NAN;
		if (aggregation == PLUMB_CALL && stat->count > 1) {
			e.value = stat->mean;
			e.error = plumb_stat_deviation(stat) / sqrt((double)stat->count);
			e.freedom = (double)(stat->count - 1);
			e.basis = PLUMB_SPREAD_CALLS;
		}
		return e;
	}
	e.value = (double)stat->sum / run->per;
	if (sums && windows) {
		struct plumb_estimate mean = plumb_estimate_mean(sums, windows);

		if (mean.value > 0 && isfinite(mean.error)) {
			e.error = mean.error / mean.value * e.value;
			e.freedom = mean.freedom;
			e.basis = mean.basis;
			return e;
		}
	}
	/* What one call counts is no matter of chance, only what it takes. */
	const char *unit = plumb_profile_metric(run->profile, metric).unit;
	if (stat->count > 1 && isfinite(variance) && unit && !strcmp(unit, "ns")) {
		e.error = sqrt(variance) / run->per;
		e.freedom = (double)(stat->count - 1);
		e.basis = PLUMB_SPREAD_CALLS;
	}
	return e;
}

static int
load_groups(const struct diff_run *run, uint32_t metric, const struct diff_rows *rows,
            struct amounts *a)
{
	const struct plumb_profile *p = run->profile;
	struct plumb_stat *own = calloc(rows->count + (size_t)1, sizeof *own);
	int code = own ? plumb_grouping_values(rows->grouping, metric, own, NULL, &a->outside)
	               : PLUMB_ESYSTEM;

	for (uint32_t i = 0; !code && i < rows->count; i++)
		plumb_stat_merge(&a->own[rows->key[i]], &own[i]);
	for (uint32_t i = 0; !code && rows->owner && i < p->values_count; i++) {
		uint32_t row = rows->owner[p->values[i].context];

		if (p->values[i].metric == metric && row < rows->count)
			a->variance[rows->key[row]] += diff_variance(&p->values[i]);
	}
	free(own);
	return code;
}

/* Contexts have values of their own, and with what lies under them; several of a run may be one
 * row. */
static int
load_contexts(const struct diff_run *run, uint32_t metric, const struct diff_rows *rows,
              struct amounts *a)
{
	const struct plumb_profile *p = run->profile;
	struct plumb_stat *all = calloc(p->contexts_count + (size_t)1, sizeof *all);
	double *variance = calloc(p->contexts_count + (size_t)1, sizeof *variance);

	if (!all || !variance) {
		free(all);
		free(variance);
		return PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == metric) {
			const struct plumb_value *v = &p->values[i];
			struct plumb_stat stat = {
				v->sum, v->count, v->min, v->max, v->mean, v->m2
			};

			plumb_stat_merge(&a->own[rows->key[v->context]], &stat);
			a->variance[rows->key[v->context]] += diff_variance(v);
			variance[v->context] += diff_variance(v);
		}
	if (plumb_metric_aggregation(metric) != PLUMB_CALL)
		plumb_inclusive(p, metric, PLUMB_NONE, NULL, all);
	for (uint32_t c = p->contexts_count; c-- > 0;) {
		plumb_stat_merge(&a->all[rows->key[c]], &all[c]);
		a->variance_all[rows->key[c]] += variance[c];
		if (c)
			variance[p->contexts[c].parent] += variance[c];
	}
	free(all);
	free(variance);
	return 0;
}

/* Iteration by iteration, with what lies under: a key's parent has a lower number. */
static void
fold_sums(const struct diff_keys *keys, struct diff_sums *sums)
{
	for (uint32_t k = keys->items.count; k-- > 0;) {
		uint32_t parent = keys->items.items[k].parent;

		for (uint32_t w = 0; parent != PLUMB_NONE && w < sums->windows; w++)
			sums->sums[(size_t)parent * sums->windows + w] +=
				sums->sums[(size_t)k * sums->windows + w];
	}
}

static bool
amounts_room(struct amounts *a, uint32_t keys)
{
	a->own = calloc(keys + (size_t)1, sizeof *a->own);
	a->all = calloc(keys + (size_t)1, sizeof *a->all);
	a->variance = calloc(keys + (size_t)1, sizeof *a->variance);
	a->variance_all = calloc(keys + (size_t)1, sizeof *a->variance_all);
	return a->own && a->all && a->variance && a->variance_all;
}

static void
amounts_free(struct amounts *a)
{
	free(a->own);
	free(a->all);
	free(a->variance);
	free(a->variance_all);
	free(a->sums.sums);
}

/* The sums behind those of the keys are of what is under no row. */
static int
load_sums(const struct diff_making *m, uint32_t r, uint32_t metric, struct diff_sums *sums)
{
	const struct diff_rows *rows = &m->rows[r];
	uint32_t contexts = m->diff->runs[r].profile->contexts_count;
	uint32_t outside = m->keys.items.count, *ids;
	int code;

	if (!rows->owner)
		return 0;
	ids = malloc((contexts + (size_t)1) * sizeof *ids);
	if (!ids)
		return PLUMB_ESYSTEM;
	for (uint32_t c = 0; c < contexts; c++)
		ids[c] = rows->owner[c] < rows->count ? rows->key[rows->owner[c]] : outside;
	code = diff_sums_make(&m->diff->runs[r], metric, ids, outside + 1, sums);
	free(ids);
	return code;
}

/* Of the row whose sums are number K. */
static struct plumb_estimate
estimate_row(const struct diff_making *m, uint32_t r, uint32_t metric, const struct amounts *a,
             const struct plumb_stat *stat, double variance, uint32_t k)
{
	uint32_t windows = a->sums.windows;
	const double *sums = windows ? a->sums.sums + (size_t)k * windows : NULL;

	if (m->each)
		return plumb_estimate_mean(sums, windows);
	return diff_estimate(&m->diff->runs[r], metric, stat, variance, sums, windows);
}

static void
fill_cells(struct diff_making *m, uint32_t r, uint32_t metric, struct amounts *a)
{
	uint32_t keys = m->keys.items.count;
	struct diff_cell *cells = m->cells + (size_t)r * keys;

	for (uint32_t i = 0; i < m->rows[r].count; i++)
		cells[m->rows[r].key[i]].there = true;
	for (uint32_t k = 0; k < keys; k++)
		if (cells[k].there)
			cells[k].own = cells[k].amount =
				estimate_row(m, r, metric, a, &a->own[k], a->variance[k], k);
	if (m->diff->options.by != PLUMB_DIFF_CONTEXT ||
	    plumb_metric_aggregation(metric) == PLUMB_CALL)
		return;
	fold_sums(&m->keys, &a->sums);
	for (uint32_t k = 0; k < keys; k++)
		if (cells[k].there)
			cells[k].amount =
				estimate_row(m, r, metric, a, &a->all[k], a->variance_all[k], k);
}

int
diff_cells_fill(struct diff_making *m, uint32_t r)
{
	const struct diff_run *run = &m->diff->runs[r];
	uint32_t metric = plumb_profile_metric_find(run->profile, m->metric);
	struct amounts a = { 0 };
	int code = amounts_room(&a, m->keys.items.count) ? 0 : PLUMB_ESYSTEM;

	m->outside[r] = plumb_estimate_unknown();
	m->known[r] = metric && diff_is_recorded(run, metric);
	if (!m->known[r])
		metric = 0;
	if (!code && metric)
		code = m->diff->options.by == PLUMB_DIFF_CONTEXT
		               ? load_contexts(run, metric, &m->rows[r], &a)
		               : load_groups(run, metric, &m->rows[r], &a);
	if (!code && metric)
		code = load_sums(m, r, metric, &a.sums);
	if (!code && metric) {
		fill_cells(m, r, metric, &a);
		if (m->diff->options.by != PLUMB_DIFF_CONTEXT)
			m->outside[r] = estimate_row(m, r, metric, &a, &a.outside, NAN,
			                             m->keys.items.count);
	}
	amounts_free(&a);
	return code;
}
