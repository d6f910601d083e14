/* SPDX-License-Identifier: Apache-2.0 */
/* Rows → chunks of a file. */
#include <stdio.h>
#include <stdlib.h>

#include "store/chunk.h"
#include "store/schema.h"
#include "store/writer.h"

static uint32_t
group_of(const struct plumb_row_table *table, const char *rows, uint32_t i)
{
	uint32_t group;
	memcpy(&group, rows + (size_t)i * table->row_size + table->columns[0].offset, sizeof group);
	return group;
}

static bool
is_grouped(const struct plumb_row_table *table, const struct plumb_row_array *rows)
{
	for (uint32_t i = 1; i < rows->count; i++)
		if (group_of(table, rows->items, i) < group_of(table, rows->items, i - 1))
			return false;
	return true;
}

/* The rows ordered by their first column; rows with the same one stay in their order. Malloced.
 * NULL: no memory. */
static char *
group_rows(const struct plumb_row_table *table, const struct plumb_row_array *rows, uint32_t groups)
{
	uint32_t *starts = calloc((size_t)groups + 1, sizeof *starts);
	char *sorted = malloc((size_t)rows->count * table->row_size);
	if (!sorted || !starts) {
		free(starts);
		free(sorted);
		return NULL;
	}
	for (uint32_t i = 0; i < rows->count; i++)
		starts[group_of(table, rows->items, i) + 1]++;
	for (uint32_t g = 0; g < groups; g++)
		starts[g + 1] += starts[g];
	for (uint32_t i = 0; i < rows->count; i++)
		memcpy(sorted + (size_t)starts[group_of(table, rows->items, i)]++ * table->row_size,
		       rows->items + (size_t)i * table->row_size, table->row_size);
	free(starts);
	return sorted;
}

static int
write_chunk(struct plumb_writer *writer, sqlite3_stmt *insert, const struct plumb_row_table *table,
            const struct plumb_chunk *chunk, struct plumb_error *error)
{
	int at = 1;
	sqlite3_bind_int64(insert, at++, writer->chunk++);
	sqlite3_bind_int64(insert, at++, chunk->group);
	sqlite3_bind_text(insert, at++, table->source, -1, SQLITE_STATIC);
	sqlite3_bind_int64(insert, at++, chunk->start_ns);
	sqlite3_bind_int64(insert, at++, chunk->end_ns);
	sqlite3_bind_int64(insert, at++, chunk->count);
	if (plumb_row_column_of(table, PLUMB_ROW_END)) {
		sqlite3_bind_int64(insert, at++, chunk->total_ns);
		sqlite3_bind_int64(insert, at++, chunk->busy_ns);
	}
	sqlite3_bind_text(insert, at++, PLUMB_CHUNK_CODEC, -1, SQLITE_STATIC);
	for (uint32_t c = 1; c < table->columns_count; c++)
		sqlite3_bind_blob64(insert, at++, chunk->blobs[c].data, chunk->blobs[c].bytes,
		                    SQLITE_STATIC);
	return plumb_writer_step(writer, insert, error);
}

/* ROWS are ordered by their first column. */
static int
write_grouped(struct plumb_writer *writer, const struct plumb_row_table *table,
              struct plumb_chunk_coder *coder, sqlite3_stmt *insert, const char *rows,
              uint32_t count, struct plumb_error *error)
{
	int code = PLUMB_OK;
	for (uint32_t at = 0; !code && at < count;) {
		struct plumb_chunk chunk = { .group = group_of(table, rows, at) };
		while (at + chunk.count < count && chunk.count < PLUMB_CHUNK_ROWS &&
		       group_of(table, rows, at + chunk.count) == chunk.group)
			chunk.count++;
		code = plumb_chunk_encode(coder, table, rows + (size_t)at * table->row_size, &chunk,
		                          error);
		if (!code)
			code = write_chunk(writer, insert, table, &chunk, error);
		at += chunk.count;
	}
	return code;
}

static int
prepare_chunks(struct plumb_writer *writer, const struct plumb_row_table *table,
               sqlite3_stmt **insert, struct plumb_error *error)
{
	char names[512];
	unsigned columns = plumb_store_chunk_columns(table, names, sizeof names);
	if (!columns)
		return plumb_fail_memory(error, "to write the profile");
	if (!writer->chunks || strcmp(writer->chunks, table->chunks) != 0)
		writer->chunk = 0;
	writer->chunks = table->chunks;
	return plumb_writer_prepare(writer, names, columns, insert, error);
}

int
plumb_writer_chunks(struct plumb_writer *writer, const struct plumb_row_table *table,
                    struct plumb_error *error)
{
	struct plumb_row_array rows = plumb_row_array_of(writer->profile, table);
	if (!rows.count)
		return PLUMB_OK;
	bool grouped = is_grouped(table, &rows);
	const struct plumb_row_table *groups = &plumb_row_tables[table->columns[0].limit];
	char *sorted = grouped ? NULL
	                       : group_rows(table, &rows,
	                                    plumb_row_array_of(writer->profile, groups).count);
	struct plumb_chunk_coder *coder = plumb_chunk_coder_new();
	sqlite3_stmt *insert = NULL;
	int code = PLUMB_OK;
	if ((!sorted && !grouped) || !coder)
		code = plumb_fail_memory(error, "to write the profile");
	if (!code)
		code = prepare_chunks(writer, table, &insert, error);
	if (!code)
		code = write_grouped(writer, table, coder, insert, grouped ? rows.items : sorted,
		                     rows.count, error);
	sqlite3_finalize(insert);
	plumb_chunk_coder_free(coder);
	free(sorted);
	return code;
}
