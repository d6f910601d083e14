/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first page is looked at before SQLite is: that gives better messages for files of another
 * kind. Opened as immutable, a profile needs no lock and no second file, so that one on read-only
 * media or of another user opens too.
 */
#include "store/open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/builder.h"
#include "store/schema.h"
#include "store/store.h"

#define HEADER_BYTES 100
/* How a region begins (region/layout.h, which is none of the store's business otherwise). */
#define REGION_MAGIC "PLUMBRG\n"
/* Longer paths are beyond SQLite. */
#define PATH_BYTES 500

static uint32_t
big_endian(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

bool
plumb_store_is_ours(const char *path)
{
	unsigned char header[HEADER_BYTES];
	struct stat status;
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	ssize_t bytes = read(fd, header, sizeof header);
	close(fd);
	if (bytes <= 0)
		return true;
	return (bytes >= 8 && !memcmp(header, REGION_MAGIC, 8)) ||
	       (bytes == HEADER_BYTES && !memcmp(header, "SQLite format 3", 16) &&
	        big_endian(header + 68) == PLUMB_STORE_APPLICATION_ID);
}

static int
check_header(const unsigned char *header, ssize_t bytes, uint32_t *number,
             struct plumb_error *error)
{
	if (!bytes)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "the file is empty, not a profile; run plumb again");
	if (bytes >= 8 && !memcmp(header, REGION_MAGIC, 8))
		return plumb_fail(error, PLUMB_EINPUT,
		                  "this is a region, not a profile; make one of its folder with "
		                  "`plumb settle FOLDER -o FILE`");
	if (bytes < HEADER_BYTES || memcmp(header, "SQLite format 3", 16) ||
	    big_endian(header + 68) != PLUMB_STORE_APPLICATION_ID)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "this is not a plumb profile; give a file that plumb wrote");
	uint32_t schema = big_endian(header + 60);
	if (schema > PLUMB_STORE_SCHEMA)
		return plumb_fail(
			error, PLUMB_EINPUT,
			"the profile has schema %u and this plumb knows schemas up to %d; "
			"use a newer plumb",
			schema, PLUMB_STORE_SCHEMA);
	*number = schema;
	if (!schema || big_endian(header + 56) != 1)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "the profile is damaged: impossible header; take a copy, or run "
		                  "plumb again");
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
			"this is a folder, not a profile; if it holds regions, make one with "
			"`plumb settle FOLDER -o FILE`");
	if (!S_ISREG(status.st_mode))
		return plumb_fail(error, PLUMB_EINPUT,
		                  "this is no regular file; give a file that plumb wrote");
	unsigned char header[HEADER_BYTES] = { 0 };
	ssize_t bytes = pread(fd, header, sizeof header, 0);
	if (bytes < 0)
		return plumb_fail_errno(error, "cannot read");
	*size = (uint64_t)status.st_size;
	return check_header(header, bytes, schema, error);
}

int
plumb_store_path_fits(const char *path, struct plumb_error *error)
{
	char folder[PATH_MAX] = "";
	if (*path != '/' && !getcwd(folder, sizeof folder))
		return plumb_fail_errno(error, "cannot find the working directory");
	if (strlen(folder) + 1 + strlen(path) > PATH_BYTES)
		return plumb_fail(
			error, PLUMB_ESYSTEM,
			"the whole path has more than %d bytes, which SQLite cannot open; "
			"use a shorter one",
			PATH_BYTES);
	return PLUMB_OK;
}

/* "file:PATH?immutable=1" with everything but plain characters escaped. */
static int
make_uri(char *uri, size_t size, const char *path, struct plumb_error *error)
{
	static const char hex[] = "0123456789ABCDEF";
	char absolute[PATH_MAX];
	int code = plumb_store_path_fits(path, error);
	if (code)
		return code;
	if (*path != '/') {
		if (!getcwd(absolute, sizeof absolute))
			return plumb_fail_errno(error, "cannot find the working directory");
	} else {
		*absolute = 0;
	}
	size_t folder = strlen(absolute);
	snprintf(absolute + folder, sizeof absolute - folder, "%s%.*s", folder ? "/" : "",
	         PATH_BYTES, path);
	size_t used = (size_t)snprintf(uri, size, "file:");
	const char *at = absolute;
	while (at[0] == '/' && at[1] == '/')
		at++; /* "//" would begin a host's name */
	for (; *at; at++) {
		unsigned char c = (unsigned char)*at;
		bool plain = c == '/' || c == '.' || c == '-' || c == '_' ||
		             (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
		             (c >= 'A' && c <= 'Z');
		if (plain) {
			uri[used++] = (char)c;
		} else {
			uri[used++] = '%';
			uri[used++] = hex[c >> 4];
			uri[used++] = hex[c & 15];
		}
	}
	snprintf(uri + used, size - used, "?immutable=1");
	return PLUMB_OK;
}

static int
distrust(sqlite3 *db)
{
	static const struct {
		int limit, value;
	} limits[] = {
		{ SQLITE_LIMIT_LENGTH, 4 * PLUMB_TEXT_MAX },
		{ SQLITE_LIMIT_SQL_LENGTH, 100000 },
		{ SQLITE_LIMIT_COLUMN, 500 },
		{ SQLITE_LIMIT_EXPR_DEPTH, 50 },
		{ SQLITE_LIMIT_COMPOUND_SELECT, 10 },
		{ SQLITE_LIMIT_VDBE_OP, 25000 },
		{ SQLITE_LIMIT_FUNCTION_ARG, 10 },
		{ SQLITE_LIMIT_ATTACHED, 0 },
		{ SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100 },
		{ SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
		{ SQLITE_LIMIT_WORKER_THREADS, 0 },
	};
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
		sqlite3_limit(db, limits[i].limit, limits[i].value);
	sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	return sqlite3_exec(db,
	                    "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; PRAGMA query_only=ON;",
	                    NULL, NULL, NULL);
}

int
plumb_store_connect(sqlite3 **db, const char *path, struct plumb_error *error)
{
	char uri[3 * PATH_BYTES + 32];
	*db = NULL;
	int code = make_uri(uri, sizeof uri, path, error);
	if (code)
		return code;
	/* The schema is read here for the first time: a damaged one shows. */
	if (sqlite3_open_v2(uri, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
	                    NULL) ||
	    distrust(*db))
		return *db ? sqlite3_errcode(*db) : SQLITE_NOMEM;
	return PLUMB_OK;
}

int
plumb_store_open(sqlite3 **db, const char *path, uint64_t *size, uint32_t *schema,
                 struct plumb_error *error)
{
	*db = NULL;
	/* O_NONBLOCK: a pipe without a writer must not hold us. */
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return plumb_fail_errno(error, "cannot open the profile");
	int code = check_file(fd, size, schema, error);
	close(fd);
	if (!code)
		code = plumb_store_connect(db, path, error);
	if (code > 0) {
		bool ours = code == SQLITE_NOMEM || code == SQLITE_CANTOPEN || code == SQLITE_IOERR;
		return plumb_fail(
			error, ours ? PLUMB_ESYSTEM : PLUMB_EINPUT,
			ours ? "cannot open the profile: %s; try again"
			     : "the profile is damaged: %s; take a copy, or run plumb again",
			*db ? sqlite3_errmsg(*db) : "not enough memory");
	}
	return code;
}
