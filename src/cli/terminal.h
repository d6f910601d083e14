/* SPDX-License-Identifier: Apache-2.0 */
/* What may be drawn on a stream: how wide, and with colour or without. */
#ifndef PLUMB_CLI_TERMINAL_H
#define PLUMB_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdio.h>

#define PLUMB_WIDTH_DEFAULT 120 /* where OUT is no terminal and COLUMNS is not set */

bool plumb_terminal_is(FILE *out);
/* Columns: COLUMNS when it is set to a number > 0, else the terminal's, else the default. */
int plumb_terminal_width(FILE *out);
/* Colour only on a terminal that is not "dumb", and never when NO_COLOR is set (no-color.org). */
bool plumb_terminal_colour(FILE *out);

#endif
