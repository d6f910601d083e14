/* SPDX-License-Identifier: Apache-2.0 */
/* How the profile of a window is made. Private to model/. */
#ifndef PLUMB_MODEL_WINDOW_CUT_H
#define PLUMB_MODEL_WINDOW_CUT_H

#include "model/window.h"

/* OUT becomes the profile of the windows SUM of PROFILE; NULL: of the whole. PLUMB_ESYSTEM: no
 * memory; OUT must be freed all the same. */
int plumb_window_cut(const struct plumb_profile *profile, const struct plumb_window_sum *sum,
                     struct plumb_profile *out) PLUMB_MUST_CHECK;

#endif
