/* SPDX-License-Identifier: Apache-2.0 */
/* What windows_take.c and windows_take_variants.c share: spans added up by context, track and
 * window. */
#ifndef PLUMB_ANALYZE_WINDOWS_TAKE_H
#define PLUMB_ANALYZE_WINDOWS_TAKE_H

#include "analyze/windows_private.h"

/* Spans of a context and track in a window. */
struct plumb_take_cell {
	uint32_t window, next;  /* of the same group, or PLUMB_NONE */
	uint32_t ones, several; /* calls that started one piece of work, or several */
	struct plumb_stat length;
	struct plumb_stat
		other; /* own time of an operator or a range; bytes of copies that say it */
};

/* All with the same context, track and ends. */
struct plumb_take_group {
	uint32_t context, track;
	struct plumb_ends ends;
	uint32_t cells;
};

struct plumb_taking {
	struct plumb_profile *profile;
	struct plumb_windows_cuts *cuts;
	struct plumb_take_group *groups; /* by context, then track, then ends */
	uint32_t group_count;
	uint32_t *first; /* by context, and one more */
	PLUMB_VEC(struct plumb_take_cell) cells;
	uint32_t *variant_windows; /* by variant: where all of it is, or PLUMB_NONE */
	uint32_t *works;           /* by call in `launches`: how much it started */
};

/* Those of CONTEXT and TRACK, or NULL. */
struct plumb_take_group *plumb_take_find(const struct plumb_taking *taking, uint32_t context,
                                         uint32_t track, struct plumb_ends ends);
/* Adds the rows of variants. False: no memory. */
bool plumb_take_variants(struct plumb_taking *taking);

#endif
