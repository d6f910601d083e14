/* SPDX-License-Identifier: Apache-2.0 */
/* What recording costs, as a part of a line. */
#ifndef PLUMB_CLI_COST_H
#define PLUMB_CLI_COST_H

#include <stdio.h>

#include "model/profile.h"

/* Prints BEFORE and what PROFILE says; nothing, if it is of a window, where it says nothing. */
void plumb_cost_print(const struct plumb_profile *profile, const char *before, FILE *out);

#endif
