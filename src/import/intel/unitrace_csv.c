/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Intel's unitrace prints, or writes with -o, as text:
 *
 *	-d, -h, --ccl-summary-report: sums of calls, a row for each kernel, command or function
 *		=== Device Timing Summary ===
 *		          Kernel,  Calls,  Time (ns),  Time (%),  Average (ns),  Min (ns),  Max (ns)
 *		 "gemm[SIMD16 {8; 1; 1} {64; 8; 1}]",  2,  300,  60.0,  150,  100,  200
 *		 "zeCommandListAppendMemoryCopy(M2D)[4096]",  1,  …
 *	-t: Thread 7 Device 94 : "gemm" [ns] 100 (append) 110 (submit) 120 (start) 220 (end)
 *	-q: Kernel,Device,SubDeviceId,GpuTime[ns],…  hardware counters, a row for each kernel run
 *
 * Names stand in quotation marks since 2024, before they did not and may hold commas: tables are
 * split from their right ends.
 */
#include <math.h>
#include <stdlib.h>

#include "import/copies.h"
#include "import/text_table.h"

enum state { OUTSIDE, KERNELS, FUNCTIONS, COUNTERS, IGNORED };

/* A kernel's, command's or function's calls. */
struct sums {
	struct plumb_slice name;
	int64_t calls, time, least, most;
};

#define COUNTERS_HEADING "Kernel,Device,SubDeviceId,"
#define NOT_A_NUMBER "a cell is not a number", PLUMB_IN_EACH_ROW

static const struct plumb_text_column columns[] = {
	{ "Kernel|Function", PLUMB_AS_TEXT, offsetof(struct sums, name), "the name is missing",
	  PLUMB_IN_EACH_ROW },
	{ "Calls", PLUMB_AS_NUMBER, offsetof(struct sums, calls), NOT_A_NUMBER },
	{ "Time (ns)", PLUMB_AS_NUMBER, offsetof(struct sums, time), NOT_A_NUMBER },
	{ "Min (ns)", PLUMB_AS_NUMBER, offsetof(struct sums, least), NOT_A_NUMBER },
	{ "Max (ns)", PLUMB_AS_NUMBER, offsetof(struct sums, most), NOT_A_NUMBER },
};

struct reader {
	struct plumb_text_table table;
	struct plumb_trace *trace;
	struct plumb_builder *builder;
	uint32_t process;
	enum state state;
	bool events; /* there is a timeline: the sums of kernels are those of its events */
	uint32_t cells, *counters, *units; /* strings, by column; PLUMB_NONE: it is no counter */
};

/* What a name says beyond the name. */
struct command {
	struct plumb_slice name;
	struct plumb_trace_launch launch;
	bool launched;
	int64_t bytes; /* of one copy or set */
};

/* ---- names ---- */

/* Cuts "[SIMD16 {56; 1; 1} {64; 8; 1}]" off a kernel's name: groups, and work-items in each. */
static void
cut_launch(struct command *command)
{
	struct plumb_slice *name = &command->name;
	const char *end = name->at + name->bytes, *block, *grid, *close;
	if (name->bytes < 4 || memcmp(end - 2, "}]", 2) != 0 ||
	    !(block = memrchr(name->at, '{', name->bytes)) ||
	    !(grid = memrchr(name->at, '{', (size_t)(block - name->at))) ||
	    !(close = memchr(grid, '}', (size_t)(block - grid))) ||
	    !plumb_text_three(plumb_text_between(grid + 1, close), ';', command->launch.grid) ||
	    !plumb_text_three(plumb_text_between(block + 1, end - 2), ';', command->launch.block)) {
		command->launch = plumb_trace_no_launch;
		return;
	}
	const char *open = memrchr(name->at, '[', (size_t)(grid - name->at));
	bool simd = open && (size_t)(end - open) > 5 && !memcmp(open, "[SIMD", 5);
	*name = plumb_text_trim(plumb_text_between(name->at, simd ? open : grid));
	command->launched = true;
}

static struct command
read_command(struct plumb_slice text)
{
	struct command command = { .name = plumb_text_trim(text),
		                   .launch = plumb_trace_no_launch,
		                   .bytes = PLUMB_UNKNOWN };
	struct plumb_slice *name = &command.name;
	if (plumb_slice_begins(*name, "Tile #")) { /* a part of the GPU; the parts add up */
		const char *colon = memchr(name->at, ':', name->bytes);
		if (colon)
			*name = plumb_text_trim(
				plumb_text_between(colon + 1, name->at + name->bytes));
	}
	if (name->bytes > 1 && *name->at == '"' && name->at[name->bytes - 1] == '"')
		*name = (struct plumb_slice){ name->at + 1, name->bytes - 2 };
	cut_launch(&command);
	struct plumb_slice cut = *name;
	int64_t bytes;
	if (!command.launched && plumb_text_cut_number(&cut, '[', ']', &bytes) && bytes >= 0) {
		*name = cut;
		command.bytes = bytes;
	}
	return command;
}

/* The frame of a kernel, copy or set; PLUMB_NONE: some other command (a barrier). */
static uint32_t
command_frame(struct reader *reader, struct plumb_slice name)
{
	struct plumb_trace *trace = reader->trace;
	const char *open = memrchr(name.at, '(', name.bytes), *end = name.at + name.bytes;
	bool moved = open && end - open == 5 && open[2] == '2'; /* "(M2D)" */
	if (!plumb_slice_begins(name, "zeCommandList") && !plumb_slice_begins(name, "clEnqueue"))
		return plumb_trace_frame(trace, PLUMB_FRAME_KERNEL, name);
	if (plumb_text_has(name, "Fill"))
		return plumb_trace_set_frame(trace, open && end - open == 3
		                                            ? plumb_import_memory_letter(open[1])
		                                            : PLUMB_MEMORY_DEVICE);
	if (moved)
		return plumb_trace_copy_frame(trace, plumb_import_memory_letter(open[1]),
		                              plumb_import_memory_letter(open[3]));
	if (plumb_text_has(name, "Read"))
		return plumb_trace_copy_frame(trace, PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_HOST);
	if (plumb_text_has(name, "Write"))
		return plumb_trace_copy_frame(trace, PLUMB_MEMORY_HOST, PLUMB_MEMORY_DEVICE);
	if (plumb_text_has(name, "Copy") || plumb_text_has(name, "Memcpy"))
		return plumb_trace_copy_frame(trace, PLUMB_MEMORY_UNKNOWN, PLUMB_MEMORY_UNKNOWN);
	return PLUMB_NONE;
}

/* ---- sums ---- */

/* Of three calls or more the squares are not known. */
static void
add_value(struct reader *reader, uint32_t context, uint32_t metric, const struct sums *sums)
{
	double range = (double)sums->most - (double)sums->least;
	struct plumb_value value = {
		context,
		metric,
		PLUMB_NONE,
		sums->time,
		(uint64_t)sums->calls,
		sums->least,
		sums->most,
		(double)sums->time / (double)sums->calls,
		range == 0         ? 0
		: sums->calls == 2 ? range * range / 2
				   : NAN,
	};
	plumb_trace_summary(reader->trace, &value);
}

static void
add_kernel(struct reader *reader, const struct sums *sums)
{
	struct command command = read_command(sums->name);
	struct plumb_trace *trace = reader->trace;
	uint32_t frame = command_frame(reader, command.name);
	if (frame == PLUMB_NONE || reader->events) {
		plumb_trace_count_slice(
			trace, reader->events ? PLUMB_FATE_REPEATED : PLUMB_FATE_UNUSED,
			reader->events ? (struct plumb_slice){ "sums of kernels", 15 }
				       : command.name,
			sums->calls);
		return;
	}
	uint32_t context = plumb_builder_context(reader->builder, 0, frame, 0);
	bool kernel = plumb_builder_get_frame(reader->builder, frame)->kind == PLUMB_FRAME_KERNEL;
	add_value(reader, context, kernel ? PLUMB_METRIC_GPU_TIME : PLUMB_METRIC_GPU_COPY_TIME,
	          sums);
	int64_t bytes;
	if (!kernel && command.bytes != PLUMB_UNKNOWN &&
	    !__builtin_mul_overflow(command.bytes, sums->calls, &bytes))
		add_value(reader, context, PLUMB_METRIC_GPU_COPY_BYTES,
		          &(struct sums){ command.name, sums->calls, bytes, command.bytes,
		                          command.bytes });
	if (!kernel || !command.launched)
		return;
	struct plumb_variant variant = {
		.context = context,
		.track = PLUMB_NONE,
		.shapes = PLUMB_NONE,
		.registers = PLUMB_UNKNOWN,
		.static_shared = PLUMB_UNKNOWN,
		.dynamic_shared = PLUMB_UNKNOWN,
		.occupancy = PLUMB_UNKNOWN,
		.count = (uint64_t)sums->calls,
		.time = sums->time,
		.min = sums->least,
		.max = sums->most,
	};
	memcpy(variant.grid, command.launch.grid, sizeof variant.grid);
	memcpy(variant.block, command.launch.block, sizeof variant.block);
	plumb_builder_variant(reader->builder, &variant);
}

static void
add_function(struct reader *reader, const struct sums *sums)
{
	struct plumb_slice name = sums->name;
	struct plumb_builder *builder = reader->builder;
	bool driver = plumb_slice_begins(name, "ze") || plumb_slice_begins(name, "cl");
	uint32_t frame = plumb_trace_frame(
		reader->trace, driver ? PLUMB_FRAME_GPU_API : PLUMB_FRAME_LIBRARY, name);
	uint32_t context = plumb_builder_context(builder, 0, frame, 0);
	uint32_t metric = plumb_builder_metric(builder, plumb_builder_text(builder, "api.time"),
	                                       plumb_builder_text(builder, "ns"));
	if (metric)
		add_value(reader, context, metric, sums);
	if (plumb_text_has(name, "Synchronize") || plumb_slice_is(name, "clFinish") ||
	    plumb_slice_is(name, "clWaitForEvents"))
		add_value(reader, context, PLUMB_METRIC_HOST_WAIT, sums);
}

/* ---- tables ---- */

/* "Kernel,  Calls,  Time (ns), …"; other tables of kernels lack columns. 0: it is no heading. */
static int
read_heading(struct reader *reader, struct plumb_slice line, struct plumb_error *error)
{
	const struct plumb_slice *first = reader->table.csv.cells;
	if (!plumb_text_has(line, "Calls") && !plumb_text_has(line, "Number of Arguments"))
		return 0;
	int code = plumb_text_table_heading(&reader->table, PLUMB_LAYOUT_FROM_RIGHT, line, error);
	if (code < 0 || !reader->table.csv.count)
		return code;
	if (!plumb_slice_is(*first, "Kernel") && !plumb_slice_is(*first, "Function"))
		return 0;
	reader->state = !code ? IGNORED : plumb_slice_is(*first, "Kernel") ? KERNELS : FUNCTIONS;
	return 1;
}

static int
read_sums(struct reader *reader, struct plumb_slice line, struct plumb_error *error)
{
	struct sums sums;
	int code = plumb_text_table_row(&reader->table, line, &sums, error);
	if (code)
		return code;
	if (sums.calls < 1 || sums.least < 0 || sums.least > sums.most ||
	    (__int128)sums.least * sums.calls > sums.time ||
	    (__int128)sums.most * sums.calls < sums.time)
		return plumb_text_table_check(&reader->table, "the numbers contradict each other",
		                              error);
	if (reader->state == KERNELS)
		add_kernel(reader, &sums);
	else
		add_function(reader, &sums);
	return 0;
}

/* ---- counters ---- */

/* "Kernel,Device,SubDeviceId,GpuTime[ns],XVE_ACTIVE[%],…": what has a unit is a counter. */
static int
read_counters(struct reader *reader, struct plumb_error *error)
{
	struct plumb_csv *csv = &reader->table.csv;
	int code = plumb_csv_split(csv, error);
	if (code < 0)
		return code;
	free(reader->counters);
	reader->cells = csv->count;
	reader->counters = malloc(csv->count * 2 * sizeof *reader->counters);
	if (!reader->counters)
		return plumb_fail_memory(error, NULL);
	reader->units = reader->counters + csv->count;
	memset(reader->counters, 0xff, csv->count * 2 * sizeof *reader->counters);
	for (uint32_t i = 0; i < csv->count; i++) {
		struct plumb_slice cell = plumb_text_trim(csv->cells[i]);
		const char *open = memchr(cell.at, '[', cell.bytes);
		const char *close = cell.at + cell.bytes - 1;
		if (!open || open == cell.at || *close != ']')
			continue;
		reader->counters[i] =
			plumb_builder_string(reader->builder, cell.at, (size_t)(open - cell.at));
		reader->units[i] = plumb_builder_string(reader->builder, open + 1,
		                                        (size_t)(close - (open + 1)));
	}
	reader->state = COUNTERS;
	return 0;
}

static int
read_counter_row(struct reader *reader, struct plumb_error *error)
{
	struct plumb_csv *csv = &reader->table.csv;
	int code = plumb_csv_split(csv, error);
	if (code < 0)
		return code;
	if (csv->count != reader->cells || !csv->cells[0].bytes)
		return plumb_csv_fail(csv, error, "the number of cells is not that of the heading");
	struct command command = read_command(csv->cells[0]);
	uint32_t frame = command_frame(reader, command.name);
	if (frame == PLUMB_NONE) {
		plumb_trace_count_slice(reader->trace, PLUMB_FATE_UNUSED, command.name, 1);
		return 0;
	}
	for (uint32_t i = 1; i < csv->count; i++) {
		struct plumb_slice cell = plumb_text_trim(csv->cells[i]);
		if (reader->counters[i] == PLUMB_NONE || !cell.bytes)
			continue;
		if (!plumb_trace_reading(reader->trace, reader->process, PLUMB_TRACE_NO_ID, frame,
		                         reader->counters[i], reader->units[i], cell))
			return plumb_csv_fail(csv, error, "column %u is not a number", i + 1);
	}
	return 0;
}

/* ---- the timeline ---- */

/* The number before WORD in LINE, which ends there. */
static bool
number_before(struct plumb_slice *line, const char *word, int64_t *number)
{
	size_t bytes = strlen(word);
	if (line->bytes < bytes || memcmp(line->at + line->bytes - bytes, word, bytes) != 0)
		return false;
	line->bytes -= bytes;
	const char *space = memrchr(line->at, ' ', line->bytes);
	if (!space ||
	    !plumb_slice_decimal(plumb_text_between(space + 1, line->at + line->bytes), 0, number))
		return false;
	line->bytes = (size_t)(space - line->at);
	return true;
}

/* "Thread 7 Device 94 : NAME [ns] 100 (append) 110 (submit) 120 (start) 220 (end)" */
static const char *
read_event(struct reader *reader, struct plumb_slice line)
{
	struct plumb_trace *trace = reader->trace;
	struct plumb_slice rest = plumb_text_trim(line);
	static const char *const words[] = { " (end)", " (start)", " (submit)", " (append)" };
	int64_t times[4], handle;
	const char *device = memmem(line.at, line.bytes, " Device ", 8), *colon, *unit = " [ns]";
	bool timed = true;
	for (unsigned i = 0; i < 4; i++)
		timed = timed && number_before(&rest, words[i], &times[i]);
	if (!timed || rest.bytes < strlen(unit) ||
	    memcmp(rest.at + rest.bytes - strlen(unit), unit, strlen(unit)) != 0)
		return "the four times of a command are missing";
	rest.bytes -= strlen(unit);
	colon = memmem(rest.at, rest.bytes, " : ", 3);
	if (!device || !colon || colon < device + 8 ||
	    !plumb_slice_decimal(plumb_text_between(device + 8, colon), 0, &handle))
		return "the device is missing";
	struct command command = read_command(plumb_text_between(colon + 3, rest.at + rest.bytes));
	uint32_t frame = command_frame(reader, command.name);
	reader->events = true;
	if (frame == PLUMB_NONE) {
		plumb_trace_count_slice(trace, PLUMB_FATE_UNUSED, command.name, 1);
		return NULL;
	}
	uint32_t id = plumb_trace_device(trace, reader->process, handle, NULL);
	if (id != PLUMB_NONE) /* a handle of the driver's is no ordinal */
		plumb_builder_get_device(reader->builder, id)->ordinal = PLUMB_UNKNOWN;
	plumb_trace_work(trace, &(struct plumb_trace_work){
					.track = plumb_trace_stream(trace, reader->process, id,
	                                                            PLUMB_UNKNOWN, PLUMB_UNKNOWN),
					.frame = frame,
					.start_ns = times[1],
					.end_ns = times[0],
					.bytes = command.bytes,
					.launch = command.launched ? &command.launch : NULL,
					.collective = PLUMB_NONE,
					.placed = PLUMB_NONE,
				});
	return NULL;
}

/* ---- the file ---- */

/* The number after WORD, up to a bar or the end of the line. */
static bool
number_behind(struct plumb_slice line, const char *word, int64_t *number)
{
	const char *at = memmem(line.at, line.bytes, word, strlen(word));
	const char *end = line.at + line.bytes;
	if (!at)
		return false;
	at += strlen(word);
	const char *bar = memchr(at, '|', (size_t)(end - at));
	return plumb_slice_decimal(plumb_text_trim(plumb_text_between(at, bar ? bar : end)), 0,
	                           number);
}

/* "Total Execution Time (ns):  5579618203", "*  Process ID : 12 | Rank ID : 3" */
static void
read_fact(struct reader *reader, struct plumb_slice line)
{
	static const char *const words[] = { "Process ID :", "| Rank ID :", NULL };
	int64_t number;
	if (number_behind(line, "Total Execution Time (ns):", &number) && number >= 0)
		plumb_builder_run(reader->builder)->wall_ns = number;
	if (*line.at != '*' || !plumb_text_has_all(line, words))
		return;
	if (number_behind(line, words[0], &number))
		reader->process = plumb_trace_process_is(reader->trace, reader->process, number);
	if (number_behind(line, words[1], &number) && reader->process != PLUMB_NONE)
		plumb_builder_get_process(reader->builder, reader->process)->rank = number;
}

static int
read_line(void *data, struct plumb_slice line, struct plumb_error *error)
{
	struct reader *reader = data;
	struct plumb_slice text = plumb_text_trim(line);
	int code;
	if (!text.bytes || plumb_slice_begins(text, "== ") || plumb_slice_begins(text, "=== ")) {
		reader->state = OUTSIDE;
	} else if (plumb_slice_begins(line, COUNTERS_HEADING)) {
		return read_counters(reader, error);
	} else if (plumb_slice_begins(line, "Thread ") && plumb_text_has(line, " (append) ")) {
		return plumb_text_table_check(&reader->table, read_event(reader, line), error);
	} else if (reader->state == COUNTERS) {
		return read_counter_row(reader, error);
	} else if ((code = read_heading(reader, line, error))) {
		return code < 0 ? code : 0;
	} else if (reader->state == KERNELS || reader->state == FUNCTIONS) {
		return read_sums(reader, line, error);
	} else if (reader->state == IGNORED) {
		plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED,
		                  "rows of other tables (properties, submissions)", 1);
	} else {
		read_fact(reader, line);
	}
	return 0;
}

static int
read_unitrace_csv(struct plumb_import_file *file, struct plumb_trace *trace,
                  struct plumb_error *error)
{
	struct reader reader = {
		.table = { PLUMB_TEXT_COLUMNS(columns) },
		.trace = trace,
		.builder = plumb_trace_builder(trace),
		.process = plumb_trace_process(trace, PLUMB_UNKNOWN),
	};
	int code = plumb_text_table_read(&reader.table, file, read_line, &reader, error);
	free(reader.counters);
	return code;
}

static int
probe_unitrace_csv(const struct plumb_import_file *file)
{
	static const char *const words[] = {
		"=== Device Timing Summary ===",
		"=== API Timing Summary ===",
		"=== Kernel Submission Summary ===",
		COUNTERS_HEADING,
		" | Rank ID : ",
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strstr(file->head, words[i]))
			return 85;
	return strstr(file->head, " (append) ") && strstr(file->head, " (submit) ") ? 85 : 0;
}

const struct plumb_format plumb_format_unitrace_csv = {
	.name = "unitrace-csv",
	.title = "unitrace summaries",
	.probe = probe_unitrace_csv,
	.read = read_unitrace_csv,
};
