/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a region: reading and settling them gives an error or a profile, and no crash. To
 * reach deeper, the header and the heads of chunks are mended first when the first byte is odd.
 * With its second bit, the last two bytes say how many before them are what `plumb run` noted.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/windows.h"
#include "model/window.h"
#include "region/copies.h"
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

struct noted {
	const uint8_t *bytes;
	size_t size;
	bool mend;
};

static void
mend_noted(char *bytes, size_t size)
{
	struct plumb_copies_header *header = (void *)bytes;
	struct plumb_copies_part *parts = (void *)(header + 1);

	if (size < sizeof *header)
		return;
	memcpy(header->magic, PLUMB_COPIES_MAGIC, sizeof header->magic);
	header->version = PLUMB_COPIES_VERSION;
	header->parts = header->parts % 4 + 1;
	header->regions %= 3;
	size -= sizeof *header;
	if (size <
	    header->parts * sizeof *parts + header->regions * sizeof(struct plumb_copies_region))
		return;
	for (uint32_t i = 0; i < header->parts; i++)
		parts[i] = (struct plumb_copies_part){ 1000 * i, 1000 * i + 1000, 1000 * i,
			                               1000 * i + 1000 };
	size -= header->parts * sizeof *parts +
	        header->regions * sizeof(struct plumb_copies_region);
	header->entries = (uint32_t)(size / sizeof(struct plumb_copies_entry));
	if (header->regions)
		((struct plumb_copies_region *)(parts + header->parts))->entries = header->entries;
}

static void
take_noted(struct plumb_settler *settler, const struct noted *noted)
{
	char *bytes = noted->size ? malloc(noted->size) : NULL;

	if (!bytes)
		return;
	memcpy(bytes, noted->bytes, noted->size);
	if (noted->mend)
		mend_noted(bytes, noted->size);
	plumb_settle_copies_take(settler, bytes, noted->size, 0);
}

static void
try_windows(struct plumb_profile *profile)
{
	struct plumb_window_choice loop = { .kind = PLUMB_WINDOW_LOOP };
	struct plumb_profile window;

	if (plumb_windows_label(profile, NULL))
		return;
	if (!plumb_window_profile(profile, &loop, &window, NULL))
		plumb_profile_free(&window);
}

/* The same region as two processes, so that devices are shared. */
static void
settle(const struct plumb_region_reader *reader, const struct noted *noted)
{
	struct plumb_settler settler;
	struct plumb_profile profile = { 0 };
	struct plumb_error error;

	if (plumb_settler_init(&settler, 1)) {
		take_noted(&settler, noted);
		plumb_settle_one(&settler, reader, 0, false);
		plumb_settle_one(&settler, reader, 0, true);
		plumb_settle_one(&settler, reader, 0, false);
		if (plumb_settler_finish(&settler, NULL, &profile, &error) == PLUMB_EINPUT)
			abort(); /* the builder was given a bad row */
		try_windows(&profile);
	}
	plumb_profile_free(&profile);
	plumb_settler_free(&settler);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plumb_region_reader reader;
	struct plumb_error error;
	struct noted noted = { .mend = size && data[0] & 1 };
	unsigned char *copy;

	if (size > 3 && data[0] & 2) {
		size_t bytes = data[size - 2] | (size_t)data[size - 1] << 8;
		size -= 2;
		noted.size = bytes < size - 1 ? bytes : 0;
		noted.bytes = data + size - noted.size;
		size -= noted.size;
	}
	if (!size)
		return 0;
	copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, size - 1);
	if (data[0] & 1)
		mend(copy, size - 1);
	if (!plumb_region_open_memory(&reader, copy, size - 1, "fuzz", &error)) {
		settle(&reader, &noted);
		plumb_region_reader_close(&reader);
	}
	free(copy);
	return 0;
}
