/* SPDX-License-Identifier: Apache-2.0 */
/* The ranges that a program marks on its threads: ProfilerStep#N, NVTX, plumb.span. */
#ifndef PLUMB_ANALYZE_STEPS_MARKS_H
#define PLUMB_ANALYZE_STEPS_MARKS_H

#include "base/vec.h"
#include "model/profile.h"

struct plumb_mark {
	uint32_t frame;
	int64_t start_ns, end_ns;
};
struct plumb_marks {
	struct plumb_mark *items; /* by thread, then start */
	uint32_t count, capacity;
};

/* Adds those of PROFILE's spans from FIRST until END. PLUMB_ESYSTEM: memory is out. */
int plumb_marks_add(const struct plumb_profile *profile, uint32_t first, uint32_t end,
                    struct plumb_marks *marks) PLUMB_MUST_CHECK;

#endif
