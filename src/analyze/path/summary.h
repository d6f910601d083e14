/* SPDX-License-Identifier: Apache-2.0 */
/* The paths of a profile in short: of the whole, and of each main track's median iteration. */
#ifndef PLUMB_ANALYZE_PATH_SUMMARY_H
#define PLUMB_ANALYZE_PATH_SUMMARY_H

#include "analyze/path/rows.h"
#include "analyze/path/steps.h"

#define PLUMB_PATH_ROWS_MOST 20

struct plumb_path_summary {
	bool known;
	uint32_t iteration;            /* the median one, or that asked for; PLUMB_NONE: the
	                                  whole */
	struct plumb_path_steps steps; /* from which it is, and of which savings are */
	int64_t start_ns, end_ns, peer_ns, sums[PLUMB_PATH_KINDS]; /* as of a window */
	struct plumb_path_row rows[PLUMB_PATH_ROWS_MOST];
	/* What an iteration (steps.h), or the whole, would save without the row's contexts;
	 * PLUMB_UNKNOWN where it has none, or where the profile has too many different rows. */
	int64_t savings[PLUMB_PATH_ROWS_MOST];
	int count;
};

struct plumb_path_summaries {
	struct plumb_path_summary whole;
	struct plumb_path_summary *tracks; /* by place in FOUND; known of main tracks with a loop */
	uint32_t count;
	uint32_t tries; /* how many different rows the run was played again without */
};

/* What is asked for. */
struct plumb_path_asked {
	int most;       /* rows of each, up to PLUMB_PATH_ROWS_MOST */
	uint32_t track; /* of this track alone; PLUMB_NONE: of all */
	/* Also what rows of the whole save; else only for a main track without a loop. */
	bool whole_always;
	/* Of `track`: this iteration instead of the median one. None if it is not in the part. */
	bool has_iteration;
	uint32_t iteration;
};

/* WHOLE is of plumb_path_open_whole; USER_OF as for plumb_path_rows. For plumb_path_summaries_free
 * in any case. PLUMB_ESYSTEM. */
int plumb_path_summarize(struct plumb_path_window *whole, const struct plumb_iterations *found,
                         const uint32_t *user_of, const struct plumb_path_asked *asked,
                         struct plumb_path_summaries *summaries,
                         struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_path_summaries_free(struct plumb_path_summaries *summaries);

#endif
