/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At most PLUMB_SUMMARY_LINES lines: 1 title, 2 of the run, 1 of ranks, DEVICES + 1 (one of which
 * gives way to what part of the time the tables cover), 1 of memory, notes, FINDINGS, three tables
 * of a blank line, titles and ROWS, a blank line, DROPS of the ledger with their title, 1 closing
 * hint.
 */
#include "cli/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/calls.h"
#include "analyze/group.h"
#include "base/format.h"
#include "base/sort.h"
#include "cli/findings.h"
#include "cli/finish.h"
#include "cli/ledger.h"
#include "cli/overview.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "model/user_code.h"
#include "view/coverage.h"

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
	uint32_t metric;
	int64_t whole;
	const unsigned char *user;
	const uint32_t *user_of;
	FILE *out;
	int width;
	bool colour;
	bool sampled; /* the metric is of samples */
};

/* ---- rows ---- */

static void
name_of(const struct section *s, enum plumb_group_by by, const struct plumb_group_row *row,
        char *text, size_t bytes)
{
	const struct plumb_frame *frame = &s->profile->frames[row->frame];
	const char *file = plumb_text(s->profile, frame->file);

	if (by == PLUMB_BY_USER_LINE)
		snprintf(text, bytes, "%s %s:%" PRIu32, plumb_frame_label(s->profile, row->frame),
		         file ? file : "?", frame->line);
	else
		snprintf(text, bytes, "%s", plumb_frame_label(s->profile, row->frame));
}

static void
user_text(const struct section *s, uint32_t frame, char *text, size_t bytes)
{
	const char *file;

	snprintf(text, bytes, "%s", PLUMB_DASH);
	if (frame == PLUMB_NONE)
		return;
	file = plumb_text(s->profile, s->profile->frames[frame].file);
	snprintf(text, bytes, "%s:%" PRIu32, file ? file : "?", s->profile->frames[frame].line);
}

/* What the third column counts. Only operators are entered themselves; lines have operators in
 * them. */
static const char *
count_title(const struct section *s, enum plumb_group_by by)
{
	return s->sampled                           ? "samples"
	       : s->metric == PLUMB_METRIC_GPU_TIME ? "kernels"
	       : by == PLUMB_BY_OPERATOR            ? "calls"
	       : s->metric == PLUMB_METRIC_OP_TIME  ? "op.calls"
	                                            : "count";
}

static void
add_row(const struct section *s, struct plumb_table *table, enum plumb_group_by by,
        const struct plumb_group_row *row, const struct plumb_stat *stat, uint32_t user)
{
	char number[PLUMB_FORMAT_SIZE], text[1500];
	int64_t amount = plumb_stat_amount(s->metric, stat);

	plumb_table_cell(table, plumb_format_share(number, (double)amount, (double)s->whole));
	plumb_table_cell(table, plumb_format_time(number, amount));
	plumb_table_cell(table, plumb_format_count(number, (int64_t)stat->count));
	name_of(s, by, row, text, sizeof text);
	plumb_table_cell(table, text);
	if (by != PLUMB_BY_USER_LINE) {
		user_text(s, user, text, sizeof text);
		plumb_table_cell(table, text);
	}
}

/* Ranges inside an operator are no calls of it. */
static int
count_entries(const struct plumb_profile *p, const struct plumb_grouping *grouping,
              struct plumb_stat *stats)
{
	uint32_t count = plumb_grouping_count(grouping);
	struct plumb_calls *calls = calloc(p->contexts_count + 1u, sizeof *calls);
	struct plumb_calls *rows = calloc(count + 1u, sizeof *rows);
	int result = calls && rows ? 0 : -1;

	if (!result) {
		plumb_calls_of_contexts(p, calls);
		plumb_calls_of_rows(grouping, p, calls, rows);
	}
	for (uint32_t r = 0; !result && r < count; r++)
		if (rows[r].known)
			stats[r].count = rows[r].count;
	free(calls);
	free(rows);
	return result;
}

/* The rows of GROUPING with the most; nothing where there are none. Negative: no memory. */
static int
print_grouping(const struct section *s, const struct plumb_grouping *grouping,
               enum plumb_group_by by, const char *title)
{
	const struct plumb_column columns[] = {
		{ "share", PLUMB_RIGHT },
		{ s->sampled                           ? "time"
		  : s->metric == PLUMB_METRIC_GPU_TIME ? "on GPU"
		                                       : "self",
		  PLUMB_RIGHT },
		{ count_title(s, by), PLUMB_RIGHT },
		{ title, PLUMB_SHORTEN_MIDDLE },
		{ "line of your code", PLUMB_SHORTEN_START },
	};
	uint32_t count = plumb_grouping_count(grouping), kept = 0;
	struct plumb_table *table = plumb_table_new(columns, by == PLUMB_BY_USER_LINE ? 4 : 5);
	struct plumb_stat *stats = calloc(count + 1u, sizeof *stats);
	uint32_t *users = calloc(count + 1u, sizeof *users);
	struct plumb_sort_item *items = calloc(count + 1u, sizeof *items);
	struct plumb_sort_item *spare = calloc(count + 1u, sizeof *spare);
	int result = -1;

	if (!table || !stats || !users || !items || !spare ||
	    plumb_grouping_values(grouping, s->metric, stats, NULL, NULL) < 0 ||
	    plumb_grouping_user(grouping, s->metric, s->user_of, users) < 0)
		goto out;
	for (uint32_t r = 0; r < count; r++)
		if (stats[r].count)
			items[kept++] = (struct plumb_sort_item){
				~plumb_sort_signed(plumb_stat_amount(s->metric, &stats[r])), r
			};
	plumb_sort(items, spare, kept);
	if (by == PLUMB_BY_OPERATOR && s->metric == PLUMB_METRIC_OP_TIME &&
	    count_entries(s->profile, grouping, stats) < 0)
		goto out;
	for (uint32_t i = 0; i < kept && i < ROWS; i++) {
		uint32_t r = items[i].index;
		add_row(s, table, by, &plumb_grouping_rows(grouping)[r], &stats[r], users[r]);
	}
	result = 0;
	if (kept) {
		fputc('\n', s->out);
		result = plumb_table_print(table, s->out, s->width, s->colour);
	}
out:
	plumb_table_free(table);
	free(stats);
	free(users);
	free(items);
	free(spare);
	return result;
}

static int
print_section(const struct section *s, enum plumb_group_by by, const char *title)
{
	struct plumb_grouping *grouping = plumb_grouping_new(s->profile, by, s->user);
	int result = grouping ? print_grouping(s, grouping, by, title) : -1;

	plumb_grouping_free(grouping);
	return result;
}

static void
add_up(struct section *s)
{
	s->whole = 0;
	for (uint32_t i = 0; i < s->profile->values_count; i++)
		if (s->profile->values[i].metric == s->metric &&
		    __builtin_add_overflow(s->whole, s->profile->values[i].sum, &s->whole))
			s->whole = INT64_MAX;
}

/* Of what was sampled: the values of the main thread alone, CPU time and waiting as one. NULL: no
 * memory. */
static struct plumb_value *
main_values(const struct plumb_profile *p, uint32_t process, uint32_t *count)
{
	struct plumb_value *values = calloc(p->values_count + 1u, sizeof *values);

	*count = 0;
	for (uint32_t i = 0; values && i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];

		if ((v->metric != PLUMB_METRIC_CPU_TIME && v->metric != PLUMB_METRIC_WAIT_TIME) ||
		    v->track >= p->tracks_count || !plumb_coverage_is_main(p, v->track, process))
			continue;
		values[*count] = *v;
		values[(*count)++].metric = PLUMB_METRIC_CPU_TIME;
	}
	return values;
}

/* The lines of the user's code: by samples where these tell of more of the time. */
static int
print_lines(struct section *s, const struct plumb_coverage *coverage)
{
	struct plumb_profile view = *s->profile;
	struct plumb_value *values = NULL;
	bool main_only;
	int result;

	s->metric = plumb_coverage_choose(coverage, s->metric, &main_only);
	s->sampled = s->metric == PLUMB_METRIC_CPU_TIME;
	if (main_only) {
		values = main_values(s->profile, coverage->process, &view.values_count);
		if (!values)
			return -1;
		view.values = values;
		s->profile = &view;
	}
	add_up(s);
	result = print_section(s, PLUMB_BY_USER_LINE,
	                       main_only    ? "your code (main thread: CPU and waiting)"
	                       : s->sampled ? "your code (CPU samples)"
	                                    : "your code");
	free(values);
	return result;
}

static int
print_tables(const struct plumb_profile *profile, FILE *out,
             const struct plumb_summary_options *options, const struct plumb_coverage *coverage)
{
	struct section s = { .profile = profile,
		             .metric = plumb_metric_default(profile),
		             .out = out };
	unsigned char *user = plumb_user_code_frames(profile, options->user_code, NULL);
	uint32_t *user_of = user ? plumb_user_contexts(profile, user) : NULL;
	int result = user_of ? 0 : -1;

	s.user = user;
	s.user_of = user_of;
	s.width = options->width > 0 ? options->width : plumb_terminal_width(out);
	s.colour = plumb_terminal_colour(out);
	add_up(&s);
	if (!result)
		result = print_section(&s, PLUMB_BY_OPERATOR, "operator");
	if (!result)
		result = print_section(&s, PLUMB_BY_KERNEL, "kernel");
	if (!result)
		result = print_lines(&s, coverage);
	free(user_of);
	free(user);
	return result;
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

/* What the tables do not tell of; a GPU's share of the time stands above. */
static bool
print_coverage(const struct plumb_profile *profile, const struct plumb_coverage *coverage,
               uint32_t metric, char *text)
{
	plumb_coverage_text(coverage, metric, text);
	return text[0] && profile->values_count &&
	       (metric != PLUMB_METRIC_GPU_TIME || coverage->gpu < PLUMB_COVERS_MOST);
}

void
plumb_summary_print(const struct plumb_profile *profile, FILE *out,
                    const struct plumb_summary_options *options)
{
	static const struct plumb_summary_options none;
	struct plumb_coverage coverage = { .whole_ns = PLUMB_UNKNOWN };
	char covered[PLUMB_COVERAGE_SIZE] = "";
	bool partly = plumb_coverage_find(profile, &coverage) &&
	              print_coverage(profile, &coverage, plumb_metric_default(profile), covered);

	if (!options)
		options = &none;
	fputs("plumb: summary of the run\n", out);
	plumb_overview_print(profile, out, DEVICES - partly);
	if (partly)
		fprintf(out, "  %-10s%s\n", "coverage", covered);
	plumb_findings_brief(profile, out, FINDINGS,
	                     options->width > 0 ? options->width : plumb_terminal_width(out));
	if (print_tables(profile, out, options, &coverage) < 0) {
		struct plumb_error error;
		plumb_fail_memory(&error, "for the tables");
		fprintf(out, "%s\n", error.message);
	}
	fputs("\nledger\n", out);
	plumb_ledger_print_short(profile, out, 2, DROPS);
	if (options->path) {
		/* With findings: they say what to do. */
		fputs("more: ", out);
		print_command(options->path, profile->findings_count ? "--findings" : NULL, out);
	}
	fflush(out);
}
