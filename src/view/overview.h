/* SPDX-License-Identifier: Apache-2.0 */
/* The head of reports: the run, what recording costs, devices, ranks, and what was not recorded.
 * The collector says why it was not (the slot was taken, a version is unknown, …). */
#ifndef PLUMB_VIEW_OVERVIEW_H
#define PLUMB_VIEW_OVERVIEW_H

#include <stdbool.h>

#include "analyze/ranks.h"
#include "base/json.h"

#define PLUMB_OVERVIEW_NOTES 2 /* at most so many */

struct plumb_overview {
	const char
		*imported; /* the files of another tool's trace; NULL: the profile was recorded */
	/* How long recording was on; PLUMB_UNKNOWN: all the time, or unknown. */
	int64_t recorded_ns;
	const char *no_gpu; /* why there is no device; NULL: there is one */
	const char *notes[PLUMB_OVERVIEW_NOTES];
	uint32_t note_count;
};
struct plumb_overview plumb_overview_make(const struct plumb_profile *profile);

/* A device's times, and how many processes used it. */
struct plumb_overview_device {
	int64_t work_ns; /* from its first to its last work; PLUMB_UNKNOWN */
	int64_t span_ns; /* the part of it that can have been recorded: shares are of this */
	uint32_t users;
};
struct plumb_overview_device
plumb_overview_device(const struct plumb_profile *profile, uint32_t device);

/* How evenly the ranks work: on their GPUs, or in operators if there are no GPUs. */
struct plumb_overview_balance {
	const struct plumb_rank *least, *most;
	int64_t least_ns, most_ns;
	double mean_ns;
	int64_t whole_ns; /* how long the run was recorded */
	bool gpu;
};
/* False: unknown. RANKS has one or more. */
bool plumb_overview_balance(const struct plumb_profile *profile, const struct plumb_ranks *ranks,
                            struct plumb_overview_balance *balance);

/* How long recording was on, ns. PLUMB_UNKNOWN: it was on all the time, or nobody knows. */
int64_t plumb_overview_recorded(const struct plumb_profile *profile);

/* Write the key `run` of `report --json`, and the keys `processes`, `devices`, `memory`,
 * `ranks` and `gpu_work`. */
void plumb_overview_json_run(const struct plumb_profile *profile, struct plumb_json *json);
void plumb_overview_json_parts(const struct plumb_profile *profile, struct plumb_json *json);

#endif
