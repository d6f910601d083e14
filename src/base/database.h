/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a SQLite file for reading, trusting nothing in it: limits are set, and views and triggers are off.
 * Opened as immutable, it needs no lock and no second file, so that one on read-only media or of another user
 * opens too; what a write-ahead log beside it holds is not read.
 */
#ifndef PLUMB_BASE_DATABASE_H
#define PLUMB_BASE_DATABASE_H

#include <sqlite3.h>

#include "base/error.h"

/* *DB is for sqlite3_close also after a failure. Negative: an error. Positive: SQLite's code, for which *DB (NULL:
 * memory is out) has the message. */
int plumb_database_open(sqlite3 **db, const char *path, struct plumb_error *error) PLUMB_MUST_CHECK;

/* SQLite opens no longer paths: an error that says so. */
int plumb_database_path_fits(const char *path, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
