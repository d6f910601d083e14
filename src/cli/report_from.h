/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of compiled code were made from, as reports show it: operators and lines. */
#ifndef PLUMB_CLI_REPORT_FROM_H
#define PLUMB_CLI_REPORT_FROM_H

#include "base/json.h"
#include "cli/report.h"

/* "from" of the context; nothing where it was made from nothing else. */
void plumb_report_from_context_json(const struct plumb_report *report, struct plumb_json *json,
                                    uint32_t context);
/* "from" of all compiled code that is in the row; nothing where there is none. */
void plumb_report_from_row_json(const struct plumb_report *report, struct plumb_json *json,
                                uint32_t row);
/* " from aten::mul, aten::relu at train.py:3, 4", or nothing. */
void plumb_report_from_context(const struct plumb_report *report, uint32_t context, FILE *out);
/* After a table of kernels: a line for each of the shown rows that were made from something. */
void plumb_report_from_rows(const struct plumb_report *report, FILE *out);

#endif
