/* SPDX-License-Identifier: Apache-2.0 */
/* The first lines of reports and of the summary: command, time, what recording costs, devices,
 * notes. */
#ifndef PLUMB_CLI_OVERVIEW_H
#define PLUMB_CLI_OVERVIEW_H

#include <stdio.h>

#include "view/overview.h"

/* MOST_DEVICES limits the lines of devices. A device has one line, and a second one if processes
 * share it. */
void plumb_overview_print(const struct plumb_profile *profile, FILE *out, int most_devices);

#endif
