/* SPDX-License-Identifier: Apache-2.0 */
#include "view/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "model/metric.h"

const char *
plumb_diff_by_name(uint32_t by)
{
	return by == PLUMB_DIFF_CONTEXT     ? "context"
	       : by == PLUMB_DIFF_ITERATION ? "iteration"
	                                    : plumb_group_by_names[by];
}

uint32_t
plumb_diff_by_named(const char *name)
{
	return !strcmp(name, "context")     ? PLUMB_DIFF_CONTEXT
	       : !strcmp(name, "iteration") ? PLUMB_DIFF_ITERATION
	                                    : plumb_group_by_name(name);
}

/* ---- what is compared when nobody said ---- */

static bool
has_frames(const struct plumb_profile *p, uint32_t kind)
{
	for (uint32_t i = 0; i < p->frames_count; i++)
		if (p->frames[i].kind == kind)
			return true;
	return false;
}

static bool
has_metric(const struct plumb_profile *p, uint32_t metric)
{
	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == metric && p->values[i].count)
			return true;
	return false;
}

const char *
plumb_diff_default_metric(const struct plumb_profile *const *profiles, uint32_t count, uint32_t by)
{
	static const uint32_t wanted[] = { PLUMB_METRIC_GPU_TIME, PLUMB_METRIC_OP_TIME,
		                           PLUMB_METRIC_CPU_TIME };

	if (by == PLUMB_DIFF_ITERATION)
		return "iteration.time";
	for (size_t w = by == PLUMB_BY_SHAPE; w < sizeof wanted / sizeof *wanted; w++) {
		uint32_t have = 0;

		while (have < count && has_metric(profiles[have], wanted[w]))
			have++;
		if (have == count)
			return plumb_metrics[wanted[w]].name;
	}
	return plumb_profile_metric(profiles[0], plumb_metric_default(profiles[0])).name;
}

static uint32_t
default_by(const struct plumb_profile *const *profiles, uint32_t count)
{
	bool operators = true, kernels = true;

	for (uint32_t i = 0; i < count; i++) {
		operators &= has_frames(profiles[i], PLUMB_FRAME_OPERATOR);
		kernels &= has_frames(profiles[i], PLUMB_FRAME_KERNEL);
	}
	return operators || !kernels ? PLUMB_BY_OPERATOR : PLUMB_BY_KERNEL;
}

/* ---- what is shown ---- */

static int
compare_descending(const void *x, const void *y)
{
	const double *a = x, *b = y;

	return (*a < *b) - (*a > *b);
}

/* Marks the TOP rows with the greatest changes. For call paths, it also marks what leads to
 * them. */
static int
choose_rows(struct plumb_compared *c, uint32_t top)
{
	const struct plumb_diff_table *table = &c->table;
	double *weights = malloc((table->count + (size_t)1) * sizeof *weights), least = 0;

	c->shown = calloc(table->count + (size_t)1, 1);
	if (!weights || !c->shown) {
		free(weights);
		return PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; i < table->count; i++)
		weights[i] = plumb_diff_weight(&table->rows[i]);
	if (!top || top > table->count)
		top = table->count;
	if (top) {
		qsort(weights, table->count, sizeof *weights, compare_descending);
		least = weights[top - 1];
	}
	/* Rows above the least come first, so that the first ones are taken among equal rows. */
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < table->count && top; i++) {
			double weight = plumb_diff_weight(&table->rows[i]);

			if (pass ? weight != least : !(weight > least))
				continue;
			top--;
			for (uint32_t r = i; r != PLUMB_NONE && !c->shown[r];
			     r = table->rows[r].parent) {
				c->shown[r] = 1;
				c->shown_count++;
			}
		}
	free(weights);
	return 0;
}

/* ---- working it out ---- */

static int
measure_all(struct plumb_compared *c, struct plumb_error *error)
{
	const char *names[PLUMB_DIFF_MEASURES];
	uint32_t count = 0;
	int code = 0;

	for (; plumb_diff_measures[count]; count++)
		names[count] = plumb_diff_measures[count];
	if (strcmp(c->metric, "iteration.time"))
		names[count++] = c->metric;
	for (uint32_t i = 0; i < count && !code; i++) {
		struct plumb_diff_measure *m = &c->measures[c->measure_count];

		code = plumb_diff_measure(c->diff, names[i], m, error);
		if (!code)
			c->measure_count += !isnan(m->amount.before) || !isnan(m->amount.after);
	}
	return code;
}

static int
decide_gates(struct plumb_compared *c, struct plumb_error *error)
{
	int code = 0;

	c->holds = true;
	c->results = calloc(c->gate_count + (size_t)1, sizeof *c->results);
	if (!c->results)
		return plumb_fail_memory(error, NULL);
	for (uint32_t i = 0; i < c->gate_count && !code; i++) {
		code = plumb_gate_decide(c->diff, &c->gates[i], &c->results[i], error);
		c->holds &= c->results[i].holds;
	}
	return code;
}

/* Fills in what the query leaves open, and the metric's unit. */
static void
fill_defaults(struct plumb_compared *c, const struct plumb_diff_query *query, uint32_t count)
{
	c->by = query->by ? query->by : default_by(c->profiles, count);
	c->metric = query->metric ? query->metric
	                          : plumb_diff_default_metric(c->profiles, count, c->by);
	c->unit = "ns";
	for (uint32_t i = 0; i < count; i++) {
		uint32_t metric = plumb_profile_metric_find(c->profiles[i], c->metric);

		if (metric)
			c->unit = plumb_profile_metric(c->profiles[i], metric).unit;
	}
}

int
plumb_compared_make(const struct plumb_profile *const *profiles, uint32_t before, uint32_t count,
                    const struct plumb_diff_query *query, struct plumb_compared *c,
                    struct plumb_error *error)
{
	struct plumb_diff_options wanted = {
		.total = query->total, .iterations = { query->iterations[0], query->iterations[1] }
	};
	int code;

	*c = (struct plumb_compared){ .gates = query->gates, .gate_count = query->gate_count };
	c->profiles = calloc(count, sizeof *c->profiles);
	if (!c->profiles)
		return plumb_fail_memory(error, NULL);
	memcpy(c->profiles, profiles, count * sizeof *profiles);
	fill_defaults(c, query, count);
	if ((c->by == PLUMB_DIFF_ITERATION) != !strcmp(c->metric, "iteration.time"))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--by iteration has only the metric iteration.time, and only it "
		                  "has this metric");
	wanted.by = c->by;
	c->diff = plumb_diff_new(c->profiles, before, count, &wanted, error);
	if (!c->diff)
		return PLUMB_ESYSTEM;
	code = plumb_diff_environment(c->diff, &c->environment, error);
	if (!code)
		code = measure_all(c, error);
	if (!code)
		code = plumb_diff_table(c->diff, c->metric, &c->table, error);
	if (!code)
		code = plumb_diff_host_find(c->diff, &wanted, c->measures, c->measure_count,
		                            c->metric, &c->host, error);
	if (!code)
		code = decide_gates(c, error);
	return code ? code : choose_rows(c, query->top) < 0 ? plumb_fail_memory(error, NULL) : 0;
}

void
plumb_compared_free(struct plumb_compared *c)
{
	plumb_diff_host_free(&c->host);
	plumb_diff_table_free(&c->table);
	plumb_diff_environment_free(&c->environment);
	plumb_diff_free(c->diff);
	free(c->results);
	free(c->shown);
	free(c->profiles);
}
