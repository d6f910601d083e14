/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/output.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/newest.h"
#include "cli/tables_text.h"
#include "cli/windows.h"
#include "view/view.h"

static const struct plumb_option options[] = {
	PLUMB_WINDOW_OPTION(""),
	{ .name = "layer",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHAT",
	  .choices = "either|module|operator",
	  .fallback = "either",
	  .help = "what counts as a layer: leaf modules, top-level operators, or either (leaf "
	          "modules, and the operators outside of them)" },
	{ .name = "model",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "NAME",
	  .help = "the module, range, operator or Python function that is the model; without it "
	          "the outermost module around all layers, else the range around them, else "
	          "ProfilerStep" },
	{ .name = "whole",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "take layers from the whole recording, not only from the model" },
	{ .name = "runs",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .help = "the model ran N times; without it, as often as it was called" },
	{ .name = "batch",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "SIZES",
	  .help = "comma-separated batch sizes, one for each FILE; without it what the shapes or "
	          "the command in a profile say" },
	{ .name = "optimal",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "CONSTRAINT",
	  .help = "let A1 also choose a batch size within limits, such as "
	          "'latency<50ms,memory<8GB': the one with the highest throughput; with "
	          "'throughput>900' alone, the one with the lowest latency" },
	{ .name = "stat",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "STATISTIC",
	  .fallback = "trimmed",
	  .help = "how several calls become one value: trimmed (as in XSP: the mean without the "
	          "lowest and highest fifth), trimmed:PERCENT (left out at each end), mean, "
	          "median, min, max, or a percentile such as p95" },
	{ .name = "key",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "KEY",
	  .choices = "file|batch|gpu|framework|version",
	  .fallback = "file",
	  .help = "compare several FILEs: one row for each, named by KEY, and the kernels that "
	          "changed from each to the next" },
	{ .name = "base",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHICH",
	  .choices = "first|best",
	  .fallback = "first",
	  .help = "the profile that ratios refer to: the first, or the one with the highest "
	          "throughput" },
	{ .name = "serialised",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "RUN",
	  .bare = "this",
	  .complete = PLUMB_COMPLETE_PROFILE,
	  .help = "say that every launch waited for its work (CUDA_LAUNCH_BLOCKING=1), so that a "
	          "layer's time on the host includes its kernels: in this profile, or in RUN of "
	          "the same program" },
	{ .name = "precision",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "TYPE",
	  .choices = "fp32|tf32|fp16|bf16|fp8",
	  .fallback = "fp32",
	  .help = "which peak of the GPU a roofline uses" },
	{ .name = "peak",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "GFLOPS",
	  .help = "the GPU's peak in 10^9 operations per second, instead of the one that plumb "
	          "knows" },
	{ .name = "bandwidth",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "GBS",
	  .help = "the GPU's memory bandwidth in 10^9 bytes per second, instead of the one that "
	          "plumb knows" },
	{ .name = "svg",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "draw the roofline of A9 or A14, the one that you name, as SVG. An existing "
	          "file is replaced only if plumb drew it" },
	{ .name = "force",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "replace the file of --svg even if plumb did not draw it" },
	{ .name = "top",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = "20",
	  .help = "print at most N rows of each table as text; 0: all" },
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write JSON" },
	{ .name = "csv", .kind = PLUMB_OPTION_FLAG, .help = "write CSV" },
	{ 0 },
};

struct wanted {
	struct plumb_tables_query query;
	const char *files[PLUMB_TABLES_PROFILES];
	uint32_t file_count;
	int64_t batches[PLUMB_TABLES_PROFILES]; /* 0: not given */
	struct plumb_window_choice window;
	char *newest; /* the file's name if none was given */
};

/* ---- what is asked for ---- */

static bool
wants_table(const struct wanted *w, const char *id)
{
	for (uint32_t i = 0; i < w->query.kind_count; i++)
		if (!strcmp(w->query.kinds[i]->id, id))
			return true;
	return false;
}

static int
read_batches(const struct plumb_invocation *invocation, struct wanted *w)
{
	const char *text = plumb_options_text(invocation->options, "batch");
	uint32_t count = 0;

	for (; text && *text; text += *text == ',') {
		char number[24];
		size_t length = strcspn(text, ",");
		snprintf(number, sizeof number, "%.*s", (int)(length < 23 ? length : 23), text);
		int64_t batch = plumb_parse_number(number);
		if (batch <= 0 || count == PLUMB_TABLES_PROFILES)
			return plumb_cli_usage(invocation,
			                       "tables: --batch takes one size for each FILE, such "
			                       "as 1,2,4");
		w->batches[count++] = batch;
		text += length;
	}
	if (count && count != w->file_count)
		return plumb_cli_usage(invocation,
		                       "tables: --batch has %u size%s for %u FILE%s; give one "
		                       "for each, such as 1,2,4",
		                       count, count == 1 ? "" : "s", w->file_count,
		                       w->file_count == 1 ? "" : "s");
	return 0;
}

static bool
is_table_name(const char *text)
{
	return (*text == 'A' || *text == 'a') && text[1] &&
	       !text[1 + strspn(text + 1, "0123456789")];
}

/* The other run that --serialised names, or NULL. */
static const char *
serialised_run(const struct plumb_options *o)
{
	const char *run = plumb_options_text(o, "serialised");

	return run && strcmp(run, "this") ? run : NULL;
}

/* Checks all that can be before a profile is read. 0, or an exit code. */
static int
check_use(const struct plumb_invocation *invocation, struct wanted *w)
{
	static const char *const above_zero[] = { "runs", "peak", "bandwidth" };
	const struct plumb_options *o = invocation->options;

	for (int i = 0; i < invocation->operand_count; i++) {
		const char *operand = invocation->operands[i];
		const struct plumb_tables_kind *kind = plumb_tables_find(operand);
		if (kind)
			plumb_tables_want(&w->query, kind);
		else if (!strcasecmp(operand, "all"))
			plumb_tables_want_all(&w->query);
		else if (is_table_name(operand) && access(operand, F_OK) != 0)
			return plumb_cli_usage(invocation,
			                       "tables: there is no table %s; use A1 to A15, "
			                       "stages, compare, swapped or all",
			                       operand);
		else if (w->file_count == PLUMB_TABLES_PROFILES)
			return plumb_cli_usage(invocation,
			                       "tables: at most %d files at a time; "
			                       "leave some out",
			                       PLUMB_TABLES_PROFILES);
		else
			w->files[w->file_count++] = operand;
	}
	if (!w->file_count) {
		int result;
		w->newest = plumb_newest_profile(invocation, &result);
		if (!w->newest)
			return result;
		w->files[w->file_count++] = w->newest;
	}
	if (!w->query.kind_count && plumb_options_given(o, "key")) {
		plumb_tables_want(&w->query, plumb_tables_find("compare"));
		if (w->file_count > 1)
			plumb_tables_want(&w->query, plumb_tables_find("swapped"));
	}
	plumb_tables_want_default(&w->query, w->file_count);
	for (uint32_t i = 0; i < w->query.kind_count && w->file_count > 1; i++)
		if (!w->query.kinds[i]->several)
			return plumb_cli_usage(
				invocation,
				"tables: only A1, compare and swapped take several profiles; "
				"leave out \"%s\", or name one of these tables",
				w->files[1]);
	if (w->file_count == 1 && wants_table(w, "swapped"))
		return plumb_cli_usage(invocation, "tables: swapped needs two or more profiles");
	for (size_t i = 0; i < sizeof above_zero / sizeof *above_zero; i++)
		if (plumb_options_given(o, above_zero[i]) &&
		    plumb_options_number(o, above_zero[i]) <= 0)
			return plumb_cli_usage(invocation, "tables: --%s takes a number above 0",
			                       above_zero[i]);
	if (!plumb_statistic_read(plumb_options_text(o, "stat"), &w->query.layers.statistic))
		return plumb_cli_usage(invocation,
		                       "tables: there is no statistic \"%s\"; use trimmed, "
		                       "trimmed:PERCENT (below 50), mean, median, min, max, or "
		                       "p0 to p100",
		                       plumb_options_text(o, "stat"));
	if (plumb_options_given(o, "optimal") &&
	    !plumb_constraints_read(plumb_options_text(o, "optimal"), &w->query.constraints))
		return plumb_cli_usage(invocation,
		                       "tables: --optimal takes limits such as 'latency<50ms', "
		                       "'memory<8GB' or 'throughput>900', not \"%s\"",
		                       plumb_options_text(o, "optimal"));
	if (plumb_options_flag(o, "json") && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation, "tables: choose --json or --csv");
	if (serialised_run(o) && w->file_count > 1)
		return plumb_cli_usage(invocation, "tables: --serialised=RUN works with one "
		                                   "FILE; leave out the others");
	if (w->query.constraints.count && !wants_table(w, "A1"))
		return plumb_cli_usage(invocation, "tables: --optimal works with A1; add A1");
	if (plumb_options_given(o, "svg") && wants_table(w, "A9") == wants_table(w, "A14"))
		return plumb_cli_usage(invocation, "tables: --svg draws A9 or A14; name one of "
		                                   "them");
	return read_batches(invocation, w);
}

/* Reads what the options ask for. check_use has set the rest. */
static void
read_query(const struct plumb_options *o, struct plumb_tables_query *query)
{
	bool serialised = plumb_options_given(o, "serialised");

	query->layers.kind = plumb_options_choice(o, "layer");
	query->layers.model = plumb_options_text(o, "model");
	query->layers.whole = plumb_options_flag(o, "whole");
	query->layers.serialised = serialised && !serialised_run(o);
	query->layers.runs = plumb_options_number(o, "runs");
	query->precision = plumb_options_choice(o, "precision");
	query->peak_gflops = (double)plumb_options_number(o, "peak");
	query->bandwidth = (double)plumb_options_number(o, "bandwidth") * 1e9;
	query->key = plumb_options_choice(o, "key");
	query->as_given = plumb_options_given(o, "key") && query->key != PLUMB_KEY_IS_BATCH;
	query->against_best = plumb_options_choice(o, "base") == 1;
}

/* ---- printing ---- */

static int
draw_roofline(const struct plumb_invocation *invocation, const struct plumb_tables *tables)
{
	const char *path = plumb_options_text(invocation->options, "svg");
	const struct plumb_answer *answer = NULL;
	struct plumb_output output;
	struct plumb_error error = { 0 };

	for (uint32_t i = 0; i < tables->query.kind_count; i++)
		if (!strcmp(tables->answers[i].id, "A9") || !strcmp(tables->answers[i].id, "A14"))
			answer = &tables->answers[i];
	const struct plumb_output_rule rule = {
		.ours = plumb_roofline_drew,
		.kind = "a roofline that plumb drew",
		.option = "--svg",
		.force = plumb_options_flag(invocation->options, "force"),
	};
	if (plumb_output_open(&output, path, &rule, &error) < 0)
		return plumb_cli_fail(invocation, &error);
	if (!plumb_roofline_svg(tables, answer, output.file)) {
		plumb_output_drop(&output);
		plumb_fail(&error, PLUMB_EEMPTY, "no roofline: %s",
		           isnan(tables->input.peak_gflops) || isnan(tables->input.bandwidth)
		                   ? "the GPU's peaks are unknown; give --peak and --bandwidth"
		                   : "the profile has no counters of memory traffic and "
		                     "floating-point work; use a trace that has them (plumb "
		                     "import)");
		return plumb_cli_fail(invocation, &error);
	}
	return plumb_output_close(&output, &error) < 0 ? plumb_cli_fail(invocation, &error)
	                                               : PLUMB_EXIT_DONE;
}

static int
print_text(const struct plumb_invocation *invocation, const struct plumb_tables *tables,
           struct plumb_error *error)
{
	int64_t top = plumb_options_number(invocation->options, "top");

	plumb_windows_print_only(tables->layers[0].profile, invocation->out);
	for (uint32_t i = 0; i < tables->query.kind_count; i++) {
		if (i)
			fputc('\n', invocation->out);
		if (plumb_tables_text(&tables->answers[i], invocation->out, top))
			return plumb_fail_memory(error, "to print the tables");
	}
	return 0;
}

static int
print_tables(const struct plumb_invocation *invocation, const struct plumb_tables *tables)
{
	bool json = plumb_options_flag(invocation->options, "json");
	bool csv = plumb_options_flag(invocation->options, "csv");
	struct plumb_error error;
	int code;

	if (json || csv)
		code = plumb_tables_write(tables, json ? PLUMB_VIEW_JSON : PLUMB_VIEW_CSV,
		                          invocation->out, &error);
	else
		code = print_text(invocation, tables, &error);
	if (code && !ferror(invocation->out)) /* main says so of a failed write */
		return plumb_cli_fail(invocation, &error);
	if (!json && !csv && !tables->layers->in_order)
		plumb_cli_note(invocation, "layers are in the order of call paths, not of "
		                           "execution, because the profile has no spans of "
		                           "layers; record with plumb run --trace");
	if (plumb_options_given(invocation->options, "svg"))
		code = draw_roofline(invocation, tables);
	else
		code = PLUMB_EXIT_DONE;
	return !code && !tables->rows ? PLUMB_EXIT_EMPTY : code;
}

/* Loads the files into PROFILES, and gives TABLES their layers. */
static int
load_all(const struct plumb_invocation *invocation, const struct wanted *w,
         struct plumb_profile *profiles, struct plumb_tables *tables)
{
	const struct plumb_options *o = invocation->options;
	const char *run = serialised_run(o);
	struct plumb_error error = { 0 };

	for (uint32_t i = 0; i < w->file_count; i++) {
		struct plumb_profile other = { 0 };
		struct plumb_tables_profile added = { .profile = &profiles[i],
			                              .file = w->files[i],
			                              .batch = w->batches[i],
			                              .serialised = run ? &other : NULL,
			                              .serialised_file = run };
		int code =
			plumb_load(&profiles[i], w->files[i], PLUMB_LOAD_ALL, &w->window, &error);
		if (!code && run)
			code = plumb_load(&other, run, PLUMB_LOAD_ALL, &w->window, &error);
		if (!code)
			code = plumb_tables_add(tables, &added, &error);
		plumb_profile_free(&other);
		if (code)
			return plumb_cli_fail(invocation, &error);
		if (!tables->layers[i].in_order && plumb_options_given(o, "stat"))
			plumb_cli_note(invocation,
			               "%s has no spans of layers, so its times are means and "
			               "--stat has no effect; record with plumb run --trace",
			               w->files[i]);
	}
	return PLUMB_EXIT_DONE;
}

static int
answer_query(const struct plumb_invocation *invocation, struct wanted *w)
{
	struct plumb_profile *profiles = calloc(w->file_count, sizeof *profiles);
	struct plumb_tables *tables = plumb_tables_new(&w->query);
	struct plumb_error error;
	int result;

	if (!profiles || !tables) {
		plumb_fail_memory(&error, NULL);
		result = plumb_cli_fail(invocation, &error);
	} else {
		result = load_all(invocation, w, profiles, tables);
		if (!result)
			result = plumb_tables_make(tables, &error) < 0
			                 ? plumb_cli_fail(invocation, &error)
			                 : print_tables(invocation, tables);
	}
	plumb_tables_free(tables);
	for (uint32_t i = 0; profiles && i < w->file_count; i++)
		plumb_profile_free(&profiles[i]);
	free(profiles);
	return result;
}

int
plumb_cmd_tables(struct plumb_invocation *invocation)
{
	struct wanted wanted = { 0 };
	int result = plumb_load_window(invocation, &wanted.window);

	if (!result)
		result = check_use(invocation, &wanted);

	read_query(invocation->options, &wanted.query);
	if (!result)
		result = answer_query(invocation, &wanted);
	free(wanted.newest);
	return result;
}

static const char *const examples[] = {
	"plumb tables run.plumb",
	"all fifteen tables, and stages",
	"plumb tables run.plumb A10 A13",
	"kernels by name, and how much of each layer's latency the GPU works",
	"plumb tables b1.plumb b2.plumb b4.plumb A1 --batch 1,2,4",
	"latency and throughput for each batch size, and which size is optimal",
	"plumb tables b*.plumb A1 --optimal 'latency<50ms'",
	"the batch size with the highest throughput and a latency below 50 ms",
	"plumb tables a.plumb b.plumb --key gpu",
	"profiles side by side, and the kernels that changed between them",
	"plumb tables run.plumb stages",
	"which third of the model takes the time, memory and work",
	"plumb tables run.plumb A14 --svg roofline.svg",
	"a roofline of layers, from a profile with counters",
	NULL,
};

const struct plumb_verb plumb_verb_tables = {
	.name = "tables",
	.summary = "the standard tables of a model, its layers and kernels",
	.synopsis = "[FILE...] [A1...A15|stages|compare|swapped|all]",
	.description =
		"Prints the fifteen analyses of the XSP paper for a profile or for another "
		"tool's trace, with the column names of the paper's tool. A1 shows the model, A2 "
		"to A4 the layers, A5 to A7 the layers by type, A8 to A10 the kernels, A11 to "
		"A14 the kernels by layer, A15 the whole model. The table stages shows how much "
		"each third of the layers takes. Without the name of a table you get all of "
		"these. A1, compare and swapped take several profiles: compare shows them side "
		"by side, swapped the kernels that changed between them.\n\nA layer is a leaf "
		"module, or a top-level operator outside of these. The model is the outermost "
		"module around all layers, or the range around them. Values are for one run of "
		"the model. They count forward work only, except in columns that say backward. "
		"Each latency says how it was measured. A value that the profile does not hold "
		"is unknown, never 0.",
	.options = options,
	.examples = examples,
	.max_operands = PLUMB_ANY_NUMBER,
	.newest = true,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_tables,
};
