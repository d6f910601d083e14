/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the columns of each table are: kinds, ids, words, order. Each is described once, in
 * columns.c. From there follow the checks of the builder, the numbering and order at the end
 * (rows.h), the mapping from one profile into another, the SQL of the file, reading, writing and
 * the export as JSON.
 */
#ifndef PLUMB_MODEL_COLUMNS_H
#define PLUMB_MODEL_COLUMNS_H

#include "model/profile.h"

enum plumb_row_cell {
	PLUMB_ROW_INT,        /* int64_t; PLUMB_UNKNOWN ↔ NULL */
	PLUMB_ROW_NUMBER,     /* int64_t, never NULL */
	PLUMB_ROW_AMOUNT,     /* int64_t, at least 0, never NULL */
	PLUMB_ROW_TIME,       /* int64_t, never NULL: the moment by which a chunk is ordered */
	PLUMB_ROW_END,        /* int64_t, never NULL; not before the int64_t at offset LIMIT */
	PLUMB_ROW_LINK,       /* uint64_t; 0 ↔ none */
	PLUMB_ROW_COUNT,      /* uint64_t, at least 1, never NULL */
	PLUMB_ROW_REAL,       /* double; NAN ↔ NULL */
	PLUMB_ROW_KNOWN,      /* double, never NULL */
	PLUMB_ROW_BLOB,       /* struct plumb_blob; no data ↔ NULL */
	PLUMB_ROW_LINE,       /* uint32_t; 0 ↔ NULL */
	PLUMB_ROW_BITS,       /* uint32_t */
	PLUMB_ROW_TEXT,       /* string id; PLUMB_NONE ↔ NULL */
	PLUMB_ROW_WORD,       /* uint32_t: index into WORDS, which holds LIMIT; NULL: unused */
	PLUMB_ROW_METRIC,     /* uint32_t: number of a metric (metric.h) */
	PLUMB_ROW_ID,         /* uint32_t: id of a row of table LIMIT, never NULL */
	PLUMB_ROW_ID_OR_NONE, /* the same; PLUMB_NONE ↔ NULL */
	PLUMB_ROW_ID_OR_0,    /* the same, + 1; 0 ↔ NULL */
};

struct plumb_row_column {
	const char *name;
	const char *const *words;
	const char *references; /* the table of the file that explains WORDS, or NULL */
	const char *blob;       /* its name in a chunk; NULL: NAME */
	enum plumb_row_cell cell;
	uint32_t offset; /* in the row */
	uint32_t limit;
	uint32_t since;      /* the schema that brought it; older files have its unknown */
	unsigned char order; /* 1: rows are ordered by it first, 2: then by it, …; 0: not by it */
	bool descending;     /* the greatest first */
	bool none_first;     /* PLUMB_NONE is the least */
	bool key;            /* rows that are equal in all their keys are one row */
	bool sparse;         /* a chunk has it only if it is not 0 in all rows */
};

struct plumb_row_table {
	const char *name;
	const struct plumb_row_column *columns;
	uint32_t columns_count;
	uint32_t row_size;
	uint32_t offset;    /* in struct plumb_profile: of a PLUMB_COLUMN, or of the row itself … */
	bool single;        /* … if there is but one */
	uint32_t since;     /* as of a column; an older file has no such table */
	bool may_lack;      /* a file of that schema may lack the table too */
	bool moments;       /* whoever wants totals does not need it */
	uint32_t most;      /* how many rows a profile holds; 0: as many as have ids */
	uint32_t lost_as;   /* enum plumb_source: what rows beyond MOST count as in the ledger */
	const char *chunks; /* the table of the file whose rows are chunks of rows, or NULL … */
	const char *source; /* … and what its column `source` says of these */
};

/* Each has a column `id` first in the file, counting from 0, that is not in `columns`. */
extern const struct plumb_row_table plumb_row_tables[PLUMB_TABLES];

/* The first column of that kind, or NULL. */
const struct plumb_row_column *
plumb_row_column_of(const struct plumb_row_table *table, enum plumb_row_cell cell);

/* What a column is called in a chunk. */
static inline const char *
plumb_row_blob_name(const struct plumb_row_column *column)
{
	return column->blob ? column->blob : column->name;
}

/* Names of enum plumb_fate in lower case. */
extern const char *const plumb_fate_names[PLUMB_FATE_COUNT];

/* How many bytes of a row a cell takes. */
static inline size_t
plumb_row_width(const struct plumb_row_column *column)
{
	return column->cell >= PLUMB_ROW_LINE   ? sizeof(uint32_t)
	       : column->cell == PLUMB_ROW_BLOB ? sizeof(struct plumb_blob)
	                                        : sizeof(uint64_t);
}

/* Does it have the id of a row of table LIMIT? */
static inline bool
plumb_row_has_id(const struct plumb_row_column *column)
{
	return column->cell >= PLUMB_ROW_ID && column->cell <= PLUMB_ROW_ID_OR_0;
}

/* How many columns of the file: a blob has its length, not compressed, in <name>_bytes. */
static inline uint32_t
plumb_row_cells(const struct plumb_row_column *column)
{
	return column->cell == PLUMB_ROW_BLOB ? 2 : 1;
}

#endif
