/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that head reports and the summary: command, time, plumb's own cost, devices, notes. */
#ifndef PLUMB_CLI_OVERVIEW_H
#define PLUMB_CLI_OVERVIEW_H

#include <stdio.h>

#include "view/overview.h"

/* MOST_DEVICES limits the lines that devices get: one, and one more where processes share it. */
void plumb_overview_print(const struct plumb_profile *profile, FILE *out, int most_devices);

#endif
