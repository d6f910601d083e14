/* SPDX-License-Identifier: Apache-2.0 */
/* plumb import: other tools' traces as one profile. */
#include <unistd.h>

#include <string.h>

#include "cli/cli.h"
#include "cli/demangle.h"
#include "cli/finish.h"
#include "cli/load.h"
#include "cli/summary.h"
#include "store/store.h"

static const struct plumb_option options[] = {
	{ .name = "output",
	  .letter = 'o',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "write the profile to FILE; required. An existing profile is replaced" },
	PLUMB_FINISH_OPTIONS,
	{ .name = "parents",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "RULE",
	  .choices = "launch|inclusion",
	  .fallback = "launch",
	  .help = "how GPU spans without a parent get one (Jaeger, OTLP): from the start of their "
	          "launch, or from the spans that include their own interval" },
	{ .name = "binaries",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "DIR",
	  .complete = PLUMB_COMPLETE_FOLDER,
	  .help = "look in DIR, and in the folders in it, for the GPU binaries that samples are "
	          "of, such as hpcrun's folder gpubins; plumb why needs them" },
	{ .name = "summary", .kind = PLUMB_OPTION_FLAG, .help = "print a summary of the profile" },
	{ 0 },
};

static void
print_note(void *own, const char *text)
{
	plumb_cli_note(own, "%s", text);
}

int
plumb_cmd_import(struct plumb_invocation *invocation)
{
	const char *output = plumb_options_text(invocation->options, "output");
	struct plumb_profile profile = { 0 };
	struct plumb_error error = { 0 };
	struct plumb_import_options how = {
		.parents = PLUMB_PARENTS_LAUNCH,
		.demangle = plumb_demangle,
		.binaries = plumb_options_text(invocation->options, "binaries"),
		.note = print_note,
		.own = invocation,
	};
	if (!strcmp(plumb_options_text(invocation->options, "parents"), "inclusion"))
		how.parents = PLUMB_PARENTS_INCLUSION;
	if (!output)
		return plumb_cli_usage(invocation, "import needs -o FILE");
	for (int i = 0; i < invocation->operand_count; i++)
		if (access(invocation->operands[i], R_OK) == 0 &&
		    plumb_store_is_profile(invocation->operands[i]))
			return plumb_cli_usage(
				invocation, "%s is already a profile; plumb settle joins profiles",
				invocation->operands[i]);
	struct plumb_output_rule rule = plumb_finish_rule(invocation->options);
	if (plumb_finish_check(output, &rule, &error) < 0 ||
	    plumb_load_traces((const char *const *)invocation->operands,
	                      (uint32_t)invocation->operand_count, &how, &profile, &error) < 0)
		return plumb_cli_fail(invocation, &error);
	int code = plumb_store_write_by(&profile, output, &rule, NULL, NULL, &error);
	if (!code && plumb_options_flag(invocation->options, "summary")) {
		struct plumb_summary_options summary = { .path = output };
		plumb_summary_print(&profile, invocation->err, &summary);
	}
	plumb_profile_free(&profile);
	return code < 0 ? plumb_cli_fail(invocation, &error) : PLUMB_EXIT_DONE;
}

static const char *const examples[] = {
	"plumb import trace.json.gz -o trace.plumb",
	"a trace of PyTorch's profiler",
	"plumb import rank*.json -o job.plumb",
	"one profile of all ranks",
	"plumb import hpctoolkit-app-database --binaries hpctoolkit-app-measurements -o app.plumb",
	"an HPCToolkit database with the GPU code of its samples",
	"plumb report trace.json.gz",
	"every other command imports on the fly",
	NULL,
};

const struct plumb_verb plumb_verb_import = {
	.name = "import",
	.summary = "make a profile from traces of other tools",
	.synopsis = "TRACE... -o FILE",
	.description =
		"Reads traces of other tools and writes a profile. Use the profile like one that "
		"plumb recorded. plumb recognises the format from the contents of the file. It "
		"opens gzip, zstd and xz directly, and \"-\" is standard input. Several files "
		"become one profile, with one rank for each file.\n\n"
		"It reads PyTorch's profiler, Nsight Systems (SQLite, CSV), nvprof, rocprofv3 "
		"(JSON, CSV), rocpd, RPD, XPlane and trace.json of JAX, TensorFlow 1, unitrace, "
		"HPCToolkit, Jaeger, OpenTelemetry, pprof, folded stacks, Perfetto and any Chrome "
		"trace events. docs/import.md says what plumb reads of each.\n\n"
		"Times are kept to the nanosecond. GPU work is kept even if its launch is not in "
		"the file. The ledger counts that work, and everything that plumb does not show.",
	.options = options,
	.examples = examples,
	.min_operands = 1,
	.max_operands = PLUMB_ANY_NUMBER,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_import,
};
