/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorFlow 1's timelines: Chrome trace events whose processes say what they are:
 *
 *	/job:localhost/replica:0/task:0/gpu:0 Compute   the host starts work of a device, in lanes
 *	/gpu:0/stream:12 Compute                        what a stream ran
 *	/gpu:0/stream:all Compute                       kernels of all streams once more
 *	/gpu:0/memcpy Compute                           copies of all streams once more
 *	… Tensors, Allocators                           memory
 *
 * Later versions write "/device:GPU:0". An operation of a graph is a module (its name) with an
 * operator (its type); a kernel has no number that leads to its launch, but the operation's name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/map.h"
#include "import/chrome/event.h"
#include "import/copies.h"

enum row { UNKNOWN_ROW, OPERATIONS, STREAM, ALL_STREAMS, COPIES };

/* What a process of the file stands for. */
struct part {
	int64_t pid;
	enum row row;
	int64_t ordinal, stream; /* PLUMB_UNKNOWN */
	uint32_t process;
	uint32_t lane_name; /* string: "gpu:0" */
};

struct item {
	int64_t pid, tid, start, end;
	uint32_t name, node; /* strings; the operation's type and name */
	const struct part *part;
	bool copy, repeated;
};

/* An operation that the host started. */
struct operation {
	uint32_t process, node, module, operator;
};

struct reader {
	struct plumb_chrome chrome;
	PLUMB_VEC(struct item) items;
	PLUMB_VEC(struct part) parts;
	PLUMB_VEC(struct operation) operations;
	struct plumb_map operation_map;
	bool no_memory;
};

static void
take_event(struct plumb_chrome *chrome, const struct plumb_chrome_event *event)
{
	struct reader *reader = chrome->own;
	struct plumb_builder *builder = plumb_trace_builder(chrome->trace);
	if (event->phase != 'X') {
		const char *kind = event->phase == 's' || event->phase == 't' || event->phase == 'f'
		                           ? "edges between operations"
		                   : event->phase ? "tensors and allocators"
		                                  : NULL;
		plumb_trace_count(chrome->trace, PLUMB_FATE_UNUSED, kind, kind ? 1 : 0);
		return;
	}
	struct item item = {
		.pid = plumb_chrome_number(event->pid, event->pid_text),
		.tid = plumb_chrome_number(event->tid, event->tid_text),
		.start = event->start,
		.end = plumb_chrome_end(event),
		.name = plumb_builder_string(builder, event->name.at, event->name.bytes),
		.node = plumb_builder_string(builder, event->given_name.at,
		                             event->given_name.bytes),
	};
	struct item *added = plumb_vec_add(&reader->items);
	if (added)
		*added = item;
	reader->no_memory |= !added;
}

/* ---- processes ---- */

/* The last place in TEXT where WORD stands, whatever its case, or NULL. */
static const char *
find_last(const char *text, const char *word)
{
	const char *found = NULL;
	for (const char *at = text; (at = strcasestr(at, word)); at++)
		found = at;
	return found;
}

static int64_t
number_at(const char *text)
{
	size_t digits = strspn(text, "0123456789");
	int64_t number = PLUMB_UNKNOWN;
	if (digits)
		plumb_slice_decimal((struct plumb_slice){ text, digits }, 0, &number);
	return number;
}

/* The process that is called NAME (a job's task). */
static uint32_t
task_of(struct reader *reader, const char *name, size_t bytes)
{
	struct plumb_trace *trace = reader->chrome.trace;
	struct plumb_builder *builder = plumb_trace_builder(trace);
	uint32_t process =
		plumb_trace_process(trace, (int64_t)(plumb_hash_bytes(name, bytes) >> 1));
	uint32_t command = bytes ? plumb_builder_string(builder, name, bytes) : PLUMB_NONE;
	if (process != PLUMB_NONE) {
		plumb_builder_get_process(builder, process)->pid = PLUMB_UNKNOWN;
		plumb_builder_get_process(builder, process)->command = command;
	}
	return process;
}

/* NAME is what is left of a process's name without " Compute". */
static void
describe_part(struct reader *reader, const char *name, struct part *part)
{
	const char *stream = find_last(name, "/stream:"), *gpu = find_last(name, "gpu:");
	const char *last = strrchr(name, '/'), *device = find_last(name, "/device:");
	if (!device && gpu && gpu > name && gpu[-1] == '/')
		device = gpu - 1;
	if (!device && last)
		device = last;
	part->ordinal = gpu ? number_at(gpu + 4) : PLUMB_UNKNOWN;
	part->stream = stream ? number_at(stream + 8) : PLUMB_UNKNOWN;
	if (stream)
		part->row = part->stream == PLUMB_UNKNOWN ? ALL_STREAMS : STREAM;
	else
		part->row = last && !strcasecmp(last, "/memcpy") ? COPIES : OPERATIONS;
	/* Streams stand under the task, or under nothing. */
	size_t task = device ? (size_t)(device - name) : 0;
	part->process = task ? task_of(reader, name, task) : PLUMB_NONE;
	part->lane_name = plumb_builder_text(plumb_trace_builder(reader->chrome.trace),
	                                     device ? device + 1 : name);
}

static int
by_pid(const void *x, const void *y)
{
	const struct part *a = x, *b = y;
	return (a->pid > b->pid) - (a->pid < b->pid);
}

static void
describe_all(struct reader *reader)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->chrome.trace);
	uint32_t first = PLUMB_NONE;
	for (uint32_t i = 0; i < reader->chrome.names.count; i++) {
		const struct plumb_chrome_name *named = &reader->chrome.names.items[i];
		const char *text = plumb_builder_get_text(builder, named->name);
		size_t bytes = text ? strlen(text) : 0;
		char name[512];
		if (named->tid != PLUMB_UNKNOWN || bytes < 9 || bytes >= sizeof name ||
		    strcmp(text + bytes - 8, " Compute") != 0)
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(bytes - 8), text);
		struct part part = { .pid = named->pid }, *added;
		describe_part(reader, name, &part);
		if (first == PLUMB_NONE)
			first = part.process;
		added = plumb_vec_add(&reader->parts);
		if (added)
			*added = part;
		reader->no_memory |= !added;
	}
	for (uint32_t i = 0; i < reader->parts.count; i++) {
		struct part *part = &reader->parts.items[i];
		if (part->process == PLUMB_NONE)
			part->process = first != PLUMB_NONE ? first : task_of(reader, "", 0);
	}
	if (reader->parts.count)
		qsort(reader->parts.items, reader->parts.count, sizeof *reader->parts.items,
		      by_pid);
}

/* ---- what stands there twice ---- */

static int
by_content(const void *x, const void *y)
{
	const struct item *a = *(struct item *const *)x, *b = *(struct item *const *)y;
	if (a->part->ordinal != b->part->ordinal)
		return a->part->ordinal < b->part->ordinal ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return (a->node > b->node) - (a->node < b->node);
}

static uint32_t
select_row(struct reader *reader, enum row row, struct item **into)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < reader->items.count; i++) {
		struct item *item = &reader->items.items[i];
		if (item->part && item->part->row == row && !item->repeated)
			into[count++] = item;
	}
	return count;
}

/* Items of ROW that are the same as one of ORIGINAL are repeated; COPY: and that one is a copy.
 * Each stands for one. */
static void
find_repeated(struct reader *reader, enum row row, enum row original, bool copy)
{
	size_t room = (size_t)reader->items.count + 1;
	struct item **a = malloc(room * sizeof(struct item *));
	struct item **b = malloc(room * sizeof(struct item *));
	reader->no_memory |= !a || !b;
	uint32_t as = a && b ? select_row(reader, original, a) : 0;
	uint32_t bs = a && b ? select_row(reader, row, b) : 0;
	if (as && bs) {
		qsort(a, as, sizeof(struct item *), by_content);
		qsort(b, bs, sizeof(struct item *), by_content);
	}
	for (uint32_t i = 0, k = 0; i < as && k < bs;) {
		int order = by_content(&a[i], &b[k]);
		if (!order) {
			b[k]->repeated = true;
			a[i]->copy |= copy;
		}
		i += order <= 0;
		k += order >= 0;
	}
	free(a);
	free(b);
}

/* ---- operations ---- */

static struct operation *
find_operation(struct reader *reader, uint32_t process, uint32_t node)
{
	struct plumb_map_cursor at;
	for (uint32_t i =
	             plumb_map_first(&reader->operation_map, plumb_hash_mix(process, node), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&reader->operation_map, &at))
		if (reader->operations.items[i].process == process &&
		    reader->operations.items[i].node == node)
			return &reader->operations.items[i];
	return NULL;
}

static void
take_operation(struct reader *reader, const struct item *item)
{
	struct plumb_trace *trace = reader->chrome.trace;
	struct plumb_builder *builder = plumb_trace_builder(trace);
	const struct part *part = item->part;
	uint32_t node = item->node != PLUMB_NONE ? item->node : item->name;
	uint64_t lane = plumb_hash_mix(part->lane_name, (uint64_t)item->tid) >> 1;
	uint32_t track = plumb_trace_thread(trace, part->process, (int64_t)lane);
	struct operation operation = {
		part->process, node,
		plumb_builder_frame(builder, PLUMB_FRAME_MODULE, node, item->name, 0),
		plumb_builder_frame(builder, PLUMB_FRAME_OPERATOR, item->name, PLUMB_NONE, 0)
	};
	if (track != PLUMB_NONE) {
		plumb_builder_get_track(builder, track)->tid = PLUMB_UNKNOWN;
		plumb_builder_get_track(builder, track)->name = part->lane_name;
	}
	plumb_trace_host(trace, track, operation.module, item->start, item->end, 0);
	plumb_trace_host(trace, track, operation.operator, item->start, item->end, 0);
	if (find_operation(reader, part->process, node))
		return;
	struct operation *added = plumb_vec_add(&reader->operations);
	if (!added || plumb_map_add(&reader->operation_map, plumb_hash_mix(part->process, node),
	                            reader->operations.count - 1) < 0)
		reader->no_memory = true;
	if (added)
		*added = operation;
}

/* "edge_7_gradients/Shape" is a copy of what that operation made: its name's string. */
static uint32_t
node_of(struct reader *reader, const struct item *item)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->chrome.trace);
	const char *text = plumb_builder_get_text(builder, item->node);
	size_t digits = text && !strncmp(text, "edge_", 5) ? strspn(text + 5, "0123456789") : 0;
	if (!digits || text[5 + digits] != '_')
		return item->node;
	char name[512];
	snprintf(name, sizeof name, "%s", text + 6 + digits);
	return plumb_builder_text(builder, name);
}

static void
take_work(struct reader *reader, const struct item *item)
{
	struct plumb_trace *trace = reader->chrome.trace;
	struct plumb_builder *builder = plumb_trace_builder(trace);
	const struct part *part = item->part;
	const char *name = plumb_builder_get_text(builder, item->name);
	struct plumb_slice text = { name ? name : "", name ? strlen(name) : 0 };
	bool copy = item->copy || part->row == COPIES || !strncasecmp(text.at, "memcpy", 6) ||
	            !strncasecmp(text.at, "memset", 6);
	const struct operation *operation =
		find_operation(reader, part->process, node_of(reader, item));
	uint32_t device = plumb_trace_device(trace, part->process, part->ordinal, NULL);
	struct plumb_trace_work work = {
		.track = plumb_trace_stream(trace, part->process, device, PLUMB_UNKNOWN,
		                            part->stream),
		.frame = copy ? plumb_import_copy(trace, text)
		              : plumb_trace_frame(trace, PLUMB_FRAME_KERNEL, text),
		.start_ns = item->start,
		.end_ns = item->end,
		.bytes = PLUMB_UNKNOWN,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
	};
	if (operation)
		work.placed = plumb_builder_context(
			builder, plumb_builder_context(builder, 0, operation->module, 0),
			operation->operator, 0);
	plumb_trace_work(trace, &work);
}

static void
take_all(struct reader *reader)
{
	struct plumb_trace *trace = reader->chrome.trace;
	int64_t unknown = 0, kernels = 0, copies = 0;
	for (uint32_t i = 0; i < reader->items.count; i++) {
		struct item *item = &reader->items.items[i];
		if (item->part && item->part->row == OPERATIONS)
			take_operation(reader, item);
		unknown += !item->part;
	}
	for (uint32_t i = 0; i < reader->items.count; i++) {
		struct item *item = &reader->items.items[i];
		if (!item->part || item->part->row == OPERATIONS)
			continue;
		if (!item->repeated)
			take_work(reader, item);
		kernels += item->repeated && item->part->row == ALL_STREAMS;
		copies += item->repeated && item->part->row == COPIES;
	}
	plumb_trace_count(trace, PLUMB_FATE_REPEATED, "stream:all", kernels);
	plumb_trace_count(trace, PLUMB_FATE_REPEATED, "memcpy", copies);
	plumb_trace_count(trace, PLUMB_FATE_UNUSED, "events of other processes", unknown);
}

/* ---- the whole ---- */

static int
read_all(struct reader *reader, struct plumb_import_file *file, struct plumb_error *error)
{
	int code = plumb_chrome_read(&reader->chrome, file, error);
	if (code)
		return code;
	describe_all(reader);
	for (uint32_t i = 0; i < reader->items.count && reader->parts.count; i++)
		reader->items.items[i].part = bsearch(
			&(struct part){ .pid = reader->items.items[i].pid }, reader->parts.items,
			reader->parts.count, sizeof *reader->parts.items, by_pid);
	find_repeated(reader, ALL_STREAMS, STREAM, false);
	find_repeated(reader, COPIES, STREAM, true);
	find_repeated(reader, COPIES, ALL_STREAMS, true);
	take_all(reader);
	if (reader->no_memory)
		return plumb_fail_memory(error, "to read %s", file->path);
	return 0;
}

static int
read_tf1(struct plumb_import_file *file, struct plumb_trace *trace, struct plumb_error *error)
{
	static const struct plumb_chrome_dialect dialect = { .take = take_event };
	struct reader reader = { .chrome = { .trace = trace, .dialect = &dialect } };
	reader.chrome.own = &reader;
	int code = read_all(&reader, file, error);
	plumb_chrome_free(&reader.chrome);
	plumb_vec_free(&reader.items);
	plumb_vec_free(&reader.parts);
	plumb_vec_free(&reader.operations);
	plumb_map_free(&reader.operation_map);
	return code;
}

static int
probe_tf1(const struct plumb_import_file *file)
{
	if (!plumb_chrome_is_json(file) || !strstr(file->head, " Compute\""))
		return 0;
	return strstr(file->head, "/job:") || strstr(file->head, "/stream:") ? 80 : 0;
}

const struct plumb_format plumb_format_tf1 = {
	.name = "tf1",
	.title = "TensorFlow 1 timelines",
	.probe = probe_tf1,
	.read = read_tf1,
};
