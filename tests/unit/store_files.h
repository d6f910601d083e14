/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of profile files: a folder of the test's own (`setup`, `teardown`) with two names for
 * files in it, profiles written there and read, and what an error must say.
 */
#ifndef PLUMB_TESTS_STORE_FILES_H
#define PLUMB_TESTS_STORE_FILES_H

#include <dirent.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sample.h"
#include "store/store.h"

static char folder[64], path[128], other[128];

static inline int
setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/plumb-store-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/a b%%?#.plumb", folder); /* as nasty as a name may be */
	snprintf(other, sizeof other, "%s/other", folder);
	return 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	unlink(path);
	unlink(other);
	return rmdir(folder);
}

static inline unsigned
files_in_folder(const char *name)
{
	unsigned count = 0;
	DIR *dir = opendir(name);
	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count - 2;
}

static inline void
write_profile(const struct plumb_profile *profile, const char *to)
{
	struct plumb_error error = { 0 };
	if (plumb_store_write(profile, to, NULL, NULL, &error))
		fail_msg("%s", error.message);
}

static inline void
read_profile(struct plumb_profile *profile, const char *from)
{
	struct plumb_error error = { 0 };
	if (plumb_store_read(profile, from, &error))
		fail_msg("%s", error.message);
}

static inline void
write_sample(void)
{
	struct plumb_profile profile;
	struct sample_ids ids;
	assert_int_equal(sample_build(&profile, &ids, NULL), 0);
	unlink(path); /* a test may have made something else of it, which is not replaced */
	write_profile(&profile, path);
	plumb_profile_free(&profile);
}

/* Runs TEXT on the file. */
static inline void
sql(const char *file, const char *text)
{
	sqlite3 *db;
	char *message = NULL;
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	/* A thousand waits for the disk take seconds. */
	assert_int_equal(sqlite3_exec(db, "PRAGMA synchronous=OFF", NULL, NULL, NULL), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, &message))
		fail_msg("%s: %s", text, message);
	sqlite3_close(db);
}

/* CODE is WANTED, and the error says so in one line that has NAME. */
static inline void
assert_refused(int code, int wanted, const struct plumb_error *error, const char *name)
{
	if (code != wanted)
		fail_msg("%s: code %d: %s", name, code, code ? error->message : "accepted");
	assert_int_equal(error->code, wanted);
	assert_non_null(strstr(error->message, name));
	assert_null(strchr(error->message, '\n'));
}

#endif
