/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of one iteration (analyze/path/path.h) as three tables: `path`, its segments in
 * time; `path.rows`, what is on it and what each would save; `path.total`.
 */
#ifndef PLUMB_VIEW_PATH_H
#define PLUMB_VIEW_PATH_H

#include "analyze/answer.h"
#include "model/profile.h"

enum plumb_path_table { PLUMB_PATH_SEGMENTS, PLUMB_PATH_ROWS, PLUMB_PATH_TOTAL, PLUMB_PATH_TABLES };

struct plumb_path_query {
	bool one; /* only TRACK; else the first main track with a loop */
	int64_t track;
	int64_t loop;        /* from 1; 0: the main loop */
	bool with_iteration; /* ITERATION of the outermost level; else the median one */
	int64_t iteration;
	double px; /* how wide it is on the screen: what is narrower than a pixel is merged; 0:
	              nothing is */
};

/* Fills the tables, each to be freed. Without a loop the path is of the whole profile.
 * PLUMB_EEMPTY: there are no spans, or no such iteration; PLUMB_EUSAGE: PX is below 0;
 * PLUMB_ESYSTEM. */
int plumb_path_answer(const struct plumb_profile *profile, const struct plumb_path_query *query,
                      struct plumb_answer answers[PLUMB_PATH_TABLES],
                      struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
