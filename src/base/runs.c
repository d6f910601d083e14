/* SPDX-License-Identifier: Apache-2.0 */
#include "base/runs.h"

#include "base/error.h"
#include "base/search.h"
#include "base/vec.h"

struct sort {
	char *rows;
	size_t size;
	bool (*swapped)(const void *a, const void *b, const void *data);
	const void *data;
	char *spare;
	size_t spare_bytes;
};

static inline char *
row_at(const struct sort *sort, uint32_t at)
{
	return sort->rows + at * sort->size;
}

static inline bool
is_swapped(const struct sort *sort, const void *a, const void *b)
{
	return sort->swapped(a, b, sort->data);
}

/* How many of the rows from AT to END stay before KEY, which came after them. */
static uint32_t
stay_before(const struct sort *sort, uint32_t at, uint32_t end, const char *key)
{
	return plumb_search(i, end - at, !is_swapped(sort, row_at(sort, at + i), key));
}

/* How many of the rows from AT to END must move before KEY, which came before them. */
static uint32_t
move_before(const struct sort *sort, uint32_t at, uint32_t end, const char *key)
{
	return plumb_search(i, end - at, is_swapped(sort, key, row_at(sort, at + i)));
}

static bool
make_spare(struct sort *sort, size_t bytes)
{
	if (sort->spare_bytes >= bytes)
		return true;
	char *spare = realloc(sort->spare, bytes);
	if (spare) {
		sort->spare = spare;
		sort->spare_bytes = bytes;
	}
	return spare != NULL;
}

/* Merges the runs [START, MIDDLE) and [MIDDLE, END) into one. */
static int
merge_runs(struct sort *sort, uint32_t start, uint32_t middle, uint32_t end)
{
	size_t size = sort->size;
	/* What already is where it belongs. */
	start += stay_before(sort, start, middle, row_at(sort, middle));
	if (start == middle)
		return 0;
	end = middle + move_before(sort, middle, end, row_at(sort, middle - 1));
	uint32_t left = middle - start, right = end - middle;
	if (!make_spare(sort, (size_t)(left < right ? left : right) * size))
		return PLUMB_ESYSTEM;
	if (left <= right) {
		const char *a = sort->spare, *a_end = sort->spare + left * size;
		const char *b = row_at(sort, middle), *b_end = row_at(sort, end);
		memcpy(sort->spare, row_at(sort, start), left * size);
		for (char *to = row_at(sort, start); a < a_end; to += size) {
			const char **from = b < b_end && is_swapped(sort, a, b) ? &b : &a;
			memcpy(to, *from, size);
			*from += size;
		}
		return 0;
	}
	const char *a = row_at(sort, middle), *b = sort->spare + right * size;
	memcpy(sort->spare, row_at(sort, middle), right * size);
	for (char *to = row_at(sort, end); b > sort->spare;) {
		const char **from =
			a > row_at(sort, start) && is_swapped(sort, a - size, b - size) ? &a : &b;
		to -= size;
		*from -= size;
		memcpy(to, *from, size);
	}
	return 0;
}

int
plumb_runs_sort(void *rows, uint32_t count, size_t size,
                bool (*swapped)(const void *a, const void *b, const void *data), const void *data)
{
	struct sort sort = { rows, size, swapped, data, NULL, 0 };
	PLUMB_VEC(uint32_t) ends = { 0 };
	int code = 0;
	for (uint32_t at = 0; at < count && !code;) {
		uint32_t *end = plumb_vec_add(&ends);
		for (at++;
		     at < count && !is_swapped(&sort, row_at(&sort, at - 1), row_at(&sort, at));
		     at++)
			;
		if (end)
			*end = at;
		else
			code = PLUMB_ESYSTEM;
	}
	/* Neighbours in pairs, until one is left. */
	while (ends.count > 1 && !code) {
		uint32_t kept = 0, start = 0;
		for (uint32_t i = 0; i < ends.count && !code; i += 2) {
			uint32_t last = i + 1 < ends.count ? i + 1 : i;
			if (last > i)
				code = merge_runs(&sort, start, ends.items[i], ends.items[last]);
			start = ends.items[last];
			ends.items[kept++] = start;
		}
		ends.count = kept;
	}
	free(sort.spare);
	plumb_vec_free(&ends);
	return code;
}
