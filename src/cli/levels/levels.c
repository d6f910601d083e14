/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/levels/levels.h"

#include <string.h>

#include "base/counters.h"
#include "base/format.h"
#include "cli/finish.h"
#include "cli/terminal.h"
#include "view/levels.h"

static const struct plumb_option options[] = {
	{ .name = "runs",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = "5",
	  .help = "run the program N times (1 to 50) at each level, after a first run that is in "
	          "no mean. What the runs after the first one print is lost" },
	{ .name = "output",
	  .letter = 'o',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "write the profile to FILE (default: levels-COMMAND.plumb). With --sweep, to "
	          "FILE with the value before its ending" },
	PLUMB_FINISH_OPTIONS,
	PLUMB_NO_COMMAND_OPTION,
	{ .name = "sweep",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "NAME=VALUES",
	  .help = "measure once for each of the comma-separated VALUES, which stands for {NAME} in "
	          "the command: --sweep batch=1,2,4. If NAME is batch, the table A1 says which "
	          "size is optimal" },
	{ .name = "serialised",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "WHEN",
	  .choices = "auto|always|never",
	  .fallback = "auto",
	  .help = "add a run in which every launch waits for its work (CUDA_LAUNCH_BLOCKING=1). "
	          "auto: if it is not known what launched some of the GPU work" },
	{ .name = "counters",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "LIST",
	  .bare = PLUMB_COUNTERS_ROOFLINE,
	  .help = "add a run that counts these hardware events of the kernels that took most GPU "
	          "time in the first run: roofline, or names as in plumb run --counters" },
	{ .name = "counters-kernels",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = "20",
	  .help = "with --counters: of how many kernels (1 to 256)" },
	PLUMB_COUNTERS_LAUNCHES_OPTION,
	PLUMB_COUNTERS_COST_OPTION("0"),
	{ .name = "trace",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "also keep single spans of the first run, so that plumb tables knows the order "
	          "of layers and their latency with GPU work" },
	{ .name = "top",
	  .letter = 'n',
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = "10",
	  .help = "show the N largest rows of each table; 0: all. JSON and CSV have all rows "
	          "unless you give it" },
	{ .name = "limit",
	  .kind = PLUMB_OPTION_SIZE,
	  .argument = "SIZE",
	  .fallback = "256M",
	  .help = "memory and disk that the records of one process may take" },
	{ .name = "folder",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "DIR",
	  .complete = PLUMB_COMPLETE_FOLDER,
	  .help = "make the run folders in DIR (default: the folder of FILE)" },
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "do not say which run goes on" },
	{ .name = "json", .kind = PLUMB_OPTION_FLAG, .help = "write JSON" },
	{ .name = "csv", .kind = PLUMB_OPTION_FLAG, .help = "write CSV" },
	{ 0 },
};

/* "levels-python.plumb" */
static void
choose_output(const struct plumb_invocation *invocation, char *path, size_t size)
{
	const char *given = plumb_options_text(invocation->options, "output");

	if (given)
		snprintf(path, size, "%s", given);
	else
		snprintf(path, size, "levels-%.200s.plumb",
		         plumb_path_base(invocation->operands[0]));
}

static int
print_answer(const struct plumb_levels_wanted *wanted, const struct plumb_profile *profile)
{
	const struct plumb_invocation *invocation = wanted->invocation;
	const struct plumb_options *o = invocation->options;
	int64_t top = plumb_options_number(o, "top");
	uint32_t rows = plumb_options_given(o, "top") && top < UINT32_MAX ? (uint32_t)top : 0;
	bool json = plumb_options_flag(o, "json"), csv = plumb_options_flag(o, "csv");
	struct plumb_error error;
	int code;

	plumb_fail_memory(&error, "for the answer");
	if (json || csv)
		code = plumb_view_levels(
			profile, &(struct plumb_levels_query){ .verb = "levels", .top = rows },
			json ? PLUMB_VIEW_JSON : PLUMB_VIEW_CSV, invocation->out, &error);
	else
		code = plumb_levels_text(profile, top, invocation->out,
		                         plumb_terminal_width(invocation->out));
	if (code && !ferror(invocation->out))
		return plumb_cli_fail(invocation, &error);
	if (!json && !csv)
		fprintf(invocation->out,
		        "\n%s has all of it: plumb report --corrected, plumb tables\n",
		        wanted->output);
	return PLUMB_EXIT_DONE;
}

static int
measure(struct plumb_levels_wanted *wanted)
{
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	int result;

	if (plumb_levels_run(wanted, &profile, &error) < 0)
		result = plumb_cli_fail(wanted->invocation, &error);
	else
		result = print_answer(wanted, &profile);
	plumb_profile_free(&profile);
	return result;
}

int
plumb_cmd_levels(struct plumb_invocation *invocation)
{
	const struct plumb_options *o = invocation->options;
	int64_t runs = plumb_options_number(o, "runs");
	int64_t kernels = plumb_options_number(o, "counters-kernels");
	const char *sweep = plumb_options_text(o, "sweep");
	char output[PATH_MAX];
	struct plumb_error error = { 0 };
	struct plumb_program program = { 0 };
	struct plumb_levels_wanted wanted = {
		.invocation = invocation,
		.program = &program,
		.argv = invocation->operands,
		.output = output,
		.rule = plumb_finish_rule(o),
		.runs = (uint32_t)runs,
		.serialised = plumb_options_choice(o, "serialised"),
		.limit = plumb_options_number(o, "limit"),
		.trace = plumb_options_flag(o, "trace"),
		.counters = plumb_options_text(o, "counters"),
		.quiet = plumb_options_flag(o, "quiet"),
		.no_command = plumb_options_flag(o, "no-command"),
	};

	if (runs < 1 || runs > PLUMB_LEVELS_RUNS)
		return plumb_cli_usage(invocation, "levels: --runs takes 1 to %d",
		                       PLUMB_LEVELS_RUNS);
	if (wanted.limit < PLUMB_RUN_LEAST_LIMIT)
		return plumb_cli_usage(invocation, "levels: --limit takes at least 1M");
	if (plumb_options_flag(o, "json") && plumb_options_flag(o, "csv"))
		return plumb_cli_usage(invocation, "levels: choose --json or --csv");
	if (kernels < 1 || kernels > PLUMB_COUNTERS_KERNELS_MOST)
		return plumb_cli_usage(invocation, "levels: --counters-kernels takes 1 to %u",
		                       PLUMB_COUNTERS_KERNELS_MOST);
	wanted.counters_kernels = (uint32_t)kernels;
	if (!wanted.counters && plumb_options_given(o, "counters-kernels"))
		return plumb_cli_usage(
			invocation, "levels: --counters-kernels says how many kernels --counters "
				    "looks at; add --counters");
	if (plumb_run_counters_launches(o, &wanted.counters_launches, &error) ||
	    plumb_run_counters_cost(o, &wanted.counters_cost, &error) ||
	    (wanted.counters && plumb_run_counters_check(wanted.counters, &error)))
		return plumb_cli_usage(invocation, "levels: %s", error.message);
	choose_output(invocation, output, sizeof output);
	plumb_program_prepare(&program);
	return sweep ? plumb_levels_sweep(&wanted, sweep) : measure(&wanted);
}

static const char *const examples[] = {
	"plumb levels -o levels.plumb -- python train.py",
	"what looking costs, and each layer and kernel at its own cost",
	"plumb levels --runs 10 --json -- python infer.py",
	"narrower intervals, for a program",
	"plumb levels --sweep batch=1,2,4,8 -- python infer.py --batch {batch}",
	"latency and throughput for each batch size, and which is optimal",
	"plumb levels --counters -- python infer.py",
	"operations, memory traffic and occupancy of kernels, too",
	NULL,
};

const struct plumb_verb plumb_verb_levels = {
	.name = "levels",
	.summary = "what looking costs, and each layer and kernel at its own cost",
	.synopsis = "[--] COMMAND [ARGUMENT...]",
	.description =
		"Runs COMMAND several times at each of three levels: M is the program without "
		"plumb, M/L records modules and operators, M/L/G also GPU work and call paths. "
		"The time of an iteration comes from M, that of a layer from M/L, that of a kernel "
		"from M/L/G, so that no time holds the cost of looking at something deeper. The "
		"difference between two levels is what looking costs.\n\nThe runs take turns, and "
		"are compared by iterations, paths and names. Runs and paths that did other work "
		"are left out and named. Give each run the same work to do. The first run is at "
		"M/L/G, makes the profile, and is in no mean. With --counters the last run, at "
		"M/L/G/C, counts hardware events of kernels. What the program prints goes to "
		"standard error in the first run, and is lost in the others.\n\nThe profile holds "
		"the answer: plumb tables takes each column from its level, and plumb report "
		"--corrected shows each call path measured and corrected.",
	.options = options,
	.examples = examples,
	.min_operands = 1,
	.max_operands = PLUMB_ANY_NUMBER,
	.complete = PLUMB_COMPLETE_COMMAND,
	.stop = true,
	.run = plumb_cmd_levels,
};
