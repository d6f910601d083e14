/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema of a profile file, once: the SQL that makes it, and for every table that is a column
 * of struct plumb_profile how a row's fields and the table's columns correspond. Of store/, and of
 * the export as JSON, which has the same tables.
 */
#ifndef PLUMB_STORE_SCHEMA_H
#define PLUMB_STORE_SCHEMA_H

#include "model/profile.h"

#define PLUMB_STORE_APPLICATION_ID 0x504c4d42 /* "PLMB" */

/* The statements that make the tables, and those that make indexes and views once the rows are
 * in. */
extern const char plumb_store_tables_sql[];
extern const char plumb_store_finish_sql[];

enum plumb_cell {
	PLUMB_CELL_INT,    /* int64_t; PLUMB_UNKNOWN ↔ NULL */
	PLUMB_CELL_NUMBER, /* int64_t, never NULL */
	PLUMB_CELL_COUNT,  /* uint64_t, at least 1, never NULL */
	PLUMB_CELL_REAL,   /* double; NAN ↔ NULL */
	PLUMB_CELL_LINE,   /* uint32_t; 0 ↔ NULL */
	PLUMB_CELL_BITS,   /* uint32_t, below LIMIT unless that is 0 */
	PLUMB_CELL_TEXT,   /* string id; PLUMB_NONE ↔ NULL */
	PLUMB_CELL_WORD, /* uint32_t: index into WORDS, which holds LIMIT; NULL words are unused */
	PLUMB_CELL_ID,   /* uint32_t: id of a row of table LIMIT, never NULL */
	PLUMB_CELL_ID_OR_NONE, /* likewise; PLUMB_NONE ↔ NULL */
};

enum plumb_table_number {
	PLUMB_TABLE_RUN,
	PLUMB_TABLE_PROCESSES,
	PLUMB_TABLE_DEVICES,
	PLUMB_TABLE_TRACKS,
	PLUMB_TABLE_FRAMES,
	PLUMB_TABLE_CONTEXTS,
	PLUMB_TABLE_VALUES,
	PLUMB_TABLE_VARIANTS,
	PLUMB_TABLE_ORIGINS,
	PLUMB_TABLE_CLOCKS,
	PLUMB_TABLE_LEDGER,
	PLUMB_TABLE_ENVIRONMENT,
	PLUMB_TABLE_FINDINGS,
	PLUMB_TABLE_CODE_OBJECTS,
	PLUMB_TABLE_SERIES,
	PLUMB_TABLE_MEMORY,
	PLUMB_TABLE_DEVICE_PROCESSES,
	PLUMB_TABLE_WAITS,
	PLUMB_TABLE_COLLECTIVES,
	PLUMB_TABLE_CPU_SAMPLES,
	PLUMB_TABLES,
};

struct plumb_column {
	const char *name;
	enum plumb_cell cell;
	uint32_t offset; /* in the row */
	uint32_t limit;
	const char *const *words;
	uint32_t since; /* the schema that brought it; older files have its unknown */
};

struct plumb_table {
	const char *name;
	const struct plumb_column *columns;
	uint32_t columns_count;
	uint32_t row_size;
	uint32_t rows_offset;  /* of the array's pointer in struct plumb_profile … */
	uint32_t count_offset; /* … and of its length; 0: one row lies in the profile itself */
	uint32_t since;        /* as of a column; an older file has no such table */
};

/* In an order in which every id refers to a table before it, or to the table itself. Each has a
 * column `id` first, counting from 0, that is not in `columns`. */
extern const struct plumb_table plumb_store_schema[PLUMB_TABLES];

/* Names of enum plumb_fate in lower case. */
extern const char *const plumb_store_fates[PLUMB_FATE_COUNT];

#endif
