/* SPDX-License-Identifier: Apache-2.0 */
/* The newest profile of the current folder, for verbs that are given no file. */
#ifndef PLUMB_CLI_NEWEST_H
#define PLUMB_CLI_NEWEST_H

#include "cli/cli.h"

/* Its name (malloced), after a line on err that says which it is. NULL: there is none, or no
 * memory; *RESULT is then the exit code, and what is wrong was said. */
char *plumb_newest_profile(const struct plumb_invocation *invocation, int *result);

#endif
