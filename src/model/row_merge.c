/* SPDX-License-Identifier: Apache-2.0 */
#include "model/row_merge.h"

#include <string.h>

#include "base/hash.h"
#include "base/sort.h"
#include "model/rows.h"

static void
merge_value(void *at, const void *row)
{
	struct plumb_value *into = at;
	const struct plumb_value *from = row;
	struct plumb_stat a = {
		into->sum, into->count, into->min, into->max, into->mean, into->m2
	};
	struct plumb_stat b = {
		from->sum, from->count, from->min, from->max, from->mean, from->m2
	};
	plumb_stat_merge(&a, &b);
	into->sum = a.sum;
	into->count = a.count;
	into->min = a.min;
	into->max = a.max;
	into->mean = a.mean;
	into->m2 = a.m2;
}

static void
merge_variant(void *at, const void *row)
{
	struct plumb_variant *into = at;
	const struct plumb_variant *from = row;
	struct plumb_stat a = {
		.sum = into->time, .count = into->count, .min = into->min, .max = into->max
	};
	struct plumb_stat b = {
		.sum = from->time, .count = from->count, .min = from->min, .max = from->max
	};
	plumb_stat_merge(&a, &b);
	if ((!into->first_ns && !into->last_ns) || (!from->first_ns && !from->last_ns)) {
		into->first_ns = into->last_ns = 0;
	} else {
		into->first_ns = from->first_ns < into->first_ns ? from->first_ns : into->first_ns;
		into->last_ns = from->last_ns > into->last_ns ? from->last_ns : into->last_ns;
	}
	into->time = a.sum;
	into->count = a.count;
	into->min = a.min;
	into->max = a.max;
}

static void
merge_ledger(void *at, const void *row)
{
	struct plumb_ledger_row *into = at;
	const struct plumb_ledger_row *from = row;
	if (__builtin_add_overflow(into->count, from->count, &into->count))
		into->count = from->count < 0 ? INT64_MIN + 1 : INT64_MAX;
}

static void
merge_window_value(void *at, const void *row)
{
	struct plumb_window_value *into = at;
	const struct plumb_window_value *from = row;
	struct plumb_stat a = plumb_window_value_stat(into), b = plumb_window_value_stat(from);
	plumb_stat_merge(&a, &b);
	into->sum = a.sum;
	into->count = a.count;
	into->min = a.min;
	into->max = a.max;
	into->m2 = a.m2;
}

static void
merge_window_variant(void *at, const void *row)
{
	merge_variant(&((struct plumb_window_variant *)at)->variant,
	              &((const struct plumb_window_variant *)row)->variant);
}

static void
merge_window_device(void *at, const void *row)
{
	struct plumb_window_device *into = at;
	const struct plumb_window_device *from = row;

	plumb_device_work_add(&into->work, &from->work);
	into->busy_ns = plumb_add_known(into->busy_ns, from->busy_ns);
}

plumb_row_merge_fn *const plumb_row_merges[PLUMB_TABLES] = {
	[PLUMB_TABLE_VALUES] = merge_value,
	[PLUMB_TABLE_VARIANTS] = merge_variant,
	[PLUMB_TABLE_LEDGER] = merge_ledger,
	[PLUMB_TABLE_WINDOW_VALUES] = merge_window_value,
	[PLUMB_TABLE_WINDOW_VARIANTS] = merge_window_variant,
	[PLUMB_TABLE_WINDOW_DEVICES] = merge_window_device,
};

/* ---- all rows of a table ---- */

static uint64_t
hash_of(const void *row, int which, const void *data)
{
	const struct plumb_row_table *table = data;
	uint64_t hash = 0;

	(void)which;
	for (uint32_t c = 0; c < table->columns_count; c++)
		if (table->columns[c].key)
			hash = plumb_hash_mix(hash, plumb_row_key(&table->columns[c], row));
	return hash;
}

static bool
has_same_keys(const struct plumb_row_table *table, const void *a, const void *b)
{
	for (uint32_t c = 0; c < table->columns_count; c++)
		if (table->columns[c].key &&
		    plumb_row_key(&table->columns[c], a) != plumb_row_key(&table->columns[c], b))
			return false;
	return true;
}

int
plumb_row_merge(struct plumb_profile *profile, const struct plumb_row_table *table)
{
	struct plumb_row_array rows = plumb_row_array_of(profile, table);
	plumb_row_merge_fn *merge = plumb_row_merges[table - plumb_row_tables];
	size_t size = table->row_size;
	uint32_t kept = 0, first = 0; /* of those with the same hash */

	if (plumb_sort_rows(rows.items, rows.count, size, hash_of, 1, table) < 0)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < rows.count; i++) {
		char *row = rows.items + i * size;
		uint32_t k;
		if (kept && hash_of(row, 0, table) != hash_of(rows.items + first * size, 0, table))
			first = kept;
		for (k = first; k < kept; k++)
			if (has_same_keys(table, rows.items + k * size, row))
				break;
		if (k == kept)
			memmove(rows.items + kept++ * size, row, size);
		else if (merge)
			merge(rows.items + k * size, row);
	}
	plumb_row_set_count(profile, table, kept);
	return plumb_row_order(profile, table);
}
