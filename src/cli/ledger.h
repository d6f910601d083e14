/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger for people. */
#ifndef PLUMB_CLI_LEDGER_H
#define PLUMB_CLI_LEDGER_H

#include <stdio.h>

#include "model/profile.h"

/* Prints what was dropped and why, or that nothing was dropped: at most MOST lines, each indented
 * by INDENT columns. */
void plumb_ledger_print_short(const struct plumb_profile *profile, FILE *out, int indent, int most);
/* Prints a table of all sources and fates. Negative: no memory. */
int plumb_ledger_print(const struct plumb_profile *profile, FILE *out, int width, bool colour);

#endif
