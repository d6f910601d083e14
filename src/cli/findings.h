/* SPDX-License-Identifier: Apache-2.0 */
/* Findings for people: in full for `plumb report --findings`, in a line for the summary. */
#ifndef PLUMB_CLI_FINDINGS_H
#define PLUMB_CLI_FINDINGS_H

#include <stdio.h>

#include "view/report.h"

/* Prints all findings, or the first ones if the report has a `top`, in their order. WHOLE is what
 * the head is of: the profile that the report's is a window of, or the same. Negative: no
 * memory. */
int plumb_findings_text(const struct plumb_report *report, const struct plumb_profile *whole,
                        const char *path, FILE *out, int width);
/* Prints at most MOST findings, one line each, cut to WIDTH columns. */
void plumb_findings_brief(const struct plumb_profile *profile, FILE *out, int most, int width);

/* Print what `plumb help findings` shows, and the table of docs/findings.md. */
void plumb_findings_help(FILE *out, int width);
void plumb_findings_docs(FILE *out);

#endif
