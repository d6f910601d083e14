/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records → contexts, metrics, ledger; on the service thread alone.
 *
 * A record finds its launch by the correlation id; its kernel, copy or set hangs under that call.
 * What repeats (kernel of a call, configuration of a kernel) is found by direct-mapped caches whose
 * entries are checked, so that a clash costs a search and never truth. A record without its launch
 * is counted, and its time still shows: at the root, under no call.
 */
#include <stdio.h>
#include <string.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/process.h"
#include "collect/span.h"
#include "collect/table.h"

#define DEVICES 64u
#define NAMES 4096u          /* kernels by call and name */
#define VARIANTS 8192u       /* configurations by kernel context */
#define SEEN 16384u          /* signatures of the newest records */
#define VARIANTS_A_NODE 512u /* further configurations share one without numbers */

static struct plumb_cupti_layout layout;
static struct device {
	struct plumb_gpu_device *device;
	struct plumb_occupancy_limits limits;
} devices[DEVICES];

struct name_entry {
	plumb_id parent, node;
	const char *name;
};
struct variant_entry {
	plumb_id node, track, variant;
};
static struct caches {
	struct name_entry names[NAMES];
	struct variant_entry variants[VARIANTS];
	uint64_t seen[SEEN];
} *caches;
static uint64_t delivered; /* launches of which a record came */

bool
plumb_records_init(const struct plumb_cupti_layout *known)
{
	layout = *known;
	if (!caches)
		caches = plumb_map(sizeof *caches, false);
	return caches;
}

void
plumb_records_renew(void)
{
	memset(devices, 0, sizeof devices);
	memset(caches, 0, sizeof *caches);
	delivered = plumb_cuda_launched();
}

void
plumb_records_reserve(struct plumb_thread *thread)
{
	static const enum plumb_source sources[] = { PLUMB_SOURCE_LAUNCH, PLUMB_SOURCE_KERNEL,
		                                     PLUMB_SOURCE_COPY, PLUMB_SOURCE_SET };
	static const enum plumb_fate fates[] = { PLUMB_FATE_RECEIVED,      PLUMB_FATE_ATTRIBUTED,
		                                 PLUMB_FATE_REGION_FULL,   PLUMB_FATE_NO_SPACE,
		                                 PLUMB_FATE_RING_MISS,     PLUMB_FATE_NO_LAUNCH,
		                                 PLUMB_FATE_CUPTI_DROPPED, PLUMB_FATE_DUPLICATE,
		                                 PLUMB_FATE_NOT_DELIVERED };
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		for (size_t k = 0; k < sizeof fates / sizeof *fates; k++)
			plumb_count(thread, sources[i], fates[k], 0);
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

/* ---- what all kinds of records share ---- */

/* The fields of a record that say where it belongs. */
struct work {
	enum plumb_source source;
	enum plumb_work_kind kind;
	uint64_t start, end, bytes;
	uint64_t graph_node;
	uint32_t device, context, stream, correlation;
};

/* What the records of all kinds of work call alike. */
#define WHEN_AND_WHERE(record)                                                                     \
	.start = (record)->start, .end = (record)->end, .graph_node = (record)->graphNodeId,       \
	.device = (record)->deviceId, .context = (record)->contextId,                              \
	.stream = (record)->streamId, .correlation = (record)->correlationId

static bool
seen_before(const struct work *work)
{
	uint64_t signature = plumb_mix(work->start, work->end);
	signature = plumb_mix(signature ^ work->graph_node,
	                      (uint64_t)work->correlation << 32 | work->stream);
	signature = plumb_mix(signature,
	                      (uint64_t)work->device << 32 | work->context << 4 | work->source);
	uint64_t *slot = &caches->seen[signature % SEEN];
	if (*slot == signature)
		return true;
	*slot = signature;
	return false;
}

/* What becomes of work whose context is NODE. */
static enum plumb_fate
fate_of(struct plumb_thread *thread, plumb_id node)
{
	return node == PLUMB_LOST ? plumb_thread_arena(thread)->fate : PLUMB_FATE_ATTRIBUTED;
}

/* Counts a record and finds its call; LAUNCH->node is 0 without one. False: it tells nothing. */
static bool
work_begin(struct plumb_thread *thread, const struct work *work, struct plumb_launch *launch)
{
	bool overwritten;
	plumb_count(thread, work->source, PLUMB_FATE_RECEIVED, 1);
	if (seen_before(work)) {
		plumb_count(thread, work->source, PLUMB_FATE_DUPLICATE, 1);
		return false;
	}
	*launch = (struct plumb_launch){ .node = 0 };
	if (!plumb_launch_take(plumb_cuda_launches, work->correlation, launch, &overwritten)) {
		launch->node = 0;
		plumb_count(thread, work->source,
		            overwritten ? PLUMB_FATE_RING_MISS : PLUMB_FATE_NO_LAUNCH, 1);
	} else if (launch->node == PLUMB_LAUNCH_PAUSED) {
		plumb_count(thread, work->source, PLUMB_FATE_PAUSED, 1);
		return false;
	} else if (launch->node == PLUMB_LOST) { /* what hangs under it is lost for its reason */
		plumb_thread_arena(thread)->fate = launch->track == PLUMB_FATE_NO_SPACE
		                                           ? PLUMB_FATE_NO_SPACE
		                                           : PLUMB_FATE_REGION_FULL;
	}
	if (launch->node && !launch->taken) {
		delivered++;
		plumb_count(thread, PLUMB_SOURCE_LAUNCH, fate_of(thread, launch->node), 1);
	}
	if (work->graph_node && launch->node && launch->node != PLUMB_LOST)
		launch->node = plumb_graph_place(thread, launch->node, work->graph_node);
	/* CUPTI leaves both 0 when it could not read the times. */
	if (!work->start || work->end < work->start) {
		if (launch->node)
			plumb_count(thread, work->source, PLUMB_FATE_CUPTI_DROPPED, 1);
		return false;
	}
	return true;
}

/* Counts the work at NODE and puts it down for its device. Returns the stream's track. */
static plumb_id
work_place(struct plumb_thread *thread, const struct work *work, const struct plumb_launch *launch,
           plumb_id node, struct device *device)
{
	if (launch->node)
		plumb_count(thread, work->source, fate_of(thread, node), 1);
	if (!device)
		return 0;
	plumb_id stream = plumb_gpu_stream(thread, device->device, work->context, work->stream);
	plumb_gpu_work(device->device, work->kind, node, stream, work->start, work->end,
	               work->bytes);
	if (plumb_unlikely(plumb_trace_on))
		plumb_span_add(thread, node, stream, work->start, work->end,
		               plumb_span_link(work->correlation, work->bytes));
	return stream;
}

/* ---- kernels ---- */

/* The kernel's context under PARENT. A name's pointer may come again for another kernel when its
 * module was unloaded, so the text is compared. */
static plumb_id
kernel_node(struct plumb_thread *thread, plumb_id parent, const char *name)
{
	struct plumb_region *region = plumb_region_of_process();
	uint64_t hash = plumb_mix(parent, (uint64_t)(uintptr_t)name);
	struct name_entry *entry = &caches->names[hash % NAMES];
	size_t length = strlen(name);
	if (length > PLUMB_STRING_MAX)
		length = PLUMB_STRING_MAX;
	if (entry->node && entry->parent == parent && entry->name == name) {
		const struct plumb_record_node *node = plumb_region_at(region, entry->node);
		const struct plumb_record_string *text = plumb_region_at(region, node->name);
		if (node->name && text->bytes == length && !memcmp(text + 1, name, length))
			return entry->node;
	}
	struct plumb_key key = {
		.kind = PLUMB_FRAME_KERNEL,
		.name = plumb_intern(thread, name, length),
	};
	plumb_id node = plumb_child(thread, parent, &key);
	if (node != PLUMB_LOST)
		*entry = (struct name_entry){ parent, node, name };
	return node;
}

static bool
same_configuration(const struct plumb_record_variant *a, const struct plumb_record_variant *b)
{
	return !memcmp(a->grid, b->grid, sizeof a->grid) &&
	       !memcmp(a->block, b->block, sizeof a->block) && a->registers == b->registers &&
	       a->static_shared == b->static_shared && a->dynamic_shared == b->dynamic_shared;
}

/* The VARIANT of NODE on TRACK with WANTED's configuration, made when missing; NULL: no room. */
static struct plumb_record_variant *
variant_find(struct plumb_thread *thread, plumb_id node_id, plumb_id track,
             const struct plumb_record_variant *wanted)
{
	static const struct plumb_record_variant other;
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_record_node *node = plumb_region_at(arena->region, node_id);
	struct plumb_record_variant *variant;
	unsigned count = 0;
	for (plumb_id id = node->first_variant; id; id = variant->next) {
		variant = plumb_region_at(arena->region, id);
		if (variant->track == track && same_configuration(variant, wanted))
			return variant;
		count++;
	}
	if (count >= VARIANTS_A_NODE && wanted->block[0])
		return variant_find(thread, node_id, track, &other);
	variant = plumb_arena_append(arena, PLUMB_RECORD_VARIANT, sizeof *variant);
	if (!variant) {
		plumb_count(thread, PLUMB_SOURCE_REGION, arena->fate, 1);
		return NULL;
	}
	struct plumb_record head = variant->head;
	*variant = *wanted;
	variant->head = head;
	variant->node = node_id;
	variant->track = track;
	variant->next = node->first_variant;
	if (!wanted->block[0])
		variant->occupancy = UINT32_MAX;
	plumb_arena_commit(arena, variant);
	node->first_variant = plumb_region_id(arena->region, variant);
	return variant;
}

static struct plumb_record_variant *
variant_of(struct plumb_thread *thread, plumb_id node, plumb_id track,
           const struct plumb_record_variant *wanted)
{
	struct plumb_region *region = plumb_region_of_process();
	uint64_t hash = plumb_mix((uint64_t)node << 32 | track,
	                          (uint64_t)wanted->grid[0] << 32 | wanted->grid[1] << 16 |
	                                  (wanted->dynamic_shared ^ wanted->block[0]));
	struct variant_entry *entry = &caches->variants[hash % VARIANTS];
	if (entry->variant && entry->node == node && entry->track == track) {
		struct plumb_record_variant *variant = plumb_region_at(region, entry->variant);
		if (same_configuration(variant, wanted))
			return variant;
	}
	struct plumb_record_variant *variant = variant_find(thread, node, track, wanted);
	if (variant)
		*entry = (struct variant_entry){ node, track, plumb_region_id(region, variant) };
	return variant;
}

static void
variant_add(struct plumb_record_variant *variant, int64_t ns)
{
	plumb_sequence_begin(&variant->sequence);
	variant->time += ns;
	variant->count++;
	if (ns < variant->min || variant->count == 1)
		variant->min = ns;
	if (ns > variant->max || variant->count == 1)
		variant->max = ns;
	plumb_sequence_end(&variant->sequence);
}

static void
kernel_metrics(struct plumb_thread *thread, plumb_id node, plumb_id track,
               const struct device *device, const CUpti_ActivityKernel8 *k)
{
	uint64_t blocks = (uint64_t)(uint32_t)k->gridX * (uint32_t)k->gridY * (uint32_t)k->gridZ;
	uint64_t threads =
		(uint64_t)(uint32_t)k->blockX * (uint32_t)k->blockY * (uint32_t)k->blockZ;
	uint32_t warp = device && device->limits.warp ? device->limits.warp : 32;
	int64_t ns = (int64_t)(k->end - k->start);
	struct plumb_record_variant wanted = {
		.grid = { (uint32_t)k->gridX, (uint32_t)k->gridY, (uint32_t)k->gridZ },
		.block = { (uint32_t)k->blockX, (uint32_t)k->blockY, (uint32_t)k->blockZ },
		.registers = k->registersPerThread,
		.static_shared = (uint32_t)k->staticSharedMemory,
		.dynamic_shared = (uint32_t)k->dynamicSharedMemory,
	};
	uint32_t shared = wanted.static_shared + wanted.dynamic_shared;
	wanted.occupancy = device && threads <= UINT32_MAX
	                           ? plumb_occupancy(&device->limits, (uint32_t)threads,
	                                             wanted.registers, shared)
	                           : UINT32_MAX;
	plumb_observe(thread, node, PLUMB_METRIC_GPU_TIME, track, ns);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_BLOCKS, track, (int64_t)blocks);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_WARPS, track,
	              (int64_t)(blocks * ((threads + warp - 1) / warp)));
	plumb_observe(thread, node, PLUMB_METRIC_GPU_REGISTERS, track, wanted.registers);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_SHARED_BYTES, track, shared);
	if (wanted.occupancy != UINT32_MAX)
		plumb_observe(thread, node, PLUMB_METRIC_GPU_OCCUPANCY, track, wanted.occupancy);
	if (node == PLUMB_LOST)
		return;
	struct plumb_record_variant *variant = variant_of(thread, node, track, &wanted);
	if (variant)
		variant_add(variant, ns);
}

static void
kernel_read(struct plumb_thread *thread, const CUpti_ActivityKernel8 *k)
{
	struct work work = {
		.source = PLUMB_SOURCE_KERNEL,
		.kind = PLUMB_WORK_KERNEL,
		WHEN_AND_WHERE(k),
	};
	struct plumb_launch launch;
	if (!work_begin(thread, &work, &launch))
		return;
	struct device *device = device_of(thread, work.device);
	plumb_id node = kernel_node(thread, launch.node, k->name ? k->name : "?");
	plumb_id track = work_place(thread, &work, &launch, node, device);
	kernel_metrics(thread, node, track, device, k);
}

/* ---- copies and sets ---- */

/* CUPTI's kind of memory in our words; HOST where it does not say, but the direction does. */
static const char *
memory_name(uint8_t kind, bool host, bool device, bool array)
{
	switch (kind) {
	case CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC:
		return plumb_memory_kind_name(PLUMB_MEMORY_DEVICE);
	case CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC:
		return plumb_memory_kind_name(PLUMB_MEMORY_MANAGED);
	case CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN:
		return host ? "host" : array ? "array" : device ? "device" : "unknown";
	default: /* CUPTI's numbers are ours */
		return plumb_memory_kind_name(kind);
	}
}
_Static_assert((int)CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE == PLUMB_MEMORY_PAGEABLE &&
                       (int)CUPTI_ACTIVITY_MEMORY_KIND_PINNED == PLUMB_MEMORY_PINNED &&
                       (int)CUPTI_ACTIVITY_MEMORY_KIND_DEVICE == PLUMB_MEMORY_DEVICE &&
                       (int)CUPTI_ACTIVITY_MEMORY_KIND_ARRAY == PLUMB_MEMORY_ARRAY &&
                       (int)CUPTI_ACTIVITY_MEMORY_KIND_MANAGED == PLUMB_MEMORY_MANAGED,
               "kinds of memory");

static void
copy_name(char *text, size_t size, uint8_t copy, uint8_t from, uint8_t to, bool peer)
{
	bool host_from = copy == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ||
	                 copy == CUPTI_ACTIVITY_MEMCPY_KIND_HTOA ||
	                 copy == CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
	bool host_to = copy == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ||
	               copy == CUPTI_ACTIVITY_MEMCPY_KIND_ATOH ||
	               copy == CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
	bool array_from = copy == CUPTI_ACTIVITY_MEMCPY_KIND_ATOH ||
	                  copy == CUPTI_ACTIVITY_MEMCPY_KIND_ATOA ||
	                  copy == CUPTI_ACTIVITY_MEMCPY_KIND_ATOD;
	bool array_to = copy == CUPTI_ACTIVITY_MEMCPY_KIND_HTOA ||
	                copy == CUPTI_ACTIVITY_MEMCPY_KIND_ATOA ||
	                copy == CUPTI_ACTIVITY_MEMCPY_KIND_DTOA;
	bool known = copy != CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN;
	snprintf(text, size, "copy %s→%s%s",
	         memory_name(from, host_from, known && !host_from, array_from), peer ? "peer " : "",
	         memory_name(to, host_to, known && !host_to, array_to));
}

static void
transfer_metrics(struct plumb_thread *thread, plumb_id node, plumb_id track,
                 const struct work *work)
{
	plumb_observe(thread, node, PLUMB_METRIC_GPU_COPY_TIME, track,
	              (int64_t)(work->end - work->start));
	plumb_observe(thread, node, PLUMB_METRIC_GPU_COPY_BYTES, track, (int64_t)work->bytes);
}

static void
copy_add(struct plumb_thread *thread, const struct work *work, const char *name, bool pageable)
{
	struct plumb_launch launch;
	if (!work_begin(thread, work, &launch))
		return;
	struct device *device = device_of(thread, work->device);
	plumb_id node = plumb_child_named(thread, launch.node, PLUMB_FRAME_COPY, name);
	plumb_id track = work_place(thread, work, &launch, node, device);
	transfer_metrics(thread, node, track, work);
	/* The call did not return before the driver had read or written all of pageable memory. */
	if (pageable && launch.node && !launch.taken && launch.host_wait)
		plumb_observe(thread, node, PLUMB_METRIC_HOST_WAIT, launch.track,
		              (int64_t)launch.host_wait);
}

static void
copy_read(struct plumb_thread *thread, const CUpti_ActivityMemcpy5 *c)
{
	struct work work = {
		.source = PLUMB_SOURCE_COPY,
		.kind = PLUMB_WORK_COPY,
		WHEN_AND_WHERE(c),
		.bytes = c->bytes,
	};
	char name[64];
	copy_name(name, sizeof name, c->copyKind, c->srcKind, c->dstKind, false);
	copy_add(thread, &work, name,
	         c->srcKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE ||
	                 c->dstKind == CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE);
}

static void
peer_copy_read(struct plumb_thread *thread, const CUpti_ActivityMemcpyPtoP4 *c)
{
	struct work work = {
		.source = PLUMB_SOURCE_COPY,
		.kind = PLUMB_WORK_COPY,
		WHEN_AND_WHERE(c),
		.bytes = c->bytes,
	};
	char name[64];
	copy_name(name, sizeof name, c->copyKind, c->srcKind, c->dstKind,
	          c->srcDeviceId != c->dstDeviceId);
	copy_add(thread, &work, name, false);
}

static void
set_read(struct plumb_thread *thread, const CUpti_ActivityMemset4 *s)
{
	struct work work = {
		.source = PLUMB_SOURCE_SET,
		.kind = PLUMB_WORK_SET,
		WHEN_AND_WHERE(s),
		.bytes = s->bytes,
	};
	struct plumb_launch launch;
	char name[64];
	if (!work_begin(thread, &work, &launch))
		return;
	snprintf(name, sizeof name, "set %s",
	         memory_name((uint8_t)s->memoryKind, false, true, false));
	struct device *device = device_of(thread, work.device);
	plumb_id node = plumb_child_named(thread, launch.node, PLUMB_FRAME_SET, name);
	plumb_id track = work_place(thread, &work, &launch, node, device);
	transfer_metrics(thread, node, track, &work);
}

/* ---- replays ---- */

static void
replay_read(struct plumb_thread *thread, const CUpti_ActivityGraphTrace2 *g)
{
	struct work work = {
		.source = PLUMB_SOURCE_REPLAY,
		.kind = PLUMB_WORK_KERNEL,
		.start = g->start,
		.end = g->end,
		.device = g->deviceId,
		.context = g->contextId,
		.stream = g->streamId,
		.correlation = g->correlationId,
	};
	struct plumb_launch launch;
	if (!work_begin(thread, &work, &launch))
		return;
	struct device *device = device_of(thread, work.device);
	plumb_id track =
		device ? plumb_gpu_stream(thread, device->device, work.context, work.stream) : 0;
	bool known;
	plumb_id node = plumb_replay_add(thread, work.correlation, launch.node,
	                                 device ? device->device : NULL, track, &known);
	if (launch.node)
		plumb_count(thread, work.source,
		            known ? fate_of(thread, node) : PLUMB_FATE_UNKNOWN_NODES, 1);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_TIME, track, (int64_t)(work.end - work.start));
	if (!device)
		return;
	/* As one kernel where what it is made of is not known, else its time alone. */
	plumb_gpu_count(device->device, work.kind, known ? 0 : 1, work.end - work.start, 0);
	plumb_gpu_busy(device->device, work.kind, node, track, work.start, work.end);
	if (plumb_unlikely(plumb_trace_on))
		plumb_span_add(thread, node, track, work.start, work.end, work.correlation);
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
	plumb_span_note(thread, PLUMB_SPAN_EVENT, place_of(e->contextId, e->streamId), e->eventId,
	                e->correlationId);
}

static void
synchronization_read(struct plumb_thread *thread, const CUpti_ActivitySynchronization2 *s)
{
	switch (s->type) {
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE:
		plumb_span_note(thread, PLUMB_SPAN_WAIT,
		                place_of(s->contextId, PLUMB_SPAN_NO_STREAM), s->cudaEventId,
		                s->correlationId);
		break;
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT:
		plumb_span_note(thread, PLUMB_SPAN_WAIT, place_of(s->contextId, s->streamId),
		                s->cudaEventId, s->correlationId);
		break;
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE:
		plumb_span_note(thread, PLUMB_SPAN_SYNC, place_of(s->contextId, s->streamId), 0,
		                s->correlationId);
		break;
	case CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE:
		plumb_span_note(thread, PLUMB_SPAN_SYNC,
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

void
plumb_records_merge(void)
{
	for (unsigned i = 0; i < DEVICES; i++)
		if (devices[i].device)
			plumb_gpu_merge(devices[i].device);
}

bool
plumb_records_complete(void)
{
	return delivered >= plumb_cuda_launched();
}

void
plumb_records_finish(struct plumb_thread *thread, uint64_t dropped)
{
	uint64_t launched = plumb_cuda_launched();
	uint64_t missing = launched > delivered ? launched - delivered : 0;
	if (dropped > missing) /* a graph's kernels are many records of one launch */
		dropped = missing;
	if (dropped)
		plumb_count(thread, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_CUPTI_DROPPED, dropped);
	if (missing > dropped)
		plumb_count(thread, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_NOT_DELIVERED,
		            missing - dropped);
}
