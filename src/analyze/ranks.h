/* SPDX-License-Identifier: Apache-2.0 */
/* What each rank of a job did, to see how even the work is. */
#ifndef PLUMB_ANALYZE_RANKS_H
#define PLUMB_ANALYZE_RANKS_H

#include "model/profile.h"

struct plumb_rank {
	int64_t rank;
	int64_t processes;   /* of this rank, with the workers that it started */
	int64_t gpu_busy_ns; /* of its processes, added up over devices; PLUMB_UNKNOWN */
	int64_t op_time_ns;  /* in operators, added up over threads */
};

struct plumb_ranks {
	struct plumb_rank *items; /* ascending */
	uint32_t count;
};

/* For plumb_ranks_free. False: no memory. */
bool plumb_ranks_find(const struct plumb_profile *profile, struct plumb_ranks *ranks);
void plumb_ranks_free(struct plumb_ranks *ranks);

#endif
