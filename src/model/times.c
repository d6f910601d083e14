/* SPDX-License-Identifier: Apache-2.0 */
#include "model/times.h"

#include <math.h>

static const struct plumb_clock *
clock_of(const struct plumb_profile *profile, uint32_t process)
{
	for (uint32_t i = 0; i < profile->clocks_count; i++)
		if (profile->clocks[i].process == process &&
		    profile->clocks[i].device == PLUMB_NONE)
			return &profile->clocks[i];
	return NULL;
}

/* monotonic = t + offset + slope * (t - reference), so t is that much earlier; the slope is a few
 * parts per million, so that its square is of no account. */
int64_t
plumb_realtime(const struct plumb_profile *profile, uint32_t process, int64_t time_ns)
{
	const struct plumb_clock *clock = clock_of(profile, process);
	int64_t real, drift, result;

	if (!clock || time_ns == PLUMB_UNKNOWN || clock->offset_ns == PLUMB_UNKNOWN ||
	    clock->reference_ns == PLUMB_UNKNOWN || !(fabs(clock->slope) < 0.01) ||
	    __builtin_sub_overflow(time_ns, clock->offset_ns, &real) ||
	    __builtin_sub_overflow(real, clock->reference_ns, &drift))
		return PLUMB_UNKNOWN;
	drift = (int64_t)llround(clock->slope * (double)drift);
	if (__builtin_sub_overflow(real, drift, &result))
		return PLUMB_UNKNOWN;
	return result;
}

bool
plumb_is_of_several_hosts(const struct plumb_profile *profile)
{
	for (uint32_t i = 1; i < profile->processes_count; i++)
		if (profile->processes[i].host != profile->processes[0].host)
			return true;
	return false;
}
