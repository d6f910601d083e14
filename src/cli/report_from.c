/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_from.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"
#include "cli/label.h"
#include "model/fused.h"

#define SHOWN 8 /* operators, and lines, on one line of text; the rest is counted */

struct parts {
	PLUMB_VEC(struct plumb_fused_part) list;
};

static bool
same_line(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	if (a == PLUMB_NONE || b == PLUMB_NONE)
		return a == b;
	return p->frames[a].file == p->frames[b].file && p->frames[a].line == p->frames[b].line;
}

static void
add_part(const struct plumb_report *report, struct parts *parts, uint32_t origin)
{
	const struct plumb_profile *p = report->profile;
	struct plumb_fused_part part = plumb_fused_part(p, origin, report->user), *added;

	for (uint32_t i = 0; i < parts->list.count; i++)
		if (parts->list.items[i].op == part.op &&
		    same_line(p, parts->list.items[i].line, part.line))
			return;
	added = plumb_vec_add(&parts->list);
	if (added)
		*added = part;
}

static void
collect_context(const struct plumb_report *report, uint32_t context, struct parts *parts)
{
	const struct plumb_profile *p = report->profile;
	/* A profile has them in the order of their contexts. */
	uint32_t low = plumb_search(i, p->origins_count, p->origins[i].context < context);

	for (uint32_t i = low; i < p->origins_count && p->origins[i].context == context; i++)
		if (p->origins[i].reason == PLUMB_ORIGIN_OF_FUSED)
			add_part(report, parts, p->origins[i].origin);
}

static void
collect_row(const struct plumb_report *report, uint32_t row, struct parts *parts)
{
	const struct plumb_profile *p = report->profile;

	for (uint32_t i = 0; i < p->origins_count; i++) {
		const struct plumb_origin *o = &p->origins[i];
		if (o->reason == PLUMB_ORIGIN_OF_FUSED &&
		    plumb_grouping_owner(report->grouping, o->context) == row)
			add_part(report, parts, o->origin);
	}
}

/* ---- JSON ---- */

static void
write_json(const struct plumb_report *report, struct plumb_json *json, struct parts *parts)
{
	const struct plumb_profile *p = report->profile;

	if (parts->list.count) {
		plumb_json_key(json, "from");
		plumb_json_array(json);
	}
	for (uint32_t i = 0; i < parts->list.count; i++) {
		const struct plumb_fused_part *part = &parts->list.items[i];
		bool line = part->line != PLUMB_NONE;
		plumb_json_object(json);
		plumb_json_key_text(
			json, "operator",
			part->op == PLUMB_NONE ? NULL : plumb_text(p, p->frames[part->op].name));
		plumb_json_key_text(json, "file",
		                    line ? plumb_text(p, p->frames[part->line].file) : NULL);
		plumb_json_key_quantity(json, "line",
		                        line ? p->frames[part->line].line : PLUMB_UNKNOWN);
		plumb_json_end(json);
	}
	if (parts->list.count)
		plumb_json_end(json);
	plumb_vec_free(&parts->list);
}

void
plumb_report_from_context_json(const struct plumb_report *report, struct plumb_json *json,
                               uint32_t context)
{
	struct parts parts = { 0 };

	collect_context(report, context, &parts);
	write_json(report, json, &parts);
}

void
plumb_report_from_row_json(const struct plumb_report *report, struct plumb_json *json, uint32_t row)
{
	struct parts parts = { 0 };

	if (!plumb_report_is_where(report->by) && strcmp(report->by, "shape"))
		collect_row(report, row, &parts);
	write_json(report, json, &parts);
}

/* ---- text ---- */

static void
write_operators(const struct plumb_profile *p, const struct parts *parts, FILE *out)
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
write_lines(const struct plumb_profile *p, const struct parts *parts, FILE *out)
{
	uint32_t count = 0, file = PLUMB_NONE;

	for (uint32_t i = 0; i < parts->list.count; i++) {
		uint32_t line = parts->list.items[i].line;
		bool first = line != PLUMB_NONE;
		for (uint32_t k = 0; k < i; k++)
			first = first && !same_line(p, parts->list.items[k].line, line);
		if (!first || count++ >= SHOWN)
			continue;
		fputs(count == 1 ? " at " : ", ", out);
		if (p->frames[line].file != file)
			fprintf(out, "%s:", plumb_label_base(plumb_text(p, p->frames[line].file)));
		fprintf(out, "%" PRIu32, p->frames[line].line);
		file = p->frames[line].file;
	}
	if (count > SHOWN)
		fprintf(out, " and %" PRIu32 " more", count - SHOWN);
}

void
plumb_report_from_context(const struct plumb_report *report, uint32_t context, FILE *out)
{
	struct parts parts = { 0 };

	collect_context(report, context, &parts);
	write_operators(report->profile, &parts, out);
	write_lines(report->profile, &parts, out);
	plumb_vec_free(&parts.list);
}

void
plumb_report_from_rows(const struct plumb_report *report, FILE *out)
{
	bool any = false;

	for (uint32_t i = 0; i < report->order_count && !strcmp(report->by, "kernel"); i++) {
		struct plumb_report_place place;
		struct parts parts = { 0 };
		collect_row(report, report->order[i], &parts);
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
