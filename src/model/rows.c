/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rows.h"

#include <math.h>
#include <stdlib.h>

#include "base/large.h"
#include "base/sort.h"
#include "base/vec.h"
#include "model/metric.h"
#include "model/order.h"

_Static_assert(offsetof(struct plumb_profile, spans_count) -
                                       offsetof(struct plumb_profile, spans) ==
                               offsetof(struct plumb_row_array, count) &&
                       offsetof(struct plumb_profile, spans_room) -
                                       offsetof(struct plumb_profile, spans) ==
                               offsetof(struct plumb_row_array, room),
               "a PLUMB_COLUMN is a struct plumb_row_array");

struct plumb_row_array
plumb_row_array_of(const struct plumb_profile *profile, const struct plumb_row_table *table)
{
	struct plumb_row_array rows = { (char *)(uintptr_t)profile + table->offset, 1, 1 };
	if (!table->single)
		memcpy(&rows, (const char *)profile + table->offset, sizeof rows);
	return rows;
}

static void
set_rows(struct plumb_profile *profile, const struct plumb_row_table *table,
         const struct plumb_row_array *rows)
{
	if (!table->single)
		memcpy((char *)profile + table->offset, rows, sizeof *rows);
}

void *
plumb_row_reserve(struct plumb_profile *profile, const struct plumb_row_table *table,
                  uint32_t count)
{
	struct plumb_row_array rows = plumb_row_array_of(profile, table);
	uint64_t wanted = (uint64_t)rows.count + count;
	if (wanted > rows.room) {
		char *grown = plumb_vec_grow(rows.items, &rows.room, wanted, table->row_size);
		if (!grown)
			return NULL;
		rows.items = grown;
		set_rows(profile, table, &rows);
	}
	return rows.items + (size_t)rows.count * table->row_size;
}

bool
plumb_row_room(struct plumb_profile *profile, const struct plumb_row_table *table, uint32_t count)
{
	struct plumb_row_array rows = {
		.items = plumb_large((size_t)count * table->row_size),
		.room = count,
	};
	if (rows.items)
		set_rows(profile, table, &rows);
	return rows.items != NULL;
}

void *
plumb_row_add(struct plumb_profile *profile, const struct plumb_row_table *table)
{
	void *row = plumb_row_reserve(profile, table, 1);
	if (!row)
		return NULL;
	plumb_row_set_count(profile, table, plumb_row_array_of(profile, table).count + 1);
	return memset(row, 0, table->row_size);
}

void
plumb_row_set_count(struct plumb_profile *profile, const struct plumb_row_table *table,
                    uint32_t count)
{
	struct plumb_row_array rows = plumb_row_array_of(profile, table);
	rows.count = count;
	set_rows(profile, table, &rows);
}

void
plumb_row_free_all(struct plumb_profile *profile)
{
	for (int t = 0; t < PLUMB_TABLES; t++)
		if (!plumb_row_tables[t].single) {
			free(plumb_row_array_of(profile, &plumb_row_tables[t]).items);
			set_rows(profile, &plumb_row_tables[t], &(struct plumb_row_array){ 0 });
		}
}

/* ---- checks ---- */

static bool
has_metric(const struct plumb_profile *profile, uint32_t number)
{
	if (number < PLUMB_METRIC_USER)
		return number && number < PLUMB_METRIC_COUNT && plumb_metrics[number].name;
	return number - PLUMB_METRIC_USER < profile->user_metrics_count;
}

static bool
is_number_possible(const struct plumb_row_column *column, const char *cell)
{
	struct plumb_blob blob;
	int64_t number;
	double real;
	switch (column->cell) {
	case PLUMB_ROW_AMOUNT:
		memcpy(&number, cell, sizeof number);
		return number >= 0;
	case PLUMB_ROW_BLOB:
		memcpy(&blob, cell, sizeof blob);
		return blob.bytes <= PLUMB_BLOB_MOST && (blob.data || !blob.bytes);
	case PLUMB_ROW_KNOWN:
		memcpy(&real, cell, sizeof real);
		return !isnan(real);
	default:
		return true;
	}
}

static bool
is_end_possible(const struct plumb_row_column *column, const char *row)
{
	int64_t number, from;
	memcpy(&number, row + column->offset, sizeof number);
	memcpy(&from, row + column->limit, sizeof from);
	return number >= from;
}

static bool
is_id_possible(const struct plumb_profile *profile, uint32_t strings,
               const struct plumb_row_column *column, uint32_t id)
{
	switch (column->cell) {
	case PLUMB_ROW_TEXT:
		return id < strings || id == PLUMB_NONE;
	case PLUMB_ROW_WORD:
		return id < column->limit && column->words[id];
	case PLUMB_ROW_METRIC:
		return has_metric(profile, id);
	case PLUMB_ROW_ID_OR_0:
		id--;
		/* fall through */
	case PLUMB_ROW_ID_OR_NONE:
		if (id == PLUMB_NONE)
			return true;
		/* fall through */
	case PLUMB_ROW_ID:
		return id < plumb_row_array_of(profile, &plumb_row_tables[column->limit]).count;
	default:
		return true;
	}
}

const struct plumb_row_column *
plumb_row_fault(const struct plumb_profile *profile, uint32_t strings,
                const struct plumb_row_table *table, const void *row)
{
	for (uint32_t c = 0; c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		uint32_t id;
		if (plumb_row_width(column) != sizeof id) {
			if (!is_number_possible(column, (const char *)row + column->offset) ||
			    (column->cell == PLUMB_ROW_END && !is_end_possible(column, row)))
				return column;
			continue;
		}
		memcpy(&id, (const char *)row + column->offset, sizeof id);
		if (!is_id_possible(profile, strings, column, id))
			return column;
	}
	return NULL;
}

/* Is anything impossible in such a cell? */
static bool
is_checked(const struct plumb_row_column *column)
{
	switch (column->cell) {
	case PLUMB_ROW_INT:
	case PLUMB_ROW_NUMBER:
	case PLUMB_ROW_TIME:
	case PLUMB_ROW_LINK:
	case PLUMB_ROW_COUNT:
	case PLUMB_ROW_REAL:
	case PLUMB_ROW_LINE:
	case PLUMB_ROW_BITS:
		return false;
	default:
		return true;
	}
}

bool
plumb_row_cells_possible(const struct plumb_profile *profile, uint32_t strings,
                         const struct plumb_row_column *column, const char *cells, size_t step,
                         uint32_t count)
{
	bool ids = plumb_row_width(column) == sizeof(uint32_t), possible = true;
	uint32_t below = 0, id, less = column->cell == PLUMB_ROW_ID_OR_0;

	if (!is_checked(column))
		return true;
	/* An id below this needs no other look. */
	if (plumb_row_has_id(column))
		below = plumb_row_array_of(profile, &plumb_row_tables[column->limit]).count;
	for (uint32_t i = 0; possible && i < count; i++, cells += step)
		if (!ids) {
			possible = is_number_possible(column, cells);
		} else {
			memcpy(&id, cells, sizeof id);
			if (id - less >= below)
				possible = is_id_possible(profile, strings, column, id);
		}
	return possible;
}

const struct plumb_row_column *
plumb_row_faults(const struct plumb_profile *profile, uint32_t strings,
                 const struct plumb_row_table *table, const void *rows, uint32_t count)
{
	for (uint32_t c = 0; c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		const char *row = rows;
		bool possible = plumb_row_cells_possible(
			profile, strings, column, row + column->offset, table->row_size, count);
		if (column->cell == PLUMB_ROW_END)
			for (uint32_t i = 0; possible && i < count; i++, row += table->row_size)
				possible = is_end_possible(column, row);
		if (!possible)
			return column;
	}
	return NULL;
}

int
plumb_row_keep_blobs(struct plumb_profile *profile, struct plumb_strtab *strings,
                     const struct plumb_row_table *table, void *row)
{
	for (uint32_t c = 0; c < table->columns_count; c++) {
		struct plumb_blob blob;
		char *field = (char *)row + table->columns[c].offset;
		if (table->columns[c].cell != PLUMB_ROW_BLOB)
			continue;
		memcpy(&blob, field, sizeof blob);
		if (!blob.data)
			continue;
		if (blob.bytes > PLUMB_BLOBS_MOST - profile->blob_bytes)
			return 1;
		char *copy = plumb_strtab_room(strings, blob.bytes + 1);
		if (!copy)
			return PLUMB_ESYSTEM;
		blob.data = memcpy(copy, blob.data, blob.bytes);
		profile->blob_bytes += blob.bytes;
		memcpy(field, &blob, sizeof blob);
	}
	return PLUMB_OK;
}

/* ---- ids of another profile ---- */

bool
plumb_row_map(const struct plumb_row_table *table, void *row, const struct plumb_row_maps *maps)
{
	bool has_metrics = true;
	for (uint32_t c = 0; c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		const struct plumb_row_map *map = NULL;
		char *field = (char *)row + column->offset;
		uint32_t id, user = 0, more = column->cell == PLUMB_ROW_ID_OR_0;
		if (column->cell == PLUMB_ROW_TEXT)
			map = &maps->strings;
		else if (plumb_row_has_id(column))
			map = &maps->tables[column->limit];
		else if (column->cell == PLUMB_ROW_METRIC)
			map = &maps->user_metrics;
		if (!map || !map->ids)
			continue;
		memcpy(&id, field, sizeof id);
		if (column->cell == PLUMB_ROW_METRIC) {
			if (id < PLUMB_METRIC_USER)
				continue;
			user = PLUMB_METRIC_USER;
		}
		id = plumb_row_mapped(map, id - user - more) + more;
		has_metrics &= !user || id != PLUMB_NONE;
		memcpy(field, &id, sizeof id);
	}
	return has_metrics;
}

/* ---- order ---- */

/* At most so many columns say what a table is ordered by. */
/* The columns by which a table is ordered, the most important first. Two of 4 bytes that follow one
 * another are one key. */
struct order {
	const struct plumb_row_column *columns[PLUMB_ORDERS_MOST];
	int keys, first[PLUMB_ORDERS_MOST + 1]; /* which column each key begins with */
};

static uint64_t
column_key(const char *row, const struct plumb_row_column *column)
{
	const char *field = row + column->offset;
	uint64_t key;
	uint32_t id;
	if (plumb_row_width(column) == sizeof id) {
		memcpy(&id, field, sizeof id);
		id += column->none_first;
		return column->descending ? ~id : id;
	}
	memcpy(&key, field, sizeof key);
	if (column->cell != PLUMB_ROW_COUNT && column->cell != PLUMB_ROW_LINK)
		key = plumb_sort_signed((int64_t)key);
	return column->descending ? ~key : key;
}

static uint64_t
row_key(const void *row, int which, const void *data)
{
	const struct order *order = data;
	int first = order->first[which];
	uint64_t key = column_key(row, order->columns[first]);
	if (order->first[which + 1] - first > 1)
		key = key << 32 | column_key(row, order->columns[first + 1]);
	return key;
}

static void
join_keys(struct order *order, int columns)
{
	for (int c = 0; c < columns; order->keys++) {
		bool two = c + 1 < columns && plumb_row_width(order->columns[c]) == 4 &&
		           plumb_row_width(order->columns[c + 1]) == 4;
		order->first[order->keys] = c;
		c += 1 + two;
	}
	order->first[order->keys] = columns;
}

int
plumb_row_order(struct plumb_profile *profile, const struct plumb_row_table *table)
{
	struct order order = { 0 };
	int columns = 0;
	if (table == &plumb_row_tables[PLUMB_TABLE_WORK])
		return plumb_order_work(profile->work, profile->work_count, profile->tracks);
	if (table == &plumb_row_tables[PLUMB_TABLE_SPANS])
		return plumb_order_spans(profile->spans, profile->spans_count);
	for (uint32_t c = 0; c < table->columns_count; c++)
		if (table->columns[c].order) {
			order.columns[table->columns[c].order - 1] = &table->columns[c];
			columns++;
		}
	join_keys(&order, columns);
	struct plumb_row_array rows = plumb_row_array_of(profile, table);
	return order.keys ? plumb_sort_rows(rows.items, rows.count, table->row_size, row_key,
	                                    order.keys, &order)
	                  : PLUMB_OK;
}
