/* SPDX-License-Identifier: Apache-2.0 */
/* The answer for people: the program alone, what each level adds, and where the time goes without
 * that. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/help.h"
#include "cli/levels/levels.h"
#include "cli/table.h"
#include "view/levels.h"

enum { INDENT = 16, NOTE_WIDTH = 100 }; /* of what follows "the program" */

/* ---- the levels ---- */

/* Frees TEXT. */
static void
print_said(const char *what, char *text, FILE *out)
{
	fprintf(out, "  %-*s", INDENT - 2, what);
	plumb_text_print(out, text ? text : "?");
	fputc('\n', out);
	free(text);
}

static void
print_program(const struct plumb_profile *p, FILE *out)
{
	const char *note = plumb_levels_note(p);

	print_said("the program", plumb_levels_program(p), out);
	if (note) {
		fprintf(out, "%*s", INDENT, "");
		plumb_help_wrap(out, note, INDENT, INDENT, NOTE_WIDTH);
	}
}

static void
print_added(const struct plumb_profile *p, enum plumb_level_kind level, const char *what, FILE *out)
{
	const struct plumb_level_row *row = plumb_levels_row(p, level);

	if (row)
		print_said(what, plumb_levels_added(p, row), out);
}

/* How many call paths of kernels have counters. */
static void
print_counters(const struct plumb_profile *p, FILE *out)
{
	uint32_t counted = 0, last = PLUMB_NONE;

	if (!plumb_levels_row(p, PLUMB_LEVEL_COUNTED))
		return;
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];

		if (v->metric < PLUMB_METRIC_USER || v->context == last ||
		    plumb_context_frame(p, v->context)->kind != PLUMB_FRAME_KERNEL)
			continue;
		counted++;
		last = v->context;
	}
	fprintf(out, "  counters      of %" PRIu32 " call %s of kernels; plumb tables has them\n",
	        counted, counted == 1 ? "path" : "paths");
}

static int
print_levels(const struct plumb_profile *p, FILE *out, int width)
{
	static const struct plumb_column columns[] = {
		{ "level", PLUMB_LEFT }, { "runs", PLUMB_RIGHT },  { "time", PLUMB_RIGHT },
		{ "95 %", PLUMB_RIGHT }, { "added", PLUMB_RIGHT }, { "95 % of it", PLUMB_RIGHT },
		{ "sees", PLUMB_LEFT },
	};
	struct plumb_table *table = plumb_table_new(columns, 7);
	char text[PLUMB_LEVELS_INTERVAL];
	int code;

	for (uint32_t i = 0; i < p->levels_count; i++) {
		const struct plumb_level_row *row = &p->levels[i];

		plumb_table_cell(table, plumb_level_name(row->level));
		snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, row->kept, row->runs);
		plumb_table_cell(table, text);
		plumb_table_cell(table, plumb_format_time(text, row->time_ns));
		plumb_table_cell(table, plumb_levels_interval(text, row->low_ns, row->high_ns));
		plumb_table_cell(table, row->level == PLUMB_LEVEL_M
		                                ? ""
		                                : plumb_format_time(text, row->added_ns));
		plumb_table_cell(table, row->level == PLUMB_LEVEL_M
		                                ? ""
		                                : plumb_levels_interval(text, row->added_low_ns,
		                                                        row->added_high_ns));
		plumb_table_cell(table, plumb_levels_sees(row));
	}
	fputc('\n', out);
	code = plumb_table_print(table, out, width, false);
	plumb_table_free(table);
	return code;
}

/* ---- contexts ---- */

static const struct plumb_column row_columns[] = {
	{ "share", PLUMB_RIGHT },    { "corrected", PLUMB_RIGHT }, { "95 %", PLUMB_RIGHT },
	{ "measured", PLUMB_RIGHT }, { "order", PLUMB_LEFT },      { "name", PLUMB_SHORTEN_MIDDLE },
};

/* Where the rows of a tree are indented. */
static int
depth_in(const struct plumb_profile *p, const bool *shown, uint32_t context)
{
	int depth = 0;

	for (uint32_t k = p->contexts[context].parent; k != PLUMB_NONE; k = p->contexts[k].parent)
		depth += shown[k];
	return depth;
}

static void
add_row(struct plumb_table *table, const struct plumb_profile *p, const struct plumb_level_value *v,
        double whole, int depth)
{
	char *name = plumb_levels_name(p, v->context), *indented = NULL;
	char text[PLUMB_LEVELS_INTERVAL];
	int64_t ns = plumb_levels_time_of(v);

	plumb_table_cell(table, plumb_format_share(text, (double)ns, whole));
	plumb_table_cell(table, plumb_format_time(text, plumb_levels_per_step(p, ns)));
	plumb_table_cell(table, plumb_levels_interval(text, plumb_levels_per_step(p, v->low_ns),
	                                              plumb_levels_per_step(p, v->high_ns)));
	plumb_table_cell(table, plumb_format_time(text, plumb_levels_per_step(p, v->measured_ns)));
	plumb_table_cell(table, v->passed == PLUMB_NONE ? "" : "changes");
	if (name && asprintf(&indented, "%*s%s", 2 * depth, "", name) < 0)
		indented = NULL;
	plumb_table_cell(table, indented);
	free(name);
	free(indented);
}

static int
print_rows(const struct plumb_profile *p, enum plumb_levels_rows which, uint32_t top,
           const char *title, FILE *out, int width)
{
	uint32_t count = 0;
	uint32_t *rows = plumb_levels_select(p, which, top, &count);
	bool *shown = calloc((size_t)p->contexts_count + 1, sizeof *shown);
	struct plumb_table *table = plumb_table_new(row_columns, 6);
	double whole = plumb_levels_whole(p, which != PLUMB_LEVELS_KERNELS);
	int code = rows && shown && table ? 0 : -1;

	for (uint32_t i = 0; i < count && !code; i++) {
		const struct plumb_level_value *v = &p->level_values[rows[i]];
		bool tree = which == PLUMB_LEVELS_TREE;

		shown[v->context] = tree;
		add_row(table, p, v, whole, tree ? depth_in(p, shown, v->context) : 0);
	}
	if (!code && count) {
		fprintf(out, "\n%s\n", title);
		code = plumb_table_print(table, out, width, false);
	}
	free(rows);
	free(shown);
	plumb_table_free(table);
	return code;
}

/* ---- what looking changes ---- */

static int
print_order(const struct plumb_profile *p, uint32_t top, FILE *out)
{
	uint32_t count = 0, all = 0;
	uint32_t *rows = plumb_levels_select(p, PLUMB_LEVELS_ORDER, 0, &all);

	if (!rows)
		return -1;
	count = top && top < all ? top : all;
	if (all)
		fputs("\nlooking changes the order of costs\n", out);
	for (uint32_t i = 0; i < count; i++) {
		char *text = plumb_levels_passes(p, &p->level_values[rows[i]]);

		fputs("  ", out);
		plumb_text_print(out, text ? text : "?");
		fputc('\n', out);
		free(text);
	}
	if (count < all)
		fprintf(out, "  and %" PRIu32 " more (--top 0)\n", all - count);
	free(rows);
	return 0;
}

static void
print_left_out(const struct plumb_profile *p, FILE *out)
{
	for (uint32_t i = 0; i < p->levels_count; i++) {
		if (p->levels[i].why == PLUMB_NONE)
			continue;
		fprintf(out, "left out at %s: ", plumb_level_name(p->levels[i].level));
		plumb_text_print(out, plumb_text(p, p->levels[i].why));
		fputc('\n', out);
	}
}

static uint32_t
rows_wanted(int64_t top)
{
	return top < 0 || top > UINT32_MAX ? 0 : (uint32_t)top;
}

int
plumb_levels_text(const struct plumb_profile *p, int64_t top, FILE *out, int width)
{
	char title[160];
	uint32_t most = rows_wanted(top);
	int code;

	fputs("plumb levels\n", out);
	if (plumb_text(p, p->run.command)) {
		fputs("  command       ", out);
		plumb_text_print(out, plumb_text(p, p->run.command));
		fputc('\n', out);
	}
	print_program(p, out);
	print_added(p, PLUMB_LEVEL_ML, "layers", out);
	print_added(p, PLUMB_LEVEL_MLG, "kernels", out);
	print_counters(p, out);
	print_left_out(p, out);
	code = print_order(p, most, out);
	if (!code)
		code = print_levels(p, out, width);
	snprintf(title, sizeof title, "layers: host time of %s at M/L, in M", plumb_levels_unit(p));
	if (!code)
		code = print_rows(p, PLUMB_LEVELS_LAYERS, most, title, out, width);
	snprintf(title, sizeof title, "GPU work: time of %s at M/L/G", plumb_levels_unit(p));
	if (!code)
		code = print_rows(p, PLUMB_LEVELS_KERNELS, most, title, out, width);
	return code;
}

int
plumb_corrected_text(const struct plumb_profile *p, int64_t top, FILE *out, int width)
{
	char title[160];
	int code;

	fputs("plumb report --corrected\n", out);
	print_program(p, out);
	print_left_out(p, out);
	snprintf(title, sizeof title,
	         "call paths: host time of %s, measured at M/L/G and corrected; total times",
	         plumb_levels_unit(p));
	code = print_rows(p, PLUMB_LEVELS_TREE, rows_wanted(top), title, out, width);
	snprintf(title, sizeof title, "GPU work: time of %s at M/L/G", plumb_levels_unit(p));
	if (!code)
		code = print_rows(p, PLUMB_LEVELS_KERNELS, rows_wanted(top), title, out, width);
	return code ? code : print_order(p, rows_wanted(top), out);
}
