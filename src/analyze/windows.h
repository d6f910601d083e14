/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the parts into which settle has cut a run: start-up, loops, the rest. A part is of a loop
 * if most of its time is in things that were done equally often, or a multiple of that, at least
 * four times. Parts that do the same are one loop, also if something else lies between them. What
 * lies before the first loop is start-up, and what is of no loop is the rest.
 */
#ifndef PLUMB_ANALYZE_WINDOWS_H
#define PLUMB_ANALYZE_WINDOWS_H

#include "model/window.h"

/* Without a loop the profile has no windows afterwards. A profile without parts stays as it is.
 * PLUMB_ESYSTEM: no memory; the profile has no windows then. */
int plumb_windows_label(struct plumb_profile *profile, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
