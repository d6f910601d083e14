/* SPDX-License-Identifier: Apache-2.0 */
#include "view/diff_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "model/metric.h"

#define CHANGED 0.02 /* of an iteration: less is not looked into */
#define PART 0.5     /* of the change: idle time explains it, or GPU time does */
#define LEAST 0.1    /* of the change: a row that is shown */
#define BETTER 1.05  /* times as much: what later metrics have to explain to be shown instead */
#define ENOUGH 0.3   /* of the change: what the rows of a metric have to explain */

static const struct plumb_change *
find_measure(const struct plumb_diff_measure *measures, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(measures[i].name, name))
			return &measures[i].amount;
	return NULL;
}

/* Did the idle time of the GPU change about as much as an iteration, and the rows not? */
static bool
is_wanted(const struct plumb_diff *diff, const struct plumb_diff_measure *measures, uint32_t count,
          const char *rows, struct plumb_diff_host *host)
{
	const struct plumb_change *step = find_measure(measures, count, "iteration.time");
	const struct plumb_change *idle = find_measure(measures, count, "gpu.idle");
	const struct plumb_change *own = find_measure(measures, count, rows);

	if (!plumb_diff_is_normal(diff) || strcmp(rows, "gpu.time") || !step || !own || !idle ||
	    isnan(step->change) || isnan(own->change) || isnan(idle->change))
		return false;
	host->step_change = step->change;
	host->row_change = own->change;
	host->idle_change = idle->change;
	return fabs(step->change) >= CHANGED * step->before &&
	       fabs(idle->change) >= PART * fabs(step->change) &&
	       (idle->change > 0) == (step->change > 0) &&
	       (fabs(own->change) < PART * fabs(step->change) ||
	        (own->change > 0) != (step->change > 0));
}

/* ---- the threads that give GPUs work ---- */

/* By process: it has streams. Malloced; NULL: out of memory. *COUNT of them. */
static unsigned char *
find_processes(const struct plumb_profile *p, double *count)
{
	unsigned char *is = calloc((size_t)p->processes_count + 1, 1);

	*count = 0;
	for (uint32_t t = 0; is && t < p->tracks_count; t++)
		if (p->tracks[t].kind == PLUMB_TRACK_STREAM &&
		    p->tracks[t].process < p->processes_count && !is[p->tracks[t].process]) {
			is[p->tracks[t].process] = 1;
			++*count;
		}
	return is;
}

/* Samples of other threads than the main one mostly wait for work. */
static bool
is_ours(const struct plumb_profile *p, const struct plumb_value *v, const unsigned char *is)
{
	const struct plumb_track *track = v->track < p->tracks_count ? &p->tracks[v->track] : NULL;
	uint32_t process = track ? track->process : PLUMB_NONE;

	if (process >= p->processes_count || !is[process])
		return false;
	return (v->metric != PLUMB_METRIC_CPU_TIME && v->metric != PLUMB_METRIC_WAIT_TIME) ||
	       plumb_profile_main_of(p, v->track) == process;
}

/* VIEW is P without what other processes, such as those of a loader, and other threads did. */
static bool
make_view(const struct plumb_profile *p, struct plumb_profile *view, double *processes)
{
	unsigned char *is = find_processes(p, processes);
	struct plumb_value *values = calloc((size_t)p->values_count + 1, sizeof *values);
	struct plumb_span *spans = calloc((size_t)p->spans_count + 1, sizeof *spans);
	uint32_t value_count = 0, span_count = 0;

	for (uint32_t i = 0; is && values && i < p->values_count; i++)
		if (is_ours(p, &p->values[i], is))
			values[value_count++] = p->values[i];
	for (uint32_t i = 0; is && spans && i < p->spans_count; i++)
		if (p->tracks[p->spans[i].track].process < p->processes_count &&
		    is[p->tracks[p->spans[i].track].process])
			spans[span_count++] = p->spans[i];
	*view = *p;
	view->values = values;
	view->values_count = value_count;
	view->spans = spans;
	view->spans_count = span_count;
	free(is);
	return is && values && spans;
}

/* ---- rows ---- */

static double
change_of(const struct plumb_diff_row *row)
{
	const struct plumb_change *c = &row->amount;

	return !isnan(c->change) ? c->change : isnan(c->before) ? c->after : -c->before;
}

/* The rows of HOST's table that changed as iterations did. */
static void
choose_rows(struct plumb_diff_host *host)
{
	double wanted = host->step_change * host->processes;

	host->row_count = 0;
	host->explained = 0;
	for (uint32_t i = 0; i < host->table.count && host->row_count < PLUMB_DIFF_HOST_ROWS; i++) {
		double change = change_of(&host->table.rows[i]);

		if (isnan(change) || (change > 0) != (wanted > 0) ||
		    fabs(change) < LEAST * fabs(wanted))
			continue;
		host->rows[host->row_count++] = &host->table.rows[i];
		host->explained += change;
	}
}

static bool
is_recorded(const struct plumb_diff_host *host, const char *metric)
{
	for (uint32_t i = 0; i < host->profile_count; i++) {
		const struct plumb_profile *p = host->profiles[i];
		uint32_t number = plumb_profile_metric_find(p, metric), at = 0;

		while (at < p->values_count &&
		       (p->values[at].metric != number || !p->values[at].count))
			at++;
		if (!number || at == p->values_count)
			return false;
	}
	return true;
}

static void
drop_rows(struct plumb_diff_host *host)
{
	plumb_diff_table_free(&host->table);
	plumb_diff_free(host->diff);
	host->table = (struct plumb_diff_table){ 0 };
	host->diff = NULL;
	host->metric = NULL;
	host->row_count = 0;
	host->explained = 0;
}

/* Which part of the change rows that come to EXPLAINED explain: all is 1, also if they are more. */
static double
part_of(const struct plumb_diff_host *host)
{
	return fmin(fabs(host->explained) / (fabs(host->step_change) * host->processes), 1);
}

/* HOST becomes the rows of the metric NAME, if they explain more than those it has. */
static int
try_metric(struct plumb_diff_host *host, const char *name, uint32_t before,
           const struct plumb_diff_options *options, struct plumb_error *error)
{
	struct plumb_diff_host tried = *host;
	int code;

	tried.table = (struct plumb_diff_table){ 0 };
	tried.diff = plumb_diff_new(host->profiles, before, host->profile_count, options, error);
	if (!tried.diff)
		return PLUMB_ESYSTEM;
	code = plumb_diff_table(tried.diff, name, &tried.table, error);
	if (!code)
		choose_rows(&tried);
	if (code || part_of(&tried) < fmax(part_of(host) * BETTER, ENOUGH)) {
		drop_rows(&tried);
		return code;
	}
	drop_rows(host);
	*host = tried;
	host->metric = name;
	host->by = options->by;
	host->each = host->table.each;
	return 0;
}

int
plumb_diff_host_find(const struct plumb_diff *diff, const struct plumb_diff_options *options,
                     const struct plumb_diff_measure *measures, uint32_t measure_count,
                     const char *rows, struct plumb_diff_host *host, struct plumb_error *error)
{
	/* Operators and ranges know each call; samples also what is in none. */
	static const struct {
		const char *metric;
		uint32_t by;
	} tried[] = { { "op.time", PLUMB_BY_OPERATOR },
		      { "op.time", PLUMB_BY_RANGE },
		      { "op.time", PLUMB_BY_LINE },
		      { "wait.time", PLUMB_BY_LINE },
		      { "cpu.time", PLUMB_BY_LINE } };
	uint32_t before;
	const struct plumb_diff_run *runs = plumb_diff_runs(diff, &host->profile_count, &before);
	struct plumb_diff_options own = *options;
	double processes;
	int code = 0;

	*host = (struct plumb_diff_host){ .profile_count = host->profile_count };
	host->wanted = is_wanted(diff, measures, measure_count, rows, host);
	if (!host->wanted)
		return 0;
	host->views = calloc(host->profile_count, sizeof *host->views);
	host->profiles = calloc(host->profile_count, sizeof *host->profiles);
	if (!host->views || !host->profiles)
		return plumb_fail_memory(error, NULL);
	for (uint32_t i = 0; i < host->profile_count; i++) {
		if (!make_view(runs[i].profile, &host->views[i], &processes))
			return plumb_fail_memory(error, NULL);
		host->profiles[i] = &host->views[i];
		if (processes > host->processes)
			host->processes = processes;
	}
	for (size_t i = 0; !code && i < sizeof tried / sizeof *tried; i++) {
		own.by = tried[i].by;
		if (is_recorded(host, tried[i].metric))
			code = try_metric(host, tried[i].metric, before, &own, error);
	}
	return code;
}

void
plumb_diff_host_free(struct plumb_diff_host *host)
{
	plumb_diff_table_free(&host->table);
	plumb_diff_free(host->diff);
	for (uint32_t i = 0; host->views && i < host->profile_count; i++) {
		free(host->views[i].values);
		free(host->views[i].spans);
	}
	free(host->views);
	free(host->profiles);
	*host = (struct plumb_diff_host){ 0 };
}
