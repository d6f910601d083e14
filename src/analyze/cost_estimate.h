/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What recording costs a step of the main loop, as far as one recorded run can tell: an estimate.
 * It adds plumb's own time on the program's threads, which the collector measures, and what
 * PyTorch, CUPTI and the driver do for plumb, which was measured once (cost_estimate.c has the
 * rates). Only `plumb run --measure-cost` knows the cost.
 */
#ifndef PLUMB_ANALYZE_COST_ESTIMATE_H
#define PLUMB_ANALYZE_COST_ESTIMATE_H

#include "model/profile.h"

struct plumb_cost_estimate {
	bool is_known;
	const char *why;                        /* it is not known */
	uint32_t process;                       /* whose loop: that of the lowest rank */
	int64_t steps;                          /* of the loop */
	double step_ns;                         /* as recorded */
	double cost_ns;                         /* of it */
	double own_ns, framework_ns, driver_ns; /* what the host does for plumb, a step */
	double gpu_ns;                          /* by how much the GPU's own work becomes slower */
	bool is_hidden; /* the host does its part while the GPU works: the step takes no longer */
};

/* PROFILE is of the whole run. PLUMB_ESYSTEM: no memory. */
int
plumb_cost_estimate_find(const struct plumb_profile *profile, struct plumb_cost_estimate *estimate,
                         struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
