/* SPDX-License-Identifier: Apache-2.0 */
/* Where the critical path of iterations runs, for `plumb iters`. */
#ifndef PLUMB_CLI_ITERS_PATH_H
#define PLUMB_CLI_ITERS_PATH_H

#include <stdio.h>

#include "analyze/iterations.h"
#include "base/json.h"

struct plumb_iters_path;

struct plumb_iters_path_wish {
	int64_t track; /* only this one, -1 all */
	int64_t spans; /* of at most as many */
	bool json;     /* all of it, not what people are shown */
};

/* NULL where there is none to tell: no spans of streams. USER_OF, by context, is from
 * plumb_user_contexts. *CODE is negative, and ERROR filled, when memory is out. */
struct plumb_iters_path *
plumb_iters_path_new(const struct plumb_profile *profile, const struct plumb_iterations *found,
                     const uint32_t *user_of, const struct plumb_iters_path_wish *wish, int *code,
                     struct plumb_error *error);
void plumb_iters_path_free(struct plumb_iters_path *paths);

/* Of a main track: its median iteration's, or the whole profile's where it has no loop. Nothing for
 * others and where PATHS is NULL. Negative: memory is out. */
int plumb_iters_path_print(struct plumb_iters_path *paths,
                           const struct plumb_iteration_track *track, FILE *out);
/* The key "path": of a main track with a loop, its median iteration's and the sums of all; of TRACK
 * NULL, the whole profile's; else null. Negative: memory is out. */
int plumb_iters_path_json(struct plumb_iters_path *paths, const struct plumb_iteration_track *track,
                          struct plumb_json *json);

#endif
