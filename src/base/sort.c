/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define DIGIT_BITS 11
#define DIGIT_VALUES (1u << DIGIT_BITS)

static bool
is_sorted(const struct plumb_sort_item *items, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++)
		if (items[i - 1].key > items[i].key)
			return false;
	return true;
}

/* Radix sort, least digit first; digits that are equal in all keys cost one count. */
void
plumb_sort(struct plumb_sort_item *items, struct plumb_sort_item *spare, uint32_t count)
{
	if (is_sorted(items, count))
		return;
	struct plumb_sort_item *from = items, *to = spare;
	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		uint32_t starts[DIGIT_VALUES] = { 0 };
		for (uint32_t i = 0; i < count; i++)
			starts[from[i].key >> shift & (DIGIT_VALUES - 1)]++;
		if (starts[from[0].key >> shift & (DIGIT_VALUES - 1)] == count)
			continue;
		uint32_t next = 0;
		for (uint32_t d = 0; d < DIGIT_VALUES; d++) {
			uint32_t here = starts[d];
			starts[d] = next;
			next += here;
		}
		for (uint32_t i = 0; i < count; i++)
			to[starts[from[i].key >> shift & (DIGIT_VALUES - 1)]++] = from[i];
		struct plumb_sort_item *swap = from;
		from = to;
		to = swap;
	}
	if (from != items)
		memcpy(items, from, (size_t)count * sizeof *items);
}

/* Row I becomes the row ITEMS[I].index, along each cycle of rows. SPARE has room for one row. */
static void
permute_rows(char *rows, size_t size, struct plumb_sort_item *items, uint32_t count, void *spare)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = i, from = items[i].index;

		if (from == i)
			continue;
		memcpy(spare, rows + i * size, size);
		while (from != i) {
			memcpy(rows + at * size, rows + from * size, size);
			items[at].index = at;
			at = from;
			from = items[at].index;
		}
		memcpy(rows + at * size, spare, size);
		items[at].index = at;
	}
}

/* Does row B, which comes after A, stay there? */
static bool
rows_stay(const void *a, const void *b,
          uint64_t (*key)(const void *row, int which, const void *data), int keys, const void *data)
{
	for (int which = 0; which < keys; which++) {
		uint64_t x = key(a, which, data), y = key(b, which, data);

		if (x != y)
			return x < y;
	}
	return true;
}

int
plumb_sort_rows(void *rows, uint32_t count, size_t size,
                uint64_t (*key)(const void *row, int which, const void *data), int keys,
                const void *data)
{
	const char *old = rows;
	uint32_t sorted = 1;
	while (sorted < count &&
	       rows_stay(old + (sorted - 1) * size, old + sorted * size, key, keys, data))
		sorted++;
	if (sorted >= count)
		return PLUMB_OK;
	struct plumb_sort_item *items = malloc(2 * (size_t)count * sizeof *items);
	void *spare = malloc(size);
	if (!items || !spare) {
		free(items);
		free(spare);
		return PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; i < count; i++)
		items[i].index = i;
	for (int which = keys; which-- > 0;) {
		for (uint32_t i = 0; i < count; i++)
			items[i].key = key(old + items[i].index * size, which, data);
		plumb_sort(items, items + count, count);
	}
	permute_rows(rows, size, items, count, spare);
	free(items);
	free(spare);
	return PLUMB_OK;
}

static int
by_number(const void *x, const void *y)
{
	const int64_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* As plumb_sort. The result is in NUMBERS. */
static void
sort_by_digits(int64_t *numbers, int64_t *spare, size_t count)
{
	int64_t *from = numbers, *to = spare;

	for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
		size_t starts[DIGIT_VALUES] = { 0 }, next = 0;
		for (size_t i = 0; i < count; i++)
			starts[plumb_sort_signed(from[i]) >> shift & (DIGIT_VALUES - 1)]++;
		if (starts[plumb_sort_signed(from[0]) >> shift & (DIGIT_VALUES - 1)] == count)
			continue;
		for (uint32_t d = 0; d < DIGIT_VALUES; d++) {
			size_t here = starts[d];
			starts[d] = next;
			next += here;
		}
		for (size_t i = 0; i < count; i++)
			to[starts[plumb_sort_signed(from[i]) >> shift & (DIGIT_VALUES - 1)]++] =
				from[i];
		int64_t *swap = from;
		from = to;
		to = swap;
	}
	if (from != numbers)
		memcpy(numbers, from, count * sizeof *numbers);
}

void
plumb_sort_numbers(int64_t *numbers, size_t count)
{
	int64_t *spare;
	size_t sorted = 1;

	while (sorted < count && numbers[sorted - 1] <= numbers[sorted])
		sorted++;
	if (sorted >= count)
		return;
	/* Below that, counting digits takes longer. */
	spare = count < DIGIT_VALUES ? NULL : malloc(count * sizeof *spare);
	if (spare)
		sort_by_digits(numbers, spare, count);
	else
		qsort(numbers, count, sizeof *numbers, by_number);
	free(spare);
}
