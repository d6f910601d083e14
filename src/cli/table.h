/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables on a terminal: columns as wide as their texts, shortened where the line is too long.
 *
 *	static const struct plumb_column columns[] = {
 *		{ "time", PLUMB_RIGHT }, { "name", PLUMB_SHORTEN_MIDDLE },
 *	};
 *	struct plumb_table *table = plumb_table_new(columns, 2);
 *	plumb_table_cell(table, "12.3 ms");        // row by row, from left to right
 *	plumb_table_cell(table, "aten::mm");
 *	plumb_table_print(table, stdout, 80, false);
 *	plumb_table_free(table);
 *
 * Widths are columns of UTF-8 text. Control characters are printed as U+FFFD: a name in a profile
 * must not steer the terminal.
 */
#ifndef PLUMB_CLI_TABLE_H
#define PLUMB_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum plumb_column_style {
	PLUMB_LEFT,           /* never shortened */
	PLUMB_RIGHT,          /* a number */
	PLUMB_SHORTEN_KERNEL, /* a function's name: what it computes says most (kernel_name.h) */
	PLUMB_SHORTEN_NAME,   /* names that may begin alike: where they differ says most (fit.h) */
	PLUMB_SHORTEN_MIDDLE, /* a text: its two ends say most */
	PLUMB_SHORTEN_START,  /* a path: its end says most */
};

struct plumb_column {
	const char *title;
	enum plumb_column_style style;
};

struct plumb_table;

/* COLUMNS must outlive the table. NULL: no memory; every function takes NULL. */
struct plumb_table *plumb_table_new(const struct plumb_column *columns, size_t count);
void plumb_table_free(struct plumb_table *table);

/* Copies TEXT; NULL is printed as "–". */
void plumb_table_cell(struct plumb_table *table, const char *text);

/* Prints titles and whole rows. Shortens columns to fit into WIDTH columns, if it can (0: no
 * limit). Negative: no memory, and nothing was printed. */
int plumb_table_print(const struct plumb_table *table, FILE *out, int width, bool colour);

/* Prints TEXT with control characters replaced. */
void plumb_text_print(FILE *out, const char *text);
/* The same, shortened in the middle to WIDTH columns; 0 or less: as few as a name may have. */
void plumb_text_print_short(FILE *out, const char *text, int width);

#endif
