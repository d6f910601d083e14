/* SPDX-License-Identifier: Apache-2.0 */
/* What group.c (the rows), group_values.c (their values) and group_user.c (your own line of each)
 * share. */
#ifndef PLUMB_ANALYZE_GROUP_PRIVATE_H
#define PLUMB_ANALYZE_GROUP_PRIVATE_H

#include "analyze/group.h"
#include "base/vec.h"

struct plumb_grouping {
	const struct plumb_profile *profile;
	enum plumb_group_by by;
	PLUMB_VEC(struct plumb_group_row) rows;
	uint32_t *owner; /* by context: the row of the innermost frame of the kind */
	uint32_t *entry; /* by context: its row, if no frame further out has the same row */
	uint32_t *place; /* by track: its row, if rows say where it happened; else NULL */
	uint32_t *row_of_variant;
	bool native_lines; /* no Python: lines are those of the user's native functions */
	unsigned char *below_kernels; /* by frame: it is below a kernel; or NULL */
	bool places;                  /* rows of plumb_grouping_places */
	/* The inclusive values that were asked for last, by context: one report asks several times.
	 * It is not part of what the grouping is, so it changes in constant ones, too. */
	struct plumb_group_whole {
		uint32_t metric; /* 0: none */
		struct plumb_stat *stats;
	} *whole;
};

/* The inclusive values of METRIC by context, until the next call; NULL: no memory. */
const struct plumb_stat *plumb_grouping_whole(const struct plumb_grouping *g, uint32_t metric);

/* Rows do not lie in each other, so inclusive and exclusive are the same. */
static inline bool
plumb_grouping_is_flat(const struct plumb_grouping *g)
{
	return g->place || g->places || g->by == PLUMB_BY_PHASE || g->by == PLUMB_BY_SHAPE;
}

/* The row of VALUE in a grouping with places by track, or PLUMB_NONE. */
static inline uint32_t
plumb_grouping_place(const struct plumb_grouping *g, const struct plumb_value *value)
{
	return value->track < g->profile->tracks_count ? g->place[value->track] : PLUMB_NONE;
}

#endif
