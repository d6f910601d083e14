/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first page is checked before SQLite opens the file. This gives better messages for files of
 * another kind.
 */
#include "store/open.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/database.h"
#include "base/regular.h"
#include "store/schema.h"
#include "store/store.h"

#define HEADER_BYTES 100
/* How a region begins (region/layout.h). The store needs nothing else of it, and so does not
 * include it. */
#define REGION_MAGIC "PLUMBRG\n"

static uint32_t
big_endian(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The first bytes of the regular file PATH, or -1. Other kinds of files are not opened at all: if
 * we closed a named pipe, its writer would think that nobody reads it any more. */
static ssize_t
read_header(const char *path, unsigned char header[HEADER_BYTES])
{
	struct stat status;
	if (stat(path, &status) < 0 || !S_ISREG(status.st_mode))
		return -1;
	int fd = plumb_regular_open(AT_FDCWD, path, 0);
	if (fd < 0)
		return -1;
	ssize_t bytes = read(fd, header, HEADER_BYTES);
	close(fd);
	return bytes;
}

bool
plumb_store_is_profile(const char *path)
{
	unsigned char header[HEADER_BYTES];
	return read_header(path, header) == HEADER_BYTES &&
	       !memcmp(header, "SQLite format 3", 16) &&
	       big_endian(header + 68) == PLUMB_STORE_APPLICATION_ID;
}

bool
plumb_store_is_ours(const char *path)
{
	unsigned char header[HEADER_BYTES];
	struct stat status;
	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
		return false;
	ssize_t bytes = read_header(path, header);
	return bytes <= 0 || (bytes >= 8 && !memcmp(header, REGION_MAGIC, 8)) ||
	       plumb_store_is_profile(path);
}

static int
check_header(const unsigned char *header, ssize_t bytes, uint64_t size, uint32_t *number,
             struct plumb_error *error)
{
	if (!bytes)
		return plumb_fail(error, PLUMB_EINPUT, "the file is empty; run plumb again");
	if (bytes >= 8 && !memcmp(header, REGION_MAGIC, 8))
		return plumb_fail(error, PLUMB_EINPUT,
		                  "this is a region, not a profile; make a profile of its folder "
		                  "with `plumb settle FOLDER -o FILE`");
	if (bytes < HEADER_BYTES || memcmp(header, "SQLite format 3", 16) ||
	    big_endian(header + 68) != PLUMB_STORE_APPLICATION_ID)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "this is not a plumb profile; give a file that plumb wrote");
	uint32_t schema = big_endian(header + 60);
	if (schema > PLUMB_STORE_SCHEMA)
		return plumb_fail(
			error, PLUMB_EINPUT,
			"the profile has schema %u, but this plumb knows schemas up to %d; use a "
			"newer plumb",
			schema, PLUMB_STORE_SCHEMA);
	*number = schema;
	/* SQLite treats a page that is cut off as a whole one. */
	uint32_t page = (uint32_t)header[16] << 8 | header[17];
	if (size % (page == 1 ? 65536 : page < 512 ? 512 : page))
		return plumb_fail(error, PLUMB_EINPUT,
		                  "the profile is damaged: its end is missing; copy the file "
		                  "again, or run plumb again");
	if (!schema || big_endian(header + 56) != 1)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "the profile is damaged: its header is wrong; copy the file "
		                  "again, or run plumb again");
	return PLUMB_OK;
}

static int
check_file(int fd, uint64_t *size, uint32_t *schema, struct plumb_error *error)
{
	struct stat status;
	if (fstat(fd, &status))
		return plumb_fail_errno(error, "cannot read");
	if (S_ISDIR(status.st_mode))
		return plumb_fail(
			error, PLUMB_EINPUT,
			"this is a folder, not a profile; if it holds regions, make a profile "
			"with `plumb settle FOLDER -o FILE`");
	if (!S_ISREG(status.st_mode))
		return plumb_fail(error, PLUMB_EINPUT,
		                  "this is not a regular file; give a file that plumb wrote");
	unsigned char header[HEADER_BYTES] = { 0 };
	ssize_t bytes = pread(fd, header, sizeof header, 0);
	if (bytes < 0)
		return plumb_fail_errno(error, "cannot read");
	*size = (uint64_t)status.st_size;
	return check_header(header, bytes, *size, schema, error);
}

int
plumb_store_open(sqlite3 **db, const char *path, uint64_t *size, uint32_t *schema,
                 struct plumb_error *error)
{
	*db = NULL;
	/* O_NONBLOCK: we must not wait for the writer of a pipe. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return plumb_fail_errno(error, "cannot open the profile");
	int code = check_file(fd, size, schema, error);
	close(fd);
	if (!code)
		code = plumb_database_open(db, path, error);
	if (code == SQLITE_NOMEM)
		return plumb_fail_memory(error, "to open the profile");
	if (code > 0) {
		bool ours = code == SQLITE_CANTOPEN || code == SQLITE_IOERR;
		return plumb_fail(
			error, ours ? PLUMB_ESYSTEM : PLUMB_EINPUT,
			ours ? "cannot open the profile: %s; try again"
			     : "the profile is damaged: %s; copy the file again, or run plumb "
			       "again",
			sqlite3_errmsg(*db));
	}
	return code;
}
