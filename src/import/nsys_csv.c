/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nsys stats --report cuda_gpu_trace --format csv (before 2023 the report is called gputrace): text of nsys, the
 * heading, whose units are in it, and a row for each kernel, copy and set, to the next empty line.
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
		why = "a heading without the columns Start, Duration and Name";
	}
	return why ? plumb_csv_fail(csv, error, "%s", why) : 0;
}

static int
read(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct plumb_gpu_table *table = calloc(1, sizeof *table);
	struct plumb_csv csv;
	struct plumb_slice line;
	bool inside = false;
	if (!table)
		return plumb_fail(error, PLUMB_ESYSTEM, "%s: memory is out", file->path);
	table->trace = trace;
	table->process = PLUMB_NONE;
	int code = plumb_csv_open(&csv, file->input, error);
	while (!code && (code = plumb_csv_line(&csv, &line, error)) > 0)
		code = read_line(&csv, table, &inside, line, error);
	plumb_csv_close(&csv);
	free(table);
	return code;
}

static int
probe(const struct plumb_import_file *file)
{
	const char *at = file->head;
	while (at) {
		const char *end = strchr(at, '\n');
		size_t bytes = end ? (size_t)(end - at) : strlen(at);
		if (is_heading((struct plumb_slice){ at, bytes }))
			return 90;
		at = end ? end + 1 : NULL;
	}
	return 0;
}

const struct plumb_format plumb_format_nsys_csv = {
	.name = "nsys-csv",
	.title = "nsys stats cuda_gpu_trace CSV",
	.probe = probe,
	.read = read,
};
