/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that runs several times: what each run reads, and the counter (count/), which notes in
 * each run when work is launched.
 *
 *	code = plumb_repeat_begin(&repeat, "--measure-cost", collector, beside, &error);
 *	…                                        // the first run, with plumb_repeat_variables
 *	plumb_repeat_ran(&repeat);
 *	plumb_repeat_next(&repeat, &program, why, sizeof why);
 *	…                                        // the next one
 *	plumb_repeat_ran(&repeat);
 *	launches = plumb_repeat_launches(&repeat, 0, &wanted);  // of the first run
 *	plumb_repeat_end(&repeat);
 */
#ifndef PLUMB_CLI_RUN_REPEAT_H
#define PLUMB_CLI_RUN_REPEAT_H

#include <limits.h>

#include "analyze/cost.h"
#include "cli/run/launch.h"
#include "region/launches.h"

#define PLUMB_COUNTER_NAME "plumb-counter.so"

struct plumb_repeat {
	uint32_t number;        /* of the run that comes, or goes on: from 0 */
	char library[PATH_MAX]; /* the counter, by a path that LD_PRELOAD can hold */
	char folder[PATH_MAX];  /* its files; "": not begun, or ended */
	/* private */
	char variable[PATH_MAX + 64];
	const char *variables[2];
	bool reads_file; /* standard input, from `offset` on */
	off_t offset;
	int input;
};

/* COLLECTOR is the path of libplumb.so, beside which the counter is, and BESIDE the run's folder.
 * WHO runs the program several times ("--measure-cost"). Errors: PLUMB_EUSAGE (a program that reads
 * a pipe cannot run again), PLUMB_ESYSTEM. */
int plumb_repeat_begin(struct plumb_repeat *repeat, const char *who, const char *collector,
                       const char *beside, struct plumb_error *error) PLUMB_MUST_CHECK;

/* "NAME=VALUE" for the counter in the run that comes; ends with NULL. Valid until the next call. */
const char *const *plumb_repeat_variables(struct plumb_repeat *repeat);

/* The run that comes is a silent one: PROGRAM, made ready by plumb_program_again, gets what it
 * reads. False: that cannot be; WHY, of SIZE bytes, says so. */
bool plumb_repeat_next(struct plumb_repeat *repeat, struct plumb_program *program, char *why,
                       size_t size);
/* The run has ended. */
void plumb_repeat_ran(struct plumb_repeat *repeat);

/* Which process of a run is wanted. */
struct plumb_repeat_wanted {
	int64_t pid;  /* PLUMB_UNKNOWN: any */
	int64_t rank; /* likewise */
};
/* The launches of a process; munmap(header, bytes) when they are not needed any more. */
struct plumb_repeat_launches {
	const struct plumb_launches_header *header; /* NULL: there are none */
	size_t bytes;
};
/* Of run NUMBER; of several processes, of the one that launched most. */
struct plumb_repeat_launches
plumb_repeat_launches(const struct plumb_repeat *repeat, uint32_t number,
                      const struct plumb_repeat_wanted *wanted);
/* Tells RUN of them. */
void plumb_repeat_take(struct plumb_cost_run *run, const struct plumb_repeat_launches *launches);

/* Removes the folder with the counter's files. REPEAT may be all zeros. */
void plumb_repeat_end(struct plumb_repeat *repeat);

#endif
