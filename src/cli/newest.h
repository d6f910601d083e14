/* SPDX-License-Identifier: Apache-2.0 */
/* The newest profile in the current folder, for verbs that got no file. */
#ifndef PLUMB_CLI_NEWEST_H
#define PLUMB_CLI_NEWEST_H

#include "cli/cli.h"

/* Returns its name (malloced), and prints a line on err that says which one it is. NULL: there is
 * none, or no memory; an error was printed, and *RESULT is the exit code. */
char *plumb_newest_profile(const struct plumb_invocation *invocation, int *result);

#endif
