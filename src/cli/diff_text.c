/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison for people. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/format.h"
#include "cli/diff.h"
#include "cli/options.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/windows.h"

#define FAMILIES_MOST 10u
#define TIMES_MOST 100000 /* of an interval that says nothing any more */
#define BRIEF 100         /* lines narrower than this have no room for what other columns say */
#define BRIEF_INDENT 6

/* ---- numbers ---- */

static const char *
format_quantity(char *text, const char *unit, double value)
{
	if (!isfinite(value) || fabs(value) > 9e18)
		return plumb_format_count(text, INT64_MIN);
	/* A part of a call an iteration is one in several. */
	if (unit && !strcmp(unit, "count") && fabs(value) < 1000 && value != round(value)) {
		snprintf(text, PLUMB_FORMAT_SIZE, "%.2f", value);
		return text;
	}
	return plumb_format_quantity(text, unit, llround(value));
}

/* "+12 µs", "−3 ms" */
static const char *
format_signed_quantity(char *text, const char *unit, double value)
{
	char amount[PLUMB_FORMAT_SIZE];

	if (isnan(value))
		return PLUMB_DASH;
	snprintf(text, 2 * PLUMB_FORMAT_SIZE, "%s%s",
	         value > 0   ? "+"
	         : value < 0 ? "-"
	                     : "",
	         format_quantity(amount, unit, fabs(value)));
	return text;
}

static const char *
format_percent(char *text, double part)
{
	char times[PLUMB_FORMAT_SIZE];

	if (!isfinite(part))
		return PLUMB_DASH;
	if (part >= TIMES_MOST)
		snprintf(text, PLUMB_FORMAT_SIZE, ">\xc3\x97%s",
		         plumb_format_count(times, TIMES_MOST));
	else if (part >= 1000)
		snprintf(text, PLUMB_FORMAT_SIZE, "\xc3\x97%s",
		         plumb_format_count(times, llround(part + 1)));
	else if (fabs(part) >= 10)
		snprintf(text, PLUMB_FORMAT_SIZE, "\xc3\x97%.3g", part + 1);
	else
		snprintf(text, PLUMB_FORMAT_SIZE, "%+.*f %%", fabs(part) < 0.1 ? 2 : 1, 100 * part);
	return text;
}

/* "+4.6 … +5.4 %" */
static const char *
format_interval(char *text, const struct plumb_change *c)
{
	char low[PLUMB_FORMAT_SIZE], high[PLUMB_FORMAT_SIZE];

	if (!isfinite(c->low) || !isfinite(c->high))
		return PLUMB_DASH;
	snprintf(text, 3 * PLUMB_FORMAT_SIZE, "%s " PLUMB_ELLIPSIS " %s",
	         format_percent(low, c->low), format_percent(high, c->high));
	return text;
}

/* ---- the head ---- */

/* Bytes as such, by the name of KEY. */
static void
print_value(const char *key, const char *value, FILE *out)
{
	size_t length = strlen(key);
	int64_t bytes = value && length > 6 && !strcmp(key + length - 6, "_bytes")
	                        ? plumb_parse_number(value)
	                        : -1;
	char text[PLUMB_FORMAT_SIZE];

	plumb_text_print(out, bytes >= 0 ? plumb_format_bytes(text, bytes)
	                      : value    ? value
	                                 : PLUMB_DASH);
}

static void
print_environment(const struct plumb_diff_environment *environment, FILE *out)
{
	int widest = 0;

	fputs(environment->count ? "environment\n" : "environment: no differences\n", out);
	for (uint32_t i = 0; i < environment->count; i++)
		if ((int)strlen(environment->facts[i].key) > widest)
			widest = (int)strlen(environment->facts[i].key);
	for (uint32_t i = 0; i < environment->count; i++) {
		const struct plumb_diff_fact *fact = &environment->facts[i];

		fprintf(out, "  %-*s  ", widest, fact->key);
		print_value(fact->key, fact->before, out);
		fputs(" \xe2\x86\x92 ", out);
		print_value(fact->key, fact->after, out);
		fputc('\n', out);
	}
}

static void
print_runs(const struct plumb_diff_run *runs, uint32_t from, uint32_t to, FILE *out)
{
	for (uint32_t r = from; r < to; r++) {
		fputs(r > from ? ", " : "", out);
		if (isnan(runs[r].iterations)) {
			fputs(PLUMB_DASH, out);
			continue;
		}
		fprintf(out, "%.6g (%s%" PRIu32 " measured", runs[r].iterations,
		        runs[r].newest ? "the newest " : "", runs[r].measured);
		if (runs[r].left_out)
			fprintf(out, ", %" PRIu32 " outlier%s left out", runs[r].left_out,
			        runs[r].left_out == 1 ? "" : "s");
		fputc(')', out);
	}
}

static void
print_iterations(const struct plumb_compared *c, FILE *out)
{
	static const char *const from[] = {
		"not known of every run, so values are sums of whole recordings",
		"from --iterations", "found in the order of the GPU's kernels", "from a marker",
		"of the window"
	};
	uint32_t count, before;
	const struct plumb_diff_run *runs = plumb_diff_runs(c->diff, &count, &before);

	fputs("iterations: ", out);
	print_runs(runs, 0, before, out);
	fputs(" \xe2\x86\x92 ", out);
	print_runs(runs, before, count, out);
	fprintf(out, "; %s\n", from[plumb_diff_from(c->diff)]);
	if (!plumb_diff_is_alike(c->diff))
		fputs("  the iterations of the two sides have few kernels in common; check that "
		      "both sides repeat the same work\n",
		      out);
}

/* ---- tables ---- */

static const struct plumb_column columns[] = {
	{ "change", PLUMB_RIGHT },    { "relative", PLUMB_RIGHT }, { "95 % interval", PLUMB_RIGHT },
	{ "", PLUMB_LEFT },           { "before", PLUMB_RIGHT },   { "after", PLUMB_RIGHT },
	{ "", PLUMB_SHORTEN_MIDDLE },
};

static bool
is_brief(int width)
{
	return width > 0 && width < BRIEF;
}

static void
add_cells(struct plumb_table *table, const struct plumb_change *c, const char *unit,
          const char *name)
{
	char text[3 * PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, format_signed_quantity(text, unit, c->change));
	plumb_table_cell(table, format_percent(text, c->ratio - 1));
	plumb_table_cell(table, format_interval(text, c));
	plumb_table_cell(table, plumb_change_is_clear(c) ? "*" : "");
	plumb_table_cell(table, isnan(c->before) ? NULL : format_quantity(text, unit, c->before));
	plumb_table_cell(table, isnan(c->after) ? NULL : format_quantity(text, unit, c->after));
	plumb_table_cell(table, name);
}

static int
print_and_free(struct plumb_table *table, FILE *out, int width)
{
	int code = plumb_table_print(table, out, width, plumb_terminal_colour(out));

	plumb_table_free(table);
	return code;
}

static int
print_measures(const struct plumb_compared *c, FILE *out, int width)
{
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	char name[160];

	if (!c->measure_count) {
		plumb_table_free(table);
		return 0;
	}
	for (uint32_t i = 0; i < c->measure_count; i++) {
		const struct plumb_diff_measure *m = &c->measures[i];

		if (is_brief(width))
			snprintf(name, sizeof name, "%s", m->name);
		else
			snprintf(name, sizeof name, "%s (%s)", m->name, m->statistic);
		add_cells(table, &m->amount, m->unit, name);
	}
	fputc('\n', out);
	return print_and_free(table, out, width);
}

/* The name of a row, where it is, and what it became. */
static void
describe_row(const struct plumb_compared *c, const struct plumb_diff_row *row, bool brief,
             char *text, size_t size)
{
	char amount[PLUMB_FORMAT_SIZE];
	size_t used;

	snprintf(text, size, "%s", row->name);
	used = strlen(text);
	if (row->file && row->line)
		snprintf(text + used, size - used, " %s:%" PRIu32, plumb_path_base(row->file),
		         row->line);
	else if (row->file && strcmp(row->kind, "module"))
		snprintf(text + used, size - used, " %s", plumb_path_base(row->file));
	used = strlen(text);
	if (row->line != row->after_line)
		snprintf(text + used, size - used, " \xe2\x86\x92 :%" PRIu32, row->after_line);
	used = strlen(text);
	if (row->backward)
		snprintf(text + used, size - used, " [backward]");
	used = strlen(text);
	if (row->before_names)
		snprintf(text + used, size - used, ": %s \xe2\x86\x92 %s", row->before_names,
		         row->after_names);
	used = strlen(text);
	if (!brief && isnan(row->amount.before) != isnan(row->amount.after))
		snprintf(text + used, size - used, "; only %s",
		         isnan(row->amount.after) ? "before" : "after");
	used = strlen(text);
	if (row->fused_in)
		snprintf(text + used, size - used, "; fused into %s (%s)", row->fused_in,
		         format_quantity(amount, c->unit, row->fused_amount));
}

/* A row on one side only came or went as a whole. (A measure on one side only is unknown on the
 * other.) */
static struct plumb_change
change_of_row(const struct plumb_diff_row *row)
{
	struct plumb_change change = row->amount;

	if (isnan(change.before) == isnan(change.after))
		return change;
	change.change = isnan(change.after) ? -change.before : change.after;
	change.ratio = isnan(change.after) ? 0 : NAN;
	return change;
}

static uint32_t
depth_of(const struct plumb_diff_table *table, uint32_t row)
{
	uint32_t depth = 0;

	while ((row = table->rows[row].parent) != PLUMB_NONE)
		depth++;
	return depth;
}

static int
print_rows(const struct plumb_compared *c, FILE *out, int width)
{
	enum { COLUMNS = sizeof columns / sizeof *columns };
	struct plumb_column own[COLUMNS];
	struct plumb_table *table;
	bool context = c->by == PLUMB_DIFF_CONTEXT, brief = is_brief(width);

	memcpy(own, columns, sizeof own);
	if (!context)
		own[COLUMNS - 1].style = PLUMB_SHORTEN_NAME;
	table = plumb_table_new(own, COLUMNS);

	fprintf(out, "\n%s by %s", c->metric, plumb_diff_by_name(c->by));
	if (c->by != PLUMB_DIFF_ITERATION)
		fprintf(out, " (%s)", plumb_diff_statistic(c));
	fputs("\n\n", out);
	for (uint32_t i = 0; i < c->table.count; i++) {
		char text[2000];
		uint32_t depth = context ? depth_of(&c->table, i) : 0;
		int indent = brief && depth > BRIEF_INDENT ? BRIEF_INDENT
		             : brief                       ? (int)depth
		                                           : (int)(depth > 40 ? 80 : 2 * depth);

		if (!c->shown[i])
			continue;
		memset(text, ' ', (size_t)indent);
		describe_row(c, &c->table.rows[i], brief, text + indent,
		             sizeof text - (size_t)indent);
		struct plumb_change change = c->by == PLUMB_DIFF_ITERATION
		                                     ? c->table.rows[i].amount
		                                     : change_of_row(&c->table.rows[i]);
		add_cells(table, &change, c->unit, text);
	}
	int code = print_and_free(table, out, width);
	if (c->shown_count < c->table.count)
		fprintf(out, "%" PRIu32 " more (--top 0 shows all)\n",
		        c->table.count - c->shown_count);
	return code;
}

/* Operators that one side lacks make it worth knowing what all of their kind take. */
static int
print_families(const struct plumb_compared *c, FILE *out, int width)
{
	struct plumb_table *table;
	bool lacking = false;

	for (uint32_t i = 0; i < c->table.count; i++)
		lacking |= isnan(c->table.rows[i].amount.change) && c->table.rows[i].family;
	if (!lacking || !c->table.family_count)
		return 0;
	table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	fputs("\nby kind of operator\n\n", out);
	for (uint32_t i = 0; i < c->table.family_count && i < FAMILIES_MOST; i++)
		add_cells(table, &c->table.families[i].amount, c->unit, c->table.families[i].name);
	return print_and_free(table, out, width);
}

/* What the host spends more or less time in, if that is what makes iterations longer or shorter. */
static int
print_host(const struct plumb_compared *c, FILE *out, int width)
{
	const struct plumb_diff_host *h = &c->host;
	char step[PLUMB_FORMAT_SIZE], idle[PLUMB_FORMAT_SIZE], rows[2 * PLUMB_FORMAT_SIZE];
	const char *than = h->step_change > 0 ? "more" : "less";
	struct plumb_table *table;

	if (!h->wanted)
		return 0;
	fprintf(out,
	        "\nAn iteration takes %s %s, and the GPU idles %s %s; %s changes by %s only.\n",
	        format_quantity(step, "ns", fabs(h->step_change)), than,
	        format_quantity(idle, "ns", fabs(h->idle_change)), than, c->metric,
	        format_signed_quantity(rows, "ns", h->row_change));
	if (!h->metric) {
		fputs("What the host did is not known: record both sides with plumb run --cpu.\n",
		      out);
		return 0;
	}
	fprintf(out, "%s of the host by %s (%s) explains it:\n\n", h->metric,
	        plumb_diff_by_name(h->by), h->each ? "mean of iterations" : "sum of an iteration");
	table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	for (uint32_t i = 0; i < h->row_count; i++) {
		char text[2000];

		describe_row(c, h->rows[i], is_brief(width), text, sizeof text);
		struct plumb_change change = change_of_row(h->rows[i]);
		add_cells(table, &change, "ns", text);
	}
	return print_and_free(table, out, width);
}

/* ---- gates ---- */

void
plumb_diff_gates(const struct plumb_compared *c, FILE *out)
{
	for (uint32_t i = 0; i < c->gate_count; i++) {
		const struct plumb_gate_result *r = &c->results[i];
		char text[3 * PLUMB_FORMAT_SIZE];

		fputs("gate ", out);
		plumb_text_print(out, c->gates[i].text);
		fputs(r->holds ? ": holds" : ": does not hold", out);
		if (r->why) {
			fprintf(out, ": %s\n", r->why);
			continue;
		}
		fprintf(out, ": %s", format_signed_quantity(text, r->unit, r->amount.change));
		fprintf(out, " (%s), %s; ", format_percent(text, r->amount.ratio - 1),
		        r->statistic);
		if (r->certain < 0)
			fputs("interval unknown", out);
		else
			fprintf(out, "95 %% interval: %s%s", format_interval(text, &r->amount),
			        r->certain ? "" : ", so the opposite is possible");
		fputc('\n', out);
	}
}

int
plumb_diff_text(const struct plumb_compared *c, FILE *out, int width)
{
	int code;

	plumb_windows_print_only(c->profiles[0], out);
	print_environment(&c->environment, out);
	print_iterations(c, out);
	code = print_measures(c, out, width);
	if (!code)
		code = print_host(c, out, width);
	if (!code && c->table.count)
		code = print_rows(c, out, width);
	if (!code)
		code = print_families(c, out, width);
	if (c->gate_count)
		fputc('\n', out);
	plumb_diff_gates(c, out);
	return code;
}
