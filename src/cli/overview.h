/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that head reports and the summary: command, time, plumb's own cost, devices. */
#ifndef PLUMB_CLI_OVERVIEW_H
#define PLUMB_CLI_OVERVIEW_H

#include <stdio.h>

#include "model/profile.h"

/* MOST_DEVICES limits the devices that get a line. */
void plumb_overview_print(const struct plumb_profile *profile, FILE *out, int most_devices);

#endif
