/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/windows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "model/framework/framework.h"
#include "model/metric.h"

#define PARTS 64
#define LEAST_REPEATS 4
#define MULTIPLES 8     /* something done so often in an iteration still shows how many there are */
#define STEADY 0.5      /* the share of a loop's time that is in what repeats */
#define SAME 0.9        /* of the time of what belongs together, the share in what the other does */
#define ALIKE 0.7       /* two loops are one if they spend so much of their time alike */
#define THIN 0.3        /* a part with so much less known time than a loop is not of it */
#define EDGE 0.3        /* … and if so much of its time is in what the loop does, it is its edge */
#define LOOP_LEAST 0.02 /* a shorter loop, as a share of the run, is not named */

/* How long, and how often, something was done in each part. */
struct feature {
	double time[PARTS], count[PARTS];
	bool counts; /* its count is of calls, not of samples */
};

/* One run: processes whose parts begin and end at the same times. */
struct run {
	struct plumb_profile *profile;
	int64_t start; /* of its first part */
	PLUMB_VEC(struct feature) features;
	uint32_t parts;
	int64_t from[PARTS], until[PARTS];
	uint32_t loop[PARTS]; /* from 1; 0: none */
	uint32_t loops;
};

/* ---- one part, or several together ---- */

/* Is COUNT a multiple of N, or some less than one more each? Half finished iterations lie at the
 * borders. */
static bool
fits(double count, double n)
{
	double k = floor(count / n);

	return k >= 1 && k <= MULTIPLES && count - k * n <= k;
}

/* The time that features whose count fits N take of the parts [FIRST, END). */
static double
fitting_time(const struct run *run, uint32_t first, uint32_t end, double n, double *all)
{
	double sum = 0;

	*all = 0;
	for (uint32_t f = 0; f < run->features.count; f++) {
		const struct feature *feature = &run->features.items[f];
		double time = 0, count = 0;
		for (uint32_t p = first; p < end; p++) {
			time += feature->time[p];
			count += feature->count[p];
		}
		if (!feature->counts || !count)
			continue;
		*all += time;
		if (n > 0 && fits(count, n))
			sum += time;
	}
	return sum;
}

/* Is most of the time in what was done equally often? The feature that takes most time, or a part
 * of how often it was done, says how often. */
static bool
repeats(const struct run *run, uint32_t first, uint32_t end)
{
	double most = 0, often = 0, all;

	for (uint32_t f = 0; f < run->features.count; f++) {
		const struct feature *feature = &run->features.items[f];
		double time = 0, count = 0;
		for (uint32_t p = first; p < end; p++) {
			time += feature->time[p];
			count += feature->count[p];
		}
		if (feature->counts && time > most) {
			most = time;
			often = count;
		}
	}
	for (int k = 1; k <= MULTIPLES; k++) {
		double n = floor(often / k);
		/* With few repeats much fits by chance, so only equal counts are taken. */
		if (n < LEAST_REPEATS || (k > 1 && n < 2 * MULTIPLES))
			break;
		double fitting = fitting_time(run, first, end, n, &all);
		if (all > 0 && fitting >= STEADY * all)
			return true;
	}
	return false;
}

/* Of the time of parts in A, the share in what parts in B do too. */
static double
shared(const struct run *run, const bool a[PARTS], const bool b[PARTS])
{
	double all = 0, both = 0;

	for (uint32_t f = 0; f < run->features.count; f++) {
		const struct feature *feature = &run->features.items[f];
		double time = 0;
		bool there = false;
		for (uint32_t p = 0; p < run->parts; p++) {
			time += a[p] ? feature->time[p] : 0;
			there |= b[p] && feature->time[p] > 0;
		}
		all += time;
		both += there ? time : 0;
	}
	return all > 0 ? both / all : 0;
}

/* How much of their time A and B spend alike, each feature by its share. */
static double
alike(const struct run *run, const bool a[PARTS], const bool b[PARTS])
{
	double all[2] = { 0, 0 }, both = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t f = 0; f < run->features.count; f++) {
			const struct feature *feature = &run->features.items[f];
			double x = 0, y = 0;
			for (uint32_t p = 0; p < run->parts; p++) {
				x += a[p] ? feature->time[p] : 0;
				y += b[p] ? feature->time[p] : 0;
			}
			if (pass)
				both += fmin(x / all[0], y / all[1]);
			all[0] += pass ? 0 : x;
			all[1] += pass ? 0 : y;
		}
		if (!(all[0] > 0 && all[1] > 0))
			return 0;
	}
	return both;
}

static void
parts_of(const struct run *run, uint32_t loop, bool set[PARTS])
{
	for (uint32_t p = 0; p < PARTS; p++)
		set[p] = p < run->parts && run->loop[p] == loop;
}

/* ---- loops ---- */

/* The loop that does most nearly what the parts in SET do; a new one if none does. */
static uint32_t
find_loop(struct run *run, const bool set[PARTS])
{
	double best = ALIKE;
	uint32_t found = 0;

	for (uint32_t l = 1; l <= run->loops; l++) {
		bool other[PARTS];
		parts_of(run, l, other);
		double likeness = alike(run, set, other);
		if (likeness >= best) {
			best = likeness;
			found = l;
		}
	}
	return found ? found : ++run->loops;
}

/* Parts that repeat by themselves. */
static void
find_short(struct run *run)
{
	for (uint32_t p = 0; p < run->parts; p++) {
		bool set[PARTS] = { false };
		set[p] = true;
		if (repeats(run, p, p + 1))
			run->loop[p] = find_loop(run, set);
	}
}

static void
set_range(bool set[PARTS], uint32_t first, uint32_t end)
{
	for (uint32_t p = 0; p < PARTS; p++)
		set[p] = p >= first && p < end;
}

/* Iterations that are longer than a part: a run of parts that repeat only together, whose halves do
 * the same. What comes first and last and is done only there is cut off. */
static void
find_long(struct run *run, uint32_t first, uint32_t end)
{
	bool one[PARTS], rest[PARTS];

	for (bool cut = true; cut && end - first >= 2 * LEAST_REPEATS;) {
		cut = false;
		set_range(one, first, first + 1);
		set_range(rest, first + 1, end);
		if (shared(run, one, rest) < SAME) {
			first++;
			cut = true;
			continue;
		}
		set_range(one, end - 1, end);
		set_range(rest, first, end - 1);
		if (shared(run, one, rest) < SAME) {
			end--;
			cut = true;
		}
	}
	if (end - first < 2 * LEAST_REPEATS || !repeats(run, first, end))
		return;
	set_range(one, first, (first + end) / 2);
	set_range(rest, (first + end) / 2, end);
	if (shared(run, one, rest) < SAME || shared(run, rest, one) < SAME)
		return;
	set_range(one, first, end);
	uint32_t loop = find_loop(run, one);
	for (uint32_t p = first; p < end; p++)
		run->loop[p] = loop;
}

/* The known time of the parts in SET, as a share of how long they last. */
static double
density(const struct run *run, const bool set[PARTS])
{
	double known = 0, wall = 1;

	for (uint32_t p = 0; p < run->parts; p++)
		wall += set[p] ? (double)(run->until[p] - run->from[p]) : 0;
	for (uint32_t f = 0; f < run->features.count; f++)
		for (uint32_t p = 0; p < run->parts; p++)
			known += set[p] ? run->features.items[f].time[p] : 0;
	return known / wall;
}

/* Parts that do nothing but what a loop beside them does. */
static void
fill_holes(struct run *run)
{
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < run->parts; i++) {
			uint32_t p = pass ? run->parts - 1 - i : i;
			uint32_t beside = pass ? (p + 1 < run->parts ? run->loop[p + 1] : 0)
			                       : (p ? run->loop[p - 1] : 0);
			bool one[PARTS], other[PARTS];
			if (run->loop[p] || !beside)
				continue;
			set_range(one, p, p + 1);
			parts_of(run, beside, other);
			if (shared(run, one, other) >= SAME &&
			    density(run, one) >= THIN * density(run, other))
				run->loop[p] = beside;
		}
}

/* A part that has the first iterations of a loop at its end, and else little that is known, is no
 * loop of its own. */
static void
drop_edges(struct run *run)
{
	for (uint32_t p = 0; p < run->parts; p++) {
		bool one[PARTS], rest[PARTS];
		set_range(one, p, p + 1);
		parts_of(run, run->loop[p], rest);
		rest[p] = false;
		if (run->loop[p] && density(run, one) < THIN * density(run, rest))
			run->loop[p] = 0;
	}
	for (uint32_t a = 1; a <= run->loops; a++) {
		bool one[PARTS], other[PARTS], edge = false;
		parts_of(run, a, one);
		for (uint32_t b = 1; b <= run->loops && !edge; b++) {
			parts_of(run, b, other);
			edge = a != b && shared(run, one, other) >= EDGE &&
			       density(run, one) < THIN * density(run, other);
		}
		for (uint32_t p = 0; edge && p < run->parts; p++)
			if (one[p])
				run->loop[p] = 0;
	}
}

/* Drops loops that take little of the run, and numbers the others in order of time. */
static void
number_loops(struct run *run)
{
	uint32_t number[PARTS + 1] = { 0 }, count = 0;
	int64_t time[PARTS + 1] = { 0 };
	double all = (double)(run->until[run->parts - 1] - run->from[0]);

	for (uint32_t p = 0; p < run->parts; p++)
		time[run->loop[p]] += run->until[p] - run->from[p];
	for (uint32_t p = 0; p < run->parts; p++) {
		uint32_t l = run->loop[p];
		if (l && !number[l] && (double)time[l] >= LOOP_LEAST * all)
			number[l] = ++count;
		run->loop[p] = number[l];
	}
	run->loops = count;
}

static void
find_loops(struct run *run)
{
	find_short(run);
	for (uint32_t p = 0, first = 0; p <= run->parts; p++) {
		if (p < run->parts && !run->loop[p])
			continue;
		if (p > first)
			find_long(run, first, p);
		first = p + 1;
	}
	drop_edges(run);
	number_loops(run);
	fill_holes(run);
	number_loops(run);
}

/* ---- reading parts ---- */

/* By window: the start of the first part of its process, and its part. */
struct origin {
	int64_t run;
	uint32_t part;
};

static bool
is_time(const struct plumb_profile *profile, uint32_t metric)
{
	const char *unit = plumb_profile_metric(profile, metric).unit;

	return metric < PLUMB_METRIC_USER && plumb_metric_aggregation(metric) == PLUMB_SUM &&
	       unit && strcmp(unit, "ns") == 0;
}

static int
read_features(struct run *run, const struct origin *origins)
{
	const struct plumb_profile *p = run->profile;
	const struct plumb_window_value *before = NULL;

	for (uint32_t i = 0; i < p->window_values_count; i++) {
		const struct plumb_window_value *v = &p->window_values[i];
		const struct origin *origin = &origins[v->window];
		if (origin->run != run->start || !is_time(p, v->metric))
			continue;
		if (!before || before->context != v->context || before->metric != v->metric) {
			struct feature *added = plumb_vec_add(&run->features);
			if (!added)
				return PLUMB_ESYSTEM;
			added->counts = v->metric != PLUMB_METRIC_CPU_TIME &&
			                v->metric != PLUMB_METRIC_WAIT_TIME;
		}
		before = v;
		struct feature *f = &run->features.items[run->features.count - 1];
		f->time[origin->part] += (double)v->sum;
		f->count[origin->part] += (double)v->count;
	}
	return PLUMB_OK;
}

static struct origin *
find_origins(const struct plumb_profile *p)
{
	struct origin *origins = calloc((size_t)p->windows_count + 1, sizeof *origins);
	int64_t *starts = calloc((size_t)p->processes_count + 1, sizeof *starts);

	for (uint32_t i = 0; origins && starts && i < p->window_stretches_count; i++) {
		const struct plumb_window_stretch *s = &p->window_stretches[i];
		const struct plumb_window *w = &p->windows[s->window];
		if (w->kind == PLUMB_WINDOW_PART && w->number == 1)
			starts[w->process] = s->start_ns;
	}
	for (uint32_t i = 0; origins && starts && i < p->windows_count; i++) {
		const struct plumb_window *w = &p->windows[i];
		if (w->kind == PLUMB_WINDOW_PART && w->number && w->number <= PARTS)
			origins[i] = (struct origin){ starts[w->process], w->number - 1 };
	}
	free(starts);
	return origins;
}

/* ---- names ---- */

struct names {
	PLUMB_VEC(struct plumb_window) windows;
	uint32_t *map;
};

/* The id of the window of PROCESS, made when missing; its windows are the newest ones. */
static uint32_t
name_window(struct names *names, uint32_t process, uint32_t kind, uint32_t number)
{
	for (uint32_t i = names->windows.count; i-- > 0;) {
		const struct plumb_window *w = &names->windows.items[i];
		if (w->process != process)
			break;
		if (w->kind == kind && w->number == number)
			return i;
	}
	struct plumb_window *added = plumb_vec_add(&names->windows);
	if (!added)
		return PLUMB_NONE;
	*added = (struct plumb_window){ process, kind, number, PLUMB_UNKNOWN };
	return names->windows.count - 1;
}

static void
name_parts(const struct run *run, const struct origin *origins, struct names *names)
{
	const struct plumb_profile *p = run->profile;
	uint32_t first = 0;

	while (first < run->parts && !run->loop[first])
		first++;
	for (uint32_t i = 0; run->loops && i < p->windows_count; i++) {
		uint32_t part = origins[i].part, loop = run->loop[part];
		if (origins[i].run != run->start || p->windows[i].kind != PLUMB_WINDOW_PART)
			continue;
		names->map[i] = name_window(names, p->windows[i].process,
		                            loop           ? PLUMB_WINDOW_LOOP
		                            : part < first ? PLUMB_WINDOW_STARTUP
		                                           : PLUMB_WINDOW_REST,
		                            loop);
	}
}

/* How many iterations a loop has, where the program's framework marks its steps. */
static void
count_marks(struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->window_values_count; i++) {
		const struct plumb_window_value *v = &p->window_values[i];
		struct plumb_window *w = &p->windows[v->window];
		const struct plumb_frame *frame = plumb_context_frame(p, v->context);
		const char *name = plumb_text(p, frame->name);
		if (w->kind == PLUMB_WINDOW_LOOP && v->metric == PLUMB_METRIC_OP_CALLS &&
		    frame->kind == PLUMB_FRAME_RANGE && name &&
		    plumb_framework_range(name, strlen(name)) == PLUMB_PURPOSE_OPTIMIZER_STEP &&
		    v->sum > w->iterations)
			w->iterations = v->sum;
	}
}

static int
label_run(struct plumb_profile *profile, int64_t start, const struct origin *origins,
          struct names *names)
{
	struct run *run = calloc(1, sizeof *run);
	int code = PLUMB_ESYSTEM;

	if (!run)
		return code;
	run->profile = profile;
	run->start = start;
	for (uint32_t i = 0; i < profile->window_stretches_count; i++) {
		const struct plumb_window_stretch *s = &profile->window_stretches[i];
		const struct origin *origin = &origins[s->window];
		if (origin->run != start || profile->windows[s->window].kind != PLUMB_WINDOW_PART)
			continue;
		run->from[origin->part] = s->start_ns;
		run->until[origin->part] = s->end_ns;
		if (origin->part >= run->parts)
			run->parts = origin->part + 1;
	}
	code = read_features(run, origins);
	if (!code && run->parts) {
		find_loops(run);
		name_parts(run, origins, names);
	}
	plumb_vec_free(&run->features);
	free(run);
	return code;
}

int
plumb_windows_label(struct plumb_profile *profile, struct plumb_error *error)
{
	struct origin *origins = find_origins(profile);
	struct names names = { .map = malloc(((size_t)profile->windows_count + 1) *
		                             sizeof *names.map) };
	int code = origins && names.map ? PLUMB_OK : PLUMB_ESYSTEM;
	bool any = false;

	for (uint32_t i = 0; !code && i < profile->windows_count; i++) {
		any |= profile->windows[i].kind == PLUMB_WINDOW_PART;
		names.map[i] = PLUMB_NONE;
	}
	for (uint32_t i = 0; !code && any && i < profile->windows_count; i++) {
		const struct plumb_window *w = &profile->windows[i];
		bool seen = false;
		for (uint32_t k = 0; k < i && !seen; k++)
			seen = origins[k].run == origins[i].run;
		if (w->kind == PLUMB_WINDOW_PART && w->number == 1 && !seen)
			code = label_run(profile, origins[i].run, origins, &names);
	}
	if (!code && any)
		code = plumb_windows_replace(profile, names.windows.items, names.windows.count,
		                             names.map);
	if (!code && any)
		count_marks(profile);
	plumb_vec_free(&names.windows);
	free(origins);
	free(names.map);
	return code ? plumb_fail_memory(error, "to find the windows of the run") : PLUMB_OK;
}
