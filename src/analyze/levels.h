/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What looking costs, level by level, and each context at the cost that it has without deeper
 * looking. A program runs N times at each level:
 *
 *	M       a counter of launches, or ranges alone: the time of an iteration
 *	M/L     modules and operators, too
 *	M/L/G   GPU work and call paths, too
 *
 * With counters there is one run more, M/L/G/C, which counts hardware events of kernels.
 *
 * The time of each thing is taken from the runs in which its level was the deepest one. What a
 * level costs is the difference to the level before.
 *
 *	levels = plumb_levels_new(&profile, &loop, &error);    // PROFILE: the first run, at M/L/G
 *	plumb_levels_add(levels, &run, &error);                // the others, in any order
 *	plumb_levels_conclude(levels, &profile, &error);       // puts the answer into PROFILE
 *	plumb_levels_free(levels);
 *
 * The first run says which paths there are. It may compile and fill caches, so it is in no mean.
 * Paths of other runs are the same if their ranges, modules, operators and GPU work are: Python
 * lines are looked at in M/L/G alone. Only equal work is averaged: a path that another run called
 * more or less often is left out, and so is a run in which such paths take most of the time.
 */
#ifndef PLUMB_ANALYZE_LEVELS_H
#define PLUMB_ANALYZE_LEVELS_H

#include "analyze/cost.h"
#include "model/profile.h"

#define PLUMB_LEVELS_WHY 240

/* The mean of COUNT values as XSP trims it, and its 95 % interval (Student's t). NAN: unknown. */
struct plumb_level_estimate {
	double value, low, high;
};
/* Sorts VALUES. */
struct plumb_level_estimate plumb_level_estimate(double *values, uint32_t count);

struct plumb_level_run {
	uint32_t level;                      /* enum plumb_level_kind */
	uint32_t number;                     /* as it is called in messages */
	uint32_t round;                      /* runs of one round are compared, from 0 */
	double time_ns;                      /* of an iteration, or the run; NAN: unknown */
	const struct plumb_profile *profile; /* NULL: nothing was recorded */
	const char *why;                     /* it is left out for this reason; NULL: it is not */
};

struct plumb_levels;

/* PROFILE must outlive LEVELS, until plumb_levels_conclude. LOOP is that of plumb_cost_loop_find;
 * without a loop (process PLUMB_NONE) the runs as a whole are compared. NULL: no memory. */
struct plumb_levels *
plumb_levels_new(const struct plumb_profile *profile, const struct plumb_cost_loop *loop,
                 enum plumb_level_bounds bounds, struct plumb_error *error);
void plumb_levels_free(struct plumb_levels *levels);

/* Takes what is needed of RUN's profile, which may go then. Returns the run's index from 0, or
 * PLUMB_ESYSTEM: no memory. */
int plumb_levels_add(struct plumb_levels *levels, const struct plumb_level_run *run,
                     struct plumb_error *error) PLUMB_MUST_CHECK;
/* The same for the run at M/L/G/C. What it counted becomes values of the same contexts of the
 * first run: a context is the same if its call path is, and if its call launched as often. HOT are
 * the kernels (strings of the first profile) that were to be counted; those that were not are
 * named. */
int plumb_levels_count(struct plumb_levels *levels, const struct plumb_level_run *run,
                       const uint32_t *hot, uint32_t hot_count,
                       struct plumb_error *error) PLUMB_MUST_CHECK;
/* The time of a run that was added, if it is known later; or WHY it is left out. */
void
plumb_levels_time(struct plumb_levels *levels, uint32_t index, double time_ns, const char *why);

/* Puts `levels`, `level_values` and counters into PROFILE, the first run's. PLUMB_EEMPTY: no two
 * levels could be compared; ERROR says why, and PROFILE has the rows that say it, too.
 * PLUMB_ESYSTEM. */
int plumb_levels_conclude(struct plumb_levels *levels, struct plumb_profile *profile,
                          struct plumb_error *error) PLUMB_MUST_CHECK;

/* ---- what a profile says ---- */

/* The row of LEVEL; NULL: there is none. */
const struct plumb_level_row *
plumb_levels_row(const struct plumb_profile *profile, enum plumb_level_kind level);
/* Is CONTEXT a layer, if it is in no other one: an operator, a module without modules in it, or a
 * range without anything of the kind in it? */
bool plumb_level_begins_layer(const struct plumb_profile *profile, uint32_t context);
/* "M/L"; NULL: no such level. */
const char *plumb_level_name(uint32_t level);

#endif
