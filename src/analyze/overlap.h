/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much communication hides behind computation, for each rank: the part of the union of a rank's
 * collective kernels that the union of its other kernels covers. It uses the spans of the rank's
 * streams. If a profile has none, it uses the newest GPU work, which every profile keeps.
 */
#ifndef PLUMB_ANALYZE_OVERLAP_H
#define PLUMB_ANALYZE_OVERLAP_H

#include "model/profile.h"

struct plumb_overlap {
	int64_t rank;             /* PLUMB_UNKNOWN: its processes have none */
	int64_t communication_ns; /* unions */
	int64_t compute_ns;
	int64_t hidden_ns;
};

struct plumb_overlaps {
	struct plumb_overlap *items; /* ascending; only ranks that communicate */
	uint32_t count;
	bool newest; /* of the newest work only */
};

/* For plumb_overlaps_free. PLUMB_ESYSTEM: memory is out. */
int plumb_overlaps_find(const struct plumb_profile *profile, struct plumb_overlaps *overlaps,
                        struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_overlaps_free(struct plumb_overlaps *overlaps);

#endif
