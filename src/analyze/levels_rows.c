/* SPDX-License-Identifier: Apache-2.0 */
/* Which work is equal, how long an iteration takes at each level, and what each level adds. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/levels_private.h"

#define WHY 1400        /* of a level: of several runs */
#define UNLIKE_MOST 0.5 /* of the time of a run; else all of the run is left out */
#define RARE 0.5        /* calls in a step: a path with less is in some steps alone */
#define LEVELS 6        /* numbers of levels are below this */

static bool
differs(const struct plumb_levels *levels, const struct plumb_levels_run *run, int metric,
        uint32_t node)
{
	return run->sums[metric].calls[node] != levels->first.sums[metric].calls[node];
}

double
plumb_levels_value(const struct plumb_levels *levels, const struct plumb_levels_run *run,
                   int metric, uint32_t node)
{
	const struct plumb_levels_sums *sums = &run->sums[metric];

	if (differs(levels, run, metric, node))
		return NAN;
	/* What comes now and then, or belongs to start-up, may be in the window or not. */
	if (levels->first.sums[metric].count[node] < RARE * levels->steps)
		return sums->ns[node];
	if (!(sums->count[node] > 0))
		return NAN;
	return sums->ns[node] / sums->count[node] * levels->first.sums[metric].count[node];
}

/* ---- equal work ---- */

/* Can a run at LEVEL measure METRIC? */
static bool
tells(uint32_t level, int metric)
{
	return level >= plumb_levels_level_of(metric);
}

/* "aten::mm has 300 calls, and 301 in the first run": the path of NODE in RUN. */
static void
say_node(const struct plumb_levels *levels, const struct plumb_levels_run *run, int metric,
         uint32_t node, char *text, size_t size)
{
	const struct plumb_profile *p = levels->profile;
	uint32_t context = levels->nodes.items[node].context;

	snprintf(text, size, "%.100s has %.0f calls, and %.0f in the first run",
	         plumb_frame_label(p, p->contexts[context].frame), run->sums[metric].calls[node],
	         levels->first.sums[metric].calls[node]);
}

/* The node that takes most of the time of those that differ in RUN; PLUMB_NONE: all are the same.
 * *SHARE is how much of the time all of them take. */
static uint32_t
find_differing(const struct plumb_levels *levels, const struct plumb_levels_run *run, int metric,
               double *share)
{
	const double *ns = levels->first.sums[metric].ns;
	double whole = 0, unlike = 0;
	uint32_t worst = PLUMB_NONE;

	for (uint32_t n = 0; n < levels->nodes.count; n++) {
		whole += ns[n];
		if (!differs(levels, run, metric, n))
			continue;
		unlike += ns[n];
		if (worst == PLUMB_NONE || ns[n] > ns[worst])
			worst = n;
	}
	*share = whole > 0 ? unlike / whole : 0;
	return worst;
}

/* Is the path of NODE one of ranges alone? M sees no other, if it sees any. */
static bool
is_of_ranges(const struct plumb_levels *levels, uint32_t node)
{
	for (; node; node = levels->nodes.items[node].parent)
		if (plumb_context_frame(levels->profile, levels->nodes.items[node].context)->kind !=
		    PLUMB_FRAME_RANGE)
			return false;
	return true;
}

static void
leave_out(const struct plumb_levels *levels, struct plumb_levels_run *run, int metric,
          uint32_t node)
{
	char text[180];

	run->kept = false;
	say_node(levels, run, metric, node, text, sizeof text);
	snprintf(run->why, sizeof run->why, "it did other work: %s", text);
}

static void
check_ranges(const struct plumb_levels *levels, struct plumb_levels_run *run)
{
	for (uint32_t n = 1; n < levels->nodes.count && run->kept; n++)
		if (is_of_ranges(levels, n) && differs(levels, run, PLUMB_CORRECTED_HOST, n))
			leave_out(levels, run, PLUMB_CORRECTED_HOST, n);
}

static void
check_run(const struct plumb_levels *levels, struct plumb_levels_run *run)
{
	double share;

	if (run->run.level == PLUMB_LEVEL_M)
		check_ranges(levels, run);
	for (int m = 0; m < PLUMB_CORRECTED_METRICS && run->kept; m++) {
		uint32_t worst = tells(run->run.level, m) ? find_differing(levels, run, m, &share)
		                                          : PLUMB_NONE;
		if (worst == PLUMB_NONE || share <= UNLIKE_MOST)
			continue;
		leave_out(levels, run, m, worst);
	}
}

/* Paths of METRIC that RUN has more or less often. */
static void
mark_unlike(struct plumb_levels *levels, const struct plumb_levels_run *run, int metric)
{
	char node[180];
	double share;
	uint32_t worst = find_differing(levels, run, metric, &share);

	for (uint32_t n = 0; n < levels->nodes.count; n++) {
		bool differing = differs(levels, run, metric, n);

		levels->unlike_count[metric] += differing && !levels->unlike[metric][n];
		levels->unlike[metric][n] |= differing;
	}
	if (worst != PLUMB_NONE && !levels->unlike_why[metric][0]) {
		say_node(levels, run, metric, worst, node, sizeof node);
		snprintf(levels->unlike_why[metric], PLUMB_LEVELS_WHY, "%s (run %" PRIu32 ")", node,
		         run->run.number);
	}
}

void
plumb_levels_find_unlike(struct plumb_levels *levels)
{
	for (uint32_t i = 0; i < levels->runs.count; i++) {
		struct plumb_levels_run *run = &levels->runs.items[i];

		if (run->kept && run->sums[0].ns)
			check_run(levels, run);
		for (int m = 0; m < PLUMB_CORRECTED_METRICS; m++)
			if (run->kept && run->sums[0].ns && tells(run->run.level, m) &&
			    run->run.level != PLUMB_LEVEL_SERIALISED)
				mark_unlike(levels, run, m);
	}
}

/* ---- times ---- */

struct plumb_level_estimate
plumb_levels_times(const struct plumb_levels *levels, uint32_t level, double *times)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < levels->runs.count; i++) {
		const struct plumb_levels_run *run = &levels->runs.items[i];
		if (run->kept && run->run.level == level && !isnan(run->run.time_ns))
			times[count++] = run->run.time_ns;
	}
	return plumb_level_estimate(times, count);
}

static const struct plumb_levels_run *
run_of(const struct plumb_levels *levels, uint32_t level, uint32_t round)
{
	for (uint32_t i = 0; i < levels->runs.count; i++) {
		const struct plumb_levels_run *run = &levels->runs.items[i];
		if (run->kept && run->run.level == level && run->run.round == round &&
		    !isnan(run->run.time_ns))
			return run;
	}
	return NULL;
}

/* By how much the runs of LEVEL take longer than those of the level before, round by round: a
 * machine that becomes slower meets both alike. */
static struct plumb_level_estimate
added_by(const struct plumb_levels *levels, uint32_t level, double *times)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < levels->runs.count; i++) {
		const struct plumb_levels_run *run = &levels->runs.items[i];
		const struct plumb_levels_run *before = run_of(levels, level - 1, run->run.round);
		if (before && run == run_of(levels, level, run->run.round))
			times[count++] = run->run.time_ns - before->run.time_ns;
	}
	return plumb_level_estimate(times, count);
}

static int64_t
whole(double ns)
{
	return isfinite(ns) && fabs(ns) < 9e18 ? llround(ns) : PLUMB_UNKNOWN;
}

/* ---- the rows ---- */

struct rows {
	struct plumb_level_row items[LEVELS];
	char texts[LEVELS][WHY];
	const char *whys[LEVELS];
	uint32_t count;
};

static void __attribute__((format(printf, 2, 3)))
append(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	if (used && used < WHY - 3)
		used += (size_t)snprintf(text + used, WHY - used, "; ");
	va_start(args, format);
	if (used < WHY)
		vsnprintf(text + used, WHY - used, format, args);
	va_end(args);
}

static const struct plumb_levels_run *
find_extra(const struct plumb_levels *levels, uint32_t level)
{
	for (uint32_t i = 0; i < levels->runs.count; i++)
		if (plumb_levels_has(&levels->runs.items[i], level) &&
		    levels->runs.items[i].extra[0])
			return &levels->runs.items[i];
	return NULL;
}

static void
say_left_out(const struct plumb_levels *levels, uint32_t level, char *text)
{
	const struct plumb_levels_run *extra =
		level > PLUMB_LEVEL_M ? find_extra(levels, level) : NULL;

	for (uint32_t i = 0; i < levels->runs.count; i++) {
		const struct plumb_levels_run *run = &levels->runs.items[i];
		if (run->run.level == level && !run->kept)
			append(text, "run %" PRIu32 " is left out: %s", run->run.number, run->why);
		else if (run->run.level == level && run->has_no_loop)
			append(text,
			       "the call paths of run %" PRIu32 " are left out, but for its time: "
			       "its profile has no main loop",
			       run->run.number);
	}
	for (int m = 0; m < PLUMB_CORRECTED_METRICS; m++)
		if (plumb_levels_level_of(m) == level && levels->unlike_count[m])
			append(text, "%" PRIu32 " %s left out, because runs did other work: %s",
			       levels->unlike_count[m],
			       levels->unlike_count[m] == 1 ? "call path is" : "call paths are",
			       levels->unlike_why[m]);
	if (level == PLUMB_LEVEL_COUNTED && levels->counts_why[0])
		append(text, "%s", levels->counts_why);
	if (extra)
		append(text, "%s is left out: run %" PRIu32 " called it, and the first run did not",
		       extra->extra, extra->run.number);
}

static void
make_row(const struct plumb_levels *levels, uint32_t level, double *times, struct rows *rows)
{
	struct plumb_level_row *row = &rows->items[rows->count];
	char *text = rows->texts[rows->count];
	struct plumb_level_estimate e = plumb_levels_times(levels, level, times);
	struct plumb_level_estimate added = { NAN, NAN, NAN };

	*row = (struct plumb_level_row){ .level = level, .bounds = levels->bounds };
	row->scope = levels->loop.process == PLUMB_NONE ? PLUMB_COST_OF_RUN : PLUMB_COST_OF_STEP;
	row->steps = row->scope == PLUMB_COST_OF_STEP ? whole(levels->steps) : PLUMB_UNKNOWN;
	if (level > PLUMB_LEVEL_M)
		added = added_by(levels, level, times);
	for (uint32_t i = 0; i < levels->runs.count; i++) {
		row->runs += levels->runs.items[i].run.level == level;
		row->kept += levels->runs.items[i].run.level == level && levels->runs.items[i].kept;
	}
	row->time_ns = whole(e.value);
	row->low_ns = isnan(e.low) ? PLUMB_UNKNOWN : whole(fmax(e.low, 0));
	row->high_ns = whole(e.high);
	row->added_ns = whole(added.value);
	row->added_low_ns = whole(added.low);
	row->added_high_ns = whole(added.high);
	text[0] = '\0';
	say_left_out(levels, level, text);
	rows->whys[rows->count] = text[0] ? text : NULL;
	rows->count += row->runs > 0;
}

/* The rows, and whether there is something to compare. */
static int
check_rows(const struct rows *rows, struct plumb_error *error)
{
	uint32_t known = 0;
	const char *why = NULL;

	for (uint32_t i = 0; i < rows->count; i++) {
		known += rows->items[i].kept > 0 && rows->items[i].level <= PLUMB_LEVEL_MLG;
		why = why || rows->items[i].kept ? why : rows->whys[i];
	}
	if (known > 1)
		return 0;
	return plumb_fail(error, PLUMB_EEMPTY, "no two levels can be compared: %.500s",
	                  why ? why : "there were no runs");
}

int
plumb_levels_conclude(struct plumb_levels *levels, struct plumb_profile *profile,
                      struct plumb_error *error)
{
	double *times = calloc((size_t)levels->runs.count + 1, sizeof *times);
	struct rows *rows = calloc(1, sizeof *rows);
	struct plumb_level_value *values = NULL;
	uint32_t count = 0;
	int code = times && rows ? 0 : PLUMB_ESYSTEM;

	for (int m = 0; m < PLUMB_CORRECTED_METRICS && !code; m++) {
		levels->unlike[m] = calloc((size_t)levels->nodes.count + 1, sizeof(bool));
		code = levels->unlike[m] ? 0 : PLUMB_ESYSTEM;
	}
	if (!code) {
		plumb_levels_find_unlike(levels);
		for (uint32_t level = PLUMB_LEVEL_M; level < LEVELS; level++)
			make_row(levels, level, times, rows);
		code = plumb_levels_correct(levels, &values, &count);
	}
	if (code)
		plumb_fail_memory(error, "for the levels");
	else
		code = plumb_profile_set_levels(profile, rows->items, rows->whys, rows->count,
		                                values, count, error);
	if (!code && levels->counts.count)
		code = plumb_profile_add_counts(profile, levels->counts.items, levels->counts.count,
		                                error);
	if (!code)
		code = check_rows(rows, error);
	free(times);
	free(rows);
	return code;
}
