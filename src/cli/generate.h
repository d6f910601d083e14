/* SPDX-License-Identifier: Apache-2.0 */
/* What is generated from the verbs' descriptions; one file for each kind of output. */
#ifndef PLUMB_CLI_GENERATE_H
#define PLUMB_CLI_GENERATE_H

#include <stdio.h>

#include "cli/cli.h"

/* A man page (roff) of one verb, and of plumb as a whole (VERB NULL). */
void
plumb_generate_man(const struct plumb_verb *const *verbs, const struct plumb_verb *verb, FILE *out);

void plumb_generate_bash(const struct plumb_verb *const *verbs, FILE *out);
void plumb_generate_zsh(const struct plumb_verb *const *verbs, FILE *out);
void plumb_generate_fish(const struct plumb_verb *const *verbs, FILE *out);

/* The generated sections of a page of docs/, between the markers that begin and end them. */
#define PLUMB_DOCS_BEGIN "<!-- generated: %s (plumb generate docs) -->\n"
#define PLUMB_DOCS_END "<!-- end: %s -->\n"
void plumb_generate_options(const struct plumb_verb *verb, FILE *out);
void plumb_generate_metrics(FILE *out);
void plumb_generate_operators(FILE *out);

#endif
