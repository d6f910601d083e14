/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's profiler (Kineto): Chrome trace events with categories of its own. What changed over
 * the years: names of categories, where the base of times stands, whether a stream is a number or
 * "stream 7", and that ROCm calls are called otherwise. Times are µs with up to three digits behind
 * the point.
 *
 * GPU events carry the number of a device where others have their process, so the file's streams
 * belong to its first process that did anything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "import/chrome/event.h"
#include "import/chrome/kind.h"
#include "import/chrome/samples.h"
#include "import/copies.h"
#include "import/import.h"
#include "import/kineto/kineto.h"
#include "import/shapes.h"

enum category {
	OTHER,
	OPERATOR,
	ANNOTATION,
	PYTHON,
	CALL,
	KERNEL,
	COPY,
	SET,
	FLOW_GPU,
	FLOW_BACKWARD,
	REPEATED,
	NATIVE,
	SYNC,
};

static const struct {
	const char name[24];
	enum category category;
} categories[] = {
	{ "python_function", PYTHON },
	{ "cpu_op", OPERATOR },
	{ "kernel", KERNEL },
	{ "cuda_runtime", CALL },
	{ "ac2g", FLOW_GPU },
	{ "cuda_driver", CALL },
	{ "gpu_memcpy", COPY },
	{ "gpu_memset", SET },
	{ "user_annotation", ANNOTATION },
	{ "fwdbwd", FLOW_BACKWARD },
	{ "gpu_user_annotation", REPEATED },
	{ "cuda_sync", SYNC },
	/* to 2021 */
	{ "Operator", OPERATOR },
	{ "Kernel", KERNEL },
	{ "Runtime", CALL },
	{ "Memcpy", COPY },
	{ "Memset", SET },
	{ "async", FLOW_GPU },
	{ "async_cpu_to_gpu", FLOW_GPU },
	{ "forward_backward", FLOW_BACKWARD },
	/* other vendors' */
	{ "xpu_runtime", CALL },
	{ "xpu_driver", CALL },
	{ "hip_runtime", CALL },
	{ "mtia_runtime", CALL },
	{ "privateuse1_runtime", CALL },
	{ "privateuse1_driver", CALL },
	/* plumb's own exports */
	{ "native", NATIVE },
	{ "python_stack", FLOW_GPU }, /* drawn for people: not read */
	{ "cpu_sample", FLOW_GPU },
};

struct arguments {
	int64_t correlation, device, stream, context, bytes, process;
	int64_t from_device, to_device; /* of a copy between two */
	int64_t rank, raw_pid;          /* in a file of several ranks */
	int64_t awaited, recorded;      /* of a synchronisation */
	struct plumb_slice collective;
	struct plumb_kineto_group group;
	struct plumb_import_inputs inputs; /* of an operator */
	struct plumb_trace_launch launch;
};

struct flow_end {
	int64_t id, at;
	uint32_t track;
	bool finish;
};

struct reader {
	struct plumb_trace *trace;
	struct plumb_chrome chrome;
	struct arguments arguments; /* of the event that is read */
	bool namespaces;            /* operators are called "aten::mm", not "mm" */
	bool rankless;              /* an event said no rank: nor will others */
	struct plumb_kineto_processes processes;
	struct plumb_kineto_devices devices;
	int64_t counts[16]; /* by enum category, of what is not taken */
	PLUMB_VEC(struct flow_end) flows;
	struct plumb_kineto_comms comms;
	struct plumb_import_shapes_seen shapes;
	struct plumb_chrome_samples samples; /* the file's own list */
};

/* ---- arguments ---- */

/* [1,2,3] */
static void
read_three(struct plumb_pull *pull, void *into, void *own)
{
	int64_t three[3];
	int count = 0;
	(void)own;
	if (!plumb_pull_enter(pull, '[')) {
		plumb_pull_skip(pull);
		return;
	}
	while (plumb_pull_item(pull)) {
		int64_t number = PLUMB_UNKNOWN;
		plumb_pull_integer(pull, &number);
		if (count < 3)
			three[count++] = number;
	}
	if (count == 3)
		memcpy(into, three, sizeof three);
}

#define AT(member) PLUMB_PULL_AT(struct reader, arguments.member)
static const struct plumb_pull_field argument_fields[] = {
	/* In the order of PyTorch's profiler: of operators, … */
	PLUMB_PULL_FIELD("External id", INTEGER, AT(group.external)),
	PLUMB_PULL_FIELD("Concrete Inputs", RAW, AT(inputs.values)),
	PLUMB_PULL_FIELD("Input type", RAW, AT(inputs.types)),
	PLUMB_PULL_FIELD("Input Strides", RAW, AT(inputs.strides)),
	PLUMB_PULL_FIELD("Input Dims", RAW, AT(inputs.dims)),
	/* … of collectives, … */
	PLUMB_PULL_FIELD("Collective name", TEXT, AT(collective)),
	PLUMB_PULL_FIELD("Group size", INTEGER, AT(group.size)),
	PLUMB_PULL_FIELD("Process Group Name", TEXT, AT(group.name)),
	PLUMB_PULL_FIELD("Process Group Ranks", RAW, AT(group.ranks)),
	PLUMB_PULL_FIELD("Seq", INTEGER, AT(group.sequence)),
	/* … and of GPU work and synchronisation. */
	PLUMB_PULL_FIELD("device", INTEGER, AT(device)),
	PLUMB_PULL_FIELD("fromDevice", INTEGER, AT(from_device)),
	PLUMB_PULL_FIELD("toDevice", INTEGER, AT(to_device)),
	PLUMB_PULL_FIELD("context", INTEGER, AT(context)),
	PLUMB_PULL_FIELD("stream", INTEGER, AT(stream)),
	PLUMB_PULL_FIELD("correlation", INTEGER, AT(correlation)),
	PLUMB_PULL_FIELD("registers per thread", INTEGER, AT(launch.registers)),
	PLUMB_PULL_FIELD("shared memory", INTEGER, AT(launch.shared)),
	PLUMB_PULL_FIELD("grid", CALL, AT(launch.grid), .read = read_three),
	PLUMB_PULL_FIELD("block", CALL, AT(launch.block), .read = read_three),
	PLUMB_PULL_FIELD("bytes", INTEGER, AT(bytes)),
	PLUMB_PULL_FIELD("wait_on_stream", INTEGER, AT(awaited)),
	PLUMB_PULL_FIELD("wait_on_cuda_event_record_corr_id", INTEGER, AT(recorded)),
	/* Files of several ranks, and plumb's own exports. */
	PLUMB_PULL_FIELD("rank", INTEGER, AT(rank)),
	PLUMB_PULL_FIELD("pid_raw", INTEGER, AT(raw_pid)),
	PLUMB_PULL_FIELD("process", INTEGER, AT(process)),
	{ 0 },
};
#undef AT

static void
begin_event(struct plumb_chrome *chrome)
{
	((struct reader *)chrome->own)->arguments = (struct arguments){
		.device = PLUMB_UNKNOWN,
		.from_device = PLUMB_UNKNOWN,
		.to_device = PLUMB_UNKNOWN,
		.stream = PLUMB_UNKNOWN,
		.context = PLUMB_UNKNOWN,
		.bytes = PLUMB_UNKNOWN,
		.process = PLUMB_UNKNOWN,
		.rank = PLUMB_UNKNOWN,
		.raw_pid = PLUMB_UNKNOWN,
		.awaited = -1,
		.recorded = -1,
		.group = PLUMB_KINETO_NO_GROUP,
		.launch = plumb_trace_no_launch,
	};
}

static enum category
category_of(struct plumb_slice name)
{
	/* Compared as a whole, with the zeros behind it: most events are of the first few. */
	char padded[sizeof categories->name] = "";
	if (name.bytes >= sizeof padded)
		return OTHER;
	memcpy(padded, name.at, name.bytes);
	for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
		if (!memcmp(padded, categories[i].name, sizeof padded))
			return categories[i].category;
	return OTHER;
}

/* What torch.autograd.profiler writes, also where PyTorch was built without Kineto, has no
 * categories: processes are called "CPU functions" and "CUDA functions", and the thread of the
 * latter is the device. Ranges are told from operators by their names, where these have
 * namespaces. */
static enum category
category_without_name(struct reader *reader, const struct plumb_chrome_event *event)
{
	if (!event->pid_text.at || event->phase != 'X')
		return OTHER;
	if (plumb_slice_is(event->pid_text, "CUDA functions")) {
		reader->arguments.device = event->tid;
		return KERNEL;
	}
	if (!plumb_slice_is(event->pid_text, "CPU functions"))
		return OTHER;
	return reader->namespaces && event->name.at &&
	                       !memmem(event->name.at, event->name.bytes, "::", 2) &&
	                       !memmem(event->name.at, event->name.bytes, "Backward", 8)
	               ? ANNOTATION
	               : OPERATOR;
}

/* Do we read the arguments of events of this category? The category usually comes before them. */
static bool
wants_arguments(const struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	if (!event->category.at || !((struct reader *)chrome->own)->rankless)
		return true;
	enum category category = category_of(event->category);
	return category != PYTHON && category != ANNOTATION;
}

/* ---- events ---- */

/* The process with the number PID of the event's rank. PLUMB_UNKNOWN: the process that its GPU
 * events belong to. */
static struct plumb_kineto_process *
known_process(struct reader *reader, int64_t pid)
{
	return plumb_kineto_process(reader->trace, &reader->processes, reader->arguments.rank, pid,
	                            reader->arguments.raw_pid);
}

static uint32_t
process_of(struct reader *reader, int64_t pid)
{
	const struct plumb_kineto_process *process = known_process(reader, pid);
	return process ? process->process : PLUMB_NONE;
}

/* Where an event on a thread belongs: 0 is the Python tracer's word for a process that it does not
 * know. */
static int64_t
pid_of(const struct reader *reader, const struct plumb_chrome_event *event)
{
	return event->pid && reader->arguments.raw_pid ? event->pid : PLUMB_UNKNOWN;
}

/* A number of the event's that only its rank knows: other ranks of the file may have it, too. */
static int64_t
of_rank(const struct reader *reader, int64_t number)
{
	int64_t rank = reader->arguments.rank;
	if (rank == PLUMB_UNKNOWN || number == PLUMB_UNKNOWN)
		return number;
	return (int64_t)(plumb_hash_mix((uint64_t)rank, (uint64_t)number) >> 1);
}

static uint32_t
thread_of(struct reader *reader, const struct plumb_chrome_event *event)
{
	int64_t tid = event->tid;
	if (tid == PLUMB_UNKNOWN) /* a word: any number that others do not have */
		tid = (int64_t)(plumb_hash_bytes(event->tid_text.at ? event->tid_text.at : "",
		                                 event->tid_text.bytes) >>
		                1);
	uint32_t process = process_of(reader, pid_of(reader, event));
	uint32_t track = plumb_trace_thread(reader->trace, process, tid);
	if (event->tid == PLUMB_UNKNOWN && event->tid_text.at && track != PLUMB_NONE) {
		struct plumb_builder *builder = plumb_trace_builder(reader->trace);
		plumb_builder_get_track(builder, track)->name =
			plumb_builder_string(builder, event->tid_text.at, event->tid_text.bytes);
	}
	return track;
}

/* "torch/nn/modules/module.py(1518): _call_impl", "nn.Module: Linear_0", "<built-in function
 * linear>" */
static uint32_t
python_frame(struct reader *reader, struct plumb_slice name)
{
	static const char module[] = "nn.Module: ";
	const char *open, *close = NULL;
	if (plumb_slice_begins(name, module)) {
		struct plumb_slice own = { name.at + sizeof module - 1,
			                   name.bytes - (sizeof module - 1) };
		struct plumb_slice class = own;
		while (class.bytes && class.at[class.bytes - 1] >= '0' &&
		       class.at[class.bytes - 1] <= '9')
			class.bytes--;
		if (class.bytes && class.bytes < own.bytes && class.at[class.bytes - 1] == '_')
			class.bytes--;
		else
			class = own;
		return plumb_trace_frame_at(reader->trace, PLUMB_FRAME_MODULE, own, class, 0);
	}
	open = memrchr(name.at, '(', name.bytes);
	for (const char *at = open ? open + 1 : name.at; open && at < name.at + name.bytes; at++)
		if (*at < '0' || *at > '9') {
			close = at;
			break;
		}
	/* The last "(" may be of the function's own name: "…(12): <lambda>(x)". */
	if (open && (!close || close == open + 1 || *close != ')' ||
	             close + 3 > name.at + name.bytes || memcmp(close, "): ", 3))) {
		close = memmem(name.at, name.bytes, "): ", 3);
		open = close ? memrchr(name.at, '(', (size_t)(close - name.at)) : NULL;
	}
	if (open && open > name.at) {
		struct plumb_slice file = { name.at, (size_t)(open - name.at) };
		struct plumb_slice digits = { open + 1, (size_t)(close - open - 1) };
		struct plumb_slice function = { close + 3,
			                        (size_t)(name.at + name.bytes - close - 3) };
		int64_t line = 0;
		if (plumb_slice_decimal(digits, 0, &line))
			return plumb_trace_frame_at(reader->trace, PLUMB_FRAME_PYTHON, function,
			                            file, line);
	}
	return plumb_trace_frame(reader->trace, PLUMB_FRAME_PYTHON, name);
}

/* ORDINAL of the process with the number PID (PLUMB_UNKNOWN: the first). */
static uint32_t
device_of(struct reader *reader, int64_t pid, uint32_t process, int64_t ordinal)
{
	const char *uuid = plumb_kineto_devices_uuid(&reader->devices, pid, ordinal);

	return plumb_trace_device(reader->trace, process, ordinal, uuid);
}

static uint64_t
known_correlation(int64_t correlation)
{
	return correlation > 0 ? (uint64_t)correlation : 0;
}

static void
take_work(struct reader *reader, enum category category, const struct plumb_chrome_event *event)
{
	struct plumb_trace *trace = reader->trace;
	const struct arguments *arguments = &reader->arguments;
	int64_t ordinal = arguments->device != PLUMB_UNKNOWN    ? arguments->device
	                  : arguments->raw_pid != PLUMB_UNKNOWN ? arguments->raw_pid
	                                                        : event->pid;
	int64_t stream = arguments->stream;
	if (stream == PLUMB_UNKNOWN && event->tid != PLUMB_UNKNOWN)
		stream = event->tid;
	if (stream == PLUMB_UNKNOWN && event->tid_text.at &&
	    plumb_slice_begins(event->tid_text, "stream "))
		plumb_slice_decimal(
			(struct plumb_slice){ event->tid_text.at + 7, event->tid_text.bytes - 7 },
			0, &stream);
	bool launched = memcmp(&arguments->launch, &plumb_trace_no_launch,
	                       sizeof plumb_trace_no_launch) != 0;
	uint32_t process = process_of(reader, arguments->process);
	uint32_t device = device_of(reader, arguments->process, process, ordinal);
	struct plumb_trace_work work = {
		.track = plumb_trace_stream(trace, process, device, arguments->context, stream),
		.here = arguments->process != PLUMB_UNKNOWN,
		.start_ns = event->start,
		.end_ns = plumb_chrome_end(event),
		.correlation = known_correlation(arguments->correlation),
		.bytes = arguments->bytes,
		.launch = launched ? &arguments->launch : NULL,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	if (category == KERNEL) {
		work.frame = plumb_trace_frame(trace, PLUMB_FRAME_KERNEL, event->name);
		if (arguments->collective.at)
			work.collective = plumb_import_collective(trace, arguments->collective);
		if (arguments->collective.at ||
		    memmem(event->name.at, event->name.bytes, "nccl", 4))
			work.group =
				plumb_kineto_group(trace, &reader->comms, &arguments->group, true);
	} else {
		int64_t from = arguments->from_device, to = arguments->to_device;
		work.frame = plumb_import_copy(trace, event->name);
		if (from != PLUMB_UNKNOWN && to != PLUMB_UNKNOWN && from != to)
			work.ends = plumb_trace_ends(
				device_of(reader, arguments->process, process, from),
				device_of(reader, arguments->process, process, to));
	}
	plumb_trace_work(trace, &work);
}

static uint32_t
annotation_frame(struct reader *reader, const struct plumb_chrome_event *event)
{
	struct plumb_kineto_process *process = known_process(reader, pid_of(reader, event));
	return process ? plumb_kineto_annotation(reader->trace, &process->steps, event->name)
	               : PLUMB_NONE;
}

/* What happened on a thread. */
static void
take_host(struct reader *reader, enum category category, const struct plumb_chrome_event *event)
{
	struct plumb_trace *trace = reader->trace;
	struct plumb_slice name = event->name;
	int64_t end = plumb_chrome_end(event), correlated = reader->arguments.correlation;
	uint32_t frame;
	if (category == OPERATOR && plumb_slice_begins(name, "ProfilerStep#"))
		category = ANNOTATION; /* to 2021 */
	if (category == PYTHON)
		frame = python_frame(reader, name);
	else if (category == ANNOTATION)
		frame = annotation_frame(reader, event);
	else if (category == NATIVE)
		frame = plumb_trace_frame(trace, PLUMB_FRAME_NATIVE, name);
	else
		frame = plumb_trace_frame(
			trace, category == CALL ? PLUMB_FRAME_GPU_API : PLUMB_FRAME_OPERATOR, name);
	if (category == OPERATOR && plumb_slice_is(name, "record_param_comms"))
		plumb_kineto_group(trace, &reader->comms, &reader->arguments.group, false);
	if (category == OPERATOR && reader->arguments.inputs.types.at) {
		plumb_trace_shaped(
			trace, thread_of(reader, event), frame, event->start, end,
			plumb_import_shapes(trace, &reader->shapes, &reader->arguments.inputs));
		return;
	}
	uint64_t correlation = category == CALL ? known_correlation(correlated) : 0;
	plumb_trace_host(trace, thread_of(reader, event), frame, event->start, end, correlation);
}

static void
take_flow(struct reader *reader, const struct plumb_chrome_event *event)
{
	if ((event->phase != 's' && event->phase != 'f') || event->id == PLUMB_UNKNOWN ||
	    event->start == PLUMB_UNKNOWN)
		return;
	struct flow_end *end = plumb_vec_add(&reader->flows);
	if (end) /* else the links of the rest are missing: their work stands where it ran */
		*end = (struct flow_end){ of_rank(reader, event->id), event->start,
			                  thread_of(reader, event), event->phase == 'f' };
}

static void
take_event(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	struct reader *reader = chrome->own;
	const struct arguments *a = &reader->arguments;
	enum category category = event->category.at ? category_of(event->category)
	                                            : category_without_name(reader, event);
	reader->rankless |= a->rank == PLUMB_UNKNOWN && category != OTHER;
	if (a->rank == PLUMB_UNKNOWN)
		reader->arguments.rank =
			plumb_kineto_rank_named(&reader->processes, chrome, event->pid);
	reader->arguments.group.external = of_rank(reader, a->group.external);
	if (category == FLOW_BACKWARD)
		take_flow(reader, event);
	else if (category == FLOW_GPU || category == REPEATED)
		;
	else if (event->phase != 'X' || category == OTHER)
		plumb_trace_count_slice(reader->trace, PLUMB_FATE_UNUSED,
		                        event->category.at ? event->category : event->name,
		                        event->phase ? 1 : 0);
	else if (event->start == PLUMB_UNKNOWN || !event->name.at)
		plumb_trace_count(reader->trace, PLUMB_FATE_BACKWARDS, NULL, 1);
	else if (category == SYNC)
		plumb_kineto_sync(reader->trace, event,
		                  &(struct plumb_trace_sync){
					  .process = process_of(reader, PLUMB_UNKNOWN),
					  .ordinal = a->device,
					  .gpu_context = a->context,
					  .stream = a->stream,
					  .awaited = a->awaited,
					  .call = known_correlation(a->correlation),
					  .after = known_correlation(a->recorded),
				  });
	else if (category == KERNEL || category == COPY || category == SET)
		take_work(reader, category, event);
	else
		take_host(reader, category, event);
	if (category == REPEATED) {
		reader->counts[category]++;
		struct plumb_kineto_process *process = known_process(reader, PLUMB_UNKNOWN);
		if (process)
			plumb_kineto_gpu_step(&process->steps, event->name, event->start,
			                      plumb_chrome_end(event));
	}
}

/* ---- the rest of the file ---- */

static void
read_devices(void *own)
{
	struct plumb_chrome *chrome = own;
	struct reader *reader = chrome->own;
	plumb_kineto_devices_read(&reader->devices, &chrome->pull);
}

static void
read_base(void *own)
{
	struct plumb_chrome *chrome = own;
	struct reader *reader = chrome->own;
	int64_t base = 0;
	PLUMB_PULL_WHOLE(&chrome->pull)
	plumb_pull_integer(&chrome->pull, &base);
	plumb_trace_base(reader->trace, base);
	reader->processes.base_ns = base;
}

struct distributed {
	int64_t rank;
	struct plumb_slice backend;
};

static void
read_distributed(void *own)
{
	static const struct plumb_pull_field fields[] = {
		PLUMB_PULL_FIELD("backend", TEXT, PLUMB_PULL_AT(struct distributed, backend)),
		PLUMB_PULL_FIELD("rank", INTEGER, PLUMB_PULL_AT(struct distributed, rank)),
		{ 0 },
	};
	struct plumb_chrome *chrome = own;
	struct distributed said = { 0 };
	PLUMB_PULL_WHOLE(&chrome->pull)
	{
		said = (struct distributed){ .rank = PLUMB_UNKNOWN };
		plumb_pull_object(&chrome->pull, fields, &said, NULL);
	}
	if (said.rank != PLUMB_UNKNOWN)
		plumb_trace_rank(chrome->trace, said.rank);
	if (said.backend.bytes > 31) /* a longer word is cut off */
		said.backend.bytes = 31;
	if (said.backend.bytes)
		plumb_trace_environment(chrome->trace, "torch.distributed.backend", said.backend);
}

/* What a device copied and set in all. */
struct own_bytes {
	int64_t process, device, copied, set;
};

static void
read_own_bytes(void *own)
{
	static const struct plumb_pull_field fields[] = {
		PLUMB_PULL_FIELD("process", INTEGER, PLUMB_PULL_AT(struct own_bytes, process)),
		PLUMB_PULL_FIELD("device", INTEGER, PLUMB_PULL_AT(struct own_bytes, device)),
		PLUMB_PULL_FIELD("copied", INTEGER, PLUMB_PULL_AT(struct own_bytes, copied)),
		PLUMB_PULL_FIELD("set", INTEGER, PLUMB_PULL_AT(struct own_bytes, set)),
		{ 0 },
	};
	static const struct own_bytes initial = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, 0, 0 };
	struct plumb_chrome *chrome = own;
	struct reader *reader = chrome->own;
	struct own_bytes row;
	bool list = plumb_pull_enter_long(&chrome->pull, '[');
	while (list && plumb_pull_row(&chrome->pull, fields, &row, &initial, sizeof row, NULL)) {
		if (row.process == PLUMB_UNKNOWN || row.device == PLUMB_UNKNOWN)
			continue;
		uint32_t process = process_of(reader, row.process);
		plumb_trace_more_bytes(reader->trace,
		                       device_of(reader, row.process, process, row.device),
		                       row.copied, row.set);
	}
}

/* {"version": …, "bytes": [{"process": 1, "device": 0, "copied": 7, "set": 0}]}: what plumb's own
 * exports say of copies in total. */
static void
read_own(void *own)
{
	static const struct plumb_pull_part parts[] = { { "bytes", read_own_bytes }, { 0 } };
	struct plumb_chrome *chrome = own;
	if (plumb_pull_enter_long(&chrome->pull, '{'))
		plumb_pull_parts(&chrome->pull, parts, chrome);
}

/* ---- the end of it ---- */

static int
by_id(const void *x, const void *y)
{
	const struct flow_end *a = x, *b = y;
	if (a->id != b->id)
		return a->id < b->id ? -1 : 1;
	return (int)a->finish - (int)b->finish;
}

static void
link_flows(struct reader *reader)
{
	if (reader->flows.count)
		qsort(reader->flows.items, reader->flows.count, sizeof *reader->flows.items, by_id);
	for (uint32_t i = 0; i + 1 < reader->flows.count; i++) {
		const struct flow_end *a = &reader->flows.items[i], *b = a + 1;
		if (a->id == b->id && !a->finish && b->finish)
			plumb_trace_link(reader->trace, a->track, a->at, b->track, b->at);
	}
}

static int
read_kineto(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	static const struct plumb_pull_part parts[] = {
		{ "deviceProperties", read_devices },
		{ "baseTimeNanoseconds", read_base },
		{ "distributedInfo", read_distributed },
		{ "plumb", read_own },
		{ "stackFrames", plumb_chrome_samples_frames },
		{ "samples", plumb_chrome_samples_list },
		{ 0 },
	};
	static const struct plumb_chrome_dialect dialect = {
		.begin = begin_event,
		.arguments = argument_fields,
		.wants = wants_arguments,
		.take = take_event,
		.parts = parts,
	};
	struct reader *reader = calloc(1, sizeof *reader);
	if (!reader)
		return plumb_fail_memory(error, "to read %s", file->path);
	reader->trace = reader->samples.shared.trace = trace;
	reader->chrome = (struct plumb_chrome){
		.trace = trace, .dialect = &dialect, .own = reader, .samples = &reader->samples
	};
	reader->namespaces = strstr(file->head, "\"aten::") != NULL;
	reader->devices.first = plumb_builder_device_count(plumb_trace_builder(trace));
	int code = plumb_chrome_read(&reader->chrome, file, error);
	if (!code) {
		link_flows(reader);
		plumb_kineto_comms_join(trace, &reader->comms);
		plumb_kineto_devices_describe(&reader->devices, trace);
		plumb_chrome_samples_end(&reader->samples);
		plumb_chrome_give_names(&reader->chrome);
		plumb_trace_count(trace, PLUMB_FATE_REPEATED, "gpu_user_annotation",
		                  reader->counts[REPEATED]);
		plumb_kineto_processes_end(&reader->processes, &reader->chrome);
	}
	if (!code && reader->samples.no_memory)
		code = plumb_fail_memory(error, "to read %s", file->path);
	plumb_chrome_free(&reader->chrome);
	plumb_chrome_samples_free(&reader->samples);
	plumb_vec_free(&reader->flows);
	plumb_kineto_processes_free(&reader->processes);
	plumb_vec_free(&reader->comms.items);
	free(reader);
	return code;
}

/* Some of what only Kineto writes stands early in the file. */
static int
probe_kineto(const struct plumb_import_file *file)
{
	static const char *const words[] = { "\"deviceProperties\"", "\"baseTimeNanoseconds\"",
		                             "\"cpu_op\"",           "\"cuda_runtime\"",
		                             "\"python_function\"",  "\"Ev Idx\"",
		                             "\"distributedInfo\"" };
	int found = 0;
	if (!plumb_chrome_is_json(file))
		return 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		found += strstr(file->head, words[i]) != NULL;
	return found > 1 ? 90 : found ? 70 : 0;
}

const struct plumb_format plumb_format_kineto = {
	.name = "kineto",
	.title = "PyTorch profiler JSON",
	.events = PLUMB_CHROME_KINETO,
	.probe = probe_kineto,
	.read = read_kineto,
};
