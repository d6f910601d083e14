/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Foreign SQLite databases, for the formats that are one. Whatever the file, nothing in it is run:
 * tables are read as they are, by columns that they have; views, triggers, virtual tables and
 * computed columns are as if they were not there. What it may cost is bounded by the file's size.
 *
 *	struct plumb_sqlite sqlite;
 *	struct plumb_rows rows;
 *	enum { START, NAME };
 *	if (plumb_sqlite_open(&sqlite, file, error) < 0) …
 *	plumb_rows_open(&rows, &sqlite, "rocpd_api",
 *	                (const char *const[]){ "start", "apiName_id", NULL });
 *	while (plumb_rows_next(&rows))
 *		plumb_rows_integer(&rows, START) …
 *	plumb_rows_close(&rows);
 *	return plumb_sqlite_close(&sqlite);
 *
 * After a failure every function gives nothing: the code that plumb_sqlite_close returns is checked
 * once.
 */
#ifndef PLUMB_IMPORT_SQLITE_H
#define PLUMB_IMPORT_SQLITE_H

#include <sqlite3.h>

#include "base/map.h"
#include "base/pool.h"
#include "base/vec.h"
#include "import/import.h"

struct plumb_sqlite {
	sqlite3 *db;
	const char *path; /* as the person gave it */
	struct plumb_error *error;
	int code; /* negative: failed, with ERROR filled */
	/* What may still be spent. */
	int64_t steps, rows, bytes;
};

/* FILE must begin like a database (plumb_sqlite_is). Errors: PLUMB_EINPUT, PLUMB_ESYSTEM. */
int plumb_sqlite_open(struct plumb_sqlite *sqlite, const struct plumb_import_file *file,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/* The first failure's code, or 0. May be called after plumb_sqlite_open failed. */
int plumb_sqlite_close(struct plumb_sqlite *sqlite);

/* For a probe. 1: FILE has tables of all these names. 0: it does not. -1: it is a database that
 * cannot be opened. The list ends with NULL, and a name that ends with "*" stands for any table
 * that begins like it. */
int plumb_sqlite_probe(const struct plumb_import_file *file, const char *const *tables);

bool plumb_sqlite_has(struct plumb_sqlite *sqlite, const char *table);

/* Of the tables whose names begin with PREFIX, the rest of the name of the one with NUMBER (from
 * 0). False if there are fewer tables. */
bool plumb_sqlite_suffix(struct plumb_sqlite *sqlite, const char *prefix, uint32_t number,
                         char *suffix, size_t size);

/* ---- rows ---- */

#define PLUMB_ROWS_COLUMNS 32

struct plumb_rows {
	struct plumb_sqlite *sqlite;
	sqlite3_stmt *statement; /* NULL: there is no such table */
	char table[160];
	uint32_t present; /* bit by column */
	int64_t row;
};

/* All rows of TABLE, in any order; COLUMNS ends with NULL, and one that the table lacks is unknown
 * in every row. A table that is not there has no rows. */
void plumb_rows_open(struct plumb_rows *rows, struct plumb_sqlite *sqlite, const char *table,
                     const char *const *columns);
/* For plumb_rows_find: the rows whose column KEY is a number. */
void plumb_rows_open_by(struct plumb_rows *rows, struct plumb_sqlite *sqlite, const char *table,
                        const char *key, const char *const *columns);
void plumb_rows_close(struct plumb_rows *rows);

bool plumb_rows_next(struct plumb_rows *rows);
/* The first row with KEY; false: none has it. */
bool plumb_rows_find(struct plumb_rows *rows, int64_t key);

/* Of the current row. PLUMB_UNKNOWN: nothing, or no whole number. */
int64_t plumb_rows_integer(const struct plumb_rows *rows, int column);
/* A text is valid until the next row. `at` is NULL if there is no text. */
struct plumb_slice plumb_rows_text(struct plumb_rows *rows, int column);
/* Does the table have it? */
static inline bool
plumb_rows_has(const struct plumb_rows *rows, int column)
{
	return rows->present >> column & 1;
}

/* ---- texts by number ---- */

#define PLUMB_TEXT_USES 4

struct plumb_sqlite_text {
	int64_t id;
	struct plumb_slice text;
	/* What the format made of it, by its own numbers; 0: nothing yet, else a frame's id + 1. */
	uint32_t made[PLUMB_TEXT_USES];
};

/* A table of (number, text). */
struct plumb_sqlite_texts {
	PLUMB_VEC(struct plumb_sqlite_text) texts;
	struct plumb_map map;
	struct plumb_pool *pool;
};

void plumb_sqlite_texts_load(struct plumb_sqlite_texts *texts, struct plumb_sqlite *sqlite,
                             const char *table, const char *id, const char *text);
/* NULL: there is none. */
struct plumb_sqlite_text *plumb_sqlite_texts_find(struct plumb_sqlite_texts *texts, int64_t id);
struct plumb_slice plumb_sqlite_texts_slice(struct plumb_sqlite_texts *texts, int64_t id);
/* What FRAME_OF makes of text ID for USE, once for each; of "?" where there is no such text. */
uint32_t
plumb_sqlite_texts_frame(struct plumb_sqlite_texts *texts,
                         uint32_t (*frame_of)(void *reader, struct plumb_slice name, unsigned use),
                         void *reader, int64_t id, unsigned use);
void plumb_sqlite_texts_free(struct plumb_sqlite_texts *texts);

/* ---- what is not read ---- */

/* Counts the rows of tables that nobody reads as unused, by the name of the table. It takes tables
 * that have one of the columns TIMES (a list that ends with NULL) and are not in the list READ.
 * SUFFIX: only tables whose names end with it, and the name is counted without it; "" for all. */
void
plumb_sqlite_count_unused(struct plumb_sqlite *sqlite, struct plumb_trace *trace,
                          const char *suffix, const char *const *times, const char *const *read);

#endif
