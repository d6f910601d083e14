/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps that a program marks on its threads: ranges of PyTorch's profiler (ProfilerStep), else
 * ranges of an optimizer (Optimizer.step). Without GPU work they are the iterations.
 */
#ifndef PLUMB_ANALYZE_HOST_STEPS_H
#define PLUMB_ANALYZE_HOST_STEPS_H

#include "model/profile.h"

struct plumb_host_steps {
	double count;     /* steps; an empty one does not count. NAN: no marker */
	const char *name; /* of the marker; NULL: there is none */
	uint32_t track;   /* the thread whose single steps are known, or PLUMB_NONE */
	int64_t *start;   /* when each of these begins, ascending */
	uint32_t starts;
};

/* Is CONTEXT a marker? 2: a step as a framework's profiler marks it, 1: one of an optimizer, 0: no
 * marker. */
int plumb_host_steps_marker(const struct plumb_profile *profile, uint32_t context);

/* Call plumb_host_steps_free even after an error. False: no memory. */
bool plumb_host_steps_find(const struct plumb_profile *profile, struct plumb_host_steps *steps);
void plumb_host_steps_free(struct plumb_host_steps *steps);

#endif
