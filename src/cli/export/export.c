/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "analyze/group.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/export/send.h"
#include "cli/load.h"
#include "cli/terminal.h"
#include "export/names.h"
#include "export/written.h"
#include "model/metric.h"

static const struct plumb_option options[] = {
	{ .name = "format",
	  .letter = 'F',
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "FORMAT",
	  .choices = "folded|speedscope|perfetto|pprof|chrome|otlp|csv|json",
	  .help = "the format; by default the ending of FILE chooses it (.folded, "
	          ".speedscope.json, .pftrace (or .perfetto-trace), .pb.gz (or .pprof), "
	          ".trace.json, .otlp.json, .csv, .json)" },
	{ .name = "output",
	  .letter = 'o',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "write to FILE; by default, or with \"-\", to standard output. An existing "
	          "file is replaced only if plumb export wrote it" },
	{ .name = "force",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "replace the file at -o even if plumb export did not write it" },
	{ .name = "endpoint",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "URL",
	  .help = "send the spans to an OpenTelemetry collector (otlp) instead of writing a file. "
	          "URL is http://HOST or https://HOST; add :PORT if it is not 4318 (https: 443), "
	          "and /PATH if it is not /v1/traces" },
	{ .name = "timeout",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "SECONDS",
	  .fallback = "30",
	  .help = "with --endpoint: the longest that a request and its answer may take" },
	{ .name = "ca",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "with --endpoint: a PEM file of the certificates to trust for https; by "
	          "default $SSL_CERT_FILE, else those of the system" },
	PLUMB_WINDOW_OPTION(""),
	{ .name = "metric",
	  .letter = 'm',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "METRIC",
	  .help = "the metric to export (see \"plumb help metrics\"), for folded, speedscope "
	          "and pprof. A metric of your program works, too. Default: folded takes the "
	          "metric that report takes, speedscope all times, pprof all metrics that add up" },
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

static struct plumb_output_rule
output_rule(const struct plumb_invocation *invocation)
{
	return (struct plumb_output_rule){
		.ours = plumb_export_wrote,
		.kind = "a file that plumb export wrote",
		.force = plumb_options_flag(invocation->options, "force"),
	};
}

static bool
is_same_file(const char *one, const char *other)
{
	struct stat a, b;

	return !stat(one, &a) && !stat(other, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* May the output be written? 0, or an exit code. */
static int
check_output(const struct plumb_invocation *invocation, const char *input)
{
	const char *output = plumb_options_text(invocation->options, "output");
	struct plumb_output_rule rule = output_rule(invocation);
	struct plumb_error error = { 0 };
	struct stat status;

	if (!is_file(output))
		return 0;
	if (!rule.force && is_same_file(input, output) && !stat(output, &status) &&
	    S_ISREG(status.st_mode))
		plumb_fail(&error, PLUMB_EUSAGE,
		           "%s is the profile to export; choose another -o, or add --force to "
		           "replace it",
		           output);
	else if (!plumb_output_check(output, &rule, &error))
		return 0;
	return plumb_cli_fail(invocation, &error);
}

static int
read_endpoint(const struct plumb_invocation *invocation, struct plumb_http_url *url,
              struct plumb_error *error)
{
	int code = plumb_send_url(url, plumb_options_text(invocation->options, "endpoint"), error);
	int64_t seconds = plumb_options_number(invocation->options, "timeout");

	if (code)
		return code;
	if (seconds < 1 || seconds > 86400)
		return plumb_fail(error, PLUMB_EUSAGE, "--timeout %s: give 1 to 86400 seconds",
		                  plumb_options_text(invocation->options, "timeout"));
	url->seconds = (unsigned)seconds;
	url->ca = plumb_options_text(invocation->options, "ca");
	if (url->ca && access(url->ca, R_OK) != 0) {
		plumb_fail_errno(error, "cannot read --ca %s", url->ca);
		return error->code = PLUMB_EINPUT;
	}
	return 0;
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
		                       "export: --endpoint sends otlp; leave out -o and other "
		                       "formats");
	if (!sends && (plumb_options_given(invocation->options, "ca") ||
	               plumb_options_given(invocation->options, "timeout")))
		return plumb_cli_usage(invocation, "export: --ca and --timeout need --endpoint");
	struct plumb_http_url url;
	struct plumb_error error = { 0 };
	if (sends && read_endpoint(invocation, &url, &error) < 0)
		return plumb_cli_fail(invocation, &error);
	*format = plumb_export_find(name);
	*metric = wanted ? plumb_metric_find(wanted) : 0;
	if (wanted && !(*format)->metric)
		return plumb_cli_usage(invocation,
		                       "export: %s has no --metric; folded, speedscope and pprof "
		                       "have one",
		                       name);
	if (*metric && !plumb_export_adds_up(*metric))
		return plumb_cli_usage(invocation,
		                       "export: %s does not add up over call paths, so it has no "
		                       "stacks; choose another --metric",
		                       wanted);
	if ((*format)->binary && !is_file(output) && plumb_terminal_is(invocation->out))
		return plumb_cli_usage(invocation,
		                       "export: %s is binary; write it to a file with -o", name);
	return 0;
}

static int
write_file(const struct plumb_invocation *invocation, const struct plumb_export_format *format,
           const struct plumb_profile *profile, const struct plumb_export_options *wanted)
{
	const char *path = plumb_options_text(invocation->options, "output");
	struct plumb_output_rule rule = output_rule(invocation);
	struct plumb_output output;
	struct plumb_error error = { 0 };
	int code;

	if (plumb_output_open(&output, path, &rule, &error) < 0)
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
	int code = read_endpoint(invocation, &url, &error);

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
	struct plumb_window_choice window;
	int result = plumb_load_window(invocation, &window);

	if (!result)
		result = check_use(invocation, &format, &wanted.metric);
	if (!result)
		result = check_output(invocation, invocation->operands[0]);
	if (result)
		return result;
	/* Stacks are made of totals; only a time line needs the spans. */
	if (plumb_load(&profile, invocation->operands[0],
	               format->metric ? PLUMB_LOAD_TOTALS : PLUMB_LOAD_ALL, &window, &error) < 0) {
		plumb_profile_free(&profile);
		return plumb_cli_fail(invocation, &error);
	}
	if (format == &plumb_export_json && (profile.findings_count || profile.window.kind) &&
	    plumb_findings_are_old(&profile) && plumb_analyze(&profile, NULL, &error) < 0)
		plumb_cli_note(invocation, "the findings are those that an older plumb stored: %s",
		               error.message);
	wanted.main = plumb_metric_default(&profile);
	if (named && !wanted.metric) /* then it is one of the program's own */
		wanted.metric = plumb_profile_metric_find(&profile, named);
	if (named && !wanted.metric) {
		plumb_profile_free(&profile);
		return plumb_cli_usage(invocation,
		                       "export: the profile has no metric \"%s\"; see plumb help "
		                       "metrics",
		                       named);
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
	"a timeline for ui.perfetto.dev",
	"plumb export run.plumb -o run.speedscope.json",
	"a flame graph for speedscope.app",
	"plumb export run.plumb -o run.pb.gz && pprof -http : run.pb.gz",
	"graphs and tables in pprof",
	"plumb export run.plumb -F folded -m op.time | flamegraph.pl > run.svg",
	"a flame graph of host time",
	"plumb export run.plumb --endpoint http://localhost:4318",
	"send spans to an OpenTelemetry collector",
	"plumb export run.plumb -o run.trace.json",
	"a timeline for tools that read PyTorch traces",
	"plumb export run.plumb -o run.csv",
	"every value, for pandas.read_csv",
	NULL,
};

const struct plumb_verb plumb_verb_export = {
	.name = "export",
	.summary = "write a profile in a format that other tools read",
	.synopsis = "[FILE]",
	.description =
		"Writes a profile in a format that other tools read. A file is written completely, "
		"or not at all.\n\n"
		"folded, speedscope and pprof are stacks: the totals of each call path, from the "
		"Python line to the kernel.\n\n"
		"perfetto is a timeline. A profile of plumb run --trace gives operators, driver "
		"calls and GPU work, with arrows between them. Other profiles give the newest GPU "
		"work of each device. Both show how busy the devices were.\n\n"
		"chrome is a timeline in the format of PyTorch's profiler. plumb import reads it "
		"back.\n\n"
		"otlp has the spans with their parents, in a file or sent to a collector.\n\n"
		"csv has every value of every call path on every thread and stream. json is the "
		"whole profile.",
	.options = options,
	.examples = examples,
	.max_operands = 1,
	.newest = true,
	.complete = PLUMB_COMPLETE_PROFILE,
	.data = true,
	.run = plumb_cmd_export,
};
