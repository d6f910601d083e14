/* SPDX-License-Identifier: Apache-2.0 */
/* A window's path by what is on it: which frame, called from which line of the person's own. */
#ifndef PLUMB_ANALYZE_PATH_ROWS_H
#define PLUMB_ANALYZE_PATH_ROWS_H

#include "analyze/path/path.h"

struct plumb_path_row {
	uint32_t kind;  /* enum plumb_path_kind: host, kernel, copy or communication */
	uint32_t frame; /* PLUMB_NONE: of a thread, between two spans */
	uint32_t user;  /* frame of the innermost own code around it; PLUMB_NONE */
	int64_t ns;     /* on the path */
	/* Of a thread between two spans: the frame that most CPU time was sampled in there, and own
	 * code around it; PLUMB_NONE: none was, though UNMET it computed there, as the next sample
	 * tells. */
	uint32_t sampled, sampled_user;
	bool unmet;
};

static inline bool
plumb_path_row_between(const struct plumb_path_row *row)
{
	return row->kind == PLUMB_PATH_HOST && row->frame == PLUMB_NONE;
}

/* The MOST longest rows into ROWS, longest first; returns how many, or PLUMB_ESYSTEM. USER_OF, by
 * context, is from plumb_user_contexts (analyze/group.h). Linear in the path. */
int plumb_path_rows(const struct plumb_path_window *window, const uint32_t *user_of,
                    struct plumb_path_row *rows, int most);

/* CONTEXTS (by context) become 1 for those of ROW, which has a frame, on the path or not; else
 * 0. */
void plumb_path_row_contexts(const struct plumb_profile *profile, const uint32_t *user_of,
                             const struct plumb_path_row *row, unsigned char *contexts);

#endif
