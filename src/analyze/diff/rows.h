/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of all runs: what of one run is what of another. A row has a number, which is the same
 * in every run; a call path's is that of its last frame under the number of its parent.
 */
#ifndef PLUMB_ANALYZE_DIFF_ROWS_H
#define PLUMB_ANALYZE_DIFF_ROWS_H

#include "analyze/diff/diff_private.h"
#include "base/map.h"
#include "base/pool.h"

struct diff_key {
	uint32_t parent; /* key, PLUMB_NONE: the root or no call path */
	char *text;
	/* As the first run that has it says. */
	const char *name, *kind, *file;
	uint32_t line, after_line;
	bool backward;
};

struct diff_keys {
	PLUMB_VEC(struct diff_key) items;
	struct plumb_map map;
	struct plumb_pool *pool;
};

/* The rows of a run. */
struct diff_rows {
	uint32_t *key; /* by row of the grouping, or by context */
	uint32_t count;
	struct plumb_grouping *grouping; /* NULL: rows are contexts */
	uint32_t *owner;                 /* by context: its row; NULL: not known */
};

/* Numbers the rows of RUN and adds to KEYS those that are new. False: no memory. */
bool diff_rows_make(const struct plumb_diff *diff, uint32_t run, struct diff_keys *keys,
                    struct diff_rows *rows);
void diff_rows_free(struct diff_rows *rows);

/* A copy of TEXT in the keys' pool; NULL: no memory. */
char *diff_keys_text(struct diff_keys *keys, const char *text);

#endif
