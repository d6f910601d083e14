/* SPDX-License-Identifier: Apache-2.0 */
/* What time is told of, in words, and the few rows that are worth telling. */
#ifndef PLUMB_ANALYZE_STEPS_WORDS_H
#define PLUMB_ANALYZE_STEPS_WORDS_H

#include "analyze/steps/moments.h"

/* "aten::mm at train.py:41", "nothing recorded, between train.py:40 and train.py:42". Returns TEXT
 * of SIZE bytes. */
char *plumb_step_name(const struct plumb_moments *line, const struct plumb_step_key *key,
                      char *text, size_t size);

/* The same for the key of a finding: without numbers of layers. */
char *plumb_step_about(const struct plumb_moments *line, const struct plumb_step_key *key,
                       char *text, size_t size);

/* The frame that says where it was: the place, else that of what a sample met; or PLUMB_NONE. */
uint32_t plumb_step_line(const struct plumb_step_key *key);

enum plumb_step_shown_kind {
	PLUMB_SHOWN_KEY,
	PLUMB_SHOWN_GAPS,   /* gaps that are too short to tell each */
	PLUMB_SHOWN_OTHERS, /* the rest */
};
struct plumb_step_shown {
	uint32_t kind; /* enum plumb_step_shown_kind */
	uint32_t key;
	int64_t ns;
	uint32_t count; /* of the row */
};
#define PLUMB_STEP_SHOWN 10

/* Of ROWS (as plumb_step_rows_sum leaves them) at most MOST, and all others as gaps and as the
 * rest; the greatest first, these two last. MOST is at most PLUMB_STEP_SHOWN - 2. Returns how
 * many. */
uint32_t plumb_step_rows_show(const struct plumb_moments *line, const struct plumb_step_rows *rows,
                              uint32_t most, struct plumb_step_shown shown[PLUMB_STEP_SHOWN]);

#endif
