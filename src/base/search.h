/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Binary search in what is in order.
 *
 *	// The first that begins later; count: none.
 *	uint32_t at = plumb_search(i, count, items[i].start_ns <= time);
 */
#ifndef PLUMB_BASE_SEARCH_H
#define PLUMB_BASE_SEARCH_H

#include <stdint.h>

/* Finds the first of COUNT places where BEFORE, an expression in INDEX, is false. BEFORE must be
 * false for all places after it. */
#define plumb_search(index, count, before)                                                         \
	({                                                                                         \
		uint32_t low_ = 0, high_ = (count);                                                \
		while (low_ < high_) {                                                             \
			uint32_t index = low_ + (high_ - low_) / 2;                                \
			if (before)                                                                \
				low_ = index + 1;                                                  \
			else                                                                       \
				high_ = index;                                                     \
		}                                                                                  \
		low_;                                                                              \
	})

#endif
