/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels of compiled code were made from, for people. */
#include <inttypes.h>

#include "base/format.h"
#include "cli/report/text.h"
#include "view/report_from.h"

#define SHOWN 8 /* operators, and lines, on one line of text; the rest is counted */

static void
write_operators(const struct plumb_profile *p, const struct plumb_report_parts *parts, FILE *out)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < parts->list.count; i++) {
		uint32_t op = parts->list.items[i].op;
		bool first = op != PLUMB_NONE;
		for (uint32_t k = 0; k < i; k++)
			first = first && parts->list.items[k].op != op;
		if (first && count++ < SHOWN)
			fprintf(out, "%s%s", count == 1 ? " from " : ", ",
			        plumb_text(p, p->frames[op].name));
	}
	if (count > SHOWN)
		fprintf(out, " and %" PRIu32 " more", count - SHOWN);
}

static void
write_lines(const struct plumb_profile *p, const struct plumb_report_parts *parts, FILE *out)
{
	uint32_t count = 0, file = PLUMB_NONE;

	for (uint32_t i = 0; i < parts->list.count; i++) {
		uint32_t line = parts->list.items[i].line;
		bool first = line != PLUMB_NONE;
		for (uint32_t k = 0; k < i; k++)
			first = first &&
			        !plumb_report_same_line(p, parts->list.items[k].line, line);
		if (!first || count++ >= SHOWN)
			continue;
		fputs(count == 1 ? " at " : ", ", out);
		if (p->frames[line].file != file)
			fprintf(out, "%s:", plumb_path_base(plumb_text(p, p->frames[line].file)));
		fprintf(out, "%" PRIu32, p->frames[line].line);
		file = p->frames[line].file;
	}
	if (count > SHOWN)
		fprintf(out, " and %" PRIu32 " more", count - SHOWN);
}

void
plumb_from_print_context(const struct plumb_report *report, uint32_t context, FILE *out)
{
	struct plumb_report_parts parts = plumb_report_from_context(report, context);

	write_operators(report->profile, &parts, out);
	write_lines(report->profile, &parts, out);
	plumb_vec_free(&parts.list);
}

void
plumb_from_print_rows(const struct plumb_report *report, FILE *out)
{
	bool any = false;

	for (uint32_t i = 0; i < report->order_count && report->by == PLUMB_BY_KERNEL; i++) {
		struct plumb_report_place place;
		struct plumb_report_parts parts = plumb_report_from_row(report, report->order[i]);
		if (parts.list.count) {
			plumb_report_row_place(report, report->order[i], &place);
			fprintf(out, "%s  %s:", any ? "" : "\ncompiled kernels\n", place.name);
			write_operators(report->profile, &parts, out);
			write_lines(report->profile, &parts, out);
			fputc('\n', out);
			any = true;
		}
		plumb_vec_free(&parts.list);
	}
}
