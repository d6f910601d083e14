/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel of compiled code was made from: its origins of the reason `fused`, each an
 * operator, a line of Python, or an operator under the line that it is on.
 */
#ifndef PLUMB_MODEL_FUSED_H
#define PLUMB_MODEL_FUSED_H

#include "model/profile.h"

struct plumb_fused_part {
	uint32_t op;   /* frame of an operator, or PLUMB_NONE */
	uint32_t line; /* frame of a Python line, or PLUMB_NONE */
};

/* The parts that the fused origin ORIGIN (a context) tells. Where USER tells for each frame whether
 * it is the person's own code, the innermost such line of its stack, if it has one; USER may be
 * NULL. */
struct plumb_fused_part
plumb_fused_part(const struct plumb_profile *profile, uint32_t origin, const unsigned char *user);

/* For each context the frame of the first line (in the order of origins) that it was made from,
 * itself only, or PLUMB_NONE; malloced. Only lines that USER tells are the person's own, unless it
 * is NULL. NULL: no memory. */
uint32_t *plumb_fused_lines(const struct plumb_profile *profile, const unsigned char *user);

#endif
