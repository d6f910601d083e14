/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads tables of text. A format says which columns it knows, and where each belongs in its row:
 *
 *	static const struct plumb_text_column columns[] = {
 *		{ "Name", PLUMB_AS_WORD, offsetof(struct row, name), "has no name",
 *		  PLUMB_IN_EACH_ROW },
 *		{ "Start|Start_Timestamp", PLUMB_AS_TIME, offsetof(struct row, start) },
 *	};
 *	struct plumb_text_table table = { PLUMB_TEXT_COLUMNS(columns) };
 *	plumb_text_table_read(&table, file, take_line, reader, error);
 *
 * plumb_text_table_read gives each line to take_line, which knows headings and rows from other text
 * and calls plumb_text_table_heading, plumb_text_table_units and plumb_text_table_row.
 */
#ifndef PLUMB_IMPORT_TEXT_TABLE_H
#define PLUMB_IMPORT_TEXT_TABLE_H

#include <stddef.h>

#include "base/csv.h"
#include "import/import.h"

#define PLUMB_TEXT_COLUMNS_MAX 40

/* What is in a cell, and the type of the row's member. Numbers may have thousands separators and a
 * decimal comma. Without a value, a text is empty and a number is PLUMB_UNKNOWN. */
enum plumb_text_cell {
	PLUMB_AS_TEXT,   /* struct plumb_slice, with its blanks */
	PLUMB_AS_WORD,   /* struct plumb_slice, without blanks around it; "-" is empty */
	PLUMB_AS_NUMBER, /* int64_t */
	PLUMB_AS_LABEL,  /* int64_t: the number at the end of "Agent 4" */
	PLUMB_AS_TIME,   /* int64_t, ns */
	PLUMB_AS_BYTES,  /* int64_t */
	PLUMB_AS_THREE,  /* int64_t[3]: "(64 1 1)", or the first one alone */
};

enum plumb_presence { PLUMB_MAY_MISS, PLUMB_IN_HEADING, PLUMB_IN_EACH_ROW };

struct plumb_text_column {
	const char *names; /* in headings: "Size|Bytes", in any case; a unit may follow them */
	enum plumb_text_cell kind;
	size_t offset;     /* of the row's member */
	const char *wrong; /* the error when the cell is of another kind; NULL: it is unknown */
	enum plumb_presence presence;
};

enum plumb_text_layout {
	PLUMB_LAYOUT_CSV,
	/* Plain text, each cell under its heading: to the right, the last one to the left. */
	PLUMB_LAYOUT_FIXED,
	/* Commas, and a name first that may hold commas itself. */
	PLUMB_LAYOUT_FROM_RIGHT,
};

struct plumb_text_heading {
	enum plumb_text_layout layout;
	uint32_t cells;
	uint32_t place[PLUMB_TEXT_COLUMNS_MAX]; /* the column's cell; PLUMB_NONE: there is none */
	char unit[PLUMB_TEXT_COLUMNS_MAX][8];
	size_t edge[PLUMB_TEXT_COLUMNS_MAX]; /* fixed: where cells end; where the last one begins */
};

struct plumb_text_table {
	const struct plumb_text_column *columns;
	uint32_t count;
	bool binary;    /* "KB" is 1024 bytes */
	bool head_only; /* only the file's head is read, which stays to be read */
	/* private */
	struct plumb_csv csv;
	struct plumb_text_heading heading; /* the last one */
};

/* For a table's initialiser: its ARRAY of columns. */
#define PLUMB_TEXT_COLUMNS(array) .columns = (array), .count = sizeof(array) / sizeof *(array)

/* Returns not 0 to end the reading: an error, or 1. */
typedef int plumb_text_line(void *data, struct plumb_slice line, struct plumb_error *error);

/* Gives each line of FILE to TAKE, until it returns not 0; returns that. */
int plumb_text_table_read(struct plumb_text_table *table, const struct plumb_import_file *file,
                          plumb_text_line *take, void *data,
                          struct plumb_error *error) PLUMB_MUST_CHECK;

/* LINE, which was read last, as a heading. 0: a column that must be there is missing; the heading
 * before stays. */
int plumb_text_table_heading(struct plumb_text_table *table, enum plumb_text_layout layout,
                             struct plumb_slice line, struct plumb_error *error) PLUMB_MUST_CHECK;
/* The next line, with the columns' units. 0: the file has ended. */
int
plumb_text_table_units(struct plumb_text_table *table, struct plumb_error *error) PLUMB_MUST_CHECK;
/* Whether the heading has the column of the member at OFFSET. */
bool plumb_text_table_has(const struct plumb_text_table *table, size_t offset);
/* LINE, which was read last, as the columns' members of ROW. */
int plumb_text_table_row(struct plumb_text_table *table, struct plumb_slice line, void *row,
                         struct plumb_error *error) PLUMB_MUST_CHECK;
/* WHY as the error of the line that was read last; 0 when it is NULL. */
int plumb_text_table_check(const struct plumb_text_table *table, const char *why,
                           struct plumb_error *error) PLUMB_MUST_CHECK;

/* The best SCORE of the lines of a file's HEAD. */
int plumb_text_probe(const char *head, int (*score)(struct plumb_slice line));

/* ---- pieces of texts ---- */

static inline struct plumb_slice
plumb_text_between(const char *from, const char *to)
{
	return (struct plumb_slice){ from, to > from ? (size_t)(to - from) : 0 };
}
static inline bool
plumb_text_has(struct plumb_slice text, const char *word)
{
	return text.bytes && memmem(text.at, text.bytes, word, strlen(word));
}
struct plumb_slice plumb_text_trim(struct plumb_slice text);
/* Whether TEXT has the WORDS, which end with NULL, in this order. */
bool plumb_text_has_all(struct plumb_slice text, const char *const *words);
/* Cuts "(12)" with these marks off the end of TEXT. False: there is no such number. */
bool plumb_text_cut_number(struct plumb_slice *text, char open, char close, int64_t *number);
/* "64 1 1", with MARK between them. False: they are not three numbers; the bad ones are
 * PLUMB_UNKNOWN. */
bool plumb_text_three(struct plumb_slice text, char mark, int64_t three[3]);

#endif
