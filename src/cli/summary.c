/* SPDX-License-Identifier: Apache-2.0 */
/*
 * At most PLUMB_SUMMARY_LINES lines: 1 title, 2 of the run, 1 of ranks, DEVICES + 1, 1 of memory, notes, FINDINGS, three tables of
 * a blank line, titles and ROWS, a blank line, DROPS of the ledger with their title, 1 closing hint.
 */
#include "cli/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "base/format.h"
#include "base/sort.h"
#include "cli/findings.h"
#include "cli/ledger.h"
#include "cli/overview.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "model/user_code.h"

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
};

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

/* The rows of GROUPING with the most; nothing where there are none. Negative: no memory. */
static int
print_grouping(const struct section *s, const struct plumb_grouping *grouping,
               enum plumb_group_by by, const char *title)
{
	const struct plumb_column columns[] = {
		{ "share", PLUMB_RIGHT },
		{ s->metric == PLUMB_METRIC_GPU_TIME ? "on GPU" : "self", PLUMB_RIGHT },
		{ s->metric == PLUMB_METRIC_GPU_TIME ? "kernels" : "calls", PLUMB_RIGHT },
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

static int
print_tables(const struct plumb_profile *profile, FILE *out,
             const struct plumb_summary_options *options)
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
	for (uint32_t i = 0; i < profile->values_count; i++)
		if (profile->values[i].metric == s.metric &&
		    __builtin_add_overflow(s.whole, profile->values[i].sum, &s.whole))
			s.whole = INT64_MAX;
	if (!result)
		result = print_section(&s, PLUMB_BY_OPERATOR, "operator");
	if (!result)
		result = print_section(&s, PLUMB_BY_KERNEL, "kernel");
	if (!result)
		result = print_section(&s, PLUMB_BY_USER_LINE, "your code");
	free(user_of);
	free(user);
	return result;
}

void
plumb_summary_print(const struct plumb_profile *profile, FILE *out,
                    const struct plumb_summary_options *options)
{
	static const struct plumb_summary_options none;

	if (!options)
		options = &none;
	fputs("plumb: the run in short\n", out);
	plumb_overview_print(profile, out, DEVICES);
	plumb_findings_brief(profile, out, FINDINGS,
	                     options->width > 0 ? options->width : plumb_terminal_width(out));
	if (print_tables(profile, out, options) < 0)
		fputs("no memory left for the tables\n", out);
	fputs("\nledger\n", out);
	plumb_ledger_print_short(profile, out, 2, DROPS);
	if (options->path) {
		fputs("more: plumb report ", out);
		plumb_text_print(out, options->path);
		fputs(profile->findings_count ? " (--findings: what to do)\n" : "\n", out);
	}
	fflush(out);
}
