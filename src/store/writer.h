/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of writing share: write.c (the file and its tables), write_chunks.c. Private to
 * store/. */
#ifndef PLUMB_STORE_WRITER_H
#define PLUMB_STORE_WRITER_H

#include <sqlite3.h>

#include "model/rows.h"

struct plumb_writer {
	const struct plumb_profile *profile;
	sqlite3 *db;
	void (*progress)(void *data, double part);
	void *data;
	uint64_t done, rows;
	/* The table of the file that takes chunks, and the id of the next one. */
	const char *chunks;
	int64_t chunk;
};

int plumb_writer_execute(struct plumb_writer *writer, const char *sql, struct plumb_error *error);
/* INSERT INTO TABLE VALUES(?1, ?2, …); TABLE may name its columns. */
int plumb_writer_prepare(struct plumb_writer *writer, const char *table, unsigned columns,
                         sqlite3_stmt **insert, struct plumb_error *error);
int plumb_writer_step(struct plumb_writer *writer, sqlite3_stmt *insert, struct plumb_error *error);

/* The rows of TABLE, as the file has them: each on its own, or as chunks. */
int plumb_writer_rows(struct plumb_writer *writer, const struct plumb_row_table *table,
                      struct plumb_error *error);
int plumb_writer_chunks(struct plumb_writer *writer, const struct plumb_row_table *table,
                        struct plumb_error *error);

#endif
