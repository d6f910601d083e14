/* SPDX-License-Identifier: Apache-2.0 */
/* The answer for people: the program alone, what each level adds, and where the time goes without
 * that. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/levels/levels.h"
#include "cli/table.h"
#include "model/metric.h"
#include "view/levels.h"

#define INTERVAL (2 * PLUMB_FORMAT_SIZE)

/* Values are of all iterations of the loop; text shows one. */
static int64_t
per_step(const struct plumb_profile *p, int64_t ns)
{
	int64_t steps = p->levels_count ? p->levels[0].steps : PLUMB_UNKNOWN;

	return ns == PLUMB_UNKNOWN || steps == PLUMB_UNKNOWN || steps < 1
	               ? ns
	               : llround((double)ns / (double)steps);
}

static bool
is_of_steps(const struct plumb_profile *p)
{
	return p->levels_count && p->levels[0].scope == PLUMB_COST_OF_STEP;
}

/* "9.31 ms to 9.52 ms"; a dash if it is not known. */
static const char *
interval(char *text, int64_t low, int64_t high)
{
	char from[PLUMB_FORMAT_SIZE], to[PLUMB_FORMAT_SIZE];

	if (low == PLUMB_UNKNOWN || high == PLUMB_UNKNOWN)
		return strcpy(text, PLUMB_DASH);
	snprintf(text, INTERVAL, "%s to %s", plumb_format_time(from, low),
	         plumb_format_time(to, high));
	return text;
}

/* ---- the levels ---- */

static void
print_program(const struct plumb_profile *p, FILE *out)
{
	static const char *const bounds[] = { NULL, "bounded by its launches",
		                              "bounded by its ranges", "as a whole" };
	const struct plumb_level_row *m = plumb_levels_row(p, PLUMB_LEVEL_M);
	char time[PLUMB_FORMAT_SIZE], range[INTERVAL];

	if (!m || m->time_ns == PLUMB_UNKNOWN) {
		fputs("  the program   time without plumb unknown\n", out);
		return;
	}
	fprintf(out, "  the program   %s %s, %s (95 %%: %s; ", plumb_format_time(time, m->time_ns),
	        is_of_steps(p) ? "an iteration" : "the run",
	        m->bounds == PLUMB_LEVEL_BY_LOOP ? "with its ranges alone recorded"
	                                         : "without plumb",
	        interval(range, m->low_ns, m->high_ns));
	if (m->steps != PLUMB_UNKNOWN)
		fprintf(out, "%s iterations; ", plumb_format_count(time, m->steps));
	fprintf(out, "%" PRId64 " %s, %s)\n", m->kept, m->kept == 1 ? "run" : "runs",
	        bounds[m->bounds]);
	if (m->bounds == PLUMB_LEVEL_BY_RUN)
		fputs("                No iterations are known without looking at operators, so "
		      "the runs are compared\n                as a whole, with their start. Put "
		      "plumb.span around an iteration to change that.\n",
		      out);
}

static void
print_added(const struct plumb_profile *p, enum plumb_level_kind level, const char *what, FILE *out)
{
	const struct plumb_level_row *row = plumb_levels_row(p, level);
	const struct plumb_level_row *m = plumb_levels_row(p, PLUMB_LEVEL_M);
	char time[PLUMB_FORMAT_SIZE], share[PLUMB_FORMAT_SIZE], range[INTERVAL];

	if (!row)
		return;
	fprintf(out, "  %-13s ", what);
	if (row->added_ns == PLUMB_UNKNOWN) {
		fputs("what looking at them adds is unknown\n", out);
		return;
	}
	if (row->added_low_ns != PLUMB_UNKNOWN && row->added_low_ns <= 0 && row->added_high_ns >= 0)
		fputs("looking at them adds no more than what the runs differ by: ", out);
	else
		fputs("looking at them adds ", out);
	fprintf(out, "%s%s%s (95 %%: %s)\n", plumb_format_time(time, row->added_ns),
	        m && m->time_ns > 0 ? ", " : "",
	        m && m->time_ns > 0
	                ? plumb_format_share(share, (double)row->added_ns, (double)m->time_ns)
	                : "",
	        interval(range, row->added_low_ns, row->added_high_ns));
}

static int
print_levels(const struct plumb_profile *p, FILE *out, int width)
{
	static const struct plumb_column columns[] = {
		{ "level", PLUMB_LEFT }, { "runs", PLUMB_RIGHT },  { "time", PLUMB_RIGHT },
		{ "95 %", PLUMB_RIGHT }, { "added", PLUMB_RIGHT }, { "95 % of it", PLUMB_RIGHT },
		{ "sees", PLUMB_LEFT },
	};
	static const char *const sees[] = { NULL, "the program alone", "modules and operators",
		                            "GPU work and call paths",
		                            "the same, every launch waits" };
	struct plumb_table *table = plumb_table_new(columns, 7);
	char text[INTERVAL];
	int code;

	for (uint32_t i = 0; i < p->levels_count; i++) {
		const struct plumb_level_row *row = &p->levels[i];

		plumb_table_cell(table, plumb_level_name(row->level));
		snprintf(text, sizeof text, "%" PRId64 "/%" PRId64, row->kept, row->runs);
		plumb_table_cell(table, text);
		plumb_table_cell(table, plumb_format_time(text, row->time_ns));
		plumb_table_cell(table, interval(text, row->low_ns, row->high_ns));
		plumb_table_cell(table, row->level == PLUMB_LEVEL_M
		                                ? ""
		                                : plumb_format_time(text, row->added_ns));
		plumb_table_cell(table,
		                 row->level == PLUMB_LEVEL_M
		                         ? ""
		                         : interval(text, row->added_low_ns, row->added_high_ns));
		plumb_table_cell(table,
		                 row->level == PLUMB_LEVEL_M && row->bounds == PLUMB_LEVEL_BY_LOOP
		                         ? "ranges alone"
		                         : sees[row->level]);
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

/* "forward  net.py:10", "0 (Linear)", "aten::mm"; malloced. NULL: no memory. */
static char *
name_of(const struct plumb_profile *p, uint32_t context)
{
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *label = plumb_frame_label(p, p->contexts[context].frame);
	const char *file = plumb_text(p, frame->file), *dot = file ? strrchr(file, '.') : NULL;
	char *name = NULL;
	int code;

	if (!context)
		code = asprintf(&name, "all call paths");
	else if (frame->kind == PLUMB_FRAME_PYTHON && frame->line)
		code = asprintf(&name, "%s  %s:%u", label, file ? plumb_path_base(file) : "?",
		                frame->line);
	else if (frame->kind == PLUMB_FRAME_MODULE && file)
		code = asprintf(&name, "%s (%s)", label, dot ? dot + 1 : file);
	else
		code = asprintf(&name, "%s", label);
	return code < 0 ? NULL : name;
}

static void
add_row(struct plumb_table *table, const struct plumb_profile *p, const struct plumb_level_value *v,
        double whole, int depth)
{
	char text[INTERVAL], *name = name_of(p, v->context), *indented = NULL;
	int64_t ns = v->own_ns != PLUMB_UNKNOWN && v->metric != PLUMB_METRIC_OP_TIME
	                     ? v->own_ns
	                     : v->corrected_ns;

	plumb_table_cell(table, plumb_format_share(text, (double)ns, whole));
	plumb_table_cell(table, plumb_format_time(text, per_step(p, ns)));
	plumb_table_cell(table, interval(text, per_step(p, v->low_ns), per_step(p, v->high_ns)));
	plumb_table_cell(table, plumb_format_time(text, per_step(p, v->measured_ns)));
	plumb_table_cell(table, v->passed == PLUMB_NONE ? "" : "changes");
	if (name && asprintf(&indented, "%*s%s", 2 * depth, "", name) < 0)
		indented = NULL;
	plumb_table_cell(table, indented);
	free(name);
	free(indented);
}

/* The greatest corrected time of the metric at the root. */
static double
whole_of(const struct plumb_profile *p, bool host)
{
	double most = 0, sum = 0;

	for (uint32_t i = 0; i < p->level_values_count; i++) {
		const struct plumb_level_value *v = &p->level_values[i];
		if (v->level == PLUMB_LEVEL_SERIALISED || v->corrected_ns == PLUMB_UNKNOWN ||
		    (v->metric == PLUMB_METRIC_OP_TIME) != host)
			continue;
		if (host)
			most = fmax(most, (double)v->corrected_ns);
		else
			sum += v->own_ns > 0 ? (double)v->own_ns : 0;
	}
	return host ? most : sum;
}

static int
print_rows(const struct plumb_profile *p, enum plumb_levels_rows which, uint32_t top,
           const char *title, FILE *out, int width)
{
	uint32_t count = 0;
	uint32_t *rows = plumb_levels_select(p, which, top, &count);
	bool *shown = calloc((size_t)p->contexts_count + 1, sizeof *shown);
	struct plumb_table *table = plumb_table_new(row_columns, 6);
	double whole = whole_of(p, which != PLUMB_LEVELS_KERNELS);
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
	char text[2][PLUMB_FORMAT_SIZE];
	uint32_t count = 0, all = 0;
	uint32_t *rows = plumb_levels_select(p, PLUMB_LEVELS_ORDER, 0, &all);

	if (!rows)
		return -1;
	count = top && top < all ? top : all;
	if (all)
		fputs("\nlooking changes the order of costs\n", out);
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_level_value *v = &p->level_values[rows[i]];
		char *name = name_of(p, v->context), *other = name_of(p, v->passed);

		fputs("  ", out);
		plumb_text_print(out, name ? name : "?");
		fprintf(out, " (%s, corrected %s) seems to cost more than ",
		        plumb_format_time(text[0], per_step(p, v->measured_ns)),
		        plumb_format_time(text[1], per_step(p, v->corrected_ns)));
		plumb_text_print(out, other ? other : "?");
		fputs(", and costs less\n", out);
		free(name);
		free(other);
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

static const char *
unit_words(const struct plumb_profile *p)
{
	return is_of_steps(p) ? "an iteration" : "the run";
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
	print_left_out(p, out);
	code = print_order(p, most, out);
	if (!code)
		code = print_levels(p, out, width);
	snprintf(title, sizeof title, "layers: host time of %s at M/L, in M", unit_words(p));
	if (!code)
		code = print_rows(p, PLUMB_LEVELS_LAYERS, most, title, out, width);
	snprintf(title, sizeof title, "GPU work: time of %s at M/L/G", unit_words(p));
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
	         unit_words(p));
	code = print_rows(p, PLUMB_LEVELS_TREE, rows_wanted(top), title, out, width);
	snprintf(title, sizeof title, "GPU work: time of %s at M/L/G", unit_words(p));
	if (!code)
		code = print_rows(p, PLUMB_LEVELS_KERNELS, rows_wanted(top), title, out, width);
	return code ? code : print_order(p, rows_wanted(top), out);
}
