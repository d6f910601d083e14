/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what a run left to a profile on disk: `plumb run` ends with it, `plumb settle` is it.
 */
#ifndef PLUMB_CLI_FINISH_H
#define PLUMB_CLI_FINISH_H

#include <stdio.h>

#include "model/profile.h"

/*
 * Settles and joins the COUNT inputs (run folders and profile files) into PROFILE, for the caller to
 * free, and writes it to OUTPUT. Warnings go to ERR, a progress bar too where it is a terminal.
 * Returns 0; PLUMB_EEMPTY when nothing was captured (PROFILE is filled and written all the same); or
 * an error, PROFILE then being empty.
 */
int plumb_finish(const char *const *inputs, size_t count, const char *output, FILE *err,
                 struct plumb_profile *profile, struct plumb_error *error) PLUMB_MUST_CHECK;

/* Can a profile be written to OUTPUT? Its folder must be there and writable, and what lies there now,
 * if anything does, a plain file. Errors: PLUMB_ESYSTEM, PLUMB_EUSAGE. */
int plumb_finish_check(const char *output, struct plumb_error *error) PLUMB_MUST_CHECK;

/* The folder of the file PATH, into FOLDER of SIZE bytes: "." where it names none. */
void plumb_folder_of(const char *path, char *folder, size_t size);

/* WORDS (ends with NULL) as one line that a shell takes apart again; malloced, NULL: no memory. */
char *plumb_shell_line(const char *const *words);

#endif
