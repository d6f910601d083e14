/* SPDX-License-Identifier: Apache-2.0 */
/* `plumb report --by memory` for people. */
#include <inttypes.h>

#include "base/format.h"
#include "cli/report/text.h"
#include "cli/table.h"
#include "cli/terminal.h"

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

/* The device, its process, its peak, and when that was. */
static void
print_peak(const struct plumb_profile *p, const struct plumb_memory *memory, FILE *out)
{
	struct plumb_report_device at = plumb_report_device(p, memory);
	const struct plumb_process *process = at.process;
	const char *model = at.device ? plumb_text(p, at.device->name) : NULL;
	char text[PLUMB_FORMAT_SIZE];

	plumb_text_print(out, at.name ? at.name : "?");
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
	if (at.peak_since_ns != PLUMB_UNKNOWN)
		fprintf(out, ", %s after the recording began",
		        plumb_format_time(text, at.peak_since_ns));
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
	struct plumb_report_place place = plumb_report_memory_place(report, row);
	char text[1500], number[PLUMB_FORMAT_SIZE];

	plumb_table_cell(table,
	                 plumb_format_share(number, plumb_report_memory_share(report, row), 1));
	number_cell(table, row->held.sum);
	if (report->metric == PLUMB_METRIC_MEM_PEAK)
		number_cell(table, row->peak.max);
	plumb_table_cell(table, plumb_format_count(number, (int64_t)row->allocated.count));
	number_cell(table, row->allocated.sum);
	number_cell(table, plumb_memory_row_live(row));
	snprintf(text, sizeof text, "%s%s", place.name ? place.name : PLUMB_DASH,
	         row->backward ? " [backward]" : "");
	plumb_table_cell(table, text);
	plumb_table_cell(table, plumb_report_user_text(&place, text, sizeof text));
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
	columns[count++] = (struct plumb_column){ "operator", PLUMB_SHORTEN_NAME };
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
	int64_t held = plumb_report_memory_whole(report, memory, PLUMB_METRIC_MEM_HELD);
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
