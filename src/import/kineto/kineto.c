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

#include "import/chrome/kind.h"
#include "import/import.h"
#include "import/kineto/reader.h"

static const struct {
	const char name[24];
	enum plumb_kineto_category category;
} categories[] = {
	{ "python_function", PLUMB_KINETO_PYTHON },
	{ "cpu_op", PLUMB_KINETO_OPERATOR },
	{ "kernel", PLUMB_KINETO_KERNEL },
	{ "cuda_runtime", PLUMB_KINETO_CALL },
	{ "ac2g", PLUMB_KINETO_FLOW_GPU },
	{ "cuda_driver", PLUMB_KINETO_CALL },
	{ "gpu_memcpy", PLUMB_KINETO_COPY },
	{ "gpu_memset", PLUMB_KINETO_SET },
	{ "user_annotation", PLUMB_KINETO_ANNOTATION },
	{ "fwdbwd", PLUMB_KINETO_FLOW_BACKWARD },
	{ "gpu_user_annotation", PLUMB_KINETO_REPEATED },
	{ "cuda_sync", PLUMB_KINETO_SYNC },
	{ "cpu_instant_event", PLUMB_KINETO_INSTANT },
	/* to 2021 */
	{ "Operator", PLUMB_KINETO_OPERATOR },
	{ "Kernel", PLUMB_KINETO_KERNEL },
	{ "Runtime", PLUMB_KINETO_CALL },
	{ "Memcpy", PLUMB_KINETO_COPY },
	{ "Memset", PLUMB_KINETO_SET },
	{ "async", PLUMB_KINETO_FLOW_GPU },
	{ "async_cpu_to_gpu", PLUMB_KINETO_FLOW_GPU },
	{ "forward_backward", PLUMB_KINETO_FLOW_BACKWARD },
	/* other vendors' */
	{ "xpu_runtime", PLUMB_KINETO_CALL },
	{ "xpu_driver", PLUMB_KINETO_CALL },
	{ "hip_runtime", PLUMB_KINETO_CALL },
	{ "mtia_runtime", PLUMB_KINETO_CALL },
	{ "privateuse1_runtime", PLUMB_KINETO_CALL },
	{ "privateuse1_driver", PLUMB_KINETO_CALL },
	/* plumb's own exports */
	{ "native", PLUMB_KINETO_NATIVE },
	{ "python_stack", PLUMB_KINETO_FLOW_GPU }, /* drawn for people: not read */
	{ "cpu_sample", PLUMB_KINETO_FLOW_GPU },
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

#define AT(member) PLUMB_PULL_AT(struct plumb_kineto_reader, arguments.member)
static const struct plumb_pull_field argument_fields[] = {
	/* In the order of PyTorch's profiler: of operators, … */
	PLUMB_PULL_FIELD("External id", INTEGER, .varies = true, AT(group.external)),
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
	PLUMB_PULL_FIELD("correlation", INTEGER, .varies = true, AT(correlation)),
	PLUMB_PULL_FIELD("registers per thread", INTEGER, AT(launch.registers)),
	PLUMB_PULL_FIELD("shared memory", INTEGER, AT(launch.shared)),
	PLUMB_PULL_FIELD("grid", CALL, AT(launch.grid), .read = read_three),
	PLUMB_PULL_FIELD("block", CALL, AT(launch.block), .read = read_three),
	PLUMB_PULL_FIELD("bytes", INTEGER, .varies = true, AT(bytes)),
	PLUMB_PULL_FIELD("wait_on_stream", INTEGER, AT(awaited)),
	PLUMB_PULL_FIELD("wait_on_cuda_event_record_corr_id", INTEGER, AT(recorded)),
	/* Of allocations and frees. */
	PLUMB_PULL_FIELD("Device Type", INTEGER, AT(memory.type)),
	PLUMB_PULL_FIELD("Device Id", INTEGER, AT(memory.device)),
	PLUMB_PULL_FIELD("Total Allocated", INTEGER, .varies = true, AT(memory.allocated)),
	PLUMB_PULL_FIELD("Total Reserved", INTEGER, .varies = true, AT(memory.reserved)),
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
	((struct plumb_kineto_reader *)chrome->own)->arguments = (struct plumb_kineto_arguments){
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
		.memory = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
	};
}

enum plumb_kineto_category
plumb_kineto_category(struct plumb_slice name)
{
	/* Compared as a whole, with the zeros behind it: most events are of the first few. */
	char padded[sizeof categories->name] = "";
	if (name.bytes >= sizeof padded)
		return PLUMB_KINETO_OTHER;
	memcpy(padded, name.at, name.bytes);
	for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
		if (!memcmp(padded, categories[i].name, sizeof padded))
			return categories[i].category;
	return PLUMB_KINETO_OTHER;
}

/* Do we read the arguments of events of this category? The category usually comes before them. */
static bool
wants_arguments(const struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	if (!event->category.at || !((struct plumb_kineto_reader *)chrome->own)->rankless)
		return true;
	enum plumb_kineto_category category = plumb_kineto_category(event->category);
	return category != PLUMB_KINETO_PYTHON && category != PLUMB_KINETO_ANNOTATION;
}

/* ---- the rest of the file ---- */

static void
read_devices(void *own)
{
	struct plumb_chrome *chrome = own;
	struct plumb_kineto_reader *reader = chrome->own;
	plumb_kineto_devices_read(&reader->devices, &chrome->pull);
}

static void
read_base(void *own)
{
	struct plumb_chrome *chrome = own;
	struct plumb_kineto_reader *reader = chrome->own;
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
	struct plumb_kineto_reader *reader = chrome->own;
	struct own_bytes row;
	bool list = plumb_pull_enter_long(&chrome->pull, '[');
	while (list && plumb_pull_row(&chrome->pull, fields, &row, &initial, sizeof row, NULL)) {
		if (row.process == PLUMB_UNKNOWN || row.device == PLUMB_UNKNOWN)
			continue;
		uint32_t process = plumb_kineto_process_of(reader, row.process);
		plumb_trace_more_bytes(
			reader->trace,
			plumb_kineto_device_of(reader, row.process, process, row.device),
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
		.take = plumb_kineto_take,
		.again = plumb_kineto_again,
		.memo_bytes = sizeof(struct plumb_kineto_memo),
		.parts = parts,
	};
	struct plumb_kineto_reader *reader = calloc(1, sizeof *reader);
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
		plumb_kineto_link_flows(reader);
		plumb_kineto_comms_join(trace, &reader->comms);
		plumb_kineto_devices_describe(&reader->devices, trace);
		plumb_chrome_samples_end(&reader->samples);
		plumb_chrome_give_names(&reader->chrome);
		plumb_trace_count(trace, PLUMB_FATE_REPEATED, "gpu_user_annotation",
		                  reader->repeated);
		plumb_kineto_processes_end(&reader->processes, &reader->chrome);
	}
	if (!code && (plumb_kineto_memories_end(reader) < 0 || reader->samples.no_memory))
		code = plumb_fail_memory(error, "to read %s", file->path);
	plumb_chrome_free(&reader->chrome);
	plumb_chrome_samples_free(&reader->samples);
	plumb_vec_free(&reader->flows);
	plumb_kineto_memories_free(reader);
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
