/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/utf8.h"
#include "cli/columns.h"
#include "cli/terminal.h"

#define GAP 2
#define NARROWEST 16   /* a column is not shortened below this */
#define NARROW_PATH 24 /* nor a path below this, while a name can give way */

struct plumb_table {
	const struct plumb_column *columns;
	size_t column_count;
	char **cells;
	size_t count, room;
	bool failed;
};

struct plumb_table *
plumb_table_new(const struct plumb_column *columns, size_t count)
{
	struct plumb_table *table = calloc(1, sizeof *table);

	if (!table)
		return NULL;
	table->columns = columns;
	table->column_count = count;
	return table;
}

void
plumb_table_free(struct plumb_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->count; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table);
}

void
plumb_table_cell(struct plumb_table *table, const char *text)
{
	char *copy;

	if (!table || table->failed)
		return;
	if (table->count == table->room) {
		size_t room = table->room ? table->room * 2 : 64;
		char **cells = realloc(table->cells, room * sizeof *cells);
		if (!cells) {
			table->failed = true;
			return;
		}
		table->cells = cells;
		table->room = room;
	}
	copy = strdup(text ? text : PLUMB_DASH);
	if (copy)
		table->cells[table->count++] = copy;
	else
		table->failed = true;
}

/* Would it not be one character in its place? */
static bool
is_hidden(const char *text, size_t length)
{
	uint32_t c = plumb_utf8_code(text, length);

	return c == '\n' || c == '\t' || plumb_terminal_hides(c);
}

/* Prints the part of TEXT in the columns [FROM, TO). */
static void
print_part(FILE *out, const char *text, int from, int to)
{
	size_t bytes = strlen(text);
	int at = 0;

	while (bytes && at < to) {
		int columns;
		size_t length = plumb_columns_next(text, bytes, &columns);

		if (at >= from && at + columns <= to) {
			if (!plumb_utf8_character(text, bytes) || is_hidden(text, length))
				fputs("\xef\xbf\xbd", out);
			else
				fwrite(text, 1, length, out);
		}
		at += columns;
		text += length;
		bytes -= length;
	}
}

void
plumb_text_print(FILE *out, const char *text)
{
	print_part(out, text, 0, plumb_columns(text) + 1);
}

/* Prints TEXT in at most WIDTH columns. */
static void
print_shortened(FILE *out, const char *text, int width, enum plumb_column_style style)
{
	int columns = plumb_columns(text);
	int head;

	if (columns <= width) {
		plumb_text_print(out, text);
		return;
	}
	head = style == PLUMB_SHORTEN_START ? 0 : (width - 1) * 2 / 3;
	print_part(out, text, 0, head);
	fputs(PLUMB_ELLIPSIS, out);
	print_part(out, text, columns - (width - 1 - head), columns + 1);
}

void
plumb_text_print_short(FILE *out, const char *text, int width)
{
	print_shortened(out, text, width > NARROWEST ? width : NARROWEST, PLUMB_SHORTEN_MIDDLE);
}

/* Takes columns of STYLE or beyond down to LEAST until TOTAL is WIDTH; returns what it is then. */
static int
narrow_columns(const struct plumb_table *table, int *widths, int total, int width,
               enum plumb_column_style style, int least)
{
	while (width && total > width) {
		int *widest = NULL;

		/* One step at a time at the widest, so that all end up equally narrow. */
		for (size_t c = 0; c < table->column_count; c++)
			if (table->columns[c].style >= style && widths[c] > least &&
			    (!widest || widths[c] > *widest))
				widest = &widths[c];
		if (!widest)
			return total;
		--*widest;
		total--;
	}
	return total;
}

static void
measure_columns(const struct plumb_table *table, int *widths, int width)
{
	int total = -GAP;

	for (size_t c = 0; c < table->column_count; c++)
		widths[c] = plumb_columns(table->columns[c].title);
	for (size_t i = 0; i < table->count; i++) {
		int columns = plumb_columns(table->cells[i]);
		size_t c = i % table->column_count;
		if (columns > widths[c])
			widths[c] = columns;
	}
	for (size_t c = 0; c < table->column_count; c++)
		total += GAP + widths[c];
	/* The front of a path tells least. */
	total = narrow_columns(table, widths, total, width, PLUMB_SHORTEN_START, NARROW_PATH);
	narrow_columns(table, widths, total, width, PLUMB_SHORTEN_MIDDLE, NARROWEST);
}

static void
print_cell(const struct plumb_table *table, FILE *out, size_t column, const char *text, int width)
{
	int columns = plumb_columns(text);

	if (table->columns[column].style == PLUMB_RIGHT && columns < width)
		fprintf(out, "%*s", width - columns, "");
	print_shortened(out, text, width, table->columns[column].style);
}

/* Nothing is printed after the last text of a row. A shortened wide character may leave a column
 * free. The next cell then starts one column early, which only looks a little worse. */
static void
print_row(const struct plumb_table *table, FILE *out, const int *widths, char *const *cells)
{
	int at = 0, begin = 0; /* of the line, of the column */

	for (size_t c = 0; c < table->column_count; c++) {
		const char *text = cells ? cells[c] : table->columns[c].title;
		int columns = plumb_columns(text);

		if (columns) {
			fprintf(out, "%*s", begin - at, "");
			print_cell(table, out, c, text, widths[c]);
			at = table->columns[c].style != PLUMB_RIGHT && columns < widths[c]
			             ? begin + columns
			             : begin + widths[c];
		}
		begin += widths[c] + GAP;
	}
}

int
plumb_table_print(const struct plumb_table *table, FILE *out, int width, bool colour)
{
	int *widths;

	if (!table || table->failed)
		return -1;
	widths = calloc(table->column_count + 1, sizeof *widths);
	if (!widths)
		return -1;
	measure_columns(table, widths, width);
	if (colour)
		plumb_terminal_steer(out, "\033[1m");
	print_row(table, out, widths, NULL);
	if (colour)
		plumb_terminal_steer(out, "\033[0m");
	fputc('\n', out);
	for (size_t i = 0; i + table->column_count <= table->count; i += table->column_count) {
		print_row(table, out, widths, table->cells + i);
		fputc('\n', out);
	}
	free(widths);
	return 0;
}
