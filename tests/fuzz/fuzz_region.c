/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a region: reading and settling them gives an error or a profile, and no crash. To
 * reach deeper, the header and the heads of chunks are mended first when the first byte is odd.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "settle/settle_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
mend(unsigned char *region, size_t size)
{
	struct plumb_region_header *header = (struct plumb_region_header *)region;

	if (size < PLUMB_REGION_HEADER_SIZE)
		return;
	memcpy(header->magic, PLUMB_REGION_MAGIC, sizeof header->magic);
	header->version = header->min_version = PLUMB_REGION_VERSION;
	header->endian = PLUMB_REGION_ENDIAN;
	header->header_size = PLUMB_REGION_HEADER_SIZE;
	header->chunk_size = PLUMB_CHUNK_SIZE;
	for (size_t at = PLUMB_REGION_HEADER_SIZE; at + sizeof(struct plumb_chunk_header) <= size;
	     at += PLUMB_CHUNK_SIZE) {
		struct plumb_chunk_header *chunk = (struct plumb_chunk_header *)(region + at);
		chunk->magic = PLUMB_CHUNK_MAGIC;
		chunk->size = PLUMB_CHUNK_SIZE;
	}
}

/* The same region as two processes, so that devices are shared. */
static void
settle(const struct plumb_region_reader *reader)
{
	struct plumb_settler settler;
	struct plumb_profile profile = { 0 };
	struct plumb_error error;

	if (plumb_settler_init(&settler, 1)) {
		plumb_settle_one(&settler, reader, 0, false);
		plumb_settle_one(&settler, reader, 0, true);
		plumb_settle_one(&settler, reader, 0, false);
		if (plumb_settler_finish(&settler, NULL, &profile, &error) == PLUMB_EINPUT)
			abort(); /* the builder was given a bad row */
	}
	plumb_profile_free(&profile);
	plumb_settler_free(&settler);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plumb_region_reader reader;
	struct plumb_error error;
	unsigned char *copy;

	if (!size)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 1)
		mend(copy, size - 1);
	if (!plumb_region_open_memory(&reader, copy, size - 1, "fuzz", &error)) {
		settle(&reader);
		plumb_region_reader_close(&reader);
	}
	free(copy);
	return 0;
}
