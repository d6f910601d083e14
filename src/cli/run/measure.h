/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording costs (`plumb run --measure-cost`): the program runs again, with plumb and
 * without, and the counter (count/) notes in all runs when work is launched.
 *
 *	measure.pairs = pairs;
 *	measure.recorded = true;
 *	…                                        // the first run, which made the profile (repeat.h)
 *	plumb_measure_ran(&measure, &run);
 *	while (plumb_measure_next(&measure)) {
 *		…                                // with plumb if measure.recorded, silently
 *		plumb_measure_ran(&measure, &run);
 *	}
 *	code = plumb_measure_conclude(&measure, &profile, &error);  // the profile of the first run
 */
#ifndef PLUMB_CLI_RUN_MEASURE_H
#define PLUMB_CLI_RUN_MEASURE_H

#include "analyze/cost.h"
#include "cli/run/repeat.h"

#define PLUMB_MEASURE_RUNS 201 /* at most */

struct plumb_measure_run {
	const struct plumb_program *program;
	int64_t wall_ns;
};

struct plumb_measure {
	uint32_t pairs;             /* 0: nothing is to be measured */
	bool recorded;              /* the run that comes, or goes on, is with plumb */
	struct plumb_repeat repeat; /* its number, and the counter */
	char why[PLUMB_COST_WHY];   /* why nothing is measured any more; "": all is well */
	/* private */
	struct plumb_cost_run runs[PLUMB_MEASURE_RUNS];
};

/* Is there another run to make? Then PROGRAM, which was made ready by plumb_program_again, is to
 * run silently. */
bool plumb_measure_next(struct plumb_measure *measure, struct plumb_program *program);
void plumb_measure_ran(struct plumb_measure *measure, const struct plumb_measure_run *run);

/* Puts the cost into the PROFILE of the first run, or why it is not known. */
int plumb_measure_conclude(struct plumb_measure *measure, struct plumb_profile *profile,
                           struct plumb_error *error) PLUMB_MUST_CHECK;
#endif
