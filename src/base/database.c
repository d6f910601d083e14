/* SPDX-License-Identifier: Apache-2.0 */
#include "base/database.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Longer paths are beyond SQLite. */
#define PATH_BYTES 500
/* A longer text or blob is not handed over. */
#define TEXT_BYTES (64 << 20)

int
plumb_database_path_fits(const char *path, struct plumb_error *error)
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
	int code = plumb_database_path_fits(path, error);
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
limit_database(sqlite3 *db)
{
	static const struct {
		int limit, value;
	} limits[] = {
		{ SQLITE_LIMIT_LENGTH, TEXT_BYTES },
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
plumb_database_open(sqlite3 **db, const char *path, struct plumb_error *error)
{
	char uri[3 * PATH_BYTES + 32];
	*db = NULL;
	int code = make_uri(uri, sizeof uri, path, error);
	if (code)
		return code;
	/* The schema is read here for the first time: a damaged one shows. */
	if (sqlite3_open_v2(uri, db, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX,
	                    NULL) ||
	    limit_database(*db))
		return *db ? sqlite3_errcode(*db) : SQLITE_NOMEM;
	return PLUMB_OK;
}

/* 1: QUERY returns a row for TABLE. 0: it does not. Negative: SQLite failed. */
static int
query_finds(sqlite3 *db, const char *query, const char *table)
{
	sqlite3_stmt *statement = NULL;
	int stepped = SQLITE_ERROR;
	if (!sqlite3_prepare_v2(db, query, -1, &statement, NULL)) {
		sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
		stepped = sqlite3_step(statement);
	}
	sqlite3_finalize(statement);
	return stepped == SQLITE_ROW ? 1 : stepped == SQLITE_DONE ? 0 : -1;
}

int
plumb_database_has(sqlite3 *db, const char *table)
{
	/* A virtual table has no root page. */
	return query_finds(db,
	                   "SELECT 1 FROM sqlite_master "
	                   "WHERE type = 'table' AND rootpage > 0 AND name = ?",
	                   table);
}

int
plumb_database_computes(sqlite3 *db, const char *table)
{
	return query_finds(db, "SELECT 1 FROM pragma_table_xinfo(?) WHERE hidden", table);
}
