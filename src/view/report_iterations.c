/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report of one iteration: values divided by the iterations of a window, and by how much they
 * vary.
 *
 * Where the newest GPU work, or spans, give the times of iterations, the value of each is added up
 * and the deviation is exact. Else it follows from how much single calls vary, as if each were
 * independent of the others: the variances of an iteration's calls add up.
 */
#include <math.h>
#include <stdlib.h>

#include "analyze/iterations.h"
#include "base/search.h"
#include "model/gpu_work.h"
#include "view/report_private.h"

#define EXACT_LEAST 4

int64_t
plumb_report_each(const struct plumb_report *report, int64_t amount)
{
	return report->iterations <= 0 || amount == PLUMB_UNKNOWN
	               ? amount
	               : llround((double)amount / (double)report->iterations);
}

/* ---- from the times of iterations ---- */

/* A row's value in the iterations so far. */
struct sums {
	double *now, *mean, *m2;
	uint32_t *at;    /* the iteration that `now` is of, from 1 */
	uint32_t *count; /* how many are in mean and m2 */
	double *variance;
};

static bool
make_sums(struct sums *s, uint32_t rows)
{
	s->now = calloc(rows + 1u, sizeof *s->now);
	s->mean = calloc(rows + 1u, sizeof *s->mean);
	s->m2 = calloc(rows + 1u, sizeof *s->m2);
	s->at = calloc(rows + 1u, sizeof *s->at);
	s->count = calloc(rows + 1u, sizeof *s->count);
	s->variance = calloc(rows + 1u, sizeof *s->variance);
	return s->now && s->mean && s->m2 && s->at && s->count && s->variance;
}

static void
free_sums(struct sums *s)
{
	free(s->now);
	free(s->mean);
	free(s->m2);
	free(s->at);
	free(s->count);
	free(s->variance);
}

static void
take(struct sums *s, uint32_t row, double value)
{
	double delta = value - s->mean[row];

	s->mean[row] += delta / ++s->count[row];
	s->m2[row] += delta * (value - s->mean[row]);
}

/* Ends what ROW has of earlier iterations than AT: where it had nothing, it had 0. */
static void
move_on(struct sums *s, uint32_t row, uint32_t at)
{
	if (s->at[row])
		take(s, row, s->now[row]);
	while (s->count[row] + 1 < at)
		take(s, row, 0);
	s->now[row] = 0;
	s->at[row] = at;
}

/* The iteration that the work at START is of, from 1; 0: none. */
static uint32_t
iteration_at(const struct plumb_iteration_level *level, int64_t start)
{
	uint32_t i = plumb_search(k, level->count, level->items[k].start_ns <= start);

	return i && start <= level->items[i - 1].end_ns ? i : 0;
}

struct item {
	int64_t start;
	uint32_t row;
	int64_t ns;
};

static int
by_start(const void *left, const void *right)
{
	const struct item *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* The kernels of TRACK's device and process in iterations, by start. Malloced. */
static struct item *
collect_items(const struct plumb_report *report, const struct plumb_gpu_work *work,
              const struct plumb_iteration_track *track, uint32_t *count)
{
	const struct plumb_profile *p = report->profile;
	uint32_t most = 0;
	struct item *items;

	*count = 0;
	for (uint32_t t = 0; t < p->tracks_count; t++) {
		struct plumb_gpu_range range = plumb_gpu_work_of(work, t);
		most += range.end - range.first;
	}
	items = malloc(((size_t)most + 1) * sizeof *items);
	for (uint32_t t = 0; items && t < p->tracks_count; t++) {
		struct plumb_gpu_range range = plumb_gpu_work_of(work, t);
		if (p->tracks[t].device != track->device || p->tracks[t].process != track->process)
			continue;
		for (uint32_t i = range.first; i < range.end; i++) {
			const struct plumb_span *span = &work->spans[i];
			uint32_t row = plumb_grouping_owner(report->grouping, span->context);
			if (plumb_context_frame(p, span->context)->kind == PLUMB_FRAME_KERNEL &&
			    row != PLUMB_NONE)
				items[(*count)++] = (struct item){ span->start_ns, row,
					                           span->end_ns - span->start_ns };
		}
	}
	if (items)
		qsort(items, *count, sizeof *items, by_start);
	return items;
}

/* Adds the variances that a device's iterations show. */
static bool
add_track(struct sums *s, const struct plumb_report *report, const struct plumb_gpu_work *work,
          const struct plumb_iteration_track *track)
{
	const struct plumb_iteration_level *level = &track->levels[0];
	uint32_t rows = plumb_grouping_count(report->grouping), count;
	struct item *items = collect_items(report, work, track, &count);

	if (!items)
		return false;
	for (uint32_t r = 0; r < rows; r++) {
		s->now[r] = s->mean[r] = s->m2[r] = 0;
		s->at[r] = s->count[r] = 0;
	}
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = iteration_at(level, items[i].start);
		if (!at)
			continue;
		if (s->at[items[i].row] != at)
			move_on(s, items[i].row, at);
		s->now[items[i].row] += (double)items[i].ns;
	}
	for (uint32_t r = 0; r < rows; r++) {
		move_on(s, r, level->count + 1);
		s->variance[r] += s->m2[r] / (level->count - 1);
	}
	free(items);
	return true;
}

/* Are the iterations of TRACK those of the window, by how long they take? */
static bool
is_of_window(const struct plumb_report *report, const struct plumb_iteration_track *track)
{
	double mean = (double)report->profile->run.wall_ns / (double)report->iterations;
	const struct plumb_iteration_level *level = track->levels;
	double each;

	if (track->role != PLUMB_ROLE_MAIN || !track->level_count || level->count < EXACT_LEAST)
		return false;
	each = (double)(level->items[level->count - 1].start_ns - level->items[0].start_ns) /
	       (level->count - 1);
	return track->loops[track->main_loop].stretches == 1 && each < 1.5 * mean &&
	       each > mean / 1.5;
}

/* *EXACT: the spreads of gpu.time are known. */
static int
find_exact(struct plumb_report *report, bool *exact, struct plumb_error *error)
{
	uint32_t rows = plumb_grouping_count(report->grouping);
	struct plumb_iterations found = { 0 };
	struct plumb_gpu_work work = { 0 };
	struct sums sums = { 0 };
	int code = plumb_iterations_find(report->profile, NULL, &found, error);
	bool ok = true;

	if (!code && plumb_gpu_work_find(report->profile, &work) < 0)
		code = plumb_fail_memory(error, "for iterations");
	ok = !code && make_sums(&sums, rows);
	for (uint32_t t = 0; ok && t < found.count; t++) {
		if (!is_of_window(report, &found.tracks[t]))
			continue;
		ok = add_track(&sums, report, &work, &found.tracks[t]);
		*exact = true;
	}
	for (uint32_t r = 0; ok && *exact && r < rows; r++)
		report->spreads[r] = (struct plumb_spread){ sqrt(sums.variance[r]), true };
	free_sums(&sums);
	plumb_gpu_work_free(&work);
	plumb_iterations_free(&found);
	return code ? code : ok ? 0 : plumb_fail_memory(error, "for iterations");
}

/* ---- from single calls ---- */

static void
add_calls(struct plumb_report *report)
{
	const struct plumb_profile *p = report->profile;

	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t row = v->metric == report->metric
		                       ? plumb_grouping_owner(report->grouping, v->context)
		                       : PLUMB_NONE;
		double each = (double)v->count / (double)report->iterations;

		if (row == PLUMB_NONE)
			continue;
		/* Less than two calls show no variance. */
		report->spreads[row].deviation +=
			v->count < 2 ? NAN : each * v->m2 / (double)(v->count - 1);
	}
	for (uint32_t r = 0; r < plumb_grouping_count(report->grouping); r++)
		report->spreads[r].deviation = sqrt(report->spreads[r].deviation);
}

/* Do contexts say which row a value is of? */
static bool
has_owners(const struct plumb_report *report)
{
	return report->grouping && !plumb_report_is_where(report->by) &&
	       report->by != PLUMB_BY_SHAPE &&
	       plumb_metric_aggregation(report->metric) == PLUMB_SUM;
}

int
plumb_report_iterations_make(struct plumb_report *report, struct plumb_error *error)
{
	bool exact = false;
	int code = 0;

	report->iterations = report->profile->window.iterations;
	if (!report->profile->window.kind || report->iterations <= 0) {
		report->iterations = 0;
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "how many iterations this window has is not known; leave out "
		                  "--per-iteration");
	}
	if (!has_owners(report))
		return 0;
	report->spreads =
		calloc(plumb_grouping_count(report->grouping) + 1u, sizeof *report->spreads);
	if (!report->spreads)
		return plumb_fail_memory(error, "for iterations");
	if (report->metric == PLUMB_METRIC_GPU_TIME)
		code = find_exact(report, &exact, error);
	if (!code && !exact)
		add_calls(report);
	return code;
}

/* ---- JSON ---- */

static void
write_each(struct plumb_json *json, const struct plumb_report *report, const char *key,
           const struct plumb_stat *stat)
{
	double iterations = (double)report->iterations;
	bool sum = plumb_metric_aggregation(report->metric) == PLUMB_SUM;

	plumb_json_key_object(json, key);
	plumb_json_key_number(json, "sum",
	                      sum && stat->count ? (double)stat->sum / iterations : NAN);
	plumb_json_key_number(json, "count", (double)stat->count / iterations);
	plumb_json_end(json);
}

void
plumb_report_json_each(struct plumb_json *json, const struct plumb_report *report, uint32_t row,
                       const struct plumb_stat *exclusive, const struct plumb_stat *inclusive)
{
	const struct plumb_spread *spread =
		report->spreads && row != PLUMB_NONE ? &report->spreads[row] : NULL;

	if (!report->iterations)
		return;
	plumb_json_key_object(json, "per_iteration");
	write_each(json, report, "exclusive", exclusive);
	write_each(json, report, "inclusive", inclusive);
	plumb_json_key_number(json, "std", spread ? spread->deviation : NAN);
	plumb_json_key_text(json, "std_from",
	                    !spread || isnan(spread->deviation) ? NULL
	                    : spread->exact                     ? "iterations"
	                                                        : "calls");
	plumb_json_end(json);
}
