/* SPDX-License-Identifier: Apache-2.0 */
#include "region/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "base/regular.h"

struct file_header {
	char magic[8];
	uint32_t version;
	uint32_t count;
	uint64_t looks;
};

struct part_header {
	uint64_t start, end;
	uint32_t value_count, device_count;
};

int
plumb_parts_write(const struct plumb_parts *parts, const char *path, struct plumb_error *error)
{
	struct plumb_output_rule rule = { .force = true, .private = true, .plain = true };
	struct file_header header = { .version = PLUMB_PARTS_VERSION,
		                      .count = parts->count,
		                      .looks = parts->looks };
	struct plumb_output output;

	if (plumb_output_open(&output, path, &rule, error) < 0)
		return PLUMB_ESYSTEM;
	memcpy(header.magic, PLUMB_PARTS_MAGIC, sizeof header.magic);
	fwrite(&header, sizeof header, 1, output.file);
	for (uint32_t i = 0; i < parts->count; i++) {
		const struct plumb_part *part = &parts->items[i];
		struct part_header head = { part->start, part->end, part->value_count,
			                    part->device_count };
		fwrite(&head, sizeof head, 1, output.file);
		if (part->value_count)
			fwrite(part->values, sizeof *part->values, part->value_count, output.file);
		if (part->device_count)
			fwrite(part->devices, sizeof *part->devices, part->device_count,
			       output.file);
	}
	return plumb_output_close(&output, error);
}

/* Reads SIZE bytes of what is LEFT into AT. */
static bool
read_bytes(FILE *in, uint64_t *left, void *at, uint64_t size)
{
	if (size > *left || fread(at, 1, size, in) != size)
		return false;
	*left -= size;
	return true;
}

/* COUNT items of SIZE bytes; NULL if the file is too short or memory is out. */
static void *
read_items(FILE *in, uint64_t *left, uint32_t count, size_t size)
{
	void *items = (uint64_t)count * size <= *left ? malloc(count * size + 1) : NULL;

	if (items && !read_bytes(in, left, items, (uint64_t)count * size)) {
		free(items);
		items = NULL;
	}
	return items;
}

/* Parts must follow each other in time. */
static bool
read_part(FILE *in, uint64_t *left, uint64_t after, struct plumb_part *part)
{
	struct part_header head;

	if (!read_bytes(in, left, &head, sizeof head) || head.start < after ||
	    head.end < head.start || head.end > INT64_MAX)
		return false;
	part->start = head.start;
	part->end = head.end;
	part->values = read_items(in, left, head.value_count, sizeof *part->values);
	part->value_count = part->values ? head.value_count : 0;
	part->devices = part->values
	                        ? read_items(in, left, head.device_count, sizeof *part->devices)
	                        : NULL;
	part->device_count = part->devices ? head.device_count : 0;
	return part->devices;
}

static bool
read_all(FILE *in, uint64_t left, struct plumb_parts *parts)
{
	struct file_header header;

	if (!read_bytes(in, &left, &header, sizeof header) ||
	    memcmp(header.magic, PLUMB_PARTS_MAGIC, sizeof header.magic) ||
	    header.version != PLUMB_PARTS_VERSION || header.count > PLUMB_PARTS_MOST)
		return false;
	parts->looks = header.looks;
	parts->items = calloc((size_t)header.count + 1, sizeof *parts->items);
	for (uint32_t i = 0; parts->items && i < header.count; i++) {
		parts->count++;
		if (!read_part(in, &left, i ? parts->items[i - 1].end : 0, &parts->items[i]))
			return false;
	}
	return parts->items;
}

int
plumb_parts_read(struct plumb_parts *parts, const char *path, struct plumb_error *error)
{
	int fd = plumb_regular_open(AT_FDCWD, path, O_NOFOLLOW);
	struct stat status;

	*parts = (struct plumb_parts){ 0 };
	if (fd < 0)
		return plumb_fail(error, errno == ENOENT ? PLUMB_EEMPTY : PLUMB_ESYSTEM,
		                  "cannot read %s", path);
	FILE *in = fstat(fd, &status) ? NULL : fdopen(fd, "rb");
	if (!in) {
		close(fd);
		return plumb_fail_errno(error, "cannot read %s", path);
	}
	bool whole = read_all(in, (uint64_t)status.st_size, parts);
	fclose(in);
	if (whole)
		return PLUMB_OK;
	plumb_parts_free(parts);
	return plumb_fail(error, PLUMB_EINPUT, "%s is damaged", path);
}

void
plumb_parts_free(struct plumb_parts *parts)
{
	for (uint32_t i = 0; i < parts->count; i++) {
		free(parts->items[i].values);
		free(parts->items[i].devices);
	}
	free(parts->items);
	*parts = (struct plumb_parts){ 0 };
}
