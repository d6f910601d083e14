/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What part of the time each rank's GPU computes, is in collectives, waits there for other ranks,
 * and idles. Kernels of collectives that wait are busy, but they are no work.
 */
#ifndef PLUMB_VIEW_GPU_SHARES_H
#define PLUMB_VIEW_GPU_SHARES_H

#include "analyze/rank_waits.h"
#include "base/json.h"

struct plumb_gpu_share {
	uint32_t process, device;
	int64_t rank; /* PLUMB_UNKNOWN */
	bool communicates;
	struct plumb_rank_sums sums; /* from its first work to its last */
};
struct plumb_gpu_shares {
	struct plumb_gpu_share *items; /* by rank, then device; a device of a process each */
	uint32_t count;
	bool newest; /* of the newest work only, which need not be all */
};

/* For plumb_gpu_shares_free in any case. False: out of memory. */
bool plumb_gpu_shares_find(const struct plumb_profile *profile, struct plumb_gpu_shares *shares);
void plumb_gpu_shares_free(struct plumb_gpu_shares *shares);

/* The shares of DEVICE if one process uses it and communicates; else NULL. */
const struct plumb_gpu_share *
plumb_gpu_shares_of(const struct plumb_gpu_shares *shares, uint32_t device);

/* Does every rank communicate, so that shares of them can be compared? */
bool plumb_gpu_shares_are_even(const struct plumb_gpu_shares *shares);

/* Is the whole of SHARE all of DEVICE's time from its first to its last work? */
bool plumb_gpu_share_is_all(const struct plumb_gpu_shares *shares,
                            const struct plumb_gpu_share *share, const struct plumb_device *device);

/* Writes the key `gpu_work` of `report --json`. */
void plumb_gpu_shares_json(const struct plumb_profile *profile, struct plumb_json *json);

#endif
