/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks of spans: up to PLUMB_CHUNK_ROWS intervals of one track, one zstd blob per column. The
 * bytes inside, all little endian, `count` of them in each column:
 *
 *	context   uint32
 *	start     int64: how much later than the span before it (the first: than the chunk's start)
 *	duration  int64
 *	correlation  uint64; only in chunks of a trace
 *	bytes        uint64; only where one is known
 *
 * Private to store/.
 */
#ifndef PLUMB_STORE_CHUNK_H
#define PLUMB_STORE_CHUNK_H

#include "model/profile.h"

#define PLUMB_CHUNK_ROWS 65536u
#define PLUMB_CHUNK_CODEC "zstd"

enum plumb_chunk_column {
	PLUMB_CHUNK_CONTEXT,
	PLUMB_CHUNK_START,
	PLUMB_CHUNK_DURATION,
	PLUMB_CHUNK_CORRELATION,
	PLUMB_CHUNK_BYTES,
	PLUMB_CHUNK_COLUMNS,
};

struct plumb_blob {
	void *data;
	size_t bytes;
};

/* One chunk as a row has it. */
struct plumb_chunk {
	uint32_t track;
	uint32_t count;
	int64_t start_ns, end_ns; /* of the first start, of the latest end */
	int64_t total_ns;         /* of all durations */
	int64_t busy_ns;          /* of their union */
	/* The last two may be missing (no data): then all that they would tell is 0. */
	struct plumb_blob columns[PLUMB_CHUNK_COLUMNS];
};

struct plumb_chunk_coder; /* scratch memory for both ways */

struct plumb_chunk_coder *plumb_chunk_coder_new(void);
void plumb_chunk_coder_free(struct plumb_chunk_coder *coder);

/* SPANS: CHUNK->count of one track in the order of their starts. Fills in the rest of CHUNK, with
 * correlations when asked; its blobs are the coder's and hold until the next call. */
int plumb_chunk_encode(struct plumb_chunk_coder *coder, const struct plumb_span *spans,
                       bool correlations, struct plumb_chunk *chunk, struct plumb_error *error);

/* CHUNK, which may hold anything, → CHUNK->count spans. CONTEXTS: how many there are. */
int plumb_chunk_decode(struct plumb_chunk_coder *coder, const struct plumb_chunk *chunk,
                       uint32_t contexts, struct plumb_span *spans, struct plumb_error *error);

#endif
