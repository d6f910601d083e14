/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "analyze/peaks.h"
#include "analyze/workload.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/newest.h"
#include "cli/tables_print.h"

static const struct plumb_option options[] = {
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

#define KINDS 18
#define FILES 64

struct wanted {
	const char *files[FILES];
	uint32_t file_count;
	const struct plumb_answer_kind *kinds[KINDS];
	uint32_t kind_count;
	int64_t batches[FILES]; /* 0: not given */
	struct plumb_constraints constraints;
	struct plumb_statistic statistic;
	char *newest; /* the file's name where none was given */
};

/* What is read and made of the files. */
struct made {
	struct plumb_profile profiles[FILES];
	struct plumb_layers layers[FILES];
	struct plumb_roof roofs[FILES];
	const char *batch_sources[FILES];
};

/* ---- what is asked for ---- */

static void
want_kind(struct wanted *w, const struct plumb_answer_kind *kind)
{
	for (uint32_t i = 0; i < w->kind_count; i++)
		if (w->kinds[i] == kind)
			return;
	w->kinds[w->kind_count++] = kind;
}

static void
want_all(struct wanted *w)
{
	for (const struct plumb_answer_kind *kind = plumb_answer_kinds; kind->id; kind++)
		if (!kind->aside)
			want_kind(w, kind);
}

static bool
wants(const struct wanted *w, const char *id)
{
	for (uint32_t i = 0; i < w->kind_count; i++)
		if (!strcmp(w->kinds[i]->id, id))
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
		if (batch <= 0 || count == FILES)
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
		const struct plumb_answer_kind *kind = plumb_answer_find(operand);
		if (kind)
			want_kind(w, kind);
		else if (!strcasecmp(operand, "all"))
			want_all(w);
		else if (is_table_name(operand) && access(operand, F_OK) != 0)
			return plumb_cli_usage(invocation,
			                       "tables: there is no table %s; use A1 to A15, "
			                       "stages, compare, swapped or all",
			                       operand);
		else if (w->file_count == FILES)
			return plumb_cli_usage(invocation,
			                       "tables: at most %d files at a time; leave some out",
			                       FILES);
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
	if (!w->kind_count && plumb_options_given(o, "key")) {
		want_kind(w, plumb_answer_find("compare"));
		if (w->file_count > 1)
			want_kind(w, plumb_answer_find("swapped"));
	}
	if (!w->kind_count && w->file_count > 1)
		want_kind(w, plumb_answer_find("A1"));
	if (!w->kind_count)
		want_all(w);
	for (uint32_t i = 0; i < w->kind_count && w->file_count > 1; i++)
		if (!w->kinds[i]->several)
			return plumb_cli_usage(
				invocation,
				"tables: only A1, compare and swapped take several profiles; "
				"leave out \"%s\", or name one of these tables",
				w->files[1]);
	if (w->file_count == 1 && wants(w, "swapped"))
		return plumb_cli_usage(invocation, "tables: swapped needs two or more profiles");
	for (size_t i = 0; i < sizeof above_zero / sizeof *above_zero; i++)
		if (plumb_options_given(o, above_zero[i]) &&
		    plumb_options_number(o, above_zero[i]) <= 0)
			return plumb_cli_usage(invocation, "tables: --%s takes a number above 0",
			                       above_zero[i]);
	if (!plumb_statistic_read(plumb_options_text(o, "stat"), &w->statistic))
		return plumb_cli_usage(invocation,
		                       "tables: there is no statistic \"%s\"; use trimmed, "
		                       "trimmed:PERCENT (below 50), mean, median, min, max, or "
		                       "p0 to p100",
		                       plumb_options_text(o, "stat"));
	if (plumb_options_given(o, "optimal") &&
	    !plumb_constraints_read(plumb_options_text(o, "optimal"), &w->constraints))
		return plumb_cli_usage(invocation,
		                       "tables: --optimal takes limits such as 'latency<50ms', "
		                       "'memory<8GB' or 'throughput>900', not \"%s\"",
		                       plumb_options_text(o, "optimal"));
	if (plumb_options_flag(o, "json") && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation, "tables: choose --json or --csv");
	if (serialised_run(o) && w->file_count > 1)
		return plumb_cli_usage(invocation, "tables: --serialised=RUN works with one "
		                                   "FILE; leave out the others");
	if (w->constraints.count && !wants(w, "A1"))
		return plumb_cli_usage(invocation, "tables: --optimal works with A1; add A1");
	if (plumb_options_given(o, "svg") && wants(w, "A9") == wants(w, "A14"))
		return plumb_cli_usage(invocation, "tables: --svg draws A9 or A14; name one of "
		                                   "them");
	return read_batches(invocation, w);
}

static enum plumb_layer_kind
layer_kind(const struct plumb_options *o)
{
	const char *name = plumb_options_text(o, "layer");

	return !strcmp(name, "module")     ? PLUMB_LAYER_IS_MODULE
	       : !strcmp(name, "operator") ? PLUMB_LAYER_IS_OPERATOR
	                                   : PLUMB_LAYER_IS_EITHER;
}

/* The peaks to hold against: those given, else those of the profile's GPU. */
static struct plumb_roof
find_roof(const struct plumb_options *o, const char *device)
{
	static const char *const precisions[PLUMB_PRECISIONS] = { "fp32", "tf32", "fp16", "bf16",
		                                                  "fp8" };
	const struct plumb_peak *peak = plumb_peak_of(device);
	const char *precision = plumb_options_text(o, "precision");
	struct plumb_roof roof = { NAN, NAN };

	for (int i = 0; peak && i < PLUMB_PRECISIONS; i++)
		if (!strcmp(precision, precisions[i]) && peak->tflops[i] > 0)
			roof.peak_gflops = peak->tflops[i] * 1e3;
	if (peak && peak->terabytes > 0)
		roof.bandwidth = peak->terabytes * 1e12;
	if (plumb_options_number(o, "peak") > 0)
		roof.peak_gflops = (double)plumb_options_number(o, "peak");
	if (plumb_options_number(o, "bandwidth") > 0)
		roof.bandwidth = (double)plumb_options_number(o, "bandwidth") * 1e9;
	return roof;
}

static enum plumb_tables_key
find_key(const struct plumb_options *o)
{
	const char *name = plumb_options_text(o, "key");

	return !strcmp(name, "batch")       ? PLUMB_KEY_IS_BATCH
	       : !strcmp(name, "gpu")       ? PLUMB_KEY_IS_GPU
	       : !strcmp(name, "framework") ? PLUMB_KEY_IS_FRAMEWORK
	       : !strcmp(name, "version")   ? PLUMB_KEY_IS_VERSION
	                                    : PLUMB_KEY_IS_FILE;
}

/* ---- printing ---- */

static int
draw(const struct plumb_invocation *invocation, const struct plumb_answer *answers, uint32_t count,
     const struct plumb_tables_input *input, const char *device)
{
	const char *path = plumb_options_text(invocation->options, "svg");
	const struct plumb_answer *answer = NULL;
	struct plumb_output output;
	struct plumb_error error = { 0 };

	for (uint32_t i = 0; i < count; i++)
		if (!strcmp(answers[i].kind->id, "A9") || !strcmp(answers[i].kind->id, "A14"))
			answer = &answers[i];
	const struct plumb_output_rule rule = {
		.ours = plumb_roofline_drew,
		.kind = "a roofline that plumb drew",
		.force = plumb_options_flag(invocation->options, "force"),
	};
	if (plumb_output_open(&output, path, &rule, &error) < 0)
		return plumb_cli_fail(invocation, &error);
	if (!plumb_roofline_svg(answer, input, device, output.file)) {
		plumb_output_drop(&output);
		plumb_fail(&error, PLUMB_EEMPTY, "no roofline: %s",
		           isnan(input->peak_gflops) || isnan(input->bandwidth)
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
print(const struct plumb_invocation *invocation, const struct plumb_answer *answers, uint32_t count,
      const struct plumb_layers *layers)
{
	const struct plumb_options *o = invocation->options;
	FILE *out = invocation->out;
	int code = 0;

	if (plumb_options_flag(o, "json"))
		return plumb_tables_json(answers, count, layers, out);
	for (uint32_t i = 0; i < count && !code; i++) {
		if (i)
			fputc('\n', out);
		if (plumb_options_flag(o, "csv"))
			plumb_tables_csv(&answers[i], out, count > 1);
		else
			code = plumb_tables_text(&answers[i], out, plumb_options_number(o, "top"));
	}
	if (!plumb_options_flag(o, "csv") && !layers->in_order)
		plumb_cli_note(invocation, "layers are in the order of call paths, not of "
		                           "execution, because the profile has no spans of "
		                           "layers; record with plumb run --trace");
	return code;
}

static int
answer(const struct plumb_invocation *invocation, const struct wanted *w,
       const struct plumb_tables_input *input, const char *device)
{
	struct plumb_answer answers[KINDS] = { 0 };
	struct plumb_error error = { 0 };
	int code = 0, result = PLUMB_EXIT_DONE;
	uint32_t rows = 0;

	for (uint32_t i = 0; i < w->kind_count && !code; i++) {
		code = plumb_answer_make(w->kinds[i], input, &answers[i], &error);
		rows += answers[i].row_count;
	}
	if (!code && print(invocation, answers, w->kind_count, input->layers) &&
	    !ferror(invocation->out)) /* of which main says so */
		code = plumb_fail(&error, PLUMB_ESYSTEM,
		                  "not enough memory to print the tables; "
		                  "close other programs");
	if (code)
		result = plumb_cli_fail(invocation, &error);
	else if (plumb_options_given(invocation->options, "svg"))
		result = draw(invocation, answers, w->kind_count, input, device);
	if (!code && !result && !rows)
		result = PLUMB_EXIT_EMPTY;
	for (uint32_t i = 0; i < w->kind_count; i++)
		plumb_answer_free(&answers[i]);
	return result;
}

static const char *
device_of(const struct plumb_profile *profile)
{
	return profile->devices_count ? plumb_text(profile, profile->devices[0].name) : NULL;
}

/* Takes the layers' times of the serialised run at PATH; 0, or an error code. */
static int
take_serialised(const char *path, struct plumb_layers_options wanted, struct plumb_layers *layers,
                struct plumb_error *error)
{
	struct plumb_profile profile;
	struct plumb_layers serialised;
	int code = plumb_load(&profile, path, PLUMB_LOAD_ALL, error);

	if (code)
		return code;
	wanted.serialised = true;
	code = plumb_layers_make(&profile, &wanted, &serialised, error);
	if (code) {
		plumb_fail_in(error, "%s", path);
	} else {
		if (plumb_layers_take_serialised(layers, &serialised))
			code = plumb_fail(error, PLUMB_ESYSTEM,
			                  "not enough memory; close other programs");
		plumb_layers_free(&serialised);
	}
	plumb_profile_free(&profile);
	return code;
}

static int
load_all(const struct plumb_invocation *invocation, struct wanted *w, struct made *made)
{
	const struct plumb_options *o = invocation->options;
	struct plumb_layers_options wanted = {
		.kind = layer_kind(o),
		.model = plumb_options_text(o, "model"),
		.whole = plumb_options_flag(o, "whole"),
		.serialised = plumb_options_given(o, "serialised") && !serialised_run(o),
		.runs = plumb_options_number(o, "runs"),
		.statistic = w->statistic,
	};
	struct plumb_error error = { 0 };

	for (uint32_t i = 0; i < w->file_count; i++) {
		struct plumb_layers *layers = &made->layers[i];
		int code = plumb_load(&made->profiles[i], w->files[i], PLUMB_LOAD_ALL, &error);
		if (!code) {
			code = plumb_layers_make(&made->profiles[i], &wanted, layers, &error);
			if (code)
				plumb_fail_in(&error, "%s", w->files[i]);
		}
		if (!code && serialised_run(o))
			code = take_serialised(serialised_run(o), wanted, layers, &error);
		if (code)
			return plumb_cli_fail(invocation, &error);
		made->roofs[i] = find_roof(o, device_of(&made->profiles[i]));
		made->batch_sources[i] = "given";
		if (!w->batches[i])
			w->batches[i] = plumb_batch_size_of(layers, &made->batch_sources[i]);
		if (!layers->in_order && plumb_options_given(o, "stat"))
			plumb_cli_note(invocation,
			               "%s has no spans of layers, so its times are means and "
			               "--stat has no effect; record with plumb run --trace",
			               w->files[i]);
	}
	return PLUMB_EXIT_DONE;
}

#define SWAP(a, b)                                                                                 \
	do {                                                                                       \
		__typeof__(a) swapped_ = (a);                                                      \
		(a) = (b);                                                                         \
		(b) = swapped_;                                                                    \
	} while (0)

/* Batch sizes tell a story in their order, which a shell's b*.plumb is not; what has none stays
 * behind. */
static void
order_by_batch(struct wanted *w, struct made *made)
{
	for (uint32_t i = 1; i < w->file_count; i++)
		for (uint32_t k = i; k && w->batches[k] &&
		                     (!w->batches[k - 1] || w->batches[k - 1] > w->batches[k]);
		     k--) {
			SWAP(w->files[k], w->files[k - 1]);
			SWAP(w->batches[k], w->batches[k - 1]);
			SWAP(made->layers[k], made->layers[k - 1]);
			SWAP(made->roofs[k], made->roofs[k - 1]);
			SWAP(made->batch_sources[k], made->batch_sources[k - 1]);
		}
}

int
plumb_cmd_tables(struct plumb_invocation *invocation)
{
	struct wanted wanted = { 0 };
	int result = check_use(invocation, &wanted);

	if (result) {
		free(wanted.newest);
		return result;
	}
	struct made *made = calloc(1, sizeof *made);
	if (!made) {
		struct plumb_error error;
		plumb_fail(&error, PLUMB_ESYSTEM, "not enough memory; close other programs");
		free(wanted.newest);
		return plumb_cli_fail(invocation, &error);
	}
	result = load_all(invocation, &wanted, made);
	if (!result) {
		const struct plumb_options *o = invocation->options;
		if (!plumb_options_given(o, "key") || find_key(o) == PLUMB_KEY_IS_BATCH)
			order_by_batch(&wanted, made);
		struct plumb_tables_input input = {
			.layers = made->layers,
			.count = wanted.file_count,
			.batches = wanted.batches,
			.peak_gflops = made->roofs[0].peak_gflops,
			.bandwidth = made->roofs[0].bandwidth,
			.gain = 0.05,
			.batch_sources = made->batch_sources,
			.files = wanted.files,
			.roofs = made->roofs,
			.key = find_key(o),
			.against_best = !strcmp(plumb_options_text(o, "base"), "best"),
			.constraints = wanted.constraints,
		};
		result = answer(invocation, &wanted, &input, device_of(made->layers[0].profile));
	}
	for (uint32_t i = 0; i < wanted.file_count; i++) {
		plumb_layers_free(&made->layers[i]);
		plumb_profile_free(&made->profiles[i]);
	}
	free(made);
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
