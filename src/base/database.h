/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a SQLite file for reading, trusting nothing in it: limits are set, and views and triggers
 * are off. Opened as immutable, it needs no lock and no second file, so that one on read-only media
 * or of another user opens too; what a write-ahead log beside it holds is not read.
 */
#ifndef PLUMB_BASE_DATABASE_H
#define PLUMB_BASE_DATABASE_H

#include <sqlite3.h>

#include "base/error.h"

/* *DB is for sqlite3_close also after a failure. Negative: an error. Positive: SQLite's code, for
 * which *DB (NULL: memory is out) has the message. */
int plumb_database_open(sqlite3 **db, const char *path, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Is TABLE a real table? Not a view or a virtual table, which could run anything. Negative:
 * SQLite's error. */
int plumb_database_has(sqlite3 *db, const char *table);

/* Does TABLE have columns that SQLite computes from an expression for each row it reads? Returns
 * the same numbers. */
int plumb_database_computes(sqlite3 *db, const char *table);

/* SQLite opens no longer paths: an error that says so. */
int plumb_database_path_fits(const char *path, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
