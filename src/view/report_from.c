/* SPDX-License-Identifier: Apache-2.0 */
#include "view/report_from.h"

#include "base/search.h"

bool
plumb_report_same_line(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	if (a == PLUMB_NONE || b == PLUMB_NONE)
		return a == b;
	return p->frames[a].file == p->frames[b].file && p->frames[a].line == p->frames[b].line;
}

static void
add_part(const struct plumb_report *report, struct plumb_report_parts *parts, uint32_t origin)
{
	const struct plumb_profile *p = report->profile;
	struct plumb_fused_part part = plumb_fused_part(p, origin, report->user), *added;

	for (uint32_t i = 0; i < parts->list.count; i++)
		if (parts->list.items[i].op == part.op &&
		    plumb_report_same_line(p, parts->list.items[i].line, part.line))
			return;
	added = plumb_vec_add(&parts->list);
	if (added)
		*added = part;
}

struct plumb_report_parts
plumb_report_from_context(const struct plumb_report *report, uint32_t context)
{
	const struct plumb_profile *p = report->profile;
	struct plumb_report_parts parts = { 0 };
	/* A profile has them in the order of their contexts. */
	uint32_t low = plumb_search(i, p->origins_count, p->origins[i].context < context);

	for (uint32_t i = low; i < p->origins_count && p->origins[i].context == context; i++)
		if (p->origins[i].reason == PLUMB_ORIGIN_OF_FUSED)
			add_part(report, &parts, p->origins[i].origin);
	return parts;
}

struct plumb_report_parts
plumb_report_from_row(const struct plumb_report *report, uint32_t row)
{
	const struct plumb_profile *p = report->profile;
	struct plumb_report_parts parts = { 0 };

	for (uint32_t i = 0; i < p->origins_count; i++) {
		const struct plumb_origin *o = &p->origins[i];
		if (o->reason == PLUMB_ORIGIN_OF_FUSED &&
		    plumb_grouping_owner(report->grouping, o->context) == row)
			add_part(report, &parts, o->origin);
	}
	return parts;
}

/* ---- JSON ---- */

static void
write_json(const struct plumb_report *report, struct plumb_json *json,
           struct plumb_report_parts *parts)
{
	const struct plumb_profile *p = report->profile;

	if (parts->list.count) {
		plumb_json_key_array(json, "from");
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
	struct plumb_report_parts parts = plumb_report_from_context(report, context);

	write_json(report, json, &parts);
}

void
plumb_report_from_row_json(const struct plumb_report *report, struct plumb_json *json, uint32_t row)
{
	struct plumb_report_parts parts = { 0 };

	if (!plumb_report_is_where(report->by) && report->by != PLUMB_BY_SHAPE)
		parts = plumb_report_from_row(report, row);
	write_json(report, json, &parts);
}
