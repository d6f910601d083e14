/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/utf8.h"
#include "cli/columns.h"
#include "cli/fit.h"
#include "cli/terminal.h"
#include "model/kernel_name.h"

#define GAP 2
#define NARROWEST 16     /* a column is not shortened below this */
#define NARROW_PATH 24   /* nor a path below this, while a name can give way */
#define NARROW_KERNEL 32 /* nor a kernel's name below this, while a path can */

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

static bool
is_names(const struct plumb_table *table, size_t column)
{
	return table->columns[column].style == PLUMB_SHORTEN_KERNEL ||
	       table->columns[column].style == PLUMB_SHORTEN_NAME;
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

/* The columns that the cells of column C take, by the compact names if there are any. */
static int
measure_column(const struct plumb_table *table, size_t c, char *const *compact)
{
	int most = plumb_columns(table->columns[c].title);

	for (size_t i = c; i < table->count; i += table->column_count) {
		const char *text = compact && compact[i] ? compact[i] : table->cells[i];
		int columns = plumb_columns(text);
		if (columns > most)
			most = columns;
	}
	return most;
}

static int
total_width(const struct plumb_table *table, const int *widths)
{
	int total = -GAP;

	for (size_t c = 0; c < table->column_count; c++)
		total += GAP + widths[c];
	return total;
}

/* Names that do not fit make room by what says least in them before anything is cut. */
static void
measure_columns(const struct plumb_table *table, char *const *compact, int *widths, int width)
{
	bool kernels = false;
	int total;

	for (size_t c = 0; c < table->column_count; c++) {
		widths[c] = measure_column(table, c, NULL);
		kernels |= table->columns[c].style == PLUMB_SHORTEN_KERNEL;
	}
	total = total_width(table, widths);
	for (size_t c = 0; width && total > width && c < table->column_count; c++)
		if (table->columns[c].style == PLUMB_SHORTEN_KERNEL)
			widths[c] = measure_column(table, c, compact);
	total = total_width(table, widths);
	/* The front of a path tells least. */
	total = narrow_columns(table, widths, total, width, PLUMB_SHORTEN_START, NARROW_PATH);
	if (kernels) {
		total = narrow_columns(table, widths, total, width, PLUMB_SHORTEN_KERNEL,
		                       NARROW_KERNEL);
		total = narrow_columns(table, widths, total, width, PLUMB_SHORTEN_START, NARROWEST);
	}
	narrow_columns(table, widths, total, width, PLUMB_SHORTEN_KERNEL, NARROWEST);
}

static void
print_cell(const struct plumb_table *table, FILE *out, size_t column, const char *text, int width)
{
	int columns = plumb_columns(text);

	if (table->columns[column].style == PLUMB_RIGHT && columns < width)
		fprintf(out, "%*s", width - columns, "");
	print_shortened(out, text, width, table->columns[column].style);
}

/* A title says most at its begin, whatever the cells do. */
static void
print_title(const struct plumb_table *table, FILE *out, size_t column, int width)
{
	const char *text = table->columns[column].title;

	if (plumb_columns(text) <= width) {
		print_cell(table, out, column, text, width);
		return;
	}
	print_part(out, text, 0, width - 1);
	fputs(PLUMB_ELLIPSIS, out);
}

/* Nothing is printed after the last text of a row. A shortened wide character may leave a column
 * free. The next cell then starts one column early, which only looks a little worse. */
static void
print_row(const struct plumb_table *table, FILE *out, const int *widths, char *const *cells,
          char *const *shown)
{
	int at = 0, begin = 0; /* of the line, of the column */

	for (size_t c = 0; c < table->column_count; c++) {
		const char *text = !cells     ? table->columns[c].title
		                   : shown[c] ? shown[c]
		                              : cells[c];
		int columns = plumb_columns(text);

		if (columns) {
			fprintf(out, "%*s", begin - at, "");
			if (cells)
				print_cell(table, out, c, text, widths[c]);
			else
				print_title(table, out, c, widths[c]);
			at = table->columns[c].style != PLUMB_RIGHT && columns < widths[c]
			             ? begin + columns
			             : begin + widths[c];
		}
		begin += widths[c] + GAP;
	}
}

/* The compact names of kernels, by cell; else NULL. Negative: no memory. */
static int
make_compact(const struct plumb_table *table, char **compact)
{
	for (size_t i = 0; i < table->count; i++) {
		if (table->columns[i % table->column_count].style != PLUMB_SHORTEN_KERNEL)
			continue;
		compact[i] = plumb_kernel_name_compact(table->cells[i]);
		if (!compact[i])
			return -1;
	}
	return 0;
}

/* Replaces the names of column C by what is shown in WIDTH columns. SHOWN, by cell, owns that. */
static int
fit_column(const struct plumb_table *table, char *const *compact, size_t c, int width, char **shown)
{
	size_t count = table->count / table->column_count;
	struct plumb_fit_name *names = calloc(count + 1, sizeof *names);
	int result = names ? 0 : -1;

	for (size_t i = 0; names && i < count; i++) {
		size_t cell = i * table->column_count + c;
		names[i].name = table->cells[cell];
		names[i].compact = compact[cell];
	}
	if (names && !plumb_fit_names(names, count, width))
		result = -1;
	for (size_t i = 0; names && i < count; i++)
		shown[i * table->column_count + c] = names[i].shown;
	free(names);
	return result;
}

/* Fills in the cells that are shown instead of the table's own. */
static int
fit_names(const struct plumb_table *table, int width, int *widths, char **compact, char **shown)
{
	int result = make_compact(table, compact);

	if (!result)
		measure_columns(table, compact, widths, width);
	for (size_t c = 0; !result && c < table->column_count; c++)
		if (is_names(table, c) && measure_column(table, c, NULL) > widths[c])
			result = fit_column(table, compact, c, widths[c], shown);
	return result;
}

static void
print_table(const struct plumb_table *table, char *const *shown, const int *widths, FILE *out,
            bool colour)
{
	if (colour)
		plumb_terminal_steer(out, "\033[1m");
	print_row(table, out, widths, NULL, NULL);
	if (colour)
		plumb_terminal_steer(out, "\033[0m");
	fputc('\n', out);
	for (size_t i = 0; i + table->column_count <= table->count; i += table->column_count) {
		print_row(table, out, widths, table->cells + i, shown + i);
		fputc('\n', out);
	}
}

static void
free_texts(char **texts, size_t count)
{
	for (size_t i = 0; texts && i < count; i++)
		free(texts[i]);
	free(texts);
}

int
plumb_table_print(const struct plumb_table *table, FILE *out, int width, bool colour)
{
	int *widths, result = -1;
	char **compact, **shown;

	if (!table || table->failed)
		return -1;
	widths = calloc(table->column_count + 1, sizeof *widths);
	compact = calloc(table->count + 1, sizeof *compact);
	shown = calloc(table->count + 1, sizeof *shown);
	if (widths && compact && shown)
		result = fit_names(table, width, widths, compact, shown);
	if (!result)
		print_table(table, shown, widths, out, colour);
	free(widths);
	free_texts(compact, table->count);
	free_texts(shown, table->count);
	return result;
}
