/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What part of a run's time a metric tells of.
 *
 * A table of 0.2 s of operators says little of a run of 10 s, so reports say how much of the wall
 * time their table covers, and what covers more. The parts are estimates: times of several threads
 * of a process are added up, to no more than the whole.
 */
#ifndef PLUMB_VIEW_COVERAGE_H
#define PLUMB_VIEW_COVERAGE_H

#include <stdbool.h>

#include "model/profile.h"

#define PLUMB_COVERAGE_SIZE 200
#define PLUMB_COVERS_MOST 0.5 /* a table of less is not what the run did */

struct plumb_coverage {
	int64_t whole_ns; /* wall time, or how long recording was on; PLUMB_UNKNOWN */
	/* parts of that, from 0 to 1 */
	double gpu;       /* the busiest device had work */
	double operators; /* op.time */
	double cpu;       /* cpu.time, of all threads */
	double main;      /* cpu.time and wait.time, of the main thread of the busiest process */
	uint32_t process; /* that process, or PLUMB_NONE */
	const struct plumb_profile *profile;
	bool sampled; /* there is cpu.time or wait.time */
	bool imported;
};

/* False: no memory. */
bool plumb_coverage_find(const struct plumb_profile *profile, struct plumb_coverage *coverage);

/* Writes "operators and ranges cover 2.0 % of the run's 10.2 s; …" into TEXT, without a line feed.
 * TEXT is empty if nothing is known. */
const char *plumb_coverage_text(const struct plumb_coverage *coverage, uint32_t metric,
                                char text[PLUMB_COVERAGE_SIZE]);

/*
 * The metric that says where the run's time went. It is METRIC, the default, if this covers most
 * of the time; else cpu.time, if samples cover more. *MAIN_ONLY: use cpu.time and wait.time
 * together, of the main thread of coverage->process.
 */
uint32_t
plumb_coverage_choose(const struct plumb_coverage *coverage, uint32_t metric, bool *main_only);

#endif
