/* SPDX-License-Identifier: Apache-2.0 */
/* `plumb report --by memory`: who holds each device's memory at its peak, as text, CSV and JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/sort.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "model/metric.h"

/* ---- what a row is called ---- */

static const struct plumb_process *
process_of(const struct plumb_profile *p, const struct plumb_memory *memory)
{
	uint32_t process = p->tracks[memory->track].process;

	return process < p->processes_count ? &p->processes[process] : NULL;
}

/* When the peak was, counted from the beginning of the process's recording. */
static int64_t
since_start(const struct plumb_process *process, const struct plumb_memory *memory)
{
	int64_t since;

	if (!process || process->start_ns == PLUMB_UNKNOWN || memory->peak_ns == PLUMB_UNKNOWN ||
	    __builtin_sub_overflow(memory->peak_ns, process->start_ns, &since) || since < 0)
		return PLUMB_UNKNOWN;
	return since;
}

static const char *
device_name(const struct plumb_profile *p, const struct plumb_memory *memory)
{
	const char *name = plumb_text(p, p->tracks[memory->track].name);

	return name ? name : "?";
}

/* The GPU that it is, where its runtime described it. */
static const struct plumb_device *
device_of(const struct plumb_profile *p, const struct plumb_memory *memory)
{
	uint32_t device = p->tracks[memory->track].device;

	return device < p->devices_count ? &p->devices[device] : NULL;
}

static const char *
operator_name(const struct plumb_report *report, const struct plumb_memory_row *row)
{
	return row->op == PLUMB_NONE ? NULL : plumb_frame_label(report->profile, row->op);
}

static const char *
user_file(const struct plumb_report *report, const struct plumb_memory_row *row)
{
	return row->user == PLUMB_NONE
	               ? NULL
	               : plumb_text(report->profile, report->profile->frames[row->user].file);
}

static uint32_t
user_line(const struct plumb_report *report, const struct plumb_memory_row *row)
{
	return row->user == PLUMB_NONE ? 0 : report->profile->frames[row->user].line;
}

/* ---- order ---- */

/* What a device's rows have of the report's metric. */
static int64_t
amount(const struct plumb_report *report, const struct plumb_memory_row *row)
{
	return plumb_stat_amount(report->metric, plumb_memory_row_stat(row, report->metric));
}

/* The keys, the least important first. */
static int64_t
key_of(const struct plumb_report *report, const struct plumb_memory_row *row, int pass)
{
	return pass == 0   ? row->allocated.sum
	       : pass == 1 ? plumb_memory_row_live(row)
	                   : amount(report, row);
}

int
plumb_report_memory_order(struct plumb_report *report,
                          bool (*filter)(const void *data, const char *name, const char *file,
                                         uint32_t line),
                          const void *data)
{
	const struct plumb_memory_rows *rows = &report->memory;
	struct plumb_sort_item *items = calloc(rows->count + 1u, sizeof *items);
	struct plumb_sort_item *spare = calloc(rows->count + 1u, sizeof *spare);
	uint32_t kept = 0, of_device = 0;

	report->order = calloc(rows->count + 1u, sizeof *report->order);
	if (!items || !spare || !report->order) {
		free(items);
		free(spare);
		return -1;
	}
	for (uint32_t r = 0; r < rows->count; r++) {
		const struct plumb_memory_row *row = &rows->items[r];
		const char *name = operator_name(report, row);

		if (!filter ||
		    filter(data, name ? name : "", user_file(report, row), user_line(report, row)))
			items[kept++].index = r;
	}
	for (int pass = 0; pass < 3; pass++) {
		for (uint32_t i = 0; i < kept; i++)
			items[i].key = ~plumb_sort_signed(
				key_of(report, &rows->items[items[i].index], pass));
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

/* All that the rows of a device have of METRIC. */
static int64_t
whole_of(const struct plumb_report *report, uint32_t memory, uint32_t metric)
{
	struct plumb_stat whole = { 0 };

	for (uint32_t r = 0; r < report->memory.count; r++)
		if (report->memory.items[r].memory == memory)
			plumb_stat_merge(&whole,
			                 plumb_memory_row_stat(&report->memory.items[r], metric));
	return plumb_stat_amount(metric, &whole);
}

/* What shares are of: the device's peak, else all of the metric; NAN where a sum means nothing. */
static double
share_of(const struct plumb_report *report, const struct plumb_memory_row *row)
{
	double whole;

	if (plumb_metric_aggregation(report->metric) != PLUMB_SUM)
		return NAN;
	whole = report->metric == PLUMB_METRIC_MEM_HELD
	                ? (double)report->profile->memory[row->memory].peak_bytes
	                : (double)whole_of(report, row->memory, report->metric);
	return whole > 0 ? (double)amount(report, row) / whole : NAN;
}

/* ---- text ---- */

static void
print_number(FILE *out, const char *before, int64_t bytes)
{
	char text[PLUMB_FORMAT_SIZE];

	fprintf(out, "%s%s", before, plumb_format_bytes(text, bytes));
}

static void
print_count(FILE *out, const char *before, int64_t count)
{
	char text[PLUMB_FORMAT_SIZE];

	fprintf(out, "%s%s", before, plumb_format_count(text, count));
}

/* The device, whose it is, its peak and when. */
static void
print_peak(const struct plumb_profile *p, const struct plumb_memory *memory, FILE *out)
{
	const struct plumb_process *process = process_of(p, memory);
	const struct plumb_device *device = device_of(p, memory);
	const char *model = device ? plumb_text(p, device->name) : NULL;
	char text[PLUMB_FORMAT_SIZE];

	plumb_text_print(out, device_name(p, memory));
	if (model) {
		fputs(" (", out);
		plumb_text_print(out, model);
		fputc(')', out);
	}
	if (process && p->processes_count > 1)
		fprintf(out, " of process %" PRId64, process->pid);
	if (process && process->rank != PLUMB_UNKNOWN)
		fprintf(out, " (rank %" PRId64 ")", process->rank);
	print_number(out, ": peak ", memory->peak_bytes);
	if (since_start(process, memory) != PLUMB_UNKNOWN)
		fprintf(out, ", %s after the recording began",
		        plumb_format_time(text, since_start(process, memory)));
	fputc('\n', out);
}

/* What the allocator says of itself: what it took from the device and nobody used is lost to
 * others. */
static void
print_allocator(const struct plumb_memory *memory, FILE *out)
{
	int64_t used = memory->peak_allocated_bytes, taken = memory->peak_reserved_bytes;
	char text[PLUMB_FORMAT_SIZE];

	if (taken == PLUMB_UNKNOWN)
		return;
	print_number(out, "  at this peak its allocator had reserved ", taken);
	if (used != PLUMB_UNKNOWN && used <= taken) {
		print_number(out, ", of which ", taken - used);
		fprintf(out, " (%s) were unused",
		        plumb_format_share(text, (double)(taken - used), (double)taken));
	}
	print_number(out, "; the most that it ever reserved was ", memory->most_reserved_bytes);
	fputc('\n', out);
}

static void
print_device(const struct plumb_report *report, uint32_t index, FILE *out)
{
	const struct plumb_memory *memory = &report->profile->memory[index];

	print_peak(report->profile, memory, out);
	print_count(out, "  allocations ", memory->allocations);
	print_number(out, " (", memory->allocated_bytes);
	print_count(out, "), frees ", memory->frees);
	print_number(out, " (", memory->freed_bytes);
	print_number(out, "), live at the end ", memory->live_bytes);
	fputc('\n', out);
	print_allocator(memory, out);
}

static void
number_cell(struct plumb_table *table, int64_t bytes)
{
	char text[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, plumb_format_bytes(text, bytes));
}

static void
fill_row(struct plumb_table *table, const struct plumb_report *report,
         const struct plumb_memory_row *row)
{
	const char *name = operator_name(report, row), *file = user_file(report, row);
	char text[1500], number[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table, plumb_format_share(number, share_of(report, row), 1));
	number_cell(table, row->held.sum);
	if (report->metric == PLUMB_METRIC_MEM_PEAK)
		number_cell(table, row->peak.max);
	plumb_table_cell(table, plumb_format_count(number, (int64_t)row->allocated.count));
	number_cell(table, row->allocated.sum);
	number_cell(table, plumb_memory_row_live(row));
	snprintf(text, sizeof text, "%s%s", name ? name : PLUMB_DASH,
	         row->backward ? " [backward]" : "");
	plumb_table_cell(table, text);
	if (file)
		snprintf(text, sizeof text, "%s:%" PRIu32, file, user_line(report, row));
	plumb_table_cell(table, file ? text : NULL);
}

/* The rows FROM … TO of the order, all of one device. */
static int
print_rows(const struct plumb_report *report, uint32_t from, uint32_t to, FILE *out, int width)
{
	struct plumb_column columns[8];
	size_t count = 0;
	struct plumb_table *table;
	int result;

	columns[count++] = (struct plumb_column){ "share", PLUMB_RIGHT };
	columns[count++] = (struct plumb_column){ "held at peak", PLUMB_RIGHT };
	if (report->metric == PLUMB_METRIC_MEM_PEAK)
		columns[count++] = (struct plumb_column){ "own peak", PLUMB_RIGHT };
	columns[count++] = (struct plumb_column){ "allocations", PLUMB_RIGHT };
	columns[count++] = (struct plumb_column){ "allocated", PLUMB_RIGHT };
	columns[count++] = (struct plumb_column){ "live at end", PLUMB_RIGHT };
	columns[count++] = (struct plumb_column){ "operator", PLUMB_SHORTEN_MIDDLE };
	columns[count++] = (struct plumb_column){ "line of your code", PLUMB_SHORTEN_START };
	table = plumb_table_new(columns, count);
	for (uint32_t i = from; i < to; i++)
		fill_row(table, report, &report->memory.items[report->order[i]]);
	result = plumb_table_print(table, out, width, plumb_terminal_colour(out));
	plumb_table_free(table);
	return result;
}

/* What the rows do not say: bytes at the peak that no context holds (what was lost is in the
 * ledger), and rows that were left out. */
static void
print_rest(const struct plumb_report *report, uint32_t memory, uint32_t shown, FILE *out)
{
	int64_t peak = report->profile->memory[memory].peak_bytes;
	int64_t held = whole_of(report, memory, PLUMB_METRIC_MEM_HELD);
	uint32_t rows = 0;
	char text[PLUMB_FORMAT_SIZE];

	for (uint32_t r = 0; r < report->memory.count; r++)
		rows += report->memory.items[r].memory == memory;
	if (report->top && rows > shown && shown == report->top)
		fprintf(out, "%" PRIu32 " more (--top 0 shows all)\n", rows - shown);
	if (peak != PLUMB_UNKNOWN && held < peak) {
		print_number(out, "not attributed to any row: ", peak - held);
		fprintf(out, " (%s)\n",
		        plumb_format_share(text, (double)(peak - held), (double)peak));
	}
}

int
plumb_report_memory_text(const struct plumb_report *report, FILE *out, int width)
{
	uint32_t at = 0;
	int result = 0;

	for (uint32_t m = 0; !result && m < report->profile->memory_count; m++) {
		uint32_t from = at;

		while (at < report->order_count &&
		       report->memory.items[report->order[at]].memory == m)
			at++;
		fputc('\n', out);
		print_device(report, m, out);
		if (at == from)
			continue;
		fputc('\n', out);
		result = print_rows(report, from, at, out, width);
		print_rest(report, m, at - from, out);
	}
	return result;
}

/* ---- CSV ---- */

int
plumb_report_memory_csv(const struct plumb_report *report, FILE *out)
{
	const struct plumb_profile *p = report->profile;

	fputs("device,pid,operator,backward,user_file,user_line,held_bytes,peak_bytes,allocations,"
	      "allocated_bytes,frees,freed_bytes,live_bytes,share\n",
	      out);
	for (uint32_t i = 0; i < report->order_count; i++) {
		const struct plumb_memory_row *row = &report->memory.items[report->order[i]];
		const struct plumb_memory *memory = &p->memory[row->memory];
		const struct plumb_process *process = process_of(p, memory);
		double share = share_of(report, row);

		plumb_report_csv_text(out, device_name(p, memory));
		if (process)
			fprintf(out, "%" PRId64, process->pid);
		fputc(',', out);
		plumb_report_csv_text(out, operator_name(report, row));
		fprintf(out, "%d,", row->backward);
		plumb_report_csv_text(out, user_file(report, row));
		plumb_report_csv_line(out, user_line(report, row));
		fprintf(out,
		        "%" PRId64 ",%" PRId64 ",%" PRIu64 ",%" PRId64 ",%" PRIu64 ",%" PRId64 ",",
		        row->held.sum, row->peak.max, row->allocated.count, row->allocated.sum,
		        row->freed.count, row->freed.sum);
		if (plumb_memory_row_live(row) != PLUMB_UNKNOWN)
			fprintf(out, "%" PRId64, plumb_memory_row_live(row));
		fputc(',', out);
		if (isfinite(share))
			fprintf(out, "%.6g", share);
		fputc('\n', out);
	}
	return ferror(out) ? -1 : 0;
}

/* ---- JSON ---- */

void
plumb_report_memory_json(const struct plumb_report *report, struct plumb_json *json)
{
	const struct plumb_profile *p = report->profile;

	plumb_json_array(json);
	for (uint32_t m = 0; m < p->memory_count; m++) {
		const struct plumb_memory *memory = &p->memory[m];
		const struct plumb_process *process = process_of(p, memory);
		uint32_t device = p->tracks[memory->track].device;

		plumb_json_object(json);
		plumb_json_key_text(json, "name", plumb_text(p, p->tracks[memory->track].name));
		plumb_json_key_quantity(json, "device",
		                        device < p->devices_count ? (int64_t)device
		                                                  : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "pid", process ? process->pid : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "rank", process ? process->rank : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "peak_bytes", memory->peak_bytes);
		plumb_json_key_quantity(json, "peak_ns", since_start(process, memory));
		plumb_json_key_quantity(json, "allocations", memory->allocations);
		plumb_json_key_quantity(json, "allocated_bytes", memory->allocated_bytes);
		plumb_json_key_quantity(json, "frees", memory->frees);
		plumb_json_key_quantity(json, "freed_bytes", memory->freed_bytes);
		plumb_json_key_quantity(json, "live_bytes", memory->live_bytes);
		plumb_json_key_quantity(json, "peak_allocated_bytes", memory->peak_allocated_bytes);
		plumb_json_key_quantity(json, "peak_reserved_bytes", memory->peak_reserved_bytes);
		plumb_json_key_quantity(json, "most_reserved_bytes", memory->most_reserved_bytes);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

/* {metric: stat}, of those that were observed. */
static void
write_stats(struct plumb_json *json, const char *key, const struct plumb_memory_row *row)
{
	plumb_json_key(json, key);
	plumb_json_object(json);
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
		uint32_t line = user_line(report, row);

		plumb_json_object(json);
		plumb_json_key_text(json, "name", operator_name(report, row));
		plumb_json_key_text(json, "kind", row->op == PLUMB_NONE ? NULL : "operator");
		plumb_json_key_text(json, "file", NULL);
		plumb_json_key_quantity(json, "line", PLUMB_UNKNOWN);
		plumb_json_key_text(json, "user_file", user_file(report, row));
		plumb_json_key_quantity(json, "user_line", line ? (int64_t)line : PLUMB_UNKNOWN);
		plumb_json_key_quantity(json, "memory", row->memory);
		plumb_json_key(json, "backward");
		plumb_json_bool(json, row->backward);
		plumb_json_key_quantity(json, "held_bytes", row->held.sum);
		plumb_json_key_quantity(json, "live_bytes", plumb_memory_row_live(row));
		write_stats(json, "exclusive", row);
		write_stats(json, "inclusive", row);
		plumb_json_key(json, "share");
		plumb_json_number(json, share_of(report, row));
		plumb_json_end(json);
	}
	plumb_json_end(json);
}
