/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What filled the time that a device waited for the host: the spans of the thread that launched
 * what came next.
 *
 *	struct plumb_filled filled;
 *	if (plumb_filled_find(&moments, level, &limits, &filled) < 0) …
 *	filled.what, filled.all.rows, filled.items[i].rows
 *	plumb_filled_free(&filled);
 */
#ifndef PLUMB_ANALYZE_STEPS_FILLED_H
#define PLUMB_ANALYZE_STEPS_FILLED_H

#include "analyze/iterations.h"
#include "analyze/steps/moments.h"

enum plumb_filled_what {
	PLUMB_FILLED_NOTHING,   /* the device does not wait for the host */
	PLUMB_FILLED_INTERVALS, /* between iterations */
	PLUMB_FILLED_IDLE,      /* when the device had no work, wherever */
	PLUMB_FILLED_UNKNOWN,   /* the profile has no spans of threads */
};

struct plumb_filled_one {
	struct plumb_step_rows rows; /* the greatest first; keys of the moments */
	int64_t ns;                  /* all of them together */
	uint32_t thread;             /* track that launched the first kernel, or PLUMB_NONE */
};

struct plumb_filled {
	uint32_t what; /* enum plumb_filled_what */
	struct plumb_filled_one all;
	struct plumb_filled_one *items; /* by iteration */
	uint32_t count;
};

/* LIMITS are those that LEVEL was judged by. For plumb_filled_free in any case. PLUMB_ESYSTEM:
 * memory is out. */
int plumb_filled_find(struct plumb_moments *line, const struct plumb_iteration_level *level,
                      const struct plumb_iteration_limits *limits,
                      struct plumb_filled *filled) PLUMB_MUST_CHECK;
void plumb_filled_free(struct plumb_filled *filled);

#endif
