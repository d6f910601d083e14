/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The SQL of a profile file. The tables of rows follow from their descriptors (model/columns.h).
 * Private to store/.
 */
#ifndef PLUMB_STORE_SCHEMA_H
#define PLUMB_STORE_SCHEMA_H

#include <stdio.h>

#include "model/columns.h"

#define PLUMB_STORE_APPLICATION_ID 0x504c4d42 /* "PLMB" */

/* Writes the statement that makes TABLE. */
void plumb_store_put_table(FILE *out, const struct plumb_row_table *table);
/* "CHUNKS(id, …)" for a table that is stored as chunks; returns how many columns these are.
 * 0: no memory. */
unsigned plumb_store_chunk_columns(const struct plumb_row_table *table, char *names, size_t size);
/* The table `totals` has the columns of values from the second up to this one. */
uint32_t plumb_store_totals_end(void);
/* The statements that make all tables, malloced; NULL: no memory. */
char *plumb_store_tables_sql(void);
/* The statements that make indexes and views once the rows are in. */
extern const char plumb_store_finish_sql[];

#endif
