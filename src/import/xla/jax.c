/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.json of XProf, which JAX and TensorFlow 2 write: the planes of a profile as processes,
 * their lines as threads, named before any event.
 *
 *	/host:CPU      threads: Python functions ("$file.py:12 f"), annotations, driver calls
 *	/device:GPU:0  "Stream #13(Compute)": kernels and copies, with the number of the call that
 *	               started them; other lines are XProf's own accounts of the same
 *	/device:TPU:0  "XLA Ops"; other lines likewise. Loops and branches hold other operations
 *
 * Arguments are texts: kernel_details is "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1
 * block:128,1,1 occ_pct:100", memcpy_details "kind_src:pinned kind_dst:device size:8 dest:0
 * async:1".
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "import/chrome/event.h"
#include "import/copies.h"

enum role { HOST, STREAM, TPU_OPERATIONS, REPEATED };

/* A line of a plane. */
struct line {
	int64_t pid, tid;
	enum role role;
	uint32_t track;
};

struct arguments {
	int64_t correlation;
	struct plumb_slice operation, module, source;
	struct plumb_slice kernel, copy, set;
	bool allocation;
};

struct reader {
	struct plumb_chrome chrome;
	struct arguments arguments;
	uint32_t process;
	PLUMB_VEC(struct line) lines;
	struct plumb_map line_map;
	bool no_memory;
};

/* ---- arguments ---- */

static void
begin_event(struct plumb_chrome *chrome)
{
	((struct reader *)chrome->own)->arguments = (struct arguments){ 0 };
}

#define AT(member) PLUMB_PULL_AT(struct reader, arguments.member)
static const struct plumb_pull_field argument_fields[] = {
	PLUMB_PULL_FIELD("correlation_id", INTEGER, AT(correlation)),
	PLUMB_PULL_FIELD("hlo_op", TEXT, AT(operation)),
	PLUMB_PULL_FIELD("hlo_module", TEXT, AT(module)),
	PLUMB_PULL_FIELD("source", TEXT, AT(source)),
	PLUMB_PULL_FIELD("kernel_details", TEXT, AT(kernel)),
	PLUMB_PULL_FIELD("memcpy_details", TEXT, AT(copy)),
	PLUMB_PULL_FIELD("memset_details", TEXT, AT(set)),
	PLUMB_PULL_FIELD("memalloc_details", SEEN, AT(allocation)),
	PLUMB_PULL_FIELD("memfree_details", SEEN, AT(allocation)),
	PLUMB_PULL_FIELD("memory_residency_details", SEEN, AT(allocation)),
	{ 0 },
};
#undef AT

/* The value after "KEY:" in a text of such pairs. */
static struct plumb_slice
find_detail(struct plumb_slice text, const char *key)
{
	size_t length = strlen(key);
	const char *at = text.at, *end = at ? at + text.bytes : NULL;
	while (at < end) {
		const char *next = at;
		while (next < end && !isspace((unsigned char)*next))
			next++;
		if ((size_t)(next - at) > length && !memcmp(at, key, length) && at[length] == ':')
			return (struct plumb_slice){ at + length + 1,
				                     (size_t)(next - at) - length - 1 };
		at = next + 1;
	}
	return (struct plumb_slice){ 0 };
}

static int64_t
number_of(struct plumb_slice text, int scale)
{
	int64_t number = PLUMB_UNKNOWN;
	if (text.at)
		plumb_slice_decimal(text, scale, &number);
	return number;
}

/* "1,2,3" */
static void
three_of(struct plumb_slice text, int64_t three[3])
{
	const char *at = text.at, *end = at ? at + text.bytes : NULL;
	for (int i = 0; i < 3 && at && at < end; i++) {
		const char *next = memchr(at, ',', (size_t)(end - at));
		next = next ? next : end;
		three[i] = number_of((struct plumb_slice){ at, (size_t)(next - at) }, 0);
		at = next + 1;
	}
}

static void
launch_of(struct plumb_slice text, struct plumb_trace_launch *launch)
{
	*launch = plumb_trace_no_launch;
	launch->registers = number_of(find_detail(text, "regs"), 0);
	launch->static_shared = number_of(find_detail(text, "static_shared"), 0);
	launch->dynamic_shared = number_of(find_detail(text, "dynamic_shared"), 0);
	launch->occupancy = number_of(find_detail(text, "occ_pct"), 4);
	three_of(find_detail(text, "grid"), launch->grid);
	three_of(find_detail(text, "block"), launch->block);
}

/* ---- lines ---- */

static bool
is_derived(const char *name)
{
	static const char *const names[] = {
		"XLA Modules",           "XLA Ops",
		"Async XLA Ops",         "Steps",
		"Framework Ops",         "TensorFlow Ops",
		"Framework Name Scope",  "Source code",
		"TensorFlow Name Scope", "Launch Stats",
		"XLA TraceMe",           "Host Offload Ops",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static void
describe_line(struct reader *reader, struct line *line)
{
	static const char gpu[] = "/device:GPU:", tpu[] = "/device:TPU:";
	struct plumb_trace *trace = reader->chrome.trace;
	const char *plane = plumb_chrome_name_of(&reader->chrome, line->pid, PLUMB_UNKNOWN);
	const char *name = plumb_chrome_name_of(&reader->chrome, line->pid, line->tid);
	const char *of_gpu = plane ? strstr(plane, gpu) : NULL;
	const char *of_tpu = plane && !of_gpu ? strstr(plane, tpu) : NULL;
	const char *ordinal = of_gpu   ? of_gpu + sizeof gpu - 1
	                      : of_tpu ? of_tpu + sizeof tpu - 1
	                               : "";
	struct plumb_slice digits = { ordinal, strspn(ordinal, "0123456789") };
	int64_t stream = line->tid;
	if (!*ordinal) {
		line->role = HOST;
		line->track = plumb_trace_thread(trace, reader->process, line->tid);
		if (name && line->track != PLUMB_NONE)
			plumb_builder_get_track(plumb_trace_builder(trace), line->track)->name =
				plumb_builder_text(plumb_trace_builder(trace), name);
		return;
	}
	line->role = of_gpu ? STREAM : TPU_OPERATIONS;
	if (name && (of_gpu ? is_derived(name) : strcmp(name, "XLA Ops") != 0)) {
		line->role = REPEATED;
		return;
	}
	if (of_gpu && name && !strncmp(name, "Stream #", 8))
		stream = number_of((struct plumb_slice){ name + 8, strspn(name + 8, "0123456789") },
		                   0);
	uint32_t device = plumb_trace_device(trace, reader->process, number_of(digits, 0), NULL);
	line->track = plumb_trace_stream(trace, reader->process, device, PLUMB_UNKNOWN, stream);
}

/* NULL: memory is out. */
static const struct line *
line_of(struct reader *reader, const struct plumb_chrome_event *event)
{
	struct line line = { .pid = plumb_chrome_number(event->pid, event->pid_text),
		             .tid = plumb_chrome_number(event->tid, event->tid_text) };
	uint64_t hash = plumb_hash_mix((uint64_t)line.pid, (uint64_t)line.tid);
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->line_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&reader->line_map, &at))
		if (reader->lines.items[i].pid == line.pid &&
		    reader->lines.items[i].tid == line.tid)
			return &reader->lines.items[i];
	describe_line(reader, &line);
	struct line *added = plumb_vec_add(&reader->lines);
	if (!added || plumb_map_add(&reader->line_map, hash, reader->lines.count - 1) < 0) {
		reader->no_memory = true;
		return NULL;
	}
	*added = line;
	return added;
}

/* ---- frames ---- */

/* "$file.py:12 f", "$builtins.len" */
static uint32_t
python_frame(struct plumb_trace *trace, struct plumb_slice name)
{
	struct plumb_slice text = { name.at + 1, name.bytes - 1 };
	const char *end = text.at + text.bytes;
	for (const char *at = text.at; (at = memchr(at, ':', (size_t)(end - at))); at++) {
		const char *behind = at + 1;
		int64_t line = 0;
		while (behind < end && isdigit((unsigned char)*behind))
			behind++;
		if (behind == at + 1 || behind >= end || *behind != ' ' || at == text.at)
			continue;
		struct plumb_slice file = { text.at, (size_t)(at - text.at) };
		struct plumb_slice function = { behind + 1, (size_t)(end - behind - 1) };
		line = number_of((struct plumb_slice){ at + 1, (size_t)(behind - at - 1) }, 0);
		return plumb_trace_frame_at(trace, PLUMB_FRAME_PYTHON, function, file, line);
	}
	return plumb_trace_frame(trace, PLUMB_FRAME_PYTHON, text);
}

/* An operation of a compiled program; SOURCE is "model.py:12". */
static uint32_t
operation_frame(struct plumb_trace *trace, struct plumb_slice name, struct plumb_slice source)
{
	uint32_t frame = plumb_trace_frame(trace, PLUMB_FRAME_OPERATOR, name);
	const char *colon = source.at ? memrchr(source.at, ':', source.bytes) : NULL;
	if (!colon || frame == PLUMB_NONE)
		return frame;
	int64_t line = number_of(
		(struct plumb_slice){ colon + 1, source.bytes - (size_t)(colon - source.at) - 1 },
		0);
	struct plumb_builder *builder = plumb_trace_builder(trace);
	if (line > 0 && line < UINT32_MAX)
		plumb_builder_frame_source(
			builder, frame,
			plumb_builder_string(builder, source.at, (size_t)(colon - source.at)),
			(uint32_t)line);
	return frame;
}

/* "MemcpyH2D", and what the details say. */
static uint32_t
copy_frame(struct plumb_trace *trace, struct plumb_slice name, struct plumb_slice details)
{
	static const struct {
		const char *letters;
		enum plumb_memory_kind from, to;
	} directions[] = {
		{ "H2D", PLUMB_MEMORY_HOST, PLUMB_MEMORY_DEVICE },
		{ "D2H", PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_HOST },
		{ "D2D", PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_DEVICE },
		{ "P2P", PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_PEER_DEVICE },
		{ "H2H", PLUMB_MEMORY_HOST, PLUMB_MEMORY_HOST },
	};
	enum plumb_memory_kind from = PLUMB_MEMORY_NONE, to = PLUMB_MEMORY_NONE;
	enum plumb_memory_kind exact_from =
		plumb_import_exact_memory(find_detail(details, "kind_src"));
	enum plumb_memory_kind exact_to =
		plumb_import_exact_memory(find_detail(details, "kind_dst"));
	for (size_t i = 0; i < sizeof directions / sizeof *directions; i++)
		if (memmem(name.at, name.bytes, directions[i].letters, 3)) {
			from = directions[i].from;
			to = directions[i].to;
		}
	if (!from && !exact_from && !exact_to)
		return plumb_import_copy(trace, name);
	if (exact_from)
		from = exact_from;
	if (exact_to && to != PLUMB_MEMORY_PEER_DEVICE)
		to = exact_to;
	return plumb_trace_copy_frame(trace, from ? from : PLUMB_MEMORY_UNKNOWN,
	                              to ? to : PLUMB_MEMORY_UNKNOWN);
}

/* ---- events ---- */

static bool
begins_with_one_of(struct plumb_slice name, const char *const *words)
{
	for (; *words; words++)
		if (plumb_slice_begins(name, *words))
			return true;
	return false;
}

static void
take_host(struct reader *reader, const struct line *line, const struct plumb_chrome_event *event)
{
	struct plumb_trace *trace = reader->chrome.trace;
	const struct arguments *own = &reader->arguments;
	struct plumb_slice name = event->name;
	uint64_t correlation = 0;
	uint32_t frame;
	if (own->correlation > 0) { /* a launch is called as its kernel, since 2025 */
		/* "cuGraphLaunch (CudaGraph:101)" */
		const char *more = memmem(name.at, name.bytes, " (", 2);
		if (more)
			name.bytes = (size_t)(more - name.at);
		correlation = (uint64_t)own->correlation;
		frame = plumb_trace_frame(trace, PLUMB_FRAME_GPU_API, name);
	} else if (name.bytes > 1 && *name.at == '$') {
		frame = python_frame(trace, name);
	} else if (own->operation.at) {
		frame = operation_frame(trace, name, own->source);
	} else {
		frame = plumb_trace_frame(trace, PLUMB_FRAME_RANGE, name);
	}
	plumb_trace_host(trace, line->track, frame, event->start, plumb_chrome_end(event),
	                 correlation);
}

static void
take_stream(struct reader *reader, const struct line *line, const struct plumb_chrome_event *event)
{
	struct plumb_trace *trace = reader->chrome.trace;
	const struct arguments *own = &reader->arguments;
	struct plumb_slice name = event->name;
	struct plumb_trace_launch launch;
	bool set = own->set.at || plumb_slice_begins(name, "Memset");
	bool copy = !set && (own->copy.at || plumb_slice_begins(name, "Memcpy"));
	struct plumb_trace_work work = {
		.track = line->track,
		.start_ns = event->start,
		.end_ns = plumb_chrome_end(event),
		.correlation = own->correlation > 0 ? (uint64_t)own->correlation : 0,
		.bytes = number_of(find_detail(set ? own->set : own->copy, "size"), 0),
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	if (own->operation.at)
		work.inner[0] = operation_frame(trace, own->operation, own->source);
	if (set) {
		enum plumb_memory_kind kind =
			plumb_import_exact_memory(find_detail(own->set, "kind"));
		work.frame = plumb_trace_set_frame(trace, kind ? kind : PLUMB_MEMORY_DEVICE);
	} else if (copy) {
		work.frame = copy_frame(trace, name, own->copy);
		work.ends = plumb_import_ends(trace, work.frame, work.track,
		                              number_of(find_detail(own->copy, "dest"), 0));
	} else {
		work.frame = plumb_trace_frame(trace, PLUMB_FRAME_KERNEL, name);
		if (own->kernel.at) {
			launch_of(own->kernel, &launch);
			work.launch = &launch;
		}
	}
	plumb_trace_work(trace, &work);
}

/* An operation of a TPU, under its module; there are no calls that start them. */
static void
take_operation(struct reader *reader, const struct line *line,
               const struct plumb_chrome_event *event)
{
	static const char *const holders[] = { "while", "conditional", "call", NULL };
	static const char *const collectives[] = { "all-reduce", "all-gather", "reduce-scatter",
		                                   "all-to-all", "send",       "recv",
		                                   NULL };
	struct plumb_trace *trace = reader->chrome.trace;
	struct plumb_builder *builder = plumb_trace_builder(trace);
	const struct arguments *own = &reader->arguments;
	if (begins_with_one_of(event->name, holders)) {
		plumb_trace_count(trace, PLUMB_FATE_REPEATED,
		                  "loops and branches around operations", 1);
		return;
	}
	struct plumb_trace_work work = {
		.track = line->track,
		.frame = plumb_trace_frame(trace, PLUMB_FRAME_KERNEL, event->name),
		.start_ns = event->start,
		.end_ns = plumb_chrome_end(event),
		.bytes = PLUMB_UNKNOWN,
		.collective = begins_with_one_of(event->name, collectives)
		                      ? plumb_import_collective(trace, event->name)
		                      : PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	if (own->module.at)
		work.placed = plumb_builder_context(
			builder, 0, plumb_trace_frame(trace, PLUMB_FRAME_RANGE, own->module), 0);
	plumb_trace_work(trace, &work);
}

static void
take_event(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	struct reader *reader = chrome->own;
	if (!event->phase)
		return; /* {}, the last */
	if (event->phase != 'X') {
		plumb_trace_count(chrome->trace, PLUMB_FATE_UNUSED,
		                  event->phase == 'C' ? "counters" : "asynchronous events", 1);
		return;
	}
	const struct line *line = line_of(reader, event);
	if (!line)
		return;
	if (!event->name.at)
		plumb_trace_count(chrome->trace, PLUMB_FATE_BACKWARDS, NULL, 1);
	else if (line->role == REPEATED)
		plumb_trace_count(chrome->trace, PLUMB_FATE_REPEATED,
		                  "lines that XProf computes from other lines", 1);
	else if (line->role == HOST)
		take_host(reader, line, event);
	else if (reader->arguments.allocation)
		plumb_trace_count(chrome->trace, PLUMB_FATE_UNUSED, "allocations", 1);
	else if (line->role == STREAM)
		take_stream(reader, line, event);
	else
		take_operation(reader, line, event);
}

/* ---- the whole ---- */

static int
read_jax(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	static const struct plumb_chrome_dialect dialect = { .begin = begin_event,
		                                             .arguments = argument_fields,
		                                             .take = take_event };
	struct reader reader = { .chrome = { .trace = trace, .dialect = &dialect } };
	reader.chrome.own = &reader;
	reader.process = plumb_trace_process(trace, PLUMB_UNKNOWN);
	int code = plumb_chrome_read(&reader.chrome, file, error);
	if (!code && reader.no_memory)
		code = plumb_fail_memory(error, "to read %s", file->path);
	plumb_chrome_free(&reader.chrome);
	plumb_vec_free(&reader.lines);
	plumb_map_free(&reader.line_map);
	return code;
}

static int
probe_jax(const struct plumb_import_file *file)
{
	static const char *const planes[] = { "/host:CPU\"", "/device:GPU:", "/device:TPU:" };
	static const char *const words[] = { "\"highres-ticks\"",  "\"hlo_op\"",
		                             "\"XLA Modules\"",    "\"hlo_module\"",
		                             "\"XLA Ops\"",        "\"kernel_details\"",
		                             "\"correlation_id\"", "\"Stream #" };
	int plane = 0, word = 0;
	if (!plumb_chrome_is_json(file) || strstr(file->head, " Compute\""))
		return 0;
	for (size_t i = 0; i < sizeof planes / sizeof *planes; i++)
		plane += strstr(file->head, planes[i]) != NULL;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		word += strstr(file->head, words[i]) != NULL;
	return plane && word ? 85 : 0;
}

const struct plumb_format plumb_format_jax = {
	.name = "jax",
	.title = "JAX and XProf trace.json",
	.probe = probe_jax,
	.read = read_jax,
};
