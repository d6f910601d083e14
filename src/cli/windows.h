/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up and loops of a run, as lines of a report's head. */
#ifndef PLUMB_CLI_WINDOWS_H
#define PLUMB_CLI_WINDOWS_H

#include <stdio.h>

#include "model/profile.h"

/* A line for start-up, for each of MOST loops (the main one is among them) and for the rest; with
 * MOST 1 at most two lines. Nothing if PROFILE has no loop. */
void plumb_windows_print(const struct plumb_profile *profile, int most, FILE *out);

/* After an empty line "of the main loop only …", if PROFILE is of a window. */
void plumb_windows_print_choice(const struct plumb_profile *profile, FILE *out);
/* The same as a line of a head, for the tables below it. */
void plumb_windows_print_tables(const struct plumb_profile *profile, FILE *out);

/* "of the main loop only", on a line, if PROFILE is of a window. */
void plumb_windows_print_only(const struct plumb_profile *profile, FILE *out);

#endif
