/* SPDX-License-Identifier: Apache-2.0 */
#include "import/amd/rocprofv3.h"

#include <string.h>

#include "base/hash.h"
#include "import/copies.h"

static const struct rocprofv3_agent *
find_agent(const struct rocprofv3_reader *reader, int64_t handle)
{
	for (uint32_t i = 0; i < reader->agents.count && handle != PLUMB_UNKNOWN; i++)
		if (reader->agents.items[i].handle == handle)
			return &reader->agents.items[i];
	return NULL;
}

const struct rocprofv3_symbol *
plumb_rocprofv3_symbol(const struct rocprofv3_reader *reader, int64_t id)
{
	struct plumb_map_cursor at;
	for (uint32_t i =
	             plumb_map_first(&reader->symbol_map, plumb_hash_mix((uint64_t)id, 0), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&reader->symbol_map, &at))
		if (reader->symbols.items[i].id == id)
			return &reader->symbols.items[i];
	return NULL;
}

uint32_t
plumb_rocprofv3_message(const struct rocprofv3_reader *reader, int64_t correlation)
{
	struct plumb_map_cursor at;
	for (uint32_t i = plumb_map_first(&reader->message_map,
	                                  plumb_hash_mix((uint64_t)correlation, 0), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(&reader->message_map, &at))
		if (reader->messages.items[i].correlation == correlation)
			return reader->messages.items[i].text;
	return PLUMB_NONE;
}

/* The name of what a record is of, or NULL. */
static const char *
operation_of(const struct rocprofv3_reader *reader, const struct rocprofv3_record *record)
{
	uint32_t name = record->name;
	if (name == PLUMB_NONE && record->kind >= 0 && record->kind < reader->kinds.count) {
		const struct rocprofv3_kind *kind = &reader->kinds.items[record->kind];
		if (record->operation >= 0 && record->operation < kind->count)
			name = reader->operations.items[kind->first + (uint32_t)record->operation];
	}
	return name == PLUMB_NONE
	               ? NULL
	               : plumb_builder_get_text(plumb_trace_builder(reader->trace), name);
}

static uint32_t
device_of(struct rocprofv3_reader *reader, const struct rocprofv3_agent *agent)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	int64_t ordinal = agent ? agent->ordinal : PLUMB_UNKNOWN;
	uint32_t id = plumb_trace_device(reader->trace, reader->process, ordinal, NULL);
	if (!agent || id == PLUMB_NONE)
		return id;
	struct plumb_device *device = plumb_builder_get_device(builder, id);
	device->name = agent->name;
	device->multiprocessors = agent->units;
	device->warps_per_multiprocessor = agent->waves;
	return id;
}

static void
take_work(struct rocprofv3_reader *reader, const struct rocprofv3_record *record,
          const struct rocprofv3_agent *agent, uint32_t frame,
          const struct plumb_trace_launch *launch, struct plumb_ends ends)
{
	struct plumb_trace_work work = {
		.track = plumb_trace_stream(
			reader->trace, reader->process, device_of(reader, agent), PLUMB_UNKNOWN,
			record->stream != PLUMB_UNKNOWN ? record->stream : record->queue),
		.frame = frame,
		.start_ns = record->start,
		.end_ns = record->end,
		.correlation = record->correlation > 0 ? (uint64_t)record->correlation : 0,
		.bytes = record->bytes,
		.launch = launch,
		.collective = PLUMB_NONE,
		.placed = PLUMB_NONE,
		.ends = ends,
	};
	plumb_trace_work(reader->trace, &work);
}

static void
take_dispatch(struct rocprofv3_reader *reader, const struct rocprofv3_record *record)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	const struct rocprofv3_symbol *symbol = plumb_rocprofv3_symbol(reader, record->kernel);
	const char *name = symbol ? plumb_builder_get_text(builder, symbol->name) : NULL;
	struct plumb_slice text = { name ? name : "?", name ? strlen(name) : 1 };
	static const char *const ends[] = { " [clone .kd]", ".kd" };
	struct plumb_trace_launch launch = plumb_trace_no_launch;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		size_t length = strlen(ends[i]);
		if (text.bytes > length && !memcmp(text.at + text.bytes - length, ends[i], length))
			text.bytes -= length;
	}
	/* The grid is in work-items. */
	for (int i = 0; i < 3; i++) {
		launch.block[i] = record->group[i];
		if (record->grid[i] >= 0 && record->group[i] > 0)
			launch.grid[i] = record->grid[i] / record->group[i] +
			                 (record->grid[i] % record->group[i] != 0);
	}
	launch.registers = symbol ? symbol->registers : PLUMB_UNKNOWN;
	launch.shared = record->shared;
	take_work(reader, record, find_agent(reader, record->agent),
	          plumb_trace_frame(reader->trace, PLUMB_FRAME_KERNEL, text), &launch,
	          (struct plumb_ends){ 0, 0 });
}

static enum plumb_memory_kind
memory_of(const struct rocprofv3_agent *agent)
{
	return !agent                         ? PLUMB_MEMORY_UNKNOWN
	       : agent->type == ROCPROFV3_GPU ? PLUMB_MEMORY_DEVICE
	                                      : PLUMB_MEMORY_HOST;
}

static void
take_copy(struct rocprofv3_reader *reader, const struct rocprofv3_record *record)
{
	const struct rocprofv3_agent *from = find_agent(reader, record->from);
	const struct rocprofv3_agent *to = find_agent(reader, record->to);
	const struct rocprofv3_agent *gpu = to && to->type == ROCPROFV3_GPU       ? to
	                                    : from && from->type == ROCPROFV3_GPU ? from
	                                                                          : NULL;
	const char *name = operation_of(reader, record);
	struct plumb_ends ends = { 0, 0 };
	uint32_t frame;
	if (!gpu && from && to) {
		plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED, "copies from host to host", 1);
		return;
	}
	bool peers = from && to && from != to && from->type == ROCPROFV3_GPU &&
	             to->type == ROCPROFV3_GPU;
	if (peers)
		ends = plumb_trace_ends(device_of(reader, from), device_of(reader, to));
	if (peers)
		frame = plumb_trace_copy_frame(reader->trace, PLUMB_MEMORY_DEVICE,
		                               PLUMB_MEMORY_PEER_DEVICE);
	else if (name)
		frame = plumb_import_copy(reader->trace,
		                          (struct plumb_slice){ name, strlen(name) });
	else
		frame = plumb_trace_copy_frame(reader->trace, memory_of(from), memory_of(to));
	take_work(reader, record, gpu, frame, NULL, ends);
}

static void
take_call(struct rocprofv3_reader *reader, const struct rocprofv3_record *record)
{
	static const uint32_t kinds[] = { [ROCPROFV3_CALL] = PLUMB_FRAME_GPU_API,
		                          [ROCPROFV3_LIBRARY] = PLUMB_FRAME_LIBRARY,
		                          [ROCPROFV3_MARKER] = PLUMB_FRAME_RANGE };
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	const char *name = operation_of(reader, record);
	if (record->what == ROCPROFV3_MARKER) {
		const char *kind =
			record->kind >= 0 && record->kind < reader->kinds.count
				? plumb_builder_get_text(builder,
		                                         reader->kinds.items[record->kind].name)
				: NULL;
		const char *text = plumb_builder_get_text(
			builder, plumb_rocprofv3_message(reader, record->correlation));
		bool mark = name && strstr(name, "Mark");
		if (mark || (kind && (strstr(kind, "CONTROL") || strstr(kind, "NAME_API")))) {
			plumb_trace_count(reader->trace, PLUMB_FATE_UNUSED,
			                  mark ? "marks" : "calls that control the profiler", 1);
			return;
		}
		name = text ? text : name;
	}
	struct plumb_slice text = { name ? name : "?", name ? strlen(name) : 1 };
	plumb_trace_host(reader->trace,
	                 plumb_trace_thread(reader->trace, reader->process, record->thread),
	                 plumb_trace_frame(reader->trace, kinds[record->what], text), record->start,
	                 record->end,
	                 record->what == ROCPROFV3_CALL && record->correlation > 0
	                         ? (uint64_t)record->correlation
	                         : 0);
}

void
plumb_rocprofv3_take_process(struct rocprofv3_reader *reader)
{
	struct plumb_builder *builder = plumb_trace_builder(reader->trace);
	if (!reader->records.count)
		return;
	reader->process = plumb_trace_process(reader->trace, reader->pid);
	if (reader->process != PLUMB_NONE) {
		plumb_builder_get_process(builder, reader->process)->host = reader->host;
		plumb_builder_get_process(builder, reader->process)->command = reader->command;
	}
	for (uint32_t i = 0; i < reader->records.count; i++) {
		const struct rocprofv3_record *record = &reader->records.items[i];
		if (record->what == ROCPROFV3_DISPATCH)
			take_dispatch(reader, record);
		else if (record->what == ROCPROFV3_COPY)
			take_copy(reader, record);
		else
			take_call(reader, record);
	}
}
