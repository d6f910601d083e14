/* SPDX-License-Identifier: Apache-2.0 */
#include "store/chunk.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define LEVEL 3

static const size_t widths[PLUMB_CHUNK_COLUMNS] = { 4, 8, 8, 8, 8 };

struct plumb_chunk_coder {
	ZSTD_CCtx *compress;
	ZSTD_DCtx *decompress;
	/* As much as one column of a full chunk needs, plain and compressed. */
	char plain[PLUMB_CHUNK_COLUMNS][(size_t)PLUMB_CHUNK_ROWS * 8];
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

static void
put64(char *at, int64_t number)
{
	uint64_t little = htole64((uint64_t)number);
	memcpy(at, &little, sizeof little);
}

static int64_t
get64(const char *at)
{
	uint64_t little;
	memcpy(&little, at, sizeof little);
	return (int64_t)le64toh(little);
}

static void
put32(char *at, uint32_t number)
{
	uint32_t little = htole32(number);
	memcpy(at, &little, sizeof little);
}

static uint32_t
get32(const char *at)
{
	uint32_t little;
	memcpy(&little, at, sizeof little);
	return le32toh(little);
}

int
plumb_chunk_encode(struct plumb_chunk_coder *coder, const struct plumb_span *spans,
                   bool correlations, struct plumb_chunk *chunk, struct plumb_error *error)
{
	int64_t before = spans[0].start_ns, reached = spans[0].start_ns;
	bool written[PLUMB_CHUNK_COLUMNS] = { true, true, true, correlations, false };
	chunk->start_ns = chunk->end_ns = before;
	chunk->total_ns = chunk->busy_ns = 0;
	for (uint32_t i = 0; i < chunk->count; i++) {
		const struct plumb_span *w = &spans[i];
		int64_t later, duration;
		if (__builtin_sub_overflow(w->start_ns, before, &later) ||
		    __builtin_sub_overflow(w->end_ns, w->start_ns, &duration) || later < 0 ||
		    duration < 0 ||
		    __builtin_add_overflow(chunk->total_ns, duration, &chunk->total_ns))
			return plumb_fail(error, PLUMB_EINPUT,
			                  "spans are out of order or of impossible length");
		put32(coder->plain[PLUMB_CHUNK_CONTEXT] + (size_t)i * 4, w->context);
		put64(coder->plain[PLUMB_CHUNK_START] + (size_t)i * 8, later);
		put64(coder->plain[PLUMB_CHUNK_DURATION] + (size_t)i * 8, duration);
		put64(coder->plain[PLUMB_CHUNK_CORRELATION] + (size_t)i * 8,
		      (int64_t)w->correlation);
		put64(coder->plain[PLUMB_CHUNK_BYTES] + (size_t)i * 8, (int64_t)w->bytes);
		written[PLUMB_CHUNK_BYTES] |= w->bytes != 0;
		before = w->start_ns;
		if (w->end_ns > reached) {
			chunk->busy_ns +=
				w->end_ns - (w->start_ns > reached ? w->start_ns : reached);
			reached = w->end_ns;
		}
	}
	chunk->end_ns = reached;
	for (int c = 0; c < PLUMB_CHUNK_COLUMNS; c++) {
		chunk->columns[c] = (struct plumb_blob){ 0 };
		if (!written[c])
			continue;
		size_t bytes = ZSTD_compressCCtx(coder->compress, coder->packed[c],
		                                 sizeof coder->packed[c], coder->plain[c],
		                                 chunk->count * widths[c], LEVEL);
		if (ZSTD_isError(bytes))
			return plumb_fail(error, PLUMB_ESYSTEM, "cannot compress spans: %s",
			                  ZSTD_getErrorName(bytes));
		chunk->columns[c] = (struct plumb_blob){ coder->packed[c], bytes };
	}
	return PLUMB_OK;
}

int
plumb_chunk_decode(struct plumb_chunk_coder *coder, const struct plumb_chunk *chunk,
                   uint32_t contexts, struct plumb_span *spans, struct plumb_error *error)
{
	bool correlations = chunk->columns[PLUMB_CHUNK_CORRELATION].data;
	bool sizes = chunk->columns[PLUMB_CHUNK_BYTES].data;
	if (!chunk->count || chunk->count > PLUMB_CHUNK_ROWS)
		return plumb_fail(error, PLUMB_EINPUT, "a chunk of spans has an impossible count");
	for (int c = 0; c < PLUMB_CHUNK_COLUMNS; c++) {
		if ((c == PLUMB_CHUNK_CORRELATION && !correlations) ||
		    (c == PLUMB_CHUNK_BYTES && !sizes))
			continue;
		/* The room is exact: a blob that unfolds to anything else is refused. */
		size_t wanted = chunk->count * widths[c];
		size_t bytes = ZSTD_decompressDCtx(coder->decompress, coder->plain[c], wanted,
		                                   chunk->columns[c].data, chunk->columns[c].bytes);
		if (ZSTD_isError(bytes) || bytes != wanted)
			return plumb_fail(error, PLUMB_EINPUT,
			                  "a column of spans cannot be decompressed");
	}
	int64_t start = chunk->start_ns;
	for (uint32_t i = 0; i < chunk->count; i++) {
		int64_t later = get64(coder->plain[PLUMB_CHUNK_START] + (size_t)i * 8);
		int64_t duration = get64(coder->plain[PLUMB_CHUNK_DURATION] + (size_t)i * 8);
		uint32_t context = get32(coder->plain[PLUMB_CHUNK_CONTEXT] + (size_t)i * 4);
		int64_t end;
		if (later < 0 || duration < 0 || context >= contexts ||
		    __builtin_add_overflow(start, later, &start) ||
		    __builtin_add_overflow(start, duration, &end))
			return plumb_fail(error, PLUMB_EINPUT, "a span is out of range");
		spans[i] = (struct plumb_span){ context, chunk->track, start, end, 0, 0 };
		if (correlations)
			spans[i].correlation = (uint64_t)get64(
				coder->plain[PLUMB_CHUNK_CORRELATION] + (size_t)i * 8);
		if (sizes)
			spans[i].bytes =
				(uint64_t)get64(coder->plain[PLUMB_CHUNK_BYTES] + (size_t)i * 8);
	}
	return PLUMB_OK;
}
