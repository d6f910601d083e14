/* SPDX-License-Identifier: Apache-2.0 */
/* plumb iters: its options, and the text about the iterations of each device's main track. */
#include "cli/iters/iters.h"
#include "analyze/path/part.h"

#include <inttypes.h>
#include <math.h>

#include "base/format.h"
#include "cli/cli.h"
#include "cli/columns.h"
#include "cli/load.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/windows.h"
#include "view/render.h"
#include "view/view.h"

#define ROWS_MOST 20 /* iterations that are printed, and outliers after them */
#define ODD_MOST 8
#define OUTLIERS_MOST 8
#define STATES_MOST 40

#define WORDS(number) #number
#define IN_WORDS(number) WORDS(number)

static const struct plumb_option options[] = {
	{ .name = "track",
	  .letter = 't',
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "T",
	  .help = "only this track; T is its number in the list of tracks" },
	{ .name = "loop",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .help = "this loop instead of the main one: all about it, its --explain, its critical "
	          "path; with --csv only its rows. Loops are counted from 1, in order of time" },
	{ .name = "explain",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .help = "say why iteration N differs from the others (of --track, or of the first main "
	          "track)" },
	{ .name = "states",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "show a loop as a graph of states: kernels that always run one after another, "
	          "how long they take, and what follows what (of --track, or of the first main "
	          "track)" },
	PLUMB_WINDOW_OPTION(""),
	{ .name = "level",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "L",
	  .fallback = "0",
	  .help = "with --explain: the level that N belongs to; with --states: the level to show" },
	{ .name = "path-spans",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = IN_WORDS(PLUMB_PATH_SPANS_MOST),
	  .help = "maximum spans for the critical path; a larger profile gets the path of a part: "
	          "whole iterations around the median one, or the last stretch of time; 0: no "
	          "path" },
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write one JSON object" },
	{ .name = "csv", .kind = PLUMB_OPTION_FLAG, .help = "write one row per iteration as CSV" },
	{ .name = "interval",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "PERCENT",
	  .fallback = "10",
	  .help = "intervals between iterations are large above this share of the time" },
	{ .name = "overlap",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "PERCENT",
	  .fallback = "10",
	  .help = "large intervals are copy-bound if copies from the host take more than this "
	          "share of them, otherwise host-bound" },
	{ .name = "idle",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "PERCENT",
	  .fallback = "30",
	  .help = "a device without work for more than this share of the time is host-bound, "
	          "however large the intervals are" },
	{ 0 },
};

/* "track 2 (main): GPU 0 (Tesla V100), stream 7, 8,772 kernels" */
static void
print_track(const struct plumb_iters *iters, const struct plumb_iteration_track *track, FILE *out)
{
	const struct plumb_profile *p = iters->profile;
	const struct plumb_track *place = &p->tracks[track->track];
	char kernels[PLUMB_FORMAT_SIZE], copies[PLUMB_FORMAT_SIZE];

	fprintf(out, "track %" PRIu32 " (%s):", track->track, plumb_iters_roles[track->role]);
	if (track->device < p->devices_count) {
		const struct plumb_device *device = &p->devices[track->device];
		const char *name = plumb_text(p, device->name);

		if (device->ordinal != PLUMB_UNKNOWN)
			fprintf(out, " GPU %" PRId64, device->ordinal);
		if (name) {
			fputs(" ", out);
			plumb_text_print(out, name);
		}
	}
	if (place->stream != PLUMB_UNKNOWN)
		fprintf(out, ", stream %" PRId64, place->stream);
	if (place->process < p->processes_count &&
	    p->processes[place->process].rank != PLUMB_UNKNOWN)
		fprintf(out, ", rank %" PRId64, p->processes[place->process].rank);
	fprintf(out, ", %s kernel%s, %s cop%s or set%s\n", plumb_format_count(kernels, track->ops),
	        track->ops == 1 ? "" : "s", plumb_format_count(copies, track->copies),
	        track->copies == 1 ? "y" : "ies", track->copies == 1 ? "" : "s");
	if (track->role == PLUMB_ROLE_MAIN && track->device < p->devices_count &&
	    p->devices[track->device].contended_ns > 0)
		fprintf(out,
		        "  several processes had work on this device at the same time for %s\n",
		        plumb_format_time(kernels, p->devices[track->device].contended_ns));
}

void
plumb_iters_stat_print(FILE *out, const char *name, const struct plumb_iteration_stat *stat,
                       const char *unit)
{
	char mean[PLUMB_FORMAT_SIZE], most[PLUMB_FORMAT_SIZE], p50[PLUMB_FORMAT_SIZE];
	char p95[PLUMB_FORMAT_SIZE];

	if (stat->average == PLUMB_UNKNOWN)
		return;
	fprintf(out, "    %-12s mean %s, median %s, p95 %s, max %s\n", name,
	        plumb_format_quantity(mean, unit, stat->average),
	        plumb_format_quantity(p50, unit, stat->p50),
	        plumb_format_quantity(p95, unit, stat->p95),
	        plumb_format_quantity(most, unit, stat->most));
}

/* With its evidence, in as many lines as the terminal is too narrow for. */
static void
print_verdict(const struct plumb_iteration_level *level, FILE *out)
{
	char share[PLUMB_FORMAT_SIZE], elsewhere[PLUMB_FORMAT_SIZE], clauses[3][160];
	int width = plumb_terminal_width(out), column = 0;
	bool said = level->elsewhere_share >= 0.001;

	if (!plumb_iters_verdicts[level->verdict])
		return;
	snprintf(clauses[0], sizeof clauses[0], "    %s: intervals take %s of the loop%s%s%s,",
	         plumb_iters_verdicts[level->verdict],
	         plumb_format_share(share, level->interval_share, 1), said ? " (" : "",
	         said ? plumb_format_share(elsewhere, level->elsewhere_share, 1) : "",
	         said ? " with kernels on other streams)" : "");
	snprintf(clauses[1], sizeof clauses[1], " copies from the host take %s of the intervals;",
	         plumb_format_share(share, level->overlap_share, 1));
	snprintf(clauses[2], sizeof clauses[2], " the device has no work for %s of the loop",
	         plumb_format_share(share, level->idle_share, 1));
	for (int i = 0; i < 3; i++) {
		int columns = plumb_columns(clauses[i]);

		if (i && column + columns > width)
			column = fprintf(out, "\n     ") - 1;
		fputs(clauses[i], out);
		column += columns;
	}
	fputc('\n', out);
}

static void
print_odd(const struct plumb_iters *iters, const struct plumb_iteration_level *level, FILE *out)
{
	uint32_t told = 0, count = 0;

	for (uint32_t i = 0; i < level->odd_count; i++) {
		const struct plumb_odd *odd = &level->odd[i];

		/* What lies before and after it is told by stretch. */
		if (odd->kind == PLUMB_ODD_BEFORE || odd->kind == PLUMB_ODD_AFTER)
			continue;
		if (count++ >= ODD_MOST)
			continue;
		told++;
		int used = fprintf(out, "    %s: %" PRIu32 " × ", plumb_iters_odd[odd->kind],
		                   odd->count);
		plumb_text_print_short(out, plumb_frame_label(iters->profile, odd->frame),
		                       plumb_terminal_width(out) - used);
		fputc('\n', out);
	}
	if (count > told)
		fprintf(out, "    … and %" PRIu32 " more names that do not fit the loop\n",
		        count - told);
}

static void
cell_time(struct plumb_table *table, int64_t ns)
{
	char text[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, plumb_format_time(text, ns));
}

/* Of level 0 of found->tracks[T]. */
static int
print_items(const struct plumb_iters *iters, uint32_t t, FILE *out)
{
	/* The first column is there only if the second one is not enough. */
	static const struct plumb_column columns[] = {
		{ "step", PLUMB_RIGHT },        { "iteration", PLUMB_RIGHT },
		{ "duration", PLUMB_RIGHT },    { "interval", PLUMB_RIGHT },
		{ "overlap", PLUMB_RIGHT },     { "kernels", PLUMB_RIGHT },
		{ "kernel time", PLUMB_RIGHT }, { "gap", PLUMB_RIGHT },
		{ "copied", PLUMB_RIGHT },      { "", PLUMB_LEFT },
	};
	const struct plumb_iteration_level *level = &iters->found.tracks[t].levels[0];
	int without = !plumb_iters_steps_differ(iters, t);
	struct plumb_table *table =
		plumb_table_new(columns + without, sizeof columns / sizeof *columns - without);
	char text[PLUMB_FORMAT_SIZE];
	uint32_t shown = 0;
	int code;

	for (uint32_t i = 0; i < level->count && shown < 2 * ROWS_MOST; i++) {
		const struct plumb_iteration *item = &level->items[i];

		if (i >= ROWS_MOST && !item->outlier)
			continue;
		shown++;
		if (!without && plumb_iters_step(iters, t, i) != PLUMB_UNKNOWN) {
			snprintf(text, sizeof text, "%" PRId64, plumb_iters_step(iters, t, i));
			plumb_table_cell(table, text);
		} else if (!without) {
			plumb_table_cell(table, NULL);
		}
		snprintf(text, sizeof text, "%" PRIu32, i);
		plumb_table_cell(table, text);
		cell_time(table, item->end_ns - item->start_ns);
		cell_time(table, item->interval_ns);
		if (item->interval_ns > 0)
			plumb_table_cell(table, plumb_format_share(text, (double)item->overlap_ns,
			                                           (double)item->interval_ns));
		else
			plumb_table_cell(table, NULL);
		plumb_table_cell(table, plumb_format_count(text, item->ops));
		cell_time(table, item->op_time_ns);
		cell_time(table, item->op_gap_ns);
		plumb_table_cell(table, plumb_format_bytes(text, item->copy_bytes));
		plumb_table_cell(table, item->outlier ? "outlier" : "");
	}
	code = plumb_table_print(table, out, plumb_terminal_width(out), plumb_terminal_colour(out));
	plumb_table_free(table);
	if (level->count > shown)
		fprintf(out, "… and %s more: --json and --csv have all\n",
		        plumb_format_count(text, level->count - shown));
	return code;
}

/* The numbers that --explain takes. */
static void
print_outliers(const struct plumb_iteration_level *level, FILE *out)
{
	uint32_t told = 0;

	for (uint32_t i = 0; i < level->count && told <= OUTLIERS_MOST; i++)
		if (level->items[i].outlier && told++ < OUTLIERS_MOST)
			fprintf(out, "%s%" PRIu32, told == 1 ? "    outliers: " : ", ", i);
	if (told)
		fprintf(out, "%s (see --explain N)\n", told > OUTLIERS_MOST ? ", …" : "");
}

/* Level DEPTH of a loop of found.tracks[T]. WHOLE: it is the main loop, so all is told. */
static int
print_level(const struct plumb_iters *iters, uint32_t t, const struct plumb_iteration_level *level,
            uint32_t depth, bool whole, FILE *out)
{
	static const char *const phases[] = { "after the longest gap", "after a copy from the host",
		                              "at a marker" };
	char match[PLUMB_FORMAT_SIZE], coverage[PLUMB_FORMAT_SIZE];
	char slope[PLUMB_FORMAT_SIZE], error[PLUMB_FORMAT_SIZE];
	char count[PLUMB_FORMAT_SIZE], period[PLUMB_FORMAT_SIZE];

	fprintf(out,
	        "  level %" PRIu32 ": %s iterations of %s kernels (%s match, %s covered), "
	        "starting %s:\n    ",
	        depth, plumb_format_count(count, level->count),
	        plumb_format_count(period, level->period_ops),
	        plumb_format_share(match, level->match, 1),
	        plumb_format_share(coverage, level->coverage, 1), phases[level->phase]);
	plumb_text_print_short(out, plumb_frame_label(iters->profile, level->first_frame),
	                       plumb_terminal_width(out) - 4);
	fputc('\n', out);
	print_verdict(level, out);
	if (whole && !depth) {
		plumb_iters_filled_print(iters, t, out);
		plumb_iters_contended_print(iters, t, out);
		plumb_iters_marked_print(iters, t, out);
	}
	plumb_iters_stat_print(out, "duration", &level->duration, "ns");
	plumb_iters_stat_print(out, "interval", &level->interval, "ns");
	plumb_iters_stat_print(out, "kernel gap", &level->op_gap, "ns");
	if (whole && !depth)
		plumb_iters_counters_print(iters, t, out);
	if (plumb_iterations_slow_down(level))
		fprintf(out, "    each iteration takes %s ± %s longer than the one before\n",
		        plumb_format_time(slope, llround(level->slope_ns)),
		        plumb_format_time(error, llround(level->slope_error_ns)));
	if (whole && !depth)
		print_outliers(level, out);
	if (level->growing)
		fprintf(out,
		        "    the loop grows: each iteration runs %.3g more kernels than the one "
		        "before, from %" PRIu32 " to %" PRIu32 "\n",
		        level->ops_slope, level->items[0].ops, level->items[level->count - 1].ops);
	print_odd(iters, level, out);
	return depth || !whole ? 0 : print_items(iters, t, out);
}

/* The loops of found.tracks[T] and what lies outside of them, in order of time. */
static int
print_loops(const struct plumb_iters *iters, uint32_t t, FILE *out)
{
	const struct plumb_iteration_track *track = &iters->found.tracks[t];
	uint32_t next = 0;
	int code = 0;

	for (uint32_t s = 0; !code && s < track->stretch_count; s++) {
		plumb_iters_outside_print(iters, track, s, out);
		if (track->stretches[s].loop != next)
			continue;
		const struct plumb_iteration_loop *loop = &track->loops[next];
		bool whole = next == track->main_loop;

		plumb_iters_loop_print(track, next++, out);
		for (uint32_t l = 0; !code && l < loop->level_count; l++)
			code = print_level(iters, t, &loop->levels[l], l, whole, out);
	}
	return code;
}

static int
print_all(const struct plumb_iters *iters, FILE *out)
{
	int code = 0;

	if (iters->found.newest)
		fputs("from the newest GPU work of each device only; record with --trace for all\n",
		      out);
	/* Which rank the others wait for matters more than the lists of each. */
	if (iters->track < 0)
		plumb_iters_ranks_print(iters, out);
	for (uint32_t t = 0; !code && t < iters->found.count; t++) {
		const struct plumb_iteration_track *track = &iters->found.tracks[t];

		if (!plumb_iters_shown(iters, track))
			continue;
		print_track(iters, track, out);
		if (track->role == PLUMB_ROLE_MAIN && !track->level_count)
			fputs("  no loop: the order of its kernels does not repeat\n", out);
		code = print_loops(iters, t, out);
		if (!code)
			code = plumb_iters_path_print(iters->paths, track, out);
	}
	return code;
}

static int
explain_one(const struct plumb_invocation *invocation, const struct plumb_iters *iters)
{
	const struct plumb_options *o = invocation->options;
	struct plumb_iters_explained explained;
	struct plumb_error error;
	int code = plumb_iters_explain(iters, (uint32_t)plumb_options_number(o, "level"),
	                               plumb_options_number(o, "explain"), &explained, &error);

	if (!code && !plumb_options_flag(o, "json"))
		plumb_iters_explain_print(iters, &explained, invocation->out);
	else if (!code && plumb_iters_explained_json(iters, &explained, invocation->out) < 0 &&
	         !ferror(invocation->out))
		code = plumb_fail(&error, PLUMB_ESYSTEM, "the iterations could not be written");
	plumb_iters_explained_free(&explained);
	return code < 0 ? plumb_cli_fail(invocation, &error) : PLUMB_EXIT_DONE;
}

static int
show_iterations(struct plumb_invocation *invocation, const struct plumb_iters *iters)
{
	struct plumb_error error = { 0 };
	bool explain = plumb_options_given(invocation->options, "explain");
	bool host = plumb_iters_host_shown(iters) && !explain;
	bool csv = plumb_options_flag(invocation->options, "csv");
	bool json = plumb_options_flag(invocation->options, "json");
	const char *why = plumb_iters_why_empty(iters, explain);
	int code;

	if (why) {
		plumb_fail(&error, PLUMB_EEMPTY, "%s: %s", invocation->operands[0], why);
		return plumb_cli_fail(invocation, &error);
	}
	if (!json && !csv)
		plumb_windows_print_only(iters->profile, invocation->out);
	if (explain)
		return explain_one(invocation, iters);
	if (json)
		code = plumb_iters_write(iters, PLUMB_VIEW_JSON, invocation->out, &error);
	else if (csv)
		code = plumb_iters_write(iters, PLUMB_VIEW_CSV, invocation->out, &error);
	else if (host)
		code = plumb_iters_host_print(iters, invocation->out);
	else
		code = print_all(iters, invocation->out);
	if (ferror(invocation->out)) /* main says so; a reader that has left is no failure */
		code = 0;
	if (code < 0)
		plumb_fail(&error, PLUMB_ESYSTEM, "the iterations could not be written");
	return code < 0 ? plumb_cli_fail(invocation, &error) : PLUMB_EXIT_DONE;
}

/* The state graph of one loop. */
static int
show_states(struct plumb_invocation *invocation, const struct plumb_profile *profile,
            const struct plumb_iters_query *query)
{
	const struct plumb_options *o = invocation->options;
	bool json = plumb_options_flag(o, "json"), csv = plumb_options_flag(o, "csv");
	int64_t level = plumb_options_number(o, "level");
	const struct plumb_states_query wanted = {
		.one = query->one,
		.track = query->track,
		.loop = query->loop,
		.level = level < PLUMB_NONE ? (uint32_t)level : PLUMB_NONE,
		.most = json || csv ? 0 : STATES_MOST,
	};
	struct plumb_answer tables[PLUMB_STATES_TABLES];
	struct plumb_error error = { 0 };
	int code = plumb_states_answer(profile, &wanted, tables, &error);

	if (code == PLUMB_EEMPTY)
		plumb_fail(&error, code,
		           "%s: there is no such loop, so there is no graph of its states; "
		           "plumb iters lists tracks, loops and levels",
		           invocation->operands[0]);
	if (code)
		return plumb_cli_fail(invocation, &error);
	if (json || csv) {
		code = plumb_view_answers(tables, PLUMB_STATES_TABLES, "iters",
		                          csv ? PLUMB_VIEW_CSV : PLUMB_VIEW_JSON, invocation->out,
		                          &error);
	} else {
		plumb_windows_print_only(profile, invocation->out);
		code = plumb_iters_states_print(tables, invocation->out);
	}
	for (int i = 0; i < PLUMB_STATES_TABLES; i++)
		plumb_answer_free(&tables[i]);
	if (!code || ferror(invocation->out))
		return PLUMB_EXIT_DONE;
	plumb_fail(&error, PLUMB_ESYSTEM, "the states could not be written");
	return plumb_cli_fail(invocation, &error);
}

/* What may not be said together. NULL: nothing. */
static const char *
find_wrong_use(const struct plumb_options *o)
{
	bool json = plumb_options_flag(o, "json"), csv = plumb_options_flag(o, "csv");
	bool explain = plumb_options_given(o, "explain"), states = plumb_options_flag(o, "states");

	if (json && csv)
		return "iters: choose --json or --csv";
	if (explain && csv)
		return "iters: --explain has no --csv, but --json";
	if (explain && states)
		return "iters: choose --explain or --states";
	if (plumb_options_given(o, "level") && !explain && !states)
		return "iters: --level needs --explain N or --states";
	if (plumb_options_given(o, "loop") && !plumb_options_number(o, "loop"))
		return "iters: loops are counted from 1";
	if (plumb_options_number(o, "interval") > 100 || plumb_options_number(o, "overlap") > 100 ||
	    plumb_options_number(o, "idle") > 100)
		return "iters: a percentage is at most 100";
	return NULL;
}

int
plumb_cmd_iters(struct plumb_invocation *invocation)
{
	struct plumb_iteration_limits limits = {
		.interval = 10000 * plumb_options_number(invocation->options, "interval"),
		.overlap = 10000 * plumb_options_number(invocation->options, "overlap"),
		.idle = 10000 * plumb_options_number(invocation->options, "idle"),
	};
	bool explain = plumb_options_given(invocation->options, "explain");
	bool json = plumb_options_flag(invocation->options, "json");
	bool csv = plumb_options_flag(invocation->options, "csv");
	bool one_loop = plumb_options_given(invocation->options, "loop");
	int64_t spans = plumb_options_number(invocation->options, "path-spans");
	struct plumb_profile profile = { 0 };
	const struct plumb_iters_query query = {
		.limits = &limits,
		.one = plumb_options_given(invocation->options, "track"),
		.track = plumb_options_number(invocation->options, "track"),
		.loop = one_loop ? plumb_options_number(invocation->options, "loop") : 0,
		.explains = explain,
		.paths = csv || explain || !spans ? PLUMB_ITERS_NO_PATHS
		         : json                   ? PLUMB_ITERS_ALL_PATHS
		                                  : PLUMB_ITERS_SHORT_PATHS,
		.path_spans = spans,
		.last = explain ? NULL : &profile,
	};
	struct plumb_window_choice window;
	struct plumb_iters iters;
	struct plumb_error error = { 0 };
	const char *wrong;
	int result;

	if ((result = plumb_load_window(invocation, &window)))
		return result;
	wrong = find_wrong_use(invocation->options);
	if (wrong)
		return plumb_cli_usage(invocation, "%s", wrong);
	/* Markers are on threads, so all spans are wanted. */
	if (plumb_load(&profile, invocation->operands[0], PLUMB_LOAD_ALL, &window, &error) < 0) {
		plumb_profile_free(&profile);
		return plumb_cli_fail(invocation, &error);
	}
	if (plumb_options_flag(invocation->options, "states")) {
		result = show_states(invocation, &profile, &query);
		plumb_profile_free(&profile);
		return result;
	}
	result = plumb_iters_make(&profile, &query, &iters, &error) < 0
	                 ? plumb_cli_fail(invocation, &error)
	                 : show_iterations(invocation, &iters);
	plumb_iters_free(&iters);
	plumb_profile_free(&profile);
	return result;
}

static const char *const examples[] = {
	"plumb iters run.plumb",
	"the loops of each device, and what limits them",
	"plumb iters trace.json.gz --json",
	"the same from another profiler's trace, as JSON",
	"plumb iters run.plumb --explain 7",
	"why iteration 7 differs from the others",
	"plumb iters run.plumb --csv",
	"one row per iteration",
	"plumb iters run.plumb --loop 2",
	"all about the second loop of the run",
	"plumb iters run.plumb --states",
	"the main loop as a graph: what follows what",
	NULL,
};

const struct plumb_verb plumb_verb_iters = {
	.name = "iters",
	.summary = "find a program's iterations on its GPUs, and what limits them",
	.synopsis = "[FILE]",
	.description =
		"Finds loops by the order of each device's kernels; the program needs no markers. "
		"A run may have several, such as training and then evaluation. The one that takes "
		"most time is the main loop, of which most is shown. "
		"Shows how many kernels an iteration has, where each starts, and the loops inside "
		"it (such as layers inside a step). For each iteration it shows how long the "
		"device waited before it and how much of that time copies from the host took. It "
		"also lists outliers, and what is not in a loop.\n\n"
		"FILE is a profile recorded with --trace, or another tool's trace. A profile "
		"without spans has only the newest work of each device. Without GPU work, the "
		"iterations are the steps that the program marks (ProfilerStep, Optimizer.step), "
		"as plumb diff counts them.",
	.options = options,
	.examples = examples,
	.max_operands = 1,
	.newest = true,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_iters,
};
