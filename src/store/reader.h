/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of reading share: read.c (the file, and what holds between rows), read_cells.c,
 * read_chunks.c. All return PLUMB_OK, or a code with the reader's error filled. Private to store/.
 */
#ifndef PLUMB_STORE_READER_H
#define PLUMB_STORE_READER_H

#include <sqlite3.h>

#include "base/strtab.h"
#include "model/rows.h"

enum plumb_reader_answer { PLUMB_READER_UNASKED, PLUMB_READER_YES, PLUMB_READER_NO };
enum plumb_reader_part { PLUMB_READER_ALL, PLUMB_READER_STREAMS, PLUMB_READER_TOTALS };

struct plumb_reader {
	sqlite3 *db;
	struct plumb_profile *profile;
	struct plumb_strtab *strings;
	uint64_t text_left; /* how many bytes of text may still come */
	int64_t steps;      /* how many steps SQLite's machine may still take */
	uint32_t schema;    /* of the file */
	enum plumb_reader_part part;
	enum plumb_reader_answer has_copies; /* of rows (packed.h) */
	const char *table;                   /* for messages */
	int64_t row;
	struct plumb_error *error;
};

int plumb_reader_damaged(struct plumb_reader *reader, const char *what);
int plumb_reader_no_memory(struct plumb_reader *reader);
int plumb_reader_fail_sql(struct plumb_reader *reader);

/* ---- cells: AT is the column of the statement ---- */

int plumb_reader_number(struct plumb_reader *reader, sqlite3_stmt *select, int at, int64_t *number);
/* The text belongs to the statement. *TEXT is NULL for NULL. */
int plumb_reader_text(struct plumb_reader *reader, sqlite3_stmt *select, int at, const char **text,
                      size_t *bytes);
int
plumb_reader_string(struct plumb_reader *reader, sqlite3_stmt *select, int at, uint32_t *string);
/* Fills the field of COLUMN in ROW. */
int plumb_reader_cell(struct plumb_reader *reader, sqlite3_stmt *select, int at,
                      const struct plumb_row_column *column, void *row);

/* ---- tables ---- */

/* SELECT id, COLUMNS FROM the reader's table, in the order of ids. */
int plumb_reader_select(struct plumb_reader *reader, const char *columns, sqlite3_stmt **select);
/* The next row, whose id must be the reader's row. */
int plumb_reader_next(struct plumb_reader *reader, sqlite3_stmt *select, bool *found);

/* The rows of TABLE, as the file has them: each on its own, or as chunks. */
int plumb_reader_rows(struct plumb_reader *reader, const struct plumb_row_table *table);
int plumb_reader_chunks(struct plumb_reader *reader, const struct plumb_row_table *table);

#endif
