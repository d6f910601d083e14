/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a profile file for reading, trusting nothing in it. Private to store/, and import/sqlite.c.
 */
#ifndef PLUMB_STORE_OPEN_H
#define PLUMB_STORE_OPEN_H

#include <sqlite3.h>
#include <stdint.h>

#include "base/error.h"

/* *SIZE and *SCHEMA: the file's. *DB is for sqlite3_close also after a failure. */
int plumb_store_open(sqlite3 **db, const char *path, uint64_t *size, uint32_t *schema,
                     struct plumb_error *error);

/* Any database, read-only and as it is (without locks and write-ahead log), with limits, views and triggers
 * off. Positive: SQLite's code, for which *DB has the message. *DB is as above. */
int plumb_store_connect(sqlite3 **db, const char *path, struct plumb_error *error);

/* SQLite opens no longer paths: an error that says so. */
int plumb_store_path_fits(const char *path, struct plumb_error *error);

#endif
