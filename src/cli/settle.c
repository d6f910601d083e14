/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>

#include "cli/cli.h"
#include "cli/finish.h"
#include "cli/run/rundir.h"
#include "cli/summary.h"

static const struct plumb_option options[] = {
	{ .name = "output",
	  .letter = 'o',
	  .kind = PLUMB_OPTION_TEXT,
	  .argument = "FILE",
	  .complete = PLUMB_COMPLETE_FILE,
	  .help = "write the profile to FILE; required. An existing profile is replaced" },
	PLUMB_FINISH_OPTIONS,
	{ .name = "remove",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "remove the run folders once the profile is safely written, unless a process "
	          "still writes there" },
	{ .name = "summary",
	  .kind = PLUMB_OPTION_FLAG,
	  .help = "print the summary that plumb run prints, on standard error" },
	{ 0 },
};

/* Says which folders a process still writes into, and removes the others. */
static void
remove_folders(const struct plumb_invocation *invocation, bool wanted)
{
	for (int i = 0; i < invocation->operand_count; i++) {
		const char *path = invocation->operands[i];
		struct plumb_rundir run = { 0 };
		struct plumb_rundir_alive alive;
		struct stat status;
		if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode))
			continue;
		snprintf(run.path, sizeof(run.path), "%s", path);
		if (plumb_rundir_living(&run, 0, &alive) > 0)
			plumb_cli_note(
				invocation,
				"process %ld (%s) still records into %s; settle the folder again "
				"when it has ended",
				(long)alive.pid, alive.name, path);
		else if (wanted && !plumb_rundir_remove(path))
			plumb_cli_note(invocation,
			               "%s also holds other files, so it was not removed", path);
	}
}

int
plumb_cmd_settle(struct plumb_invocation *invocation)
{
	const char *output = plumb_options_text(invocation->options, "output");
	struct plumb_profile profile;
	struct plumb_error error = { 0 };
	if (!output)
		return plumb_cli_usage(invocation, "settle needs -o FILE");
	struct plumb_finish finish = {
		.output = output,
		.rule = plumb_finish_rule(invocation->options),
		.err = invocation->err,
	};
	if (plumb_finish_check(output, &finish.rule, &error) < 0)
		return plumb_cli_fail(invocation, &error);
	int code = plumb_finish((const char *const *)invocation->operands,
	                        (size_t)invocation->operand_count, &finish, &profile, &error);
	if (code < 0 && code != PLUMB_EEMPTY)
		return plumb_cli_fail(invocation, &error);
	remove_folders(invocation, plumb_options_flag(invocation->options, "remove"));
	if (code == PLUMB_EEMPTY) {
		plumb_cli_note(invocation,
		               finish.failed_early
		                       ? "the program failed at its start; the earlier profile %s "
		                         "is kept"
		               : finish.kept_old
		                       ? "nothing was captured; the earlier profile %s is kept"
		                       : "nothing was captured; %s holds only the environment "
		                         "and the ledger",
		               output);
	} else if (plumb_options_flag(invocation->options, "summary")) {
		struct plumb_summary_options summary = { .path = output };
		plumb_summary_print(&profile, invocation->err, &summary);
	}
	plumb_profile_free(&profile);
	return code == PLUMB_EEMPTY ? PLUMB_EXIT_EMPTY : PLUMB_EXIT_DONE;
}

static const char *const examples[] = {
	"plumb settle .plumb-4711.run -o run.plumb",
	"finish a run whose plumb was killed",
	"plumb settle run.plumb.* -o run.plumb",
	"join the ranks of a job into one profile",
	NULL,
};

const struct plumb_verb plumb_verb_settle = {
	.name = "settle",
	.summary = "make a profile of what runs left, and join the ranks of a job",
	.synopsis = "DIR|PROFILE... -o FILE",
	.description = "Makes one profile from run folders and profiles.\n\n"
		       "A run folder (\".plumb-PID.run\") holds what the processes of a plumb run "
		       "recorded. plumb run settles and removes it by itself. The folder stays if "
		       "plumb was killed, or if the profile could not be written. It holds all "
		       "that was recorded up to then; settling does not change it.\n\n"
		       "Under a launcher (mpirun, torchrun, srun) each rank's plumb run writes "
		       "FILE.RANK. Give all of them to join them: equal call paths become one, "
		       "and processes, ranks, hosts and devices can still be told apart.\n\n"
		       "A region that cannot be read is named, left out and counted in the ledger.",
	.options = options,
	.examples = examples,
	.min_operands = 1,
	.max_operands = PLUMB_ANY_NUMBER,
	.complete = PLUMB_COMPLETE_PROFILE,
	.run = plumb_cmd_settle,
};
