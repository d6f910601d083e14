/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hidden verb `plumb session`: the other half of plumb.profile(), which records a process that
 * is running already. That process starts this one, and both talk over pipes:
 *
 *	session → stdout   the path of libplumb.so, then each variable to set ("NAME=VALUE"), each
 *	                   ended by a zero byte; an empty one is the last. Nothing on error: stderr
 *	                   says why.
 *	stdin → session    "end": the recording has ended. Only the end of the file: the process has
 *	                   died.
 *	session → stdout   how it went, one word: "written", "empty" or "failed", then the end.
 *
 * Either way the records become a profile, so that a process that is killed loses nothing.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/procstat.h"
#include "cli/cli.h"
#include "cli/facts.h"
#include "cli/finish.h"
#include "cli/run/launch.h"
#include "cli/run/options.h"
#include "cli/run/rundir.h"
#include "cli/summary.h"
#include "region/control.h"

#define COMMAND_MOST (1u << 20) /* bytes of the process's command line that are read */

struct session {
	struct plumb_invocation *invocation;
	const char *output;
	pid_t pid; /* of the process that is recorded */
	struct plumb_run_options options;
	struct plumb_rundir folder;
	struct plumb_control *control;
	struct plumb_facts facts;
	struct plumb_output_rule rule;
};

/* ---- the beginning ---- */

static int
read_options(struct session *session, struct plumb_error *error)
{
	const struct plumb_options *given = session->invocation->options;
	int code = plumb_run_options_read(given, &session->options, error);
	if (code < 0)
		return code;
	const struct plumb_run_options *o = &session->options;
	if (o->cpu_hz || o->events || o->memory || o->toggle)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "CPU samples, events, memory and --toggle need plumb from the "
		                  "program's start: use plumb run");
	session->options.replays = false; /* graphs may be there already; see gpu/cuda/slot.c */
	session->output = plumb_options_text(given, "output");
	if (!session->output)
		return plumb_fail(error, PLUMB_EUSAGE, "session needs -o FILE");
	session->rule = plumb_finish_rule(given);
	return plumb_finish_check(session->output, &session->rule, error);
}

static int
make_folder(struct session *session, struct plumb_error *error)
{
	char parent[PATH_MAX], path[PATH_MAX + 32];
	const char *given = plumb_options_text(session->invocation->options, "folder");
	plumb_folder_of(session->output, parent, sizeof(parent));
	int code = plumb_rundir_create(&session->folder, given ? given : parent, error);
	if (code == 0)
		code = plumb_rundir_library(&session->folder, error);
	if (code < 0)
		return code;
	snprintf(path, sizeof(path), "%s/" PLUMB_CONTROL_NAME, session->folder.path);
	code = plumb_control_create(&session->control, path, session->options.start_after != 0,
	                            error);
	if (code < 0)
		return code;
	snprintf(path, sizeof(path), "%s/" PLUMB_RUN_REGION, session->folder.path);
	return plumb_facts_create(&session->facts, path, error);
}

/* The process's arguments, as execv takes them; they point into *TEXT. Both malloced; NULL: no
 * memory. */
static char **
read_command(pid_t pid, char **text)
{
	char path[64];
	size_t used = 0, count = 0;
	*text = calloc(1, COMMAND_MOST + 1);
	char **words = *text ? calloc(COMMAND_MOST / 2 + 2, sizeof(*words)) : NULL;
	snprintf(path, sizeof(path), "/proc/%ld/cmdline", (long)pid);
	FILE *file = words ? fopen(path, "re") : NULL;
	if (file) {
		used = fread(*text, 1, COMMAND_MOST, file);
		fclose(file);
	}
	for (size_t at = 0; at < used && count <= COMMAND_MOST / 2; at += strlen(*text + at) + 1)
		words[count++] = *text + at;
	return words;
}

static pid_t
parent_of(pid_t pid)
{
	char path[64];
	struct plumb_procstat stat;
	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	return plumb_procstat_read(path, &stat) ? (pid_t)stat.parent : 0;
}

static void
tell_facts(struct session *session, uint64_t start)
{
	char link[64], executable[PATH_MAX] = "", *text = NULL;
	char **argv = read_command(session->pid, &text);
	snprintf(link, sizeof(link), "/proc/%ld/exe", (long)session->pid);
	ssize_t length = readlink(link, executable, sizeof(executable) - 1);
	executable[length > 0 ? length : 0] = '\0';
	if (argv) {
		struct plumb_facts_program facts = { .start_monotonic = start,
			                             .pid = session->pid,
			                             .ppid = parent_of(session->pid),
			                             .argv = argv,
			                             .executable = executable,
			                             .output = session->output,
			                             .user_code = session->options.user_code,
			                             .no_command = session->options.no_command,
			                             .no_gpu = session->options.gpu ==
			                                       PLUMB_GPU_OFF };
		plumb_facts_started(&session->facts, &facts);
	}
	free(argv);
	free(text);
}

/* Tells the process what to load and which variables to set. */
static bool
tell_process(const struct session *session)
{
	struct plumb_environment_settings settings = {
		.library = session->folder.library,
		.folder = session->folder.path,
		.limit = session->options.limit,
		.flush_ms = session->options.flush_ms,
		.gpu = session->options.gpu,
		.traffic = session->options.traffic,
	};
	FILE *out = session->invocation->out;
	char **variables = plumb_run_options_variables(&session->options);
	settings.variables = (const char *const *)variables;
	char **environment = variables ? plumb_environment_new(environ, &settings) : NULL;
	plumb_run_options_variables_free(variables);
	if (!environment)
		return false;
	fprintf(out, "%s%c", session->folder.library, 0);
	for (char **entry = environment; *entry; entry++) {
		bool same = false;
		for (char **old = environ; *old && !same; old++)
			same = strcmp(*old, *entry) == 0;
		if (!same)
			fprintf(out, "%s%c", *entry, 0);
	}
	fputc(0, out);
	plumb_environment_free(environment);
	return fflush(out) == 0;
}

/* ---- the end ---- */

/* Did the process say that the recording has ended? Else it has died. */
static bool
await_end(void)
{
	char word[16];
	return fgets(word, sizeof(word), stdin) && strncmp(word, "end", 3) == 0;
}

static enum plumb_exit
finish_recording(struct session *session)
{
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	const char *folder = session->folder.path;
	struct plumb_finish finish = { .output = session->output,
		                       .rule = session->rule,
		                       .err = session->invocation->err,
		                       .quiet = true };
	int code = plumb_finish(&folder, 1, &finish, &profile, &error);
	if (code < 0 && code != PLUMB_EEMPTY) {
		plumb_cli_note(session->invocation, "%s", error.message);
		plumb_cli_note(session->invocation,
		               "nothing is lost: the records are in %s; finish with: plumb settle "
		               "--remove %s -o %s",
		               folder, folder, session->output);
		return PLUMB_EXIT_SYSTEM;
	}
	struct plumb_summary_options summary = { .path = session->output,
		                                 .user_code = session->options.user_code };
	if (code == 0)
		plumb_summary_print(&profile, session->invocation->err, &summary);
	else if (!finish.kept_old)
		unlink(session->output); /* an empty one */
	plumb_profile_free(&profile);
	plumb_rundir_remove_alias(&session->folder);
	if (plumb_rundir_living(&session->folder, session->pid, NULL) > 0)
		plumb_cli_note(session->invocation,
		               "processes that were started meanwhile still run; %s holds what "
		               "they did so far; run this when they have ended: plumb settle "
		               "--remove %s -o %s",
		               session->output, folder, session->output);
	else
		plumb_rundir_remove(folder);
	return code == 0 ? PLUMB_EXIT_DONE : PLUMB_EXIT_EMPTY;
}

static void
discard_session(struct session *session)
{
	plumb_control_unmap(session->control);
	plumb_region_close(&session->facts.region);
	plumb_rundir_remove_alias(&session->folder);
	if (session->folder.path[0])
		plumb_rundir_remove(session->folder.path);
}

int
plumb_cmd_session(struct plumb_invocation *invocation)
{
	struct session session = { .invocation = invocation, .pid = getppid() };
	struct plumb_error error = { 0 };
	/* Ctrl-C is for the process. We end when it ends. */
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	int code = read_options(&session, &error);
	if (code == 0)
		code = make_folder(&session, &error);
	if (code < 0) {
		discard_session(&session);
		return plumb_cli_fail(invocation, &error);
	}
	tell_facts(&session, plumb_control_begin(session.control));
	if (!tell_process(&session)) {
		discard_session(&session);
		return PLUMB_EXIT_SYSTEM;
	}
	bool ended = await_end();
	plumb_facts_ended(&session.facts, -1, session.options.traffic);
	enum plumb_exit how = finish_recording(&session);
	plumb_control_unmap(session.control);
	if (ended)
		fprintf(invocation->out, "%s\n",
		        how == PLUMB_EXIT_DONE    ? "written"
		        : how == PLUMB_EXIT_EMPTY ? "empty"
		                                  : "failed");
	return (int)how;
}

const struct plumb_verb plumb_verb_session = {
	.name = "session",
	.summary = "records the process that started it (for plumb.profile)",
	.synopsis = "-o FILE",
	.options = plumb_run_option_table,
	.hidden = true,
	.data = true,
	.run = plumb_cmd_session,
};
