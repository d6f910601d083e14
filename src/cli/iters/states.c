/* SPDX-License-Identifier: Apache-2.0 */
/* The state graph of a loop as text: its states in order, then what follows what. */
#include <inttypes.h>
#include <math.h>

#include "base/format.h"
#include "cli/iters/iters.h"
#include "cli/table.h"
#include "cli/terminal.h"

/* Columns of the tables, as docs/folders/view.md has them. */
enum { STATE, KIND, NAME, KERNELS, COUNT, PER_ITERATION, KERNEL_NS, ITERATION_NS, SHARE, WAIT_NS };
enum {
	FROM,
	TO,
	TIMES,
	TIMES_PER_ITERATION,
	SHARE_OF_FROM,
	TIME_BETWEEN,
	MEAN_BETWEEN,
	MOST_BETWEEN
};
enum { TRACK, LOOP, LEVEL, ITERATIONS, HISTORY, ALL_KERNELS, ALL_NS, JOINED, OF, NEWEST };

static void
cell_number(const struct plumb_answer_cell *cell, struct plumb_table *table)
{
	char text[PLUMB_FORMAT_SIZE];

	if (cell->type == PLUMB_ANSWER_UNKNOWN)
		plumb_table_cell(table, NULL);
	else
		plumb_table_cell(table, plumb_format_count(text, cell->integer));
}

/* "2", "0.125" */
static void
cell_times(const struct plumb_answer_cell *cell, struct plumb_table *table)
{
	char text[PLUMB_FORMAT_SIZE];

	if (cell->number == rint(cell->number) && fabs(cell->number) < 1e15)
		plumb_format_count(text, (int64_t)cell->number);
	else
		snprintf(text, sizeof text, "%.3g", cell->number);
	plumb_table_cell(table, text);
}

static void
cell_time(const struct plumb_answer_cell *cell, double per, struct plumb_table *table)
{
	char text[PLUMB_FORMAT_SIZE];
	double ns = cell->type == PLUMB_ANSWER_INTEGER ? (double)cell->integer : cell->number;

	plumb_table_cell(table, cell->type == PLUMB_ANSWER_UNKNOWN
	                                ? NULL
	                                : plumb_format_time(text, llround(ns / per)));
}

static void
cell_share(const struct plumb_answer_cell *cell, struct plumb_table *table)
{
	char text[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, cell->type == PLUMB_ANSWER_UNKNOWN
	                                ? NULL
	                                : plumb_format_share(text, cell->number, 1));
}

/* "begin", "end", "others", or the number of a segment. */
static void
cell_state(const struct plumb_answer *states, int64_t state, struct plumb_table *table)
{
	const struct plumb_answer_cell *c = plumb_answer_at(states, (uint32_t)state, 0);
	char text[PLUMB_FORMAT_SIZE];

	if (strcmp(c[KIND].text, "segment") != 0)
		plumb_table_cell(table, c[KIND].text);
	else
		plumb_table_cell(table, plumb_format_count(text, state));
}

static void
print_head(const struct plumb_answer *tables, FILE *out)
{
	const struct plumb_answer_cell *c = plumb_answer_at(&tables[PLUMB_STATES_TOTAL], 0, 0);
	char count[PLUMB_FORMAT_SIZE], kernels[PLUMB_FORMAT_SIZE];
	uint32_t states = tables[PLUMB_STATES_STATES].row_count - 2; /* without begin and end */
	int64_t history = c[HISTORY].integer;

	if (c[NEWEST].integer)
		fputs("from the newest GPU work of each device only; record with --trace for all\n",
		      out);
	fprintf(out,
	        "track %" PRId64 ", loop %" PRId64 ", level %" PRId64
	        ": %s iterations with %s %s in %" PRIu32 " state%s\n",
	        c[TRACK].integer, c[LOOP].integer, c[LEVEL].integer,
	        plumb_format_count(count, c[ITERATIONS].integer),
	        plumb_format_count(kernels, c[ALL_KERNELS].integer), c[OF].text, states,
	        states == 1 ? "" : "s");
	fprintf(out, "  a state is %s that always run one after another", c[OF].text);
	if (history > 1)
		fprintf(out, "; the %" PRId64 " before them tell uses in several places apart",
		        history);
	else if (history)
		fputs("; the one before them tells uses in several places apart", out);
	fputc('\n', out);
	if (c[JOINED].integer)
		fprintf(out, "  others are %" PRId64 " states with the least time, put together\n",
		        c[JOINED].integer);
}

static int
print_table(struct plumb_table *table, FILE *out)
{
	int code = plumb_table_print(table, out, plumb_terminal_width(out),
	                             plumb_terminal_colour(out));

	plumb_table_free(table);
	return code;
}

static int
print_states(const struct plumb_answer *states, const char *of, double iterations, FILE *out)
{
	const struct plumb_column columns[] = {
		{ "state", PLUMB_RIGHT },
		{ "visits/iteration", PLUMB_RIGHT },
		{ of, PLUMB_RIGHT },
		{ "time/iteration", PLUMB_RIGHT },
		{ "share", PLUMB_RIGHT },
		{ "waits/iteration", PLUMB_RIGHT },
		{ "longest", PLUMB_SHORTEN_KERNEL },
	};
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);

	for (uint32_t r = 0; r < states->row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(states, r, 0);

		if (!strcmp(c[KIND].text, "begin") || !strcmp(c[KIND].text, "end"))
			continue;
		cell_state(states, c[STATE].integer, table);
		cell_times(&c[PER_ITERATION], table);
		cell_number(&c[KERNELS], table);
		cell_time(&c[ITERATION_NS], 1, table);
		cell_share(&c[SHARE], table);
		cell_time(&c[WAIT_NS], iterations, table);
		plumb_table_cell(table, c[NAME].type == PLUMB_ANSWER_TEXT ? c[NAME].text : NULL);
	}
	return print_table(table, out);
}

static int
print_transitions(const struct plumb_answer *states, const struct plumb_answer *transitions,
                  FILE *out)
{
	static const struct plumb_column columns[] = {
		{ "from", PLUMB_RIGHT },          { "to", PLUMB_RIGHT },
		{ "times", PLUMB_RIGHT },         { "times/iteration", PLUMB_RIGHT },
		{ "share of from", PLUMB_RIGHT }, { "mean time between", PLUMB_RIGHT },
		{ "max", PLUMB_RIGHT },
	};
	struct plumb_table *table = plumb_table_new(columns, sizeof columns / sizeof *columns);

	for (uint32_t r = 0; r < transitions->row_count; r++) {
		const struct plumb_answer_cell *c = plumb_answer_at(transitions, r, 0);

		cell_state(states, c[FROM].integer, table);
		cell_state(states, c[TO].integer, table);
		cell_number(&c[TIMES], table);
		cell_times(&c[TIMES_PER_ITERATION], table);
		cell_share(&c[SHARE_OF_FROM], table);
		cell_time(&c[MEAN_BETWEEN], 1, table);
		cell_time(&c[MOST_BETWEEN], 1, table);
	}
	return print_table(table, out);
}

int
plumb_iters_states_print(const struct plumb_answer tables[PLUMB_STATES_TABLES], FILE *out)
{
	const struct plumb_answer *states = &tables[PLUMB_STATES_STATES];
	const struct plumb_answer_cell *total = plumb_answer_at(&tables[PLUMB_STATES_TOTAL], 0, 0);
	int code;

	print_head(tables, out);
	code = print_states(states, total[OF].text, (double)total[ITERATIONS].integer, out);
	if (code)
		return code;
	fputs("\nwhat follows what:\n", out);
	return print_transitions(states, &tables[PLUMB_STATES_TRANSITIONS], out);
}
