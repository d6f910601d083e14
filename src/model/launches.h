/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which driver call started a piece of GPU work: one of its process that has its number. Several
 * may have it (one within the other, as the runtime's and the driver's; a file may give one to any
 * number of calls): of those it is the last that began before the work, else, where clocks differ,
 * the first.
 */
#ifndef PLUMB_MODEL_LAUNCHES_H
#define PLUMB_MODEL_LAUNCHES_H

#include "base/vec.h"
#include "model/profile.h"

/* Calls are numbers of spans, because there may be tens of millions of them. The spans and tracks
 * are the profile's, and must stay. */
struct plumb_launches {
	const struct plumb_span *spans;
	const struct plumb_track *tracks;
	uint32_t *items; /* by process, correlation and start */
	uint32_t count, capacity;
	uint32_t last; /* where the last look-up ended: the next one mostly ends near it */
};

/* Collects all calls of PROFILE's spans; if PROCESS is not PLUMB_NONE, only those of PROCESS. The
 * caller frees the result with plumb_vec_free, also after an error. PLUMB_ESYSTEM: no memory. */
int plumb_launches_find(const struct plumb_profile *profile, uint32_t process,
                        struct plumb_launches *launches) PLUMB_MUST_CHECK;

/* The span of the call that started CORRELATION's work in PROCESS, which began at BEGAN; or
 * PLUMB_NONE. */
uint32_t plumb_launch_before(struct plumb_launches *launches, uint64_t process,
                             uint64_t correlation, int64_t began);
/* The place of that call in `items`, or PLUMB_NONE. */
uint32_t plumb_launch_place_before(struct plumb_launches *launches, uint64_t process,
                                   uint64_t correlation, int64_t began);
/* The span of the last call with that number, if it is unknown when the work began. */
uint32_t plumb_launch_of(struct plumb_launches *launches, uint64_t process, uint64_t correlation);
/* The place in `items` of the first call with that number, or PLUMB_NONE. */
uint32_t
plumb_launch_place(struct plumb_launches *launches, uint64_t process, uint64_t correlation);

#endif
