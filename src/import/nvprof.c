/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvprof --print-gpu-trace (and --print-api-trace), as CSV or as plain text, with whatever the
 * program and nvprof printed around it:
 *
 *	==4711== NVPROF is profiling process 4711, command: ./a.out
 *	==4711== Profiling result:
 *	"Start","Duration","Grid X",…,"Name"	   Start  Duration     Grid Size …  Name
 *	ms,us,,…,				182.96ms  6.4049ms             - …  [memcpy HtoD]
 *	182.96,6404.9,,…,"[CUDA memcpy HtoD]"
 *
 * Units follow the greatest number of a run. Plain text stands under its headings: to the right,
 * the name to the left.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/csv.h"
#include "import/gpu_table.h"
#include "import/import.h"

#define COLUMNS_MAX 32

enum state { OUTSIDE, TABLE, TEXT_TABLE };

struct reader {
	struct plumb_csv csv;
	struct plumb_gpu_table table;
	enum state state;
	bool traced, summed; /* a table of single events was met, of sums */
	uint32_t count; /* of a text table: columns, and where each ends; the last one: begins */
	size_t edge[COLUMNS_MAX];
};

/* ---- what nvprof says ---- */

static const char heading[] = "\"Start\",\"Duration\",";

/* "==4711== NVPROF is profiling process 4711, command: ./a.out": from here on it is about 4711. */
static void
read_notice(struct reader *reader, struct plumb_slice line)
{
	struct plumb_trace *trace = reader->table.trace;
	static const char command[] = ", command: ";
	const char *end = line.at + line.bytes, *found;
	const char *close = memmem(line.at + 2, line.bytes - 2, "==", 2);
	int64_t pid;
	reader->state = OUTSIDE;
	if (!close ||
	    !plumb_slice_decimal((struct plumb_slice){ line.at + 2, (size_t)(close - line.at - 2) },
	                         0, &pid))
		return;
	reader->table.process = plumb_trace_process(trace, pid);
	found = memmem(line.at, line.bytes, command, sizeof command - 1);
	if (!found || !memmem(line.at, line.bytes, "NVPROF is profiling", 19) ||
	    reader->table.process == PLUMB_NONE)
		return;
	found += sizeof command - 1;
	uint32_t text =
		plumb_builder_command(plumb_trace_builder(trace), found, (size_t)(end - found));
	plumb_builder_get_process(plumb_trace_builder(trace), reader->table.process)->command =
		text;
}

/* The heading of nvprof's summary, which has no single events: as text or CSV, with or without
 * "Type" before it. */
static bool
is_summary(struct plumb_slice line)
{
	static const char *const words[] = { "Time(%)", "Calls", "Avg", "Min", "Max", "Name" };
	const char *at = line.at, *end = line.at + line.bytes;
	for (size_t i = 0; at && i < sizeof words / sizeof *words; i++)
		at = memmem(at, (size_t)(end - at), words[i], strlen(words[i]));
	return at != NULL;
}

/* ---- CSV ---- */

/* A table of a process that nothing names. */
static void
begin_table(struct reader *reader, enum state state)
{
	reader->state = state;
	reader->traced = true;
	if (reader->table.process == PLUMB_NONE)
		reader->table.process = plumb_trace_process(reader->table.trace, PLUMB_UNKNOWN);
}

static int
read_heading(struct reader *reader, struct plumb_error *error)
{
	struct plumb_csv *csv = &reader->csv;
	struct plumb_slice line;
	int code = plumb_csv_split(csv, error);
	if (code < 0)
		return code;
	if (!plumb_gpu_table_header(&reader->table, csv->cells, csv->count))
		return plumb_csv_fail(csv, error, "the heading has no column Name");
	code = plumb_csv_line(csv, &line, error);
	if (code <= 0)
		return code;
	code = plumb_csv_split(csv, error);
	if (code < 0)
		return code;
	if (!plumb_gpu_table_units(&reader->table, csv->cells, csv->count))
		return plumb_csv_fail(csv, error, "the row of units is missing below the heading");
	begin_table(reader, TABLE);
	return 0;
}

/* ---- plain text ---- */

/* The text table's columns, when LINE is its heading: names with two blanks or more between them.
 * The columns of the table before stay as they are when it is none. */
static bool
read_text_heading(struct reader *reader, struct plumb_slice line)
{
	struct plumb_slice cells[COLUMNS_MAX];
	size_t edge[COLUMNS_MAX];
	const char *at = line.at, *end = line.at + line.bytes;
	uint32_t count = 0;
	if (!memmem(line.at, line.bytes, "  Duration  ", 12))
		return false;
	while (at < end && count < COLUMNS_MAX) {
		while (at < end && *at == ' ')
			at++;
		const char *gap = at < end ? memmem(at, (size_t)(end - at), "  ", 2) : NULL;
		const char *behind = gap ? gap : end;
		while (behind > at && isspace((unsigned char)behind[-1]))
			behind--;
		if (behind == at)
			break;
		cells[count] = (struct plumb_slice){ at, (size_t)(behind - at) };
		edge[count++] = (size_t)(behind - line.at);
		at = gap ? gap : end;
	}
	if (count < 3 || !plumb_slice_is(cells[0], "Start") ||
	    !plumb_slice_is(cells[1], "Duration") || !plumb_slice_is(cells[count - 1], "Name") ||
	    !plumb_gpu_table_header(&reader->table, cells, count))
		return false;
	edge[count - 1] = (size_t)(cells[count - 1].at - line.at);
	memcpy(reader->edge, edge, count * sizeof *edge);
	reader->count = count;
	return true;
}

/* "182.96ms …" */
static bool
is_text_row(struct plumb_slice line)
{
	const char *at = line.at, *end = line.at + line.bytes;
	while (at < end && *at == ' ')
		at++;
	if (at == end || !isdigit((unsigned char)*at))
		return false;
	while (at < end && strchr("0123456789.+-e", *at))
		at++;
	if (at < end && strchr("mun", *at))
		at++;
	return end - at >= 2 && at[0] == 's' && at[1] == ' ';
}

static const char *
read_text_row(struct reader *reader, struct plumb_slice line)
{
	struct plumb_slice cells[COLUMNS_MAX];
	uint32_t last = reader->count - 1;
	size_t from = 0;
	if (reader->edge[last] >= line.bytes)
		return "the row ends before the table's last column";
	for (uint32_t i = 0; i < last; i++) {
		size_t to = reader->edge[i];
		cells[i] = (struct plumb_slice){ line.at + from, to - from };
		while (from < to && line.at[from] == ' ')
			from++;
		if (line.at[to] != ' ' || from == to)
			return "the row does not fit the columns of the table";
		from = to;
	}
	cells[last] = (struct plumb_slice){ line.at + from, line.bytes - from };
	return plumb_gpu_table_row(&reader->table, cells, reader->count);
}

/* ---- the file ---- */

static int
read_line(struct reader *reader, struct plumb_slice line, struct plumb_error *error)
{
	struct plumb_csv *csv = &reader->csv;
	const char *why = NULL;
	if (plumb_slice_begins(line, "==")) {
		read_notice(reader, line);
		return 0;
	}
	if (plumb_slice_begins(line, heading))
		return read_heading(reader, error);
	if (line.bytes && *line.at == '"')
		reader->state = OUTSIDE; /* another table */
	if (is_summary(line)) {
		reader->state = OUTSIDE;
		reader->summed = true;
		return 0;
	}
	if (read_text_heading(reader, line)) {
		begin_table(reader, TEXT_TABLE);
	} else if (reader->state == TEXT_TABLE && is_text_row(line)) {
		why = read_text_row(reader, line);
	} else if (reader->state == TABLE && line.bytes &&
	           (isdigit((unsigned char)*line.at) || *line.at == '-')) {
		int code = plumb_csv_split(csv, error);
		if (code < 0)
			return code;
		why = plumb_gpu_table_row(&reader->table, csv->cells, csv->count);
	}
	return why ? plumb_csv_fail(csv, error, "%s", why) : 0;
}

static int
read(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader *reader = calloc(1, sizeof *reader);
	struct plumb_slice line;
	if (!reader)
		return plumb_fail(error, PLUMB_ESYSTEM, "%s: not enough memory", file->path);
	reader->table = (struct plumb_gpu_table){
		.trace = trace,
		.process = PLUMB_NONE,
		.binary = true,
	};
	int code = plumb_csv_open(&reader->csv, file->input, error);
	while (!code && (code = plumb_csv_line(&reader->csv, &line, error)) > 0)
		code = read_line(reader, line, error);
	if (!code && reader->summed && !reader->traced)
		code = plumb_fail(error, PLUMB_EINPUT,
		                  "%s: this summary of nvprof has no single kernels; record with "
		                  "nvprof --print-gpu-trace",
		                  file->path);
	plumb_csv_close(&reader->csv);
	free(reader);
	return code;
}

static int
probe(const struct plumb_import_file *file)
{
	const char *at = strstr(file->head, "  Duration  ");
	if (strstr(file->head, heading))
		return 90;
	while (at) { /* both in one line: "   Start  Duration  …  Name" */
		const char *end = strchr(at, '\n');
		const char *name = strstr(at, "  Name");
		const char *begin = memrchr(file->head, '\n', (size_t)(at - file->head));
		begin = begin ? begin + 1 : file->head;
		begin += strspn(begin, " ");
		if (name && (!end || name < end) && !strncmp(begin, "Start  ", 7))
			return 90;
		at = strstr(at + 1, "  Duration  ");
	}
	const char *share = strstr(file->head, "Time(%)");
	const char *end = share ? strchr(share, '\n') : NULL;
	if (end && is_summary((struct plumb_slice){ share, (size_t)(end - share) }))
		return 60;
	return strstr(file->head, "NVPROF is profiling process ") ? 60 : 0;
}

const struct plumb_format plumb_format_nvprof = {
	.name = "nvprof",
	.title = "nvprof --print-gpu-trace",
	.probe = probe,
	.read = read,
};
