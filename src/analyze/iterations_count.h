/* SPDX-License-Identifier: Apache-2.0 */
/* How many iterations a loop had in all, also if only the newest ones have times. */
#ifndef PLUMB_ANALYZE_ITERATIONS_COUNT_H
#define PLUMB_ANALYZE_ITERATIONS_COUNT_H

#include "analyze/iterations.h"
#include "model/gpu_work.h"

/* Each kernel (by name) says a number: how often it came on the track, by how often it came in the
 * iterations that were seen. The middle one counts. WORK is PROFILE's. NAN: no memory. */
double
plumb_iterations_count(const struct plumb_profile *profile, const struct plumb_gpu_work *work,
                       const struct plumb_iteration_track *track,
                       const struct plumb_iteration_level *level);

/* Fills in the iterations of the windows that are loops, where they are not known and the GPU's
 * work tells them. PLUMB_ESYSTEM: no memory. */
int plumb_windows_count(struct plumb_profile *profile, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
