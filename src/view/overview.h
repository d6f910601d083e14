/* SPDX-License-Identifier: Apache-2.0 */
/* How long a run was recorded, which shares of time are of. */
#ifndef PLUMB_VIEW_OVERVIEW_H
#define PLUMB_VIEW_OVERVIEW_H

#include "model/profile.h"

/* How long recording was on, ns. PLUMB_UNKNOWN: it was on all the time, or nobody knows. */
int64_t plumb_overview_recorded(const struct plumb_profile *profile);
/* What of a device's SPAN (ns) can have been recorded: shares are of that. */
int64_t plumb_overview_span(const struct plumb_profile *profile, int64_t span);

#endif
