/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runs of a pair come one after the other, and every second pair the other way round, so that a
 * machine that becomes slower meets both kinds alike. The first run is in no pair: it prints, it
 * may compile and fill caches, and no other run does the same again.
 */
#include "cli/run/measure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The first reason counts. */
static void __attribute__((format(printf, 2, 3)))
give_up(struct plumb_measure *m, const char *format, ...)
{
	va_list args;

	if (m->why[0])
		return;
	va_start(args, format);
	vsnprintf(m->why, sizeof m->why, format, args);
	va_end(args);
}

/* ---- runs ---- */

bool
plumb_measure_next(struct plumb_measure *m, struct plumb_program *program)
{
	uint32_t pair = (m->repeat.number - 1) / 2;

	if (program->interrupted && m->repeat.number <= 2 * m->pairs)
		give_up(m, "it was interrupted after run %u of %u", m->repeat.number,
		        2 * m->pairs + 1);
	if (m->why[0] || m->repeat.number > 2 * m->pairs)
		return false;
	m->recorded = (m->repeat.number - 1 + pair) % 2 == 0;
	return plumb_repeat_next(&m->repeat, program, m->why, sizeof m->why);
}

void
plumb_measure_ran(struct plumb_measure *m, const struct plumb_measure_run *run)
{
	m->runs[m->repeat.number] = (struct plumb_cost_run){ .recorded = m->recorded,
		                                             .exit_code = run->program->exit_code,
		                                             .wall_ns = run->wall_ns };
	plumb_repeat_ran(&m->repeat);
	if (run->program->interrupted)
		give_up(m, "it was interrupted in run %u of %u", m->repeat.number,
		        2 * m->pairs + 1);
	else if (run->program->signal)
		give_up(m, "signal %d (%s) ended the program in run %u", run->program->signal,
		        strsignal(run->program->signal), m->repeat.number);
	/* The rest would tell nothing more. */
	else if (run->program->exit_code != m->runs[0].exit_code)
		give_up(m,
		        "the program ended with exit code %d in run %u (%s plumb), and with %d "
		        "in the first",
		        run->program->exit_code, m->repeat.number, m->recorded ? "with" : "without",
		        m->runs[0].exit_code);
}

/* ---- the end ---- */

static void
nothing_known(struct plumb_cost *cost)
{
	*cost = (struct plumb_cost){ .process = PLUMB_NONE,
		                     .scope = PLUMB_COST_OF_RUN,
		                     .pairs = 0,
		                     .steps = PLUMB_UNKNOWN,
		                     .recorded_ns = PLUMB_UNKNOWN,
		                     .plain_ns = PLUMB_UNKNOWN,
		                     .ratio = __builtin_nan(""),
		                     .low = __builtin_nan(""),
		                     .high = __builtin_nan("") };
}

static int
compare(struct plumb_measure *m, const struct plumb_profile *profile, struct plumb_cost *cost,
        struct plumb_error *error)
{
	struct plumb_repeat_launches *files = calloc(m->repeat.number, sizeof *files);
	struct plumb_repeat_wanted wanted = { PLUMB_UNKNOWN, PLUMB_UNKNOWN };
	struct plumb_cost_loop loop;
	int code = files ? plumb_cost_loop_find(profile, &loop, error)
	                 : plumb_fail_memory(error, "to compare the runs");

	if (!code && loop.process != PLUMB_NONE) {
		wanted.pid = profile->processes[loop.process].pid;
		wanted.rank = profile->processes[loop.process].rank;
	}
	for (uint32_t i = 0; !code && i < m->repeat.number; i++) {
		files[i] = plumb_repeat_launches(&m->repeat, i, &wanted);
		if (files[i].header)
			plumb_repeat_take(&m->runs[i], &files[i]);
		else if (files[0].header)
			give_up(m,
			        "the launches of run %u (%s plumb) were not counted: there were "
			        "none, or the disk is full",
			        i + 1, m->runs[i].recorded ? "with" : "without");
		wanted.pid = PLUMB_UNKNOWN; /* each run has its own */
	}
	if (!code && !m->why[0])
		code = plumb_cost_compare(&loop, m->runs, m->repeat.number, cost, m->why, error);
	for (uint32_t i = 0; files && i < m->repeat.number; i++)
		if (files[i].header)
			munmap((void *)files[i].header, files[i].bytes);
	free(files);
	return code;
}

int
plumb_measure_conclude(struct plumb_measure *m, struct plumb_profile *profile,
                       struct plumb_error *error)
{
	struct plumb_cost cost;
	int code = 0;

	nothing_known(&cost);
	if (!m->why[0])
		code = compare(m, profile, &cost, error);
	return code < 0 ? code
	                : plumb_profile_set_cost(profile, &cost, m->why[0] ? m->why : NULL, error);
}
