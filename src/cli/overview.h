/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that head reports and the summary: command, time, plumb's own cost, devices, and what
 * was not recorded for a reason that the collector told (the slot was taken, a version is unknown,
 * …). */
#ifndef PLUMB_CLI_OVERVIEW_H
#define PLUMB_CLI_OVERVIEW_H

#include <stdio.h>

#include "model/profile.h"

#define PLUMB_OVERVIEW_NOTES 2 /* most lines of that last sort */

/* MOST_DEVICES limits the lines that devices get: one, and one more where processes share it. */
void plumb_overview_print(const struct plumb_profile *profile, FILE *out, int most_devices);

#endif
