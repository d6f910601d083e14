/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as text. */
#ifndef PLUMB_CLI_DIFF_H
#define PLUMB_CLI_DIFF_H

#include <stdio.h>

#include "view/diff.h"

/* Negative: it could not be written, or no memory. */
int plumb_diff_text(const struct plumb_compared *compared, FILE *out, int width);
/* Prints a line for each gate. */
void plumb_diff_gates(const struct plumb_compared *compared, FILE *out);

#endif
