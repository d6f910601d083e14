/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of a file → rows. A table of the file may hold the chunks of several tables of the
 * profile. The column `source` says which. The blobs of a chunk that is not wanted are not read.
 */
#include <stdio.h>
#include <string.h>

#include "store/chunk.h"
#include "store/reader.h"

/* Columns of the statement. After them come all columns of the table except its first. */
enum { ID, GROUP, SOURCE, START, COUNT, CODEC, BLOBS };

static void
print_columns(const struct plumb_row_table *table, uint32_t schema, char *out, size_t size)
{
	FILE *list = fmemopen(out, size, "w");
	if (!list)
		return;
	fprintf(list, "%s, source, start_ns, count, codec", table->columns[0].name);
	for (uint32_t c = 1; c < table->columns_count; c++)
		fprintf(list, ", %s",
		        table->columns[c].since > schema ? "NULL"
		                                         : plumb_row_blob_name(&table->columns[c]));
	fclose(list);
}

static int
read_blobs(struct plumb_reader *reader, const struct plumb_row_table *table, sqlite3_stmt *select,
           struct plumb_chunk *chunk)
{
	for (uint32_t c = 1; c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		int at = BLOBS + (int)c - 1, type = sqlite3_column_type(select, at);
		if (type == SQLITE_NULL && (column->sparse || column->since > reader->schema))
			continue;
		if (type != SQLITE_BLOB)
			return plumb_reader_damaged(reader, "not a blob");
		chunk->blobs[c].data = sqlite3_column_blob(select, at);
		chunk->blobs[c].bytes = (uint64_t)sqlite3_column_bytes(select, at);
		if (!chunk->blobs[c].data)
			return plumb_reader_damaged(reader, "an empty blob");
	}
	return PLUMB_OK;
}

static bool
is_wanted(const struct plumb_reader *reader, const struct plumb_row_table *table,
          const char *source, uint32_t group)
{
	if (!source || strcmp(source, table->source) != 0)
		return false;
	return reader->part != PLUMB_READER_STREAMS || !table->moments ||
	       table->columns[0].limit != PLUMB_TABLE_TRACKS ||
	       reader->profile->tracks[group].kind == PLUMB_TRACK_STREAM;
}

static int
read_chunk(struct plumb_reader *reader, const struct plumb_row_table *table, sqlite3_stmt *select,
           struct plumb_chunk *chunk, bool *wanted)
{
	struct plumb_row_column group = table->columns[0];
	int64_t count = 0;
	const char *source, *codec = NULL;
	size_t bytes;
	group.offset = offsetof(struct plumb_chunk, group);
	int code = plumb_reader_cell(reader, select, GROUP, &group, chunk);
	if (!code)
		code = plumb_reader_text(reader, select, SOURCE, &source, &bytes);
	if (!code)
		code = plumb_reader_number(reader, select, START, &chunk->start_ns);
	if (!code)
		code = plumb_reader_number(reader, select, COUNT, &count);
	if (code)
		return code;
	*wanted = is_wanted(reader, table, source, chunk->group);
	if (!*wanted)
		return PLUMB_OK;
	code = plumb_reader_text(reader, select, CODEC, &codec, &bytes);
	if (!code)
		code = read_blobs(reader, table, select, chunk);
	if (code)
		return code;
	if (!codec || strcmp(codec, PLUMB_CHUNK_CODEC) != 0)
		return plumb_reader_damaged(reader, "an unknown codec");
	if (count < 1 || count > PLUMB_CHUNK_ROWS)
		return plumb_reader_damaged(reader, "an impossible count");
	chunk->count = (uint32_t)count;
	return PLUMB_OK;
}

static int
add_rows(struct plumb_reader *reader, const struct plumb_row_table *table,
         struct plumb_chunk_coder *coder, const struct plumb_chunk *chunk)
{
	struct plumb_error why = { 0 };
	uint64_t count = (uint64_t)plumb_row_array_of(reader->profile, table).count + chunk->count;
	if (table->most && count > table->most)
		return plumb_reader_damaged(reader, "more rows than a profile holds");
	void *rows = plumb_row_reserve(reader->profile, table, chunk->count);
	if (!rows)
		return plumb_reader_no_memory(reader);
	if (plumb_chunk_decode(coder, table, reader->profile, chunk, rows, &why))
		return plumb_reader_damaged(reader, why.message);
	plumb_row_set_count(reader->profile, table, (uint32_t)count);
	return PLUMB_OK;
}

int
plumb_reader_chunks(struct plumb_reader *reader, const struct plumb_row_table *table)
{
	char columns[512] = "";
	sqlite3_stmt *select = NULL;
	struct plumb_chunk_coder *coder = plumb_chunk_coder_new();
	print_columns(table, reader->schema, columns, sizeof columns);
	int code = coder && *columns ? plumb_reader_select(reader, columns, &select)
	                             : plumb_reader_no_memory(reader);
	for (bool found = !code; found; reader->row++) {
		struct plumb_chunk chunk = { 0 };
		bool wanted = false;
		code = plumb_reader_next(reader, select, &found);
		if (!code && found)
			code = read_chunk(reader, table, select, &chunk, &wanted);
		if (!code && wanted)
			code = add_rows(reader, table, coder, &chunk);
		if (code)
			break;
	}
	sqlite3_finalize(select);
	plumb_chunk_coder_free(coder);
	if (!code && plumb_row_order(reader->profile, table))
		code = plumb_reader_no_memory(reader);
	return code;
}
