/* SPDX-License-Identifier: Apache-2.0 */
/* Words about lines of your code that hold most of the time and are divided. */
#ifndef PLUMB_CLI_DIVIDED_H
#define PLUMB_CLI_DIVIDED_H

#include <stdio.h>

#include "view/report.h"

/* The title of a column of lines and parts. */
#define PLUMB_PART_TITLE "line of your code, or its part"

/* One line: which line of your code is divided, and how much it holds. Nothing if none is. */
void plumb_divided_print(const struct plumb_report *report, FILE *out);

#endif
