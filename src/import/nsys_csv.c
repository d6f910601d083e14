/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys stats --report cuda_gpu_trace --format csv (before 2023 the report is called gputrace): text
 * of nsys, the heading, whose units are in it, and a row for each kernel, copy and set, to the next
 * empty line.
 */
#include <ctype.h>
#include <stdlib.h>

#include "base/csv.h"
#include "import/gpu_table.h"
#include "import/import.h"

/* "Start (ns),Duration (ns),CorrId,GrdX,…" */
static bool
is_heading(struct plumb_slice line)
{
	const char *quote = line.bytes && *line.at == '"' ? "\"" : "";
	struct plumb_slice rest = { line.at + strlen(quote), line.bytes - strlen(quote) };
	return plumb_slice_begins(rest, "Start") && memmem(line.at, line.bytes, "Duration", 8) &&
	       memmem(line.at, line.bytes, "CorrId", 6) && memmem(line.at, line.bytes, "GrdX", 4);
}

/* "Time (%),Total Time (ns),Instances,…": sums over many kernels, copies or calls, as CSV or as
 * plain text. */
static bool
is_summary(struct plumb_slice line)
{
	const char *share = memmem(line.at, line.bytes, "(%)", 3);
	const char *end = line.at + line.bytes;
	return share && memmem(line.at, (size_t)(share - line.at), "Time", 4) &&
	       memmem(share, (size_t)(end - share), "Total Time", 10);
}

static int
read_line(struct plumb_csv *csv, struct plumb_gpu_table *table, bool *inside,
          struct plumb_slice line, struct plumb_error *error)
{
	bool heading = is_heading(line);
	const char *why = NULL;
	if (!heading && (!*inside || !line.bytes)) {
		*inside = false; /* another report's, or text */
		return 0;
	}
	if (!heading && !isdigit((unsigned char)*line.at) && *line.at != '"' && *line.at != '-')
		return 0;
	int code = plumb_csv_split(csv, error);
	if (code < 0)
		return code;
	if (!heading) {
		why = plumb_gpu_table_row(table, csv->cells, csv->count);
	} else if (plumb_gpu_table_header(table, csv->cells, csv->count)) {
		*inside = true;
		if (table->process == PLUMB_NONE)
			table->process = plumb_trace_process(table->trace, PLUMB_UNKNOWN);
	} else {
		why = "the heading needs the columns Start, Duration and Name";
	}
	return why ? plumb_csv_fail(csv, error, "%s", why) : 0;
}

static int
read(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct plumb_gpu_table *table = calloc(1, sizeof *table);
	struct plumb_csv csv;
	struct plumb_slice line;
	bool inside = false, summed = false;
	if (!table)
		return plumb_fail(error, PLUMB_ESYSTEM, "%s: not enough memory", file->path);
	table->trace = trace;
	table->process = PLUMB_NONE;
	int code = plumb_csv_open(&csv, file->input, error);
	while (!code && (code = plumb_csv_line(&csv, &line, error)) > 0) {
		summed |= is_summary(line);
		code = read_line(&csv, table, &inside, line, error);
	}
	if (!code && summed && table->process == PLUMB_NONE)
		code = plumb_fail(error, PLUMB_EINPUT,
		                  "%s: this summary of Nsight Systems has no single kernels; "
		                  "write a trace with nsys stats --report cuda_gpu_trace --format "
		                  "csv",
		                  file->path);
	plumb_csv_close(&csv);
	free(table);
	return code;
}

static int
probe(const struct plumb_import_file *file)
{
	const char *at = file->head;
	int score = 0;
	while (at) {
		const char *end = strchr(at, '\n');
		size_t bytes = end ? (size_t)(end - at) : strlen(at);
		if (is_heading((struct plumb_slice){ at, bytes }))
			return 90;
		if (is_summary((struct plumb_slice){ at, bytes }))
			score = 50;
		at = end ? end + 1 : NULL;
	}
	return score;
}

const struct plumb_format plumb_format_nsys_csv = {
	.name = "nsys-csv",
	.title = "nsys stats cuda_gpu_trace CSV",
	.probe = probe,
	.read = read,
};
