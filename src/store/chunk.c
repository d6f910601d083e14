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
	/* The bytes that a column of a full chunk needs, plain and compressed. All columns of a
	 * chunk that is read are unpacked where a written one has them compressed. */
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

/* Rows are filled in blocks, which stay in the processor's cache from one column to the next. */
#define BLOCK 256

/* Ids and small numbers. */
static void
decode32(const char *cells, char *field, size_t step, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, field += step)
		memcpy(field, cells + i * sizeof(uint32_t), sizeof(uint32_t));
}

/* Moments: each comes after the one before, the first one after TIME. */
static bool
decode_times(const char *cells, int64_t *time, char *field, size_t step, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, field += step) {
		int64_t later = get64(cells + i * sizeof later);
		if (later < 0 || __builtin_add_overflow(*time, later, time))
			return false;
		memcpy(field, time, sizeof *time);
	}
	return true;
}

static bool
decode_ends(const char *cells, size_t limit, char *row, char *field, size_t step, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++, field += step, row += step) {
		int64_t number = get64(cells + i * sizeof number);
		if (number < 0 || __builtin_add_overflow(get64(row + limit), number, &number))
			return false;
		memcpy(field, &number, sizeof number);
	}
	return true;
}

/* Writes COUNT cells into the field of as many rows. TIME: of the row before. */
static bool
decode_cells(const struct plumb_row_column *column, const char *cells, int64_t *time, char *row,
             size_t step, uint32_t count)
{
	char *field = row + column->offset;
	if (plumb_row_width(column) == sizeof(uint32_t))
		decode32(cells, field, step, count);
	else if (column->cell == PLUMB_ROW_TIME)
		return decode_times(cells, time, field, step, count);
	else if (column->cell == PLUMB_ROW_END)
		return decode_ends(cells, column->limit, row, field, step, count);
	else
		for (uint32_t i = 0; i < count; i++, field += step)
			memcpy(field, cells + i * sizeof(int64_t), sizeof(int64_t));
	return true;
}

/* The file has the lowest byte of a number first. */
static void
order_bytes(char *cells, size_t width, uint32_t count)
{
#if __BYTE_ORDER == __BIG_ENDIAN
	for (uint32_t i = 0; i < count; i++, cells += width)
		for (size_t low = 0, high = width - 1; low < high; low++, high--) {
			char byte = cells[low];
			cells[low] = cells[high];
			cells[high] = byte;
		}
#else
	(void)cells, (void)width, (void)count;
#endif
}

/* Unpacks all columns, and asks if what they have is possible. */
static int
unpack_columns(struct plumb_chunk_coder *coder, const struct plumb_row_table *table,
               const struct plumb_profile *profile, const struct plumb_chunk *chunk,
               struct plumb_error *error)
{
	static const int64_t none = 0;
	for (uint32_t c = 1; c < table->columns_count; c++) {
		const struct plumb_row_column *column = &table->columns[c];
		size_t width = plumb_row_width(column), wanted = chunk->count * width;
		bool stored = chunk->blobs[c].data;
		/* The room is exact: a blob is refused if it unpacks to another length. */
		size_t bytes =
			stored ? ZSTD_decompressDCtx(coder->decompress, coder->packed[c], wanted,
		                                     chunk->blobs[c].data, chunk->blobs[c].bytes)
			       : wanted;
		if (ZSTD_isError(bytes) || bytes != wanted)
			return plumb_fail(error, PLUMB_EINPUT,
			                  "a column that cannot be decompressed");
		if (stored)
			order_bytes(coder->packed[c], width, chunk->count);
		/* An end is looked at where its row is filled. */
		if (column->cell != PLUMB_ROW_END &&
		    !plumb_row_cells_possible(profile, 0, column,
		                              stored ? coder->packed[c] : (const char *)&none,
		                              width, stored ? chunk->count : 1))
			return plumb_fail(error, PLUMB_EINPUT, "a row out of range");
	}
	if (!plumb_row_cells_possible(profile, 0, &table->columns[0], (const char *)&chunk->group,
	                              sizeof chunk->group, 1))
		return plumb_fail(error, PLUMB_EINPUT, "a row out of range");
	return PLUMB_OK;
}

int
plumb_chunk_decode(struct plumb_chunk_coder *coder, const struct plumb_row_table *table,
                   const struct plumb_profile *profile, const struct plumb_chunk *chunk, void *rows,
                   struct plumb_error *error)
{
	size_t step = table->row_size;
	int64_t time = chunk->start_ns;
	if (!chunk->count || chunk->count > PLUMB_CHUNK_ROWS)
		return plumb_fail(error, PLUMB_EINPUT, "a chunk has an impossible count");
	int code = unpack_columns(coder, table, profile, chunk, error);
	for (uint32_t at = 0; !code && at < chunk->count; at += BLOCK) {
		uint32_t count = chunk->count - at < BLOCK ? chunk->count - at : BLOCK;
		char *row = (char *)rows + at * step, *group = row + table->columns[0].offset;
		bool possible = true;
		memset(row, 0, count * step);
		for (uint32_t i = 0; i < count; i++, group += step)
			memcpy(group, &chunk->group, sizeof chunk->group);
		for (uint32_t c = 1; possible && c < table->columns_count; c++) {
			const struct plumb_row_column *column = &table->columns[c];
			const char *cells = coder->packed[c] + at * plumb_row_width(column);
			if (chunk->blobs[c].data)
				possible = decode_cells(column, cells, &time, row, step, count);
		}
		if (!possible)
			code = plumb_fail(error, PLUMB_EINPUT, "a moment out of range");
	}
	return code;
}
