/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks side by side: what the GPU of each does, how long its steps take, and which rank waits for
 * which in collectives.
 *
 *	struct plumb_rank_rows rows;
 *	if (plumb_rank_rows_make(&profile, &rows, &error) < 0) …
 *	rows.items[r].sums.hidden_ns …
 *	plumb_rank_rows_free(&rows);
 *
 * All rows are of the same range of time, so they can be held against each other: that of the loop
 * if most collectives are in it. Its parts and waits are those of the findings about late ranks.
 */
#ifndef PLUMB_VIEW_RANK_ROWS_H
#define PLUMB_VIEW_RANK_ROWS_H

#include "analyze/answer.h"
#include "analyze/diff/spread.h"
#include "analyze/rank_waits.h"

/* What the rows are of. */
enum plumb_rank_rows_of {
	PLUMB_RANK_ROWS_LOOP,
	PLUMB_RANK_ROWS_COLLECTIVES, /* from the first collective, which waits for start-up */
	PLUMB_RANK_ROWS_WORK,        /* from the first to the last GPU work */
	PLUMB_RANK_ROWS_NONE,        /* there is no GPU work: only `op_time_ns` is known */
};

/* A device of a process, or a rank without GPU work. */
struct plumb_rank_row {
	int64_t rank, pid, device; /* the device's ordinal; PLUMB_UNKNOWN */
	bool has_gpu;
	struct plumb_rank_sums sums;
	int64_t op_time_ns;         /* in operators, of all threads of the rank, of the whole run */
	uint32_t steps;             /* of its own loop in the range */
	struct plumb_estimate step; /* its mean time, ns */
	uint32_t collectives;       /* in which another rank took part */
	/* In collectives, but for pairs that send and receive. Unknown without collectives. */
	int64_t caused_ns; /* what all others waited for it */
	int64_t times;     /* how often that was notable */
};

/* Row RANK waits for row LAST in one operation. */
struct plumb_rank_wait_row {
	uint32_t rank, last;
	const char *operation;
	bool pair; /* they send and receive: waiting is part of how pipelines work */
	int64_t times, ns, most_ns;
};

struct plumb_rank_rows {
	enum plumb_rank_rows_of of;
	int64_t from_ns, to_ns;
	int64_t steps;                /* of the loop; PLUMB_UNKNOWN */
	bool newest;                  /* of the newest GPU work, which need not be all */
	struct plumb_rank_row *items; /* by rank, then process and device */
	uint32_t count;
	struct plumb_rank_wait_row *waits; /* the longest first */
	uint32_t wait_count;
	struct plumb_rank_waits found;
};

/* For plumb_rank_rows_free in any case. PLUMB_EEMPTY: the profile has not several ranks.
 * PLUMB_ESYSTEM: no memory. */
int plumb_rank_rows_make(const struct plumb_profile *profile, struct plumb_rank_rows *rows,
                         struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_rank_rows_free(struct plumb_rank_rows *rows);

/* Has PROFILE several ranks? */
bool plumb_rank_rows_has(const struct plumb_profile *profile);

#endif
