/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The corrected tree. A path has the time that it has in the runs of its own level. Contexts that
 * only deeper levels see (a Python line around the path) share it, in the proportion of the first
 * run. Where the paths of M/L take longer together than the iteration of M, they are scaled into
 * it. Whole numbers come from rounding running sums, so that the parts of a whole add up to it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/levels_private.h"

#define GROUP_MOST 200 /* contexts that are compared with each other */

struct tree {
	const struct plumb_levels *levels;
	const struct plumb_profile *p;
	int metric;
	uint32_t level;
	int64_t *recorded;        /* own, by context: what the first run has */
	double *shares;           /* of its path, by context */
	double *paths;            /* by node: in the loop, corrected; NAN: left out, or none */
	int64_t *own, *corrected; /* by context */
	double scale;             /* paths of M/L into the iteration of M */
	double *scratch;          /* by run */
	double *row;              /* by context */
	double *taken;            /* by run and context */
	struct plumb_level_estimate *at_own, *at_deepest; /* by context */
};

/* ---- what the first run has ---- */

static void
add_recorded(struct tree *t, uint32_t context, uint32_t metric, int64_t sum)
{
	if (metric == plumb_levels_metrics[t->metric])
		t->recorded[context] += sum;
}

static void
take_recorded(struct tree *t)
{
	const struct plumb_profile *p = t->p;
	bool loop = t->levels->loop.process != PLUMB_NONE;
	const double *ns = t->levels->first.sums[t->metric].ns;

	for (uint32_t i = 0; !loop && i < p->values_count; i++)
		add_recorded(t, p->values[i].context, p->values[i].metric, p->values[i].sum);
	for (uint32_t i = 0; loop && i < p->window_values_count; i++)
		if (p->window_values[i].window == t->levels->loop.window)
			add_recorded(t, p->window_values[i].context, p->window_values[i].metric,
			             p->window_values[i].sum);
	for (uint32_t i = 0; i < p->contexts_count; i++) {
		double path = ns[t->levels->node_of[i]];
		t->shares[i] = path > 0 ? (double)t->recorded[i] / path : 0;
	}
}

/* ---- paths ---- */

static void
take_paths(struct tree *t)
{
	const struct plumb_levels *levels = t->levels;

	for (uint32_t n = 0; n < levels->nodes.count; n++) {
		uint32_t count = 0;

		for (uint32_t i = 0; i < levels->runs.count; i++) {
			const struct plumb_levels_run *run = &levels->runs.items[i];
			double value = plumb_levels_has(run, t->level)
			                       ? plumb_levels_value(levels, run, t->metric, n)
			                       : NAN;
			if (!isnan(value))
				t->scratch[count++] = value;
		}
		t->paths[n] = levels->unlike[t->metric][n]
		                      ? NAN
		                      : plumb_level_estimate(t->scratch, count).value;
	}
}

/* How much of an iteration of M the paths of M/L may take. Several threads may work at once: then
 * they take more than the iteration of M/L by itself. */
static double
budget(const struct tree *t, double paths)
{
	const struct plumb_levels *levels = t->levels;
	double model = plumb_levels_times(levels, PLUMB_LEVEL_M, t->scratch).value;
	double layers = plumb_levels_times(levels, PLUMB_LEVEL_ML, t->scratch).value;
	double steps = levels->steps;

	if (isnan(model) || isnan(layers) || !(layers > 0))
		return INFINITY;
	return model * steps * fmax(1, paths / (layers * steps));
}

static void
scale_paths(struct tree *t)
{
	double sum = 0, most;

	t->scale = 1;
	if (t->level != PLUMB_LEVEL_ML)
		return;
	for (uint32_t n = 0; n < t->levels->nodes.count; n++)
		sum += isnan(t->paths[n]) ? 0 : t->paths[n];
	most = budget(t, sum);
	if (sum > most)
		t->scale = most / sum;
	for (uint32_t n = 0; n < t->levels->nodes.count; n++)
		t->paths[n] *= t->scale;
}

/* ---- contexts ---- */

/* Contexts in their order take what is left of the running sum. */
static void
correct_own(struct tree *t)
{
	double sum = 0;
	int64_t given = 0;

	for (uint32_t i = 0; i < t->p->contexts_count; i++) {
		double path = t->paths[t->levels->node_of[i]];

		t->own[i] = 0;
		if (isnan(path)) {
			t->own[i] = t->recorded[i] ? PLUMB_UNKNOWN : 0;
			continue;
		}
		sum += path * t->shares[i];
		t->own[i] = (int64_t)floor(sum) - given;
		given += t->own[i];
	}
}

/* Adds up from the leaves, which come after their parents. Unknown parts do not count. */
static void
add_up(struct tree *t)
{
	for (uint32_t i = 0; i < t->p->contexts_count; i++)
		t->corrected[i] = t->own[i] == PLUMB_UNKNOWN ? 0 : t->own[i];
	for (uint32_t i = t->p->contexts_count; i-- > 1;)
		t->corrected[t->p->contexts[i].parent] += t->corrected[i];
}

/* What each context takes in the runs of LEVEL, with its interval over the runs. */
static void
estimate(struct tree *t, uint32_t level, double scale, struct plumb_level_estimate *into)
{
	const struct plumb_levels *levels = t->levels;
	uint32_t contexts = t->p->contexts_count, count = 0;

	for (uint32_t r = 0; r < levels->runs.count; r++) {
		const struct plumb_levels_run *run = &levels->runs.items[r];
		double *row = t->taken + (size_t)count * contexts;

		if (!plumb_levels_has(run, level))
			continue;
		for (uint32_t i = 0; i < contexts; i++) {
			uint32_t node = levels->node_of[i];
			double path = plumb_levels_value(levels, run, t->metric, node);

			row[i] = isnan(path) || isnan(t->paths[node]) || !t->shares[i]
			                 ? 0
			                 : path * t->shares[i] * scale;
		}
		for (uint32_t i = contexts; i-- > 1;)
			row[t->p->contexts[i].parent] += row[i];
		count++;
	}
	for (uint32_t i = 0; i < contexts; i++) {
		for (uint32_t r = 0; r < count; r++)
			t->scratch[r] = t->taken[(size_t)r * contexts + i];
		into[i] = plumb_level_estimate(t->scratch, count);
	}
}

/* ---- the order ---- */

static int
by_measured(const void *a, const void *b)
{
	const struct plumb_level_estimate *x = *(const struct plumb_level_estimate *const *)a;
	const struct plumb_level_estimate *y = *(const struct plumb_level_estimate *const *)b;

	return (x->value < y->value) - (x->value > y->value);
}

/* Of the COUNT contexts of GROUP (as pointers into at_deepest), those that are passed. */
static void
find_passed(const struct tree *t, const struct plumb_level_estimate **group, uint32_t count,
            uint32_t *passed)
{
	qsort(group, count, sizeof *group, by_measured);
	if (count > GROUP_MOST)
		count = GROUP_MOST;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t a = (uint32_t)(group[i] - t->at_deepest);

		for (uint32_t k = i + 1; k < count; k++) {
			uint32_t b = (uint32_t)(group[k] - t->at_deepest);
			/* Comparisons with an unknown interval do not hold. */
			if (group[i]->low > group[k]->high &&
			    t->at_own[a].high < t->at_own[b].low &&
			    (passed[a] == PLUMB_NONE || t->corrected[b] > t->corrected[passed[a]]))
				passed[a] = b;
		}
	}
}

/* Is there a frame of one of KINDS (bits) below CONTEXT? */
static bool
has_below(const struct plumb_profile *p, uint32_t context, unsigned kinds)
{
	for (uint32_t k = context + 1; k <= p->contexts[context].last; k++)
		if (1u << plumb_context_frame(p, k)->kind & kinds)
			return true;
	return false;
}

#define MODULES (1u << PLUMB_FRAME_MODULE)
#define RANGES (MODULES | 1u << PLUMB_FRAME_OPERATOR | 1u << PLUMB_FRAME_RANGE)

bool
plumb_level_begins_layer(const struct plumb_profile *p, uint32_t context)
{
	uint32_t kind = plumb_context_frame(p, context)->kind;

	return kind == PLUMB_FRAME_OPERATOR ||
	       (kind == PLUMB_FRAME_MODULE && !has_below(p, context, MODULES)) ||
	       (kind == PLUMB_FRAME_RANGE && !has_below(p, context, RANGES));
}

/* Layers, as one group. */
static uint32_t
take_layers(const struct tree *t, const struct plumb_level_estimate **group)
{
	const struct plumb_profile *p = t->p;
	uint32_t count = 0;

	for (uint32_t i = 1, end = 0; i < p->contexts_count; i++) {
		if (i <= end || !plumb_level_begins_layer(p, i))
			continue; /* it is within a layer, or in none */
		end = p->contexts[i].last;
		group[count++] = &t->at_deepest[i];
	}
	return count;
}

/* Marks contexts that seem to cost more than another one, and cost less: among the layers, and
 * among the children of each context. */
static int
find_order(const struct tree *t, uint32_t *passed)
{
	const struct plumb_profile *p = t->p;
	const struct plumb_level_estimate **group =
		malloc(((size_t)p->contexts_count + 1) * sizeof *group);

	if (!group)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < p->contexts_count; i++)
		passed[i] = PLUMB_NONE;
	find_passed(t, group, take_layers(t, group), passed);
	for (uint32_t i = 0; i < p->contexts_count; i++) {
		uint32_t count = 0;

		for (uint32_t k = i + 1; k <= p->contexts[i].last; k = p->contexts[k].last + 1)
			group[count++] = &t->at_deepest[k];
		if (count > 1)
			find_passed(t, group, count, passed);
	}
	free(group);
	return 0;
}

/* ---- rows ---- */

static int64_t
whole(double ns)
{
	return isfinite(ns) && fabs(ns) < 9e18 ? llround(ns) : PLUMB_UNKNOWN;
}

struct rows {
	PLUMB_VEC(struct plumb_level_value) all;
};

static int
make_rows(struct tree *t, struct rows *rows, const uint32_t *passed, const int64_t *within)
{
	for (uint32_t i = 0; i < t->p->contexts_count; i++) {
		struct plumb_level_value *row;
		const struct plumb_level_estimate *e = &t->at_own[i];

		if (!within[i] && !t->corrected[i])
			continue;
		row = plumb_vec_add(&rows->all);
		if (!row)
			return PLUMB_ESYSTEM;
		*row = (struct plumb_level_value){ .context = i,
			                           .metric = plumb_levels_metrics[t->metric],
			                           .level = t->level,
			                           .own_recorded_ns = t->recorded[i],
			                           .own_ns = t->own[i],
			                           .corrected_ns = t->corrected[i],
			                           .passed = passed[i] };
		if (t->own[i] == PLUMB_UNKNOWN && !t->corrected[i])
			row->corrected_ns = PLUMB_UNKNOWN;
		row->measured_ns = row->corrected_ns == PLUMB_UNKNOWN
		                           ? PLUMB_UNKNOWN
		                           : whole(t->at_deepest[i].value);
		row->low_ns = row->high_ns = PLUMB_UNKNOWN;
		if (row->corrected_ns == PLUMB_UNKNOWN || isnan(e->low))
			continue;
		row->low_ns = whole(fmax(0, fmin(e->low, (double)t->corrected[i])));
		row->high_ns = whole(fmax(e->high, (double)t->corrected[i]));
	}
	return 0;
}

/* What each context recorded, with all below it. NULL: no memory. */
static int64_t *
add_recorded_up(const struct tree *t)
{
	int64_t *sum = malloc(((size_t)t->p->contexts_count + 1) * sizeof *sum);

	if (!sum)
		return NULL;
	memcpy(sum, t->recorded, t->p->contexts_count * sizeof *sum);
	for (uint32_t i = t->p->contexts_count; i-- > 1;)
		sum[t->p->contexts[i].parent] += sum[i];
	return sum;
}

static int
correct_metric(struct tree *t, struct rows *rows)
{
	uint32_t *passed = malloc(((size_t)t->p->contexts_count + 1) * sizeof *passed);
	int64_t *within;
	int code = PLUMB_ESYSTEM;

	take_recorded(t);
	within = add_recorded_up(t);
	if (passed && within) {
		take_paths(t);
		scale_paths(t);
		correct_own(t);
		add_up(t);
		estimate(t, t->level, t->scale, t->at_own);
		estimate(t, PLUMB_LEVEL_MLG, 1, t->at_deepest);
		code = find_order(t, passed);
	}
	if (!code)
		code = make_rows(t, rows, passed, within);
	free(passed);
	free(within);
	return code;
}

static bool
tree_new(struct tree *t, const struct plumb_levels *levels, int metric, uint32_t level)
{
	size_t contexts = levels->profile->contexts_count + 1u;
	size_t runs = levels->runs.count + 1u;

	*t = (struct tree){ .levels = levels, .p = levels->profile, .metric = metric };
	t->level = level;
	t->recorded = calloc(contexts, sizeof *t->recorded);
	t->shares = calloc(contexts, sizeof *t->shares);
	t->paths = calloc(levels->nodes.count + 1u, sizeof *t->paths);
	t->own = calloc(contexts, sizeof *t->own);
	t->corrected = calloc(contexts, sizeof *t->corrected);
	t->scratch = calloc(runs, sizeof *t->scratch);
	t->taken = calloc(contexts * runs, sizeof *t->taken);
	t->at_own = calloc(contexts, sizeof *t->at_own);
	t->at_deepest = calloc(contexts, sizeof *t->at_deepest);
	return t->recorded && t->shares && t->paths && t->own && t->corrected && t->scratch &&
	       t->taken && t->at_own && t->at_deepest;
}

static void
tree_free(struct tree *t)
{
	free(t->recorded);
	free(t->shares);
	free(t->paths);
	free(t->own);
	free(t->corrected);
	free(t->scratch);
	free(t->taken);
	free(t->at_own);
	free(t->at_deepest);
}

static bool
was_run(const struct plumb_levels *levels, uint32_t level)
{
	for (uint32_t i = 0; i < levels->runs.count; i++)
		if (plumb_levels_has(&levels->runs.items[i], level))
			return true;
	return false;
}

int
plumb_levels_correct(const struct plumb_levels *levels, struct plumb_level_value **values,
                     uint32_t *count)
{
	static const struct {
		int metric;
		uint32_t level;
	} wanted[] = { { PLUMB_CORRECTED_HOST, PLUMB_LEVEL_ML },
		       { PLUMB_CORRECTED_KERNELS, PLUMB_LEVEL_MLG },
		       { PLUMB_CORRECTED_COPIES, PLUMB_LEVEL_MLG },
		       { PLUMB_CORRECTED_HOST, PLUMB_LEVEL_SERIALISED } };
	struct rows rows = { 0 };
	int code = 0;

	for (size_t i = 0; i < sizeof wanted / sizeof *wanted && !code; i++) {
		struct tree tree;

		if (!was_run(levels, wanted[i].level))
			continue;
		code = tree_new(&tree, levels, wanted[i].metric, wanted[i].level)
		               ? correct_metric(&tree, &rows)
		               : PLUMB_ESYSTEM;
		tree_free(&tree);
	}
	if (code)
		plumb_vec_free(&rows.all);
	*values = rows.all.items;
	*count = rows.all.count;
	return code;
}
