/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slices for people that a time line draws around and beside what was recorded. Private to export/.
 *
 * A profile's spans are operators, ranges, driver calls and GPU work. Their call paths also name
 * Python frames and modules, which have no times of their own: such a frame is drawn from the first
 * to the last span under it that no other frame interrupts. Samples of CPU time are drawn likewise,
 * each for the time that it stands for.
 */
#ifndef PLUMB_EXPORT_STACKS_H
#define PLUMB_EXPORT_STACKS_H

#include "base/vec.h"
#include "model/profile.h"

/* The `bytes` of a slice that is drawn and was not recorded. */
#define PLUMB_STACKS_DRAWN UINT64_MAX

struct plumb_stacks {
	PLUMB_VEC(struct plumb_span) slices; /* by track, start, the longer first */
};

/* The Python frames and modules around SPANS, which are by track and start. False: memory is out;
 * plumb_stacks_free follows in either case. */
bool plumb_stacks_of_spans(struct plumb_stacks *stacks, const struct plumb_profile *profile,
                           const struct plumb_span *spans, uint32_t count);
/* The frames of PROFILE's samples of CPU time. */
bool plumb_stacks_of_samples(struct plumb_stacks *stacks, const struct plumb_profile *profile);
void plumb_stacks_free(struct plumb_stacks *stacks);

#endif
