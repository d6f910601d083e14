/* SPDX-License-Identifier: Apache-2.0 */
/* What is generated from the verbs' descriptions; one file for each kind of output. */
#ifndef PLUMB_CLI_GENERATE_H
#define PLUMB_CLI_GENERATE_H

#include <stdio.h>

#include "cli/cli.h"

/* The man page (roff) of one verb; VERB NULL: of plumb as a whole. */
void
plumb_generate_man(const struct plumb_verb *const *verbs, const struct plumb_verb *verb, FILE *out);

void plumb_generate_bash(const struct plumb_verb *const *verbs, FILE *out);
void plumb_generate_zsh(const struct plumb_verb *const *verbs, FILE *out);
void plumb_generate_fish(const struct plumb_verb *const *verbs, FILE *out);

/* These write the generated sections of a page of docs/. PLUMB_DOCS_BEGIN and PLUMB_DOCS_END mark
 * where a section begins and ends. */
#define PLUMB_DOCS_BEGIN "<!-- generated: %s (plumb generate docs) -->\n"
#define PLUMB_DOCS_END "<!-- end: %s -->\n"
void plumb_generate_options(const struct plumb_verb *verb, FILE *out);
void plumb_generate_metrics(FILE *out);
void plumb_generate_operators(FILE *out);

#endif
