/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger for people. */
#ifndef PLUMB_CLI_LEDGER_H
#define PLUMB_CLI_LEDGER_H

#include <stdio.h>

#include "model/profile.h"

/* At most MOST lines, each INDENT columns in: what was dropped and why, or that nothing was. */
void plumb_ledger_print_short(const struct plumb_profile *profile, FILE *out, int indent, int most);
/* A table of all sources and every fate. Negative: no memory. */
int plumb_ledger_print(const struct plumb_profile *profile, FILE *out, int width, bool colour);

#endif
