/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways to write iterations share. */
#ifndef PLUMB_CLI_ITERS_H
#define PLUMB_CLI_ITERS_H

#include <stdio.h>

#include "analyze/host_steps.h"
#include "analyze/iterations.h"
#include "cli/iters_path.h"

struct plumb_iters_steps;

struct plumb_iters {
	const struct plumb_profile *profile;
	const struct plumb_iterations *found;
	int64_t track; /* the one to show, -1 all */
	const struct plumb_iters_steps *steps;
	struct plumb_iters_path *paths; /* NULL: none */
	const struct plumb_host_steps *host;
};

/* Words by the numbers of analyze/iterations.h; NULL is none. */
extern const char *const plumb_iters_roles[], *const plumb_iters_phases[];
extern const char *const plumb_iters_verdicts[], *const plumb_iters_odd[];

bool plumb_iters_shown(const struct plumb_iters *iters, const struct plumb_iteration_track *track);

void plumb_iters_stat_print(FILE *out, const char *name, const struct plumb_iteration_stat *stat,
                            const char *unit);
void plumb_iters_stat_json(struct plumb_json *json, const char *key,
                           const struct plumb_iteration_stat *stat);

/* ---- iters_host.c: without GPU work, the steps that the program marks ---- */

/* Are they what is shown? The other functions are for that case; JSON has null in any other. */
bool plumb_iters_host_shown(const struct plumb_iters *iters);
int plumb_iters_host_print(const struct plumb_iters *iters, FILE *out);
int plumb_iters_host_json(const struct plumb_iters *iters, struct plumb_json *json);
void plumb_iters_host_csv(const struct plumb_iters *iters, FILE *out);

/* One object, or a row for each iteration. Negative: it could not be written. */
int plumb_iters_json(const struct plumb_iters *iters, FILE *out);
int plumb_iters_csv(const struct plumb_iters *iters, FILE *out);

#endif
