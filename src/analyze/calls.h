/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a frame itself was entered, and how long each time took. What the operators inside it
 * took does not count.
 *
 *	struct plumb_calls *calls = calloc(contexts, sizeof *calls);
 *	plumb_calls_of_contexts(profile, calls);
 *	plumb_calls_of_rows(grouping, profile, calls, rows);
 *
 * plumb records entries of operators, ranges, modules and kernels. For other frames, and for rows
 * that are no frames (phases, threads), the number of entries is unknown.
 */
#ifndef PLUMB_ANALYZE_CALLS_H
#define PLUMB_ANALYZE_CALLS_H

#include "analyze/group.h"

struct plumb_calls {
	bool known;
	uint64_t count;
	struct plumb_stat each; /* from entry to exit; count 0: not known */
	struct plumb_stat own;  /* of op.time, what was observed at the frame itself */
};

/* CALLS: one for each context. */
void plumb_calls_of_contexts(const struct plumb_profile *profile, struct plumb_calls *calls);

/* Adds up the contexts whose own frame is a row's. ROWS: one for each row of GROUPING. */
void plumb_calls_of_rows(const struct plumb_grouping *grouping, const struct plumb_profile *profile,
                         struct plumb_calls *rows);

/*
 * STAT is a row's op.time, its INCLUSIVE part or its own, with one observation for each operator in
 * the row. If the row's entries are known, this turns STAT into their count and their mean. False:
 * the minimum and maximum of an entry are unknown.
 */
bool plumb_calls_apply(const struct plumb_calls *calls, bool inclusive, struct plumb_stat *stat);

#endif
