/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording costs (`plumb run --measure-cost`): the program runs again, with plumb and
 * without, and the counter (count/) notes in all runs when work is launched.
 *
 *	code = plumb_measure_begin(&measure, &folder, pairs, &error);
 *	…                                        // the first run, which made the profile
 *	plumb_measure_ran(&measure, &run);
 *	while (plumb_measure_next(&measure)) {
 *		…                                // with plumb if measure.recorded, silently
 *		plumb_measure_ran(&measure, &run);
 *	}
 *	code = plumb_measure_conclude(&measure, &profile, &error);  // the profile of the first run
 *	plumb_measure_end(&measure);
 *
 * plumb_measure_environment has what the counter needs in each run.
 */
#ifndef PLUMB_CLI_RUN_MEASURE_H
#define PLUMB_CLI_RUN_MEASURE_H

#include <limits.h>

#include "analyze/cost.h"
#include "cli/run/launch.h"

#define PLUMB_COUNTER_NAME "plumb-counter.so"
#define PLUMB_MEASURE_RUNS 201 /* at most */

struct plumb_measure_run {
	const struct plumb_program *program;
	int64_t wall_ns;
};

struct plumb_measure {
	uint32_t pairs;           /* 0: nothing is to be measured */
	uint32_t number;          /* of the run that comes, or goes on: from 0 */
	bool recorded;            /* it is with plumb */
	char library[PATH_MAX];   /* the counter, by a path that LD_PRELOAD can hold */
	char why[PLUMB_COST_WHY]; /* why nothing is measured any more; "": all is well */
	/* private */
	char folder[PATH_MAX];
	char variable[PATH_MAX + 64];
	const char *variables[2];
	bool reads_file; /* standard input, from `offset` on */
	off_t offset;
	int input;
	struct plumb_cost_run runs[PLUMB_MEASURE_RUNS];
};

/* COLLECTOR is the path of libplumb.so, beside which the counter is, and BESIDE the run's folder.
 * Errors: PLUMB_EUSAGE (a program that reads a pipe cannot run again), PLUMB_ESYSTEM. */
int plumb_measure_begin(struct plumb_measure *measure, const char *collector, const char *beside,
                        uint32_t pairs, struct plumb_error *error) PLUMB_MUST_CHECK;

/* "NAME=VALUE" for the counter in the run that comes; ends with NULL. Valid until the next call. */
const char *const *plumb_measure_variables(struct plumb_measure *measure);

/* Is there another run to make? Then PROGRAM, which was made ready by plumb_program_again, is to
 * run silently. */
bool plumb_measure_next(struct plumb_measure *measure, struct plumb_program *program);
void plumb_measure_ran(struct plumb_measure *measure, const struct plumb_measure_run *run);

/* Puts the cost into the PROFILE of the first run, or why it is not known. */
int plumb_measure_conclude(struct plumb_measure *measure, struct plumb_profile *profile,
                           struct plumb_error *error) PLUMB_MUST_CHECK;
/* Removes the counter's files. MEASURE may be all zeros. */
void plumb_measure_end(struct plumb_measure *measure);

#endif
