/* SPDX-License-Identifier: Apache-2.0 */
/* The runs after the first one, which measure what recording costs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/run.h"
#include "store/store.h"

static void
tell_measure(struct plumb_measure *measure, const struct plumb_running *run)
{
	plumb_measure_ran(measure, &(struct plumb_measure_run){ &run->program, run->wall_ns });
}

/* The program without plumb. */
static int
run_plain(struct plumb_running *run, struct plumb_error *error)
{
	const struct plumb_environment_settings settings = {
		.preload_first = run->target.preload,
		.counter = run->repeat->library,
		.counter_variables = plumb_repeat_variables(run->repeat),
	};
	char **environment = plumb_environment_plain(environ, &settings);
	if (!environment)
		return plumb_fail_memory(error, NULL);
	int code = plumb_program_start(&run->program, run->argv, environment, error);
	plumb_environment_free(environment);
	if (!code)
		plumb_run_wait(run);
	return code;
}

/* The program once more: its records are thrown away. */
static int
run_recorded_again(struct plumb_running *run, struct plumb_error *error)
{
	char **environment = plumb_run_make_ready(run, error);
	int code = environment ? plumb_run_record(run, environment, error) : PLUMB_ESYSTEM;
	plumb_environment_free(environment);
	plumb_run_discard(run);
	return code;
}

/* Makes the runs after the FIRST one. */
static void
measure_all(const struct plumb_running *first)
{
	struct plumb_measure *measure = first->measure;
	struct plumb_running *run = calloc(1, sizeof(*run));
	struct plumb_error error = { 0 };
	int code = run ? 0 : plumb_fail_memory(&error, NULL);
	while (!code) {
		*run = *first;
		run->quiet = true;
		run->finish_command = NULL;
		memset(&run->folder, 0, sizeof(run->folder));
		memset(&run->facts, 0, sizeof(run->facts));
		memset(&run->schedule, 0, sizeof(run->schedule));
		memset(&run->regions, 0, sizeof(run->regions));
		plumb_program_again(&run->program, &first->program);
		if (!plumb_measure_next(measure, &run->program))
			break;
		if (!first->quiet)
			plumb_cli_note(first->invocation,
			               "measuring what recording costs: run %u of %u, %s plumb",
			               measure->repeat.number + 1, 2 * measure->pairs + 1,
			               measure->recorded ? "with" : "without");
		code = measure->recorded ? run_recorded_again(run, &error) : run_plain(run, &error);
		free(run->finish_command);
		if (!code)
			tell_measure(measure, run);
	}
	if (code && !measure->why[0])
		snprintf(measure->why, sizeof(measure->why), "%.200s", error.message);
	free(run);
}

void
plumb_run_measure(struct plumb_running *run)
{
	struct plumb_profile profile = { 0 };
	struct plumb_error error = { 0 };
	tell_measure(run->measure, run);
	measure_all(run);
	int code = plumb_store_read(&profile, run->output, &error);
	if (!code)
		code = plumb_measure_conclude(run->measure, &profile, &error);
	if (!code)
		code = plumb_store_write_by(&profile, run->output, &run->rule, NULL, NULL, &error);
	if (code)
		plumb_cli_note(run->invocation, "%s; what recording costs is not in the profile",
		               error.message);
	if (!run->quiet && profile.strings_count)
		plumb_run_summary(run, &profile);
	plumb_profile_free(&profile);
}
