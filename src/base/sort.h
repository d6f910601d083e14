/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stable sort of (key, index) pairs in linear time. To sort by several keys, sort by the least
 * important one first.
 */
#ifndef PLUMB_BASE_SORT_H
#define PLUMB_BASE_SORT_H

#include <stddef.h>
#include <stdint.h>

struct plumb_sort_item {
	uint64_t key;
	uint32_t index;
};

/* SPARE is scratch room for COUNT items. The result is in ITEMS. */
void plumb_sort(struct plumb_sort_item *items, struct plumb_sort_item *spare, uint32_t count);

/*
 * Puts COUNT rows of SIZE bytes at ROWS into the order of KEYS keys, number 0 the most important.
 * KEY gives number WHICH of a row. Stable. Rows that are in order cost one look. 0, or
 * PLUMB_ESYSTEM when memory is out; the rows are then as they were.
 */
int plumb_sort_rows(void *rows, uint32_t count, size_t size,
                    uint64_t (*key)(const void *row, int which, const void *data), int keys,
                    const void *data);

/* Puts COUNT numbers into ascending order. */
void plumb_sort_numbers(int64_t *numbers, size_t count);

/* A signed number as a key that keeps the order. */
static inline uint64_t
plumb_sort_signed(int64_t number)
{
	return (uint64_t)number ^ UINT64_C(1) << 63;
}

#endif
