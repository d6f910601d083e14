/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Beginnings and ends of slices, which stand in any order in a file: they are paired once all are read, by a
 * stack for each key; of those of one time the first in the file is first. A slice without an end ends with the
 * file's last event, which is also what viewers show.
 *
 *	plumb_pairs_add(&pairs, &(struct plumb_edge){ .key = track, .ns = at, .what = frame, .begins = true });
 *	…
 *	plumb_pairs_close(&pairs, trace, last, take, own);
 *	plumb_pairs_free(&pairs);
 */
#ifndef PLUMB_IMPORT_PAIRS_H
#define PLUMB_IMPORT_PAIRS_H

#include "base/vec.h"
#include "import/trace.h"

struct plumb_edge {
	uint64_t key; /* what pairs: the track, say */
	int64_t ns;
	uint32_t order;       /* in the file; plumb_pairs_add's */
	uint32_t what, place; /* the caller's, of a beginning */
	bool begins;
};

/* Zero it to start. */
struct plumb_pairs {
	PLUMB_VEC(struct plumb_edge) edges;
	bool no_memory;
};

void plumb_pairs_add(struct plumb_pairs *pairs, const struct plumb_edge *edge);
void plumb_pairs_free(struct plumb_pairs *pairs);

/* Each slice, an inner one before the one around it: TAKE gets its beginning, its end and how many of the same
 * key are still open around it. LAST: the end of those without. What has no other half is counted. */
void plumb_pairs_close(struct plumb_pairs *pairs, struct plumb_trace *trace, int64_t last,
                       void (*take)(void *own, const struct plumb_edge *begin, int64_t end,
                                    uint32_t around),
                       void *own);

#endif
