/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions of include/plumb/monitor.h. */
#include <dlfcn.h>
#include <stdlib.h>

#include "collect/context.h"
#include "collect/event.h"
#include "collect/monitor/memory.h"
#include "collect/monitor/nvtx.h"
#include "collect/process.h"

#pragma GCC visibility push(default)
__typeof__(plumb_monitor_init) plumb_monitor_init;
__typeof__(plumb_monitor_register) plumb_monitor_register;
__typeof__(plumb_monitor_unregister) plumb_monitor_unregister;
__typeof__(plumb_monitor_path) plumb_monitor_path;
__typeof__(plumb_monitor_finalize) plumb_monitor_finalize;
__typeof__(plumb_monitor_version) plumb_monitor_version;
#pragma GCC visibility pop

int
plumb_monitor_version(void)
{
	return PLUMB_MONITOR_VERSION;
}

/* ---- beginning and end ---- */

static uint32_t
get_recorded(const struct plumb_monitor_options *options)
{
	size_t end = offsetof(struct plumb_monitor_options, record) + sizeof options->record;
	return options && options->size >= end ? options->record : 0;
}

static uint64_t
get_memory(const struct plumb_monitor_options *options)
{
	size_t end = offsetof(struct plumb_monitor_options, memory) + sizeof options->memory;
	return options && options->size >= end ? options->memory : 0;
}

/* Lets the driver load us, when it has nobody to load yet. */
static void
offer_to_cuda(void)
{
	Dl_info self;
	if (!getenv("CUDA_INJECTION64_PATH") &&
	    dladdr((void *)(uintptr_t)plumb_monitor_init, &self) && self.dli_fname)
		setenv("CUDA_INJECTION64_PATH", self.dli_fname, 0);
}

/* What an allocator hands out and takes back. */
static void
tell_memory(const struct plumb_memory_change *change)
{
	enum plumb_monitor_kind kind =
		change->free ? PLUMB_MONITOR_TENSOR_FREE : PLUMB_MONITOR_TENSOR_ALLOC;
	struct plumb_thread *thread =
		plumb_event_wanted(kind) ? plumb_enter(PLUMB_CALLBACK_MEMORY) : NULL;
	if (!thread)
		return;
	struct plumb_monitor_event event = PLUMB_EVENT(TENSOR_ALLOC, AT);
	event.kind = kind;
	event.name = plumb_memory_device_name(change->device_kind);
	event.address = change->address;
	if (change->bytes)
		event.bytes = change->bytes;
	if (change->device_kind != PLUMB_MEMORY_CPU)
		event.device = change->device_index;
	plumb_event_emit(thread, 0, &event);
	plumb_leave(thread);
}

int
plumb_monitor_init(const struct plumb_monitor_options *options)
{
	uint32_t record = get_recorded(options);
	struct plumb_collector_options wanted = {
		.limit = get_memory(options),
		.gpu = record & PLUMB_MONITOR_NO_GPU ? PLUMB_GPU_OFF : PLUMB_GPU_ACTIVITY,
		.layers = record & PLUMB_MONITOR_NATIVE ? PLUMB_LAYERS_FULL : PLUMB_LAYERS_LIGHT,
		.memory = record & PLUMB_MONITOR_MEMORY,
		.shapes = record & PLUMB_MONITOR_SHAPES,
	};
	if (options && options->size < sizeof options->size)
		return PLUMB_MONITOR_EARGUMENT;
	if (plumb_process_monitor(&wanted))
		return PLUMB_MONITOR_ELATE;
	plumb_nvtx_offer();
	if (record & PLUMB_MONITOR_MEMORY || plumb_collector_options()->memory)
		plumb_memory_listen(tell_memory);
	if (plumb_collector_options()->gpu)
		offer_to_cuda();
	plumb_framework_offer(NULL); /* whatever is there already */
	return PLUMB_MONITOR_OK;
}

void
plumb_monitor_finalize(void)
{
	for (int handle = 1; handle <= PLUMB_MONITOR_CALLBACKS; handle++)
		plumb_event_unregister(handle);
}

int
plumb_monitor_register(uint32_t kinds, plumb_monitor_callback callback, void *data)
{
	kinds &= (1u << PLUMB_MONITOR_KINDS) - 1;
	if (!kinds || !callback)
		return PLUMB_MONITOR_EARGUMENT;
	return plumb_event_register(kinds, callback, data);
}

int
plumb_monitor_unregister(int handle)
{
	return plumb_event_unregister(handle);
}

/* ---- call paths ---- */

static uint32_t
layer_of(unsigned kind)
{
	switch (kind) {
	case PLUMB_FRAME_PYTHON:
		return PLUMB_MONITOR_LAYER_PYTHON;
	case PLUMB_FRAME_MODULE:
		return PLUMB_MONITOR_LAYER_MODULE;
	case PLUMB_FRAME_OPERATOR:
		return PLUMB_MONITOR_LAYER_OPERATOR;
	case PLUMB_FRAME_RANGE:
		return PLUMB_MONITOR_LAYER_RANGE;
	case PLUMB_FRAME_NATIVE:
	case PLUMB_FRAME_LIBRARY:
		return PLUMB_MONITOR_LAYER_NATIVE;
	default:
		return PLUMB_MONITOR_LAYER_GPU;
	}
}

/* Strings of the region end with a zero. */
static const char *
text_at(const struct plumb_region *region, plumb_id id)
{
	return id ? (const char *)plumb_region_at(region, id) + sizeof(struct plumb_record_string)
	          : NULL;
}

/* Stores FRAME as far as the tool's structure, of SIZE bytes, reaches. */
static void
store_frame(const struct plumb_region *region, const struct plumb_record_node *node, void *place,
            size_t size)
{
	_Static_assert(PLUMB_MONITOR_BACKWARD == (int)PLUMB_CONTEXT_BACKWARD &&
	                       PLUMB_MONITOR_ACCUMULATION == (int)PLUMB_CONTEXT_ACCUMULATION &&
	                       PLUMB_MONITOR_TRUNCATED == (int)PLUMB_CONTEXT_TRUNCATED,
	               "same flags");
	const char *name = text_at(region, node->name);
	struct plumb_monitor_frame frame = {
		.kind = node->kind,
		.line = node->line,
		.name = name ? name : "?",
		.file = text_at(region, node->file),
		.flags = node->flags,
	};
	memcpy(place, &frame, size < sizeof frame ? size : sizeof frame);
}

/* The frames of LAYERS on the way from NODE to the root: how many there are, and the innermost
 * CAPACITY of them, the outermost of those first. */
static size_t
store_path(const struct plumb_region *region, plumb_id node, uint32_t layers, char *frames,
           size_t frame_size, size_t capacity)
{
	const struct plumb_record_node *record;
	size_t count = 0, left;
	for (plumb_id at = node; at; at = record->parent) {
		record = plumb_region_at(region, at);
		count += (layer_of(record->kind) & layers) != 0;
	}
	left = count < capacity ? count : capacity;
	for (plumb_id at = node; at && left; at = record->parent) {
		record = plumb_region_at(region, at);
		if (layer_of(record->kind) & layers)
			store_frame(region, record, frames + --left * frame_size, frame_size);
	}
	return count;
}

size_t
plumb_monitor_path(uint32_t layers, struct plumb_monitor_frame *frames, size_t frame_size,
                   size_t capacity)
{
	struct plumb_thread *thread = plumb_thread_get();
	bool told = thread && thread->in_event;
	if (!frames || !frame_size)
		capacity = 0;
	if (!told && !(thread = plumb_enter(PLUMB_CALLBACK_GPU)))
		return 0;
	plumb_id node =
		told && thread->event_node ? thread->event_node : plumb_context_current(thread);
	size_t count = 0;
	if (node != PLUMB_LOST)
		count = store_path(thread->arena.region, node, layers, (char *)frames, frame_size,
		                   capacity);
	if (!told)
		plumb_leave(thread);
	return count;
}
