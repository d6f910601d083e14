/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At most PLUMB_SUMMARY_LINES lines: 1 title, 2 of the run, 1 of ranks, DEVICES + 1 (one of which
 * gives way to what part of the time the tables cover), 1 of memory, notes, FINDINGS, three tables
 * of a blank line, titles and ROWS, a blank line, DROPS of the ledger with their title, 1 closing
 * hint. Where a line says why the rows are what they are, it takes the place of the operators', or
 * of one of their rows. If there is a main loop, a row of each table gives way to start-up, the
 * loop, and a line that says what the tables are of.
 */
#include "cli/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "cli/divided.h"
#include "cli/findings.h"
#include "cli/finish.h"
#include "cli/ledger.h"
#include "cli/overview.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/windows.h"
#include "model/display.h"
#include "model/window.h"
#include "view/coverage.h"
#include "view/report.h"

#define DEVICES 3
#define ROWS 5
#define DROPS 3
#define FINDINGS 2
_Static_assert(1 + 2 + 1 + DEVICES + 1 + 1 + PLUMB_OVERVIEW_NOTES + FINDINGS + 3 * (2 + ROWS) + 2 +
                               DROPS + 1 <=
                       PLUMB_SUMMARY_LINES,
               "the summary fits");

struct section {
	const struct plumb_profile *profile;
	const char *metric; /* NULL: the profile's default */
	const struct plumb_summary_options *options;
	FILE *out;
	int width;
	uint32_t rows;
	bool sampled; /* the metric is of samples */
};

/* ---- rows ---- */

/* What the third column counts. Operators are called themselves; lines have operators in them. */
static const char *
count_title(const struct section *s, const struct plumb_report *report)
{
	return s->sampled                                ? "samples"
	       : report->metric == PLUMB_METRIC_GPU_TIME ? "kernels"
	       : report->by == PLUMB_BY_OPERATOR         ? "calls"
	       : report->metric == PLUMB_METRIC_OP_TIME  ? "op.calls"
	                                                 : "count";
}

static void
add_row(const struct plumb_report *report, struct plumb_table *table, uint32_t row)
{
	bool line = report->by == PLUMB_BY_USER_LINE;
	char each[PLUMB_FORMAT_SIZE];
	const struct plumb_stat *stat = &report->exclusive[row];
	const struct plumb_calls *calls = &report->row_calls[row];
	bool entries = report->by == PLUMB_BY_OPERATOR && plumb_report_counts_entries(report);
	int64_t amount = plumb_stat_amount(report->metric, stat);
	int64_t whole = plumb_stat_amount(report->metric, &report->total);
	char number[PLUMB_FORMAT_SIZE], text[1500];
	struct plumb_report_place place;

	plumb_report_row_place(report, row, &place);
	plumb_table_cell(table, plumb_format_share(number, (double)amount, (double)whole));
	plumb_table_cell(table, plumb_format_time(number, amount));
	plumb_table_cell(table, plumb_format_count(number, entries && calls->known
	                                                           ? (int64_t)calls->count
	                                                           : (int64_t)stat->count));
	if (line && place.folded > 1)
		snprintf(text, sizeof text, "%s  %" PRIu32 " \xc3\x97 %s", place.name, place.folded,
		         plumb_format_time(each, amount / place.folded));
	else if (line && place.part != PLUMB_NONE)
		plumb_division_text(report->profile, report->division, place.part, true, text,
		                    sizeof text);
	else if (line && (place.line || !place.library))
		snprintf(text, sizeof text, "%.*s %s:%" PRIu32,
		         (int)plumb_name_without_parameters(place.name), place.name,
		         place.file ? place.file : "?", place.line);
	else if (line)
		snprintf(text, sizeof text, "%.*s in %s",
		         (int)plumb_name_without_parameters(place.name), place.name,
		         plumb_path_base(place.library));
	else
		snprintf(text, sizeof text, "%s", place.name);
	plumb_table_cell(table, text);
	if (line)
		return;
	if (place.part != PLUMB_NONE)
		plumb_division_text(report->profile, report->division, place.part, true, text,
		                    sizeof text);
	else
		plumb_report_user_text(&place, text, sizeof text);
	plumb_table_cell(table, text);
}

/* Returns the row with the most that comes after LAST; PLUMB_NONE: LAST was the last one. For LAST
 * PLUMB_NONE, it is the first of all. Equal rows come in the order of the profile. */
static uint32_t
find_next_row(const struct plumb_report *report, uint32_t last)
{
	const struct plumb_stat *stats = report->exclusive;
	uint32_t best = PLUMB_NONE;

	for (uint32_t r = 0; r < plumb_grouping_count(report->grouping); r++) {
		int64_t amount = plumb_stat_amount(report->metric, &stats[r]), limit;

		limit = last == PLUMB_NONE ? amount
		                           : plumb_stat_amount(report->metric, &stats[last]);
		if (!stats[r].count || amount > limit ||
		    (last != PLUMB_NONE && amount == limit && r <= last))
			continue;
		if (best == PLUMB_NONE || amount > plumb_stat_amount(report->metric, &stats[best]))
			best = r;
	}
	return best;
}

/* Prints the rows of REPORT with the most; nothing if there are none. Negative: no memory. */
static int
print_rows(const struct section *s, const struct plumb_report *report, const char *title)
{
	const struct plumb_column columns[] = {
		{ "share", PLUMB_RIGHT },
		{ s->sampled                                ? "time"
		  : report->metric == PLUMB_METRIC_GPU_TIME ? "on GPU"
		                                            : "self",
		  PLUMB_RIGHT },
		{ count_title(s, report), PLUMB_RIGHT },
		{ title,
		  report->by == PLUMB_BY_KERNEL ? PLUMB_SHORTEN_KERNEL : PLUMB_SHORTEN_NAME },
		{ plumb_report_is_divided(report) ? PLUMB_PART_TITLE : "line of your code",
		  PLUMB_SHORTEN_START },
	};
	struct plumb_table *table =
		plumb_table_new(columns, report->by == PLUMB_BY_USER_LINE ? 4 : 5);
	int result = table ? 0 : -1;
	uint32_t row = PLUMB_NONE, shown = 0;

	while (table && shown < s->rows && (row = find_next_row(report, row)) != PLUMB_NONE) {
		add_row(report, table, row);
		shown++;
	}
	if (table && shown) {
		fputc('\n', s->out);
		result = plumb_table_print(table, s->out, s->width, plumb_terminal_colour(s->out));
	}
	plumb_table_free(table);
	return result;
}

/* The title of the table of your lines: "your code; train.py:10 (97.1 %) is divided" */
static const char *
title_lines(const struct plumb_report *report, const char *title, char *text, size_t size)
{
	const struct plumb_division *d = report->division;
	char line[1000], share[PLUMB_FORMAT_SIZE];

	if (report->by != PLUMB_BY_USER_LINE || !plumb_report_is_divided(report) ||
	    d->line == PLUMB_NONE)
		return title;
	snprintf(text, size, "%s; parts of %s (%s)", title,
	         plumb_division_text(report->profile, d, d->line, false, line, sizeof line),
	         plumb_format_share(share, d->share, 1));
	return text;
}

static int
print_section(const struct section *s, enum plumb_group_by by, const char *title)
{
	struct plumb_report_query query = { .by = by,
		                            .metric = s->metric,
		                            .user_code = s->options->user_code };
	struct plumb_report report;
	char text[1200];
	int result = plumb_report_make(s->profile, &query, &report, NULL);

	if (!result)
		result = print_rows(s, &report, title_lines(&report, title, text, sizeof text));
	plumb_report_free(&report);
	return result;
}

/* The samples of the main thread only, with CPU time and waiting as one metric. NULL: no memory. */
static struct plumb_value *
main_values(const struct plumb_profile *p, uint32_t process, uint32_t *count)
{
	struct plumb_value *values = calloc(p->values_count + 1u, sizeof *values);

	*count = 0;
	for (uint32_t i = 0; values && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];

		if ((v->metric != PLUMB_METRIC_CPU_TIME && v->metric != PLUMB_METRIC_WAIT_TIME) ||
		    plumb_profile_main_of(p, v->track) != process)
			continue;
		values[*count] = *v;
		values[(*count)++].metric = PLUMB_METRIC_CPU_TIME;
	}
	return values;
}

/* Prints the lines of your code: by samples if they cover more of the time. */
static int
print_lines(struct section *s, const struct plumb_coverage *coverage)
{
	uint32_t usual = plumb_metric_default(s->profile);
	struct plumb_profile view = *s->profile;
	struct plumb_value *values = NULL;
	bool main_only;
	uint32_t metric = plumb_coverage_choose(coverage, usual, &main_only);
	int result;

	s->metric = metric == usual ? NULL : plumb_metrics[metric].name;
	s->sampled = metric == PLUMB_METRIC_CPU_TIME;
	if (main_only) {
		s->metric = plumb_metrics[metric].name;
		values = main_values(s->profile, coverage->process, &view.values_count);
		if (!values)
			return -1;
		view.values = values;
		s->profile = &view;
	}
	result = print_section(s, PLUMB_BY_USER_LINE,
	                       main_only    ? "your code (main thread: CPU and waiting)"
	                       : s->sampled ? "your code (CPU samples)"
	                                    : "your code");
	free(values);
	return result;
}

static bool
has_kernels(const struct plumb_profile *profile)
{
	for (uint32_t f = 0; f < profile->frames_count; f++)
		if (profile->frames[f].kind == PLUMB_FRAME_KERNEL)
			return true;
	return false;
}

static int
print_tables(const struct plumb_profile *profile, FILE *out,
             const struct plumb_summary_options *options, const struct plumb_coverage *coverage)
{
	uint32_t rows = profile->window.kind ? ROWS - 1 : ROWS;
	struct section s = {
		.profile = profile,
		.options = options,
		.out = out,
		.width = options->width > 0 ? options->width : plumb_terminal_width(out),
		.rows = rows,
	};
	struct plumb_report_choice choice;
	int result = plumb_report_choose(profile, plumb_metric_default(profile), &choice);
	bool module = !result && (choice.by == PLUMB_BY_MODULE || choice.by == PLUMB_BY_RANGE);

	if (!result && choice.why[0])
		fprintf(out, "  %-10s%s\n", "tables", choice.why);
	s.rows -= module && choice.why[0];
	/* A table of the few operators that there are would say nothing of the rest. */
	if (!result && (module || !choice.why[0] || choice.by == PLUMB_BY_OPERATOR))
		result = print_section(&s, module ? choice.by : PLUMB_BY_OPERATOR,
		                       module ? plumb_group_by_names[choice.by] : "operator");
	s.rows = rows;
	if (!result && has_kernels(profile)) /* a report takes time if there are many contexts */
		result = print_section(&s, PLUMB_BY_KERNEL, "kernel");
	return result ? result : print_lines(&s, coverage);
}

/* "plumb report FILE OPTION", quoted so that it can be pasted. */
static void
print_command(const char *path, const char *option, FILE *out)
{
	const char *words[6] = { "plumb", "report" };
	size_t count = 2;
	char *line;

	if (option && *path == '-')
		words[count++] = option;
	words[count++] = *path == '-' ? "--" : path;
	words[count] = *path == '-' ? path : option;
	line = plumb_shell_line(words);
	plumb_text_print(out, line ? line : "plumb report");
	fputc('\n', out);
	free(line);
}

/* What the tables leave out. The GPU's share of the time is above, if it is of the same. */
static bool
is_coverage_shown(const struct plumb_profile *profile, const struct plumb_coverage *coverage,
                  const char *covered)
{
	return *covered && profile->values_count &&
	       (plumb_metric_default(profile) != PLUMB_METRIC_GPU_TIME ||
	        coverage->gpu < PLUMB_COVERS_MOST);
}

/* ROWS is what the tables are of: PROFILE, or its main loop. Returns an error's code. */
static int
print_all(const struct plumb_profile *profile, const struct plumb_profile *rows, FILE *out,
          const struct plumb_summary_options *options)
{
	struct plumb_coverage coverage = { .whole_ns = PLUMB_UNKNOWN };
	char covered[PLUMB_COVERAGE_SIZE] = "";
	bool partly;

	if (plumb_coverage_find(rows, &coverage))
		plumb_coverage_text(&coverage, plumb_metric_default(rows), covered);
	partly = is_coverage_shown(rows, &coverage, covered);
	fputs("plumb: summary of the run\n", out);
	plumb_overview_print(profile, out, DEVICES - partly);
	plumb_windows_print(profile, 1, out);
	if (partly)
		fprintf(out, "  %-10s%s\n", "coverage", covered);
	plumb_findings_brief(profile, out, FINDINGS,
	                     options->width > 0 ? options->width : plumb_terminal_width(out));
	plumb_windows_print_tables(rows, out);
	return print_tables(rows, out, options, &coverage);
}

void
plumb_summary_print(const struct plumb_profile *profile, FILE *out,
                    const struct plumb_summary_options *options)
{
	static const struct plumb_summary_options none;
	const struct plumb_window_choice choice = { PLUMB_WINDOW_LOOP, 0 };
	struct plumb_profile loop = { 0 };
	struct plumb_error error;
	int code = 0;

	if (!options)
		options = &none;
	if (profile->windows_count)
		code = plumb_window_profile(profile, &choice, &loop, &error);
	if (code == PLUMB_ESYSTEM)
		fprintf(out, "%s\n", error.message);
	if (print_all(profile, loop.window.kind ? &loop : profile, out, options) < 0) {
		plumb_fail_memory(&error, "for the tables");
		fprintf(out, "%s\n", error.message);
	}
	plumb_profile_free(&loop);
	fputs("\nledger\n", out);
	plumb_ledger_print_short(profile, out, 2, DROPS);
	if (options->path) {
		/* With findings: they say what to do. */
		fputs("more: ", out);
		print_command(options->path, profile->findings_count ? "--findings" : NULL, out);
	}
	fflush(out);
}
