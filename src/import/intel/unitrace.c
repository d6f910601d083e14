/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Intel unitrace (pti-gpu): Chrome trace events of categories gpu_op, cpu_op and os_op.
 *
 *	{"ph": "X", "tid": 4294967295, "pid": 4294967295,
 *	 "name": "gemm[SIMD32 {4; 1; 1} {256; 1; 1}]", "cat": "gpu_op",
 *	 "ts": 1.5, "dur": 2.5, "args": {"id": "17"}}
 *	{"ph": "s", "tid": 11, "pid": 10, "name": "dep", "cat": "Flow_H2D_17_0", "ts": 0, "id": 17}
 *
 * A command's number leads to the flow that has it, and that to the call that began at the same
 * time on the same thread; a call that submits a list has several. Devices are processes,
 * "DEVICE<host>[name] 0:3d:0.0 #0", named before or after their events. So all is kept until the
 * end.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "import/chrome/event.h"
#include "import/chrome/pairs.h"
#include "import/copies.h"

/* A command of a device, a call of the host, or a flow that begins. */
struct item {
	uint32_t track; /* of a call or flow */
	int64_t start, end;
	int64_t pid, tid, command; /* of a command; of a flow the command; of a call its number */
	uint32_t name;             /* string */
	uint32_t order;
};

/* Command COMMAND of PROCESS was started by the call that has the number CALL. */
struct started {
	int64_t command;
	uint32_t process;
	uint64_t call;
};

/* What a process of the file is. */
struct part {
	int64_t pid;
	bool device;
	int64_t rank, ordinal;
	uint32_t process, name;
};

struct reader {
	struct plumb_chrome chrome;
	int64_t command; /* of the arguments */
	PLUMB_VEC(struct item) commands;
	PLUMB_VEC(struct item) calls;
	PLUMB_VEC(struct item) flows;
	PLUMB_VEC(struct started) started;
	struct plumb_map started_map;
	PLUMB_VEC(struct part) parts;
	struct plumb_chrome_pairs pairs;
	uint32_t host; /* the first process of the host */
	int64_t last;
	bool no_memory;
};

static void
begin_event(struct plumb_chrome *chrome)
{
	((struct reader *)chrome->own)->command = PLUMB_UNKNOWN;
}

static const struct plumb_pull_field argument_fields[] = {
	PLUMB_PULL_FIELD("id", INTEGER, PLUMB_PULL_AT(struct reader, command)),
	{ 0 },
};

/* ---- events ---- */

static void
keep_item(struct reader *reader, struct item **items, uint32_t *count, uint32_t *capacity,
          struct item item)
{
	if (*count == *capacity) {
		struct item *grown =
			plumb_vec_grow(*items, capacity, (uint64_t)*count + 1, sizeof **items);
		if (!grown) {
			reader->no_memory = true;
			return;
		}
		*items = grown;
	}
	(*items)[(*count)++] = item;
}
#define KEEP(vec, item) keep_item(reader, &(vec).items, &(vec).count, &(vec).capacity, item)

/* "zeInit": a prefix and a capital letter. */
static bool
is_call(const char *name)
{
	static const char *const prefixes[] = { "zes", "zet", "zex", "ze", "cl", "ur", "pi" };
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
		size_t length = strlen(prefixes[i]);
		if (!strncmp(name, prefixes[i], length) && isupper((unsigned char)name[length]))
			return true;
	}
	return false;
}

/* The frame of something on the host; OS: a function of the system's driver. */
static uint32_t
host_frame(struct reader *reader, uint32_t name, bool os)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->chrome.trace);
	const char *text = plumb_builder_get_text(builder, name);
	uint32_t kind = os                                  ? PLUMB_FRAME_NATIVE
	                : text && is_call(text)             ? PLUMB_FRAME_GPU_API
	                : text && !strncmp(text, "MPI_", 4) ? PLUMB_FRAME_LIBRARY
	                                                    : PLUMB_FRAME_RANGE;
	return plumb_builder_frame(builder, kind, name, PLUMB_NONE, 0);
}

static void
take_host(struct reader *reader, const struct plumb_chrome_event *event, uint32_t name)
{
	struct plumb_trace *trace = reader->chrome.trace;
	uint32_t track = plumb_chrome_thread(&reader->chrome, event);
	bool os = plumb_slice_is(event->category, "os_op");
	if (reader->host == PLUMB_NONE)
		reader->host = plumb_chrome_process(&reader->chrome, event);
	if (event->phase != 'X')
		plumb_chrome_edge(&reader->pairs,
		                  (struct plumb_chrome_edge){
					  .key = track,
					  .ns = event->start,
					  .frame = event->phase == 'B'
		                                           ? host_frame(reader, name, os)
		                                           : PLUMB_NONE,
					  .place = track,
					  .begins = event->phase == 'B',
				  });
	else if (os)
		plumb_trace_host(trace, track, host_frame(reader, name, true), event->start,
		                 plumb_chrome_end(event), 0);
	else
		KEEP(reader->calls,
		     ((struct item){ .track = track,
		                     .start = event->start,
		                     .end = plumb_chrome_end(event),
		                     .name = name,
		                     .order = reader->calls.count + reader->flows.count }));
}

static void
take_flow(struct reader *reader, const struct plumb_chrome_event *event)
{
	bool submits = plumb_slice_begins(event->category, "Flow_H2D") ||
	               plumb_slice_begins(event->category, "CL_Flow_H2D");
	if (!submits)
		plumb_trace_count(reader->chrome.trace, PLUMB_FATE_UNUSED,
		                  "flows of synchronisation", 1);
	else if (event->phase == 's' && event->id != PLUMB_UNKNOWN && event->start != PLUMB_UNKNOWN)
		KEEP(reader->flows,
		     ((struct item){ .track = plumb_chrome_thread(&reader->chrome, event),
		                     .start = event->start,
		                     .command = event->id,
		                     .order = reader->calls.count + reader->flows.count }));
}

static void
take_event(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	struct reader *reader = chrome->own;
	char phase = event->phase;
	int64_t end = plumb_chrome_end(event);
	uint32_t name = plumb_builder_string(plumb_trace_builder(chrome->trace), event->name.at,
	                                     event->name.bytes);
	bool slice = phase == 'X' || phase == 'B' || phase == 'E';
	bool gpu = plumb_slice_is(event->category, "gpu_op");
	if (event->start != PLUMB_UNKNOWN && event->start > reader->last)
		reader->last = event->start;
	if (end != PLUMB_UNKNOWN && end > reader->last)
		reader->last = end;
	if (phase == 's' || phase == 't' || phase == 'f')
		take_flow(reader, event);
	else if (!slice)
		plumb_trace_count(chrome->trace, PLUMB_FATE_UNUSED,
		                  phase == 'R' ? "marks" : "other events", phase ? 1 : 0);
	else if (event->start == PLUMB_UNKNOWN)
		plumb_trace_count(chrome->trace, PLUMB_FATE_BACKWARDS, NULL, 1);
	else if (!gpu)
		take_host(reader, event, name);
	else
		KEEP(reader->commands,
		     ((struct item){ .pid = plumb_chrome_number(event->pid, event->pid_text),
		                     .tid = plumb_chrome_number(event->tid, event->tid_text),
		                     .start = event->start,
		                     .end = end,
		                     .command = reader->command,
		                     .name = name }));
}

/* ---- calls ---- */

static int
by_time(const void *x, const void *y)
{
	const struct item *a = x, *b = y;
	if (a->track != b->track)
		return a->track < b->track ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static bool
same_time(const struct item *a, const struct item *b)
{
	return a->track == b->track && a->start == b->start;
}

/* The number of the call that started COMMAND, the first one; 0 none. */
static uint64_t
call_of(const struct reader *reader, uint32_t process, int64_t command)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->started_map,
	                                  plumb_hash_mix((uint64_t)command, process), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&reader->started_map, &at))
		if (reader->started.items[i].command == command &&
		    reader->started.items[i].process == process)
			return reader->started.items[i].call;
	return 0;
}

/* FLOW belongs to CALL, whose number is its place. */
static void
add_started(struct reader *reader, const struct item *flow, struct item *call)
{
	uint64_t number = (uint64_t)(call - reader->calls.items) + 1;
	call->command = (int64_t)number;
	const struct plumb_track *track =
		plumb_builder_get_track(plumb_trace_builder(reader->chrome.trace), flow->track);
	if (call_of(reader, track->process, flow->command))
		return;
	struct started *added = plumb_vec_add(&reader->started);
	if (added)
		*added = (struct started){ flow->command, track->process, number };
	if (!added || plumb_map_add(&reader->started_map,
	                            plumb_hash_mix((uint64_t)flow->command, track->process),
	                            reader->started.count - 1) < 0)
		reader->no_memory = true;
}

/* Calls and flows in time: a flow belongs to the driver's call that stands before it in the file,
 * and else to the one behind it, of those that began when it did. Calls go into the trace with
 * their place as number. */
static void
take_calls(struct reader *reader)
{
	struct plumb_trace *trace = reader->chrome.trace;
	struct plumb_builder *builder = plumb_trace_builder(trace);
	struct item *calls = reader->calls.items, *flows = reader->flows.items;
	uint32_t flow = 0, flow_count = reader->flows.count;
	int64_t lost = 0;
	if (reader->calls.count)
		qsort(calls, reader->calls.count, sizeof *calls, by_time);
	if (flow_count)
		qsort(flows, flow_count, sizeof *flows, by_time);
	struct item *owner = NULL; /* the last driver's call of this time */
	for (uint32_t i = 0; i < reader->calls.count; i++) {
		struct item *call = &calls[i];
		const char *name = plumb_builder_get_text(builder, call->name);
		bool candidate = name && is_call(name);
		if (owner && !same_time(owner, call))
			owner = NULL;
		/* What stands before it and has an owner already, or begins earlier than any
		 * call. */
		for (; flow < flow_count; flow++) {
			bool now = same_time(&flows[flow], call);
			if (now ? !owner || flows[flow].order > call->order
			        : by_time(&flows[flow], call) > 0)
				break;
			if (now)
				add_started(reader, &flows[flow], owner);
			else
				lost++;
		}
		if (candidate)
			owner = call;
		/* The last of this time takes the rest. */
		if (owner && (i + 1 == reader->calls.count || !same_time(call, &calls[i + 1])))
			for (; flow < flow_count && same_time(&flows[flow], owner); flow++)
				add_started(reader, &flows[flow], owner);
	}
	plumb_trace_count(trace, PLUMB_FATE_UNMATCHED, "flows without a call",
	                  lost + (flow_count - flow));
	for (uint32_t i = 0; i < reader->calls.count; i++)
		plumb_trace_host(trace, calls[i].track, host_frame(reader, calls[i].name, false),
		                 calls[i].start, calls[i].end, (uint64_t)calls[i].command);
}

/* ---- processes and devices ---- */

static int64_t
number_behind(const char *text, const char *word)
{
	const char *at = text ? strstr(text, word) : NULL;
	int64_t number = PLUMB_UNKNOWN;
	if (at)
		plumb_slice_decimal((struct plumb_slice){ at + strlen(word),
		                                          strspn(at + strlen(word), "0123456789") },
		                    0, &number);
	return number;
}

static int
by_pid(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

/* "RANK 3 DEVICE<host>[Intel Max 1550] 0:3d:0.0 #0.1" → "Intel Max 1550 tile 1", and where there is
 * no name "0:3d:0.0 tile 1". */
static uint32_t
device_name(struct plumb_builder *builder, const char *text)
{
	const char *behind = strstr(strstr(text, "DEVICE<"), ">"), *end, *tile;
	char name[200], part[32] = "";
	if (!behind)
		return plumb_builder_text(builder, text);
	behind++;
	if (*behind == '[' && (end = strchr(behind, ']')))
		behind++;
	else
		end = behind + strcspn(behind, " ");
	tile = strstr(end, " #");
	tile = tile ? strchr(tile, '.') : NULL;
	if (tile)
		snprintf(part, sizeof part, " tile %.*s", (int)strspn(tile + 1, "0123456789"),
		         tile + 1);
	snprintf(name, sizeof name, "%.*s%s", end - behind < 150 ? (int)(end - behind) : 150,
	         behind, part);
	return plumb_builder_text(builder, name);
}

static void
describe_part(struct reader *reader, const struct plumb_chrome_name *named)
{
	struct plumb_trace *trace = reader->chrome.trace;
	const char *text = plumb_builder_get_text(plumb_trace_builder(trace), named->name);
	if (named->tid != PLUMB_UNKNOWN || !text)
		return;
	struct part part = {
		.pid = named->pid,
		.device = strstr(text, "DEVICE<") != NULL,
		.rank = !strncmp(text, "RANK ", 5) ? number_behind(text, "RANK ") : PLUMB_UNKNOWN,
		.ordinal = number_behind(text, " #"),
		.process = PLUMB_NONE,
		.name = named->name,
	};
	if (part.device)
		part.name = device_name(plumb_trace_builder(trace), text);
	if (!part.device && strstr(text, "HOST<")) {
		part.process = plumb_trace_process(trace, part.pid);
		if (part.process != PLUMB_NONE && part.rank != PLUMB_UNKNOWN)
			plumb_builder_get_process(plumb_trace_builder(trace), part.process)->rank =
				part.rank;
		if (reader->host == PLUMB_NONE)
			reader->host = part.process;
	}
	struct part *added = plumb_vec_add(&reader->parts);
	if (added)
		*added = part;
	reader->no_memory |= !added;
}

static int
by_rank(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (int)a->device - (int)b->device;
}

static void
describe_all(struct reader *reader)
{
	uint32_t process = PLUMB_NONE;
	for (uint32_t i = 0; i < reader->chrome.names.count; i++)
		describe_part(reader, &reader->chrome.names.items[i]);
	if (reader->host == PLUMB_NONE)
		reader->host = plumb_trace_process(reader->chrome.trace, PLUMB_UNKNOWN);
	if (!reader->parts.count)
		return;
	/* A device is its rank's process's. */
	qsort(reader->parts.items, reader->parts.count, sizeof *reader->parts.items, by_rank);
	for (uint32_t i = 0; i < reader->parts.count; i++) {
		struct part *part = &reader->parts.items[i];
		if (!i || part[-1].rank != part->rank)
			process = PLUMB_NONE;
		if (!part->device && process == PLUMB_NONE)
			process = part->process;
		if (part->device)
			part->process = process != PLUMB_NONE ? process : reader->host;
	}
	qsort(reader->parts.items, reader->parts.count, sizeof *reader->parts.items, by_pid);
}

/* The device that a process of the file is, and in PROCESS whose it is. */
static uint32_t
device_of(struct reader *reader, int64_t pid, uint32_t *process)
{
	struct plumb_trace *trace = reader->chrome.trace;
	const struct part *part = NULL;
	if (reader->parts.count)
		part = bsearch(&(struct part){ .pid = pid }, reader->parts.items,
		               reader->parts.count, sizeof *part, by_pid);
	*process = part && part->device ? part->process : reader->host;
	uint32_t id = plumb_trace_device(trace, *process, pid, NULL);
	if (id == PLUMB_NONE)
		return id;
	struct plumb_device *device = plumb_builder_get_device(plumb_trace_builder(trace), id);
	device->ordinal = part ? part->ordinal : PLUMB_UNKNOWN;
	device->name = part ? part->name : PLUMB_NONE;
	return id;
}

/* ---- commands ---- */

/* "{4; 1; 1}", and the text after it. */
static const char *
three_of(const char *text, int64_t three[3])
{
	const char *at = strchr(text, '{');
	for (int i = 0; i < 3 && at; i++) {
		at += 1 + strspn(at + 1, " ");
		size_t digits = strspn(at, "0123456789");
		plumb_slice_decimal((struct plumb_slice){ at, digits }, 0, &three[i]);
		at += digits;
	}
	return at ? at : "";
}

/* The frame of a copy or set; PLUMB_NONE: it is none. */
static uint32_t
transfer_frame(struct plumb_trace *trace, const char *name)
{
	const char *open = strchr(name, '(');
	bool both = open && strlen(open) >= 5 && open[2] == '2' && open[4] == ')';
	bool one = open && strlen(open) >= 3 && open[2] == ')';
	if (strncmp(name, "zeCommandListAppend", 19) != 0 && strncmp(name, "clEnqueue", 9) != 0)
		return PLUMB_NONE;
	if (strstr(name, "Fill"))
		return plumb_trace_set_frame(trace, one ? plumb_import_memory_letter(open[1])
		                                        : PLUMB_MEMORY_DEVICE);
	if (strstr(name, "Copy"))
		return plumb_trace_copy_frame(trace, plumb_import_memory_letter(both ? open[1] : 0),
		                              plumb_import_memory_letter(both ? open[3] : 0));
	if (strstr(name, "Read"))
		return plumb_trace_copy_frame(trace, PLUMB_MEMORY_DEVICE, PLUMB_MEMORY_HOST);
	if (strstr(name, "Write"))
		return plumb_trace_copy_frame(trace, PLUMB_MEMORY_HOST, PLUMB_MEMORY_DEVICE);
	return PLUMB_NONE;
}

static bool
is_order(const char *name)
{
	return !strncmp(name, "zeCommandListAppend", 19) &&
	       (strstr(name, "Barrier") || strstr(name, "Event"));
}

static void
take_command(struct reader *reader, const struct item *item)
{
	struct plumb_trace *trace = reader->chrome.trace;
	const char *text = plumb_builder_get_text(plumb_trace_builder(trace), item->name);
	struct plumb_trace_launch launch = plumb_trace_no_launch;
	uint32_t process, device = device_of(reader, item->pid, &process);
	struct plumb_trace_work work = {
		.track = plumb_trace_stream(trace, process, device, PLUMB_UNKNOWN, item->tid),
		.start_ns = item->start,
		.end_ns = item->end,
		.correlation = call_of(reader, process, item->command),
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	text = text ? text : "?";
	/* "Tile #1: gemm": each tile of a device runs its part. */
	if (!strncmp(text, "Tile #", 6)) {
		const char *behind = text + 6 + strspn(text + 6, "0123456789");
		text = !strncmp(behind, ": ", 2) ? behind + 2 : text;
	}
	size_t length = strlen(text);
	const char *bracket = length && text[length - 1] == ']' ? strrchr(text, '[') : NULL;
	if (is_order(text)) {
		plumb_trace_count(trace, PLUMB_FATE_UNUSED, "barriers and events of a device", 1);
		return;
	}
	work.frame = transfer_frame(trace, text);
	if (work.frame != PLUMB_NONE) {
		work.bytes = bracket ? number_behind(bracket, "[") : PLUMB_UNKNOWN;
	} else {
		if (bracket && strchr(bracket, '{')) {
			three_of(three_of(bracket, launch.grid), launch.block);
			length = (size_t)(bracket - text);
			work.launch = &launch;
		}
		work.frame = plumb_trace_frame(trace, PLUMB_FRAME_KERNEL,
		                               (struct plumb_slice){ text, length });
	}
	plumb_trace_work(trace, &work);
}

/* ---- the whole ---- */

static void
close_slice(void *own, const struct plumb_chrome_edge *begin, int64_t end, uint32_t depth)
{
	(void)depth;
	plumb_trace_host(((struct reader *)own)->chrome.trace, begin->place, begin->frame,
	                 begin->ns, end, 0);
}

static int
read_all(struct reader *reader, struct plumb_import_file *file, struct plumb_error *error)
{
	int code = plumb_chrome_read(&reader->chrome, file, error);
	if (code)
		return code;
	plumb_chrome_pair(&reader->pairs, reader->chrome.trace, reader->last, close_slice, reader);
	describe_all(reader);
	take_calls(reader);
	for (uint32_t i = 0; i < reader->commands.count; i++)
		take_command(reader, &reader->commands.items[i]);
	plumb_chrome_give_names(&reader->chrome);
	if (reader->no_memory || reader->pairs.no_memory)
		return plumb_fail_memory(error, "to read %s", file->path);
	return 0;
}

static int
read_unitrace(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	static const struct plumb_chrome_dialect dialect = { .begin = begin_event,
		                                             .arguments = argument_fields,
		                                             .take = take_event };
	struct reader reader = { .chrome = { .trace = trace, .dialect = &dialect },
		                 .host = PLUMB_NONE,
		                 .last = INT64_MIN };
	reader.chrome.own = &reader;
	int code = read_all(&reader, file, error);
	plumb_chrome_free(&reader.chrome);
	plumb_vec_free(&reader.commands);
	plumb_vec_free(&reader.calls);
	plumb_vec_free(&reader.flows);
	plumb_vec_free(&reader.started);
	plumb_map_free(&reader.started_map);
	plumb_vec_free(&reader.parts);
	plumb_vec_free(&reader.pairs.edges);
	return code;
}

/* Kineto has cpu_op too. */
static int
probe_unitrace(const struct plumb_import_file *file)
{
	static const char *const words[] = { "HOST<",          "HOST-OS-KMD<",   "DEVICE<",
		                             "\"Flow_H2D_",    "\"Flow_D2H_",    "\"CL_Flow_",
		                             "\"name\": \"ze", "\"name\": \"ur", "\"name\": \"cl" };
	int found = 0;
	if (!plumb_chrome_is_json(file) ||
	    (!strstr(file->head, "\"gpu_op\"") && !strstr(file->head, "\"cpu_op\"") &&
	     !strstr(file->head, "\"os_op\"")))
		return 0;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		found += strstr(file->head, words[i]) != NULL;
	return strstr(file->head, "\"gpu_op\"") || strstr(file->head, "\"os_op\"") ? 92
	       : found && !strstr(file->head, "\"cuda_runtime\"") &&
	                       !strstr(file->head, "\"Ev Idx\"")
	               ? 91
	               : 0;
}

const struct plumb_format plumb_format_unitrace = {
	.name = "unitrace",
	.title = "Intel unitrace JSON",
	.probe = probe_unitrace,
	.read = read_unitrace,
};
