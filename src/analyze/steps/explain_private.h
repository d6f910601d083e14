/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of explaining share: explain.c compares, _rows.c joins rows and tells causes,
 * _words.c writes. */
#ifndef PLUMB_ANALYZE_STEPS_EXPLAIN_PRIVATE_H
#define PLUMB_ANALYZE_STEPS_EXPLAIN_PRIVATE_H

#include "analyze/steps/explain.h"

/* Of one key: in the iteration, and on the median of the others. */
struct plumb_usual {
	int64_t ns, usual_ns;
	int64_t count, usual_count;
	int64_t bytes, usual_bytes; /* PLUMB_UNKNOWN */
};

struct plumb_comparison {
	struct plumb_moments *moments;
	const struct plumb_iteration_level *level;
	uint32_t number;
	int64_t rank;
	const struct plumb_explain_peer *peers;
	uint32_t peer_count;
	struct plumb_usual *critical; /* by key: of the iteration's own time */
	struct plumb_usual *host;     /* by key: of the launching thread, hidden or not */
	uint32_t keys;
	struct plumb_explained *told;
};

/* Adds a row, without its text; NULL: no memory. */
struct plumb_difference *plumb_explain_row(struct plumb_comparison *comparison, uint32_t cause,
                                           uint32_t key, const struct plumb_usual *usual);

/* Rows from what differs. */
int plumb_explain_rows(struct plumb_comparison *comparison) PLUMB_MUST_CHECK;

/* The rank that came last to the iteration's collectives; *LATE_NS is by how much, *REASON what it
 * did (malloced, or NULL). PLUMB_UNKNOWN: this one, or not known. */
int64_t plumb_explain_late(struct plumb_comparison *comparison, int64_t *late_ns, char **reason);

/* How many times the blocks that the kernels of the iteration have against what is usual; 0 not
 * known. */
double plumb_explain_grid(const struct plumb_comparison *comparison);

/* The text of a row, malloced; fills in the rank. NULL: no memory. */
char *plumb_explain_words(struct plumb_comparison *comparison, struct plumb_difference *row);

#endif
