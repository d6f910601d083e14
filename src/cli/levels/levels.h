/* SPDX-License-Identifier: Apache-2.0 */
/* The runs of `plumb levels`, for the files of this room. */
#ifndef PLUMB_CLI_LEVELS_LEVELS_H
#define PLUMB_CLI_LEVELS_LEVELS_H

#include "analyze/levels.h"
#include "cli/cli.h"
#include "cli/run/run.h"

#define PLUMB_LEVELS_RUNS 50 /* at each level, at most */

/* When there is a run in which every launch waits. */
enum plumb_levels_serialised {
	PLUMB_SERIALISED_AUTO, /* if it is not known what launched some of the GPU work */
	PLUMB_SERIALISED_ALWAYS,
	PLUMB_SERIALISED_NEVER,
};

struct plumb_levels_wanted {
	struct plumb_invocation *invocation;
	struct plumb_program *program; /* prepared; what ran last */
	bool again;                    /* something ran */
	char *const *argv;
	const char *output;
	struct plumb_output_rule rule;
	uint32_t runs; /* at each level */
	enum plumb_levels_serialised serialised;
	int64_t limit;
	bool quiet, no_command;
	bool trace;                /* the first run keeps single spans */
	const char *counters;      /* which are counted in one run more; NULL: none */
	uint32_t counters_kernels; /* of so many kernels, at most */
	unsigned counters_launches, counters_cost;
};

/* Runs the program at all levels. PROFILE, which the caller frees, is that of the first run with
 * what was measured, and is written to the output. A run that fails is left out, and a line says
 * so. Errors: PLUMB_EUSAGE, PLUMB_EINPUT (the program fails in the first run, or cannot be
 * profiled), PLUMB_EEMPTY (nothing was recorded, or nothing can be compared), PLUMB_ESYSTEM. */
int plumb_levels_run(struct plumb_levels_wanted *wanted, struct plumb_profile *profile,
                     struct plumb_error *error) PLUMB_MUST_CHECK;

/* The answer for people: TOP rows of each table, 0: all. Negative: no memory. */
int plumb_levels_text(const struct plumb_profile *profile, int64_t top, FILE *out, int width);
/* The corrected tree of `report --corrected`. */
int plumb_corrected_text(const struct plumb_profile *profile, int64_t top, FILE *out, int width);

/* `--sweep NAME=VALUES`: the program once for each value, each at all levels. */
int plumb_levels_sweep(struct plumb_levels_wanted *wanted, const char *text);

#endif
