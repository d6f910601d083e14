/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of GPU work, a row for each kernel, copy and set, as two tools print them, with whatever
 * the program and the tool printed around them.
 *
 * nvprof --print-gpu-trace (and --print-api-trace), as CSV or as plain text:
 *
 *	==4711== NVPROF is profiling process 4711, command: ./a.out
 *	==4711== Profiling result:
 *	"Start","Duration","Grid X",…,"Name"
 *	ms,us,,…,
 *	182.96,6404.9,,…,"[CUDA memcpy HtoD]"
 *
 *	   Start  Duration     Grid Size …  Name
 *	182.96ms  6.4049ms             - …  [CUDA memcpy HtoD]
 *
 * Units follow the greatest number of a run.
 *
 * nsys stats --report cuda_gpu_trace --format csv (before 2023 the report is called gputrace): the
 * heading, whose units are in it, and rows to the next empty line.
 */
#include <ctype.h>
#include <stdio.h>

#include "import/copies.h"
#include "import/text_table.h"

#define DEVICES_MAX 64

enum state { OUTSIDE, NSYS, NVPROF, NVPROF_TEXT };

struct row {
	struct plumb_slice name, from, to, device;
	int64_t start, duration, bytes, migrated, context, stream, correlation;
	struct plumb_trace_launch launch;
};

#define AT(member) offsetof(struct row, member)

/* nvprof --csv, its plain text, Nsight Systems */
static const struct plumb_text_column columns[] = {
	{ "Name", PLUMB_AS_WORD, AT(name), "has no name", PLUMB_IN_EACH_ROW },
	{ "Start", PLUMB_AS_TIME, AT(start), "its start is not a time with a known unit",
	  PLUMB_IN_EACH_ROW },
	{ "Duration", PLUMB_AS_TIME, AT(duration), "its duration is not a time with a known unit",
	  PLUMB_IN_HEADING },
	{ "Grid X|Grid Size|GrdX", PLUMB_AS_THREE, AT(launch.grid) },
	{ "Grid Y|GrdY", PLUMB_AS_NUMBER, AT(launch.grid[1]) },
	{ "Grid Z|GrdZ", PLUMB_AS_NUMBER, AT(launch.grid[2]) },
	{ "Block X|Block Size|BlkX", PLUMB_AS_THREE, AT(launch.block) },
	{ "Block Y|BlkY", PLUMB_AS_NUMBER, AT(launch.block[1]) },
	{ "Block Z|BlkZ", PLUMB_AS_NUMBER, AT(launch.block[2]) },
	{ "Registers Per Thread|Regs*|Reg/Trd", PLUMB_AS_NUMBER, AT(launch.registers) },
	{ "Static SMem|SSMem*|StcSMem", PLUMB_AS_BYTES, AT(launch.static_shared) },
	{ "Dynamic SMem|DSMem*|DymSMem", PLUMB_AS_BYTES, AT(launch.dynamic_shared) },
	{ "Size|Bytes", PLUMB_AS_BYTES, AT(bytes) },
	{ "Unified Memory", PLUMB_AS_BYTES, AT(migrated) }, /* of others an address */
	{ "SrcMemType|SrcMemKd", PLUMB_AS_WORD, AT(from) },
	{ "DstMemType|DstMemKd", PLUMB_AS_WORD, AT(to) },
	{ "Device", PLUMB_AS_WORD, AT(device) },
	{ "Context|Ctx", PLUMB_AS_NUMBER, AT(context) },
	{ "Stream|Strm", PLUMB_AS_NUMBER, AT(stream) },
	{ "Correlation_ID|CorrId", PLUMB_AS_NUMBER, AT(correlation) },
};

struct reader {
	struct plumb_text_table table;
	struct plumb_trace *trace;
	uint32_t process; /* of the rows; PLUMB_NONE: nothing names it */
	enum state state;
	enum state summed;             /* whose table of sums was met */
	bool traced;                   /* a table of single events was met */
	char devices[DEVICES_MAX][64]; /* names of those that have no number */
};

/* ---- rows ---- */

/* Which of the devices without a number has NAME; the last one has all that find no room. */
static uint32_t
find_nameless(struct reader *reader, struct plumb_slice name)
{
	char text[sizeof reader->devices[0]];
	uint32_t i = 0;
	snprintf(text, sizeof text, "%.*s", (int)(name.bytes < sizeof text ? name.bytes : 0),
	         name.at);
	while (i < DEVICES_MAX - 1 && *reader->devices[i] && strcmp(reader->devices[i], text) != 0)
		i++;
	memcpy(reader->devices[i], text, sizeof text);
	return i;
}

/* "Tesla V100 (1)". Devices without a number are told by their names. */
static uint32_t
device_of(struct reader *reader, struct plumb_slice name)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	int64_t ordinal = PLUMB_UNKNOWN, key;
	bool numbered = plumb_text_cut_number(&name, '(', ')', &ordinal);
	name = plumb_text_trim(name);
	key = numbered || !name.bytes ? ordinal : -2 - (int64_t)find_nameless(reader, name);
	uint32_t id = plumb_trace_device(reader->trace, reader->process, key, NULL);
	if (id == PLUMB_NONE || !name.bytes)
		return id;
	uint32_t text = plumb_builder_string(builder, name.at, name.bytes);
	struct plumb_device *device = plumb_builder_get_device(builder, id);
	device->ordinal = ordinal;
	device->name = text;
	return id;
}

/* NAME without the number that nvprof writes after it: "kernel(int) [12]". If the table has no
 * column for the correlation, the number is the correlation. */
static struct plumb_slice
cut_correlation(struct plumb_slice name, int64_t *correlation)
{
	struct plumb_slice cut = name;
	int64_t number;
	if (!plumb_text_cut_number(&cut, '[', ']', &number) || cut.bytes < 2 ||
	    cut.at[cut.bytes - 1] != ' ')
		return name;
	if (*correlation == PLUMB_UNKNOWN)
		*correlation = number;
	return (struct plumb_slice){ cut.at, cut.bytes - 1 };
}

/* A driver or runtime call: "cudaLaunchKernel (kernel(int) [12])". */
static void
take_call(struct reader *reader, struct row *row, int64_t end)
{
	struct plumb_slice name = row->name;
	const char *open = memmem(name.at, name.bytes, " (", 2);
	const char *close = name.at + name.bytes - 1;
	if (open && *close == ')') {
		cut_correlation(plumb_text_between(open + 2, close), &row->correlation);
		name = plumb_text_between(name.at, open);
	}
	plumb_trace_host(reader->trace,
	                 plumb_trace_thread(reader->trace, reader->process, PLUMB_UNKNOWN),
	                 plumb_trace_frame(reader->trace, PLUMB_FRAME_GPU_API, name), row->start,
	                 end, row->correlation > 0 ? (uint64_t)row->correlation : 0);
}

/* With the kinds of memory, where the table has them: "Memcpy HtoD (Pinned -> Device)". */
static uint32_t
copy_frame(struct reader *reader, const struct row *row)
{
	struct plumb_slice name = row->name, from = row->from, to = row->to;
	char text[200];
	if (name.bytes < 100 && from.bytes && from.bytes < 32 && to.bytes < 32) {
		int bytes = snprintf(text, sizeof text, "%.*s (%.*s%s%.*s)", (int)name.bytes,
		                     name.at, (int)from.bytes, from.at, to.bytes ? " -> " : "",
		                     (int)to.bytes, to.at);
		name = (struct plumb_slice){ text, (size_t)bytes };
	}
	return plumb_import_copy(reader->trace, name);
}

/* "[CUDA memcpy HtoD]", "[Unified Memory Memset]" */
static bool
is_copy(struct plumb_slice name)
{
	char text[256];
	snprintf(text, sizeof text, "%.*s", (int)(name.bytes < sizeof text ? name.bytes : 0),
	         name.at);
	return strcasestr(text, "memcpy") || strcasestr(text, "memset");
}

static void
take_work(struct reader *reader, struct row *row, int64_t end)
{
	struct plumb_trace *trace = reader->trace;
	struct plumb_trace_work work = {
		.start_ns = row->start,
		.end_ns = end,
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	if (*row->name.at == '[') {
		work.bytes = row->bytes != PLUMB_UNKNOWN ? row->bytes : row->migrated;
		work.frame = copy_frame(reader, row);
	} else {
		work.launch = &row->launch;
		work.frame = plumb_trace_frame(trace, PLUMB_FRAME_KERNEL,
		                               cut_correlation(row->name, &row->correlation));
	}
	work.correlation = row->correlation > 0 ? (uint64_t)row->correlation : 0;
	work.track = plumb_trace_stream(trace, reader->process, device_of(reader, row->device),
	                                row->context, row->stream);
	plumb_trace_work(trace, &work);
}

static int
read_row(struct reader *reader, struct plumb_slice line, struct plumb_error *error)
{
	struct row row = { .launch = plumb_trace_no_launch };
	int64_t end;
	int code = plumb_text_table_row(&reader->table, line, &row, error);
	if (code)
		return code;
	bool timed = row.duration != PLUMB_UNKNOWN;
	if (!timed || __builtin_add_overflow(row.start, row.duration, &end))
		end = PLUMB_UNKNOWN;
	bool bracket = *row.name.at == '[';
	if (!bracket && !row.device.bytes)
		take_call(reader, &row, end);
	else if (bracket && (!timed || !is_copy(row.name)))
		plumb_trace_count_slice(reader->trace, PLUMB_FATE_UNUSED, row.name, 1);
	else
		take_work(reader, &row, end);
	return 0;
}

/* ---- what a line is ---- */

/* The heading of which table; OUTSIDE: of none. */
static enum state
heading_of(struct plumb_slice line)
{
	static const char *const words[] = { "Start  ", "Duration  ", "  Name", NULL };
	struct plumb_slice text = plumb_text_trim(line);
	const char *end = text.at + text.bytes;
	if ((plumb_slice_begins(line, "Start") || plumb_slice_begins(line, "\"Start")) &&
	    plumb_text_has(line, "Duration") && plumb_text_has(line, "CorrId") &&
	    plumb_text_has(line, "GrdX"))
		return NSYS;
	if (plumb_slice_begins(line, "\"Start\",\"Duration\","))
		return NVPROF;
	return plumb_slice_begins(text, words[0]) && plumb_text_has_all(text, words) &&
	                       plumb_slice_begins(
				       plumb_text_trim(plumb_text_between(text.at + 5, end)),
				       words[1]) &&
	                       !memcmp(end - 6, words[2], 6)
	               ? NVPROF_TEXT
	               : OUTSIDE;
}

/* Whose heading of sums over many kernels, copies or calls it is, as text or CSV: "Time
 * (%),Total Time (ns),Instances,…", "Time(%)  Time  Calls  Avg  Min  Max  Name". */
static enum state
summary_of(struct plumb_slice line)
{
	static const char *const nsys[] = { "Time", "(%)", "Total Time", NULL };
	static const char *const nvprof[] = {
		"Time(%)", "Calls", "Avg", "Min", "Max", "Name", NULL
	};
	return plumb_text_has_all(line, nvprof) ? NVPROF
	       : plumb_text_has_all(line, nsys) ? NSYS
	                                        : OUTSIDE;
}

/* "182.96ms …" */
static bool
is_text_row(struct plumb_slice line)
{
	const char *at = plumb_text_trim(line).at, *end = line.at + line.bytes;
	if (at == end || !isdigit((unsigned char)*at))
		return false;
	while (at < end && strchr("0123456789.,+-e", *at))
		at++;
	if (at < end && strchr("mun", *at))
		at++;
	return end - at >= 2 && at[0] == 's' && at[1] == ' ';
}

static bool
is_row(struct plumb_slice line, enum state state)
{
	if (state == NVPROF_TEXT)
		return is_text_row(line);
	return state != OUTSIDE && line.bytes &&
	       (isdigit((unsigned char)*line.at) || *line.at == '-' ||
	        (*line.at == '"' && state == NSYS));
}

/* ---- the file ---- */

/* "==4711== NVPROF is profiling process 4711, command: ./a.out": from here on it is about 4711. */
static void
read_notice(struct reader *reader, struct plumb_slice line)
{
	struct plumb_trace *trace = reader->trace;
	static const char command[] = ", command: ";
	const char *end = line.at + line.bytes;
	const char *close = memmem(line.at + 2, line.bytes - 2, "==", 2);
	int64_t pid;
	reader->state = OUTSIDE;
	if (!close || !plumb_slice_decimal(plumb_text_between(line.at + 2, close), 0, &pid))
		return;
	reader->process = plumb_trace_process(trace, pid);
	const char *found = memmem(line.at, line.bytes, command, sizeof command - 1);
	if (!found || !plumb_text_has(line, "NVPROF is profiling") || reader->process == PLUMB_NONE)
		return;
	found += sizeof command - 1;
	uint32_t text =
		plumb_builder_command(plumb_trace_builder(trace), found, (size_t)(end - found));
	plumb_builder_get_process(plumb_trace_builder(trace), reader->process)->command = text;
}

static int
read_heading(struct reader *reader, enum state state, struct plumb_slice line,
             struct plumb_error *error)
{
	struct plumb_text_table *table = &reader->table;
	bool csv = state != NVPROF_TEXT;
	int code = plumb_text_table_heading(table, csv ? PLUMB_LAYOUT_CSV : PLUMB_LAYOUT_FIXED,
	                                    line, error);
	if (!code && csv)
		return plumb_text_table_check(
			table, "the heading needs the columns Start, Duration and Name", error);
	if (code > 0 && state == NVPROF)
		code = plumb_text_table_units(table, error);
	if (code <= 0)
		return code;
	table->binary = state != NSYS;
	reader->state = state;
	reader->traced = true;
	if (reader->process == PLUMB_NONE)
		reader->process = plumb_trace_process(reader->trace, PLUMB_UNKNOWN);
	return 0;
}

static int
read_line(void *data, struct plumb_slice line, struct plumb_error *error)
{
	struct reader *reader = data;
	enum state heading = heading_of(line), summary = summary_of(line);
	if (plumb_slice_begins(line, "==")) {
		read_notice(reader, line);
	} else if (heading != OUTSIDE) {
		return read_heading(reader, heading, line, error);
	} else if (is_row(line, reader->state)) {
		return read_row(reader, line, error);
	} else if (summary != OUTSIDE) {
		reader->state = OUTSIDE;
		reader->summed = summary;
	} else if (reader->state == NSYS ? !line.bytes : plumb_slice_begins(line, "\"")) {
		reader->state = OUTSIDE; /* another table, or text */
	}
	return 0;
}

static int
read_gpu_table(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader reader = {
		.table = { PLUMB_TEXT_COLUMNS(columns) },
		.trace = trace,
		.process = PLUMB_NONE,
	};
	int code = plumb_text_table_read(&reader.table, file, read_line, &reader, error);
	if (!code && reader.summed != OUTSIDE && !reader.traced)
		code = plumb_fail(error, PLUMB_EINPUT, "%s: this summary of %s", file->path,
		                  reader.summed == NVPROF
		                          ? "nvprof has no single kernels; record with nvprof "
		                            "--print-gpu-trace"
		                          : "Nsight Systems has no single kernels; write a trace "
		                            "with nsys stats --report cuda_gpu_trace --format csv");
	return code;
}

static int
score_nvprof(struct plumb_slice line)
{
	enum state heading = heading_of(line);
	if (heading == NVPROF || heading == NVPROF_TEXT)
		return 90;
	return summary_of(line) == NVPROF || plumb_text_has(line, "NVPROF is profiling process ")
	               ? 60
	               : 0;
}

static int
probe_nvprof(const struct plumb_import_file *file)
{
	return plumb_text_probe(file->head, score_nvprof);
}

static int
score_nsys(struct plumb_slice line)
{
	return heading_of(line) == NSYS ? 90 : summary_of(line) == NSYS ? 50 : 0;
}

static int
probe_nsys(const struct plumb_import_file *file)
{
	return plumb_text_probe(file->head, score_nsys);
}

const struct plumb_format plumb_format_nvprof = {
	.name = "nvprof",
	.title = "nvprof --print-gpu-trace",
	.probe = probe_nvprof,
	.read = read_gpu_table,
};

const struct plumb_format plumb_format_nsys_csv = {
	.name = "nsys-csv",
	.title = "nsys stats cuda_gpu_trace CSV",
	.probe = probe_nsys,
	.read = read_gpu_table,
};
