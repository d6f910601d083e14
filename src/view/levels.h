/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb levels` measured, from the profile that holds it: the levels, and contexts with their
 * time measured and corrected.
 */
#ifndef PLUMB_VIEW_LEVELS_H
#define PLUMB_VIEW_LEVELS_H

#include "analyze/levels.h"
#include "base/format.h"
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
	PLUMB_LEVELS_SHOWN,   /* layers, then GPU work; TOP of each */
	PLUMB_LEVELS_ORDER,   /* those that seem to cost more than another one, and cost less */
	PLUMB_LEVELS_UNLIKE,  /* those that are left out, because the runs differ */
};

/* Indexes into level_values, malloced; *COUNT of them. TOP: at most so many, those with the
 * greatest corrected time (0: all). NULL: no memory. */
uint32_t *plumb_levels_select(const struct plumb_profile *profile, enum plumb_levels_rows which,
                              uint32_t top, uint32_t *count);

/* The rows as a table "levels"; and the levels as a table "levels.measured". PLUMB_ESYSTEM: no
 * memory. */
int
plumb_levels_answer(const struct plumb_profile *profile, enum plumb_levels_rows which, uint32_t top,
                    struct plumb_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;
int plumb_levels_measured(const struct plumb_profile *profile, struct plumb_answer *answer,
                          struct plumb_error *error) PLUMB_MUST_CHECK;

struct plumb_levels_query {
	const char *verb;             /* that prints it */
	enum plumb_levels_rows which; /* rows */
	uint32_t top;                 /* of them; 0: all */
	bool measured;                /* CSV and binary columns: the levels instead of rows */
};

/* JSON: {schema, verb, said[], measured[], rows[], order[], left_out[]}; CSV and binary columns:
 * the rows. The errors are those of view.h; PLUMB_EEMPTY: PROFILE has no levels. */
int plumb_view_levels(const struct plumb_profile *profile, const struct plumb_levels_query *query,
                      enum plumb_view_format format, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/* The keys of this but schema and verb, in an object that is open. PLUMB_ESYSTEM. */
int
plumb_levels_json(const struct plumb_profile *profile, enum plumb_levels_rows which, uint32_t top,
                  struct plumb_json *json, struct plumb_error *error) PLUMB_MUST_CHECK;

/* ---- in words: levels_words.c. What is malloced may be NULL: no memory ---- */

/* The time of M, how sure it is, and how it is bounded; malloced. */
char *plumb_levels_program(const struct plumb_profile *profile);
/* What has to be known about it; NULL: nothing. */
const char *plumb_levels_note(const struct plumb_profile *profile);
/* What the level of ROW adds; malloced. */
char *plumb_levels_added(const struct plumb_profile *profile, const struct plumb_level_row *row);
/* What VALUE's context passes, which is known; malloced. */
char *
plumb_levels_passes(const struct plumb_profile *profile, const struct plumb_level_value *value);
/* What is recorded at the level of ROW. */
const char *plumb_levels_sees(const struct plumb_level_row *row);
/* "an iteration" or "the run": what times are of. */
const char *plumb_levels_unit(const struct plumb_profile *profile);

/* "9.31 ms to 9.52 ms" into TEXT, which has PLUMB_LEVELS_INTERVAL bytes; a dash: not known. */
#define PLUMB_LEVELS_INTERVAL (2 * PLUMB_FORMAT_SIZE)
const char *plumb_levels_interval(char *text, int64_t low, int64_t high);
/* "forward  net.py:10", "0 (Linear)", "aten::mm"; malloced. */
char *plumb_levels_name(const struct plumb_profile *profile, uint32_t context);

/* ---- numbers ---- */

/* Values are of all iterations of the loop: NS for one. */
int64_t plumb_levels_per_step(const struct plumb_profile *profile, int64_t ns);
/* The corrected time that a row shows: of GPU work its own. */
int64_t plumb_levels_time_of(const struct plumb_level_value *value);
/* What shares are of: the greatest corrected host time, or all GPU work. */
double plumb_levels_whole(const struct plumb_profile *profile, bool host);

#endif
