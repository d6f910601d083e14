/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be drawn on a stream: how wide, with colour or without, and which characters.
 *
 * Names come from traces and folders of other people. A terminal obeys some characters, and some
 * make text look like other text. So all that plumb prints goes through one filter, which writes
 * them as escapes: \u001b, \u202e. (JSON stays the same JSON.) What plumb itself tells the terminal
 * goes past it by plumb_terminal_steer.
 */
#ifndef PLUMB_CLI_TERMINAL_H
#define PLUMB_CLI_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PLUMB_WIDTH_DEFAULT 120 /* where OUT is no terminal and COLUMNS is not set */

/* A stream that writes to STREAM's file through the filter; STREAM itself if there is no memory.
 * There are two at most. */
FILE *plumb_terminal_filter(FILE *stream);
/* OUT will carry data for programs (CSV, JSON, an export): only a terminal needs the filter. */
void plumb_terminal_data(FILE *out);
/* Writes a sequence of plumb's own that moves the cursor or sets colours. */
void plumb_terminal_steer(FILE *out, const char *sequence);
/* Does the filter hide CHARACTER? It hides control characters (but not line ends and tabs), marks
 * of direction, characters without width, and separators of lines and paragraphs. */
bool plumb_terminal_hides(uint32_t character);
/* The file descriptor of OUT, also of a filter; negative: it has none. */
int plumb_terminal_fd(FILE *out);

bool plumb_terminal_is(FILE *out);
/* Columns: those of the variable COLUMNS if it is a number > 0, else the terminal's, else the
 * default. */
int plumb_terminal_width(FILE *out);
/* Colour only on a terminal that is not "dumb", and never when NO_COLOR is set (no-color.org). */
bool plumb_terminal_colour(FILE *out);

#endif
