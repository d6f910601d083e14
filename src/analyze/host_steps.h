/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a program without GPU work, which are its iterations: those that it marks with
 * ranges of PyTorch's profiler (ProfilerStep); else the main loop on the thread that does most
 * (iterations.h); else ranges of an optimizer (Optimizer.step).
 */
#ifndef PLUMB_ANALYZE_HOST_STEPS_H
#define PLUMB_ANALYZE_HOST_STEPS_H

#include "model/profile.h"

struct plumb_host_steps {
	double count;   /* steps; an empty one does not count. NAN: there are none */
	char name[80];  /* of the marker; empty: the order shows them, or there are none */
	uint32_t track; /* the thread whose single steps are known, or PLUMB_NONE */
	int64_t *start; /* when each of these begins, ascending */
	uint32_t starts;
};

/* Is CONTEXT a marker? 2: a step as a framework's profiler marks it, 1: one of an optimizer, 0: no
 * marker. */
int plumb_host_steps_marker(const struct plumb_profile *profile, uint32_t context);

/* The marked ones alone, also of a program with GPU work. Call plumb_host_steps_free even after an
 * error. False: no memory. */
bool plumb_host_steps_marked(const struct plumb_profile *profile, struct plumb_host_steps *steps);
/* Without GPU work the loop, too. Likewise. */
bool plumb_host_steps_find(const struct plumb_profile *profile, struct plumb_host_steps *steps);
void plumb_host_steps_free(struct plumb_host_steps *steps);

#endif
