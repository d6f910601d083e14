/* SPDX-License-Identifier: Apache-2.0 */
/* plumb why --by: which cause moved between iterations, or between ranks. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/format.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/why/why.h"

#define CAUSES_MOST 8

/* One cause over all groups. */
struct moved {
	uint32_t cause;
	double mean, low, high;
	uint32_t low_at, high_at; /* groups */
};

static int
compare_moved(const void *a, const void *b)
{
	const struct moved *one = a, *two = b;
	double left = one->high - one->low, right = two->high - two->low;

	return left > right ? -1 : left < right ? 1 : (int)one->cause - (int)two->cause;
}

static struct moved
move_of(const struct plumb_why_kernel *k, uint32_t cause)
{
	struct moved moved = { .cause = cause };

	for (uint32_t g = 0; g < k->group_count; g++) {
		double samples = k->groups[g].samples[cause];

		moved.mean += samples / k->group_count;
		if (!g || samples < moved.low) {
			moved.low = samples;
			moved.low_at = g;
		}
		if (!g || samples > moved.high) {
			moved.high = samples;
			moved.high_at = g;
		}
	}
	return moved;
}

static void
put_group(struct plumb_table *table, const struct plumb_why_kernel *k, double samples,
          uint32_t group)
{
	const struct plumb_why_group *g = &k->groups[group];
	char text[PLUMB_FORMAT_SIZE], number[PLUMB_FORMAT_SIZE];

	if (g->pid != PLUMB_UNKNOWN)
		snprintf(text, sizeof text, "%s (pid %" PRId64 ")",
		         plumb_format_count(number, (int64_t)(samples + 0.5)), g->pid);
	else
		snprintf(text, sizeof text, "%s (%" PRId64 ")",
		         plumb_format_count(number, (int64_t)(samples + 0.5)), g->number);
	plumb_table_cell(table, text);
}

int
plumb_why_print_groups(const struct plumb_why *why, const struct plumb_why_kernel *k, FILE *out)
{
	static const struct plumb_column columns[] = {
		{ "mean", PLUMB_RIGHT },           { "lowest", PLUMB_RIGHT },
		{ "highest", PLUMB_RIGHT },        { "cause", PLUMB_LEFT },
		{ "where", PLUMB_SHORTEN_MIDDLE },
	};
	const char *by = why->query.by == PLUMB_WHY_BY_RANK ? "rank" : "iteration";
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);
	struct moved *moved = calloc(k->causes.count + 1u, sizeof *moved);
	int code = table && moved ? 0 : -1;

	for (uint32_t c = 0; !code && c < k->causes.count; c++)
		moved[c] = move_of(k, c);
	if (!code && k->causes.count)
		qsort(moved, k->causes.count, sizeof *moved, compare_moved);
	for (uint32_t c = 0; !code && c < k->causes.count && c < CAUSES_MOST; c++) {
		const struct plumb_kernel_cause *item = &k->causes.items[moved[c].cause];
		const struct plumb_stall_cause *cause =
			&k->slice.stalls[item->stall].causes[item->cause];
		char text[PLUMB_FORMAT_SIZE], where[PLUMB_PLACE_SIZE];

		plumb_table_cell(table, plumb_format_count(text, (int64_t)(moved[c].mean + 0.5)));
		put_group(table, k, moved[c].low, moved[c].low_at);
		put_group(table, k, moved[c].high, moved[c].high_at);
		plumb_table_cell(table, cause->named ? cause->named->name
		                                     : plumb_cause_kind_names[cause->kind]);
		plumb_table_cell(table, cause->has_place
		                                ? plumb_kernel_place(&k->code, cause->place, where,
		                                                     sizeof where)
		                                : NULL);
	}
	fprintf(out,
	        "\n exposed samples of each %s, %" PRIu32
	        " of them; the cause that moved most comes "
	        "first\n",
	        by, k->group_count);
	if (!code)
		code = plumb_table_print(table, out, plumb_terminal_width(out),
		                         plumb_terminal_colour(out));
	plumb_table_free(table);
	free(moved);
	return code;
}
