/* SPDX-License-Identifier: Apache-2.0 */
/* What somebody meant who mistyped: commands that can be pasted. */
#ifndef PLUMB_CLI_SUGGEST_H
#define PLUMB_CLI_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

/* Letters that have to be added, dropped, changed or swapped to make OTHER of WORD. */
unsigned plumb_suggest_distance(const char *word, const char *other);
/* Is OTHER what somebody meant who typed WORD? Its beginning, or a slip or two. */
bool plumb_suggest_is_near(const char *word, const char *other);

/* The verb that somebody meant who typed WORD, or NULL. */
const struct plumb_verb *
plumb_suggest_nearest(const struct plumb_verb *const *verbs, const char *word);

/* For "plumb WORDS…" whose first word is no verb: what was meant, or NULL. Malloced. */
char *plumb_suggest_verb(const struct plumb_verb *const *verbs, char *const *words);

/* For a command under `plumb run` that cannot be executed: what was meant, or NULL. Malloced. */
char *plumb_suggest_run(const struct plumb_invocation *invocation);
/* An option of `plumb run` among the command's arguments, moved to where plumb sees it; NULL: there
 * is none. SURE: only those that hardly any other program has. *WORD: the option. Malloced. */
char *plumb_suggest_moved(const struct plumb_invocation *invocation, bool sure, const char **word);

/* Says that INVOCATION's verb takes one file, and which commands may be meant. Returns the exit
 * code. */
int plumb_suggest_one_file(const struct plumb_invocation *invocation);

#endif
