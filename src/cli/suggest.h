/* SPDX-License-Identifier: Apache-2.0 */
/* What you probably meant when you mistyped: commands that you can paste. */
#ifndef PLUMB_CLI_SUGGEST_H
#define PLUMB_CLI_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

/* How many letters must be added, dropped, changed or swapped to turn WORD into OTHER. */
unsigned plumb_suggest_distance(const char *word, const char *other);
/* Was OTHER probably meant by WORD? WORD is its beginning, or differs in one or two letters. */
bool plumb_suggest_is_near(const char *word, const char *other);

/* The verb that was probably meant by WORD, or NULL. */
const struct plumb_verb *
plumb_suggest_nearest(const struct plumb_verb *const *verbs, const char *word);

/* For "plumb WORDS…", if the first word is not a verb: what was meant, or NULL. Malloced. */
char *plumb_suggest_verb(const struct plumb_verb *const *verbs, char *const *words);

/* For a command under `plumb run` that cannot be executed: what was meant, or NULL. Malloced. */
char *plumb_suggest_run(const struct plumb_invocation *invocation);
/* The command with an option of `plumb run` moved from the program's arguments to where plumb reads
 * it; NULL: there is no such option. SURE: only options that hardly any other program has. *WORD is
 * the option. Malloced. */
char *plumb_suggest_moved(const struct plumb_invocation *invocation, bool sure, const char **word);

/* Says that INVOCATION's verb takes one file, and prints the commands that may be meant. Returns
 * the exit code. */
int plumb_suggest_one_file(const struct plumb_invocation *invocation);

#endif
