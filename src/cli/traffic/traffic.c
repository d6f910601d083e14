/* SPDX-License-Identifier: Apache-2.0 */
/* plumb traffic: its options. */
#include "cli/traffic/traffic.h"

#include "analyze/analyze.h"
#include "cli/cli.h"
#include "cli/demangle.h"
#include "cli/load.h"
#include "view/view.h"

static const struct plumb_option options[] = {
	{ .name = "by",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHAT",
	  .choices = "pair|object|line|kernel|collective|route",
	  .help = "show only this list, and more of it. CSV has the pairs without it. WHAT is one "
	          "of" },
	{ .name = "stalls",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "STALLS",
	  .complete = PLUMB_COMPLETE_PROFILE,
	  .help = "say which stalls of GPU code wait for this traffic: STALLS is a profile of the "
	          "same program from plumb run --stalls" },
	{ .name = "top",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .help = "show the N worst of each list; 0: all. Without it text has 6, or 20 with --by; "
	          "JSON and CSV have all" },
	PLUMB_WINDOW_OPTION("; only with --by collective, as text or CSV, because transfers have "
	                    "no times"),
	{ .name = "user-code",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "RULE",
	  .help = "which code is your own, as for plumb report" },
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write JSON, with all lists" },
	{ .name = "csv", .kind = PLUMB_OPTION_FLAG, .help = "write CSV: the list of --by" },
	{ 0 },
};

#define TOP_TEXT 6
#define TOP_LIST 20

struct wanted {
	struct plumb_traffic_query query;
	struct plumb_window_choice window;
	bool data, listed; /* listed: --by was given */
	uint32_t top;      /* of text */
};

/* ---- what is asked for ---- */

static uint32_t
number_of(const struct plumb_options *o, uint32_t fallback)
{
	int64_t number = plumb_options_number(o, "top");

	if (!plumb_options_given(o, "top"))
		return fallback;
	return number >= UINT32_MAX ? 0 : (uint32_t)number;
}

static int
read_query(const struct plumb_invocation *invocation, struct wanted *w)
{
	const struct plumb_options *o = invocation->options;
	int result = plumb_load_window(invocation, &w->window);
	bool json = plumb_options_flag(o, "json");

	if (result)
		return result;
	w->data = json || plumb_options_flag(o, "csv");
	w->listed = plumb_options_given(o, "by");
	if (json && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation, "traffic: give --json or --csv, not both");
	if (w->listed)
		w->query.by = (enum plumb_traffic_by)plumb_options_choice(o, "by");
	if (w->window.kind != PLUMB_WINDOW_ALL &&
	    (json || !w->listed || w->query.by != PLUMB_TRAFFIC_BY_COLLECTIVE))
		return plumb_cli_usage(
			invocation,
			"traffic: transfers have no times, so they are of the whole run; only "
			"--by collective, as text or CSV, has --window");
	if (plumb_options_given(o, "stalls") && w->listed)
		return plumb_cli_usage(invocation,
		                       "traffic: give --by or --stalls, not both: --stalls shows "
		                       "what waits for traffic");
	w->query.top = w->data ? number_of(o, 0) : 0;
	w->top = number_of(o, w->listed ? TOP_LIST : TOP_TEXT);
	w->query.user_code = plumb_options_text(o, "user-code");
	w->query.demangle = plumb_demangle;
	return 0;
}

/* ---- answers ---- */

static int
print_answer(const struct plumb_invocation *invocation, const struct wanted *w,
             const struct plumb_traffic_answer *answer)
{
	const struct plumb_options *o = invocation->options;
	struct plumb_error error;
	int code = 0;

	if (w->data)
		code = plumb_traffic_write(
			answer, plumb_options_flag(o, "json") ? PLUMB_VIEW_JSON : PLUMB_VIEW_CSV,
			invocation->out, &error);
	else if (plumb_traffic_print(answer, invocation->operands[0], w->top, !w->listed,
	                             invocation->out) < 0)
		code = plumb_fail_memory(&error, "to print the traffic");
	if (code && !ferror(invocation->out))
		return plumb_cli_fail(invocation, &error);
	return PLUMB_EXIT_DONE;
}

static int
load(const struct plumb_invocation *invocation, const struct wanted *w,
     struct plumb_profile *profile, struct plumb_profile *stalls)
{
	const char *path = plumb_options_text(invocation->options, "stalls");
	struct plumb_error error;
	int code = plumb_load(profile, invocation->operands[0], PLUMB_LOAD_ALL,
	                      w->window.kind ? &w->window : NULL, &error);

	if (!code && path)
		code = plumb_load(stalls, path, PLUMB_LOAD_ALL, NULL, &error);
	if (!code && !w->window.kind && profile->transfers_count && plumb_findings_are_old(profile))
		code = plumb_analyze(profile, NULL, &error);
	return code ? plumb_cli_fail(invocation, &error) : PLUMB_EXIT_DONE;
}

int
plumb_cmd_traffic(struct plumb_invocation *invocation)
{
	struct wanted wanted = { 0 };
	struct plumb_profile profile = { 0 }, stalls = { 0 };
	struct plumb_traffic_answer answer;
	struct plumb_error error;
	int result = read_query(invocation, &wanted);

	if (!result)
		result = load(invocation, &wanted, &profile, &stalls);
	if (!result && plumb_options_given(invocation->options, "stalls"))
		wanted.query.stalls = &stalls;
	if (!result && plumb_traffic_answer_make(&profile, &wanted.query, &answer, &error) < 0) {
		plumb_fail_in(&error, "%s", invocation->operands[0]);
		result = plumb_cli_fail(invocation, &error);
	} else if (!result) {
		result = print_answer(invocation, &wanted, &answer);
		plumb_traffic_answer_free(&answer);
	}
	plumb_profile_free(&stalls);
	plumb_profile_free(&profile);
	return result;
}

static const char *const examples[] = {
	"plumb traffic run.plumb",
	"what is wrong, who moves what to whom, and from which line",
	"plumb traffic run.plumb --by object",
	"the objects with most traffic: where they were allocated, how much of them is touched",
	"plumb traffic run.plumb --by collective",
	"collective operations: bytes, bandwidth, and who comes last",
	"plumb traffic run.plumb --stalls stalls.plumb",
	"which instructions wait for which object on which GPU",
	"plumb traffic run.plumb --by pair --csv",
	"the pairs of GPUs for a spreadsheet",
	NULL,
};

const struct plumb_verb plumb_verb_traffic = {
	.name = "traffic",
	.summary = "which GPU moves which object to which GPU, and from which line",
	.synopsis = "[FILE]",
	.description =
		"Shows the data that went between GPUs, and between them and the host: two "
		"matrices (who initiates, and which way the data flows), objects with the line "
		"that allocated them, lines of code, kernels, collective operations and routes. "
		"What is unusual comes first, as findings with evidence and advice. What could "
		"not be seen is counted at the end.\n\nFILE is a profile from plumb run "
		"--traffic: that records copies and collective operations. With --traffic=full, "
		"it also has each access of a kernel to another GPU's memory.",
	.options = options,
	.examples = examples,
	.min_operands = 0,
	.max_operands = 1,
	.newest = true,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_traffic,
};
