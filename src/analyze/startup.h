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
	uint32_t context[PLUMB_STARTUP_KINDS]; /* where most of it is, outermost; PLUMB_NONE */
	int64_t before_ns; /* until something was recorded, in processes without samples; or 0 */
	uint32_t process;  /* or PLUMB_NONE: nothing is known */
	bool sampled;      /* the times are of samples (cpu.time and wait.time), not of operators */
};

/* Is at least half of it known, by what was recorded? */
bool plumb_startup_is_known(const struct plumb_startup *startup);

/* What it is called: "compiling". */
extern const char *const plumb_startup_words[PLUMB_STARTUP_KINDS];

/* PROFILE is that of the window (model/window.h). PLUMB_ESYSTEM: no memory. */
int plumb_startup_find(const struct plumb_profile *profile,
                       struct plumb_startup *startup) PLUMB_MUST_CHECK;

#endif
