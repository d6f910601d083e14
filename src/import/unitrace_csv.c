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
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/csv.h"
#include "import/import.h"

enum state { OUTSIDE, KERNELS, FUNCTIONS, COUNTERS, IGNORED };
enum column { CALLS, TIME, LEAST, MOST, COLUMNS };

struct reader {
	struct plumb_csv csv;
	struct plumb_trace *trace;
	struct plumb_builder *builder;
	uint32_t process;
	enum state state;
	bool events; /* there is a timeline: the sums of kernels are those of its events */
	uint32_t cells, column[COLUMNS]; /* of the table */
	uint32_t *counters, *units;      /* strings, by column; PLUMB_NONE: it is no counter */
};

/* What a name says beyond the name. */
struct command {
	struct plumb_slice name;
	struct plumb_trace_launch launch;
	bool launched;
	int64_t bytes; /* of one copy or set */
};

/* ---- texts ---- */

static struct plumb_slice
trim(struct plumb_slice text)
{
	while (text.bytes && isspace((unsigned char)*text.at)) {
		text.at++;
		text.bytes--;
	}
	while (text.bytes && isspace((unsigned char)text.at[text.bytes - 1]))
		text.bytes--;
	return text;
}

static struct plumb_slice
between(const char *from, const char *to)
{
	return (struct plumb_slice){ from, to > from ? (size_t)(to - from) : 0 };
}

static bool
has(struct plumb_slice text, const char *word)
{
	return text.bytes && memmem(text.at, text.bytes, word, strlen(word));
}

/* "{64; 8; 1}", what is between the braces */
static bool
read_three(struct plumb_slice text, int64_t three[3])
{
	const char *at = text.at, *end = at + text.bytes;
	for (unsigned i = 0; i < 3; i++) {
		const char *semicolon = at < end ? memchr(at, ';', (size_t)(end - at)) : NULL;
		const char *behind = semicolon ? semicolon : end;
		if (at >= end || (i == 2) != !semicolon ||
		    !plumb_slice_decimal(trim(between(at, behind)), 0, &three[i]))
			return false;
		at = behind + 1;
	}
	return true;
}

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
	    !read_three(between(grid + 1, close), command->launch.grid) ||
	    !read_three(between(block + 1, end - 2), command->launch.block)) {
		command->launch = plumb_trace_no_launch;
		return;
	}
	const char *open = memrchr(name->at, '[', (size_t)(grid - name->at));
	bool simd = open && (size_t)(end - open) > 5 && !memcmp(open, "[SIMD", 5);
	*name = trim(between(name->at, simd ? open : grid));
	command->launched = true;
}

/* Cuts "[4096]" off a copy's name. */
static void
cut_bytes(struct command *command)
{
	struct plumb_slice *name = &command->name;
	const char *open = memrchr(name->at, '[', name->bytes);
	if (open && name->at[name->bytes - 1] == ']' &&
	    plumb_slice_decimal(between(open + 1, name->at + name->bytes - 1), 0,
	                        &command->bytes) &&
	    command->bytes >= 0)
		name->bytes = (size_t)(open - name->at);
	else
		command->bytes = PLUMB_UNKNOWN;
}

static struct command
read_command(struct plumb_slice text)
{
	struct command command = { .name = trim(text),
		                   .launch = plumb_trace_no_launch,
		                   .bytes = PLUMB_UNKNOWN };
	struct plumb_slice *name = &command.name;
	if (plumb_slice_begins(*name, "Tile #")) { /* a part of the GPU; the parts add up */
		const char *colon = memchr(name->at, ':', name->bytes);
		if (colon)
			*name = trim(between(colon + 1, name->at + name->bytes));
	}
	if (name->bytes > 1 && *name->at == '"' && name->at[name->bytes - 1] == '"')
		*name = (struct plumb_slice){ name->at + 1, name->bytes - 2 };
	cut_launch(&command);
	if (!command.launched && name->bytes)
		cut_bytes(&command);
	return command;
}

/* M is memory of the host's own, H what the driver allocated there, S moves by itself, D is the
 * device's. */
static const char *
memory_of(char letter)
{
	switch (letter) {
	case 'M':
		return "pageable";
	case 'H':
		return "pinned";
	case 'S':
		return "managed";
	case 'D':
		return "device";
	default:
		return "unknown";
	}
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
	if (has(name, "Fill"))
		return plumb_trace_set_frame(trace, open && end - open == 3 ? memory_of(open[1])
		                                                            : "device");
	if (moved)
		return plumb_trace_copy_frame(trace, memory_of(open[1]), memory_of(open[3]));
	if (has(name, "Read"))
		return plumb_trace_copy_frame(trace, "device", "host");
	if (has(name, "Write"))
		return plumb_trace_copy_frame(trace, "host", "device");
	if (has(name, "Copy") || has(name, "Memcpy"))
		return plumb_trace_copy_frame(trace, "unknown", "unknown");
	return PLUMB_NONE;
}

/* ---- sums ---- */

struct sums {
	int64_t calls, time, least, most;
};

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
add_kernel(struct reader *reader, struct plumb_slice text, const struct sums *sums)
{
	struct command command = read_command(text);
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
		          &(struct sums){ sums->calls, bytes, command.bytes, command.bytes });
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
add_function(struct reader *reader, struct plumb_slice name, const struct sums *sums)
{
	struct plumb_builder *builder = reader->builder;
	bool driver = plumb_slice_begins(name, "ze") || plumb_slice_begins(name, "cl");
	uint32_t frame = plumb_trace_frame(
		reader->trace, driver ? PLUMB_FRAME_GPU_API : PLUMB_FRAME_LIBRARY, name);
	uint32_t context = plumb_builder_context(builder, 0, frame, 0);
	uint32_t metric = plumb_builder_metric(builder, plumb_builder_text(builder, "api.time"),
	                                       plumb_builder_text(builder, "ns"));
	if (metric)
		add_value(reader, context, metric, sums);
	if (has(name, "Synchronize") || plumb_slice_is(name, "clFinish") ||
	    plumb_slice_is(name, "clWaitForEvents"))
		add_value(reader, context, PLUMB_METRIC_HOST_WAIT, sums);
}

/* ---- tables ---- */

/* "Kernel,  Calls,  Time (ns), …" */
static bool
read_heading(struct reader *reader, struct plumb_slice line)
{
	static const char *const names[COLUMNS] = { "Calls", "Time (ns)", "Min (ns)", "Max (ns)" };
	const char *at = line.at, *end = line.at + line.bytes;
	struct plumb_slice first = { 0 };
	if (!has(line, "Calls") && !has(line, "Number of Arguments"))
		return false;
	memset(reader->column, 0xff, sizeof reader->column);
	for (reader->cells = 0; at <= end; reader->cells++) {
		const char *comma = at < end ? memchr(at, ',', (size_t)(end - at)) : NULL;
		struct plumb_slice cell = trim(between(at, comma ? comma : end));
		if (!reader->cells)
			first = cell;
		for (unsigned k = 0; k < COLUMNS; k++)
			if (cell.bytes && plumb_slice_is(cell, names[k]))
				reader->column[k] = reader->cells;
		at = comma ? comma + 1 : end + 1;
	}
	bool kernels = first.bytes && plumb_slice_is(first, "Kernel");
	if (!kernels && !(first.bytes && plumb_slice_is(first, "Function")))
		return false;
	reader->state = kernels ? KERNELS : FUNCTIONS;
	for (unsigned k = 0; k < COLUMNS; k++)
		if (reader->column[k] == PLUMB_NONE)
			reader->state = IGNORED;
	return true;
}

/* The row's name and numbers, from its right end. */
static const char *
read_sums(const struct reader *reader, struct plumb_slice line, struct plumb_slice *name,
          struct sums *sums)
{
	int64_t numbers[COLUMNS] = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN };
	size_t bytes = line.bytes;
	for (uint32_t i = reader->cells - 1; i > 0; i--) {
		const char *comma = memrchr(line.at, ',', bytes);
		if (!comma)
			return "the row has fewer cells than the heading";
		struct plumb_slice cell = trim(between(comma + 1, line.at + bytes));
		for (unsigned k = 0; k < COLUMNS; k++)
			if (reader->column[k] == i && !plumb_slice_decimal(cell, 0, &numbers[k]))
				return "a cell is not a number";
		bytes = (size_t)(comma - line.at);
	}
	*name = trim((struct plumb_slice){ line.at, bytes });
	*sums = (struct sums){ numbers[CALLS], numbers[TIME], numbers[LEAST], numbers[MOST] };
	if (!name->bytes)
		return "the name is missing";
	if (sums->calls < 1 || sums->least < 0 || sums->least > sums->most ||
	    (__int128)sums->least * sums->calls > sums->time ||
	    (__int128)sums->most * sums->calls < sums->time)
		return "the numbers contradict each other";
	return NULL;
}

/* ---- counters ---- */

/* "Kernel,Device,SubDeviceId,GpuTime[ns],XVE_ACTIVE[%],…": what has a unit is a counter. */
static int
read_counters(struct reader *reader, struct plumb_error *error)
{
	struct plumb_csv *csv = &reader->csv;
	int code = plumb_csv_split(csv, error);
	if (code < 0)
		return code;
	free(reader->counters);
	reader->cells = csv->count;
	reader->counters = malloc(csv->count * 2 * sizeof *reader->counters);
	if (!reader->counters)
		return plumb_fail(error, PLUMB_ESYSTEM, "not enough memory");
	reader->units = reader->counters + csv->count;
	for (uint32_t i = 0; i < csv->count; i++) {
		struct plumb_slice cell = trim(csv->cells[i]);
		const char *open = memchr(cell.at, '[', cell.bytes);
		bool counter = open && open > cell.at && cell.at[cell.bytes - 1] == ']';
		struct plumb_slice unit =
			counter ? between(open + 1, cell.at + cell.bytes - 1) : cell;
		reader->counters[i] = counter ? plumb_builder_string(reader->builder, cell.at,
		                                                     (size_t)(open - cell.at))
		                              : PLUMB_NONE;
		reader->units[i] =
			counter ? plumb_builder_string(reader->builder, unit.at, unit.bytes)
				: PLUMB_NONE;
	}
	reader->state = COUNTERS;
	return 0;
}

static int
read_counter_row(struct reader *reader, struct plumb_error *error)
{
	struct plumb_csv *csv = &reader->csv;
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
		struct plumb_slice cell = trim(csv->cells[i]);
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
	if (!space || !plumb_slice_decimal(between(space + 1, line->at + line->bytes), 0, number))
		return false;
	line->bytes = (size_t)(space - line->at);
	return true;
}

/* "Thread 7 Device 94 : NAME [ns] 100 (append) 110 (submit) 120 (start) 220 (end)" */
static const char *
read_event(struct reader *reader, struct plumb_slice line)
{
	struct plumb_trace *trace = reader->trace;
	struct plumb_slice rest = trim(line);
	int64_t append, submit, start, end, handle;
	const char *device = memmem(line.at, line.bytes, " Device ", 8), *colon, *unit = " [ns]";
	if (!number_before(&rest, " (end)", &end) || !number_before(&rest, " (start)", &start) ||
	    !number_before(&rest, " (submit)", &submit) ||
	    !number_before(&rest, " (append)", &append) || rest.bytes < strlen(unit) ||
	    memcmp(rest.at + rest.bytes - strlen(unit), unit, strlen(unit)) != 0)
		return "the four times of a command are missing";
	rest.bytes -= strlen(unit);
	colon = memmem(rest.at, rest.bytes, " : ", 3);
	if (!device || !colon || colon < device + 8 ||
	    !plumb_slice_decimal(between(device + 8, colon), 0, &handle))
		return "the device is missing";
	struct command command = read_command(between(colon + 3, rest.at + rest.bytes));
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
					.start_ns = start,
					.end_ns = end,
					.bytes = command.bytes,
					.launch = command.launched ? &command.launch : NULL,
					.collective = PLUMB_NONE,
					.placed = PLUMB_NONE,
				});
	return NULL;
}

/* ---- the file ---- */

/* "Total Execution Time (ns):  5579618203", "*  Process ID : 12 | Rank ID : 3" */
static void
read_fact(struct reader *reader, struct plumb_slice line)
{
	static const char total[] = "Total Execution Time (ns):";
	static const char process[] = "Process ID :", rank[] = "| Rank ID :";
	const char *end = line.at + line.bytes;
	const char *found = memmem(line.at, line.bytes, total, sizeof total - 1), *bar;
	int64_t number;
	if (found &&
	    plumb_slice_decimal(trim(between(found + sizeof total - 1, end)), 0, &number) &&
	    number >= 0)
		plumb_builder_run(reader->builder)->wall_ns = number;
	found = memmem(line.at, line.bytes, process, sizeof process - 1);
	bar = memmem(line.at, line.bytes, rank, sizeof rank - 1);
	if (!found || !bar || bar < found || *line.at != '*')
		return;
	if (plumb_slice_decimal(trim(between(found + sizeof process - 1, bar)), 0, &number))
		reader->process = plumb_trace_process_is(reader->trace, reader->process, number);
	if (plumb_slice_decimal(trim(between(bar + sizeof rank - 1, end)), 0, &number) &&
	    reader->process != PLUMB_NONE)
		plumb_builder_get_process(reader->builder, reader->process)->rank = number;
}

static int
read_line(struct reader *reader, struct plumb_slice line, struct plumb_error *error)
{
	struct plumb_slice text = trim(line), name;
	struct sums sums;
	const char *why = NULL;
	if (!text.bytes || plumb_slice_begins(text, "== ") || plumb_slice_begins(text, "=== ")) {
		reader->state = OUTSIDE;
	} else if (plumb_slice_begins(line, "Kernel,Device,SubDeviceId,")) {
		return read_counters(reader, error);
	} else if (plumb_slice_begins(line, "Thread ") && has(line, " (append) ")) {
		why = read_event(reader, line);
	} else if (reader->state == COUNTERS) {
		return read_counter_row(reader, error);
	} else if (read_heading(reader, line)) {
		;
	} else if (reader->state == KERNELS || reader->state == FUNCTIONS) {
		why = read_sums(reader, line, &name, &sums);
		if (!why && reader->state == KERNELS)
			add_kernel(reader, name, &sums);
		else if (!why)
			add_function(reader, name, &sums);
	} else if (reader->state == IGNORED) {
		plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED,
		                  "rows of other tables (properties, submissions)", 1);
	} else {
		read_fact(reader, line);
	}
	return why ? plumb_csv_fail(&reader->csv, error, "%s", why) : 0;
}

static int
read(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader reader = { .trace = trace, .builder = plumb_trace_builder(trace) };
	struct plumb_slice line;
	reader.process = plumb_trace_process(trace, PLUMB_UNKNOWN);
	int code = plumb_csv_open(&reader.csv, file->input, error);
	while (!code && (code = plumb_csv_line(&reader.csv, &line, error)) > 0)
		code = read_line(&reader, line, error);
	plumb_csv_close(&reader.csv);
	free(reader.counters);
	return code;
}

static int
probe(const struct plumb_import_file *file)
{
	static const char *const words[] = {
		"=== Device Timing Summary ===", "=== API Timing Summary ===",
		"=== Kernel Submission Summary ===", "Kernel,Device,SubDeviceId,", " | Rank ID : "
	};
	const char *at = file->head;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strstr(at, words[i]))
			return 85;
	return strstr(at, " (append) ") && strstr(at, " (submit) ") ? 85 : 0;
}

const struct plumb_format plumb_format_unitrace_csv = {
	.name = "unitrace-csv",
	.title = "unitrace summaries",
	.probe = probe,
	.read = read,
};
