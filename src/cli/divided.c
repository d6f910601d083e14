/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/divided.h"

#include "base/format.h"
#include "cli/table.h"

void
plumb_divided_print(const struct plumb_report *report, FILE *out)
{
	const struct plumb_division *division = report->division;
	char share[PLUMB_FORMAT_SIZE], line[1500];

	if (!plumb_report_is_divided(report))
		return;
	plumb_format_share(share, division->share, 1);
	if (division->line == PLUMB_NONE) {
		fprintf(out, "%s is under no line of your code: ", share);
		fputs("modules and packages' lines say where\n", out);
		return;
	}
	plumb_division_text(report->profile, division, division->line, false, line, sizeof line);
	plumb_text_print(out, line);
	fprintf(out, "%s hold%s %s of it: modules and packages' lines say where in it\n",
	        division->lines > 1 ? " and other lines" : "", division->lines > 1 ? "" : "s",
	        share);
}
