/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop is compared in blocks of whole steps, each block with the same launches of the other run
 * of the pair. The ratio of a pair is the median of its blocks: a moment in which something else
 * had the machine does not count. A block is long enough that what recording does now and then
 * (fetching the GPU's records ten times a second) is in each. Runs differ by more than their
 * blocks, so the interval is that of the pairs.
 */
#include "analyze/cost.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/statistic.h"
#include "base/launch_entry.h"
#include "model/window.h"

#define BLOCK_NS 250000000 /* a block takes at least so long in the first run */
#define BLOCKS_MOST 400
#define STEPS_LEAST 8 /* in the loop; else the runs are compared as a whole */
#define MARKS (1u << PLUMB_LAUNCH_MARK_BITS)
#define PARTS 10        /* of a loop, each of which must have the same launches … */
#define PART_SAME 0.95  /* … but for so many: two functions may have one mark */
#define PERIOD_SAME 0.9 /* launches that are repeated after one step */
#define PERIOD_LOOKS 2000

/* ---- the loop ---- */

/* The window of PROCESS that is the loop NUMBER, or PLUMB_NONE. */
static uint32_t
window_of(const struct plumb_profile *p, uint32_t process, uint32_t number)
{
	for (uint32_t i = 0; i < p->windows_count; i++)
		if (p->windows[i].process == process && p->windows[i].kind == PLUMB_WINDOW_LOOP &&
		    p->windows[i].number == number)
			return i;
	return PLUMB_NONE;
}

static bool
ranks_before(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	int64_t x = p->processes[a].rank, y = p->processes[b].rank;

	return y == PLUMB_UNKNOWN ? x != PLUMB_UNKNOWN : x != PLUMB_UNKNOWN && x < y;
}

static void
take_stretches(const struct plumb_profile *p, uint32_t window, struct plumb_cost_loop *loop)
{
	double whole = 0;

	for (uint32_t i = 0; i < p->window_stretches_count; i++) {
		const struct plumb_window_stretch *s = &p->window_stretches[i];

		if (s->window != window || !plumb_is_time(s->start_ns, s->end_ns))
			continue;
		whole += (double)(s->end_ns - s->start_ns);
		if (s->end_ns - s->start_ns <= loop->end_ns - loop->start_ns)
			continue;
		loop->start_ns = s->start_ns;
		loop->end_ns = s->end_ns;
	}
	loop->step_ns = whole / (double)p->windows[window].iterations;
}

int
plumb_cost_loop_find(const struct plumb_profile *p, struct plumb_cost_loop *loop,
                     struct plumb_error *error)
{
	struct plumb_window_sums sums;
	uint32_t window, best = PLUMB_NONE;

	*loop = (struct plumb_cost_loop){ .process = PLUMB_NONE };
	if (plumb_window_sums(p, &sums) < 0)
		return plumb_fail_memory(error, "for the windows");
	for (uint32_t i = 0; sums.main != PLUMB_NONE && i < p->processes_count; i++) {
		window = window_of(p, i, sums.items[sums.main].number);
		if (window != PLUMB_NONE && p->windows[window].iterations > 0 &&
		    (best == PLUMB_NONE || ranks_before(p, i, p->windows[best].process)))
			best = window;
	}
	plumb_window_sums_free(&sums);
	if (best == PLUMB_NONE)
		return 0;
	loop->window = best;
	take_stretches(p, best, loop);
	if (loop->end_ns > loop->start_ns)
		loop->process = p->windows[best].process;
	return 0;
}

/* ---- the same launches ---- */

static uint32_t
mark_of(const struct plumb_cost_run *run, uint64_t launch)
{
	return plumb_launch_mark(run->entries[launch]);
}

static int64_t
time_of(const struct plumb_cost_run *run, uint64_t launch)
{
	return run->start_ns + (int64_t)plumb_launch_ns(run->entries[launch]);
}

/* A part of the launches of the first run: COUNT from FROM on. */
struct range {
	uint64_t from, count;
	double step;   /* launches in a step */
	bool is_exact; /* it is a whole number */
};

static struct range
range_of(const struct plumb_cost_loop *loop, const struct plumb_cost_run *run)
{
	struct range range = { 0 };
	uint64_t last = 0;

	for (uint64_t i = 0; i < run->timed; i++) {
		if (!run->entries[i] || time_of(run, i) < loop->start_ns ||
		    time_of(run, i) > loop->end_ns)
			continue;
		range.from = last ? range.from : i;
		last = i + 1;
	}
	range.count = last ? last - range.from : 0;
	if (range.count > 1)
		range.step = (double)(range.count - 1) * loop->step_ns /
		             (double)(time_of(run, last - 1) - time_of(run, range.from) + 1);
	return range;
}

/* How many of the launches of RANGE are those of PERIOD launches before. */
static double
repeated_after(const struct plumb_cost_run *run, const struct range *range, uint64_t period)
{
	uint64_t left = range->count - period, same = 0;
	uint64_t looks = left < PERIOD_LOOKS ? left : PERIOD_LOOKS;

	/* Spread over all of it, and not at the same place of each step. */
	for (uint64_t k = 0; k < looks; k++) {
		uint64_t i = period + (looks < left ? k * UINT64_C(2654435761) % left : k);
		same += mark_of(run, range->from + i) == mark_of(run, range->from + i - period);
	}
	return looks ? (double)same / (double)looks : 0;
}

/* Makes the step a whole number of launches, if they repeat after about that many. */
static void
find_period(const struct plumb_cost_run *run, struct range *range)
{
	uint64_t most = (uint64_t)(range->step * 1.2) + 2, best = 0;
	double best_share = PERIOD_SAME;

	for (uint64_t p = (uint64_t)(range->step * 0.8); p <= most && 2 * p <= range->count; p++) {
		double share = p ? repeated_after(run, range, p) : 0;
		/* Of several that are as good, the one that is nearest to what was expected. */
		if (share > best_share + 0.005 ||
		    (best && share > best_share - 0.005 &&
		     fabs((double)p - range->step) < fabs((double)best - range->step))) {
			best = p;
			best_share = share > best_share ? share : best_share;
		}
	}
	if (!best)
		return;
	range->step = (double)best;
	range->is_exact = true;
}

/* For each launch of a range from FROM on, how many launches ago the same was launched; 0: not yet
 * in the range. */
static void
find_distances(const struct plumb_cost_run *run, uint64_t from, uint64_t count, uint32_t *last,
               uint32_t *distances)
{
	memset(last, 0, MARKS * sizeof *last);
	for (uint64_t i = 0; i < count; i++) {
		uint32_t mark = mark_of(run, from + i);

		distances[i] = last[mark] ? (uint32_t)(i + 1) - last[mark] : 0;
		last[mark] = (uint32_t)(i + 1);
	}
}

struct alike {
	uint32_t *first, *other, *last;
};

/* Does the run launch from FROM on what the first run does in RANGE? */
static bool
is_alike(const struct alike *a, const struct range *range, const struct plumb_cost_run *run,
         int64_t from)
{
	uint64_t part = range->count / PARTS + 1;

	if (from < 0 || (uint64_t)from + range->count > run->timed)
		return false;
	find_distances(run, (uint64_t)from, range->count, a->last, a->other);
	for (uint64_t begin = 0; begin < range->count; begin += part) {
		uint64_t end = begin + part < range->count ? begin + part : range->count, same = 0;

		for (uint64_t i = begin; i < end; i++)
			same += a->first[i] == a->other[i];
		if ((double)same < PART_SAME * (double)(end - begin))
			return false;
	}
	return true;
}

/* How many launches of RUN repeat with the period of RANGE, around it where it begins at FROM. A
 * few at its ends may belong to what was before the loop, or after it. */
static uint64_t
extent_of(const struct plumb_cost_run *run, const struct range *range, uint64_t from)
{
	uint64_t period = (uint64_t)range->step, begin = from, end = from + range->count;

	while (begin + period < end && mark_of(run, begin) != mark_of(run, begin + period))
		begin++;
	while (begin + period < end && mark_of(run, end - 1) != mark_of(run, end - 1 - period))
		end--;
	while (begin > 0 && mark_of(run, begin - 1) == mark_of(run, begin - 1 + period))
		begin--;
	while (end < run->timed && mark_of(run, end) == mark_of(run, end - period))
		end++;
	return end - begin;
}

/* The loop has as many steps in RUN as in FIRST, as far as one can tell. */
static bool
has_same_steps(const struct range *range, const struct plumb_cost_run *first,
               const struct plumb_cost_run *run, uint64_t from)
{
	double more;

	if (!range->is_exact)
		return true;
	more = (double)extent_of(run, range, from) - (double)extent_of(first, range, range->from);
	return fabs(more) < range->step;
}

/* Where RANGE begins in RUN; -1: nowhere. The launches of several threads take turns at random:
 * if there are as many as in the FIRST run, they are taken for the same. */
static int64_t
find_place(const struct alike *a, const struct range *range, const struct plumb_cost_run *first,
           const struct plumb_cost_run *run)
{
	int64_t more = (int64_t)run->launches - (int64_t)first->launches;
	int64_t begin = (int64_t)range->from;

	if (!more)
		return range->from + range->count <= run->timed ? begin : -1;
	if (!is_alike(a, range, run, begin += more) &&
	    !is_alike(a, range, run, begin = (int64_t)range->from))
		return -1;
	/* Where the number of steps differs, the end of the loop is like its beginning. */
	return has_same_steps(range, first, run, (uint64_t)begin) ? begin : -1;
}

/* ---- times ---- */

/* The steps of a range in blocks. */
struct blocks {
	uint32_t count;
	double steps; /* in each */
	double launches;
};

static struct blocks
blocks_of(const struct range *range, const struct plumb_cost_run *first)
{
	int64_t ns = time_of(first, range->from + range->count - 1) - time_of(first, range->from);
	double steps = (double)(range->count - 1) / range->step;
	double count = fmin(fmin((double)(ns / BLOCK_NS), BLOCKS_MOST), steps);
	struct blocks blocks = { .count = count < 1 ? 1 : (uint32_t)count };

	blocks.steps = steps / blocks.count;
	if (range->is_exact)
		blocks.steps = floor(blocks.steps);
	blocks.launches = blocks.steps * range->step;
	return blocks;
}

/* The time of block NUMBER, which is in RUN from launch FROM on; NAN: not known. */
static double
block_time(const struct plumb_cost_run *run, uint64_t from, const struct blocks *blocks,
           uint32_t number)
{
	uint64_t begin = from + (uint64_t)(number * blocks->launches);
	uint64_t end = from + (uint64_t)((number + 1) * blocks->launches);

	if (end >= run->timed || !run->entries[begin] || !run->entries[end] ||
	    time_of(run, end) <= time_of(run, begin))
		return NAN;
	return (double)(time_of(run, end) - time_of(run, begin));
}

/* ---- pairs ---- */

struct comparison {
	const struct plumb_cost_run *runs;
	uint32_t pairs;
	struct range range;
	struct blocks blocks;
	uint64_t *places;         /* of the range, in each run */
	double *ratios;           /* of the pairs */
	double *recorded, *plain; /* times of a step, or the run, of the pairs */
};

/* The pairs come after the first run. */
static uint32_t
recorded_of(const struct comparison *c, uint32_t pair)
{
	return 2 * pair + 1 + !c->runs[2 * pair + 1].recorded;
}

/* The ratio of a pair and its times of a step. False: they are not known. */
static bool
compare_pair(struct comparison *c, uint32_t pair, double *ratios, double *recorded, double *plain)
{
	uint32_t with = recorded_of(c, pair), without = 4 * pair + 3 - with;
	uint32_t known = 0;

	for (uint32_t b = 0; b < c->blocks.count; b++) {
		double x = block_time(&c->runs[with], c->places[with], &c->blocks, b);
		double y = block_time(&c->runs[without], c->places[without], &c->blocks, b);

		if (isnan(x) || isnan(y))
			continue;
		ratios[known] = x / y;
		recorded[known] = x;
		plain[known++] = y;
	}
	if (!known)
		return false;
	c->ratios[pair] = plumb_median(ratios, known);
	c->recorded[pair] = plumb_median(recorded, known) / c->blocks.steps;
	c->plain[pair] = plumb_median(plain, known) / c->blocks.steps;
	return true;
}

static bool
compare_runs(struct comparison *c, uint32_t pair)
{
	uint32_t with = recorded_of(c, pair), without = 4 * pair + 3 - with;

	c->recorded[pair] = (double)c->runs[with].wall_ns;
	c->plain[pair] = (double)c->runs[without].wall_ns;
	c->ratios[pair] = c->recorded[pair] / c->plain[pair];
	return c->recorded[pair] > 0 && c->plain[pair] > 0;
}

/* The mean of the pairs' ratios with its interval. */
static void
conclude(struct comparison *c, struct plumb_cost *cost)
{
	double mean = 0, m2 = 0, half;

	for (uint32_t i = 0; i < c->pairs; i++)
		mean += log(c->ratios[i]) / c->pairs;
	for (uint32_t i = 0; i < c->pairs; i++)
		m2 += (log(c->ratios[i]) - mean) * (log(c->ratios[i]) - mean);
	cost->ratio = exp(mean);
	if (c->pairs > 1) {
		half = plumb_student(c->pairs - 1) * sqrt(m2 / (c->pairs - 1) / c->pairs);
		cost->low = exp(mean - half);
		cost->high = exp(mean + half);
	}
	cost->recorded_ns = llround(plumb_median(c->recorded, c->pairs));
	cost->plain_ns = llround(plumb_median(c->plain, c->pairs));
}

/* ---- equal work ---- */

static const char *
kind_of(const struct plumb_cost_run *run)
{
	return run->recorded ? "with plumb" : "without plumb";
}

static bool
differ(const struct plumb_cost_run *runs, uint32_t count, char *why)
{
	for (uint32_t i = 1; i < count; i++) {
		if (runs[i].exit_code == runs[0].exit_code)
			continue;
		snprintf(why, PLUMB_COST_WHY,
		         "the program ended with exit code %d in run %" PRIu32 " (%s), and with "
		         "%d in the first",
		         runs[i].exit_code, i + 1, kind_of(&runs[i]), runs[0].exit_code);
		return true;
	}
	return false;
}

static void
say_launches(const struct comparison *c, uint32_t run, char *why)
{
	snprintf(why, PLUMB_COST_WHY,
	         "the runs did different work: %" PRIu64 " launches in run %" PRIu32
	         " (%s), %" PRIu64 " in the first",
	         c->runs[run].launches, run + 1, kind_of(&c->runs[run]), c->runs[0].launches);
}

/* Of runs that are compared as a whole. */
static bool
launches_differ(const struct comparison *c, uint32_t count, char *why)
{
	for (uint32_t i = 1; i < count; i++)
		if (c->runs[i].launches != c->runs[0].launches) {
			say_launches(c, i, why);
			return true;
		}
	return false;
}

/* Were the launches of RANGE timed in each run? In another one they may lie elsewhere. */
static bool
are_timed(const struct comparison *c, uint32_t count, char *why)
{
	for (uint32_t i = 1; i < count; i++) {
		const struct plumb_cost_run *run = &c->runs[i];

		if (run->timed == run->launches || run->timed >= c->range.from + c->range.count)
			continue;
		snprintf(why, PLUMB_COST_WHY,
		         "only the first %" PRIu64 " of %" PRIu64 " launches of run %" PRIu32
		         " (%s) could be timed; is the disk full?",
		         run->timed, run->launches, i + 1, kind_of(run));
		return false;
	}
	return true;
}

/* False: some run did other work, or there is no memory (then WHY stays empty). */
static bool
find_places(struct comparison *c, uint32_t count, char *why)
{
	struct alike a = { .first = calloc(c->range.count, sizeof *a.first),
		           .other = calloc(c->range.count, sizeof *a.other),
		           .last = calloc(MARKS, sizeof *a.last) };
	bool found = a.first && a.other && a.last && are_timed(c, count, why);

	if (found)
		find_distances(&c->runs[0], c->range.from, c->range.count, a.last, a.first);
	for (uint32_t i = 0; found && i < count; i++) {
		int64_t place = find_place(&a, &c->range, &c->runs[0], &c->runs[i]);

		c->places[i] = (uint64_t)place;
		found = place >= 0;
		if (found)
			continue;
		say_launches(c, i, why);
		if (c->range.is_exact)
			snprintf(why + strlen(why), PLUMB_COST_WHY - strlen(why),
			         "; a step has %.0f", c->range.step);
	}
	free(a.first);
	free(a.other);
	free(a.last);
	return found;
}

static int
compare(struct comparison *c, uint32_t count, struct plumb_cost *cost, char *why,
        struct plumb_error *error)
{
	bool steps = cost->scope == PLUMB_COST_OF_STEP, known = true;
	double *scratch;

	if (steps ? !find_places(c, count, why) : launches_differ(c, count, why))
		return *why ? 0 : plumb_fail_memory(error, "to compare the runs");
	if (steps)
		c->blocks = blocks_of(&c->range, &c->runs[0]);
	scratch = calloc(3 * (c->blocks.count + 1u), sizeof *scratch);
	if (!scratch)
		return plumb_fail_memory(error, "to compare the runs");
	for (uint32_t i = 0; known && i < c->pairs; i++)
		known = steps ? compare_pair(c, i, scratch, scratch + c->blocks.count,
		                             scratch + 2 * c->blocks.count)
		              : compare_runs(c, i);
	free(scratch);
	if (!known) {
		snprintf(why, PLUMB_COST_WHY, "the times of its launches could not be kept");
		return 0;
	}
	conclude(c, cost);
	cost->steps = steps ? llround(c->blocks.count * c->blocks.steps) : PLUMB_UNKNOWN;
	return 0;
}

/* ---- runs that are in no pairs ---- */

/* The time of a step in RUN, where the range begins at launch FROM. SCRATCH holds a time for each
 * block. */
static double
step_time(const struct plumb_cost_run *run, uint64_t from, const struct blocks *blocks,
          double *scratch)
{
	uint32_t known = 0;

	for (uint32_t b = 0; b < blocks->count; b++) {
		scratch[known] = block_time(run, from, blocks, b);
		known += !isnan(scratch[known]);
	}
	return plumb_median(scratch, known) / blocks->steps;
}

static void
find_steps(struct comparison *c, uint32_t count, double *scratch, double *step_ns,
           char (*why)[PLUMB_COST_WHY], bool *failed)
{
	for (uint32_t i = 0; i < count && !*failed; i++) {
		struct plumb_cost_run both[] = { c->runs[0], c->runs[i] };
		struct comparison one = { .runs = both, .range = c->range, .places = c->places };

		step_ns[i] = NAN;
		why[i][0] = '\0';
		if (!c->runs[i].entries)
			snprintf(why[i], PLUMB_COST_WHY,
			         "its launches were not counted: there were "
			         "none, or the disk is full");
		else if (find_places(&one, 2, why[i]))
			step_ns[i] = step_time(&both[1], one.places[1], &c->blocks, scratch);
		else if (!why[i][0])
			*failed = true;
		else if (c->runs[i].launches != c->runs[0].launches)
			snprintf(why[i], PLUMB_COST_WHY,
			         "it had %" PRIu64 " launches, and the first run %" PRIu64,
			         c->runs[i].launches, c->runs[0].launches);
	}
}

int
plumb_cost_steps(const struct plumb_cost_loop *loop, const struct plumb_cost_run *runs,
                 uint32_t count, double *step_ns, char (*why)[PLUMB_COST_WHY], int64_t *steps,
                 struct plumb_error *error)
{
	uint64_t places[2] = { 0, 0 };
	struct comparison c = { .runs = runs, .places = places };
	bool failed = false;

	*steps = 0;
	if (loop->process != PLUMB_NONE)
		c.range = range_of(loop, &runs[0]);
	if (c.range.step < 1 || (double)c.range.count < STEPS_LEAST * c.range.step)
		return 0;
	find_period(&runs[0], &c.range);
	c.blocks = blocks_of(&c.range, &runs[0]);
	double *scratch = calloc(c.blocks.count + 1u, sizeof *scratch);
	if (scratch)
		find_steps(&c, count, scratch, step_ns, why, &failed);
	if (!scratch || failed) {
		free(scratch);
		return plumb_fail_memory(error, "to compare the runs");
	}
	free(scratch);
	*steps = llround(c.blocks.count * c.blocks.steps);
	return 0;
}

struct plumb_cost
plumb_cost_unknown(void)
{
	return (struct plumb_cost){ .process = PLUMB_NONE,
		                    .pairs = PLUMB_UNKNOWN,
		                    .steps = PLUMB_UNKNOWN,
		                    .recorded_ns = PLUMB_UNKNOWN,
		                    .plain_ns = PLUMB_UNKNOWN,
		                    .ratio = NAN,
		                    .low = NAN,
		                    .high = NAN,
		                    .why = PLUMB_NONE };
}

int
plumb_cost_compare(const struct plumb_cost_loop *loop, const struct plumb_cost_run *runs,
                   uint32_t count, struct plumb_cost *cost, char why[PLUMB_COST_WHY],
                   struct plumb_error *error)
{
	struct comparison c = { .runs = runs, .pairs = (count - 1) / 2 };
	int code;

	why[0] = '\0';
	*cost = plumb_cost_unknown();
	cost->scope = PLUMB_COST_OF_RUN;
	cost->pairs = c.pairs;
	if (differ(runs, count, why))
		return 0;
	if (loop->process != PLUMB_NONE)
		c.range = range_of(loop, &runs[0]);
	if (c.range.step >= 1 && (double)c.range.count >= STEPS_LEAST * c.range.step) {
		cost->process = loop->process;
		cost->scope = PLUMB_COST_OF_STEP;
		find_period(&runs[0], &c.range);
	}
	c.places = calloc(count + 1u, sizeof *c.places);
	c.ratios = calloc(3 * (c.pairs + 1u), sizeof *c.ratios);
	c.recorded = c.ratios ? c.ratios + c.pairs + 1 : NULL;
	c.plain = c.ratios ? c.recorded + c.pairs + 1 : NULL;
	code = c.places && c.ratios ? compare(&c, count, cost, why, error)
	                            : plumb_fail_memory(error, "to compare the runs");
	free(c.places);
	free(c.ratios);
	return code;
}
