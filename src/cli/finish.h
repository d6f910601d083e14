/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a profile on disk from what a run left. `plumb run` ends with this, and `plumb settle`
 * does only this.
 */
#ifndef PLUMB_CLI_FINISH_H
#define PLUMB_CLI_FINISH_H

#include <stdio.h>

#include "cli/options.h"
#include "model/profile.h"
#include "store/store.h"

/* Options of every verb that writes a profile, for its table; plumb_finish_rule reads them. */
#define PLUMB_FINISH_OPTIONS                                                                       \
	{ .name = "force",                                                                         \
	  .kind = PLUMB_OPTION_FLAG,                                                               \
	  .help = "replace the file at -o even if it is not a profile" },                          \
		{ .name = "readable",                                                              \
		  .kind = PLUMB_OPTION_FLAG,                                                       \
		  .help = "let others read the profile, as the umask allows; without it only you " \
		          "can" }
/* Likewise of every verb that starts a program. */
#define PLUMB_NO_COMMAND_OPTION                                                                    \
	{ .name = "no-command",                                                                    \
	  .kind = PLUMB_OPTION_FLAG,                                                               \
	  .help = "do not store command lines. Without it they are stored, with what looks "       \
		  "like a password or key masked" }
struct plumb_output_rule plumb_finish_rule(const struct plumb_options *given);

struct plumb_finish {
	const char *output;
	struct plumb_output_rule rule; /* of plumb_store_rule */
	FILE *err;                     /* warnings; a progress bar too if it is a terminal */
	bool quiet;                    /* no progress bar */
	/* Out: the profile that was at OUTPUT before is still there, because nothing was captured
	 * or because the program failed at its start. */
	bool kept_old, failed_early;
};

/*
 * Settles and joins the COUNT inputs (run folders and profile files) into PROFILE, which the
 * caller frees, and writes it to FINISH's output. Returns 0, PLUMB_EEMPTY or another error.
 * PLUMB_EEMPTY: nothing was captured, or the program failed and hardly anything was captured;
 * PROFILE is filled, and is written if there was no profile before. After other errors PROFILE is
 * empty.
 */
int plumb_finish(const char *const *inputs, size_t count, struct plumb_finish *finish,
                 struct plumb_profile *profile, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Can a profile be written to OUTPUT by RULE? The folder must exist and be writable. If OUTPUT
 * exists, it must be a profile. Errors: PLUMB_ESYSTEM, PLUMB_EUSAGE. */
int plumb_finish_check(const char *output, const struct plumb_output_rule *rule,
                       struct plumb_error *error) PLUMB_MUST_CHECK;

/* Writes the folder of the file PATH into FOLDER, which has SIZE bytes; ".": PATH names no
 * folder. */
void plumb_folder_of(const char *path, char *folder, size_t size);

/* WORDS (ends with NULL) as one line, quoted so that a shell reads the same words; malloced. NULL:
 * no memory. */
char *plumb_shell_line(const char *const *words);

#endif
