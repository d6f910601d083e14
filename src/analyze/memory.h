/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds memory: for each device and process the lines of the user's own code and the operators
 * that they called, with what these held at the peak, allocated and freed.
 *
 *	struct plumb_memory_rows rows;
 *	if (plumb_memory_rows_make(profile, user, &rows) < 0) …   // no memory
 *	… rows.items[i].held.sum …
 *	plumb_memory_rows_free(&rows);
 */
#ifndef PLUMB_ANALYZE_MEMORY_H
#define PLUMB_ANALYZE_MEMORY_H

#include "model/profile.h"

struct plumb_memory_row {
	uint32_t memory; /* index of the profile's memory: device and process */
	uint32_t user;   /* frame of the innermost line of the user's own code, or PLUMB_NONE */
	/* Frame of the operator that this line called; PLUMB_NONE: none. Backward work has the line
	 * of the forward operator and the operator that does the work. */
	uint32_t op;
	bool backward; /* or gradient accumulation */
	struct plumb_stat held, peak, allocated, freed;
};

struct plumb_memory_rows {
	struct plumb_memory_row *items; /* in the order of contexts */
	uint32_t count;
};

/* USER tells for each frame whether it is the person's own code. Negative: no memory. */
int plumb_memory_rows_make(const struct plumb_profile *profile, const unsigned char *user,
                           struct plumb_memory_rows *rows);
void plumb_memory_rows_free(struct plumb_memory_rows *rows);

/* METRIC (mem.held, mem.peak, mem.alloc or mem.free) of a row; NULL for any other. */
const struct plumb_stat *plumb_memory_row_stat(const struct plumb_memory_row *row, uint32_t metric);

/* Bytes that were still live at the end. */
int64_t plumb_memory_row_live(const struct plumb_memory_row *row);

#endif
