/* SPDX-License-Identifier: Apache-2.0 */
/* A report as text. */
#ifndef PLUMB_CLI_REPORT_TEXT_H
#define PLUMB_CLI_REPORT_TEXT_H

#include <stdio.h>

#include "view/report.h"

/* Prints the head, the rows, what was left out, and the ledger, which is complete if LEDGER is set.
 * PATH is the profile's name. WHOLE is what the head is of: the profile that the report's is a
 * window of, or the same. Negative: no memory. */
int plumb_report_text(const struct plumb_report *report, const struct plumb_profile *whole,
                      const char *path, bool ledger, FILE *out, int width);
/* memory.c: each device's memory, with its rows below it. */
int plumb_report_memory_text(const struct plumb_report *report, FILE *out, int width);

/* from.c: " from aten::mul, aten::relu at train.py:3, 4", or nothing. */
void plumb_from_print_context(const struct plumb_report *report, uint32_t context, FILE *out);
/* Prints, after a table of kernels, a line for each row that a compiler made from operators. */
void plumb_from_print_rows(const struct plumb_report *report, FILE *out);

#endif
