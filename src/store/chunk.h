/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chunks: up to PLUMB_CHUNK_ROWS rows of a table that are equal in its first column (a track), in
 * the order of its column of kind TIME, with one zstd blob for each other column. The bytes inside,
 * all little endian, `count` of them in each blob:
 *
 *	TIME      int64: how much later than the row before (the first: than the chunk's start)
 *	END       int64: how much later than what it is the end of
 *	others    as in the row: 4 bytes of ids and small numbers, 8 bytes of all else
 *
 * A blob of a sparse column is missing if it would be 0 in all rows. Private to store/.
 */
#ifndef PLUMB_STORE_CHUNK_H
#define PLUMB_STORE_CHUNK_H

#include "model/rows.h"

#define PLUMB_CHUNK_ROWS 65536u
#define PLUMB_CHUNK_COLUMNS 16 /* of a table at most */
#define PLUMB_CHUNK_CODEC "zstd"

/* One chunk as a row has it. */
struct plumb_chunk {
	uint32_t group; /* the value that all of its rows have in the first column */
	uint32_t count;
	int64_t start_ns, end_ns; /* the first TIME; the last, or the last END if there is one */
	int64_t total_ns;         /* of all durations, if there is an END */
	int64_t busy_ns;          /* of their union */
	struct plumb_blob blobs[PLUMB_CHUNK_COLUMNS]; /* by column; no data: missing */
};

struct plumb_chunk_coder; /* scratch memory for packing and unpacking */

struct plumb_chunk_coder *plumb_chunk_coder_new(void);
void plumb_chunk_coder_free(struct plumb_chunk_coder *coder);

/* Packs ROWS: CHUNK->count rows of TABLE that are of one group, in the order of their times. Fills
 * in the rest of CHUNK. The coder owns its blobs, and they hold until the next call. */
int plumb_chunk_encode(struct plumb_chunk_coder *coder, const struct plumb_row_table *table,
                       const void *rows, struct plumb_chunk *chunk, struct plumb_error *error);

/* Unpacks CHUNK, which may hold anything, into CHUNK->count rows. Their ids are checked against
 * PROFILE. */
int plumb_chunk_decode(struct plumb_chunk_coder *coder, const struct plumb_row_table *table,
                       const struct plumb_profile *profile, const struct plumb_chunk *chunk,
                       void *rows, struct plumb_error *error);

#endif
