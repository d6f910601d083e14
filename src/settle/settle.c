/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run as a whole: what is only known once all regions have been read.
 */
#include "settle/settle_private.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool
plumb_settler_init(struct plumb_settler *settler, uint32_t folders)
{
	memset(settler, 0, sizeof *settler);
	settler->builder = plumb_builder_new();
	/* The root's context. */
	if (!settler->builder || !plumb_vec_add(&settler->contexts))
		return false;
	for (uint32_t i = 0; i < folders; i++) {
		struct plumb_settle_run *run = plumb_vec_add(&settler->runs);
		if (!run)
			return false;
		run->command = PLUMB_NONE;
		run->start = run->end = run->exit = PLUMB_UNKNOWN;
	}
	return true;
}

void
plumb_settler_free(struct plumb_settler *settler)
{
	plumb_builder_free(settler->builder);
	plumb_vec_free(&settler->contexts);
	plumb_vec_free(&settler->devices);
	plumb_vec_free(&settler->processes);
	for (uint32_t i = 0; i < settler->runs.count; i++)
		plumb_settle_copies_free(&settler->runs.items[i].copies);
	plumb_vec_free(&settler->runs);
	plumb_vec_free(&settler->shares);
	plumb_vec_free(&settler->rings);
	plumb_vec_free(&settler->intervals);
	plumb_vec_free(&settler->facts);
	plumb_vec_free(&settler->links);
	plumb_vec_free(&settler->warnings);
	plumb_map_free(&settler->device_map);
	plumb_vec_free(&settler->captures);
	plumb_vec_free(&settler->kernel_lines);
	plumb_inductor_log_free(&settler->compiled);
	plumb_settle_stalls_free(settler);
	plumb_settle_communications_free(settler);
	plumb_settle_traffic_free(settler);
	plumb_settle_native_free(settler);
}

void
plumb_settle_warn(struct plumb_settler *settler, const char *format, ...)
{
	char line[2200];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof line - 1, format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n > sizeof line - 2)
		n = sizeof line - 2;
	/* One line for each, even if the name of a file has several. */
	for (int i = 0; i < n; i++)
		if (line[i] == '\n')
			line[i] = ' ';
	line[n] = '\n';
	for (int i = 0; i <= n; i++) {
		char *c = plumb_vec_add(&settler->warnings);
		if (c)
			*c = line[i];
	}
}

/* ---- processes and runs ---- */

/* The process that `plumb run` started, if it recorded something: of several with its number (it
 * called exec, or the number came round) the last that started. */
static struct plumb_process *
find_child(struct plumb_settler *settler, uint32_t folder)
{
	const struct plumb_settle_run *run = &settler->runs.items[folder];
	struct plumb_process *found = NULL;

	for (uint32_t i = 0; i < settler->processes.count; i++) {
		const struct plumb_settle_process *own = &settler->processes.items[i];
		struct plumb_process *row = plumb_builder_get_process(settler->builder, i);
		if (run->known && own->folder == folder && own->pid == run->pid &&
		    (!found || row->start_ns >= found->start_ns))
			found = row;
	}
	return found;
}

static void
amend_child(struct plumb_settler *settler, uint32_t folder)
{
	const struct plumb_settle_run *run = &settler->runs.items[folder];
	struct plumb_process *child = find_child(settler, folder);

	if (!child)
		return;
	if (child->exit_code == PLUMB_UNKNOWN)
		child->exit_code = run->exit;
	if (child->end_ns == PLUMB_UNKNOWN)
		child->end_ns = run->end;
	if (child->command == PLUMB_NONE)
		child->command = run->command;
}

/* What `plumb run` did not write, because it was killed or there was none. It follows from the
 * folder's processes. */
static void
complete_run(struct plumb_settler *settler, uint32_t folder)
{
	struct plumb_settle_run *run = &settler->runs.items[folder];
	bool start = run->start == PLUMB_UNKNOWN, end = run->end == PLUMB_UNKNOWN;

	for (uint32_t i = 0; i < settler->processes.count; i++) {
		const struct plumb_settle_process *own = &settler->processes.items[i];
		const struct plumb_process *row = plumb_builder_get_process(settler->builder, i);
		int64_t last = row->end_ns > own->seen ? row->end_ns : own->seen;
		if (own->folder != folder)
			continue;
		if (run->command == PLUMB_NONE)
			run->command = row->command;
		if (start && row->start_ns != PLUMB_UNKNOWN &&
		    (run->start == PLUMB_UNKNOWN || row->start_ns < run->start))
			run->start = row->start_ns;
		if (end && last > run->end)
			run->end = last;
	}
}

/* Folders may come from several hosts, whose clocks do not compare: the longest run is the wall
 * time, and the first failure the exit code. */
static void
join_runs(struct plumb_settler *settler)
{
	struct plumb_run *all = plumb_builder_run(settler->builder);
	bool unknown = false;

	for (uint32_t i = 0; i < settler->runs.count; i++) {
		const struct plumb_settle_run *run = &settler->runs.items[i];
		int64_t wall;
		if (all->command == PLUMB_NONE)
			all->command = run->command;
		if (all->start_ns == PLUMB_UNKNOWN)
			all->start_ns = run->start;
		if (run->start != PLUMB_UNKNOWN && run->end != PLUMB_UNKNOWN &&
		    !__builtin_sub_overflow(run->end, run->start, &wall) && wall >= 0 &&
		    wall > all->wall_ns)
			all->wall_ns = wall;
		unknown = unknown || run->exit == PLUMB_UNKNOWN;
		if (run->exit != PLUMB_UNKNOWN &&
		    (all->exit_code == PLUMB_UNKNOWN || !all->exit_code))
			all->exit_code = run->exit;
	}
	/* If some runs succeeded, this says nothing about the others. */
	if (unknown && !all->exit_code)
		all->exit_code = PLUMB_UNKNOWN;
	for (uint32_t i = 0; i < settler->processes.count; i++) {
		const struct plumb_process *row = plumb_builder_get_process(settler->builder, i);
		if (row->overhead_ns > all->overhead_ns)
			all->overhead_ns = row->overhead_ns;
	}
	all->tool_version = plumb_builder_text(settler->builder, PLUMB_VERSION);
}

int
plumb_settler_finish(struct plumb_settler *settler, const struct plumb_settle_options *options,
                     struct plumb_profile *profile, struct plumb_error *error)
{
	int code;

	if (settler->no_memory)
		return plumb_fail_memory(error, "to settle the run");
	for (uint32_t i = 0; i < settler->runs.count; i++) {
		amend_child(settler, i);
		complete_run(settler, i);
	}
	join_runs(settler);
	plumb_settle_recorded(settler);
	plumb_settle_kernel_lines(settler);
	plumb_settle_provenance(settler);
	plumb_settle_stalls(settler);
	plumb_settle_communications(settler);
	plumb_settle_traffic(settler);
	plumb_settle_links(settler);
	plumb_settle_busy(settler);
	plumb_settle_environment(settler);
	plumb_settle_code_objects(settler);
	if (options && options->demangle)
		plumb_builder_demangle(settler->builder, options->demangle);
	code = plumb_builder_finish(settler->builder, profile, error);
	if (!code && !settler->captured)
		return plumb_fail(
			error, PLUMB_EEMPTY,
			"nothing was captured: no operator, GPU work, range or sample was seen");
	return code;
}

int
plumb_settle(const char *const *folders, size_t count, const struct plumb_settle_options *options,
             struct plumb_profile *profile, char **warnings, struct plumb_error *error)
{
	struct plumb_settler settler;
	int code;

	memset(profile, 0, sizeof *profile);
	*warnings = NULL;
	if (count > UINT32_MAX / 2)
		return plumb_fail(error, PLUMB_EUSAGE, "too many folders");
	if (!plumb_settler_init(&settler, (uint32_t)count)) {
		plumb_settler_free(&settler);
		return plumb_fail_memory(error, "to settle the run");
	}
	code = plumb_settle_folders(&settler, folders, (uint32_t)count, options, error);
	if (!code)
		code = plumb_settler_finish(&settler, options, profile, error);
	if (settler.warnings.count && plumb_vec_add(&settler.warnings)) {
		*warnings = settler.warnings.items; /* terminated by the zero just added */
		settler.warnings.items = NULL;
	}
	plumb_settler_free(&settler);
	return code;
}
