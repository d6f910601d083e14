/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says which parts of a run are start-up, which are of a loop, and which are the rest.
 *
 * A recording without single spans knows each process in parts (PLUMB_WINDOW_PART). A part is of a
 * loop if something in it repeats:
 * 1. The newest GPU work shows a loop that takes most of the part.
 * 2. The program marks its steps: ranges of a framework's profiler, or of an optimizer.
 * 3. The counts of what takes most of its time are multiples of one number of iterations.
 *
 * Parts are of the same loop if they do the same: if the shares of time by context, or the shares
 * of calls, overlap. So training that comes again after evaluation is the same loop as before.
 * What is before the first loop is start-up, and what is not of a loop is the rest.
 *
 * Where the parts show no loop, or there are none, single spans may: as in a trace of another tool.
 * Then windows begin and end with the kernels of loops, and values are added up again from spans
 * (docs/report.md, "Windows of single spans").
 */
#ifndef PLUMB_ANALYZE_WINDOWS_H
#define PLUMB_ANALYZE_WINDOWS_H

#include "model/profile.h"

/*
 * Makes windows of the parts and the spans that PROFILE has. Without a loop the parts are removed,
 * and the profile has no windows. PLUMB_ESYSTEM: no memory; the profile has no windows then.
 */
int plumb_windows_label(struct plumb_profile *profile, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
