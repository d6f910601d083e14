/* SPDX-License-Identifier: Apache-2.0 */
/* plumb diff: compares two profiles, or several runs of each side. */
#include "cli/diff.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "view/view.h"

#define SIDE_MOST 1000

static const struct plumb_option options[] = {
	{ .name = "by",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHAT",
	  .fallback = "operator",
	  .choices = "context|kernel|operator|range|module|python|line|phase|shape|native|library|"
	             "rank|collective|iteration",
	  .help = "what a row is. If a side has no operators, the default is kernel. With "
	          "iteration, iterations of the same number are compared. WHAT is one of" },
	{ .name = "metric",
	  .letter = 'm',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "METRIC",
	  .help = "the metric to compare; without it the first of gpu.time, op.time and cpu.time "
	          "that both sides have" },
	PLUMB_WINDOW_OPTION(", of each side"),
	{ .name = "top",
	  .letter = 'n',
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = "20",
	  .help = "show the N rows that changed most; 0 shows all" },
	{ .name = "gate",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "EXPR",
	  .help = "METRIC[@NAME]<LIMIT: exit code 4 unless METRIC (of the row NAME) changed by "
	          "less than LIMIT, such as +5%, +2ms, +16MiB or +100. METRIC>LIMIT: unless it "
	          "changed by more. Can be given several times; all must hold" },
	{ .name = "iterations",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "N,M",
	  .help = "each run of the first side had N iterations, each run of the second side M; "
	          "without it plumb finds the numbers" },
	{ .name = "total",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "compare sums of whole recordings, not values of one iteration" },
	{ .name = "width",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "COLUMNS",
	  .help = "shorten names so that rows fit into COLUMNS; 0 never shortens; without it the "
	          "terminal's width" },
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write one JSON object" },
	{ .name = "csv", .kind = PLUMB_OPTION_FLAG, .help = "write the rows as CSV" },
	{ 0 },
};

static int
print_comparison(const struct plumb_invocation *invocation, const struct plumb_compared *c,
                 struct plumb_error *error)
{
	bool json = plumb_options_flag(invocation->options, "json");
	bool csv = plumb_options_flag(invocation->options, "csv");
	const char *const *paths = (const char *const *)invocation->operands;
	int64_t width = plumb_options_number(invocation->options, "width");
	int code;

	if (width < 0)
		width = plumb_terminal_width(invocation->out);
	if (json || csv)
		code = plumb_compared_write(c, paths, json ? PLUMB_VIEW_JSON : PLUMB_VIEW_CSV,
		                            invocation->out, error);
	else if (plumb_diff_text(c, invocation->out, width < 10000 ? (int)width : 10000))
		code = plumb_fail_memory(error, NULL);
	else
		code = 0;
	if (csv)
		plumb_diff_gates(c, invocation->err);
	return ferror(invocation->out) ? 0 : code; /* main says so of a failed write */
}

static int
choose_exit(const struct plumb_invocation *invocation, const struct plumb_compared *c)
{
	if (!c->holds)
		return PLUMB_EXIT_GATE;
	if (c->table.count || c->gate_count)
		return PLUMB_EXIT_DONE;
	plumb_cli_note(invocation,
	               "nothing to show: no %s has %s on either side; try another --by or "
	               "--metric",
	               plumb_diff_by_name(c->by), c->metric);
	return PLUMB_EXIT_EMPTY;
}

static int
compare_profiles(const struct plumb_invocation *invocation, const struct plumb_profile *profiles,
                 uint32_t before, const struct plumb_diff_query *query)
{
	uint32_t count = (uint32_t)invocation->operand_count;
	const struct plumb_profile *list[SIDE_MOST];
	struct plumb_compared compared;
	struct plumb_error error;
	int code, result;

	for (uint32_t i = 0; i < count; i++)
		list[i] = &profiles[i];
	code = plumb_compared_make(list, before, count, query, &compared, &error);
	if (!code)
		code = print_comparison(invocation, &compared, &error);
	result = code == PLUMB_EUSAGE ? plumb_cli_usage(invocation, "diff: %s", error.message)
	         : code               ? plumb_cli_fail(invocation, &error)
	                              : choose_exit(invocation, &compared);
	plumb_compared_free(&compared);
	return result;
}

/* ---- the verb ---- */

/* "N,M" */
static bool
parse_iterations(const char *text, double *iterations)
{
	const char *comma = strchr(text, ',');
	char first[24];

	if (!comma || comma - text >= (ptrdiff_t)sizeof first)
		return false;
	memcpy(first, text, (size_t)(comma - text));
	first[comma - text] = '\0';
	iterations[0] = (double)plumb_parse_number(first);
	iterations[1] = (double)plumb_parse_number(comma + 1);
	return iterations[0] > 0 && iterations[1] > 0;
}

/* How many operands belong to the first side; 0: unknown. */
static uint32_t
first_side(const struct plumb_invocation *invocation)
{
	int count = invocation->operand_count, tail = plumb_options_tail(invocation->options);

	if (tail > 0 && tail < count)
		return (uint32_t)(count - tail);
	return count == 2 ? 1 : 0;
}

/* Is operand I an option behind "--", where no options can be? */
static bool
is_late_option(const struct plumb_invocation *invocation, int i)
{
	return invocation->operands[i][0] == '-' && invocation->operands[i][1] &&
	       (uint32_t)i >= first_side(invocation);
}

static int
load_all(const struct plumb_invocation *invocation, struct plumb_profile *profiles,
         const struct plumb_window_choice *window, struct plumb_error *error)
{
	for (int i = 0; i < invocation->operand_count; i++)
		if (plumb_load(&profiles[i], invocation->operands[i], PLUMB_LOAD_ALL, window,
		               error) < 0)
			return is_late_option(invocation, i)
			               ? plumb_fail(error, PLUMB_EUSAGE,
			                            "diff: after -- are only profiles; put %s "
			                            "before it",
			                            invocation->operands[i])
			               : error->code;
	return 0;
}

static int
parse_gates(const struct plumb_options *options_given, struct plumb_gate **gates, uint32_t *count,
            struct plumb_error *error)
{
	const char *text;

	*count = 0;
	while (plumb_options_each(options_given, "gate", *count))
		++*count;
	*gates = calloc(*count + (size_t)1, sizeof **gates);
	if (!*gates)
		return plumb_fail_memory(error, NULL);
	for (uint32_t i = 0; (text = plumb_options_each(options_given, "gate", i)); i++)
		if (plumb_gate_parse(text, &(*gates)[i], error) < 0)
			return error->code;
	return 0;
}

int
plumb_cmd_diff(struct plumb_invocation *invocation)
{
	const struct plumb_options *o = invocation->options;
	const char *iterations = plumb_options_text(o, "iterations");
	int64_t top = plumb_options_number(o, "top");
	struct plumb_diff_query query = {
		.by = plumb_options_given(o, "by")
		              ? plumb_diff_by_named(plumb_options_text(o, "by"))
		              : 0,
		.metric = plumb_options_text(o, "metric"),
		.top = top < UINT32_MAX ? (uint32_t)top : UINT32_MAX,
		.total = plumb_options_flag(o, "total"),
	};
	struct plumb_gate *gates = NULL;
	struct plumb_profile *profiles;
	struct plumb_window_choice window;
	struct plumb_error error = { 0 };
	uint32_t before = first_side(invocation);
	int result;

	if ((result = plumb_load_window(invocation, &window)))
		return result;
	if (plumb_options_flag(o, "json") && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation, "diff: choose --json or --csv");
	if (!before || invocation->operand_count > SIDE_MOST)
		return plumb_cli_usage(invocation, "diff: for more than two files, put -- "
		                                   "between the files before and the files after");
	if (iterations && !parse_iterations(iterations, query.iterations))
		return plumb_cli_usage(invocation,
		                       "diff: --iterations takes two numbers, such as 100,120");
	if (parse_gates(o, &gates, &query.gate_count, &error) < 0) {
		free(gates);
		return error.code == PLUMB_EUSAGE
		               ? plumb_cli_usage(invocation, "diff: %s", error.message)
		               : plumb_cli_fail(invocation, &error);
	}
	query.gates = gates;
	profiles = calloc((size_t)invocation->operand_count, sizeof *profiles);
	if (!profiles)
		plumb_fail_memory(&error, NULL);
	if (!profiles || load_all(invocation, profiles, &window, &error) < 0)
		result = plumb_cli_fail(invocation, &error);
	else
		result = compare_profiles(invocation, profiles, before, &query);
	for (int i = 0; profiles && i < invocation->operand_count; i++)
		plumb_profile_free(&profiles[i]);
	free(profiles);
	free(gates);
	return result;
}

static const char *const examples[] = {
	"plumb diff before.plumb after.plumb",
	"what changed, operator by operator",
	"plumb diff before.plumb after.plumb --by line --gate 'iteration.time<+2.5%'",
	"by Python line; exit code 4 unless an iteration got slower by less than 2.5 %",
	"plumb diff a1.plumb a2.plumb a3.plumb -- b1.plumb b2.plumb b3.plumb",
	"three runs of each side, so that the interval shows how much runs differ",
	"plumb diff h100.json.gz mi300.json.gz --by operator --json",
	"traces of another tool, from GPUs of two vendors, as JSON",
	NULL,
};

const struct plumb_verb plumb_verb_diff = {
	.name = "diff",
	.summary = "show what changed between two profiles, and check it against limits",
	.synopsis = "BEFORE... [--] AFTER...",
	.description =
		"Shows what differs in the environment, in the time of an iteration, and in the "
		"rows of \"plumb report\". Values are for one iteration if plumb knows the "
		"iterations of both sides, so that a longer run does not look slower. If a side "
		"lacks a row, its value there is unknown, not 0.\n\nThe 95 % interval comes from "
		"how much iterations vary. With several runs of a side, it comes from how much "
		"the runs vary. A * marks a row whose interval does not contain zero.",
	.options = options,
	.examples = examples,
	.min_operands = 2,
	.max_operands = PLUMB_ANY_NUMBER,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_diff,
};
