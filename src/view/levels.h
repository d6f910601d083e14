/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb levels` measured, from the profile that holds it: the levels, and contexts with their
 * time measured and corrected.
 */
#ifndef PLUMB_VIEW_LEVELS_H
#define PLUMB_VIEW_LEVELS_H

#include "analyze/levels.h"
#include "view/render.h"

/* Was PROFILE made by `plumb levels`? */
static inline bool
plumb_levels_are_known(const struct plumb_profile *profile)
{
	return profile->levels_count > 0;
}

/* Which contexts are rows. */
enum plumb_levels_rows {
	PLUMB_LEVELS_ALL,  /* all that were measured at their level, in the order of contexts */
	PLUMB_LEVELS_TREE, /* of them, those of host time */
	/* leaf modules, outermost operators, innermost ranges; the greatest first */
	PLUMB_LEVELS_LAYERS,
	PLUMB_LEVELS_KERNELS, /* GPU work, the greatest first */
	PLUMB_LEVELS_ORDER,   /* those that seem to cost more than another one, and cost less */
	PLUMB_LEVELS_UNLIKE,  /* those that are left out, because the runs differ */
};

/* Indexes into level_values, malloced; *COUNT of them. TOP: at most so many, those with the
 * greatest corrected time (0: all). NULL: no memory. */
uint32_t *plumb_levels_select(const struct plumb_profile *profile, enum plumb_levels_rows which,
                              uint32_t top, uint32_t *count);

/* The rows as a table "levels". PLUMB_ESYSTEM: no memory. */
int
plumb_levels_answer(const struct plumb_profile *profile, enum plumb_levels_rows which, uint32_t top,
                    struct plumb_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;

/* JSON: {schema, verb, measured[], rows[], order[], left_out[]}; CSV and binary columns: the rows.
 * VERB is that which prints it. The errors are those of view.h; PLUMB_EEMPTY: PROFILE has no
 * levels. */
int plumb_view_levels(const struct plumb_profile *profile, const char *verb, uint32_t top,
                      enum plumb_view_format format, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/* The keys of this but schema and verb, in an object that is open. PLUMB_ESYSTEM. */
int plumb_levels_json(const struct plumb_profile *profile, uint32_t top, struct plumb_json *json,
                      struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
