/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/analyze.h"
#include "cli/cli.h"
#include "cli/findings.h"
#include "cli/levels/levels.h"
#include "cli/load.h"
#include "cli/report/text.h"
#include "cli/rules.h"
#include "cli/terminal.h"
#include "store/store.h"
#include "view/view.h"

static const struct plumb_option options[] = {
	{ .name = "by",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHAT",
	  .fallback = "operator",
	  .choices = "context|kernel|operator|range|module|python|line|phase|shape|native|library|"
	             "thread|process|rank|collective|memory",
	  .help = "what a row is. context: the tree of call paths; range: an NVTX or user range; "
	          "module: an nn.Module by its qualified name; python: a Python function; line: a "
	          "Python line; phase: data, forward, loss, backward, optimizer or other; shape: "
	          "an operator with the shapes of its inputs and outputs, if the run had --shapes; "
	          "native: a native function; library: the program or library of native functions; "
	          "thread: a host thread or a GPU stream; process: a process; rank: the processes "
	          "of a rank; collective: an operation of NCCL or RCCL; memory: who holds each "
	          "device's memory at its peak, by line of your code and operator. In profiles "
	          "without Python, line is a line of your native code. If operators explain less "
	          "than two thirds of the metric, the default is what explains more: module, "
	          "kernel, range or function. All values" },
	{ .name = "top",
	  .letter = 'n',
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = "20",
	  .help = "show the N largest rows; 0 shows all" },
	{ .name = "metric",
	  .letter = 'm',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "METRIC",
	  .help = "sort by METRIC, and show shares of it; \"plumb help metrics\" lists them, and "
	          "metrics of your program work too. Default: the first of gpu.time, op.time, "
	          "cpu.time and your program's metrics that was recorded" },
	{ .name = "inverted",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "bottom-up: under each row, the callers that its time came through" },
	{ .name = "filter",
	  .letter = 'f',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "RE",
	  .help = "show only rows with a name or FILE:LINE that matches the extended regular "
	          "expression RE; in a tree also what is above and below them. The numbers do not "
	          "change" },
	{ .name = "unfold",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "with --by module, show each layer. Without it, modules that differ in an index "
	          "only are one row; JSON and CSV always have a row for each" },
	{ .name = "user-code",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "RULE",
	  .help = "change what counts as your code: entries +PREFIX (files under PREFIX are yours) "
	          "and -PREFIX (are not), separated by colons; the last that matches counts. "
	          "Default: everything but installed packages and the standard library" },
	{ .name = "findings",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "show findings instead of rows, the most important first: what, why, where, "
	          "what to do, and what that saves at most (see \"plumb help findings\")" },
	{ .name = "threshold",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "NAME=VALUE,...",
	  .help = "change thresholds of the analyses, for example "
	          "hotspot.share=5%,fusion.kernel_time=20us" },
	{ .name = "rule",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE,...",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "run rules of your own, in Python, and show what they find among the findings" },
	PLUMB_WINDOW_OPTION(
		". Without it, text shows rows of the main loop, JSON and CSV those of the whole "
		"run, and findings are of the main loop, other large loops and start-up"),
	{ .name = "per-iteration",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "show what one iteration of a loop takes: values divided by the iterations of "
	          "--window (default: loop), and by how much iterations vary" },
	{ .name = "corrected",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "in a profile of plumb levels: show each call path as it was measured and at its "
	          "own cost, with the interval, and where that changes the order" },
	{ .name = "ledger",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "show the whole ledger: what was received, attributed and dropped from each "
	          "source, and why" },
	{ .name = "width",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "COLUMNS",
	  .help = "shorten names to fit COLUMNS; 0: never shorten. Default: the width of the "
	          "terminal" },
	{ .name = "compat",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "TOOL",
	  .choices = "hta",
	  .help = "also show TOOL's figures for the trace. They differ from the exact ones: hta "
	          "(HolisticTraceAnalysis 0.5) drops the last ProfilerStep and rounds every event "
	          "to µs. Known tools" },
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write JSON" },
	{ .name = "csv", .kind = PLUMB_OPTION_FLAG, .help = "write CSV" },
	{ 0 },
};

static int
print_findings_csv(const struct plumb_report *report, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answer;
	int code = plumb_findings_answer(report->profile, report->user_of, report->top, &answer,
	                                 error);

	if (!code)
		code = plumb_view_answer(&answer, PLUMB_VIEW_CSV, out, error);
	plumb_answer_free(&answer);
	return code;
}

/* WHOLE is the profile that the report's is a window of, or the same. */
static int
print_report(const struct plumb_invocation *invocation, const struct plumb_report *report,
             const struct plumb_profile *whole)
{
	const struct plumb_options *o = invocation->options;
	const char *path = invocation->operands[0];
	int64_t width = plumb_options_number(o, "width");
	char why[PLUMB_REPORT_WHY_SIZE];
	struct plumb_error error;
	int result = 0;

	if (width < 0)
		width = plumb_terminal_width(invocation->out);
	plumb_fail_memory(&error, "for the report");
	if (plumb_options_flag(o, "json"))
		result = plumb_report_write(report, PLUMB_VIEW_JSON, invocation->out, &error);
	else if (plumb_options_flag(o, "findings") && plumb_options_flag(o, "csv"))
		result = print_findings_csv(report, invocation->out, &error);
	else if (plumb_options_flag(o, "findings"))
		result = plumb_findings_text(report, whole, path, invocation->out,
		                             (int)(width < 10000 ? width : 0));
	else if (plumb_options_flag(o, "csv"))
		result = plumb_report_write(report, PLUMB_VIEW_CSV, invocation->out, &error);
	else
		result = plumb_report_text(report, whole, path, plumb_options_flag(o, "ledger"),
		                           invocation->out, width < 10000 ? (int)width : 10000);
	/* A failed write is the frame's to report: it knows whether the reader just left. */
	if (result < 0 && !ferror(invocation->out))
		return plumb_cli_fail(invocation, &error);
	if (plumb_report_count(report))
		return PLUMB_EXIT_DONE;
	plumb_cli_note(invocation, "nothing to show: %s", plumb_report_why_empty(report, why));
	return PLUMB_EXIT_EMPTY;
}

/* ---- what is read ---- */

/* What the report is of: a window, or the whole. */
struct shown {
	struct plumb_window_choice choice;
	bool chosen; /* the user named it */
	struct plumb_profile whole;
	struct plumb_profile window; /* of `whole`; its kind is PLUMB_WINDOW_ALL if there is none */
	bool by_shape;               /* rows are by shape */
	const char *metric;          /* NULL: the default */
};

static const struct plumb_profile *
rows_of(const struct shown *shown)
{
	return shown->window.window.kind ? &shown->window : &shown->whole;
}

static int
report_profile(const struct plumb_invocation *invocation, const struct shown *shown,
               const struct plumb_report_query *query)
{
	const struct plumb_profile *profile = rows_of(shown);
	struct plumb_report report;
	struct plumb_error error;
	int result;

	if (query->metric && !plumb_profile_metric_find(profile, query->metric))
		return plumb_cli_usage(invocation, "report: the profile has no metric \"%s\"",
		                       query->metric);
	result = plumb_report_make(profile, query, &report, &error) < 0
	                 ? plumb_cli_fail(invocation, &error)
	                 : print_report(invocation, &report, &shown->whole);
	plumb_report_free(&report);
	return result;
}

static bool
are_findings_shown(const struct plumb_options *o)
{
	return plumb_options_flag(o, "findings") || plumb_options_flag(o, "json");
}

static enum plumb_load_part
part_to_load(const struct plumb_invocation *invocation)
{
	return plumb_options_given(invocation->options, "compat") ? PLUMB_LOAD_ALL
	                                                          : PLUMB_LOAD_STREAMS;
}

/* The critical path wants what threads did, too; another tool's trace has it already. If there is
 * not memory enough, or the profile is damaged, the findings that the profile has are shown. */
static int
analyze_again(const struct plumb_invocation *invocation, struct shown *shown,
              const struct plumb_analyze_options *wanted, struct plumb_error *error)
{
	const char *path = invocation->operands[0];
	struct plumb_profile *profile = &shown->whole;
	bool may_stay = !wanted->thresholds && !wanted->user_code && !shown->chosen &&
	                profile->findings_count && plumb_store_is_ours(path);
	int code = 0;

	if (are_findings_shown(invocation->options) && profile->spans_count &&
	    plumb_store_is_ours(path)) {
		plumb_profile_free(profile);
		*profile = (struct plumb_profile){ 0 };
		code = plumb_load(profile, path, PLUMB_LOAD_ALL, NULL, error);
	}
	if (!code && shown->chosen && shown->choice.kind)
		return 0; /* the window is analysed, not the whole */
	if (!code)
		code = plumb_analyze(profile, wanted, error);
	if (!code || !may_stay)
		return code;
	plumb_cli_note(invocation, "the findings are those that an older plumb stored: %s",
	               error->message);
	plumb_profile_free(profile);
	*profile = (struct plumb_profile){ 0 };
	return plumb_load(profile, path, part_to_load(invocation), NULL, error);
}

/* Cuts the window out, if rows or findings of one are shown. Rows by shape are of the whole unless
 * windows know shapes. */
static int
make_window(const struct plumb_invocation *invocation, struct shown *shown,
            const struct plumb_analyze_options *wanted, struct plumb_error *error)
{
	int code;

	bool timed =
		!shown->metric ||
		plumb_window_has_metric(plumb_profile_metric_find(&shown->whole, shown->metric));
	if (!shown->choice.kind || (!timed && !shown->chosen) ||
	    (shown->by_shape && !shown->chosen && !plumb_window_has_variants(&shown->whole)))
		return 0;
	if (!timed)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "samples of stalls have no times, so %s is known of the whole "
		                  "run only; leave out --window and --per-iteration",
		                  shown->metric);
	code = plumb_window_profile(&shown->whole, &shown->choice, &shown->window, error);
	if (code == PLUMB_EEMPTY && !shown->chosen)
		return 0;
	if (code)
		return plumb_fail_in(error, "%s", invocation->operands[0]);
	return shown->chosen && are_findings_shown(invocation->options)
	               ? plumb_analyze(&shown->window, wanted, error)
	               : 0;
}

/* Findings come from the profile. They are made again if it has none, if older analyses made them,
 * or if what they depend on is asked for otherwise. Those of a window that the user named are of
 * that alone. */
static int
make_shown(const struct plumb_invocation *invocation, struct shown *shown,
           struct plumb_error *error)
{
	const struct plumb_options *o = invocation->options;
	struct plumb_analyze_options wanted = {
		.thresholds = plumb_options_text(o, "threshold"),
		.user_code = plumb_options_text(o, "user-code"),
		.whole = shown->chosen,
	};
	const char *rules = plumb_options_text(o, "rule");
	int code = plumb_load(&shown->whole, invocation->operands[0], part_to_load(invocation),
	                      NULL, error);

	if (!code &&
	    (wanted.thresholds || wanted.user_code ||
	     (are_findings_shown(o) && (shown->chosen || plumb_findings_are_old(&shown->whole)))))
		code = analyze_again(invocation, shown, &wanted, error);
	if (!code)
		code = make_window(invocation, shown, &wanted, error);
	if (!code && rules)
		code = plumb_rules_run(shown->window.window.kind ? &shown->window : &shown->whole,
		                       invocation->operands[0], rules, error);
	return code;
}

/* Which window the options ask for. 0, or an exit code. */
static int
choose_window(const struct plumb_invocation *invocation, struct shown *shown,
              const struct plumb_report_query *query)
{
	const struct plumb_options *o = invocation->options;
	int result = plumb_load_window(invocation, &shown->choice);

	shown->chosen = plumb_options_given(o, "window") || query->per_iteration;
	if (result)
		return result;
	if (query->per_iteration && query->by == PLUMB_BY_MEMORY)
		return plumb_cli_usage(invocation, "report: --by memory has no --per-iteration");
	/* Who holds memory is known of one moment, and figures of another tool are of the whole. */
	if (!shown->chosen && (are_findings_shown(o) || plumb_options_flag(o, "csv") ||
	                       query->by == PLUMB_BY_MEMORY || query->compat))
		return 0;
	shown->by_shape = query->by == PLUMB_BY_SHAPE;
	if (!plumb_options_given(o, "window"))
		shown->choice.kind = PLUMB_WINDOW_LOOP;
	return 0;
}

/* Call paths at their own cost. The levels' windows are their own, so nothing else is shown. */
static int
report_corrected(const struct plumb_invocation *invocation, uint32_t top)
{
	static const char *const others[] = { "by",       "metric", "inverted",  "filter",
		                              "findings", "window", "threshold", "per-iteration",
		                              "rule",     "compat", "ledger",    "unfold" };
	const struct plumb_options *o = invocation->options;
	bool json = plumb_options_flag(o, "json"), csv = plumb_options_flag(o, "csv");
	struct plumb_profile profile = { 0 };
	struct plumb_error error;
	int64_t width = plumb_options_number(o, "width");
	int code;

	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (plumb_options_given(o, others[i]))
			return plumb_cli_usage(invocation,
			                       "report: --corrected has rows of its own; leave out "
			                       "--%s",
			                       others[i]);
	code = plumb_load(&profile, invocation->operands[0], PLUMB_LOAD_TOTALS, NULL, &error);
	if (!code && !plumb_levels_are_known(&profile))
		code = plumb_fail(&error, PLUMB_EEMPTY,
		                  "%s has no levels; measure them with plumb levels",
		                  invocation->operands[0]);
	if (!code && (json || csv))
		code = plumb_view_levels(
			&profile,
			&(struct plumb_levels_query){
				.verb = "report",
				.top = plumb_options_given(o, "top") ? (uint32_t)top : 0 },
			json ? PLUMB_VIEW_JSON : PLUMB_VIEW_CSV, invocation->out, &error);
	else if (!code && plumb_corrected_text(&profile, top, invocation->out,
	                                       width < 0 ? plumb_terminal_width(invocation->out)
	                                       : width < 10000 ? (int)width
	                                                       : 10000))
		code = plumb_fail_memory(&error, "for the report");
	plumb_profile_free(&profile);
	return code && !ferror(invocation->out) ? plumb_cli_fail(invocation, &error)
	                                        : PLUMB_EXIT_DONE;
}

int
plumb_cmd_report(struct plumb_invocation *invocation)
{
	const struct plumb_options *o = invocation->options;
	bool machine = plumb_options_flag(o, "json") || plumb_options_flag(o, "csv");
	int64_t top = plumb_options_number(o, "top");
	const struct plumb_report_query query = {
		.by = plumb_options_given(o, "by")
		              ? plumb_group_by_name(plumb_options_text(o, "by"))
		              : PLUMB_BY_DEFAULT,
		.metric = plumb_options_text(o, "metric"),
		.top = top < UINT32_MAX ? (uint32_t)top : UINT32_MAX,
		.inverted = plumb_options_flag(o, "inverted"),
		.compact = !machine,
		.compat = plumb_options_given(o, "compat"),
		.folded = !plumb_options_flag(o, "unfold") && !plumb_options_flag(o, "json") &&
		          !plumb_options_flag(o, "csv"),
		.filter = plumb_options_text(o, "filter"),
		.user_code = plumb_options_text(o, "user-code"),
		.per_iteration = plumb_options_flag(o, "per-iteration"),
	};
	struct shown shown = { .metric = query.metric };
	struct plumb_error error;
	int result;

	if (plumb_options_flag(o, "json") && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation, "report: choose --json or --csv");
	if (plumb_options_flag(o, "corrected"))
		return report_corrected(invocation, query.top);
	if (plumb_report_check(&query, &error) < 0)
		return plumb_cli_usage(invocation, "report: %s", error.message);
	result = choose_window(invocation, &shown, &query);
	if (!result && make_shown(invocation, &shown, &error) < 0)
		result = plumb_cli_fail(invocation, &error);
	else if (!result)
		result = report_profile(invocation, &shown, &query);
	plumb_profile_free(&shown.window);
	plumb_profile_free(&shown.whole);
	return result;
}

static const char *const examples[] = {
	"plumb report train.plumb",
	"the operators that take the most time",
	"plumb report train.plumb --by context",
	"call paths, from the Python line to the kernel",
	"plumb report train.plumb --by kernel --inverted --top 40",
	"the kernels, and under each what launched it",
	"plumb report train.plumb --by line --filter 'model\\.py:'",
	"the lines of one file",
	"plumb report train.plumb --by memory",
	"who holds each device's memory at its peak",
	"plumb report train.plumb --findings",
	"what is wrong, and what to do about it",
	"plumb report train.plumb --per-iteration --by line",
	"what one iteration of the main loop takes, line by line",
	"plumb report train.plumb --findings --rule small.py --threshold hotspot.share=5%",
	"with a rule of your own, and another threshold",
	"plumb report train.plumb --by kernel --json --top 0",
	"every kernel, as JSON",
	NULL,
};

const struct plumb_verb plumb_verb_report = {
	.name = "report",
	.summary = "show where the time of a profile goes, as a table or a tree",
	.synopsis = "[FILE]",
	.description =
		"Reads a profile. The head names the command, its wall time, what recording "
		"costs, and how busy each device was. The ledger at the end says what was "
		"dropped, and why.\n\n"
		"\"self\" is a row alone, without deeper rows of the same kind: self times add up "
		"to the total. \"total\" is a row with everything below it; a recursive frame "
		"counts once. \"share\" is self over the total, in a tree total over the total. "
		"\"line of your code\" is the line that most of the row comes from.",
	.options = options,
	.examples = examples,
	.max_operands = 1,
	.newest = true,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_report,
};
