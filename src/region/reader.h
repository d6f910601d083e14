/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a region that a collector wrote, or was writing when it was killed, or that somebody
 * damaged: everything is checked (magic, version, endianness, bounds, lengths, alignment), nothing
 * is trusted, and no input crashes it.
 */
#ifndef PLUMB_REGION_READER_H
#define PLUMB_REGION_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "region/layout.h"

struct plumb_region_reader {
	const unsigned char *data; /* a private, read-only view */
	size_t size;
	struct plumb_region_header header; /* a checked copy */
	uint64_t damaged;                  /* chunks and records that were skipped as damaged */
	/* private */
	void *mapping;
	/* a bit for every 8 bytes: a record that was walked starts here */
	unsigned char *record_map;
};

/*
 * Opens PATH. Errors: PLUMB_ESYSTEM (cannot read), PLUMB_EINPUT (not a region, of a newer version,
 * truncated before the first chunk), each naming PATH and the reason. The whole region is walked
 * once, so that plumb_region_get can tell real records from pointers into nowhere.
 */
int plumb_region_open(struct plumb_region_reader *reader, const char *path,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/* As plumb_region_open for SIZE bytes in memory, which must outlive the reader. For tests. */
int plumb_region_open_memory(struct plumb_region_reader *reader, const void *data, size_t size,
                             const char *name, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_region_reader_close(struct plumb_region_reader *reader);

/* Walks all records in file order. Start with *cursor = 0; NULL at the end. */
const struct plumb_record *
plumb_region_next(const struct plumb_region_reader *reader, uint64_t *cursor);

/* The record ID, if there is one of TYPE that is at least LENGTH bytes long there; else NULL. */
const void *plumb_region_get(const struct plumb_region_reader *reader, plumb_id id,
                             enum plumb_record_type type, size_t length);

/* The text of string ID (not terminated) and its length, or NULL. */
const char *
plumb_region_string(const struct plumb_region_reader *reader, plumb_id id, size_t *bytes);

/* Whether NAME is more than SUFFIX and ends in it: PLUMB_REGION_SUFFIX, PLUMB_REFUSAL_SUFFIX. */
static inline bool
plumb_region_name_ends(const char *name, const char *suffix)
{
	size_t length = strlen(name), end = strlen(suffix);
	return length > end && !strcmp(name + length - end, suffix);
}

static inline plumb_id
plumb_region_reader_id(const struct plumb_region_reader *reader, const void *record)
{
	return (plumb_id)(((const unsigned char *)record - reader->data) >> 3);
}

#endif
