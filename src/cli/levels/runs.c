/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first run is at M/L/G, and decides how the iterations of M are bounded. Then come rounds with
 * one run at each level. Each round begins with another level, so that a machine that becomes
 * slower meets all levels alike.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/finish.h"
#include "cli/levels/levels.h"
#include "store/store.h"

#define LEVELS 3
#define FLUSH_MS 100

/* What was run, by number. The first is the one that made the profile. */
struct made {
	struct plumb_cost_run run;
	uint32_t level;
	char why[PLUMB_COST_WHY]; /* it failed; "": it did not */
};

struct session {
	struct plumb_levels_wanted *wanted;
	struct plumb_running *first, *now;
	struct plumb_repeat repeat;
	struct plumb_profile *profile;
	struct plumb_cost_loop loop;
	enum plumb_level_bounds bounds;
	struct plumb_levels *levels;
	struct made *made;
	bool interrupted;
	char kernels[sizeof((struct plumb_run_options *)0)->counters_kernels]; /* to be counted */
};

static uint32_t
runs_of(const struct session *s)
{
	return 1 + LEVELS * s->wanted->runs;
}

/* ---- one run ---- */

/* What is recorded at LEVEL. The first run is in no mean, so it records what else tables show. */
static struct plumb_run_options
options_of(const struct session *s, uint32_t level, bool first)
{
	struct plumb_run_options o = { .limit = s->wanted->limit,
		                       .flush_ms = FLUSH_MS,
		                       .gpu = PLUMB_GPU_OFF,
		                       .replays = true,
		                       .no_command = s->wanted->no_command,
		                       .follow = "all" };

	if (level == PLUMB_LEVEL_ML)
		o.layers = PLUMB_LAYER_MODULE | PLUMB_LAYER_OPERATOR;
	if (level >= PLUMB_LEVEL_MLG) {
		o.layers = PLUMB_LAYERS_DEFAULT;
		o.gpu = PLUMB_GPU_ACTIVITY;
	}
	if (level == PLUMB_LEVEL_COUNTED) {
		o.counters = s->wanted->counters;
		o.counters_launches = s->wanted->counters_launches;
		o.counters_cost = s->wanted->counters_cost;
		memcpy(o.counters_kernels, s->kernels, sizeof o.counters_kernels);
	}
	if (first) {
		o.trace = s->wanted->trace ? "all" : NULL;
		o.shapes = true;
		o.memory = true;
	}
	return o;
}

/* A run at M records ranges only where they bound the loop. */
static bool
is_plain(const struct session *s, uint32_t level)
{
	return level == PLUMB_LEVEL_M && s->bounds != PLUMB_LEVEL_BY_LOOP;
}

static int
run_plain(struct plumb_running *run, struct plumb_error *error)
{
	const struct plumb_environment_settings settings = {
		.preload_first = run->target.preload,
		.counter = run->repeat->library,
		.counter_variables = plumb_repeat_variables(run->repeat),
	};
	char **environment = plumb_environment_plain(environ, &settings);
	int code = environment ? plumb_program_start(&run->program, run->argv, environment, error)
	                       : plumb_fail_memory(error, NULL);

	plumb_environment_free(environment);
	if (!code)
		plumb_run_wait(run);
	return code;
}

/* PROFILE of a program that recorded nothing is empty. */
static int
settle(struct session *s, struct plumb_running *run, struct plumb_profile *profile,
       struct plumb_error *error)
{
	char path[PATH_MAX + 32];
	const char *folder = run->folder.path;
	struct plumb_finish finish = { .rule = run->rule,
		                       .err = run->invocation->err,
		                       .quiet = true };

	snprintf(path, sizeof path, "%s/level.plumb", s->repeat.folder);
	finish.output = path;
	int code = plumb_finish(&folder, 1, &finish, profile, error);
	unlink(path);
	return code;
}

static int
run_recorded(struct session *s, struct plumb_running *run, struct plumb_profile *profile,
             struct plumb_error *error)
{
	char **environment = plumb_run_make_ready(run, error);
	int code = environment ? plumb_run_record(run, environment, error) : PLUMB_ESYSTEM;

	plumb_environment_free(environment);
	if (!code)
		code = settle(s, run, profile, error);
	plumb_run_discard(run);
	free(run->finish_command);
	run->finish_command = NULL;
	return code;
}

/* A run at LEVEL. PROFILE is empty for a plain one. */
static int
run_once(struct session *s, uint32_t level, struct plumb_profile *profile,
         struct plumb_error *error)
{
	struct plumb_running *run = s->now;
	struct made *made = &s->made[s->repeat.number];
	bool first = s->repeat.number == 0;
	int code;

	*run = *s->first;
	run->options = options_of(s, level, first);
	if (!first) {
		plumb_program_again(&run->program, &s->first->program);
		s->interrupted |= run->program.interrupted;
		if (s->interrupted) {
			plumb_repeat_ran(&s->repeat);
			return 0;
		}
		if (!plumb_repeat_next(&s->repeat, &run->program, made->why, sizeof made->why))
			return plumb_fail(error, PLUMB_ESYSTEM, "%s", made->why);
	}
	if (level == PLUMB_LEVEL_SERIALISED)
		setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	code = is_plain(s, level) ? run_plain(run, error) : run_recorded(s, run, profile, error);
	if (level == PLUMB_LEVEL_SERIALISED)
		unsetenv("CUDA_LAUNCH_BLOCKING");
	made->level = level;
	made->run = (struct plumb_cost_run){ .recorded = !is_plain(s, level),
		                             .exit_code = run->program.exit_code,
		                             .wall_ns = run->wall_ns };
	s->interrupted |= run->program.interrupted;
	if (run->program.signal)
		snprintf(made->why, sizeof made->why, "signal %d (%s) ended the program",
		         run->program.signal, strsignal(run->program.signal));
	else if (run->program.exit_code)
		snprintf(made->why, sizeof made->why, "the program failed with exit code %d",
		         run->program.exit_code);
	if (first)
		s->first->program = run->program;
	plumb_repeat_ran(&s->repeat);
	return code;
}

/* ---- the first run ---- */

static bool
has_ranges(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->window_values_count; i++)
		if (p->window_values[i].metric == PLUMB_METRIC_OP_TIME &&
		    plumb_context_frame(p, p->window_values[i].context)->kind == PLUMB_FRAME_RANGE)
			return true;
	return false;
}

static bool
has_host_time(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->values_count; i++)
		if (p->values[i].metric == PLUMB_METRIC_OP_TIME)
			return true;
	return false;
}

/* The launches of run NUMBER of the process with the loop. */
static struct plumb_repeat_launches
launches_of(struct session *s, uint32_t number)
{
	struct plumb_repeat_wanted wanted = { PLUMB_UNKNOWN, PLUMB_UNKNOWN };
	const struct plumb_process *process;

	if (s->loop.process != PLUMB_NONE) {
		process = &s->profile->processes[s->loop.process];
		wanted.rank = process->rank;
		wanted.pid = number ? PLUMB_UNKNOWN : process->pid;
	}
	struct plumb_repeat_launches launches = plumb_repeat_launches(&s->repeat, number, &wanted);
	if (launches.header)
		plumb_repeat_take(&s->made[number].run, &launches);
	return launches;
}

static void
let_go(struct plumb_repeat_launches *launches)
{
	if (launches->header)
		munmap((void *)launches->header, launches->bytes);
	launches->header = NULL;
}

/* How the iterations of a run at M are found. */
static int
choose_bounds(struct session *s, struct plumb_error *error)
{
	char why[1][PLUMB_COST_WHY];
	int64_t steps = 0;
	double step_ns;
	int code = plumb_cost_loop_find(s->profile, &s->loop, error);

	if (code < 0)
		return code;
	struct plumb_repeat_launches launches = launches_of(s, 0);
	if (launches.header && s->loop.process != PLUMB_NONE)
		code = plumb_cost_steps(&s->loop, &s->made[0].run, 1, &step_ns, why, &steps, error);
	let_go(&launches);
	s->bounds = steps                           ? PLUMB_LEVEL_BY_LAUNCHES
	            : s->loop.process == PLUMB_NONE ? PLUMB_LEVEL_BY_RUN
	            : has_ranges(s->profile)        ? PLUMB_LEVEL_BY_LOOP
	                                            : PLUMB_LEVEL_BY_RUN;
	if (s->bounds == PLUMB_LEVEL_BY_RUN)
		s->loop.process = PLUMB_NONE;
	return code;
}

/* Standard output is for our answer, so what the program prints goes to standard error. */
static int
run_first(struct session *s, struct plumb_error *error)
{
	int code, saved;

	fflush(s->wanted->invocation->out);
	saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (saved < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		code = plumb_fail_errno(error, "cannot redirect the program's output");
	} else {
		code = run_once(s, PLUMB_LEVEL_MLG, s->profile, error);
		dup2(saved, STDOUT_FILENO);
	}
	if (saved >= 0)
		close(saved);
	return code;
}

static int
make_first(struct session *s, struct plumb_error *error)
{
	int code = run_first(s, error);
	struct plumb_running *run = s->now;

	if (code == PLUMB_EEMPTY || (!code && !s->profile->values_count))
		return plumb_fail(
			error, PLUMB_EEMPTY,
			"nothing was recorded of %s: no operator of PyTorch, CUDA call, or "
			"range; plumb levels has nothing to compare",
			run->argv[0]);
	if (code)
		return code;
	if (s->made[0].why[0])
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s in the first run, so nothing was measured; make it run well, "
		                  "then try again",
		                  s->made[0].why);
	if (s->interrupted)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "interrupted in the first run, so nothing "
		                  "was measured");
	code = choose_bounds(s, error);
	if (code)
		return code;
	s->levels = plumb_levels_new(s->profile, &s->loop, s->bounds, error);
	return s->levels ? 0 : PLUMB_ESYSTEM;
}

/* ---- the others ---- */

static void
say_run(const struct session *s, uint32_t level, uint32_t of)
{
	if (!s->wanted->quiet)
		plumb_cli_note(s->wanted->invocation, "run %u of %u, %s", s->repeat.number + 1, of,
		               plumb_level_name(level));
}

/* HOT: the kernels that the run counts; NULL: it counts none. */
static int
run_at(struct session *s, uint32_t level, uint32_t round, const uint32_t *hot, uint32_t hot_count,
       struct plumb_error *error)
{
	struct plumb_profile profile = { 0 };
	struct made *made = &s->made[s->repeat.number];
	struct plumb_level_run run = { .level = level, .round = round, .time_ns = NAN };
	int code = run_once(s, level, &profile, error);

	/* Without a framework there is nothing to record at M/L. */
	bool empty = code == PLUMB_EEMPTY;
	if (empty)
		code = 0;
	if (empty && !made->why[0] && (level > PLUMB_LEVEL_ML || has_host_time(s->profile)))
		strcpy(made->why, "nothing was recorded");
	run.number = s->repeat.number;
	run.profile = is_plain(s, level) || empty ? NULL : &profile;
	run.why = made->why[0] ? made->why : NULL;
	if (run.why)
		plumb_cli_note(s->wanted->invocation, "run %u (%s) is left out: %s", run.number,
		               plumb_level_name(level), run.why);
	if (s->bounds == PLUMB_LEVEL_BY_RUN)
		run.time_ns = (double)made->run.wall_ns;
	if (!code && !s->interrupted)
		code = hot ? plumb_levels_count(s->levels, &run, hot, hot_count, error)
		           : plumb_levels_add(s->levels, &run, error);
	plumb_profile_free(&profile);
	return code < 0 ? code : 0;
}

/* Does the first profile have GPU work of which it is not known what launched it? */
static bool
is_ambiguous(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->ledger_count; i++) {
		const struct plumb_ledger_row *row = &p->ledger[i];
		if (row->source == PLUMB_SOURCE_KERNEL && row->count > 0 &&
		    (row->fate == PLUMB_FATE_NO_LAUNCH || row->fate == PLUMB_FATE_RING_MISS ||
		     row->fate == PLUMB_FATE_AMBIGUOUS))
			return true;
	}
	return false;
}

static int
count_kernels(struct session *s, uint32_t of, struct plumb_error *error)
{
	const struct plumb_levels_wanted *wanted = s->wanted;
	uint32_t count, *hot;
	int code = 0;

	hot = plumb_run_counters_hot(s->profile, wanted->counters_kernels, &count);
	if (!hot)
		return plumb_fail_memory(error, "for the counters");
	if (count) {
		plumb_run_counters_hash(s->profile, hot, count, s->kernels, sizeof s->kernels);
		say_run(s, PLUMB_LEVEL_COUNTED, of);
		code = run_at(s, PLUMB_LEVEL_COUNTED, wanted->runs + 1, hot, count, error);
	} else {
		plumb_cli_note(wanted->invocation,
		               "no kernels were recorded in the first run, so none are counted");
	}
	free(hot);
	return code;
}

static int
make_others(struct session *s, struct plumb_error *error)
{
	const struct plumb_levels_wanted *wanted = s->wanted;
	bool serialised = wanted->serialised == PLUMB_SERIALISED_ALWAYS ||
	                  (wanted->serialised == PLUMB_SERIALISED_AUTO && is_ambiguous(s->profile));
	uint32_t of = runs_of(s) + serialised + (wanted->counters != NULL);
	int code = 0;

	for (uint32_t i = 0; i < LEVELS * wanted->runs && !code && !s->interrupted; i++) {
		uint32_t round = i / LEVELS;
		uint32_t level = PLUMB_LEVEL_M + (i + round) % LEVELS;

		say_run(s, level, of);
		code = run_at(s, level, round, NULL, 0, error);
	}
	if (serialised && !code && !s->interrupted) {
		say_run(s, PLUMB_LEVEL_SERIALISED, of);
		code = run_at(s, PLUMB_LEVEL_SERIALISED, wanted->runs, NULL, 0, error);
	}
	if (wanted->counters && !code && !s->interrupted)
		code = count_kernels(s, of, error);
	if (s->interrupted)
		plumb_cli_note(wanted->invocation,
		               "interrupted in run %u of %u; the runs before it are compared",
		               s->repeat.number, of);
	return code;
}

/* ---- the end ---- */

/* The same launches bound the loop in all runs. */
static int
time_by_launches(struct session *s, struct plumb_error *error)
{
	uint32_t count = s->repeat.number - s->interrupted;
	struct plumb_repeat_launches *files = calloc(count + 1u, sizeof *files);
	struct plumb_cost_run *runs = calloc(count + 1u, sizeof *runs);
	double *step_ns = calloc(count + 1u, sizeof *step_ns);
	char(*why)[PLUMB_COST_WHY] = calloc(count + 1u, sizeof *why);
	int64_t steps = 0;
	int code = files && runs && step_ns && why ? 0 : plumb_fail_memory(error, "for the levels");

	for (uint32_t i = 0; i < count && !code; i++) {
		files[i] = launches_of(s, i);
		runs[i] = s->made[i].run;
	}
	if (!code)
		code = plumb_cost_steps(&s->loop, runs, count, step_ns, why, &steps, error);
	for (uint32_t i = 1; i < count && steps && !code; i++)
		plumb_levels_time(s->levels, i - 1, step_ns[i], why[i][0] ? why[i] : NULL);
	for (uint32_t i = 0; files && i < count; i++)
		let_go(&files[i]);
	free(files);
	free(runs);
	free(step_ns);
	free(why);
	return code;
}

static int
conclude(struct session *s, struct plumb_error *error)
{
	int code = 0, compared;

	if (s->bounds == PLUMB_LEVEL_BY_LAUNCHES)
		code = time_by_launches(s, error);
	if (code)
		return code;
	compared = plumb_levels_conclude(s->levels, s->profile, error);
	if (compared && compared != PLUMB_EEMPTY)
		return compared;
	code = plumb_store_write_by(s->profile, s->wanted->output, &s->wanted->rule, NULL, NULL,
	                            compared ? NULL : error);
	return compared ? compared : code;
}

static int
measure(struct session *s, struct plumb_error *error)
{
	int code = make_first(s, error);

	if (!code)
		code = make_others(s, error);
	if (!code)
		code = conclude(s, error);
	plumb_levels_free(s->levels);
	plumb_repeat_end(&s->repeat);
	return code;
}

static int
look_at_target(const struct plumb_running *run, struct plumb_error *error)
{
	if (run->target.error)
		return plumb_fail(error, PLUMB_EINPUT, "cannot execute %s: %s", run->argv[0],
		                  run->target.error == ENOENT && !strchr(run->argv[0], '/')
		                          ? "PATH has no program of that name"
		                          : strerror(run->target.error));
	if (run->target.refused)
		return plumb_fail(error, PLUMB_EINPUT,
		                  "%s; plumb levels needs a program that it can "
		                  "profile",
		                  run->target.reason);
	if (plumb_rank() >= 0)
		return plumb_fail(
			error, PLUMB_EUSAGE,
			"levels starts the whole job several times; put the launcher behind "
			"plumb: plumb levels -- torchrun ...");
	return plumb_finish_check(run->output, &run->rule, error);
}

int
plumb_levels_run(struct plumb_levels_wanted *wanted, struct plumb_profile *profile,
                 struct plumb_error *error)
{
	struct session s = { .wanted = wanted,
		             .profile = profile,
		             .first = calloc(1, sizeof *s.first),
		             .now = calloc(1, sizeof *s.now),
		             .made = calloc(LEVELS * wanted->runs + 4u, sizeof *s.made) };
	int code = s.first && s.now && s.made ? 0 : plumb_fail_memory(error, "for the levels");

	memset(profile, 0, sizeof *profile);
	if (!code) {
		s.first->invocation = wanted->invocation;
		s.first->argv = wanted->argv;
		s.first->rule = wanted->rule;
		s.first->quiet = true;
		s.first->repeat = &s.repeat;
		snprintf(s.first->output, sizeof s.first->output, "%s", wanted->output);
		s.first->program = *wanted->program;
		if (wanted->again)
			plumb_program_again(&s.first->program, wanted->program);
		s.repeat.input = -1;
		plumb_target_look(wanted->argv, getenv("PATH"), &s.first->target);
		code = look_at_target(s.first, error);
	}
	if (!code)
		code = measure(&s, error);
	if (s.now && s.repeat.number) {
		*wanted->program = s.now->program;
		wanted->again = true;
	}
	free(s.first);
	free(s.now);
	free(s.made);
	return code;
}
