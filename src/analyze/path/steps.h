/* SPDX-License-Identifier: Apache-2.0 */
/* Iterations as windows of the critical path. */
#ifndef PLUMB_ANALYZE_PATH_STEPS_H
#define PLUMB_ANALYZE_PATH_STEPS_H

#include "analyze/iterations.h"
#include "analyze/path/part.h"
#include "analyze/path/path.h"

/* The window within WHOLE of iteration NUMBER of TRACK's outermost level: from the end of the
 * iteration before, where that is known, else from its own first kernel on. As
 * plumb_path_within. */
int plumb_path_step(const struct plumb_path_window *whole,
                    const struct plumb_iteration_track *track, uint32_t number,
                    struct plumb_path_window *window, struct plumb_error *error) PLUMB_MUST_CHECK;
/* Likewise of COUNT iterations from FIRST on, one at least. */
int plumb_path_loop(const struct plumb_path_window *whole,
                    const struct plumb_iteration_track *track, uint32_t first, uint32_t count,
                    struct plumb_path_window *window, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Which of TRACK's iterations lie in what the path is made of; none: COUNT is 0. */
struct plumb_path_steps {
	uint32_t first, count;
};
struct plumb_path_steps
plumb_path_steps(const struct plumb_path *path, const struct plumb_iteration_track *track);

/* The iteration whose window has the median length, as plumb_path_median: of all, if it lies in the
 * part, else of those that do. PLUMB_NONE: TRACK has no loop there, or memory is out. */
uint32_t
plumb_path_median_step(const struct plumb_path *path, const struct plumb_iteration_track *track);

/*
 * What a step saves where steps overlap, as they do when the host runs ahead of the GPU: by how
 * much the last iteration's end comes earlier than the first one's does, in a whole window, for
 * each iteration between. NODES of TRACK are for plumb_path_savings; from what these SAVED comes
 * the step's, PLUMB_UNKNOWN where it is not known. Where there is one iteration its own end counts.
 * Never more than TAKEN.
 */
void plumb_path_step_nodes(const struct plumb_path *path, const struct plumb_iteration_track *track,
                           uint32_t nodes[2]);
int64_t
plumb_path_step_saving(const struct plumb_path *path, const struct plumb_iteration_track *track,
                       const int64_t saved[2], int64_t taken);
/* How long the spans of each play's GONE (as of plumb_path_savings) take in a step of each track:
 * those that are over between its two NODES, and what lies between them of those that go on, for
 * each iteration between. Into TAKEN[track * PLUMB_PATH_PLAYS + K]; what lies between spans counts
 * up to the whole. Work that the first iteration left behind may delay the last one's end, and
 * would count as a saving of each iteration between. */
void plumb_path_steps_taken(const struct plumb_path *path, const struct plumb_iterations *found,
                            const unsigned char *gone, const uint32_t *nodes, int64_t *taken);

#endif
