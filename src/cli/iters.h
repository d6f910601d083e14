/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways to write iterations share. */
#ifndef PLUMB_CLI_ITERS_H
#define PLUMB_CLI_ITERS_H

#include <stdio.h>

#include "analyze/iterations.h"
#include "cli/iters_path.h"

struct plumb_iters_steps;

struct plumb_iters {
	const struct plumb_profile *profile;
	const struct plumb_iterations *found;
	int64_t track; /* the one to show, -1 all */
	const struct plumb_iters_steps *steps;
	struct plumb_iters_path *paths; /* NULL: none */
};

/* Words by the numbers of analyze/iterations.h; NULL is none. */
extern const char *const plumb_iters_roles[], *const plumb_iters_phases[];
extern const char *const plumb_iters_verdicts[], *const plumb_iters_odd[];

bool plumb_iters_shown(const struct plumb_iters *iters, const struct plumb_iteration_track *track);

/* One object, or a row for each iteration. Negative: it could not be written. */
int plumb_iters_json(const struct plumb_iters *iters, FILE *out);
int plumb_iters_csv(const struct plumb_iters *iters, FILE *out);

#endif
