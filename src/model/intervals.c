/* SPDX-License-Identifier: Apache-2.0 */
#include "model/intervals.h"

#include <stdbool.h>
#include <stdlib.h>

static int
by_start(const void *x, const void *y)
{
	const struct plumb_interval_ns *a = x, *b = y;
	return (a->start > b->start) - (a->start < b->start);
}

int64_t
plumb_intervals_merge(struct plumb_interval_ns *items, uint32_t *count)
{
	uint32_t kept = 0;
	int64_t length = 0;
	bool ordered = true;
	for (uint32_t i = 1; ordered && i < *count; i++)
		ordered = items[i - 1].start <= items[i].start;
	if (!ordered)
		qsort(items, *count, sizeof *items, by_start);
	for (uint32_t i = 0; i < *count; i++) {
		if (items[i].end < items[i].start)
			continue;
		if (!kept || items[i].start > items[kept - 1].end)
			items[kept++] = items[i];
		else if (items[i].end > items[kept - 1].end)
			items[kept - 1].end = items[i].end;
	}
	for (uint32_t i = 0; i < kept; i++)
		length += items[i].end - items[i].start;
	*count = kept;
	return length;
}

int64_t
plumb_intervals_common(const struct plumb_interval_ns *a, uint32_t a_count,
                       const struct plumb_interval_ns *b, uint32_t b_count)
{
	int64_t common = 0;
	for (uint32_t i = 0, k = 0; i < a_count && k < b_count;) {
		int64_t start = a[i].start > b[k].start ? a[i].start : b[k].start;
		int64_t end = a[i].end < b[k].end ? a[i].end : b[k].end;
		if (end > start)
			common += end - start;
		if (a[i].end < b[k].end)
			i++;
		else
			k++;
	}
	return common;
}
