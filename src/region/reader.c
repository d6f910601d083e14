/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why it is done so:
 *
 * - The file is read into memory and not mapped: who truncates a mapped file kills its reader.
 *   A region is sparse and mostly unused, so only the part that chunks were taken from is read.
 * - The writer may still run. Each chunk's `used` is read once, when the chunk is walked, and kept
 *   in the bitmap of records; everything later asks the bitmap.
 */
#include "region/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/regular.h"

/* No id reaches further. */
#define LARGEST_REGION ((uint64_t)1 << 35)

static bool
is_record(const struct plumb_region_reader *reader, uint64_t offset)
{
	uint64_t slot = offset >> 3;

	return offset < reader->size && (reader->record_map[slot >> 3] >> (slot & 7) & 1);
}

static void
mark_record(struct plumb_region_reader *reader, uint64_t offset)
{
	uint64_t slot = offset >> 3;

	reader->record_map[slot >> 3] |= (unsigned char)(1u << (slot & 7));
}

/* ---- the walk ---- */

/* Marks the whole records in [START, START + USED); what follows a bad one in the chunk is lost. */
static void
walk_records(struct plumb_region_reader *reader, uint64_t start, uint64_t used)
{
	uint64_t offset = start, end = start + used;

	while (offset < end) {
		struct plumb_record head;

		if (end - offset < sizeof head) {
			reader->damaged++;
			return;
		}
		memcpy(&head, reader->data + offset, sizeof head);
		if (head.length < sizeof head || head.length % 8 || head.length > end - offset) {
			reader->damaged++;
			return;
		}
		mark_record(reader, offset);
		offset += head.length;
	}
}

/*
 * Walks the chunk at OFFSET and returns where the next one may begin. Chunks begin at multiples of
 * the chunk size, so the search goes on there when one is a hole (given up by a writer that found
 * no space, or died just after it took it: all zero) or is damaged.
 */
static uint64_t
walk_chunk(struct plumb_region_reader *reader, uint64_t offset)
{
	uint64_t left = reader->size - offset, room, used;
	struct plumb_chunk_header chunk;

	memcpy(&chunk, reader->data + offset, sizeof chunk);
	if (!chunk.magic)
		return offset + PLUMB_CHUNK_SIZE;
	if (chunk.magic != PLUMB_CHUNK_MAGIC || !chunk.size || chunk.size % PLUMB_CHUNK_SIZE) {
		reader->damaged++;
		return offset + PLUMB_CHUNK_SIZE;
	}
	/* A file that was cut inside the chunk still holds its first records. */
	room = (chunk.size < left ? chunk.size : left) - sizeof chunk;
	used = atomic_load_explicit(&chunk.used, memory_order_relaxed);
	if (used <= room && chunk.size <= left) {
		walk_records(reader, offset + sizeof chunk, used);
		return offset + chunk.size;
	}
	reader->damaged++;
	if (used > room)
		used = room;
	walk_records(reader, offset + sizeof chunk, used);
	return offset + PLUMB_CHUNK_SIZE * (1 + (sizeof chunk + used - 1) / PLUMB_CHUNK_SIZE);
}

/* ---- opening ---- */

/* Checks the header's copy. SIZE is what there is of the region's file. */
static int
check_header(const struct plumb_region_header *header, uint64_t size, const char *name,
             struct plumb_error *error)
{
	if (memcmp(header->magic, PLUMB_REGION_MAGIC, sizeof header->magic))
		return plumb_fail(error, PLUMB_EINPUT, "%s is not a region of plumb", name);
	if (header->endian != PLUMB_REGION_ENDIAN)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s comes from a machine with the other byte order, or is "
		                  "damaged; settle it on a machine like that one",
		                  name);
	if (header->min_version > PLUMB_REGION_VERSION || !header->version)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s has region version %u, and this plumb reads up to %u; settle "
		                  "it with the plumb that recorded it",
		                  name, header->min_version, PLUMB_REGION_VERSION);
	if (header->header_size != PLUMB_REGION_HEADER_SIZE ||
	    header->chunk_size != PLUMB_CHUNK_SIZE)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s is damaged: the sizes in its header are wrong", name);
	if (size < PLUMB_REGION_HEADER_SIZE + sizeof(struct plumb_chunk_header))
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s is cut off: it ends before the first record", name);
	return 0;
}

/* How far chunks may reach in a file of SIZE bytes. A `next` that is impossible is not used. */
static uint64_t
find_extent(const struct plumb_region_header *header, uint64_t size, bool *damaged)
{
	uint64_t next = atomic_load_explicit(&header->next, memory_order_relaxed);

	if (size > LARGEST_REGION)
		size = LARGEST_REGION;
	*damaged = next < PLUMB_REGION_HEADER_SIZE || next > size ||
	           (next - PLUMB_REGION_HEADER_SIZE) % PLUMB_CHUNK_SIZE;
	return *damaged ? size : next;
}

/* Memory for a copy of the region: zero, and taken only where it is written. */
static bool
make_room(struct plumb_region_reader *reader)
{
	void *memory = mmap(NULL, reader->size, PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return false;
	reader->mapping = memory;
	reader->data = memory;
	return true;
}

/* The data is there: walks it. */
static int
start_reader(struct plumb_region_reader *reader, const char *name, bool damaged,
             struct plumb_error *error)
{
	reader->record_map = calloc(reader->size / 64 + 1, 1);
	if (!reader->record_map) {
		plumb_region_reader_close(reader);
		return plumb_fail_memory(error, "to read %s", name);
	}
	reader->damaged = damaged;
	for (uint64_t at = PLUMB_REGION_HEADER_SIZE;
	     at < reader->size && reader->size - at >= sizeof(struct plumb_chunk_header);)
		at = walk_chunk(reader, at);
	return 0;
}

int
plumb_region_open_memory(struct plumb_region_reader *reader, const void *data, size_t size,
                         const char *name, struct plumb_error *error)
{
	bool damaged;
	int code;

	memset(reader, 0, sizeof *reader);
	if (size < sizeof reader->header)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s is not a region of plumb: it is too short", name);
	memcpy(&reader->header, data, sizeof reader->header);
	code = check_header(&reader->header, size, name, error);
	if (code)
		return code;
	reader->size = (size_t)find_extent(&reader->header, size, &damaged);
	if ((uintptr_t)data % 8 == 0) {
		reader->data = data;
	} else {
		/* Records are read in place, so they must lie at their alignment. */
		if (!make_room(reader))
			return plumb_fail_memory(error, "to read %s", name);
		memcpy(reader->mapping, data, reader->size);
	}
	return start_reader(reader, name, damaged, error);
}

/* Reads up to SIZE bytes at OFFSET; fewer at the end of the file, negative with errno. */
static ssize_t
read_at(int fd, void *buffer, size_t size, uint64_t offset)
{
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, (char *)buffer + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (!n)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/*
 * Reads the bytes [0, READER->size) of the file, but for its holes, which stay zero without taking
 * memory. A file system that cannot tell holes gives the whole range as data.
 */
static bool
read_data(struct plumb_region_reader *reader, int fd, unsigned char *into)
{
	off_t offset = 0, size = (off_t)reader->size;

	while (offset < size) {
		off_t data = lseek(fd, offset, SEEK_DATA), hole;
		if (data < 0 && errno == ENXIO)
			return true;
		if (data < 0)
			data = offset;
		if (data >= size)
			return true;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole <= data || hole > size)
			hole = size;
		if (read_at(fd, into + data, (size_t)(hole - data), (uint64_t)data) < 0)
			return false;
		offset = hole;
	}
	return true;
}

static int
open_file(struct plumb_region_reader *reader, int fd, const char *path, struct plumb_error *error)
{
	struct stat st;
	bool damaged;
	ssize_t n;
	int code;

	if (fstat(fd, &st))
		return plumb_fail_errno(error, "cannot read %s", path);
	n = read_at(fd, &reader->header, sizeof reader->header, 0);
	if (n < 0)
		return plumb_fail_errno(error, "cannot read %s", path);
	if ((size_t)n < sizeof reader->header)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s is not a region of plumb: it is too short", path);
	code = check_header(&reader->header, (uint64_t)st.st_size, path, error);
	if (code)
		return code;
	reader->size = (size_t)find_extent(&reader->header, (uint64_t)st.st_size, &damaged);
	if (!make_room(reader))
		return plumb_fail_memory(error, "to read %s", path);
	if (!read_data(reader, fd, reader->mapping)) {
		code = plumb_fail_errno(error, "cannot read %s", path);
		plumb_region_reader_close(reader);
		return code;
	}
	return start_reader(reader, path, damaged, error);
}

int
plumb_region_open(struct plumb_region_reader *reader, const char *path, struct plumb_error *error)
{
	int fd, code;

	memset(reader, 0, sizeof *reader);
	/* A pipe of that name must not make us wait, and a link could lead to anybody's file. */
	fd = plumb_regular_open(AT_FDCWD, path, O_NOFOLLOW);
	if (fd < 0 && (errno == EINVAL || errno == EISDIR || errno == ELOOP))
		return plumb_fail(error, PLUMB_EINPUT, "%s is %s", path,
		                  errno == ELOOP ? "it is a link, and plumb does not follow links"
		                                 : "not a file");
	if (fd < 0)
		return plumb_fail_errno(error, "cannot read %s", path);
	code = open_file(reader, fd, path, error);
	close(fd);
	return code;
}

void
plumb_region_reader_close(struct plumb_region_reader *reader)
{
	if (reader->mapping)
		munmap(reader->mapping, reader->size);
	free(reader->record_map);
	memset(reader, 0, sizeof *reader);
}

/* ---- records ---- */

const struct plumb_record *
plumb_region_next(const struct plumb_region_reader *reader, uint64_t *cursor)
{
	uint64_t slot = *cursor >> 3, slots = reader->size >> 3;

	while (slot < slots) {
		unsigned rest = reader->record_map[slot >> 3] >> (slot & 7);
		if (!rest) {
			slot = (slot | 7) + 1;
			continue;
		}
		slot += (unsigned)__builtin_ctz(rest);
		const struct plumb_record *record =
			(const struct plumb_record *)(reader->data + (slot << 3));
		*cursor = (slot << 3) + record->length;
		return record;
	}
	*cursor = reader->size;
	return NULL;
}

const void *
plumb_region_get(const struct plumb_region_reader *reader, plumb_id id, enum plumb_record_type type,
                 size_t length)
{
	uint64_t offset = (uint64_t)id << 3;
	const struct plumb_record *record;

	if (!is_record(reader, offset))
		return NULL;
	record = (const struct plumb_record *)(reader->data + offset);
	return record->type == type && record->length >= length ? record : NULL;
}

const char *
plumb_region_string(const struct plumb_region_reader *reader, plumb_id id, size_t *bytes)
{
	const struct plumb_record_string *string =
		plumb_region_get(reader, id, PLUMB_RECORD_STRING, sizeof *string);

	if (!string || string->bytes > string->head.length - sizeof *string)
		return NULL;
	*bytes = string->bytes;
	return (const char *)(string + 1);
}
