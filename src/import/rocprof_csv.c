/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocprofv3's CSV: a file for each kind of thing that was traced, each with a heading. Versions
 * differ in columns, their order and their letters ("VGPR_Count", "Vgpr_Count"), and in whether an
 * agent is 4 or "Agent 4".
 *
 *	kernel_trace		Kernel_Name, sizes of grid and group (in work-items)
 *	memory_copy_trace	Direction, Source_Agent_Id, Destination_Agent_Id, no bytes
 *	hip_api_trace, …	Domain, Function, Process_Id, Thread_Id
 *	counter_collection	Counter_Name, Counter_Value for each dispatch; times from 6.2 on
 *
 * Kernels and copies name no process.
 * The files of one process that are given together are one trace: dispatches and calls have its
 * correlations.
 */
#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

#include "base/csv.h"
#include "import/copies.h"
#include "import/import.h"

enum column {
	KIND,
	AGENT,
	QUEUE,
	STREAM,
	THREAD,
	PROCESS,
	DISPATCH,
	KERNEL_NAME,
	CORRELATION,
	START,
	END,
	LDS,
	GROUP_SEGMENT,
	VGPR,
	ACCUM_VGPR,
	GROUP_X,
	GROUP_Y,
	GROUP_Z,
	GRID_X,
	GRID_Y,
	GRID_Z,
	DIRECTION,
	SOURCE,
	DESTINATION,
	DOMAIN,
	FUNCTION,
	COUNTER_NAME,
	COUNTER_VALUE,
	COLUMNS
};

static const char *const headings[COLUMNS] = {
	[KIND] = "Kind",
	[AGENT] = "Agent_Id",
	[QUEUE] = "Queue_Id",
	[STREAM] = "Stream_Id",
	[THREAD] = "Thread_Id",
	[PROCESS] = "Process_Id",
	[DISPATCH] = "Dispatch_Id",
	[KERNEL_NAME] = "Kernel_Name",
	[CORRELATION] = "Correlation_Id",
	[START] = "Start_Timestamp",
	[END] = "End_Timestamp",
	[LDS] = "LDS_Block_Size",
	[GROUP_SEGMENT] = "Group_Segment_Size",
	[VGPR] = "VGPR_Count",
	[ACCUM_VGPR] = "Accum_VGPR_Count",
	[GROUP_X] = "Workgroup_Size_X",
	[GROUP_Y] = "Workgroup_Size_Y",
	[GROUP_Z] = "Workgroup_Size_Z",
	[GRID_X] = "Grid_Size_X",
	[GRID_Y] = "Grid_Size_Y",
	[GRID_Z] = "Grid_Size_Z",
	[DIRECTION] = "Direction",
	[SOURCE] = "Source_Agent_Id",
	[DESTINATION] = "Destination_Agent_Id",
	[DOMAIN] = "Domain",
	[FUNCTION] = "Function",
	[COUNTER_NAME] = "Counter_Name",
	[COUNTER_VALUE] = "Counter_Value",
};

enum part { NO_PART, CALLS, KERNELS, COPIES, COUNTERS, OTHER };

struct reader {
	struct plumb_csv csv;
	struct plumb_trace *trace;
	uint32_t process; /* the one of rows that name none */
	uint32_t cells, column[COLUMNS];
	enum part part;
};

/* ---- headings ---- */

static void
find_columns(const struct plumb_slice *cells, uint32_t count, uint32_t column[COLUMNS])
{
	for (size_t k = 0; k < COLUMNS; k++) {
		column[k] = PLUMB_NONE;
		for (uint32_t i = 0; i < count; i++)
			if (cells[i].bytes == strlen(headings[k]) &&
			    !strncasecmp(cells[i].at, headings[k], cells[i].bytes))
				column[k] = i;
	}
}

static enum part
part_of(const uint32_t column[COLUMNS])
{
#define HAS(name) (column[name] != PLUMB_NONE)
	bool timed = HAS(START) && HAS(END);
	if (HAS(COUNTER_NAME) && HAS(COUNTER_VALUE) && HAS(KERNEL_NAME))
		return COUNTERS;
	if (timed && HAS(KERNEL_NAME))
		return KERNELS;
	if (timed && HAS(DIRECTION) && HAS(SOURCE) && HAS(DESTINATION))
		return COPIES;
	if (timed && HAS(DOMAIN) && HAS(FUNCTION))
		return CALLS;
	return timed && HAS(KIND) ? OTHER : NO_PART;
#undef HAS
}

/* The cell at *AT, which moves behind it; one with doubled quotation marks keeps them. */
static struct plumb_slice
head_cell(const char **at)
{
	struct plumb_slice cell = { *at, 0 };
	if (**at == '"') {
		cell.at = ++*at;
		while (**at && (**at != '"' || (*at)[1] == '"'))
			*at += **at == '"' ? 2 : 1;
		cell.bytes = (size_t)(*at - cell.at);
		*at += **at == '"';
	} else {
		cell.bytes = strcspn(*at, ",\r\n");
		*at += cell.bytes;
	}
	*at += strcspn(*at, ",\n");
	return cell;
}

/* The cells of the line at *AT, which moves behind it; none beyond MOST. */
static uint32_t
head_cells(const char **at, struct plumb_slice *cells, uint32_t most)
{
	uint32_t count = 0;
	while (**at && count < most) {
		cells[count++] = head_cell(at);
		if (**at != ',')
			break;
		++*at;
	}
	*at += **at == '\n';
	return count;
}

#define HEAD_CELLS 64

static int
probe(const struct plumb_import_file *file)
{
	struct plumb_slice cells[HEAD_CELLS];
	uint32_t column[COLUMNS];
	const char *at = file->head;
	if (*at != '"' && !isalpha((unsigned char)*at))
		return 0;
	find_columns(cells, head_cells(&at, cells, HEAD_CELLS), column);
	return part_of(column) != NO_PART ? 90 : 0;
}

/* The process that FILE's first row names. */
static int64_t
pid_of(const struct plumb_import_file *file, enum part *part)
{
	struct plumb_slice cells[HEAD_CELLS];
	uint32_t column[COLUMNS], count;
	const char *at = file->head;
	int64_t pid = PLUMB_UNKNOWN;
	find_columns(cells, head_cells(&at, cells, HEAD_CELLS), column);
	*part = part_of(column);
	count = head_cells(&at, cells, HEAD_CELLS);
	if (column[PROCESS] >= count || !plumb_slice_decimal(cells[column[PROCESS]], 0, &pid))
		return PLUMB_UNKNOWN;
	return pid;
}

/* rocprofv3 puts a process's number before the names of its files: "4711_kernel_trace.csv". */
static int64_t
prefix_of(const char *path)
{
	const char *name = strrchr(path, '/');
	int64_t number;
	name = name ? name + 1 : path;
	size_t digits = strspn(name, "0123456789");
	return name[digits] == '_' &&
	                       plumb_slice_decimal((struct plumb_slice){ name, digits }, 0, &number)
	               ? number
	               : PLUMB_UNKNOWN;
}

/* Of one process, and no second file of a kind that does not name it. */
static bool
joins(const struct plumb_import_file *file, struct plumb_import_group *group)
{
	enum part part;
	int64_t pid = pid_of(file, &part), prefix = prefix_of(file->path);
	uint32_t mark = part == CALLS || part == OTHER ? 0 : UINT32_C(1) << part;
	if (group->marks & mark ||
	    (pid != PLUMB_UNKNOWN && group->pid != PLUMB_UNKNOWN && pid != group->pid) ||
	    (prefix != PLUMB_UNKNOWN && group->prefix != PLUMB_UNKNOWN && prefix != group->prefix))
		return false;
	group->marks |= mark;
	group->pid = pid != PLUMB_UNKNOWN ? pid : group->pid;
	group->prefix = prefix != PLUMB_UNKNOWN ? prefix : group->prefix;
	return true;
}

/* ---- rows ---- */

static struct plumb_slice
cell_of(const struct reader *reader, enum column column)
{
	uint32_t i = reader->column[column];
	return i == PLUMB_NONE ? (struct plumb_slice){ "", 0 } : reader->csv.cells[i];
}

static int64_t
number_of(const struct reader *reader, enum column column)
{
	int64_t number;
	return plumb_slice_decimal(cell_of(reader, column), 0, &number) ? number : PLUMB_UNKNOWN;
}

static uint64_t
correlation_of(const struct reader *reader)
{
	int64_t number = number_of(reader, CORRELATION);
	return number > 0 ? (uint64_t)number : 0;
}

/* 4, "Agent 4" */
static int64_t
agent_of(const struct reader *reader, enum column column)
{
	struct plumb_slice cell = cell_of(reader, column);
	int64_t number;
	while (cell.bytes && !isdigit((unsigned char)*cell.at)) {
		cell.at++;
		cell.bytes--;
	}
	return plumb_slice_decimal(cell, 0, &number) ? number : PLUMB_UNKNOWN;
}

/* The first process that is named is the one that other rows and files do not name. */
static uint32_t
process_of(struct reader *reader)
{
	int64_t pid = number_of(reader, PROCESS);
	if (pid == PLUMB_UNKNOWN || reader->process == PLUMB_NONE)
		return reader->process;
	uint32_t known = plumb_trace_has_process(reader->trace, pid);
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	if (known != PLUMB_NONE)
		return known;
	if (plumb_builder_get_process(builder, reader->process)->pid == PLUMB_UNKNOWN)
		return plumb_trace_process_is(reader->trace, reader->process, pid);
	return plumb_trace_process(reader->trace, pid);
}

static uint32_t
stream_of(struct reader *reader, uint32_t process, int64_t agent)
{
	int64_t stream = number_of(reader, STREAM);
	uint32_t device = plumb_trace_device(reader->trace, process, agent, NULL);
	if (stream == PLUMB_UNKNOWN)
		stream = number_of(reader, QUEUE);
	return plumb_trace_stream(reader->trace, process, device, PLUMB_UNKNOWN, stream);
}

/* Grids are in work-items: the last group may be a part. */
static void
read_launch(const struct reader *reader, struct plumb_trace_launch *launch)
{
	*launch = plumb_trace_no_launch;
	for (unsigned i = 0; i < 3; i++) {
		int64_t items = number_of(reader, GRID_X + i);
		int64_t group = number_of(reader, GROUP_X + i);
		launch->block[i] = group;
		if (items >= 0 && group > 0)
			launch->grid[i] = items / group + (items % group != 0);
	}
	int64_t own = number_of(reader, VGPR), more = number_of(reader, ACCUM_VGPR);
	launch->registers = own;
	if (own >= 0 && own < INT32_MAX && more >= 0 && more < INT32_MAX)
		launch->registers = own + more;
	launch->shared = number_of(reader, LDS);
	if (launch->shared == PLUMB_UNKNOWN)
		launch->shared = number_of(reader, GROUP_SEGMENT);
}

static struct plumb_slice
kernel_name(const struct reader *reader)
{
	struct plumb_slice name = cell_of(reader, KERNEL_NAME);
	if (name.bytes > 3 && !memcmp(name.at + name.bytes - 3, ".kd", 3))
		name.bytes -= 3;
	return name;
}

static const char *
read_times(const struct reader *reader, int64_t *start, int64_t *end)
{
	if (!plumb_slice_decimal(cell_of(reader, START), 0, start))
		return "Start_Timestamp is not a number of ns";
	return plumb_slice_decimal(cell_of(reader, END), 0, end)
	               ? NULL
	               : "End_Timestamp is not a number of ns";
}

/* A dispatch, of either file that has them. */
static void
take_dispatch(struct reader *reader, int64_t start, int64_t end)
{
	struct plumb_trace *trace = reader->trace;
	struct plumb_trace_launch launch;
	uint32_t process = process_of(reader);
	int64_t dispatch = number_of(reader, DISPATCH);
	struct plumb_trace_work work = {
		.track = stream_of(reader, process, agent_of(reader, AGENT)),
		.frame = plumb_trace_frame(trace, PLUMB_FRAME_KERNEL, kernel_name(reader)),
		.start_ns = start,
		.end_ns = end,
		.correlation = correlation_of(reader),
		.bytes = PLUMB_UNKNOWN,
		.launch = &launch,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	read_launch(reader, &launch);
	if (dispatch == PLUMB_UNKNOWN)
		plumb_trace_work(trace, &work);
	else if (plumb_trace_work_once(trace, process, &work, (uint64_t)dispatch) == 1 &&
	         reader->part == KERNELS)
		plumb_trace_count(trace, PLUMB_FATE_REPEATED,
		                  "dispatches whose number is used twice", 1);
}

static const char *
take_copy(struct reader *reader, int64_t start, int64_t end)
{
	struct plumb_trace *trace = reader->trace;
	struct plumb_slice direction = cell_of(reader, DIRECTION);
	int64_t from = agent_of(reader, SOURCE), to = agent_of(reader, DESTINATION);
	bool upload = memmem(direction.at, direction.bytes, "HOST_TO_DEVICE", 14) != NULL;
	if (memmem(direction.at, direction.bytes, "HOST_TO_HOST", 12)) {
		plumb_trace_count(trace, PLUMB_FATE_UNUSED, "copies from host to host", 1);
		return NULL;
	}
	struct plumb_trace_work work = {
		.track = stream_of(reader, process_of(reader), upload ? to : from),
		.start_ns = start,
		.end_ns = end,
		.correlation = correlation_of(reader),
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	if (memmem(direction.at, direction.bytes, "DEVICE_TO_DEVICE", 16) && from != to)
		work.frame = plumb_trace_copy_frame(trace, "device", "peer device");
	else
		work.frame = plumb_import_copy(trace, direction);
	plumb_trace_work(trace, &work);
	return NULL;
}

static void
take_call(struct reader *reader, int64_t start, int64_t end)
{
	struct plumb_trace *trace = reader->trace;
	struct plumb_slice domain = cell_of(reader, DOMAIN);
	bool marker = plumb_slice_begins(domain, "MARKER");
	bool driver = plumb_slice_begins(domain, "HIP") || plumb_slice_begins(domain, "HSA");
	uint32_t kind = marker   ? PLUMB_FRAME_RANGE
	                : driver ? PLUMB_FRAME_GPU_API
	                         : PLUMB_FRAME_LIBRARY;
	plumb_trace_host(trace,
	                 plumb_trace_thread(trace, process_of(reader), number_of(reader, THREAD)),
	                 plumb_trace_frame(trace, kind, cell_of(reader, FUNCTION)), start, end,
	                 correlation_of(reader));
}

/* Each counter of a dispatch is a row; the dispatch is taken once. */
static const char *
take_counter(struct reader *reader)
{
	struct plumb_trace *trace = reader->trace;
	struct plumb_builder *builder = plumb_trace_builder(trace);
	struct plumb_slice name = cell_of(reader, COUNTER_NAME);
	int64_t start, end, dispatch = number_of(reader, DISPATCH);
	const char *why = NULL;
	if (cell_of(reader, START).bytes || cell_of(reader, END).bytes) {
		why = read_times(reader, &start, &end);
		if (!why && (start || end)) /* 0 and 0: it was not timed */
			take_dispatch(reader, start, end);
	}
	if (why)
		return why;
	if (!name.bytes)
		return "Counter_Name is empty";
	return plumb_trace_reading(
		       trace, process_of(reader),
		       dispatch == PLUMB_UNKNOWN ? PLUMB_TRACE_NO_ID : (uint64_t)dispatch,
		       plumb_trace_frame(trace, PLUMB_FRAME_KERNEL, kernel_name(reader)),
		       plumb_builder_string(builder, name.at, name.bytes), PLUMB_NONE,
		       cell_of(reader, COUNTER_VALUE))
	               ? NULL
	               : "Counter_Value is not a number";
}

static const char *
take_row(struct reader *reader)
{
	int64_t start, end;
	const char *why = NULL;
	if (reader->csv.count != reader->cells)
		return "the number of cells is not that of the heading";
	if (reader->part == COUNTERS)
		return take_counter(reader);
	if (reader->part == OTHER) {
		plumb_trace_count_slice(reader->trace, PLUMB_FATE_UNUSED, cell_of(reader, KIND), 1);
		return NULL;
	}
	why = read_times(reader, &start, &end);
	if (why)
		return why;
	if (reader->part == KERNELS)
		take_dispatch(reader, start, end);
	else if (reader->part == COPIES)
		return take_copy(reader, start, end);
	else
		take_call(reader, start, end);
	return NULL;
}

/* ---- the file ---- */

static int
read_line(struct reader *reader, struct plumb_slice line, struct plumb_error *error)
{
	struct plumb_csv *csv = &reader->csv;
	if (!line.bytes)
		return 0;
	int code = plumb_csv_split(csv, error);
	if (code < 0)
		return code;
	if (reader->part == NO_PART) {
		find_columns(csv->cells, csv->count, reader->column);
		reader->cells = csv->count;
		reader->part = part_of(reader->column);
		return reader->part != NO_PART
		               ? 0
		               : plumb_csv_fail(csv, error, "not a heading that rocprofv3 writes");
	}
	const char *why = take_row(reader);
	return why ? plumb_csv_fail(csv, error, "%s", why) : 0;
}

static int
read(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	struct reader reader = { .trace = trace };
	struct plumb_slice line;
	reader.process = plumb_trace_process(trace, PLUMB_UNKNOWN);
	int code = plumb_csv_open(&reader.csv, file->input, error);
	while (!code && (code = plumb_csv_line(&reader.csv, &line, error)) > 0)
		code = read_line(&reader, line, error);
	plumb_csv_close(&reader.csv);
	return code;
}

const struct plumb_format plumb_format_rocprof_csv = {
	.name = "rocprof-csv",
	.title = "rocprofv3 CSV",
	.probe = probe,
	.read = read,
	.joins = joins,
};
