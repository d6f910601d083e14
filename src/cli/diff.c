/* SPDX-License-Identifier: Apache-2.0 */
/* plumb diff: two profiles, or several runs of each side, held against each other. */
#include "cli/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "model/metric.h"

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

static uint32_t
by_of(const char *name)
{
	return !strcmp(name, "context")     ? PLUMB_DIFF_CONTEXT
	       : !strcmp(name, "iteration") ? PLUMB_DIFF_ITERATION
	                                    : plumb_group_by_name(name);
}

/* ---- what is compared when nobody said ---- */

static bool
has_frames(const struct plumb_profile *p, uint32_t kind)
{
	for (uint32_t i = 0; i < p->frames_count; i++)
		if (p->frames[i].kind == kind)
			return true;
	return false;
}

static bool
has_metric(const struct plumb_profile *p, uint32_t metric)
{
	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == metric && p->values[i].count)
			return true;
	return false;
}

static const char *
default_metric(const struct plumb_profile *profiles, uint32_t count, const char *by)
{
	static const uint32_t wanted[] = { PLUMB_METRIC_GPU_TIME, PLUMB_METRIC_OP_TIME,
		                           PLUMB_METRIC_CPU_TIME };

	if (!strcmp(by, "iteration"))
		return "iteration.time";
	for (size_t w = !strcmp(by, "shape"); w < sizeof wanted / sizeof *wanted; w++) {
		uint32_t have = 0;

		while (have < count && has_metric(&profiles[have], wanted[w]))
			have++;
		if (have == count)
			return plumb_metrics[wanted[w]].name;
	}
	return plumb_profile_metric(profiles, plumb_metric_default(profiles)).name;
}

static const char *
default_by(const struct plumb_profile *profiles, uint32_t count)
{
	bool operators = true, kernels = true;

	for (uint32_t i = 0; i < count; i++) {
		operators &= has_frames(&profiles[i], PLUMB_FRAME_OPERATOR);
		kernels &= has_frames(&profiles[i], PLUMB_FRAME_KERNEL);
	}
	return operators || !kernels ? "operator" : "kernel";
}

/* ---- what is shown ---- */

static int
descending(const void *x, const void *y)
{
	const double *a = x, *b = y;

	return (*a < *b) - (*a > *b);
}

/* Marks the TOP rows with the greatest changes; of call paths also what leads to them. */
static int
choose_rows(struct plumb_compared *c, uint32_t top, unsigned char *shown)
{
	const struct plumb_diff_table *table = c->table;
	double *weights = malloc((table->count + (size_t)1) * sizeof *weights), least = 0;

	if (!weights)
		return PLUMB_ESYSTEM;
	for (uint32_t i = 0; i < table->count; i++)
		weights[i] = plumb_diff_weight(&table->rows[i]);
	if (!top || top > table->count)
		top = table->count;
	if (top) {
		qsort(weights, table->count, sizeof *weights, descending);
		least = weights[top - 1];
	}
	/* Those above the least first, so that of equal ones the first are taken. */
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < table->count && top; i++) {
			double weight = plumb_diff_weight(&table->rows[i]);

			if (pass ? weight != least : !(weight > least))
				continue;
			top--;
			for (uint32_t r = i; r != PLUMB_NONE && !shown[r];
			     r = table->rows[r].parent) {
				shown[r] = 1;
				c->shown_count++;
			}
		}
	free(weights);
	c->shown = shown;
	return 0;
}

static int
print(const struct plumb_invocation *invocation, const struct plumb_compared *c)
{
	int64_t width = plumb_options_number(invocation->options, "width");
	int code;

	if (width < 0)
		width = plumb_terminal_width(invocation->out);
	if (plumb_options_flag(invocation->options, "json"))
		code = plumb_diff_json(c, invocation->out);
	else if (plumb_options_flag(invocation->options, "csv"))
		code = plumb_diff_csv(c, invocation->out);
	else
		code = plumb_diff_text(c, invocation->out, width < 10000 ? (int)width : 10000);
	if (plumb_options_flag(invocation->options, "csv"))
		plumb_diff_gates(c, invocation->err);
	return code;
}

/* ---- working it out ---- */

static int
measure_all(struct plumb_compared *c, struct plumb_diff_measure *measures,
            struct plumb_error *error)
{
	const char *names[8];
	uint32_t count = 0;

	for (; plumb_diff_measures[count]; count++)
		names[count] = plumb_diff_measures[count];
	if (strcmp(c->metric, "iteration.time"))
		names[count++] = c->metric;
	for (uint32_t i = 0; i < count; i++) {
		struct plumb_diff_measure *m = &measures[c->measure_count];

		if (plumb_diff_measure(c->diff, names[i], m, error) < 0)
			return error->code;
		c->measure_count += !isnan(m->amount.before) || !isnan(m->amount.after);
	}
	c->measures = measures;
	return 0;
}

static int
decide(struct plumb_compared *c, struct plumb_diff_gate *gates, struct plumb_error *error)
{
	c->holds = true;
	c->gates = gates;
	for (uint32_t i = 0; i < c->gate_count; i++) {
		if (plumb_gate_decide(c->diff, &gates[i].gate, &gates[i].result, error) < 0)
			return error->code;
		c->holds &= gates[i].result.holds;
	}
	return 0;
}

static int
conclude(const struct plumb_invocation *invocation, const struct plumb_compared *c)
{
	if (!c->holds)
		return PLUMB_EXIT_GATE;
	if (c->table->count || c->gate_count)
		return PLUMB_EXIT_DONE;
	plumb_cli_note(invocation,
	               "nothing to show: no %s has %s on either side; try another --by or "
	               "--metric",
	               c->by, c->metric);
	return PLUMB_EXIT_EMPTY;
}

static int
compare(const struct plumb_invocation *invocation, struct plumb_compared *c, uint32_t top,
        struct plumb_diff_gate *gates)
{
	struct plumb_diff_environment environment = { 0 };
	struct plumb_diff_measure measures[8];
	struct plumb_diff_table table = { 0 };
	struct plumb_error error = { 0 };
	unsigned char *shown = NULL;
	int code = plumb_diff_environment(c->diff, &environment, &error);

	if (!code)
		code = measure_all(c, measures, &error);
	if (!code)
		code = plumb_diff_table(c->diff, c->metric, &table, &error);
	if (!code)
		code = decide(c, gates, &error);
	c->environment = &environment;
	c->table = &table;
	if (!code) {
		shown = calloc(table.count + (size_t)1, 1);
		code = shown ? choose_rows(c, top, shown) : PLUMB_ESYSTEM;
		if (!code)
			code = print(invocation, c);
		if (code && !ferror(invocation->out))
			code = plumb_fail(&error, PLUMB_ESYSTEM,
			                  "not enough memory; close other programs");
	}
	int result = error.code == PLUMB_EUSAGE
	                     ? plumb_cli_usage(invocation, "diff: %s", error.message)
	             : error.code ? plumb_cli_fail(invocation, &error)
	                          : conclude(invocation, c);
	free(shown);
	plumb_diff_table_free(&table);
	plumb_diff_environment_free(&environment);
	return result;
}

static int
diff_profiles(const struct plumb_invocation *invocation, const struct plumb_profile *profiles,
              uint32_t before, struct plumb_diff_options *wanted, struct plumb_diff_gate *gates,
              uint32_t gate_count)
{
	const struct plumb_options *o = invocation->options;
	uint32_t count = (uint32_t)invocation->operand_count;
	const struct plumb_profile **list = calloc(count, sizeof *list);
	struct plumb_compared c = { .paths = invocation->operands, .gate_count = gate_count };
	int64_t top = plumb_options_number(o, "top");
	struct plumb_error error = { 0 };
	struct plumb_diff *diff = NULL;
	int result;

	c.by = plumb_options_given(o, "by") ? plumb_options_text(o, "by")
	                                    : default_by(profiles, count);
	wanted->by = by_of(c.by);
	c.metric = plumb_options_text(o, "metric");
	if (!c.metric)
		c.metric = default_metric(profiles, count, c.by);
	c.unit = "ns";
	for (uint32_t i = 0; list && i < count; i++) {
		uint32_t metric = plumb_profile_metric_find(&profiles[i], c.metric);

		list[i] = &profiles[i];
		if (metric)
			c.unit = plumb_profile_metric(&profiles[i], metric).unit;
	}
	if (!strcmp(c.by, "iteration") != !strcmp(c.metric, "iteration.time")) {
		free(list);
		return plumb_cli_usage(invocation, "diff: --by iteration has only the metric "
		                                   "iteration.time, and only it has this metric");
	}
	if (list)
		diff = plumb_diff_new(list, before, count, wanted, &error);
	else
		plumb_fail(&error, PLUMB_ESYSTEM, "not enough memory; close other programs");
	c.diff = diff;
	result =
		diff ? compare(invocation, &c, top < UINT32_MAX ? (uint32_t)top : UINT32_MAX, gates)
		     : plumb_cli_fail(invocation, &error);
	plumb_diff_free(diff);
	free(list);
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

/* How many operands are of the first side; 0: that cannot be told. */
static uint32_t
first_side(const struct plumb_invocation *invocation)
{
	int count = invocation->operand_count, tail = plumb_options_tail(invocation->options);

	if (tail > 0 && tail < count)
		return (uint32_t)(count - tail);
	return count == 2 ? 1 : 0;
}

static int
load_all(const struct plumb_invocation *invocation, struct plumb_profile *profiles,
         struct plumb_error *error)
{
	for (int i = 0; i < invocation->operand_count; i++)
		if (plumb_load(&profiles[i], invocation->operands[i], PLUMB_LOAD_ALL, error) < 0)
			return error->code;
	return 0;
}

static int
parse_gates(const struct plumb_options *options_given, struct plumb_diff_gate **gates,
            uint32_t *count, struct plumb_error *error)
{
	const char *text;

	*count = 0;
	while (plumb_options_each(options_given, "gate", *count))
		++*count;
	*gates = calloc(*count + (size_t)1, sizeof **gates);
	if (!*gates)
		return plumb_fail(error, PLUMB_ESYSTEM, "not enough memory; close other programs");
	for (uint32_t i = 0; (text = plumb_options_each(options_given, "gate", i)); i++)
		if (plumb_gate_parse(text, &(*gates)[i].gate, error) < 0)
			return error->code;
	return 0;
}

int
plumb_cmd_diff(struct plumb_invocation *invocation)
{
	const struct plumb_options *o = invocation->options;
	const char *iterations = plumb_options_text(o, "iterations");
	struct plumb_diff_options wanted = { .total = plumb_options_flag(o, "total") };
	struct plumb_diff_gate *gates = NULL;
	struct plumb_profile *profiles;
	struct plumb_error error = { 0 };
	uint32_t before = first_side(invocation), count;
	int result;

	if (plumb_options_flag(o, "json") && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation, "diff: choose --json or --csv");
	if (!before || invocation->operand_count > SIDE_MOST)
		return plumb_cli_usage(invocation, "diff: for more than two files, put -- "
		                                   "between the files before and the files after");
	if (iterations && !parse_iterations(iterations, wanted.iterations))
		return plumb_cli_usage(invocation,
		                       "diff: --iterations takes two numbers, such as 100,120");
	if (parse_gates(o, &gates, &count, &error) < 0) {
		free(gates);
		return error.code == PLUMB_EUSAGE
		               ? plumb_cli_usage(invocation, "diff: %s", error.message)
		               : plumb_cli_fail(invocation, &error);
	}
	profiles = calloc((size_t)invocation->operand_count, sizeof *profiles);
	if (!profiles)
		plumb_fail(&error, PLUMB_ESYSTEM, "not enough memory; close other programs");
	if (!profiles || load_all(invocation, profiles, &error) < 0)
		result = plumb_cli_fail(invocation, &error);
	else
		result = diff_profiles(invocation, profiles, before, &wanted, gates, count);
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
