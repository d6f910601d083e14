/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps that a program marks on its threads: ranges of PyTorch's profiler (ProfilerStep), else
 * those of an optimizer (Optimizer.step). They are iterations where there is no GPU work.
 */
#ifndef PLUMB_ANALYZE_HOST_STEPS_H
#define PLUMB_ANALYZE_HOST_STEPS_H

#include "model/profile.h"

struct plumb_host_steps {
	double count;     /* steps; those that hold nothing are none. NAN: no marker */
	const char *name; /* of the marker; NULL: there is none */
	uint32_t track;   /* the thread whose steps are known one by one, or PLUMB_NONE */
	int64_t *start;   /* of each of these, ascending; free with plumb_host_steps_free */
	uint32_t starts;
};

/* For plumb_host_steps_free in any case. False: no memory. */
bool plumb_host_steps_find(const struct plumb_profile *profile, struct plumb_host_steps *steps);
void plumb_host_steps_free(struct plumb_host_steps *steps);

#endif
