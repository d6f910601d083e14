/* SPDX-License-Identifier: Apache-2.0 */
/* The critical paths of iterations. */
#ifndef PLUMB_VIEW_ITERS_PATH_H
#define PLUMB_VIEW_ITERS_PATH_H

#include "analyze/path/path.h"
#include "analyze/path/summary.h"
#include "view/iters.h"

struct plumb_iters_path {
	const struct plumb_profile *profile;
	const struct plumb_iterations *found;
	const struct plumb_division *division;
	struct plumb_path *path;
	struct plumb_path_window whole;
	struct plumb_path_summaries summaries;
};

/* NULL with *CODE 0: there are no paths, because there are no spans of streams. NULL with a
 * negative *CODE: no memory; ERROR is filled. ITERS must not move in memory. */
struct plumb_iters_path *
plumb_iters_path_new(const struct plumb_iters *iters, const struct plumb_iters_query *query,
                     int *code, struct plumb_error *error);
void plumb_iters_path_free(struct plumb_iters_path *paths);

/* The summary of TRACK, which is one of those found; NULL: of the whole profile. */
const struct plumb_path_summary *
plumb_iters_path_summary(const struct plumb_iters_path *paths,
                         const struct plumb_iteration_track *track);

#endif
