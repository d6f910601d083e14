/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts a run into a few parts, each of which is as even as possible: start-up, training,
 * evaluation. Each look adds a part. When there are too many, the two neighbours that differ least
 * become one. How much they differ is Ward's criterion: what the squared error grows by if both are
 * described by one mean. So a long part keeps its boundaries, and a short one that differs little
 * loses them.
 */
#ifndef PLUMB_WATCH_SEGMENTS_H
#define PLUMB_WATCH_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "region/parts.h"

/* Zero it, set `most` (2 to PLUMB_PARTS_MOST), and free it at the end. */
struct plumb_segments {
	uint32_t most;
	uint32_t count;
	/* In `record` they have the number of the value, ascending. One more for a new part. */
	struct plumb_part items[PLUMB_PARTS_MOST + 1];
	double costs[PLUMB_PARTS_MOST + 1]; /* of making I and I + 1 one */
	size_t bytes;                       /* of values and devices */
};

/* Is the sum of the value of this NUMBER a time, of which the criterion is made? */
typedef bool plumb_segments_timed(const void *data, uint32_t number);

/* Takes PART, which begins where the last one ended; its arrays belong to SEGMENTS then. False: no
 * memory, and PART stays the caller's. */
bool plumb_segments_add(struct plumb_segments *segments, const struct plumb_part *part,
                        plumb_segments_timed *timed, const void *data);
/* Makes two parts one, to save memory. False: there is only one, or no memory for it. */
bool plumb_segments_merge(struct plumb_segments *segments, plumb_segments_timed *timed,
                          const void *data);
void plumb_segments_free(struct plumb_segments *segments);

#endif
