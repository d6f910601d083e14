/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of traffic by parts. */
#include <math.h>

#include "analyze/traffic/traffic.h"

static int64_t
add_bytes(int64_t a, int64_t b)
{
	int64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void
plumb_traffic_sum_add(struct plumb_traffic_sum *into, const struct plumb_traffic_sum *from)
{
	if (into->accesses || into->bytes)
		into->warps = plumb_add_known(into->warps, from->warps);
	else
		into->warps = from->warps;
	into->bytes = add_bytes(into->bytes, from->bytes);
	if (__builtin_add_overflow(into->accesses, from->accesses, &into->accesses))
		into->accesses = UINT64_MAX;
	into->variance += from->variance;
}

double
plumb_traffic_sum_error(const struct plumb_traffic_sum *sum)
{
	double error = sqrt(sum->variance);

	return isfinite(error) ? error : NAN;
}

bool
plumb_traffic_cell_add(plumb_traffic_cells *cells, const uint32_t *part, int parts,
                       const struct plumb_traffic_sum *sum)
{
	struct plumb_traffic_cell *cell = plumb_vec_add(cells);

	if (!cell)
		return false;
	memcpy(cell->part, part, (size_t)parts * sizeof *part);
	cell->sum = *sum;
	return true;
}

static int
compare_parts(const struct plumb_traffic_cell *a, const struct plumb_traffic_cell *b, int parts)
{
	for (int i = 0; i < parts; i++)
		if (a->part[i] != b->part[i])
			return a->part[i] < b->part[i] ? -1 : 1;
	return 0;
}

static int
compare_cells(const void *a, const void *b)
{
	return compare_parts(a, b, PLUMB_TRAFFIC_PARTS);
}

void
plumb_traffic_cells_join(plumb_traffic_cells *cells)
{
	uint32_t kept = 0;

	if (!cells->count)
		return;
	qsort(cells->items, cells->count, sizeof *cells->items, compare_cells);
	for (uint32_t i = 1; i < cells->count; i++)
		if (compare_cells(&cells->items[kept], &cells->items[i]))
			cells->items[++kept] = cells->items[i];
		else
			plumb_traffic_sum_add(&cells->items[kept].sum, &cells->items[i].sum);
	cells->count = kept + 1;
}

static int
compare_sizes(const void *a, const void *b)
{
	const struct plumb_traffic_cell *one = a, *two = b;

	if (one->sum.bytes != two->sum.bytes)
		return one->sum.bytes > two->sum.bytes ? -1 : 1;
	if (one->sum.accesses != two->sum.accesses)
		return one->sum.accesses > two->sum.accesses ? -1 : 1;
	return compare_cells(a, b);
}

void
plumb_traffic_cells_rank(plumb_traffic_cells *cells, int parts)
{
	for (uint32_t first = 0, end; first < cells->count; first = end) {
		for (end = first + 1; end < cells->count; end++)
			if (compare_parts(&cells->items[first], &cells->items[end], parts))
				break;
		qsort(cells->items + first, end - first, sizeof *cells->items, compare_sizes);
	}
}
