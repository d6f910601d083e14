/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory over time, and who holds it: at the peak of a device's memory, and at the end.
 *
 *	struct plumb_memory_query query = { .table = PLUMB_MEMORY_HOLDERS, .by = PLUMB_BY_MODULE };
 *	struct plumb_answer holders;
 *	if (plumb_memory_answer(&profile, &query, &holders, &error) < 0) …
 *
 * A memory is what a framework's allocators handed out of a device in one process; these are
 * numbered by their place in the profile. After them come those that the driver handed out: who
 * holds these is not known. Times count
 * from the start of the run, as those of timelines do. Of several hosts they count from the start
 * of the first process, by the time of day.
 */
#ifndef PLUMB_VIEW_MEMORY_H
#define PLUMB_VIEW_MEMORY_H

#include "analyze/answer.h"
#include "analyze/group.h"
#include "model/profile.h"

enum plumb_memory_table {
	PLUMB_MEMORY_DEVICES, /* memory.devices: each memory, its peak and what lives at its end */
	PLUMB_MEMORY_SERIES,  /* memory.series: what was live over time */
	PLUMB_MEMORY_HOLDERS, /* memory.holders: by line, operator or module */
	PLUMB_MEMORY_TABLES
};

struct plumb_memory_query {
	enum plumb_memory_table table;
	bool one;        /* only that MEMORY; else all, one after the other */
	uint32_t memory; /* its number */
	/* Of holders: PLUMB_BY_OPERATOR, PLUMB_BY_MODULE, or PLUMB_BY_USER_LINE, which all others
	 * mean. */
	enum plumb_group_by by;
	uint32_t top;          /* of holders: so many of each memory, those with the most; 0: all */
	const char *user_code; /* the rule that tells your code, or NULL */
};

/* How many memories PROFILE has. */
uint32_t plumb_memories_count(const struct plumb_profile *profile);

/* PLUMB_EEMPTY: no allocations were recorded. PLUMB_EUSAGE: there is no such memory, all of too
 * many are asked for, or a broken rule. A profile may have no series: then that table has no
 * rows. */
int plumb_memory_answer(const struct plumb_profile *profile, const struct plumb_memory_query *query,
                        struct plumb_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
