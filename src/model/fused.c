/* SPDX-License-Identifier: Apache-2.0 */
#include "model/fused.h"

#include <stdlib.h>

struct plumb_fused_part
plumb_fused_part(const struct plumb_profile *profile, uint32_t origin, const unsigned char *user)
{
	struct plumb_fused_part part = { PLUMB_NONE, PLUMB_NONE };
	uint32_t c = origin;

	if (profile->frames[profile->contexts[c].frame].kind == PLUMB_FRAME_OPERATOR) {
		part.op = profile->contexts[c].frame;
		c = profile->contexts[c].parent;
	}
	/* The stack ends at the compiled region, which is no Python frame. */
	for (; c != PLUMB_NONE && c; c = profile->contexts[c].parent) {
		uint32_t frame = profile->contexts[c].frame;
		if (profile->frames[frame].kind != PLUMB_FRAME_PYTHON)
			break;
		if (part.line == PLUMB_NONE)
			part.line = frame;
		if (user && user[frame]) {
			part.line = frame;
			break;
		}
	}
	return part;
}

uint32_t *
plumb_fused_lines(const struct plumb_profile *profile, const unsigned char *user)
{
	uint32_t *lines = malloc((profile->contexts_count + (size_t)1) * sizeof *lines);

	for (uint32_t c = 0; lines && c < profile->contexts_count; c++)
		lines[c] = PLUMB_NONE;
	for (uint32_t i = 0; lines && i < profile->origins_count; i++) {
		const struct plumb_origin *o = &profile->origins[i];
		uint32_t line, *own = &lines[o->context];
		if (o->reason != PLUMB_ORIGIN_OF_FUSED)
			continue;
		line = plumb_fused_part(profile, o->origin, user).line;
		if (line == PLUMB_NONE || (user && !user[line]))
			continue;
		/* Of one file the first line, whatever order the contexts have. */
		if (*own == PLUMB_NONE ||
		    (profile->frames[line].file == profile->frames[*own].file &&
		     profile->frames[line].line < profile->frames[*own].line))
			*own = line;
	}
	return lines;
}
