/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of help that terminal, man pages and docs share. */
#ifndef PLUMB_CLI_HELP_H
#define PLUMB_CLI_HELP_H

#include <stddef.h>
#include <stdio.h>

#include "cli/options.h"

/* Writes TEXT in lines of at most WIDTH columns, and a newline. The cursor is at COLUMN; the next
 * lines begin at INDENT. There is an empty line between paragraphs. */
void plumb_help_wrap(FILE *out, const char *text, int indent, int column, int width);

/* "-o, --output FILE" */
void plumb_help_option_form(char *text, size_t bytes, const struct plumb_option *option);
/* The help with choices and default. */
void plumb_help_option_text(char *text, size_t bytes, const struct plumb_option *option);

/* This is added to the description of a verb that reads the newest profile if no FILE is given. */
#define PLUMB_HELP_NEWEST "Without FILE it reads the newest profile in the current folder."

#endif
