/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/tables_print.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/json.h"
#include "cli/table.h"
#include "cli/terminal.h"

static const struct plumb_cell *
cell_at(const struct plumb_answer *a, uint32_t row, uint32_t column)
{
	return &a->cells[(size_t)row * a->column_count + column];
}

/* Whole numbers as such, others with three decimals. */
static const char *
format_number(char text[PLUMB_FORMAT_SIZE], double number)
{
	if (fabs(number) < 1e15 && number == round(number))
		snprintf(text, PLUMB_FORMAT_SIZE, "%.0f", number);
	else
		snprintf(text, PLUMB_FORMAT_SIZE, fabs(number) < 1e15 ? "%.3f" : "%.6g", number);
	return text;
}

/* ---- for people ---- */

static void
put_cell(struct plumb_table *table, const struct plumb_cell *cell)
{
	char text[PLUMB_FORMAT_SIZE];

	switch (cell->kind) {
	case PLUMB_CELL_UNKNOWN:
		plumb_table_cell(table, NULL);
		break;
	case PLUMB_CELL_TEXT:
		plumb_table_cell(table, cell->text);
		break;
	case PLUMB_CELL_NUMBER:
		plumb_table_cell(table, format_number(text, cell->number));
		break;
	case PLUMB_CELL_TRUTH:
		plumb_table_cell(table, cell->truth ? "yes" : "no");
		break;
	}
}

/* Does COLUMN say which row it is? */
static bool
is_name(const struct plumb_answer *a, uint32_t column)
{
	const char *name = a->columns[column].name;

	return strstr(name, "name") || strstr(name, "type") || strstr(name, "index") ||
	       !strcmp(name, "profile") || !strcmp(name, "from") || !strcmp(name, "to");
}

/* Has COLUMN the same text, truth or peak of the GPU in all rows, of which there are several? */
static bool
is_same(const struct plumb_answer *a, uint32_t column)
{
	const struct plumb_cell *first = cell_at(a, 0, column);

	if (a->row_count < 2 || is_name(a, column) || first->kind == PLUMB_CELL_UNKNOWN ||
	    (first->kind == PLUMB_CELL_NUMBER && strncmp(a->columns[column].name, "GPU_", 4) != 0))
		return false;
	for (uint32_t r = 1; r < a->row_count; r++) {
		const struct plumb_cell *cell = cell_at(a, r, column);

		if (cell->kind != first->kind ||
		    (cell->kind == PLUMB_CELL_TEXT     ? strcmp(cell->text, first->text) != 0
		     : cell->kind == PLUMB_CELL_NUMBER ? cell->number != first->number
		                                       : cell->truth != first->truth))
			return false;
	}
	return true;
}

static void
put_same(const struct plumb_answer *a, FILE *out)
{
	const char *before = "in all rows: ";
	char text[PLUMB_FORMAT_SIZE];

	for (uint32_t c = 0; c < a->column_count; c++) {
		const struct plumb_cell *cell = a->row_count ? cell_at(a, 0, c) : NULL;

		if (!cell || !is_same(a, c))
			continue;
		fprintf(out, "%s%s ", before, a->columns[c].name);
		plumb_text_print(out, cell->kind == PLUMB_CELL_TEXT ? cell->text
		                      : cell->kind == PLUMB_CELL_NUMBER
		                              ? format_number(text, cell->number)
		                      : cell->truth ? "yes"
		                                    : "no");
		before = ", ";
	}
	if (before[0] == ',')
		fputc('\n', out);
}

/* Below the table: what it does not show. */
static void
put_rest(const struct plumb_answer *a, FILE *out, uint32_t shown)
{
	const char *before = "unknown: ";
	const char *derived = "derived: ";

	put_same(a, out);
	if (shown && shown < a->row_count)
		fprintf(out, "%u more (--top 0 shows all)\n", a->row_count - shown);
	for (uint32_t c = 0; c < a->column_count && a->row_count; c++) {
		if (a->columns[c].source == PLUMB_SOURCE_IS_DERIVED) {
			fprintf(out, "%s%s", derived, a->columns[c].name);
			derived = ", ";
		}
	}
	if (derived[0] == ',')
		fputc('\n', out);
	for (uint32_t c = 0; c < a->column_count && a->row_count; c++) {
		if (a->columns[c].source == PLUMB_SOURCE_IS_UNKNOWN) {
			fprintf(out, "%s%s", before, a->columns[c].name);
			before = ", ";
		}
	}
	if (before[0] == ',')
		fputc('\n', out);
}

int
plumb_tables_text(const struct plumb_answer *a, FILE *out, int64_t top)
{
	struct plumb_column *columns = calloc(a->column_count, sizeof *columns);
	uint32_t *which = calloc(a->column_count, sizeof *which), count = 0;
	uint32_t rows = top > 0 && top < a->row_count ? (uint32_t)top : a->row_count;
	struct plumb_table *table = NULL;
	bool told = false;
	int code = -1;

	fprintf(out, "%s %s\n", a->kind->id, a->kind->title);
	if (columns && which) {
		for (uint32_t c = 0; c < a->column_count; c++) {
			if (a->columns[c].source == PLUMB_SOURCE_IS_UNKNOWN || is_same(a, c))
				continue;
			told |= !is_name(a, c);
			which[count] = c;
			columns[count++] =
				(struct plumb_column){ a->columns[c].name,
				                       a->columns[c].unit ? PLUMB_RIGHT
				                       : strstr(a->columns[c].name, "name") ||
				                                       strstr(a->columns[c].name,
				                                              "type")
				                               ? PLUMB_SHORTEN_MIDDLE
				                               : PLUMB_LEFT };
		}
		table = plumb_table_new(columns, count);
	}
	if (!told)
		rows = 0; /* rows of names alone */
	for (uint32_t r = 0; r < rows && table; r++)
		for (uint32_t c = 0; c < count; c++)
			put_cell(table, cell_at(a, r, which[c]));
	if (!rows) {
		const char *why = a->row_count ? a->kind->remedy : a->kind->without;

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

/* ---- JSON ---- */

static void
json_cell(struct plumb_json *json, const struct plumb_cell *cell)
{
	switch (cell->kind) {
	case PLUMB_CELL_UNKNOWN:
		plumb_json_null(json);
		break;
	case PLUMB_CELL_TEXT:
		plumb_json_text(json, cell->text);
		break;
	case PLUMB_CELL_NUMBER:
		if (fabs(cell->number) < 1e15 && cell->number == round(cell->number))
			plumb_json_integer(json, (int64_t)cell->number);
		else
			plumb_json_number(json, cell->number);
		break;
	case PLUMB_CELL_TRUTH:
		plumb_json_bool(json, cell->truth);
		break;
	}
}

static void
json_table(struct plumb_json *json, const struct plumb_answer *a)
{
	plumb_json_object(json);
	plumb_json_key_text(json, "id", a->kind->id);
	plumb_json_key_text(json, "title", a->kind->title);
	plumb_json_key(json, "columns");
	plumb_json_array(json);
	for (uint32_t c = 0; c < a->column_count; c++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "name", a->columns[c].name);
		plumb_json_key_text(json, "unit", a->columns[c].unit);
		plumb_json_key_text(json, "source", plumb_answer_source_name(a->columns[c].source));
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_key(json, "rows");
	plumb_json_array(json);
	for (uint32_t r = 0; r < a->row_count; r++) {
		plumb_json_array(json);
		for (uint32_t c = 0; c < a->column_count; c++)
			json_cell(json, cell_at(a, r, c));
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_end(json);
}

int
plumb_tables_json(const struct plumb_answer *answers, uint32_t count,
                  const struct plumb_layers *layers, FILE *out)
{
	struct plumb_json *json = plumb_json_new(out);
	const struct plumb_profile *p = layers->profile;

	plumb_json_object(json);
	plumb_json_key(json, "schema");
	plumb_json_integer(json, 1);
	plumb_json_key_text(json, "verb", "tables");
	plumb_json_key_text(json, "model",
	                    layers->model == PLUMB_NONE
	                            ? NULL
	                            : plumb_frame_label(p, p->contexts[layers->model].frame));
	plumb_json_key_quantity(json, "runs", layers->runs);
	plumb_json_key_text(json, "order", layers->in_order ? "execution" : "context");
	plumb_json_key(json, "tables");
	plumb_json_array(json);
	for (uint32_t i = 0; i < count; i++)
		json_table(json, &answers[i]);
	plumb_json_end(json);
	plumb_json_end(json);
	return plumb_json_finish(json);
}

/* ---- CSV ---- */

static void
csv_end(FILE *out, const struct plumb_answer *a, uint32_t column)
{
	fputc(column + 1 < a->column_count ? ',' : '\n', out);
}

static void
csv_text(FILE *out, const char *text)
{
	bool quoted = strpbrk(text, ",\"\r\n") != NULL;

	if (quoted)
		fputc('"', out);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	if (quoted)
		fputc('"', out);
}

void
plumb_tables_csv(const struct plumb_answer *a, FILE *out, bool titled)
{
	if (titled) {
		fprintf(out, "%s,", a->kind->id);
		csv_text(out, a->kind->title);
		fputc('\n', out);
	}
	for (uint32_t c = 0; c < a->column_count; c++) {
		csv_text(out, a->columns[c].name);
		csv_end(out, a, c);
	}
	for (uint32_t r = 0; r < a->row_count; r++)
		for (uint32_t c = 0; c < a->column_count; c++) {
			const struct plumb_cell *cell = cell_at(a, r, c);
			if (cell->kind == PLUMB_CELL_TEXT)
				csv_text(out, cell->text);
			else if (cell->kind == PLUMB_CELL_NUMBER)
				fprintf(out, "%.17g", cell->number);
			else if (cell->kind == PLUMB_CELL_TRUTH)
				fputs(cell->truth ? "true" : "false", out);
			csv_end(out, a, c);
		}
}
