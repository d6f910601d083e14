/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One number for a whole run. Where iterations are known one by one it is their median: a first
 * iteration that compiles, a pause of the machine or a checkpoint in between do not move it. Else
 * it is what the recording holds in all, divided by its iterations where their number is known.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/diff/cells.h"
#include "model/metric.h"

#define WINDOWS_LEAST 3u /* of each run, for a median */

const char *const plumb_diff_measures[] = { "iteration.time", "gpu.busy", "gpu.idle", "run.time",
	                                    NULL };
enum measure { ITERATION_TIME, GPU_BUSY, GPU_IDLE, RUN_TIME, METRIC };

/* ---- iterations one by one ---- */

static bool
is_each_known(const struct plumb_diff *diff, bool gpu, uint32_t least)
{
	for (uint32_t r = 0; r < diff->count; r++) {
		const struct diff_steps *s = &diff->runs[r].steps;

		if (gpu != (s->gpu_count > 0) || diff_windows_count(diff, r) < least)
			return false;
	}
	return true;
}

/* The time of iteration K of WINDOWS, the last ones of all devices (of which the average), or their
 * busy or idle time (added up). */
static double
sample_iteration(const struct diff_steps *s, enum measure measure, uint32_t k, uint32_t windows)
{
	double sum = 0;

	for (uint32_t i = 0; i < s->gpu_count; i++) {
		const struct diff_windows *w = &s->gpus[i];
		uint32_t at = w->count - windows + k;
		double time = (double)(w->end[at] - w->start[at]);

		sum += measure == ITERATION_TIME ? time / s->gpu_count
		       : measure == GPU_BUSY     ? (double)w->busy[at]
		                                 : time - (double)w->busy[at];
	}
	if (!s->gpu_count)
		sum = (double)(s->host.end[k] - s->host.start[k]);
	return sum;
}

double
diff_iteration_time(const struct diff_steps *steps, uint32_t k, uint32_t windows)
{
	return sample_iteration(steps, ITERATION_TIME, k, windows);
}

static int
by_iteration(const struct plumb_diff *diff, uint32_t r, enum measure measure,
             struct plumb_estimate *estimate)
{
	uint32_t windows = diff_windows_count(diff, r);
	double *samples = malloc((windows + (size_t)1) * sizeof *samples);
	int code;

	for (uint32_t k = 0; samples && k < windows; k++)
		samples[k] = sample_iteration(&diff->runs[r].steps, measure, k, windows);
	code = samples ? plumb_estimate_median(samples, windows, estimate) : PLUMB_ESYSTEM;
	free(samples);
	return code;
}

/* ---- sums ---- */

/* How much the busy time of a run varies, as a part of it, by its series; NAN: not known. */
static struct plumb_estimate
of_series(const struct plumb_profile *p)
{
	struct plumb_estimate mean = plumb_estimate_unknown();
	double *shares = malloc((p->series_count + (size_t)1) * sizeof *shares);
	uint32_t n = 0, from = 0, device = PLUMB_NONE, process = PLUMB_NONE;

	for (uint32_t i = 0; shares && i < p->series_count; i++) { /* one device of one process */
		const struct plumb_series_bin *bin = &p->series[i];

		if (device == PLUMB_NONE)
			device = bin->device, process = bin->process;
		if (bin->device == device && bin->process == process && bin->width_ns > 0)
			shares[n++] = (double)bin->busy_ns / (double)bin->width_ns;
	}
	while (n && shares[n - 1] == 0)
		n--;
	while (from < n && shares[from] == 0)
		from++;
	if (shares)
		mean = plumb_estimate_mean(shares + from, n - from);
	free(shares);
	if (mean.value > 0) {
		mean.error /= mean.value;
		mean.value = 1;
		mean.basis = isnan(mean.error) ? PLUMB_SPREAD_NONE : PLUMB_SPREAD_SERIES;
	}
	return mean;
}

static void
set_series_error(const struct plumb_diff *diff, uint32_t r, struct plumb_estimate *estimate)
{
	struct plumb_estimate series = of_series(diff->runs[r].profile);

	if (diff->from != PLUMB_STEPS_NONE || series.basis != PLUMB_SPREAD_SERIES)
		return;
	estimate->error = series.error * estimate->value;
	estimate->freedom = series.freedom;
	estimate->basis = series.basis;
}

static struct plumb_estimate
busy_of(const struct plumb_diff *diff, uint32_t r)
{
	const struct plumb_profile *p = diff->runs[r].profile;
	struct plumb_estimate estimate = plumb_estimate_unknown();
	double busy = 0;

	for (uint32_t i = 0; i < p->devices_count; i++)
		busy += p->devices[i].busy_ns == PLUMB_UNKNOWN ? NAN
		                                               : (double)p->devices[i].busy_ns;
	if (!p->devices_count || isnan(busy))
		return estimate;
	estimate.value = busy / diff->runs[r].per;
	set_series_error(diff, r, &estimate);
	return estimate;
}

/* The metric as a whole; iteration by iteration into SUMS. */
static int
load_metric(const struct plumb_diff *diff, uint32_t r, uint32_t metric, struct plumb_stat *stat,
            double *variance, struct diff_sums *sums)
{
	const struct plumb_profile *p = diff->runs[r].profile;
	uint32_t *ids = calloc(p->contexts_count + (size_t)1, sizeof *ids);
	int code = ids ? diff_sums_make(&diff->runs[r], metric, ids, 1, sums) : PLUMB_ESYSTEM;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		struct plumb_stat other = plumb_value_stat(v);

		if (v->metric != metric)
			continue;
		plumb_stat_merge(stat, &other);
		*variance += diff_variance(v);
	}
	free(ids);
	return code;
}

static int
of_metric(const struct plumb_diff *diff, uint32_t r, const char *name, bool each,
          struct plumb_estimate *estimate)
{
	const struct diff_run *run = &diff->runs[r];
	uint32_t metric = plumb_profile_metric_find(run->profile, name);
	struct plumb_stat stat = { 0 };
	struct diff_sums sums = { 0 };
	double variance = 0;
	int code;

	*estimate = plumb_estimate_unknown();
	if (!metric)
		return 0;
	code = load_metric(diff, r, metric, &stat, &variance, &sums);
	if (!code && each)
		code = plumb_estimate_median(sums.sums, sums.windows, estimate);
	else if (!code && diff_is_recorded(run, metric)) {
		*estimate = diff_estimate(run, metric, &stat, variance, sums.sums, sums.windows);
		if (metric == PLUMB_METRIC_GPU_TIME || metric == PLUMB_METRIC_GPU_COPY_TIME)
			set_series_error(diff, r, estimate);
	}
	free(sums.sums);
	return code;
}

int
diff_sums_known(const struct plumb_diff *diff, const char *name)
{
	for (uint32_t r = 0; r < diff->count; r++) {
		uint32_t metric = plumb_profile_metric_find(diff->runs[r].profile, name);
		struct plumb_stat stat = { 0 };
		struct diff_sums sums = { 0 };
		double variance = 0;
		int code = metric ? load_metric(diff, r, metric, &stat, &variance, &sums) : 0;
		uint32_t windows = sums.windows;

		free(sums.sums);
		if (code)
			return code;
		if (windows < WINDOWS_LEAST || !stat.count ||
		    plumb_metric_aggregation(metric) != PLUMB_SUM)
			return 0;
	}
	return 1;
}

/* ---- measures ---- */

static const char *
unit_of(const struct plumb_diff *diff, const char *name, enum plumb_aggregation *aggregation)
{
	for (uint32_t r = 0; r < diff->count; r++) {
		const struct plumb_profile *p = diff->runs[r].profile;
		uint32_t metric = plumb_profile_metric_find(p, name);

		if (!metric)
			continue;
		*aggregation = plumb_metric_aggregation(metric);
		const char *unit = plumb_profile_metric(p, metric).unit;
		return unit ? unit : "count";
	}
	return NULL;
}

static enum measure
measure_of(const char *name)
{
	uint32_t m = 0;

	while (plumb_diff_measures[m] && strcmp(plumb_diff_measures[m], name))
		m++;
	return (enum measure)m;
}

/* Iteration by iteration, in all runs? 1, 0, or PLUMB_ESYSTEM. */
static int
is_each(const struct plumb_diff *diff, const char *name, enum measure m)
{
	/* What the person takes for an iteration may be no round of the loop. */
	bool sums = !diff->options.total && diff->from != PLUMB_STEPS_GIVEN;

	switch (m) {
	case ITERATION_TIME:
		return 1;
	case GPU_BUSY:
		return sums && is_each_known(diff, true, WINDOWS_LEAST);
	case GPU_IDLE:
		return 1;
	case RUN_TIME:
		return 0;
	case METRIC:
		return sums ? diff_sums_known(diff, name) : 0;
	}
	return 0;
}

static const char *
statistic_of(const struct plumb_diff *diff, enum measure m, enum plumb_aggregation aggregation,
             bool each)
{
	if (each)
		return "median of iterations";
	if (m == RUN_TIME)
		return "of the run";
	if (m == METRIC && aggregation != PLUMB_SUM)
		return aggregation == PLUMB_MAX ? "max" : "mean of calls";
	return plumb_diff_is_normal(diff) ? "sum of an iteration" : "sum";
}

static int
estimate_run(const struct plumb_diff *diff, uint32_t r, const char *name, enum measure m, bool each,
             struct plumb_estimate *estimate)
{
	bool gpu = is_each_known(diff, true, 1);
	int64_t wall = diff->runs[r].profile->run.wall_ns;

	*estimate = plumb_estimate_unknown();
	if (m == METRIC)
		return of_metric(diff, r, name, each, estimate);
	if (each && (gpu || (m == ITERATION_TIME && is_each_known(diff, false, 1))))
		return by_iteration(diff, r, m, estimate);
	if (m == GPU_BUSY)
		*estimate = busy_of(diff, r);
	if (m == RUN_TIME && wall != PLUMB_UNKNOWN && wall > 0)
		estimate->value = (double)wall;
	return 0;
}

int
plumb_diff_measure(const struct plumb_diff *diff, const char *name,
                   struct plumb_diff_measure *measure, struct plumb_error *error)
{
	enum measure m = measure_of(name);
	enum plumb_aggregation aggregation = PLUMB_SUM;
	const char *unit = m == METRIC ? unit_of(diff, name, &aggregation) : "ns";
	struct plumb_estimate *runs, before, after;
	int code = 0, each;

	if (!unit)
		return plumb_fail(
			error, PLUMB_EUSAGE,
			"there is no measure or metric \"%s\"; use iteration.time, gpu.busy, "
			"gpu.idle, run.time, or a metric that \"plumb help metrics\" lists",
			name);
	each = is_each(diff, name, m);
	runs = calloc(diff->count, sizeof *runs);
	if (each < 0 || !runs)
		code = PLUMB_ESYSTEM;
	for (uint32_t r = 0; !code && r < diff->count; r++)
		code = estimate_run(diff, r, name, m, each, &runs[r]);
	if (code) {
		free(runs);
		return diff_no_memory(error);
	}
	before = plumb_estimate_runs(runs, diff->before);
	after = plumb_estimate_runs(runs + diff->before, diff->count - diff->before);
	free(runs);
	*measure =
		(struct plumb_diff_measure){ name, unit, statistic_of(diff, m, aggregation, each),
		                             plumb_change(&before, &after) };
	return 0;
}
