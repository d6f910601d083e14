/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's times on other clocks. */
#ifndef PLUMB_MODEL_TIMES_H
#define PLUMB_MODEL_TIMES_H

#include "model/profile.h"

/* TIME_NS, a CLOCK_MONOTONIC time of PROCESS, as ns since 1970; PLUMB_UNKNOWN when the process's
 * clocks were not read. */
int64_t plumb_realtime(const struct plumb_profile *profile, uint32_t process, int64_t time_ns);

/* Is the profile of several hosts? Their clocks do not compare, but times of day do. */
bool plumb_is_of_several_hosts(const struct plumb_profile *profile);

#endif
