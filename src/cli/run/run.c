/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order matters here: whatever can fail on plumb's side fails before the program starts; once it
 * runs, nothing that goes wrong with plumb changes its exit code.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/format.h"
#include "cli/cli.h"
#include "cli/finish.h"
#include "cli/run/run.h"
#include "cli/suggest.h"
#include "cli/summary.h"

#define FLUSH_MS 2000 /* how long a signal waits for GPU records */

/* ---- before ---- */

/* The program's name as part of a file's name. */
static void
plain_name(const char *command, char *name, size_t size)
{
	const char *from = plumb_path_base(command);
	size_t length = 0;
	for (; *from && length + 1 < size; from++)
		name[length++] = strchr("/ \t\n:*?\"'\\<>|$&;", *from) ? '_' : *from;
	name[length] = '\0';
}

static int
choose_output(struct plumb_running *run, struct plumb_error *error)
{
	const char *given = plumb_options_text(run->invocation->options, "output");
	char base[PATH_MAX], name[64], suffix[16] = "";
	int rank = plumb_rank();
	plain_name(run->argv[0], name, sizeof(name));
	if (given && strlen(given) >= sizeof(base))
		return plumb_fail(error, PLUMB_EUSAGE, "the name at -o is too long");
	if (given)
		strcpy(base, given);
	else
		snprintf(base, sizeof(base), "plumb-%s-%ld.plumb", name, (long)getpid());
	if (rank >= 0)
		snprintf(suffix, sizeof(suffix), ".%d", rank);
	if ((size_t)snprintf(run->output, sizeof(run->output), "%s%s", base, suffix) >=
	    sizeof(run->output))
		return plumb_fail(error, PLUMB_EUSAGE, "the name at -o is too long");
	run->rule = plumb_finish_rule(run->invocation->options);
	return plumb_finish_check(run->output, &run->rule, error);
}

/* Reads the options; wrong ones are an error before anything is made. */
static int
read_options(struct plumb_running *run, struct plumb_error *error)
{
	const struct plumb_options *given = run->invocation->options;
	int code = plumb_run_options_read(given, &run->options, error);
	run->quiet = plumb_options_flag(given, "quiet");
	if (code < 0)
		return code;
	return choose_output(run, error);
}

/* A region's file is sized to the limit at once, and fills as the program goes. */
static void
fit_limit(struct plumb_running *run)
{
	const char *path = run->folder.path;
	uint64_t space = plumb_rundir_space(path);
	struct rlimit size;
	long long fits = run->options.limit;
	const char *why = "is free there";
	if (space != UINT64_MAX && (uint64_t)fits > space - space / 8)
		fits = (long long)(space - space / 8);
	if (getrlimit(RLIMIT_FSIZE, &size) == 0 && size.rlim_cur != RLIM_INFINITY &&
	    (uint64_t)fits > size.rlim_cur) {
		fits = (long long)size.rlim_cur;
		why = "is allowed for a file (ulimit -f)";
	}
	if (fits < PLUMB_RUN_LEAST_LIMIT)
		fits = PLUMB_RUN_LEAST_LIMIT;
	if (fits >= run->options.limit)
		return;
	if (!run->program.is_silent) /* it was said for the first run */
		plumb_cli_note(run->invocation,
		               "the records of each process in %s are limited to %lld MiB instead "
		               "of %lld MiB, because no more %s; use --folder for another place",
		               path, fits >> 20, run->options.limit >> 20, why);
	run->options.limit = fits;
}

void
plumb_run_discard(struct plumb_running *run)
{
	plumb_control_unmap(run->schedule.control);
	run->schedule.control = NULL;
	plumb_region_close(&run->facts.region);
	plumb_rundir_remove_alias(&run->folder);
	if (run->folder.path[0])
		plumb_rundir_remove(run->folder.path);
}

/* What a person types to finish the run; malloced, NULL: no memory. */
static char *
finish_command(const struct plumb_running *run)
{
	const char *words[9] = { "plumb", "settle", "--remove" };
	size_t count = 3;

	if (run->rule.force)
		words[count++] = "--force";
	if (!run->rule.private)
		words[count++] = "--readable";
	words[count++] = run->folder.path;
	words[count++] = "-o";
	words[count] = run->output;
	return plumb_shell_line(words);
}

static int
make_folder(struct plumb_running *run, struct plumb_error *error)
{
	char parent[PATH_MAX], region[PATH_MAX + 32];
	const char *given = plumb_options_text(run->invocation->options, "folder");
	plumb_folder_of(run->output, parent, sizeof(parent));
	int code = plumb_rundir_create(&run->folder, given ? given : parent, error);
	if (code < 0)
		return code;
	code = plumb_rundir_library(&run->folder, error);
	if (code < 0)
		return code;
	fit_limit(run);
	snprintf(region, sizeof(region), "%s/" PLUMB_CONTROL_NAME, run->folder.path);
	code = plumb_control_create(&run->schedule.control, region,
	                            run->options.start_after || run->options.toggle, error);
	if (code < 0)
		return code;
	run->program.announce = &run->schedule.control->program;
	snprintf(region, sizeof(region), "%s/" PLUMB_RUN_REGION, run->folder.path);
	code = plumb_facts_create(&run->facts, region, error);
	run->finish_command = finish_command(run);
	if (code == 0 && !run->finish_command)
		code = plumb_fail_memory(error, NULL);
	return code;
}

/* ", after 5 s, for 10 s" */
static const char *
when_text(const struct plumb_running *run, char *text, size_t size)
{
	const struct plumb_run_options *o = &run->options;
	char length[PLUMB_FORMAT_SIZE];
	size_t used = 0;
	text[0] = '\0';
	if (o->start_after)
		used += (size_t)snprintf(text, size, ", after %s",
		                         plumb_format_time(length, o->start_after));
	if (o->duration && used < size)
		used += (size_t)snprintf(text + used, size - used, ", for %s",
		                         plumb_format_time(length, o->duration));
	if (o->toggle && used < size)
		snprintf(text + used, size - used,
		         ", switched on and off by signal %d (kill -%d %ld)", o->toggle, o->toggle,
		         (long)getpid());
	return text;
}

/* "operators, Python lines and GPU work" */
static const char *
what_text(const struct plumb_run_options *options, char *text, size_t size)
{
	const struct {
		bool on;
		const char *name;
	} parts[] = {
		{ options->layers & PLUMB_LAYER_OPERATOR, "operators" },
		{ options->layers & PLUMB_LAYER_MODULE, "modules" },
		{ options->layers & PLUMB_LAYER_PYTHON, "Python lines" },
		{ options->layers & PLUMB_LAYER_NATIVE, "native frames" },
		{ options->shapes, "shapes" },
		{ options->memory, "allocations of tensors" },
		{ options->cpu_hz || options->events, "CPU time" },
		{ options->trace, "spans" },
		{ options->gpu == PLUMB_GPU_ACTIVITY, "GPU work" },
		{ options->gpu == PLUMB_GPU_TRAFFIC, "GPU launches without times" },
		{ options->stalls, "stalls" },
		{ options->counters || options->counters_series, "hardware counters" },
		{ options->traffic, "traffic" },
	};
	size_t used = 0, last = 0;
	text[0] = '\0';
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		last = parts[i].on ? i : last;
	for (size_t i = 0; i <= last && used < size; i++)
		if (parts[i].on)
			used += (size_t)snprintf(text + used, size - used, "%s%s",
			                         !used       ? ""
			                         : i == last ? " and "
			                                     : ", ",
			                         parts[i].name);
	if (options->gpu == PLUMB_GPU_OFF && used < size)
		snprintf(text + used, size - used, ", no GPU work (--no-gpu),");
	return text;
}

static void
announce_recording(const struct plumb_running *run)
{
	if (run->quiet || plumb_rank() > 0) /* rank 0 says it for all */
		return;
	if (run->target.adapted[0])
		plumb_cli_note(run->invocation, "%s", run->target.adapted);
	if (run->target.outside)
		plumb_cli_note(run->invocation, "%s; only programs that it starts are profiled",
		               run->target.reason);
	const char *plugin = run->options.traffic ? plumb_environment_nccl_kept(environ) : NULL;
	if (plugin)
		plumb_cli_note(run->invocation,
		               "operations of NCCL are not recorded: NCCL_PROFILER_PLUGIN names "
		               "%s, which plumb cannot hand events on to; unset it",
		               plugin);
	char when[160], what[200];
	plumb_cli_note(run->invocation,
	               "recording %s into %s%s (during the run: up to %lld MiB per process in %s)",
	               what_text(&run->options, what, sizeof(what)), run->output,
	               when_text(run, when, sizeof(when)), run->options.limit >> 20,
	               run->folder.path);
}

/* An option of plumb's that stands after the command is the program's: SURE before it starts, where
 * no "--" says that this is meant; else when the program did not like it. */
static void
say_misplaced(const struct plumb_running *run, bool sure)
{
	const char *word, *last = run->invocation->words[run->invocation->option_words - 1];
	bool explicit = !strcmp(last, "--");
	char *meant = run->quiet || (sure && explicit)
	                      ? NULL
	                      : plumb_suggest_moved(run->invocation, sure, &word);
	if (meant) {
		plumb_cli_note(run->invocation,
		               "%s comes after the command, so the program gets it, not plumb; to "
		               "give it to plumb:",
		               word);
		plumb_cli_command(run->invocation, meant);
	}
	free(meant);
}

static char **
make_environment(const struct plumb_running *run)
{
	struct plumb_environment_settings settings = {
		.library = run->folder.library,
		.folder = run->folder.path,
		.preload_first = run->target.preload,
		.tools = run->options.tools,
		.limit = run->options.limit,
		.flush_ms = run->options.flush_ms,
		.gpu = run->options.gpu,
		.keep_cupti = run->options.keep_cupti,
		.traffic = run->options.traffic,
	};
	char **variables = plumb_run_options_variables(&run->options);
	if (!variables)
		return NULL;
	settings.variables = (const char *const *)variables;
	if (run->repeat) {
		settings.counter = run->repeat->library;
		settings.counter_variables = plumb_repeat_variables(run->repeat);
	}
	char **environment = plumb_environment_new(environ, &settings);
	plumb_run_options_variables_free(variables);
	return environment;
}

/* ---- meanwhile ---- */

static bool
pause_a_moment(void *data, unsigned milliseconds)
{
	(void)data;
	return plumb_program_pause(milliseconds);
}

static void
flush_all(void *data)
{
	const struct plumb_running *run = data;
	if (run->options.gpu != PLUMB_GPU_OFF && run->folder.path[0])
		plumb_rundir_flush(&run->folder, FLUSH_MS, pause_a_moment, NULL);
}

static void
toggle_recording(void *data)
{
	struct plumb_running *run = data;
	if (!run->schedule.control)
		return;
	plumb_schedule_toggle(&run->schedule);
	if (!run->quiet)
		plumb_cli_note(run->invocation, "recording is %s",
		               plumb_control_is_on(run->schedule.control) ? "on" : "paused");
}

/* Does what is due: starts or ends recording, looks at threads that wait and at values. */
static int
take_turn(void *data)
{
	struct plumb_running *run = data;
	struct plumb_control *control = run->schedule.control;
	int next = control ? plumb_schedule_turn(&run->schedule) : -1;
	int looks[] = { run->watch ? plumb_watch_look(run->watch, control) : -1,
		        run->copies ? plumb_copies_look(run->copies) : -1 };
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
		if (looks[i] >= 0 && (next < 0 || next > looks[i]))
			next = looks[i];
	return next;
}

/* What looking at values cost, and what came of it. */
static void
count_looks(struct plumb_running *run, const struct plumb_copies_told *told)
{
	struct plumb_arena *arena = &run->facts.arena;
	bool known = told->fate == PLUMB_FATE_ATTRIBUTED;
	uint64_t looks = told->looks ? told->looks : 1; /* the last one, which was not made */

	if (!run->facts.region.header)
		return;
	plumb_arena_count(arena, PLUMB_SOURCE_LOOK, PLUMB_FATE_RECEIVED, looks);
	plumb_arena_count(arena, PLUMB_SOURCE_LOOK, told->fate, looks);
	if (!told->bytes_most)
		return;
	plumb_arena_count(arena, PLUMB_SOURCE_LOOK_MEMORY, PLUMB_FATE_RECEIVED, told->bytes_most);
	if (known)
		plumb_arena_count(arena, PLUMB_SOURCE_LOOK_MEMORY, PLUMB_FATE_ATTRIBUTED,
		                  told->bytes_most);
	plumb_arena_count(arena, PLUMB_SOURCE_LOOK_MEMORY, PLUMB_FATE_ALLOWED, told->bytes_bound);
}

void
plumb_run_wait(struct plumb_running *run)
{
	const struct plumb_program_care care = {
		.flush = flush_all, .toggled = toggle_recording, .turn = take_turn, .data = run
	};
	uint64_t began = plumb_clock_ns();
	plumb_program_wait(&run->program, &care);
	run->wall_ns = (int64_t)(plumb_clock_ns() - began);
	plumb_watch_free(run->watch);
	run->watch = NULL;
	struct plumb_copies_told told = plumb_copies_end(run->copies);
	run->copies = NULL;
	count_looks(run, &told);
	plumb_host_free(run->host);
	run->host = NULL;
	plumb_watch_regions_free(&run->regions);
}

static void
say_how_it_ended(const struct plumb_running *run)
{
	if (!run->quiet && run->program.signal && run->program.signal != SIGINT &&
	    run->program.signal != SIGTERM)
		plumb_cli_note(run->invocation, "the program was ended by signal %d (%s)%s",
		               run->program.signal, strsignal(run->program.signal),
		               run->program.dumped ? ", core dumped" : "");
}

/* ---- after ---- */

/* Programs that the collector could not get into. False: there were none. */
static bool
say_left_out(const struct plumb_running *run)
{
	struct plumb_control *control = run->schedule.control;
	unsigned hidden = control ? atomic_load(&control->unreachable) : 0;
	unsigned unloadable = control ? atomic_load(&control->unloadable) : 0;
	if (hidden)
		plumb_cli_note(run->invocation,
		               "nothing was captured: the program changed to user %u, who cannot "
		               "use %s or write to %s; choose other places with --folder and "
		               "PLUMB_LIBRARY, or run plumb as that user",
		               atomic_load(&control->user), run->folder.library, run->folder.path);
	else if (unloadable)
		plumb_cli_note(run->invocation,
		               "nothing was captured: plumb cannot be loaded into %u of the "
		               "programs that were started (static, set-user-ID, musl or another "
		               "machine), and no other program used PyTorch or a GPU",
		               unloadable);
	return hidden || unloadable;
}

/* What was looked for, and what would have seen the program. */
static void
say_nothing_found(const struct plumb_running *run)
{
	const struct plumb_run_options *o = &run->options;
	bool operators = o->layers & PLUMB_LAYER_OPERATOR;

	if (o->cpu_hz)
		plumb_cli_note(run->invocation,
		               "nothing was captured: %s took too little CPU time for a sample, "
		               "and no %s%srange of NVTX or plumb.span was seen",
		               run->argv[0], operators ? "operator of PyTorch, " : "",
		               o->gpu ? "CUDA call or " : "");
	else
		plumb_cli_note(run->invocation,
		               "nothing was captured: plumb looked for %s%sranges of NVTX and "
		               "plumb.span, and saw none in %s; \"plumb run --cpu\" records any "
		               "program, Python or not",
		               operators ? "operators of PyTorch, " : "",
		               o->gpu ? "CUDA calls (of PyTorch, JAX or any other program), " : "",
		               run->argv[0]);
}

/* Why the profile is empty, as far as it says. */
static void
say_nothing_captured(const struct plumb_running *run, const struct plumb_profile *profile)
{
	if (run->quiet)
		return;
	for (uint32_t i = 0; i < profile->environment_count; i++) {
		const char *key = plumb_text(profile, profile->environment[i].key);
		const char *dot = key ? strrchr(key, '.') : NULL;
		if (dot && strcmp(dot, ".off") == 0) {
			plumb_cli_note(run->invocation, "nothing was captured: %s: %s", key,
			               plumb_text(profile, profile->environment[i].value));
			return;
		}
	}
	if (run->target.outside)
		plumb_cli_note(run->invocation, "nothing was captured: %s", run->target.reason);
	else if (run->schedule.control && !plumb_control_is_on(run->schedule.control) &&
	         !atomic_load(&run->schedule.control->recorded_ns))
		plumb_cli_note(run->invocation,
		               "nothing was captured: recording was never on; it begins with "
		               "--start-after, --toggle's signal or plumb.start()");
	else if (!say_left_out(run))
		say_nothing_found(run);
}

/* The profile is written: the folder may go, unless somebody still writes there. */
static void
clear_folder(struct plumb_running *run)
{
	struct plumb_rundir_alive alive;
	if (plumb_rundir_living(&run->folder, 0, &alive) > 0) {
		plumb_cli_note(
			run->invocation,
			"process %ld (%s) still runs; %s holds what it did so far; run this when "
			"it has ended: %s",
			(long)alive.pid, alive.name, run->output, run->finish_command);
		return; /* with the link to the library: its children are started through that */
	}
	plumb_rundir_remove_alias(&run->folder);
	if (!plumb_rundir_remove(run->folder.path))
		plumb_cli_note(run->invocation, "%s could not be removed; you can delete it",
		               run->folder.path);
}

void
plumb_run_summary(const struct plumb_running *run, const struct plumb_profile *profile)
{
	struct plumb_summary_options summary = { .path = run->output,
		                                 .user_code = run->options.user_code };
	int rank = plumb_rank();
	char base[PATH_MAX], *word;
	if (rank > 0) {
		plumb_cli_note(run->invocation, "rank %d: %s", rank, run->output);
		return;
	}
	plumb_summary_print(profile, run->invocation->err, &summary);
	if (rank < 0 || plumb_ranks_count() == 1)
		return;
	/* The output's name without the rank. */
	snprintf(base, sizeof(base), "%.*s", (int)(strlen(run->output) - strlen(".0")),
	         run->output);
	word = plumb_shell_line((const char *const[]){ base, NULL });
	if (word)
		plumb_cli_note(run->invocation,
		               "this is the profile of rank 0; to join all ranks: plumb settle "
		               "%s.* -o %s",
		               word, word);
	free(word);
}

/* False: there is no profile. */
static bool
settle_run(struct plumb_running *run)
{
	static char first[3 * PATH_MAX], second[3 * PATH_MAX];
	const char *folder = run->folder.path;
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	snprintf(first, sizeof(first),
	         "\n"
	         "plumb: making the profile; Ctrl-C again stops this, and you can finish later "
	         "with: %s\n",
	         run->finish_command);
	snprintf(second, sizeof(second), "\nplumb: left the records in %s; finish with: %s\n",
	         folder, run->finish_command);
	plumb_program_patience(&run->program, first, second);
	/* Processes that outlive the program are asked for what they have so far. */
	if (plumb_rundir_living(&run->folder, 0, NULL) > 0)
		flush_all(run);
	struct plumb_finish finish = { .output = run->output,
		                       .rule = run->rule,
		                       .err = run->invocation->err,
		                       .quiet = run->quiet };
	int code = plumb_finish(&folder, 1, &finish, &profile, &error);
	if (code < 0 && code != PLUMB_EEMPTY) {
		plumb_cli_note(run->invocation, "%s", error.message);
		plumb_cli_note(run->invocation,
		               "nothing is lost: the records are in %s; finish with: %s", folder,
		               run->finish_command);
		plumb_rundir_remove_alias(&run->folder);
		return false;
	}
	if (code == PLUMB_EEMPTY) {
		if (finish.failed_early)
			plumb_cli_note(run->invocation,
			               "the program failed at its start (exit code %d), and only a "
			               "few CPU samples were recorded",
			               run->program.exit_code);
		else
			say_nothing_captured(run, &profile);
		if (finish.kept_old)
			plumb_cli_note(run->invocation, "the earlier profile %s is kept",
			               run->output);
	} else if (!run->quiet && !run->measure) {
		plumb_run_summary(run, &profile);
	}
	plumb_profile_free(&profile);
	clear_folder(run);
	return code == 0;
}

/* ---- the verb ---- */

/* The program alone. */
static int
run_unprofiled(struct plumb_running *run)
{
	struct plumb_error error;
	plumb_cli_note(run->invocation, "%s; it runs as it is, and nothing will be captured",
	               run->target.reason);
	if (plumb_program_start(&run->program, run->argv, environ, &error) < 0) {
		plumb_cli_note(run->invocation, "%s", error.message);
		return run->program.exit_code;
	}
	plumb_run_wait(run);
	say_how_it_ended(run);
	plumb_cli_note(run->invocation, "nothing was captured");
	return run->program.exit_code;
}

char **
plumb_run_make_ready(struct plumb_running *run, struct plumb_error *error)
{
	char **environment = NULL;
	int code = make_folder(run, error);
	if (!code && run->repeat && !run->repeat->folder[0])
		code = plumb_repeat_begin(run->repeat, run->measure ? "--measure-cost" : "levels",
		                          run->folder.library, run->folder.path, error);
	if (!code && !(environment = make_environment(run)))
		plumb_fail_memory(error, NULL);
	return environment;
}

int
plumb_run_record(struct plumb_running *run, char *const *environment, struct plumb_error *error)
{
	uint64_t start = plumb_control_begin(run->schedule.control);
	int code = plumb_program_start(&run->program, run->argv, environment, error);
	if (code < 0)
		return code;
	struct plumb_facts_program facts = { .start_monotonic = start,
		                             .pid = run->program.pid,
		                             .ppid = getpid(),
		                             .argv = run->argv,
		                             .executable = run->target.path,
		                             .output = run->output,
		                             .user_code = run->options.user_code,
		                             .no_command = run->options.no_command,
		                             .no_gpu = run->options.gpu == PLUMB_GPU_OFF,
		                             .torch_trace = plumb_environment_own_trace(environ)
		                                                    ? NULL
		                                                    : getenv("TORCH_TRACE") };
	plumb_facts_started(&run->facts, &facts);
	run->regions.folder = run->folder.path;
	if (run->options.cpu_hz)
		run->watch = plumb_watch_new(&run->regions);
	else if ((run->options.layers & PLUMB_LAYER_PYTHON) && !run->options.no_windows)
		run->host = plumb_host_new(&run->regions, run->schedule.control);
	if (!run->options.no_windows)
		run->copies = plumb_copies_new(&run->regions, run->host);
	run->schedule.start_after = run->options.start_after;
	run->schedule.duration = run->options.duration;
	plumb_schedule_begin(&run->schedule);
	plumb_run_wait(run);
	plumb_facts_ended(&run->facts, run->program.exit_code, run->options.traffic);
	return 0;
}

static int
run_profiled(struct plumb_running *run)
{
	struct plumb_error error = { 0 };
	char **environment = plumb_run_make_ready(run, &error);
	if (!environment) {
		plumb_cli_note(run->invocation, "%s; the program was not started", error.message);
		plumb_run_discard(run);
		return PLUMB_RUN_FAILED;
	}
	announce_recording(run);
	say_misplaced(run, true);
	int code = plumb_run_record(run, environment, &error);
	plumb_environment_free(environment);
	if (code < 0) {
		plumb_cli_note(run->invocation, "%s", error.message);
		plumb_run_discard(run);
		return run->program.exit_code;
	}
	say_how_it_ended(run);
	if (settle_run(run) && run->measure)
		plumb_run_measure(run);
	else if (run->measure)
		plumb_cli_note(run->invocation, "what recording costs was not measured");
	if (!run->program.signal && (run->program.exit_code == 1 || run->program.exit_code == 2))
		say_misplaced(run, false);
	return run->program.exit_code;
}

/* The command cannot be executed. */
static void
refuse_command(const struct plumb_running *run)
{
	char *meant = plumb_suggest_run(run->invocation);
	bool by_name = run->target.error == ENOENT && !strchr(run->argv[0], '/');
	plumb_cli_note(run->invocation, "cannot execute %s: %s%s", run->argv[0],
	               by_name ? "PATH has no program of that name" : strerror(run->target.error),
	               meant ? "; did you mean:" : "");
	if (meant)
		plumb_cli_command(run->invocation, meant);
	free(meant);
}

static int
run_as_asked(struct plumb_running *run)
{
	struct plumb_error error;
	int code;
	if (run->target.refused)
		return run_unprofiled(run);
	if (run->options.pairs && plumb_rank() >= 0) {
		plumb_cli_note(
			run->invocation,
			"--measure-cost starts the whole job again; put the launcher behind "
			"plumb: plumb run --measure-cost -- torchrun ...; the program was not "
			"started");
		return PLUMB_RUN_FAILED;
	}
	if (run->options.pairs && !(run->measure = calloc(1, sizeof(*run->measure)))) {
		plumb_fail_memory(&error, NULL);
		plumb_cli_note(run->invocation, "%s; the program was not started", error.message);
		return PLUMB_RUN_FAILED;
	}
	if (run->measure) {
		run->measure->pairs = (uint32_t)run->options.pairs;
		run->measure->recorded = true;
		run->repeat = &run->measure->repeat;
	}
	code = run_profiled(run);
	if (run->measure)
		plumb_repeat_end(run->repeat);
	free(run->measure);
	return code;
}

int
plumb_cmd_run(struct plumb_invocation *invocation)
{
	struct plumb_error error = { 0 };
	struct plumb_running *run = calloc(1, sizeof(*run));
	int code = PLUMB_RUN_FAILED;
	if (!run) {
		plumb_fail_memory(&error, NULL);
		plumb_cli_note(invocation, "%s; the program was not started", error.message);
		return code;
	}
	run->invocation = invocation;
	run->argv = invocation->operands;
	plumb_program_prepare(&run->program);
	fflush(invocation->out);
	plumb_target_look(run->argv, getenv("PATH"), &run->target);
	if (run->target.error) {
		refuse_command(run);
		code = run->target.error == ENOENT ? PLUMB_RUN_NOT_FOUND : PLUMB_RUN_CANNOT_EXECUTE;
	} else if (read_options(run, &error) < 0) {
		plumb_cli_note(invocation, "%s; the program was not started", error.message);
	} else {
		if (run->options.toggle)
			plumb_program_toggle(&run->program, run->options.toggle);
		code = run_as_asked(run);
	}
	plumb_control_unmap(run->schedule.control);
	int number = run->program.signal;
	free(run->finish_command);
	free(run);
	if (number) {
		fflush(NULL);
		plumb_program_die(number);
	}
	return code;
}

static const char *const examples[] = {
	"plumb run -- python train.py",
	"profile a training run",
	"plumb run -o run.plumb -- python train.py --steps 100",
	"choose where the profile goes",
	"torchrun --no-python --nproc-per-node 8 plumb run -o run.plumb -- python train.py",
	"one profile for each rank; \"plumb settle run.plumb.* -o run.plumb\" joins them",
	NULL,
};

const struct plumb_verb plumb_verb_run = {
	.name = "run",
	.summary = "run a program and profile it",
	.synopsis = "[--] COMMAND [ARGUMENT...]",
	.description =
		"Runs COMMAND with plumb's collector loaded into it and into the programs that it "
		"starts. Then it makes one profile of all of them and prints a summary on standard "
		"error. The program is not changed: its input, output, terminal, process group, "
		"signals and exit code are the same as without plumb.\n\nWhile the program runs, "
		"records go into a run folder next to the profile. If the program or plumb is "
		"killed, only the GPU records of the last moment are lost. plumb removes the "
		"folder once the profile is safely written; otherwise it prints the plumb settle "
		"command that finishes.\n\nCtrl-C reaches the program as without plumb. plumb "
		"sends SIGTERM, SIGHUP and SIGQUIT on to it after it has fetched the GPU records. "
		"A profile that is already at -o is replaced, unless nothing was recorded; any "
		"other file only with --force.\n\nPrograms that the collector cannot be loaded "
		"into (set-user-ID, 32-bit, built for another machine or for musl) run unprofiled, "
		"and a line says so. A statically linked program is not profiled, but the programs "
		"that it starts are. AddressSanitizer's runtime is preloaded first if the program "
		"needs that. Values of LD_PRELOAD and CUDA_INJECTION64_PATH are kept.",
	.exits = "the program's own; if a signal ended the program, the same signal ends plumb "
		 "(a shell shows 128 + n); 125 plumb failed before the start; 126 the program "
		 "cannot be executed; 127 it was not found",
	.examples = examples,
	.options = plumb_run_option_table,
	.min_operands = 1,
	.max_operands = PLUMB_ANY_NUMBER,
	.complete = PLUMB_COMPLETE_COMMAND,
	.stop = true,
	.usage_exit = PLUMB_RUN_FAILED,
	.run = plumb_cmd_run,
};
