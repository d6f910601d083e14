/* SPDX-License-Identifier: Apache-2.0 */
/* A run of `plumb run`, for the files of this room. */
#ifndef PLUMB_CLI_RUN_RUN_H
#define PLUMB_CLI_RUN_RUN_H

#include "base/output.h"
#include "cli/cli.h"
#include "cli/facts.h"
#include "cli/run/launch.h"
#include "cli/run/measure.h"
#include "cli/run/options.h"
#include "cli/run/rundir.h"
#include "cli/run/schedule.h"
#include "cli/run/target.h"
#include "watch/copies.h"
#include "watch/watch.h"

struct plumb_running {
	struct plumb_invocation *invocation;
	char *const *argv;
	char output[PATH_MAX];
	struct plumb_run_options options;
	struct plumb_target target;
	struct plumb_rundir folder;
	struct plumb_facts facts;
	struct plumb_program program;
	struct plumb_watch *watch; /* NULL: not asked for */
	struct plumb_host *host;   /* NULL: `watch` sees more */
	struct plumb_copies *copies;
	struct plumb_watch_regions regions; /* of all three */
	struct plumb_schedule schedule;
	struct plumb_output_rule rule; /* how the profile is written */
	bool quiet;
	struct plumb_measure *measure; /* NULL: what recording costs is not measured */
	struct plumb_repeat *repeat;   /* NULL: the program runs once */
	int64_t wall_ns;               /* how long it ran */
	char *finish_command;          /* what a person types to settle it */
};

/* Makes the run folder. Returns the environment for the program, for plumb_environment_free. NULL:
 * ERROR says why the program cannot be started. */
char **plumb_run_make_ready(struct plumb_running *run, struct plumb_error *error);
/* Starts the program and records it to its end. Negative: it was not started. */
int plumb_run_record(struct plumb_running *run, char *const *environment,
                     struct plumb_error *error) PLUMB_MUST_CHECK;
/* Waits for the program, which was started. */
void plumb_run_wait(struct plumb_running *run);
/* Removes the run folder with what is in it. */
void plumb_run_discard(struct plumb_running *run);
/* In a job of many ranks, each rank has its own plumb. Only rank 0 prints the summary. */
void plumb_run_summary(const struct plumb_running *run, const struct plumb_profile *profile);

/* Runs the program again, and puts what recording costs into the profile, which is written already:
 * whatever fails here, it stays as it is. Prints the summary. */
void plumb_run_measure(struct plumb_running *run);

#endif
