/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUMB_CLI_TABLES_TEXT_H
#define PLUMB_CLI_TABLES_TEXT_H

#include <stdio.h>

#include "analyze/answer.h"

/* A standard table for people: TOP rows (0: all); columns of which nothing is known are named
 * below. Negative: no memory. */
int plumb_tables_text(const struct plumb_answer *answer, FILE *out, int64_t top);

#endif
