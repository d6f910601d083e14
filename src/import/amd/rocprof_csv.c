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
#include "import/copies.h"
#include "import/text_table.h"

enum part { NO_PART, CALLS, KERNELS, COPIES, COUNTERS, OTHER };

struct row {
	struct plumb_slice kind, kernel, direction, domain, function, counter, value;
	struct plumb_slice start_text, end_text;
	int64_t agent, queue, stream, thread, pid, dispatch, correlation, start, end, lds,
		group_segment, vgpr, accum_vgpr, group[3], grid[3], source, destination;
};

#define AT(member) offsetof(struct row, member)

static const struct plumb_text_column columns[] = {
	{ "Kind", PLUMB_AS_TEXT, AT(kind) },
	{ "Agent_Id", PLUMB_AS_LABEL, AT(agent) },
	{ "Queue_Id", PLUMB_AS_NUMBER, AT(queue) },
	{ "Stream_Id", PLUMB_AS_NUMBER, AT(stream) },
	{ "Thread_Id", PLUMB_AS_NUMBER, AT(thread) },
	{ "Process_Id", PLUMB_AS_NUMBER, AT(pid) },
	{ "Dispatch_Id", PLUMB_AS_NUMBER, AT(dispatch) },
	{ "Kernel_Name", PLUMB_AS_TEXT, AT(kernel) },
	{ "Correlation_Id", PLUMB_AS_NUMBER, AT(correlation) },
	{ "Start_Timestamp", PLUMB_AS_NUMBER, AT(start) },
	{ "Start_Timestamp", PLUMB_AS_TEXT, AT(start_text) },
	{ "End_Timestamp", PLUMB_AS_NUMBER, AT(end) },
	{ "End_Timestamp", PLUMB_AS_TEXT, AT(end_text) },
	{ "LDS_Block_Size", PLUMB_AS_NUMBER, AT(lds) },
	{ "Group_Segment_Size", PLUMB_AS_NUMBER, AT(group_segment) },
	{ "VGPR_Count", PLUMB_AS_NUMBER, AT(vgpr) },
	{ "Accum_VGPR_Count", PLUMB_AS_NUMBER, AT(accum_vgpr) },
	{ "Workgroup_Size_X", PLUMB_AS_NUMBER, AT(group[0]) },
	{ "Workgroup_Size_Y", PLUMB_AS_NUMBER, AT(group[1]) },
	{ "Workgroup_Size_Z", PLUMB_AS_NUMBER, AT(group[2]) },
	{ "Grid_Size_X", PLUMB_AS_NUMBER, AT(grid[0]) },
	{ "Grid_Size_Y", PLUMB_AS_NUMBER, AT(grid[1]) },
	{ "Grid_Size_Z", PLUMB_AS_NUMBER, AT(grid[2]) },
	{ "Direction", PLUMB_AS_TEXT, AT(direction) },
	{ "Source_Agent_Id", PLUMB_AS_LABEL, AT(source) },
	{ "Destination_Agent_Id", PLUMB_AS_LABEL, AT(destination) },
	{ "Domain", PLUMB_AS_TEXT, AT(domain) },
	{ "Function", PLUMB_AS_TEXT, AT(function) },
	{ "Counter_Name", PLUMB_AS_TEXT, AT(counter) },
	{ "Counter_Value", PLUMB_AS_TEXT, AT(value) },
};

struct reader {
	struct plumb_text_table table;
	struct plumb_trace *trace; /* NULL: only the first row is looked at */
	uint32_t process;          /* the one of rows that name none */
	enum part part;
	struct row row;
};

/* ---- which file it is ---- */

static enum part
part_of(const struct plumb_text_table *table)
{
#define HAS(member) plumb_text_table_has(table, AT(member))
	bool timed = HAS(start) && HAS(end);
	if (HAS(counter) && HAS(value) && HAS(kernel))
		return COUNTERS;
	if (timed && HAS(kernel))
		return KERNELS;
	if (timed && HAS(direction) && HAS(source) && HAS(destination))
		return COPIES;
	if (timed && HAS(domain) && HAS(function))
		return CALLS;
	return timed && HAS(kind) ? OTHER : NO_PART;
#undef HAS
}

static int read_line(void *data, struct plumb_slice line, struct plumb_error *error);

/* What FILE's first two lines say: the part, and the process that the row names. */
static enum part
peek_part(const struct plumb_import_file *file, int64_t *pid)
{
	struct reader reader = {
		.table = { PLUMB_TEXT_COLUMNS(columns), .head_only = true },
		.row = { .pid = PLUMB_UNKNOWN },
	};
	struct plumb_error error;
	int code = plumb_text_table_read(&reader.table, file, read_line, &reader, &error);
	*pid = code < 0 ? PLUMB_UNKNOWN : reader.row.pid;
	return reader.part;
}

static int
probe_rocprof_csv(const struct plumb_import_file *file)
{
	int64_t pid;
	return peek_part(file, &pid) != NO_PART ? 90 : 0;
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
joins_group(const struct plumb_import_file *file, struct plumb_import_group *group)
{
	int64_t pid, prefix = prefix_of(file->path);
	enum part part = peek_part(file, &pid);
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

/* The first process that is named is the one that other rows and files do not name. */
static uint32_t
process_of(struct reader *reader)
{
	int64_t pid = reader->row.pid;
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

/* Grids are in work-items: the last group may be a part. */
static struct plumb_trace_launch
launch_of(const struct row *row)
{
	struct plumb_trace_launch launch = plumb_trace_no_launch;
	for (unsigned i = 0; i < 3; i++) {
		int64_t items = row->grid[i], group = row->group[i];
		launch.block[i] = group;
		if (items >= 0 && group > 0)
			launch.grid[i] = items / group + (items % group != 0);
	}
	launch.registers = row->vgpr;
	if (row->vgpr >= 0 && row->vgpr < INT32_MAX && row->accum_vgpr >= 0 &&
	    row->accum_vgpr < INT32_MAX)
		launch.registers += row->accum_vgpr;
	launch.shared = row->lds != PLUMB_UNKNOWN ? row->lds : row->group_segment;
	return launch;
}

static uint32_t
kernel_frame(const struct reader *reader)
{
	struct plumb_slice name = reader->row.kernel;
	if (name.bytes > 3 && !memcmp(name.at + name.bytes - 3, ".kd", 3))
		name.bytes -= 3;
	return plumb_trace_frame(reader->trace, PLUMB_FRAME_KERNEL, name);
}

/* The row as work of AGENT in PROCESS. */
static struct plumb_trace_work
work_of(struct reader *reader, uint32_t process, int64_t agent, uint32_t frame)
{
	const struct row *row = &reader->row;
	uint32_t device = plumb_trace_device(reader->trace, process, agent, NULL);
	int64_t stream = row->stream != PLUMB_UNKNOWN ? row->stream : row->queue;
	return (struct plumb_trace_work){
		.track = plumb_trace_stream(reader->trace, process, device, PLUMB_UNKNOWN, stream),
		.frame = frame,
		.start_ns = row->start,
		.end_ns = row->end,
		.correlation = row->correlation > 0 ? (uint64_t)row->correlation : 0,
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
}

/* A dispatch, of either file that has them. */
static void
take_dispatch(struct reader *reader)
{
	struct plumb_trace *trace = reader->trace;
	int64_t dispatch = reader->row.dispatch;
	uint32_t process = process_of(reader);
	struct plumb_trace_launch launch = launch_of(&reader->row);
	struct plumb_trace_work work =
		work_of(reader, process, reader->row.agent, kernel_frame(reader));
	work.launch = &launch;
	if (dispatch == PLUMB_UNKNOWN)
		plumb_trace_work(trace, &work);
	else if (plumb_trace_work_once(trace, process, &work, (uint64_t)dispatch) == 1 &&
	         reader->part == KERNELS)
		plumb_trace_count(trace, PLUMB_FATE_REPEATED,
		                  "dispatches whose number is used twice", 1);
}

static void
take_copy(struct reader *reader)
{
	struct plumb_trace *trace = reader->trace;
	const struct row *row = &reader->row;
	if (plumb_text_has(row->direction, "HOST_TO_HOST")) {
		plumb_trace_count(trace, PLUMB_FATE_UNUSED, "copies from host to host", 1);
		return;
	}
	bool upload = plumb_text_has(row->direction, "HOST_TO_DEVICE");
	bool peer = plumb_text_has(row->direction, "DEVICE_TO_DEVICE") &&
	            row->source != row->destination;
	uint32_t frame =
		peer ? plumb_trace_copy_frame(trace, PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_PEER_DEVICE)
		     : plumb_import_copy(trace, row->direction);
	uint32_t process = process_of(reader);
	struct plumb_trace_work work =
		work_of(reader, process, upload ? row->destination : row->source, frame);
	if (peer)
		work.ends = plumb_trace_ends(
			plumb_trace_device(trace, process, row->source, NULL),
			plumb_trace_device(trace, process, row->destination, NULL));
	plumb_trace_work(trace, &work);
}

static void
take_call(struct reader *reader)
{
	struct plumb_trace *trace = reader->trace;
	const struct row *row = &reader->row;
	bool marker = plumb_slice_begins(row->domain, "MARKER");
	bool driver =
		plumb_slice_begins(row->domain, "HIP") || plumb_slice_begins(row->domain, "HSA");
	uint32_t kind = marker   ? PLUMB_FRAME_RANGE
	                : driver ? PLUMB_FRAME_GPU_API
	                         : PLUMB_FRAME_LIBRARY;
	plumb_trace_host(trace, plumb_trace_thread(trace, process_of(reader), row->thread),
	                 plumb_trace_frame(trace, kind, row->function), row->start, row->end,
	                 row->correlation > 0 ? (uint64_t)row->correlation : 0);
}

/* Each counter of a dispatch is a row; the dispatch is taken once. */
static const char *
take_counter(struct reader *reader)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	const struct row *row = &reader->row;
	if (row->start != PLUMB_UNKNOWN && (row->start || row->end)) /* 0 and 0: it was not timed */
		take_dispatch(reader);
	if (!row->counter.bytes)
		return "Counter_Name is empty";
	return plumb_trace_reading(
		       reader->trace, process_of(reader),
		       row->dispatch == PLUMB_UNKNOWN ? PLUMB_TRACE_NO_ID : (uint64_t)row->dispatch,
		       kernel_frame(reader),
		       plumb_builder_string(builder, row->counter.at, row->counter.bytes),
		       PLUMB_NONE, row->value)
	               ? NULL
	               : "Counter_Value is not a number";
}

static const char *
take_row(struct reader *reader)
{
	const struct row *row = &reader->row;
	bool untimed = reader->part == COUNTERS && !row->start_text.bytes && !row->end_text.bytes;
	if (reader->part == OTHER) {
		plumb_trace_count_slice(reader->trace, PLUMB_FATE_UNUSED, row->kind, 1);
		return NULL;
	}
	if (row->start == PLUMB_UNKNOWN && !untimed)
		return "Start_Timestamp is not a number of ns";
	if (row->end == PLUMB_UNKNOWN && !untimed)
		return "End_Timestamp is not a number of ns";
	if (reader->part == COUNTERS)
		return take_counter(reader);
	if (reader->part == KERNELS)
		take_dispatch(reader);
	else if (reader->part == COPIES)
		take_copy(reader);
	else
		take_call(reader);
	return NULL;
}

/* ---- the file ---- */

static int
read_line(void *data, struct plumb_slice line, struct plumb_error *error)
{
	struct reader *reader = data;
	struct plumb_text_table *table = &reader->table;
	int code;
	if (!line.bytes)
		return 0;
	if (reader->part == NO_PART) {
		code = plumb_text_table_heading(table, PLUMB_LAYOUT_CSV, line, error);
		reader->part = code > 0 ? part_of(table) : NO_PART;
		const char *why = "not a heading that rocprofv3 writes";
		return code < 0 ? code
		                : plumb_text_table_check(table, reader->part ? NULL : why, error);
	}
	code = plumb_text_table_row(table, line, &reader->row, error);
	if (code || !reader->trace)
		return code ? code : 1;
	return plumb_text_table_check(table, take_row(reader), error);
}

static int
read_rocprof_csv(struct plumb_import_file *file, struct plumb_trace *trace,
                 struct plumb_error *error)
{
	struct reader reader = {
		.table = { PLUMB_TEXT_COLUMNS(columns) },
		.trace = trace,
		.process = plumb_trace_process(trace, PLUMB_UNKNOWN),
	};
	return plumb_text_table_read(&reader.table, file, read_line, &reader, error);
}

const struct plumb_format plumb_format_rocprof_csv = {
	.name = "rocprof-csv",
	.title = "rocprofv3 CSV",
	.probe = probe_rocprof_csv,
	.read = read_rocprof_csv,
	.joins = joins_group,
};
