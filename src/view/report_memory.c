/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a report by memory: who holds each device's memory at its peak. */
#include <math.h>
#include <stdlib.h>

#include "base/sort.h"
#include "model/user_code.h"
#include "view/report_private.h"

/* ---- what a row is called ---- */

struct plumb_report_device
plumb_report_device(const struct plumb_profile *p, const struct plumb_memory *memory)
{
	const struct plumb_track *track = &p->tracks[memory->track];
	struct plumb_report_device d = {
		.name = plumb_text(p, track->name),
		.device = track->device < p->devices_count ? &p->devices[track->device] : NULL,
		.process =
			track->process < p->processes_count ? &p->processes[track->process] : NULL,
		.peak_since_ns = PLUMB_UNKNOWN,
	};
	int64_t since;

	if (d.process && d.process->start_ns != PLUMB_UNKNOWN && memory->peak_ns != PLUMB_UNKNOWN &&
	    !__builtin_sub_overflow(memory->peak_ns, d.process->start_ns, &since) && since >= 0)
		d.peak_since_ns = since;
	return d;
}

struct plumb_report_place
plumb_report_memory_place(const struct plumb_report *report, const struct plumb_memory_row *row)
{
	const struct plumb_profile *p = report->profile;
	struct plumb_report_place place = { .pid = PLUMB_UNKNOWN, .rank = PLUMB_UNKNOWN };

	if (row->op != PLUMB_NONE) {
		place.name = plumb_frame_label(p, row->op);
		place.kind = "operator";
	}
	if (row->user != PLUMB_NONE) {
		struct plumb_user_place user = plumb_user_place(p, row->user);

		place.user_file = user.file;
		place.user_line = user.line;
		place.user_function = user.function;
		place.shown = user;
	}
	return place;
}

/* ---- order ---- */

/* The amount of the report's metric in ROW. */
static int64_t
amount_of(const struct plumb_report *report, const struct plumb_memory_row *row)
{
	return plumb_stat_amount(report->metric, plumb_memory_row_stat(row, report->metric));
}

static bool
matches_row(const struct plumb_report *report, const struct plumb_memory_row *row,
            const regex_t *filter)
{
	struct plumb_report_place place = plumb_report_memory_place(report, row);

	place.file = place.user_file;
	place.line = place.user_line;
	return plumb_report_matches(filter, &place);
}

int
plumb_report_memory_make(struct plumb_report *report, const regex_t *filter)
{
	struct plumb_memory_rows *rows = &report->memory;
	uint32_t kept = 0, of_device = 0;

	if (plumb_memory_rows_make(report->profile, report->user, rows) < 0)
		return -1;
	struct plumb_sort_item *items = calloc(rows->count + 1u, sizeof *items);
	struct plumb_sort_item *spare = calloc(rows->count + 1u, sizeof *spare);
	report->order = calloc(rows->count + 1u, sizeof *report->order);
	if (!items || !spare || !report->order) {
		free(items);
		free(spare);
		return -1;
	}
	for (uint32_t r = 0; r < rows->count; r++)
		if (!filter || matches_row(report, &rows->items[r], filter))
			items[kept++].index = r;
	for (int pass = 0; pass < 3; pass++) { /* the least important key first */
		for (uint32_t i = 0; i < kept; i++) {
			const struct plumb_memory_row *row = &rows->items[items[i].index];

			items[i].key = ~plumb_sort_signed(pass == 0   ? row->allocated.sum
			                                  : pass == 1 ? plumb_memory_row_live(row)
			                                              : amount_of(report, row));
		}
		plumb_sort(items, spare, kept);
	}
	for (uint32_t i = 0; i < kept; i++)
		items[i].key = rows->items[items[i].index].memory;
	plumb_sort(items, spare, kept);
	report->available = kept;
	for (uint32_t i = 0; i < kept; i++) {
		of_device = i && items[i].key == items[i - 1].key ? of_device + 1 : 0;
		if (!report->top || of_device < report->top)
			report->order[report->order_count++] = items[i].index;
	}
	free(items);
	free(spare);
	return 0;
}

/* The sum of METRIC over all rows of a device. */
int64_t
plumb_report_memory_whole(const struct plumb_report *report, uint32_t memory, uint32_t metric)
{
	struct plumb_stat whole = { 0 };

	for (uint32_t r = 0; r < report->memory.count; r++)
		if (report->memory.items[r].memory == memory)
			plumb_stat_merge(&whole,
			                 plumb_memory_row_stat(&report->memory.items[r], metric));
	return plumb_stat_amount(metric, &whole);
}

/* Shares are parts of the device's peak, or of all of the metric; NAN: a sum means nothing. */
double
plumb_report_memory_share(const struct plumb_report *report, const struct plumb_memory_row *row)
{
	double whole;

	if (plumb_metric_aggregation(report->metric) != PLUMB_SUM)
		return NAN;
	whole = report->metric == PLUMB_METRIC_MEM_HELD
	                ? (double)report->profile->memory[row->memory].peak_bytes
	                : (double)plumb_report_memory_whole(report, row->memory, report->metric);
	return whole > 0 ? (double)amount_of(report, row) / whole : NAN;
}

/* ---- as a table ---- */

void
plumb_report_memory_columns(struct plumb_answer *answer)
{
	static const struct {
		const char *name, *unit;
	} columns[] = {
		{ "device", NULL },         { "pid", NULL },
		{ "operator", NULL },       { "backward", NULL },
		{ "user_file", NULL },      { "user_line", NULL },
		{ "held_bytes", "byte" },   { "peak_bytes", "byte" },
		{ "allocations", "count" }, { "allocated_bytes", "byte" },
		{ "frees", "count" },       { "freed_bytes", "byte" },
		{ "live_bytes", "byte" },
	};

	for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
		plumb_answer_column(answer, columns[i].name, columns[i].unit,
		                    PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column_short(answer, "share", NULL, PLUMB_SOURCE_IS_DERIVED, 6);
}

void
plumb_report_memory_cells(const struct plumb_report *report, const struct plumb_memory_row *row,
                          struct plumb_answer *answer)
{
	const struct plumb_profile *p = report->profile;
	struct plumb_report_device device = plumb_report_device(p, &p->memory[row->memory]);
	struct plumb_report_place place = plumb_report_memory_place(report, row);

	plumb_answer_text(answer, device.name ? device.name : "?");
	plumb_answer_integer(answer, device.process ? device.process->pid : PLUMB_UNKNOWN);
	plumb_answer_text(answer, place.name);
	plumb_answer_integer(answer, row->backward);
	plumb_answer_text(answer, place.user_file);
	plumb_answer_integer(answer, place.user_line ? (int64_t)place.user_line : PLUMB_UNKNOWN);
	plumb_answer_integer(answer, row->held.sum);
	plumb_answer_integer(answer, row->peak.max);
	plumb_answer_integer(answer, (int64_t)row->allocated.count);
	plumb_answer_integer(answer, row->allocated.sum);
	plumb_answer_integer(answer, (int64_t)row->freed.count);
	plumb_answer_integer(answer, row->freed.sum);
	plumb_answer_integer(answer, plumb_memory_row_live(row));
	plumb_answer_number(answer, plumb_report_memory_share(report, row));
}

/* ---- JSON ---- */

/* Writes {metric: stat} for the metrics that were observed. */
static void
write_stats(struct plumb_json *json, const char *key, const struct plumb_memory_row *row)
{
	plumb_json_key_object(json, key);
	for (uint32_t m = 0; m < PLUMB_METRIC_COUNT; m++) {
		const struct plumb_stat *stat = plumb_memory_row_stat(row, m);

		if (!stat || !stat->count)
			continue;
		plumb_json_key(json, plumb_metrics[m].name);
		plumb_report_json_stat(json, m, stat);
	}
	plumb_json_end(json);
}

void
plumb_report_memory_json_rows(const struct plumb_report *report, struct plumb_json *json)
{
	plumb_json_array(json);
	for (uint32_t i = 0; i < report->order_count; i++) {
		const struct plumb_memory_row *row = &report->memory.items[report->order[i]];
		struct plumb_report_place place = plumb_report_memory_place(report, row);

		plumb_json_object(json);
		plumb_json_key_text(json, "name", place.name);
		plumb_json_key_text(json, "kind", place.kind);
		plumb_json_key_text(json, "file", NULL);
		plumb_json_key_quantity(json, "line", PLUMB_UNKNOWN);
		plumb_json_key_text(json, "user_file", place.user_file);
		plumb_json_key_line(json, "user_line", place.user_line);
		plumb_json_key_quantity(json, "memory", row->memory);
		plumb_json_key_bool(json, "backward", row->backward);
		plumb_json_key_quantity(json, "held_bytes", row->held.sum);
		plumb_json_key_quantity(json, "live_bytes", plumb_memory_row_live(row));
		write_stats(json, "exclusive", row);
		write_stats(json, "inclusive", row);
		plumb_json_key_number(json, "share", plumb_report_memory_share(report, row));
		plumb_json_end(json);
	}
	plumb_json_end(json);
}
