/* SPDX-License-Identifier: Apache-2.0 */
#include "store/chunk.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define LEVEL 3

struct plumb_chunk_coder {
	ZSTD_CCtx *compress;
	ZSTD_DCtx *decompress;
	/* The bytes that a column of a full chunk needs, plain and compressed. */
	char plain[(size_t)PLUMB_CHUNK_ROWS * 8];
	char packed[PLUMB_CHUNK_COLUMNS][ZSTD_COMPRESSBOUND((size_t)PLUMB_CHUNK_ROWS * 8)];
};

struct plumb_chunk_coder *
plumb_chunk_coder_new(void)
{
	struct plumb_chunk_coder *coder = malloc(sizeof *coder);
	if (!coder)
		return NULL;
	coder->compress = ZSTD_createCCtx();
	coder->decompress = ZSTD_createDCtx();
	if (!coder->compress || !coder->decompress) {
		plumb_chunk_coder_free(coder);
		return NULL;
	}
	return coder;
}

void
plumb_chunk_coder_free(struct plumb_chunk_coder *coder)
{
	if (!coder)
		return;
	ZSTD_freeCCtx(coder->compress);
	ZSTD_freeDCtx(coder->decompress);
	free(coder);
}

static int64_t
get64(const char *at)
{
	int64_t number;
	memcpy(&number, at, sizeof number);
	return number;
}

/* ---- rows → chunk ---- */

/* What the blob has for a field of 8 bytes. BEFORE: the row before, or the row itself. False: the
 * rows are not in order, or their times are too far apart. */
static bool
encode64(const struct plumb_row_column *column, const char *before, const char *row, int64_t *out)
{
	int64_t from = column->cell == PLUMB_ROW_TIME  ? get64(before + column->offset)
	               : column->cell == PLUMB_ROW_END ? get64(row + column->limit)
	                                               : 0;
	*out = get64(row + column->offset);
	if (column->cell != PLUMB_ROW_TIME && column->cell != PLUMB_ROW_END)
		return true;
	return !__builtin_sub_overflow(*out, from, out) && *out >= 0;
}

/* The column as a blob has it. *ANY: something in it is not 0. */
static bool
encode_column(struct plumb_chunk_coder *coder, const struct plumb_row_table *table,
              const struct plumb_row_column *column, const char *row, uint32_t count, bool *any)
{
	size_t width = plumb_row_width(column);
	const char *before = row;
	*any = false;
	for (uint32_t i = 0; i < count; i++) {
		int64_t number;
		uint32_t id;
		if (width == sizeof id) {
			memcpy(&id, row + column->offset, sizeof id);
			*any |= id != 0;
			id = htole32(id);
			memcpy(coder->plain + i * width, &id, sizeof id);
		} else {
			if (!encode64(column, before, row, &number))
				return false;
			*any |= number != 0;
			number = (int64_t)htole64((uint64_t)number);
			memcpy(coder->plain + i * width, &number, sizeof number);
		}
		before = row;
		row += table->row_size;
	}
	return true;
}

/* The first and the last moment, the sum of all durations, and their union. */
static bool
sum_up(const struct plumb_row_table *table, const char *row, struct plumb_chunk *chunk)
{
	const struct plumb_row_column *time = plumb_row_column_of(table, PLUMB_ROW_TIME);
	const struct plumb_row_column *end = plumb_row_column_of(table, PLUMB_ROW_END);
	int64_t reached = get64(row + time->offset);
	chunk->start_ns = reached;
	chunk->total_ns = chunk->busy_ns = 0;
	for (uint32_t i = 0; i < chunk->count; i++, row += table->row_size) {
		int64_t from = get64(row + time->offset), duration;
		int64_t to = end ? get64(row + end->offset) : from;
		if (__builtin_sub_overflow(to, from, &duration) ||
		    __builtin_add_overflow(chunk->total_ns, duration, &chunk->total_ns))
			return false;
		if (to > reached) {
			chunk->busy_ns += to - (from > reached ? from : reached);
			reached = to;
		}
	}
	chunk->end_ns = reached;
	return true;
}

int
plumb_chunk_encode(struct plumb_chunk_coder *coder, const struct plumb_row_table *table,
                   const void *rows, struct plumb_chunk *chunk, struct plumb_error *error)
{
	bool ok = sum_up(table, rows, chunk);
	for (uint32_t c = 1; ok && c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		bool any;
		chunk->blobs[c] = (struct plumb_blob){ 0 };
		ok = encode_column(coder, table, column, rows, chunk->count, &any);
		if (!ok || (column->sparse && !any))
			continue;
		size_t bytes = ZSTD_compressCCtx(coder->compress, coder->packed[c],
		                                 sizeof coder->packed[c], coder->plain,
		                                 chunk->count * plumb_row_width(column), LEVEL);
		if (ZSTD_isError(bytes))
			return plumb_fail(error, PLUMB_ESYSTEM, "cannot compress %s: %s",
			                  table->name, ZSTD_getErrorName(bytes));
		chunk->blobs[c] = (struct plumb_blob){ coder->packed[c], bytes };
	}
	return ok ? PLUMB_OK
	          : plumb_fail(error, PLUMB_EINPUT, "%s are out of order or of impossible length",
	                       table->name);
}

/* ---- chunk → rows ---- */

/* Ids and small numbers. */
static void
decode32(const struct plumb_chunk_coder *coder, char *field, size_t step, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, field += step) {
		uint32_t id;
		memcpy(&id, coder->plain + i * sizeof id, sizeof id);
		id = le32toh(id);
		memcpy(field, &id, sizeof id);
	}
}

static int64_t
plain64(const struct plumb_chunk_coder *coder, uint32_t i)
{
	return (int64_t)le64toh((uint64_t)get64(coder->plain + i * sizeof(int64_t)));
}

/* Moments: each comes after the one before. */
static bool
decode_times(const struct plumb_chunk_coder *coder, int64_t time, char *field, size_t step,
             uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, field += step) {
		int64_t later = plain64(coder, i);
		if (later < 0 || __builtin_add_overflow(time, later, &time))
			return false;
		memcpy(field, &time, sizeof time);
	}
	return true;
}

/* Writes the plain column into the field of each row. */
static bool
decode_column(const struct plumb_chunk_coder *coder, const struct plumb_row_table *table,
              const struct plumb_row_column *column, const struct plumb_chunk *chunk, char *row)
{
	char *field = row + column->offset;
	size_t step = table->row_size;
	if (plumb_row_width(column) == sizeof(uint32_t)) {
		decode32(coder, field, step, chunk->count);
		return true;
	}
	if (column->cell == PLUMB_ROW_TIME)
		return decode_times(coder, chunk->start_ns, field, step, chunk->count);
	for (uint32_t i = 0; i < chunk->count; i++, field += step, row += step) {
		int64_t number = plain64(coder, i);
		if (column->cell == PLUMB_ROW_END &&
		    (number < 0 ||
		     __builtin_add_overflow(get64(row + column->limit), number, &number)))
			return false;
		memcpy(field, &number, sizeof number);
	}
	return true;
}

int
plumb_chunk_decode(struct plumb_chunk_coder *coder, const struct plumb_row_table *table,
                   const struct plumb_profile *profile, const struct plumb_chunk *chunk, void *rows,
                   struct plumb_error *error)
{
	char *row = rows;
	if (!chunk->count || chunk->count > PLUMB_CHUNK_ROWS)
		return plumb_fail(error, PLUMB_EINPUT, "a chunk has an impossible count");
	memset(rows, 0, (size_t)chunk->count * table->row_size);
	for (uint32_t c = 1; c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		if (!chunk->blobs[c].data)
			continue;
		/* The room is exact: a blob is refused if it unpacks to another length. */
		size_t wanted = chunk->count * plumb_row_width(column);
		size_t bytes = ZSTD_decompressDCtx(coder->decompress, coder->plain, wanted,
		                                   chunk->blobs[c].data, chunk->blobs[c].bytes);
		if (ZSTD_isError(bytes) || bytes != wanted)
			return plumb_fail(error, PLUMB_EINPUT,
			                  "a column that cannot be decompressed");
		if (!decode_column(coder, table, column, chunk, row))
			return plumb_fail(error, PLUMB_EINPUT, "a moment out of range");
	}
	for (uint32_t i = 0; i < chunk->count; i++, row += table->row_size)
		memcpy(row + table->columns[0].offset, &chunk->group, sizeof chunk->group);
	if (plumb_row_faults(profile, 0, table, rows, chunk->count))
		return plumb_fail(error, PLUMB_EINPUT, "a row out of range");
	return PLUMB_OK;
}
