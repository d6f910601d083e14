/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of intervals of time, exactly. */
#ifndef PLUMB_MODEL_INTERVALS_H
#define PLUMB_MODEL_INTERVALS_H

#include <stdint.h>

struct plumb_interval_ns {
	int64_t start, end;
};

/* Sorts the intervals at ITEMS and joins those that overlap or touch. *COUNT becomes their new
 * number. Intervals that end before they start are dropped. Returns the length of the union. */
int64_t plumb_intervals_merge(struct plumb_interval_ns *items, uint32_t *count);

/* How long both of two merged sets last at once. */
int64_t plumb_intervals_common(const struct plumb_interval_ns *a, uint32_t a_count,
                               const struct plumb_interval_ns *b, uint32_t b_count);

#endif
