/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stalls: why a kernel's warps wait. It reads the metrics stall.<reason>, which instruction samples
 * give; no collector takes such samples yet, so that there is nothing to conclude and it says
 * nothing. What aggregates can tell of waiting (a device that idles, a host that waits) is the
 * latency analysis' part.
 */
#include "analyze/study.h"

static int
find_stalls(struct plumb_study *study)
{
	(void)study;
	return 0;
}

const struct plumb_analysis plumb_analysis_stalls = {
	.name = "stalls",
	.summary = "why a kernel's warps wait; needs instruction samples, which are not recorded "
		   "yet, so it finds nothing",
	.run = find_stalls,
};
