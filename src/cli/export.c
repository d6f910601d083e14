/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include <string.h>
#include <unistd.h>

#include "analyze/group.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/send.h"
#include "export/names.h"
#include "model/metric.h"

static const struct plumb_option options[] = {
	{ .name = "format",
	  .letter = 'F',
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "FORMAT",
	  .choices = "folded|speedscope|perfetto|pprof|chrome|otlp|csv|json",
	  .help = "what to write; without it the end of FILE's name tells: .folded, "
	          ".speedscope.json, .pftrace (or .perfetto-trace), .pb.gz (or .pprof), "
	          ".trace.json, .otlp.json, .csv, .json" },
	{ .name = "output",
	  .letter = 'o',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "write to FILE; without it, or as \"-\", to standard output" },
	{ .name = "endpoint",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "URL",
	  .help = "post the spans to an OpenTelemetry collector (otlp), instead of writing them: "
	          "http://HOST, with :PORT if it is not 4318 and /PATH if it is not /v1/traces" },
	{ .name = "metric",
	  .letter = 'm',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "METRIC",
	  .help = "the value of a stack (see \"plumb help metrics\"), also one of the program's "
	          "own; without it folded has the one that report takes, speedscope "
	          "every time, and pprof every metric that adds up" },
	{ 0 },
};

/* ---- what to write, and where ---- */

static bool
ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length > tail && !strcmp(name + length - tail, end);
}

/* The format that a file's name tells, or NULL. */
static const char *
format_of(const char *path)
{
	static const struct {
		const char *end, *format;
	} ends[] = {
		{ ".folded", "folded" },     { ".speedscope.json", "speedscope" },
		{ ".pftrace", "perfetto" },  { ".perfetto-trace", "perfetto" },
		{ ".pb.gz", "pprof" },       { ".pprof", "pprof" },
		{ ".trace.json", "chrome" }, { ".otlp.json", "otlp" },
		{ ".csv", "csv" },           { ".json", "json" },
	};

	for (size_t i = 0; path && i < sizeof ends / sizeof *ends; i++)
		if (ends_in(path, ends[i].end))
			return ends[i].format;
	return NULL;
}

static bool
is_file(const char *output)
{
	return output && strcmp(output, "-") != 0;
}

/* Checks all that can be checked before the profile is read. 0, or an exit code. */
static int
check_use(const struct plumb_invocation *invocation, const struct plumb_export_format **format,
          uint32_t *metric)
{
	const char *output = plumb_options_text(invocation->options, "output");
	const char *name = plumb_options_text(invocation->options, "format");
	const char *wanted = plumb_options_text(invocation->options, "metric");
	bool sends = plumb_options_given(invocation->options, "endpoint");

	if (!name)
		name = sends ? "otlp" : format_of(output);
	if (!name)
		return plumb_cli_usage(invocation,
		                       "export: choose --format folded, speedscope, perfetto, "
		                       "pprof, chrome, otlp, csv or json");
	if (sends && (output || strcmp(name, "otlp") != 0))
		return plumb_cli_usage(invocation,
		                       "export: --endpoint is for otlp, and takes no -o");
	struct plumb_http_url url;
	struct plumb_error error = { 0 };
	if (sends &&
	    plumb_send_url(&url, plumb_options_text(invocation->options, "endpoint"), &error) < 0)
		return plumb_cli_fail(invocation, &error);
	*format = plumb_export_find(name);
	*metric = wanted ? plumb_metric_find(wanted) : 0;
	if (wanted && !(*format)->metric)
		return plumb_cli_usage(invocation, "export: %s takes no --metric", name);
	if (*metric && !plumb_export_adds_up(*metric))
		return plumb_cli_usage(invocation,
		                       "export: %s does not add up over call paths, and so has no "
		                       "stacks",
		                       wanted);
	if ((*format)->binary && !is_file(output) && isatty(fileno(invocation->out)))
		return plumb_cli_usage(
			invocation, "export: %s is not for a terminal; give a file with -o", name);
	return 0;
}

static int
write_file(const struct plumb_invocation *invocation, const struct plumb_export_format *format,
           const struct plumb_profile *profile, const struct plumb_export_options *wanted)
{
	const char *path = plumb_options_text(invocation->options, "output");
	struct plumb_output output;
	struct plumb_error error = { 0 };
	int code;

	if (plumb_output_open(&output, path, &error) < 0)
		return plumb_cli_fail(invocation, &error);
	code = format->write(profile, wanted, output.file, &error);
	if (code < 0)
		plumb_output_drop(&output);
	else
		code = plumb_output_close(&output, &error);
	return code < 0 ? plumb_cli_fail(invocation, &error) : PLUMB_EXIT_DONE;
}

static int
send_spans(const struct plumb_invocation *invocation, const struct plumb_profile *profile)
{
	struct plumb_http_url url;
	struct plumb_error error = { 0 };
	int code =
		plumb_send_url(&url, plumb_options_text(invocation->options, "endpoint"), &error);

	if (!code)
		code = plumb_send_spans(profile, &url, &error);
	return code ? plumb_cli_fail(invocation, &error) : PLUMB_EXIT_DONE;
}

int
plumb_cmd_export(struct plumb_invocation *invocation)
{
	const struct plumb_export_format *format = NULL;
	struct plumb_export_options wanted = { 0 };
	struct plumb_profile profile = { 0 };
	struct plumb_error error = { 0 };
	const char *named = plumb_options_text(invocation->options, "metric");
	int result = check_use(invocation, &format, &wanted.metric);

	if (result)
		return result;
	/* Stacks are made of totals; only a time line needs the spans. */
	if (plumb_load(&profile, invocation->operands[0],
	               format->metric ? PLUMB_LOAD_TOTALS : PLUMB_LOAD_ALL, &error) < 0)
		return plumb_cli_fail(invocation, &error);
	wanted.main = plumb_metric_default(&profile);
	if (named && !wanted.metric) /* then it is one of the program's own */
		wanted.metric = plumb_profile_metric_find(&profile, named);
	if (named && !wanted.metric) {
		plumb_profile_free(&profile);
		return plumb_cli_usage(invocation, "export: there is no metric \"%s\"", named);
	}
	if (plumb_options_given(invocation->options, "endpoint")) {
		result = send_spans(invocation, &profile);
	} else if (is_file(plumb_options_text(invocation->options, "output"))) {
		result = write_file(invocation, format, &profile, &wanted);
	} else {
		result = format->write(&profile, &wanted, invocation->out, &error);
		/* A failed write is the frame's to report. */
		result = result < 0 ? plumb_cli_fail(invocation, &error) : PLUMB_EXIT_DONE;
	}
	plumb_profile_free(&profile);
	return result;
}

static const char *const examples[] = {
	"plumb export run.plumb -o run.pftrace",
	"a time line for ui.perfetto.dev",
	"plumb export run.plumb -o run.speedscope.json",
	"a flame graph for speedscope.app",
	"plumb export run.plumb -o run.pb.gz && pprof -http : run.pb.gz",
	"graphs and tables of pprof",
	"plumb export run.plumb -F folded -m op.time | flamegraph.pl > run.svg",
	"a picture of host time",
	"plumb export run.plumb --endpoint http://localhost:4318",
	"spans to an OpenTelemetry collector",
	"plumb export run.plumb -o run.trace.json",
	"a time line for tools that read PyTorch's traces",
	"plumb export run.plumb -o run.csv",
	"every value, for pandas.read_csv",
	NULL,
};

const struct plumb_verb plumb_verb_export = {
	.name = "export",
	.summary = "write a profile in a format that other tools read",
	.synopsis = "FILE",
	.description =
		"Writes what a profile holds as folded stacks, for speedscope, for Perfetto, for "
		"pprof, as Chrome trace events, as OpenTelemetry's spans (otlp), or as CSV or "
	        "JSON. A "
		"file appears whole or not at all.\n\n"
		"folded, speedscope and pprof have a stack for each call path with a value of its "
		"own, from the Python line to the kernel. perfetto has what happened when: with "
		"plumb run --trace operators, driver calls and GPU work with arrows between them, "
		"without it the newest GPU work of each device; and how busy devices were. chrome "
		"has the same spans as PyTorch's profiler writes them, and plumb import reads them "
		"back; otlp has them with parents, in a file or sent to a collector. csv has every "
		"value of every call path on every thread and stream, json the whole profile.",
	.options = options,
	.examples = examples,
	.min_operands = 1,
	.max_operands = 1,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_export,
};
