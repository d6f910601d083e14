/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "model/rows.h"
#include "model/window.h"

/* ---- equal rows that follow each other become one ---- */

static bool
join_values(void *into, const void *from)
{
	struct plumb_window_value *a = into;
	const struct plumb_window_value *b = from;
	struct plumb_stat x = { .sum = a->sum, .count = a->count, .m2 = a->m2 };
	struct plumb_stat y = { .sum = b->sum, .count = b->count, .m2 = b->m2 };

	if (a->context != b->context || a->metric != b->metric || a->track != b->track ||
	    a->ends.from != b->ends.from || a->ends.to != b->ends.to || a->window != b->window)
		return false;
	x.mean = (double)x.sum / (double)x.count;
	y.mean = (double)y.sum / (double)y.count;
	plumb_stat_merge(&x, &y);
	a->sum = x.sum;
	a->count = x.count;
	a->m2 = x.m2;
	return true;
}

static int64_t
add_known(int64_t a, int64_t b)
{
	int64_t sum;

	if (a == PLUMB_UNKNOWN || b == PLUMB_UNKNOWN || __builtin_add_overflow(a, b, &sum))
		return PLUMB_UNKNOWN;
	return sum;
}

static bool
join_devices(void *into, const void *from)
{
	struct plumb_window_device *a = into;
	const struct plumb_window_device *b = from;
	int64_t *to = &a->kernels;
	const int64_t *more = &b->kernels;

	if (a->window != b->window || a->device != b->device)
		return false;
	for (; to <= &a->busy_ns; to++, more++)
		*to = add_known(*to, *more);
	return true;
}

static bool
join_stretches(void *into, const void *from)
{
	struct plumb_window_stretch *a = into;
	const struct plumb_window_stretch *b = from;

	if (a->window != b->window || a->end_ns != b->start_ns)
		return false;
	a->end_ns = b->end_ns;
	return true;
}

static bool
join_variants(void *into, const void *from)
{
	struct plumb_variant *a = &((struct plumb_window_variant *)into)->variant;
	const struct plumb_variant *b = &((const struct plumb_window_variant *)from)->variant;

	if (((struct plumb_window_variant *)into)->window !=
	            ((const struct plumb_window_variant *)from)->window ||
	    a->context != b->context || a->track != b->track || a->shapes != b->shapes ||
	    memcmp(a->grid, b->grid, sizeof a->grid) ||
	    memcmp(a->block, b->block, sizeof a->block) || a->registers != b->registers ||
	    a->static_shared != b->static_shared || a->dynamic_shared != b->dynamic_shared ||
	    a->occupancy != b->occupancy)
		return false;
	a->count += b->count;
	a->time = add_known(a->time, b->time);
	return true;
}

/* Gives the rows of a table, whose first member is the window, their new windows, and joins equal
 * ones: any two of a context that are not far apart. */
static int
merge_rows(struct plumb_profile *profile, enum plumb_table_number number, const uint32_t *map,
           bool (*join)(void *into, const void *from))
{
	const struct plumb_row_table *table = &plumb_row_tables[number];
	struct plumb_row_array rows = plumb_row_array_of(profile, table);
	uint32_t used = 0;

	for (uint32_t i = 0; i < rows.count; i++) {
		char *row = rows.items + (size_t)i * table->row_size;
		uint32_t window;
		memcpy(&window, row, sizeof window);
		window = map[window];
		if (window == PLUMB_NONE)
			continue;
		memcpy(row, &window, sizeof window);
		memmove(rows.items + (size_t)used++ * table->row_size, row, table->row_size);
	}
	plumb_row_set_count(profile, table, used);
	if (plumb_row_order(profile, table))
		return PLUMB_ESYSTEM;
	uint32_t kept = 0, group = 0;
	for (uint32_t i = 0; i < used; i++) {
		char *row = rows.items + (size_t)i * table->row_size;
		bool joined = false;
		/* Variants of one context, track and window are in no further order. */
		uint32_t from = number == PLUMB_TABLE_WINDOW_VARIANTS ? group : kept ? kept - 1 : 0;
		if (number == PLUMB_TABLE_WINDOW_VARIANTS && kept) {
			const struct plumb_window_variant
				*a = (const void *)row,
				*b = (const void *)(rows.items + (size_t)group * table->row_size);
			if (a->window != b->window || a->variant.context != b->variant.context ||
			    a->variant.track != b->variant.track)
				from = group = kept;
		}
		for (uint32_t k = from; k < kept && !joined; k++)
			joined = join(rows.items + (size_t)k * table->row_size, row);
		if (!joined)
			memmove(rows.items + (size_t)kept++ * table->row_size, row,
			        table->row_size);
	}
	plumb_row_set_count(profile, table, kept);
	return PLUMB_OK;
}

int
plumb_windows_replace(struct plumb_profile *profile, const struct plumb_window *windows,
                      uint32_t count, const uint32_t *map)
{
	const struct plumb_row_table *table = &plumb_row_tables[PLUMB_TABLE_WINDOWS];
	static const struct {
		enum plumb_table_number number;
		bool (*join)(void *into, const void *from);
	} tables[] = {
		{ PLUMB_TABLE_WINDOW_STRETCHES, join_stretches },
		{ PLUMB_TABLE_WINDOW_VALUES, join_values },
		{ PLUMB_TABLE_WINDOW_VARIANTS, join_variants },
		{ PLUMB_TABLE_WINDOW_DEVICES, join_devices },
	};
	int code = PLUMB_OK;

	for (size_t i = 0; !code && i < sizeof tables / sizeof *tables; i++)
		code = merge_rows(profile, tables[i].number, map, tables[i].join);
	plumb_row_set_count(profile, table, 0);
	if (!code && count && !plumb_row_reserve(profile, table, count))
		code = PLUMB_ESYSTEM;
	if (!code && count) {
		memcpy(profile->windows, windows, count * sizeof *windows);
		plumb_row_set_count(profile, table, count);
	}
	if (code)
		for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
			plumb_row_set_count(profile, &plumb_row_tables[tables[i].number], 0);
	return code;
}
