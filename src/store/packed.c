/* SPDX-License-Identifier: Apache-2.0 */
#include "store/packed.h"

#include <endian.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/database.h"

#define LEVEL 1
#define COLUMNS 16  /* of a table at most */
#define SAMPLE 256u /* rows by which it is decided what a column is the difference to */
#define NAMES 512   /* bytes of the names of all columns */
#define PIECE_MOST ((size_t)COLUMNS * (1 + 8 * (size_t)PLUMB_PACKED_ROWS))

/* Only numbers and ids, which say the same in every plumb. */
static bool
is_packable(const struct plumb_row_table *table)
{
	if (table->single || table->chunks || table->columns_count > COLUMNS)
		return false;
	for (uint32_t c = 0; c < table->columns_count; c++)
		switch (table->columns[c].cell) {
		case PLUMB_ROW_TEXT:
		case PLUMB_ROW_WORD:
		case PLUMB_ROW_BLOB:
		case PLUMB_ROW_END:
			return false;
		default:
			break;
		}
	return true;
}

/* "parent,frame,…" */
static void
name_columns(const struct plumb_row_table *table, char *names)
{
	size_t used = 0;
	*names = 0;
	for (uint32_t c = 0; c < table->columns_count && used < NAMES; c++)
		used += (size_t)snprintf(names + used, NAMES - used, "%s%s", c ? "," : "",
		                         table->columns[c].name);
}

/* ---- columns ---- */

static uint64_t
load(const struct plumb_row_column *column, size_t width, const char *row)
{
	uint64_t number;
	uint32_t id;
	if (width == sizeof id) {
		memcpy(&id, row + column->offset, sizeof id);
		return id;
	}
	memcpy(&number, row + column->offset, sizeof number);
	/* As a cell of SQL has it. */
	return column->cell == PLUMB_ROW_COUNT && number > INT64_MAX ? INT64_MAX : number;
}

static size_t
pack_column(const struct plumb_row_table *table, uint32_t c, uint32_t against, const char *row,
            uint32_t count, char *out)
{
	const struct plumb_row_column *column = &table->columns[c];
	size_t width = plumb_row_width(column);
	uint64_t before = 0;
	*out++ = (char)against;
	for (uint32_t i = 0; i < count; i++, row += table->row_size, out += width) {
		uint64_t number = load(column, width, row);
		uint64_t other = against ? load(&table->columns[against - 1], width, row) : before;
		uint64_t difference = htole64(number - other);
		memcpy(out, &difference, width); /* the low bytes come first */
		before = number;
	}
	return 1 + count * width;
}

/* What makes most of the differences 0. */
static uint32_t
choose(const struct plumb_row_table *table, uint32_t c, const char *rows, uint32_t count)
{
	size_t width = plumb_row_width(&table->columns[c]);
	uint32_t best = 0, most = 0;
	count = count < SAMPLE ? count : SAMPLE;
	for (uint32_t against = 0; against <= c; against++) {
		uint32_t same = 0;
		if (against && plumb_row_width(&table->columns[against - 1]) != width)
			continue;
		for (uint32_t i = 1; i < count; i++) {
			const char *row = rows + (size_t)i * table->row_size;
			same += load(&table->columns[c], width, row) ==
			        (against ? load(&table->columns[against - 1], width, row)
			                 : load(&table->columns[c], width, row - table->row_size));
		}
		if (same > most) {
			most = same;
			best = against;
		}
	}
	return best;
}

/* Writes one column into the fields of COUNT rows. Columns before it are there. False: it cannot
 * be. */
static bool
unpack_column(const struct plumb_row_table *table, uint32_t c, const char *in, uint32_t count,
              char *row)
{
	const struct plumb_row_column *column = &table->columns[c], *other = NULL;
	size_t width = plumb_row_width(column);
	uint32_t against = (unsigned char)*in++;
	uint64_t before = 0;
	if (against) {
		if (against > c || plumb_row_width(&table->columns[against - 1]) != width)
			return false;
		other = &table->columns[against - 1];
	}
	for (uint32_t i = 0; i < count; i++, row += table->row_size, in += width) {
		uint64_t number = 0;
		memcpy(&number, in, width);
		number = le64toh(number) + (other ? load(other, width, row) : before);
		if (width == sizeof(uint32_t)) {
			uint32_t id = (uint32_t)number;
			memcpy(row + column->offset, &id, sizeof id);
		} else {
			memcpy(row + column->offset, &number, sizeof number);
		}
		before = number;
	}
	return true;
}

/* ---- is it possible? As read_cells.c has it for single cells. ---- */

static bool
are_numbers_possible(const struct plumb_row_table *table, const struct plumb_row_column *column,
                     uint32_t count, char *row)
{
	bool ok = true;
	for (uint32_t i = 0; i < count; i++, row += table->row_size) {
		int64_t number;
		double real;
		memcpy(&number, row + column->offset, sizeof number);
		memcpy(&real, row + column->offset, sizeof real);
		switch (column->cell) {
		case PLUMB_ROW_COUNT:
			ok &= number >= 1;
			break;
		case PLUMB_ROW_AMOUNT:
			ok &= number >= 0;
			break;
		case PLUMB_ROW_KNOWN:
			ok &= isfinite(real) != 0;
			break;
		case PLUMB_ROW_REAL:
			ok &= !isinf(real);
			break;
		default:
			break;
		}
	}
	return ok;
}

static bool
are_ids_possible(const struct plumb_reader *reader, const struct plumb_row_table *table,
                 const struct plumb_row_column *column, uint32_t count, const char *row)
{
	bool is_id = plumb_row_has_id(column), ok = true;
	/* The id + 1 must be from LEAST up to MOST, as numbers of 32 bits. */
	uint32_t add = column->cell != PLUMB_ROW_ID_OR_0, least = 0, most = UINT32_MAX;
	if (column->cell == PLUMB_ROW_LINE)
		return true;
	if (is_id)
		most = plumb_row_array_of(reader->profile, &plumb_row_tables[column->limit]).count;
	if (column->cell != PLUMB_ROW_ID_OR_NONE && column->cell != PLUMB_ROW_ID_OR_0)
		least = 1;
	for (uint32_t i = 0; i < count; i++, row += table->row_size) {
		uint32_t id;
		memcpy(&id, row + column->offset, sizeof id);
		id += add;
		ok &= id >= least && id <= most;
	}
	return ok;
}

/* ---- writing ---- */

static int
fail(struct plumb_error *error, const char *table, const char *why)
{
	return plumb_fail(error, PLUMB_ESYSTEM, "cannot compress %s: %s", table, why);
}

static int
write_piece(struct plumb_writer *writer, const struct plumb_row_table *table, sqlite3_stmt *insert,
            const char *rows, uint32_t count, char *plain, struct plumb_error *error)
{
	size_t bytes = 0, room = ZSTD_COMPRESSBOUND(PIECE_MOST);
	char *packed = malloc(room);
	if (!packed)
		return plumb_fail_memory(error, "to write the profile");
	for (uint32_t c = 0; c < table->columns_count; c++)
		bytes += pack_column(table, c, choose(table, c, rows, count), rows, count,
		                     plain + bytes);
	size_t length = ZSTD_compress(packed, room, plain, bytes, LEVEL);
	if (ZSTD_isError(length)) {
		free(packed);
		return fail(error, table->name, ZSTD_getErrorName(length));
	}
	sqlite3_bind_int64(insert, 4, count);
	sqlite3_bind_blob64(insert, 6, packed, length, free);
	return plumb_writer_step(writer, insert, error);
}

static int
write_table(struct plumb_writer *writer, const struct plumb_row_table *table, char *plain,
            struct plumb_error *error)
{
	struct plumb_row_array rows = plumb_row_array_of(writer->profile, table);
	char names[NAMES], sql[768];
	sqlite3_stmt *insert;
	int code = plumb_writer_prepare(writer, "packed_rows", 6, &insert, error);
	name_columns(table, names);
	if (!code) {
		sqlite3_bind_text(insert, 2, table->name, -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 3, names, -1, SQLITE_STATIC);
		sqlite3_bind_text(insert, 5, PLUMB_PACKED_CODEC, -1, SQLITE_STATIC);
	}
	for (uint32_t at = 0; !code && at < rows.count; at += PLUMB_PACKED_ROWS) {
		uint32_t left = rows.count - at;
		code = write_piece(writer, table, insert, rows.items + (size_t)at * table->row_size,
		                   left < PLUMB_PACKED_ROWS ? left : PLUMB_PACKED_ROWS, plain,
		                   error);
	}
	sqlite3_finalize(insert);
	static const char *const changes[] = { "INSERT", "UPDATE", "DELETE" };
	for (int i = 0; !code && i < 3; i++) {
		snprintf(sql, sizeof sql,
		         "CREATE TRIGGER %s_%s AFTER %s ON %s BEGIN"
		         " DELETE FROM packed_rows WHERE source = '%s'; END",
		         table->name, changes[i], changes[i], table->name, table->name);
		code = plumb_writer_execute(writer, sql, error);
	}
	return code;
}

int
plumb_packed_write(struct plumb_writer *writer, struct plumb_error *error)
{
	char *plain = NULL;
	int code = PLUMB_OK;
	for (int t = 0; !code && t < PLUMB_TABLES; t++) {
		const struct plumb_row_table *table = &plumb_row_tables[t];
		if (!is_packable(table) ||
		    plumb_row_array_of(writer->profile, table).count < PLUMB_PACKED_LEAST)
			continue;
		if (!plain && !(plain = malloc(PIECE_MOST)))
			code = plumb_fail_memory(error, "to write the profile");
		if (!code)
			code = write_table(writer, table, plain, error);
	}
	free(plain);
	return code;
}

/* ---- reading ---- */

/* The next piece: its rows are counted first, for a context may name one of them. */
static int
read_piece(struct plumb_reader *reader, const struct plumb_row_table *table, sqlite3_stmt *select,
           char *plain)
{
	int64_t count = sqlite3_column_int64(select, 0);
	size_t bytes = 0, at = 0, length;
	const void *blob = sqlite3_column_blob(select, 1);
	length = (size_t)sqlite3_column_bytes(select, 1);
	uint32_t before = plumb_row_array_of(reader->profile, table).count;
	if (count < 1 || count > PLUMB_PACKED_ROWS)
		return plumb_reader_damaged(reader, "an impossible count");
	for (uint32_t c = 0; c < table->columns_count; c++)
		bytes += 1 + (size_t)count * plumb_row_width(&table->columns[c]);
	if (!blob || ZSTD_decompress(plain, bytes, blob, length) != bytes)
		return plumb_reader_damaged(reader, "rows that cannot be decompressed");
	if (table->most && before + (uint64_t)count > table->most)
		return plumb_reader_damaged(reader, "more rows than a profile holds");
	char *rows = plumb_row_reserve(reader->profile, table, (uint32_t)count);
	if (!rows)
		return plumb_reader_no_memory(reader);
	memset(rows, 0, (size_t)count * table->row_size);
	plumb_row_set_count(reader->profile, table, before + (uint32_t)count);
	for (uint32_t c = 0; c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		bool wide = plumb_row_width(column) == 8;
		if (!unpack_column(table, c, plain + at, (uint32_t)count, rows) ||
		    !(wide ? are_numbers_possible(table, column, (uint32_t)count, rows)
		           : are_ids_possible(reader, table, column, (uint32_t)count, rows)))
			return plumb_reader_damaged(reader, "a row out of range");
		at += 1 + (size_t)count * plumb_row_width(column);
	}
	return PLUMB_OK;
}

/* Are there any copies? Looked up once. */
static int
has_copies(struct plumb_reader *reader)
{
	if (reader->has_copies)
		return PLUMB_OK;
	int there = plumb_database_has(reader->db, "packed_rows");
	int computes = there > 0 ? plumb_database_computes(reader->db, "packed_rows") : 0;
	if (there < 0 || computes < 0)
		return plumb_reader_fail_sql(reader);
	reader->has_copies = there && !computes ? PLUMB_READER_YES : PLUMB_READER_NO;
	return PLUMB_OK;
}

/* Does the copy have as many rows as the table, with the columns of this plumb? Without its
 * triggers the table was changed. */
static int
is_usable(struct plumb_reader *reader, const struct plumb_row_table *table, bool *usable)
{
	char names[NAMES], sql[640];
	sqlite3_stmt *ask;
	*usable = false;
	int code = has_copies(reader);
	if (code || reader->has_copies == PLUMB_READER_NO ||
	    plumb_database_has(reader->db, table->name) <= 0)
		return code;
	name_columns(table, names);
	snprintf(sql, sizeof sql,
	         "SELECT TOTAL(count) = (SELECT MAX(id) + 1 FROM %s NOT INDEXED)"
	         " AND MIN(columns = ?2 AND codec = ?3 AND typeof(rows) = 'blob')"
	         " AND 3 = (SELECT COUNT(*) FROM sqlite_master"
	         " WHERE type = 'trigger' AND tbl_name = ?1)"
	         " FROM packed_rows WHERE source = ?1",
	         table->name);
	if (sqlite3_prepare_v2(reader->db, sql, -1, &ask, NULL))
		return plumb_reader_fail_sql(reader);
	sqlite3_bind_text(ask, 1, table->name, -1, SQLITE_STATIC);
	sqlite3_bind_text(ask, 2, names, -1, SQLITE_STATIC);
	sqlite3_bind_text(ask, 3, PLUMB_PACKED_CODEC, -1, SQLITE_STATIC);
	int stepped = sqlite3_step(ask);
	*usable = stepped == SQLITE_ROW && sqlite3_column_int(ask, 0) == 1;
	sqlite3_finalize(ask);
	return stepped == SQLITE_ROW ? PLUMB_OK : plumb_reader_fail_sql(reader);
}

int
plumb_packed_read(struct plumb_reader *reader, const struct plumb_row_table *table, bool *done)
{
	sqlite3_stmt *select = NULL;
	*done = false;
	int code = is_packable(table) ? is_usable(reader, table, done) : PLUMB_OK;
	if (code || !*done)
		return code;
	char *plain = malloc(PIECE_MOST);
	if (!plain)
		return plumb_reader_no_memory(reader);
	if (sqlite3_prepare_v2(reader->db,
	                       "SELECT count, rows FROM packed_rows WHERE source = ?1 ORDER BY id",
	                       -1, &select, NULL))
		code = plumb_reader_fail_sql(reader);
	else
		sqlite3_bind_text(select, 1, table->name, -1, SQLITE_STATIC);
	for (int stepped = SQLITE_ROW; !code && stepped == SQLITE_ROW; reader->row++) {
		stepped = sqlite3_step(select);
		if (stepped == SQLITE_ROW)
			code = read_piece(reader, table, select, plain);
		else if (stepped != SQLITE_DONE)
			code = plumb_reader_fail_sql(reader);
	}
	sqlite3_finalize(select);
	free(plain);
	return code;
}
