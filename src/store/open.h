/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens a profile file for reading, and trusts nothing in it. Private to store/.
 */
#ifndef PLUMB_STORE_OPEN_H
#define PLUMB_STORE_OPEN_H

#include <sqlite3.h>
#include <stdint.h>

#include "base/error.h"

/* *SIZE and *SCHEMA are those of the file. Call sqlite3_close on *DB also after a failure. */
int plumb_store_open(sqlite3 **db, const char *path, uint64_t *size, uint32_t *schema,
                     struct plumb_error *error);

#endif
