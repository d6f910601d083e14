/* SPDX-License-Identifier: Apache-2.0 */
/* CUPTI's records, read on the service thread alone. What becomes of them: collect/gpu/work.c. */
#include <string.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/object.h"
#include "collect/process.h"
#include "collect/span.h"

#define DEVICES 64u

static struct plumb_cupti_layout layout;
static struct device {
	struct plumb_gpu_device *device;
	struct plumb_occupancy_limits limits;
} devices[DEVICES];
static uint64_t named_made; /* bits of plumb_objects_ordinals that have a device */

void
plumb_records_init(const struct plumb_cupti_layout *known)
{
	layout = *known;
}

void
plumb_records_renew(void)
{
	memset(devices, 0, sizeof devices);
	named_made = 0;
}

static struct device *
device_of(struct plumb_thread *thread, uint32_t ordinal)
{
	struct device *device = ordinal < DEVICES ? &devices[ordinal] : NULL;
	if (device && !device->device) {
		struct plumb_record_device description;
		char name[256];
		plumb_cuda_describe(ordinal, &description, name, &device->limits);
		device->device = plumb_gpu_device_new(thread, &description, name[0] ? name : NULL);
	}
	return device && device->device ? device : NULL;
}

/* A device for work.c; NULL: it has none. */
static struct plumb_gpu_device *
gpu_of(struct plumb_thread *thread, uint32_t ordinal)
{
	struct device *device = device_of(thread, ordinal);
	return device ? device->device : NULL;
}

plumb_id
plumb_records_device(struct plumb_thread *thread, uint32_t ordinal)
{
	struct plumb_gpu_device *device = gpu_of(thread, ordinal);
	return device ? plumb_gpu_device_id(device) : 0;
}

/* What the records of all kinds of work call alike. CUPTI leaves both times 0 when it could not
 * read them. */
#define WHEN_AND_WHERE(record)                                                                     \
	.start = (record)->start, .end = (record)->end, .device = (record)->deviceId,              \
	.context = (record)->contextId, .stream = (record)->streamId,                              \
	.correlation = (record)->correlationId

/* ---- kernels ---- */

static uint32_t
occupancy_of(const struct device *device, const CUpti_ActivityKernel8 *k, uint32_t shared)
{
	uint64_t threads =
		(uint64_t)(uint32_t)k->blockX * (uint32_t)k->blockY * (uint32_t)k->blockZ;
	if (!device || threads > UINT32_MAX)
		return UINT32_MAX;
	return plumb_occupancy(&device->limits, (uint32_t)threads, k->registersPerThread, shared);
}

static void
kernel_read(struct plumb_thread *thread, const CUpti_ActivityKernel8 *k)
{
	struct plumb_gpu_record record = {
		.source = PLUMB_SOURCE_KERNEL,
		.kind = PLUMB_GPU_WORK_KERNEL,
		WHEN_AND_WHERE(k),
		.graph_node = k->graphNodeId,
	};
	if (!plumb_gpu_record_begin(plumb_cuda_activity, thread, &record))
		return;
	const struct device *device = device_of(thread, record.device);
	struct plumb_record_variant configuration = {
		.grid = { (uint32_t)k->gridX, (uint32_t)k->gridY, (uint32_t)k->gridZ },
		.block = { (uint32_t)k->blockX, (uint32_t)k->blockY, (uint32_t)k->blockZ },
		.registers = k->registersPerThread,
		.static_shared = (uint32_t)k->staticSharedMemory,
		.dynamic_shared = (uint32_t)k->dynamicSharedMemory,
	};
	configuration.occupancy =
		occupancy_of(device, k, configuration.static_shared + configuration.dynamic_shared);
	plumb_gpu_kernel(plumb_cuda_activity, thread, &record, device ? device->device : NULL,
	                 k->name ? k->name : "?", &configuration,
	                 device && device->limits.warp ? device->limits.warp : 32);
}

/* ---- copies and sets ---- */

/* CUPTI's KIND of memory as ours; OTHERWISE where it does not say. */
static uint16_t
memory_of(uint8_t kind, enum plumb_memory_kind otherwise)
{
	switch (kind) {
	case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
		return PLUMB_MEMORY_DEVICE;
	case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
		return PLUMB_MEMORY_MANAGED;
	case CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN:
		return (uint16_t)otherwise;
	default: /* CUPTI's numbers are ours */
		return kind <= PLUMB_MEMORY_MANAGED ? kind : PLUMB_MEMORY_UNKNOWN;
	}
}
_Static_assert((int)CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE == PLUMB_MEMORY_PAGEABLE &&
                       (int)CUPTI_ACTIVITY_MEMORY_KIND_PINNED == PLUMB_MEMORY_PINNED &&
                       (int)CUPTI_ACTIVITY_MEMORY_KIND_DEVICE == PLUMB_MEMORY_DEVICE &&
                       (int)CUPTI_ACTIVITY_MEMORY_KIND_ARRAY == PLUMB_MEMORY_ARRAY &&
                       (int)CUPTI_ACTIVITY_MEMORY_KIND_MANAGED == PLUMB_MEMORY_MANAGED,
               "kinds of memory");

/* What the direction COPY says of both ends. */
static struct plumb_transfer
direction_of(uint8_t copy)
{
	enum { HOST = PLUMB_MEMORY_HOST, ARRAY = PLUMB_MEMORY_ARRAY, DEVICE = PLUMB_MEMORY_DEVICE };
	switch (copy) {
	case CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN:
		return (struct plumb_transfer){ PLUMB_MEMORY_UNKNOWN, PLUMB_MEMORY_UNKNOWN };
	case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
		return (struct plumb_transfer){ HOST, DEVICE };
	case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
		return (struct plumb_transfer){ DEVICE, HOST };
	case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
		return (struct plumb_transfer){ HOST, ARRAY };
	case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
		return (struct plumb_transfer){ ARRAY, HOST };
	case CUPTI_ACTIVITY_MEMCPY_KIND_ATOA:
		return (struct plumb_transfer){ ARRAY, ARRAY };
	case CUPTI_ACTIVITY_MEMCPY_KIND_ATOD:
		return (struct plumb_transfer){ ARRAY, DEVICE };
	case CUPTI_ACTIVITY_MEMCPY_KIND_DTOA:
		return (struct plumb_transfer){ DEVICE, ARRAY };
	case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
		return (struct plumb_transfer){ HOST, HOST };
	default:
		return (struct plumb_transfer){ DEVICE, DEVICE };
	}
}

static struct plumb_transfer
transfer_of(uint8_t direction, uint8_t from, uint8_t to)
{
	struct plumb_transfer known = direction_of(direction);
	return (struct plumb_transfer){ memory_of(from, known.from), memory_of(to, known.to) };
}

/* FROM, TO: ordinals where the record tells them. */
static void
copy_add(struct plumb_thread *thread, struct plumb_gpu_record *record,
         const struct plumb_gpu_copy *copy, uint32_t from, uint32_t to)
{
	if (!plumb_gpu_record_begin(plumb_cuda_activity, thread, record))
		return;
	plumb_id node = plumb_gpu_transfer(thread, record, gpu_of(thread, record->device), copy);
	if (plumb_unlikely(plumb_traffic_wanted))
		plumb_cuda_copy_finished(thread, node, record, copy->kinds, from, to);
}

static void
copy_read(struct plumb_thread *thread, const CUpti_ActivityMemcpy5 *c)
{
	struct plumb_gpu_record record = {
		.source = PLUMB_SOURCE_COPY,
		.kind = PLUMB_GPU_WORK_COPY,
		WHEN_AND_WHERE(c),
		.graph_node = c->graphNodeId,
		.bytes = c->bytes,
	};
	struct plumb_gpu_copy copy = {
		.kinds = transfer_of(c->copyKind, c->srcKind, c->dstKind),
		.blocked = c->srcKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE ||
		           c->dstKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE,
	};
	copy_add(thread, &record, &copy, PLUMB_HOST_ORDINAL, PLUMB_HOST_ORDINAL);
}

static void
peer_copy_read(struct plumb_thread *thread, const CUpti_ActivityMemcpyPtoP4 *c)
{
	struct plumb_gpu_record record = {
		.source = PLUMB_SOURCE_COPY,
		.kind = PLUMB_GPU_WORK_COPY,
		WHEN_AND_WHERE(c),
		.graph_node = c->graphNodeId,
		.bytes = c->bytes,
	};
	struct plumb_gpu_copy copy = { .kinds = transfer_of(c->copyKind, c->srcKind, c->dstKind) };
	if (c->srcDeviceId != c->dstDeviceId) {
		copy.kinds.to |= PLUMB_MEMORY_PEER;
		copy.from = gpu_of(thread, c->srcDeviceId);
		copy.to = gpu_of(thread, c->dstDeviceId);
	}
	copy_add(thread, &record, &copy, c->srcDeviceId, c->dstDeviceId);
}

static void
set_read(struct plumb_thread *thread, const CUpti_ActivityMemset4 *s)
{
	struct plumb_gpu_record record = {
		.source = PLUMB_SOURCE_SET,
		.kind = PLUMB_GPU_WORK_SET,
		WHEN_AND_WHERE(s),
		.graph_node = s->graphNodeId,
		.bytes = s->bytes,
	};
	struct plumb_gpu_copy set = {
		.kinds.to = memory_of((uint8_t)s->memoryKind, PLUMB_MEMORY_DEVICE),
	};
	if (plumb_gpu_record_begin(plumb_cuda_activity, thread, &record))
		plumb_gpu_transfer(thread, &record, gpu_of(thread, record.device), &set);
}

/* ---- replays ---- */

static void
replay_read(struct plumb_thread *thread, const CUpti_ActivityGraphTrace2 *g)
{
	struct plumb_gpu_record record = {
		.source = PLUMB_SOURCE_REPLAY,
		.kind = PLUMB_GPU_WORK_KERNEL,
		WHEN_AND_WHERE(g),
	};
	if (plumb_gpu_record_begin(plumb_cuda_activity, thread, &record))
		plumb_gpu_replay(plumb_cuda_activity, thread, &record,
		                 gpu_of(thread, record.device));
}

/* ---- who waits for whom, in a trace ---- */

static uint64_t
place_of(uint32_t context, uint32_t stream)
{
	return (uint64_t)context << 32 | stream;
}

static void
event_read(struct plumb_thread *thread, const CUpti_ActivityCudaEvent2 *e)
{
	plumb_span_note(thread, PLUMB_ENTRY_EVENT, place_of(e->contextId, e->streamId), e->eventId,
	                e->correlationId);
}

static void
synchronization_read(struct plumb_thread *thread, const CUpti_ActivitySynchronization2 *s)
{
	switch (s->type) {
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
		plumb_span_note(thread, PLUMB_ENTRY_WAIT,
		                place_of(s->contextId, PLUMB_SPAN_NO_STREAM), s->cudaEventId,
		                s->correlationId);
		break;
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT:
		plumb_span_note(thread, PLUMB_ENTRY_WAIT, place_of(s->contextId, s->streamId),
		                s->cudaEventId, s->correlationId);
		break;
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
		plumb_span_note(thread, PLUMB_ENTRY_SYNC, place_of(s->contextId, s->streamId), 0,
		                s->correlationId);
		break;
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE:
		plumb_span_note(thread, PLUMB_ENTRY_SYNC,
		                place_of(s->contextId, PLUMB_SPAN_NO_STREAM), 0, s->correlationId);
		break;
	default:
		break;
	}
}

/* ---- buffers ---- */

/* How many bytes of a record of KIND are read; 0: it is of no interest. */
static uint32_t
bytes_of(CUpti_ActivityKind kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		return layout.kernel;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		return layout.copy;
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		return layout.peer_copy;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		return layout.set;
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		return layout.graph;
	case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
		return layout.event;
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		return layout.synchronization;
	default:
		return 0;
	}
}

static void
record_read(struct plumb_thread *thread, const CUpti_Activity *record)
{
	switch (record->kind) {
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		copy_read(thread, (const CUpti_ActivityMemcpy5 *)record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		peer_copy_read(thread, (const CUpti_ActivityMemcpyPtoP4 *)record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		set_read(thread, (const CUpti_ActivityMemset4 *)record);
		break;
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		replay_read(thread, (const CUpti_ActivityGraphTrace2 *)record);
		break;
	case CUPTI_ACTIVITY_KIND_CUDA_EVENT:
		event_read(thread, (const CUpti_ActivityCudaEvent2 *)record);
		break;
	case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
		synchronization_read(thread, (const CUpti_ActivitySynchronization2 *)record);
		break;
	default:
		kernel_read(thread, (const CUpti_ActivityKernel8 *)record);
		break;
	}
}

/* Where a record of KIND is counted that finds no arena. */
static enum plumb_source
source_of(CUpti_ActivityKind kind)
{
	switch (kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		return PLUMB_SOURCE_KERNEL;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
	case CUPTI_ACTIVITY_KIND_MEMCPY2:
		return PLUMB_SOURCE_COPY;
	case CUPTI_ACTIVITY_KIND_MEMSET:
		return PLUMB_SOURCE_SET;
	case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
		return PLUMB_SOURCE_REPLAY;
	default:
		return PLUMB_SOURCE_REGION;
	}
}

/* Without THREAD there is no arena: then the region's header counts what is lost. The thread's
 * start has just said why. */
void
plumb_records_read(struct plumb_thread *thread, const struct plumb_buffer *buffer)
{
	CUpti_Activity *record = NULL;
	const uint8_t *end = buffer->data + buffer->valid;
	while (plumb_cupti.ActivityGetNextRecord(buffer->data, buffer->valid, &record) ==
	       CUPTI_SUCCESS) {
		const uint8_t *at = (const uint8_t *)record;
		if (at < buffer->data || at + sizeof *record > end)
			break;
		uint32_t bytes = bytes_of(record->kind);
		if (!thread) {
			plumb_process_lost(source_of(record->kind), 0);
			continue;
		}
		if (!bytes || bytes > (size_t)(end - at)) {
			plumb_count(thread, PLUMB_SOURCE_BUFFER, PLUMB_FATE_UNKNOWN_LAYOUT, 1);
			continue;
		}
		record_read(thread, record);
	}
}

/* Objects and transfers name devices that may have done no work of their own. */
static void
make_named_devices(struct plumb_thread *thread)
{
	uint64_t named = atomic_load_explicit(&plumb_objects_ordinals, memory_order_relaxed);
	for (uint64_t left = named & ~named_made; left; left &= left - 1)
		gpu_of(thread, (uint32_t)__builtin_ctzll(left));
	named_made = named;
}

void
plumb_records_merge(struct plumb_thread *thread)
{
	make_named_devices(thread);
	for (unsigned i = 0; i < DEVICES; i++)
		if (devices[i].device)
			plumb_gpu_merge(devices[i].device);
}
