/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What start-up does: imports, compiling, tuning, … The values are those of one thread, the main
 * one of the process that does most, so that they add up to no more than the time that passed.
 *
 *	struct plumb_startup startup;
 *	if (plumb_startup_find(&profile_of_startup, &startup) < 0) …
 */
#ifndef PLUMB_ANALYZE_STARTUP_H
#define PLUMB_ANALYZE_STARTUP_H

#include "model/framework/framework.h"

struct plumb_startup {
	int64_t wall_ns; /* how long it took; PLUMB_UNKNOWN */
	int64_t ns[PLUMB_STARTUP_KINDS];
	uint64_t samples[PLUMB_STARTUP_KINDS]; /* that say so; of operators their calls */
	uint32_t context[PLUMB_STARTUP_KINDS]; /* where most of it is, outermost; PLUMB_NONE */
	int64_t before_ns; /* until something was recorded, in processes without samples; or 0 */
	uint32_t process;  /* or PLUMB_NONE: nothing is known */
	/* What the times are: PLUMB_METRIC_CPU_TIME (with wait.time, from samples),
	 * PLUMB_METRIC_HOST_TIME (the main thread, seen from outside) or PLUMB_METRIC_OP_TIME. */
	uint32_t metric;
};

/* Is at least half of it known, by what was recorded? Samples of CPU time and waiting always are
 * enough. */
bool plumb_startup_is_known(const struct plumb_startup *startup);

/* Is METRIC of the times? */
bool plumb_startup_is_metric(const struct plumb_startup *startup, uint32_t metric);

/* What each context is for, of itself or of what it lies under: an enum plumb_startup_kind by
 * context. Malloced; NULL: no memory. */
unsigned char *plumb_startup_kinds(const struct plumb_profile *profile);

/* What it is called: "compiling". */
extern const char *const plumb_startup_words[PLUMB_STARTUP_KINDS];

/* PROFILE is that of the window (model/window.h). PLUMB_ESYSTEM: no memory. */
int plumb_startup_find(const struct plumb_profile *profile,
                       struct plumb_startup *startup) PLUMB_MUST_CHECK;

#endif
