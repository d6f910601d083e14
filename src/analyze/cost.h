/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording costs, from runs of one program with plumb and without, each with the times of its
 * launches.
 *
 *	plumb_cost_loop_find(&profile, &loop, &error);   // of the first recorded run
 *	plumb_cost_compare(&loop, runs, count, &cost, why, &error);
 *
 * The first run made the profile: it says where the loop is, which lies between two of its
 * launches. The other runs are in pairs, and are compared. The loop is found in them by the same
 * launches: counted from the program's beginning, or from its end if start-up launched more or less
 * than in the first run. Only equal work is compared.
 */
#ifndef PLUMB_ANALYZE_COST_H
#define PLUMB_ANALYZE_COST_H

#include "model/profile.h"

/* A cost of which nothing is known: process and `why` are PLUMB_NONE. */
struct plumb_cost plumb_cost_unknown(void);

/* The main loop of the process with the lowest rank that has it. */
struct plumb_cost_loop {
	uint32_t process;         /* PLUMB_NONE: there is no loop, or nobody knows its iterations */
	uint32_t window;          /* its row in the profile */
	int64_t start_ns, end_ns; /* its longest stretch */
	double step_ns;           /* an iteration, about */
};
/* PLUMB_ESYSTEM: no memory. */
int plumb_cost_loop_find(const struct plumb_profile *profile, struct plumb_cost_loop *loop,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

struct plumb_cost_run {
	bool recorded;
	int exit_code;
	int64_t wall_ns;
	uint64_t launches; /* of the process with the loop, all */
	/* The first of them, as far as there was room (base/launch_entry.h); 0: unknown. */
	uint64_t timed;
	const uint64_t *entries;
	int64_t start_ns; /* of the first */
};

/*
 * Fills COST from COUNT RUNS: the one that made the profile, and pairs of a recorded one and a
 * plain one, in any order. If the cost is not known, its ratio is NAN and WHY says so in one line.
 * PLUMB_ESYSTEM: no memory.
 */
#define PLUMB_COST_WHY 240
int plumb_cost_compare(const struct plumb_cost_loop *loop, const struct plumb_cost_run *runs,
                       uint32_t count, struct plumb_cost *cost, char why[PLUMB_COST_WHY],
                       struct plumb_error *error) PLUMB_MUST_CHECK;

/*
 * How long a step of the loop takes in each of COUNT RUNS, which are in no pairs, in the same
 * launches: STEP_NS[i] is the median of its blocks, NAN if WHY[i] says that the run did other work.
 * The first run must be the one that made the profile. *STEPS is how many are compared; 0: the loop
 * cannot be bounded by launches, and nothing else is set. PLUMB_ESYSTEM: no memory.
 */
int plumb_cost_steps(const struct plumb_cost_loop *loop, const struct plumb_cost_run *runs,
                     uint32_t count, double *step_ns, char (*why)[PLUMB_COST_WHY], int64_t *steps,
                     struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
