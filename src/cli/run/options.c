/* SPDX-License-Identifier: Apache-2.0 */
/* What `plumb run` is asked to record: its options, checked before anything is made. */
#include "cli/run/options.h"

#include <math.h>
#include <regex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/counters.h"
#include "base/words.h"
#include "cli/finish.h"
#include "collect/collector.h"
#include "model/user_code.h"

#define LEAST_LIMIT PLUMB_RUN_LEAST_LIMIT
#define GREATEST_LIMIT (32ll << 30)

const struct plumb_option plumb_run_option_table[] = {
	{ .name = "output",
	  .letter = 'o',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "write the profile to FILE (default: plumb-COMMAND-PID.plumb). Under a launcher "
	          "that sets a rank, to FILE.RANK" },
	PLUMB_FINISH_OPTIONS,
	PLUMB_NO_COMMAND_OPTION,
	{ .name = "quiet",
	  .letter = 'q',
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "print no summary and no progress, only errors and warnings" },
	{ .name = "limit",
	  .kind = PLUMB_OPTION_SIZE,
	  .argument = "SIZE",
	  .fallback = "256M",
	  .help = "memory and disk that the records of one process may take. When it is full, "
	          "further records are dropped and counted" },
	{ .name = "mode",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "MODE",
	  .fallback = "light",
	  .choices = "light|full|lean",
	  .help = "light records native frames only in programs without Python, full everywhere; "
	          "both record all other layers. lean records as light does, but finds PyTorch's "
	          "operators in the native path of each GPU call: it costs less if your program is "
	          "limited by its launches, and the time and calls of operators on the host are "
	          "unknown" },
	{ .name = "layers",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "LIST",
	  .help = "record these layers of call paths; comma-separated LIST of python, module, "
	          "operator, native. Overrides --mode" },
	{ .name = "cpu",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "HZ",
	  .bare = "100",
	  .help = "sample CPU time, HZ times (100) for each second that a thread computes, and "
	          "show where threads wait" },
	{ .name = "events",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "LIST",
	  .help = "count these processor events at operators, if the kernel offers them; "
	          "comma-separated LIST of cycles, instructions, cache-references, cache-misses, "
	          "branches, branch-misses, page-faults, context-switches, migrations" },
	{ .name = "memory",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "record allocations and frees of tensors, and who holds the bytes at each "
	          "device's peak" },
	{ .name = "shapes",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "keep the data types, shapes and strides of operators' inputs and outputs" },
	{ .name = "graphs",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "HOW",
	  .fallback = "replays",
	  .choices = "replays|nodes",
	  .help = "how to time CUDA graphs: each replay as a whole, with its nodes counted, or "
	          "each node, which makes graphs of short kernels slower" },
#define X(id, number, name, what) "|" name
	{ .name = "stalls",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "EXPONENT",
	  .bare = PLUMB_STALLS_DEFAULT,
	  .help = "sample where GPU warps stand and why they wait, every 2^EXPONENT cycles (5 to "
	          "31; 14) of each multiprocessor, for plumb why. Implies --graphs=nodes. Needs "
	          "permission to read the GPU's counters: see plumb doctor" },
	{ .name = "stalls-mode",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "MODE",
	  .fallback = "continuous",
	  .choices = &("" PLUMB_STALLS_MODES(X))[1],
	  .help = "continuous: kernels run side by side as always, and samples belong to the code. "
	          "serialised: one kernel runs at a time, which is slower, and each sample belongs "
	          "to one launch" },
#undef X
	{ .name = "counters",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "LIST",
	  .bare = "roofline",
	  .help = "count these hardware events of kernels, by running a few launches of each "
	          "several times: roofline (operations by precision, bytes of GPU memory, "
	          "occupancy, L2 hits, issue), single names of it (plumb doctor --counters lists "
	          "them), or metrics of Nsight Compute's, separated by commas. Needs CUDA 12.8 "
	          "and permission to read the GPU's counters" },
	{ .name = "counters-kernels",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE[:N]",
	  .help = "with --counters: count only the N (20) kernels that took the most GPU time in "
	          "the profile FILE of an earlier run" },
	PLUMB_COUNTERS_LAUNCHES_OPTION,
	PLUMB_COUNTERS_COST_OPTION("3"),
	{ .name = "counters-series",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "LIST",
	  .bare = PLUMB_SERIES_DEFAULT,
	  .help = "sample hardware counters of whole GPUs while the program runs, without running "
	          "anything again: default (multiprocessors and tensor cores at work, bytes of GPU "
	          "memory per second, occupancy, issue, L2 hits), or names as --counters takes "
	          "them. What does not fit into one pass is left out, from the end of the list. "
	          "Needs CUDA 12.8 and permission to read the GPU's counters" },
	{ .name = "counters-every",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "US",
	  .fallback = PLUMB_SERIES_US_TEXT,
	  .help = "with --counters-series: take a sample every US microseconds, from 100 to "
	          "1000000" },
	{ .name = "traffic",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "HOW",
	  .bare = "calls",
	  .help = "record which data goes from which GPU to which, for plumb traffic. calls: "
	          "allocations, copies and collective operations, as your program calls them. "
	          "full: also every access of a kernel to another GPU's memory. sampled:RATE: the "
	          "same, for this part of the launches (sampled:0.1). Implies --graphs=nodes" },
	{ .name = "traffic-kernels",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "REGEX",
	  .help = "with --traffic=full or sampled: look only at kernels whose name matches this "
	          "extended regular expression" },
	{ .name = "traffic-objects",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "REGEX",
	  .help = "with --traffic=full or sampled: look only at accesses to objects whose name "
	          "matches this extended regular expression" },
	{ .name = "traffic-own",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "with --traffic=full or sampled: count accesses of a GPU to its own memory, too, "
	          "as findings about wrong halos and untouched memory need them. Every access of "
	          "the program is counted then, which is much slower" },
	{ .name = "trace",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "HOW MUCH",
	  .bare = "all",
	  .help = "also keep single spans, the newest ones that fit within --limit: all, those of "
	          "the last N iterations (--trace=50) or of the last seconds (--trace=20s)" },
	{ .name = "measure-cost",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "PAIRS",
	  .bare = "3",
	  .help = "measure what recording costs: after the first run, which makes the profile, run "
	          "the program PAIRS (3) times more with plumb and PAIRS times without. What "
	          "these runs print is lost" },
	{ .name = "no-windows",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "do not look at the values while the program runs: the profile does not know "
	          "its main loop then" },
	{ .name = "start-after",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "SECONDS",
	  .help = "start recording SECONDS after the start" },
	{ .name = "duration",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "SECONDS",
	  .help = "stop recording after SECONDS; the program goes on" },
	{ .name = "toggle",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "SIGNAL",
	  .help = "start paused; each SIGNAL that is sent to plumb (not to the program) starts or "
	          "stops recording: USR1, USR2 or a number" },
	{ .name = "follow",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "WHICH",
	  .fallback = "all",
	  .help = "which processes that the program starts to profile: none, all, or those whose "
	          "command line matches the extended regular expression WHICH" },
#define X(id, number, name, what) "|" name
	{ .name = "gpu",
	  .kind = PLUMB_OPTION_CHOICE,
	  .argument = "MODE",
	  .fallback = "activity",
	  .choices = &("" PLUMB_GPU_MODES(X))[1],
	  .help = "what to record of the GPU. activity: kernels, copies, sets and graphs, with "
	          "their times; off: nothing. plumb doctor shows what works here" },
#undef X
	{ .name = "no-gpu",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "do not record GPU work, as --gpu=off" },
	{ .name = "keep-cupti",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "keep NVIDIA's profiling interface even if the program wants it; the program's "
	          "own profiler then sees no GPU work" },
	{ .name = "flush-ms",
	  .kind = PLUMB_OPTION_NUMBER,
	  .argument = "N",
	  .fallback = "100",
	  .help = "fetch finished GPU records every N milliseconds. If the program is killed, at "
	          "most those of the last N milliseconds are lost" },
	{ .name = "folder",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "DIR",
	  .complete = PLUMB_COMPLETE_FOLDER,
	  .help = "make the run folder, where records go while the program runs, in DIR (default: "
	          "the folder of FILE)" },
	{ .name = "tool",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE.so",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "load this library, built on plumb/monitor.h, into the profiled programs. May be "
	          "given several times" },
	{ .name = "user-code",
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "RULE",
	  .help = "what counts as your own code in the summary, as in plumb report" },
	{ 0 },
};

static int
read_layers(const struct plumb_options *given, unsigned *layers, struct plumb_error *error)
{
	static const struct {
		const char *name;
		unsigned layer;
	} names[] = { { "python", PLUMB_LAYER_PYTHON },
		      { "module", PLUMB_LAYER_MODULE },
		      { "operator", PLUMB_LAYER_OPERATOR },
		      { "native", PLUMB_LAYER_NATIVE } };
	const char *list = plumb_options_text(given, "layers");
	const char *mode = plumb_options_text(given, "mode");
	bool lean = !strcmp(mode, "lean");
	*layers = lean                    ? PLUMB_LAYERS_LEAN
	          : !strcmp(mode, "full") ? PLUMB_LAYERS_FULL
	                                  : PLUMB_LAYERS_DEFAULT;
	if (lean && plumb_options_flag(given, "shapes"))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--shapes needs callbacks for operators, which --mode lean does "
		                  "without; use --mode light");
	if (!list)
		return 0;
	if (lean)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--mode lean has its own layers; leave out --layers or --mode");
	*layers = 0;
	while (*list) {
		size_t length = strcspn(list, ","), i = 0;
		while (i < 4 &&
		       (strlen(names[i].name) != length || strncmp(names[i].name, list, length)))
			i++;
		if (i == 4)
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "--layers takes python, module, operator and native, "
			                  "not \"%.*s\"",
			                  (int)length, list);
		*layers |= names[i].layer;
		list += length;
		list += *list == ',';
	}
	return 0;
}

/* "20" or "1.5" seconds in ns; -1 for anything else. */
static int64_t
parse_seconds(const char *text)
{
	char *end;
	double value = strtod(text, &end);
	if (end == text || *end || !isfinite(value) || value < 0 || value > 1e9)
		return -1;
	return (int64_t)(value * 1e9);
}

static int
read_times(const struct plumb_options *given, struct plumb_run_options *options,
           struct plumb_error *error)
{
	const char *after = plumb_options_text(given, "start-after");
	const char *duration = plumb_options_text(given, "duration");
	options->start_after = after ? parse_seconds(after) : 0;
	options->duration = duration ? parse_seconds(duration) : 0;
	if (options->start_after < 0)
		return plumb_fail(error, PLUMB_EUSAGE, "--start-after takes seconds, not \"%s\"",
		                  after);
	if (options->duration < 0 || (duration && !options->duration))
		return plumb_fail(error, PLUMB_EUSAGE, "--duration takes seconds, not \"%s\"",
		                  duration);
	return 0;
}

static int
read_toggle(const char *text, int *number, struct plumb_error *error)
{
	*number = 0;
	if (!text)
		return 0;
	if (!strncmp(text, "SIG", 3))
		text += 3;
	if (!strcmp(text, "USR1"))
		*number = SIGUSR1;
	else if (!strcmp(text, "USR2"))
		*number = SIGUSR2;
	else
		*number = (int)plumb_parse_number(text);
	if (*number == SIGUSR1 || *number == SIGUSR2 ||
	    (*number >= SIGRTMIN && *number <= SIGRTMAX))
		return 0;
	return plumb_fail(error, PLUMB_EUSAGE,
	                  "--toggle takes USR1, USR2 or a real-time signal's number (%d to %d), "
	                  "not \"%s\"",
	                  SIGRTMIN, SIGRTMAX, text);
}

/* "all", "50" or "20s". */
static int
check_trace(const char *text, struct plumb_error *error)
{
	size_t digits = text ? strspn(text, "0123456789") : 0;
	if (!text || !strcmp(text, "all") ||
	    (digits && digits < 10 && (!text[digits] || !strcmp(text + digits, "s"))))
		return 0;
	return plumb_fail(error, PLUMB_EUSAGE,
	                  "--trace takes a number of iterations (50) or seconds (20s), not \"%s\"",
	                  text);
}

/* Puts the regular expression TEXT of OPTION, which takes WHAT, into COPY of SIZE bytes. */
static int
read_pattern(const char *option, const char *what, const char *text, char *copy, size_t size,
             struct plumb_error *error)
{
	regex_t pattern;
	char why[128];
	if (strlen(text) >= size)
		return plumb_fail(error, PLUMB_EUSAGE, "--%s is too long", option);
	int code = regcomp(&pattern, text, REG_EXTENDED | REG_NOSUB);
	if (!code) {
		regfree(&pattern);
		strcpy(copy, text);
		return 0;
	}
	regerror(code, &pattern, why, sizeof(why));
	return plumb_fail(error, PLUMB_EUSAGE, "--%s takes %sa regular expression, not \"%s\": %s",
	                  option, what, text, why);
}

static int
read_stalls(const struct plumb_options *given, struct plumb_run_options *options,
            struct plumb_error *error)
{
	int64_t exponent = plumb_options_number(given, "stalls");
	const char *mode = plumb_options_text(given, "stalls-mode");
	if (!plumb_options_given(given, "stalls")) {
		if (plumb_options_given(given, "stalls-mode"))
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "--stalls-mode says how --stalls samples; add --stalls");
		return 0;
	}
	if (exponent < PLUMB_STALLS_LEAST || exponent > PLUMB_STALLS_MOST)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--stalls takes the period as a power of two, 5 to 31 (14 is "
		                  "every 16384 cycles)");
	if (options->gpu == PLUMB_GPU_OFF)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--stalls needs records of GPU work; leave out --no-gpu and "
		                  "--gpu=off");
	if (options->replays && plumb_options_given(given, "graphs"))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--stalls needs the time of each node of a CUDA graph; leave out "
		                  "--graphs=replays");
	options->stalls = (unsigned)exponent;
	options->replays = false;
#define X(id, number, name, what) !strcmp(mode, name) ? PLUMB_STALLS_##id:
	options->stalls_mode = PLUMB_STALLS_MODES(X) PLUMB_STALLS_CONTINUOUS;
#undef X
	return 0;
}

static int
read_traffic_pattern(const struct plumb_options *given, const char *option, char *copy, size_t size,
                     struct plumb_error *error)
{
	const char *text = plumb_options_text(given, option);
	return text ? read_pattern(option, "", text, copy, size, error) : 0;
}

/* Accesses of kernels come by a tool that excludes CUPTI's records: a mode of its own. */
static int
choose_traffic_mode(const struct plumb_options *given, struct plumb_run_options *options,
                    const char *how, struct plumb_error *error)
{
	if (options->traffic == PLUMB_TRAFFIC_CALLS)
		return options->gpu == PLUMB_GPU_TRAFFIC
		               ? plumb_fail(error, PLUMB_EUSAGE,
		                            "--gpu=traffic sees accesses, which --traffic=calls "
		                            "leaves out; leave out --gpu=traffic")
		               : 0;
	if (options->gpu == PLUMB_GPU_ACTIVITY && plumb_options_given(given, "gpu"))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--traffic=%s contradicts --gpu=activity: the tool that sees "
		                  "accesses excludes the one that records times; leave out --gpu",
		                  how);
	if (options->stalls)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--traffic=%s contradicts --stalls: their tools exclude each "
		                  "other; make two recordings, which plumb traffic joins",
		                  how);
	options->gpu = PLUMB_GPU_TRAFFIC;
	return 0;
}

static int
read_traffic(const struct plumb_options *given, struct plumb_run_options *options,
             struct plumb_error *error)
{
	const char *how = plumb_options_text(given, "traffic");
	const char *pattern = plumb_options_given(given, "traffic-kernels")   ? "traffic-kernels"
	                      : plumb_options_given(given, "traffic-objects") ? "traffic-objects"
	                      : plumb_options_given(given, "traffic-own")     ? "traffic-own"
	                                                                      : NULL;
	if (!how && options->gpu == PLUMB_GPU_TRAFFIC)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--gpu=traffic needs to know how closely to look; use "
		                  "--traffic=full or sampled:RATE, which choose it");
	if (!how)
		return pattern ? plumb_fail(error, PLUMB_EUSAGE,
		                            "--%s says where --traffic looks; add --traffic=full",
		                            pattern)
		               : 0;
	if (!plumb_traffic_parse(how, &options->traffic, &options->traffic_rate))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--traffic takes calls, full or sampled:RATE with a rate above 0 "
		                  "and at most 1, not \"%s\"",
		                  how);
	if (options->gpu == PLUMB_GPU_OFF)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--traffic needs records of GPU work; leave out --no-gpu and "
		                  "--gpu=off");
	if (options->replays && plumb_options_given(given, "graphs"))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--traffic needs the copies of each node of a CUDA graph; leave "
		                  "out --graphs=replays");
	options->replays = false;
	options->traffic_own = plumb_options_given(given, "traffic-own");
	if (options->traffic == PLUMB_TRAFFIC_CALLS && pattern)
		return plumb_fail(
			error, PLUMB_EUSAGE,
			"--%s needs --traffic=full or sampled:RATE: calls has no accesses "
			"of kernels",
			pattern);
	int code = choose_traffic_mode(given, options, how, error);
	if (!code)
		code = read_traffic_pattern(given, "traffic-kernels", options->traffic_kernels,
		                            sizeof(options->traffic_kernels), error);
	if (!code)
		code = read_traffic_pattern(given, "traffic-objects", options->traffic_objects,
		                            sizeof(options->traffic_objects), error);
	return code;
}

static int
check_ranges(const struct plumb_options *given, const struct plumb_run_options *options,
             struct plumb_error *error)
{
	if (options->limit < LEAST_LIMIT || options->limit > GREATEST_LIMIT)
		return plumb_fail(error, PLUMB_EUSAGE, "--limit takes 1M to 32G");
	if (options->flush_ms < 1 || options->flush_ms > 3600000)
		return plumb_fail(error, PLUMB_EUSAGE, "--flush-ms takes 1 to 3600000");
	if (options->pairs > 100 || (!options->pairs && plumb_options_given(given, "measure-cost")))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--measure-cost takes 1 to 100 pairs of runs");
	if (options->pairs && (options->start_after || options->duration || options->toggle))
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "--measure-cost needs a recording of the whole run; leave out %s",
		                  options->toggle        ? "--toggle"
		                  : options->start_after ? "--start-after"
		                                         : "--duration");
	if (options->cpu_hz > 10000)
		return plumb_fail(error, PLUMB_EUSAGE, "--cpu takes 1 to 10000 samples a second");
	return 0;
}

int
plumb_run_options_read(const struct plumb_options *given, struct plumb_run_options *options,
                       struct plumb_error *error)
{
	int64_t hz = plumb_options_number(given, "cpu");
	int64_t pairs = plumb_options_number(given, "measure-cost");
	*options = (struct plumb_run_options){
		.limit = plumb_options_number(given, "limit"),
		.flush_ms = plumb_options_number(given, "flush-ms"),
		.gpu = plumb_gpu_mode_find(plumb_options_text(given, "gpu"))->mode,
		.keep_cupti = plumb_options_flag(given, "keep-cupti"),
		.memory = plumb_options_flag(given, "memory"),
		.shapes = plumb_options_flag(given, "shapes"),
		.no_windows = plumb_options_flag(given, "no-windows"),
		.cpu_hz = hz < 0 ? 0 : hz,
		.pairs = pairs < 0 ? 0 : pairs,
		.events = plumb_options_text(given, "events"),
		.trace = plumb_options_text(given, "trace"),
		.replays = !strcmp(plumb_options_text(given, "graphs"), "replays"),
		.no_command = plumb_options_flag(given, "no-command"),
		.user_code = plumb_options_text(given, "user-code"),
	};
	const char *follow = plumb_options_text(given, "follow");
	if (plumb_options_flag(given, "no-gpu")) {
		if (options->gpu != PLUMB_GPU_OFF && plumb_options_given(given, "gpu"))
			return plumb_fail(error, PLUMB_EUSAGE,
			                  "--no-gpu contradicts --gpu=%s; leave out one of them",
			                  plumb_options_text(given, "gpu"));
		options->gpu = PLUMB_GPU_OFF;
	}
	int code = read_layers(given, &options->layers, error);
	if (!code)
		code = read_times(given, options, error);
	if (!code)
		code = read_toggle(plumb_options_text(given, "toggle"), &options->toggle, error);
	if (!code)
		code = check_trace(options->trace, error);
	if (!code)
		code = read_pattern("follow", "none, all or ", follow, options->follow,
		                    sizeof(options->follow), error);
	if (!code)
		code = read_stalls(given, options, error);
	if (!code)
		code = read_traffic(given, options, error);
	if (!code)
		code = plumb_run_counters_read(given, options, error);
	if (!code)
		code = plumb_run_series_read(given, options, error);
	if (!code)
		code = check_ranges(given, options, error);
	if (!code)
		code = plumb_run_tools_read(given, options, error);
	if (code)
		return code;
	struct plumb_user_code *rule = plumb_user_code_new(options->user_code, error);
	if (!rule)
		return error->code;
	plumb_user_code_free(rule);
	return 0;
}

static bool __attribute__((format(printf, 2, 3)))
set_variable(char ***next, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int n = vasprintf(*next, format, args);
	va_end(args);
	if (n < 0)
		**next = NULL;
	else
		++*next;
	return n >= 0;
}

static bool
set_traffic(char ***next, const struct plumb_run_options *options)
{
	const char *mode = plumb_traffic_mode_names[options->traffic];
	bool sampled = options->traffic == PLUMB_TRAFFIC_SAMPLED;
	return (!options->traffic_own || set_variable(next, PLUMB_ENV_TRAFFIC_OWN "=1")) &&
	       (sampled ? set_variable(next, PLUMB_ENV_TRAFFIC "=%s:%.17g", mode,
	                               options->traffic_rate)
	                : set_variable(next, PLUMB_ENV_TRAFFIC "=%s", mode)) &&
	       (!options->traffic_kernels[0] ||
	        set_variable(next, PLUMB_ENV_TRAFFIC_KERNELS "=%s", options->traffic_kernels)) &&
	       (!options->traffic_objects[0] ||
	        set_variable(next, PLUMB_ENV_TRAFFIC_OBJECTS "=%s", options->traffic_objects));
}

char **
plumb_run_options_variables(const struct plumb_run_options *options)
{
	enum { MOST = 28 };
	char **variables = calloc(MOST, sizeof(*variables)), **next = variables;
	bool paused = options->start_after > 0 || options->toggle;
	if (variables && set_variable(&next, PLUMB_ENV_LAYERS "=%u", options->layers) &&
	    set_variable(&next, PLUMB_ENV_FOLLOW "=%s", options->follow) &&
	    (!options->cpu_hz || set_variable(&next, PLUMB_ENV_CPU "=%lld", options->cpu_hz)) &&
	    (!options->events || set_variable(&next, PLUMB_ENV_EVENTS "=%s", options->events)) &&
	    (!options->replays || set_variable(&next, PLUMB_ENV_REPLAYS "=1")) &&
	    (!options->stalls ||
	     (set_variable(&next, PLUMB_ENV_STALLS "=%u", options->stalls) &&
	      set_variable(&next, PLUMB_ENV_STALLS_MODE "=%u", options->stalls_mode))) &&
	    (!options->counters ||
	     set_variable(&next, PLUMB_ENV_COUNTERS "=%s", options->counters)) &&
	    (!options->counters_kernels[0] ||
	     set_variable(&next, PLUMB_ENV_COUNTERS_KERNELS "=%s", options->counters_kernels)) &&
	    (!options->counters_launches ||
	     set_variable(&next, PLUMB_ENV_COUNTERS_LAUNCHES "=%u", options->counters_launches)) &&
	    (!options->counters ||
	     set_variable(&next, PLUMB_ENV_COUNTERS_COST "=%u", options->counters_cost)) &&
	    (!options->counters_series ||
	     (set_variable(&next, PLUMB_ENV_COUNTERS_SERIES "=%s", options->counters_series) &&
	      set_variable(&next, PLUMB_ENV_COUNTERS_EVERY "=%u", options->counters_every))) &&
	    (!options->traffic || set_traffic(&next, options)) &&
	    (!options->tools[0] || set_variable(&next, PLUMB_ENV_TOOLS "=%s", options->tools)) &&
	    (!options->memory || set_variable(&next, PLUMB_ENV_MEMORY "=1")) &&
	    (!options->shapes || set_variable(&next, PLUMB_ENV_SHAPES "=1")) &&
	    (!options->no_command || set_variable(&next, PLUMB_ENV_COMMAND "=0")) &&
	    (!options->trace || set_variable(&next, PLUMB_ENV_TRACE "=%s", options->trace)) &&
	    (!paused || set_variable(&next, PLUMB_ENV_PAUSED "=1")))
		return variables;
	plumb_run_options_variables_free(variables);
	return NULL;
}

void
plumb_run_options_variables_free(char **variables)
{
	for (char **v = variables; v && *v; v++)
		free(*v);
	free(variables);
}
