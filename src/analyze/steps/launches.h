/* SPDX-License-Identifier: Apache-2.0 */
/* Which driver call started a piece of GPU work. */
#ifndef PLUMB_ANALYZE_STEPS_LAUNCHES_H
#define PLUMB_ANALYZE_STEPS_LAUNCHES_H

#include "base/vec.h"
#include "model/profile.h"

struct plumb_launch {
	uint64_t process, correlation;
	uint32_t span;
};

struct plumb_launches {
	struct plumb_launch *items; /* by process and correlation, each once */
	uint32_t count, capacity;
};

/* All calls of PROFILE's spans, or those of PROCESS unless it is PLUMB_NONE; for plumb_vec_free in any case.
 * PLUMB_ESYSTEM: memory is out. */
int plumb_launches_find(const struct plumb_profile *profile, uint32_t process,
                        struct plumb_launches *launches) PLUMB_MUST_CHECK;

/* The span of the call that started CORRELATION's work in PROCESS, the inner one of two within each other; or
 * PLUMB_NONE. */
uint32_t
plumb_launch_of(const struct plumb_launches *launches, uint64_t process, uint64_t correlation);

#endif
