/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tables_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/table.h"
#include "cli/terminal.h"

/* Whole numbers have no decimals, others have three. */
static const char *
format_number(char text[PLUMB_FORMAT_SIZE], double number)
{
	if (fabs(number) < 1e15 && number == round(number))
		snprintf(text, PLUMB_FORMAT_SIZE, "%.0f", number);
	else
		snprintf(text, PLUMB_FORMAT_SIZE, fabs(number) < 1e15 ? "%.3f" : "%.6g", number);
	return text;
}

/* What people read in CELL; NULL: unknown. */
static const char *
format_cell(char text[PLUMB_FORMAT_SIZE], const struct plumb_answer_cell *cell)
{
	switch (cell->type) {
	case PLUMB_ANSWER_UNKNOWN:
		return NULL;
	case PLUMB_ANSWER_TEXT:
		return cell->text;
	case PLUMB_ANSWER_INTEGER:
		snprintf(text, PLUMB_FORMAT_SIZE, "%" PRId64, cell->integer);
		return text;
	case PLUMB_ANSWER_NUMBER:
		return format_number(text, cell->number);
	case PLUMB_ANSWER_TRUTH:
		return cell->truth ? "yes" : "no";
	}
	return NULL;
}

/* Does COLUMN say which row it is? */
static bool
is_name(const struct plumb_answer *a, uint32_t column)
{
	const char *name = a->columns[column].name;

	return strstr(name, "name") || strstr(name, "type") || strstr(name, "index") ||
	       !strcmp(name, "profile") || !strcmp(name, "from") || !strcmp(name, "to");
}

/* Are there several rows, and has COLUMN the same text, truth or peak of the GPU in all of them? */
static bool
is_same(const struct plumb_answer *a, uint32_t column)
{
	const struct plumb_answer_cell *first = plumb_answer_at(a, 0, column);
	char text[PLUMB_FORMAT_SIZE], other[PLUMB_FORMAT_SIZE];
	bool number = first->type == PLUMB_ANSWER_NUMBER || first->type == PLUMB_ANSWER_INTEGER;

	if (a->row_count < 2 || is_name(a, column) || first->type == PLUMB_ANSWER_UNKNOWN ||
	    (number && strncmp(a->columns[column].name, "GPU_", 4) != 0))
		return false;
	for (uint32_t r = 1; r < a->row_count; r++) {
		const struct plumb_answer_cell *cell = plumb_answer_at(a, r, column);

		if (cell->type != first->type ||
		    (cell->type == PLUMB_ANSWER_NUMBER
		             ? cell->number != first->number
		             : strcmp(format_cell(text, cell), format_cell(other, first)) != 0))
			return false;
	}
	return true;
}

static void
put_same(const struct plumb_answer *a, FILE *out)
{
	const char *before = "in all rows: ";
	char text[PLUMB_FORMAT_SIZE];

	for (uint32_t c = 0; c < a->column_count && a->row_count; c++) {
		if (!is_same(a, c))
			continue;
		fprintf(out, "%s%s ", before, a->columns[c].name);
		plumb_text_print(out, format_cell(text, plumb_answer_at(a, 0, c)));
		before = ", ";
	}
	if (before[0] == ',')
		fputc('\n', out);
}

/* Prints WORD, then the names of the columns with values of SOURCE. */
static void
put_sources(const struct plumb_answer *a, FILE *out, enum plumb_answer_source source,
            const char *word)
{
	bool any = false;

	for (uint32_t c = 0; c < a->column_count && a->row_count; c++) {
		if (a->columns[c].source != source)
			continue;
		fprintf(out, "%s%s", any ? ", " : word, a->columns[c].name);
		any = true;
	}
	if (any)
		fputc('\n', out);
}

/* Below the table: what it does not show. */
static void
put_rest(const struct plumb_answer *a, FILE *out, uint32_t shown)
{
	put_same(a, out);
	if (shown && shown < a->row_count)
		fprintf(out, "%u more (--top 0 shows all)\n", a->row_count - shown);
	put_sources(a, out, PLUMB_SOURCE_IS_DERIVED, "derived: ");
	put_sources(a, out, PLUMB_SOURCE_IS_UNKNOWN, "unknown: ");
}

int
plumb_tables_text(const struct plumb_answer *a, FILE *out, int64_t top)
{
	struct plumb_column *columns = calloc(a->column_count, sizeof *columns);
	uint32_t *which = calloc(a->column_count, sizeof *which), count = 0;
	uint32_t rows = top > 0 && top < a->row_count ? (uint32_t)top : a->row_count;
	struct plumb_table *table = NULL;
	char text[PLUMB_FORMAT_SIZE];
	bool told = false;
	int code = -1;

	fprintf(out, "%s %s\n", a->id, a->title);
	if (columns && which) {
		for (uint32_t c = 0; c < a->column_count; c++) {
			if (a->columns[c].source == PLUMB_SOURCE_IS_UNKNOWN || is_same(a, c))
				continue;
			told |= !is_name(a, c);
			which[count] = c;
			columns[count++] = (struct plumb_column){
				a->columns[c].name,
				a->columns[c].unit                          ? PLUMB_RIGHT
				: strstr(a->columns[c].name, "kernel_name") ? PLUMB_SHORTEN_KERNEL
				: strstr(a->columns[c].name, "name") ||
						strstr(a->columns[c].name, "type")
					? PLUMB_SHORTEN_NAME
					: PLUMB_LEFT
			};
		}
		table = plumb_table_new(columns, count);
	}
	if (!told)
		rows = 0; /* rows of names alone */
	for (uint32_t r = 0; r < rows && table; r++)
		for (uint32_t c = 0; c < count; c++)
			plumb_table_cell(table, format_cell(text, plumb_answer_at(a, r, which[c])));
	if (!rows) {
		const char *why = a->row_count ? a->remedy : a->without;

		fprintf(out, "%s%s%s\n", a->row_count ? "no value is known" : "no rows",
		        why ? ": " : "", why ? why : "");
		code = 0;
	} else if (table) {
		code = plumb_table_print(table, out, plumb_terminal_width(out),
		                         plumb_terminal_colour(out));
	}
	if (!code)
		put_rest(a, out, rows);
	plumb_table_free(table);
	free(columns);
	free(which);
	return code;
}
