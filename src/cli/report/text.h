/* SPDX-License-Identifier: Apache-2.0 */
/* A report for people. */
#ifndef PLUMB_CLI_REPORT_TEXT_H
#define PLUMB_CLI_REPORT_TEXT_H

#include <stdio.h>

#include "view/report.h"

/* Head, rows, what was left out, and the ledger: all of it if LEDGER. PATH is what the profile is
 * called. Negative: no memory. */
int plumb_report_text(const struct plumb_report *report, const char *path, bool ledger, FILE *out,
                      int width);
/* report_memory.c: each device's memory, its rows below it. */
int plumb_report_memory_text(const struct plumb_report *report, FILE *out, int width);

/* report_from.c: " from aten::mul, aten::relu at train.py:3, 4", or nothing. */
void plumb_from_print_context(const struct plumb_report *report, uint32_t context, FILE *out);
/* After a table of kernels: a line for each of its rows that were made from something. */
void plumb_from_print_rows(const struct plumb_report *report, FILE *out);

#endif
