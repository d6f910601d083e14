/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUMB_CLI_TABLES_TEXT_H
#define PLUMB_CLI_TABLES_TEXT_H

#include <stdio.h>

#include "analyze/answer.h"

/* Prints a standard table: TOP rows (0: all). Columns without a known value are named below it.
 * Negative: no memory. */
int plumb_tables_text(const struct plumb_answer *answer, FILE *out, int64_t top);

#endif
