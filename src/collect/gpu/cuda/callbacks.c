/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver calls, on the program's threads.
 *
 * At the enter of a call that may start work, its place in the program goes into the ring of
 * launches: the record may be there before the call returns. At the exit it is counted, if it
 * succeeded and was not captured into a graph (capturing makes a graph node within the call, which
 * a callback tells).
 */
#include <string.h>

#include "collect/clock.h"
#include "collect/gpu/cuda/runtime.h"
#include "collect/gpu/cuda/tell.h"
#include "collect/live.h"
#include "collect/recording.h"
#include "collect/span.h"
#include "collect/wait.h"

struct plumb_launch_ring *plumb_cuda_launches;

/* Calls that a thread is in; more than one when a call makes another one. */
#define DEPTH 4
struct pending {
	uint64_t start, cpu;
	uint64_t ticks; /* likewise, for the trace */
	plumb_id node;
	uint32_t correlation;
	uint32_t epoch;
	const char *kernel; /* of a launch: its name */
	uint64_t made;      /* the graph's node that it became */
	uint32_t captured;  /* or launched while records were off: starts nothing that counts */
};
static _Thread_local struct {
	struct pending calls[DEPTH];
	uint32_t depth;
} pending;

/* One counter a cache line, so that threads that launch do not fight for one. */
#define COUNTERS 16
static struct {
	_Atomic uint64_t count;
	char pad[56];
} launched[COUNTERS];
static _Atomic uint32_t next_counter;
static _Thread_local uint32_t counter; /* 0: none yet */

static void
count_launch(void)
{
	if (!counter)
		counter = 1 + atomic_fetch_add_explicit(&next_counter, 1, memory_order_relaxed) %
		                      COUNTERS;
	atomic_fetch_add_explicit(&launched[counter - 1].count, 1, memory_order_relaxed);
}

uint64_t
plumb_cuda_launched(void)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < COUNTERS; i++)
		sum += atomic_load_explicit(&launched[i].count, memory_order_relaxed);
	return sum;
}

/* The gpu_api context of a call. Variants of one function (_v2, _ptsz: the per-thread default
 * stream) are one API. */
static plumb_id
api_node(struct plumb_thread *thread, const char *name)
{
	if (!name)
		name = "?";
	size_t length = strlen(name), whole = length;
	if (length > 5 &&
	    (!memcmp(name + length - 5, "_ptsz", 5) || !memcmp(name + length - 5, "_ptds", 5)))
		length -= 5;
	if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v' &&
	    name[length - 1] >= '0' && name[length - 1] <= '9')
		length -= 3;
	struct plumb_key key = {
		.kind = PLUMB_FRAME_GPU_API,
		.name = length == whole ? plumb_name(thread, name)
		                        : plumb_intern(thread, name, length),
	};
	return plumb_child(thread, plumb_context_current(thread), &key);
}

/* Tells whoever reads the call's records, if any come, that it was made while recording was
 * paused. */
static void
launch_paused(uint64_t correlation)
{
	const struct plumb_launch launch = { .node = PLUMB_LAUNCH_PAUSED };
	plumb_launch_put(plumb_cuda_launches, correlation, &launch);
}

static void
call_enter(struct plumb_thread *thread, enum plumb_call call, const CUpti_CallbackData *info)
{
	if (pending.depth == DEPTH) /* enters without exits: forget them */
		pending.depth = 0;
	struct pending *now = &pending.calls[pending.depth++];
	*now = (struct pending){
		.node = api_node(thread, info->functionName),
		.correlation = info->correlationId,
		.epoch = plumb_epoch(thread),
	};
	if (call <= PLUMB_CALL_SET &&
	    plumb_unlikely(atomic_load_explicit(&plumb_slot_paused, memory_order_relaxed))) {
		/* Recording has just begun again, and records have not. */
		launch_paused(info->correlationId);
		now->captured = 1;
		plumb_cuda_wake();
	} else if (call <= PLUMB_CALL_SET) {
		struct plumb_launch launch = { .node = now->node,
			                       .track = now->node == PLUMB_LOST
			                                        ? plumb_thread_arena(thread)->fate
			                                        : plumb_thread_track(thread) };
		plumb_launch_put(plumb_cuda_launches, info->correlationId, &launch);
	}
	if (call == PLUMB_CALL_LAUNCH)
		now->kernel = info->symbolName;
	if (call == PLUMB_CALL_GRAPH && !now->captured && info->functionParams)
		plumb_replay_launched(((const cuGraphLaunch_params *)info->functionParams)->hGraph,
		                      info->correlationId, now->node);
	plumb_cuda_tell(thread, call, info, now->node);
	if (plumb_unlikely(plumb_trace_on))
		now->ticks = plumb_ticks();
	if (call == PLUMB_CALL_SYNC || call == PLUMB_CALL_COPY ||
	    call == PLUMB_CALL_COPY_BLOCKING) {
		now->cpu = plumb_wait_begin(thread);
		now->start = plumb_now();
	}
}

/* ---- allocations ---- */

/* Sizes by address, so that a free can tell what it frees. A cuMemCreate handle's key has a bit
 * set. */
static struct plumb_live allocations;
#define ALLOCATION_HANDLE (1ull << 63)

void
plumb_cuda_calls_renew(void)
{
	plumb_live_clear(&allocations);
	plumb_launch_ring_clear(plumb_cuda_launches);
}

static void
alloc_exit(struct plumb_thread *thread, plumb_id node, uint64_t key, uint64_t bytes)
{
	struct plumb_live_object object = { .bytes = bytes }, was;
	plumb_observe(thread, node, PLUMB_METRIC_GPU_ALLOC_BYTES, plumb_thread_track(thread),
	              (int64_t)bytes);
	plumb_count(thread, PLUMB_SOURCE_ALLOCATION, PLUMB_FATE_RECEIVED, 1);
	plumb_count(thread, PLUMB_SOURCE_ALLOCATION, PLUMB_FATE_ATTRIBUTED, 1);
	if (key)
		plumb_live_put(&allocations, key, &object, &was);
}

static void
free_exit(struct plumb_thread *thread, plumb_id node, uint64_t key)
{
	struct plumb_live_object object;
	/* Else it was made before plumb came, or is no allocation. */
	if (key && plumb_live_take(&allocations, key, &object))
		plumb_observe(thread, node, PLUMB_METRIC_GPU_FREE_BYTES, plumb_thread_track(thread),
		              (int64_t)object.bytes);
}

static void
memory_exit(struct plumb_thread *thread, enum plumb_call call, plumb_id node, const void *params)
{
	/* The first members of all functions of a kind agree: (pointer *, bytes), (pointer). */
	const cuMemAlloc_v2_params *alloc = params;
	const cuMemAllocPitch_v2_params *pitch = params;
	const cuMemCreate_params *create = params;
	const cuMemFree_v2_params *free_params = params;
	const cuMemRelease_params *release = params;
	switch (call) {
	case PLUMB_CALL_ALLOC:
		if (alloc->dptr)
			alloc_exit(thread, node, *alloc->dptr, alloc->bytesize);
		break;
	case PLUMB_CALL_ALLOC_PITCH:
		if (pitch->dptr && pitch->pPitch)
			alloc_exit(thread, node, *pitch->dptr, *pitch->pPitch * pitch->Height);
		break;
	case PLUMB_CALL_CREATE:
		if (create->handle)
			alloc_exit(thread, node, *create->handle | ALLOCATION_HANDLE, create->size);
		break;
	case PLUMB_CALL_FREE:
		free_exit(thread, node, free_params->dptr);
		break;
	default:
		free_exit(thread, node, release->handle | ALLOCATION_HANDLE);
		break;
	}
}
_Static_assert(offsetof(cuMemAllocManaged_params, bytesize) ==
                               offsetof(cuMemAlloc_v2_params, bytesize) &&
                       offsetof(cuMemAllocAsync_params, bytesize) ==
                               offsetof(cuMemAlloc_v2_params, bytesize) &&
                       offsetof(cuMemAllocFromPoolAsync_params, bytesize) ==
                               offsetof(cuMemAlloc_v2_params, bytesize) &&
                       offsetof(cuMemFreeAsync_params, dptr) == offsetof(cuMemFree_v2_params, dptr),
               "parameters of allocation functions");

/* ---- exits ---- */

static void
call_exit(struct plumb_thread *thread, enum plumb_call call, const CUpti_CallbackData *info)
{
	while (pending.depth && pending.calls[pending.depth - 1].correlation != info->correlationId)
		pending.depth--;
	if (!pending.depth)
		return;
	struct pending *now = &pending.calls[--pending.depth];
	plumb_id track = plumb_thread_track(thread);
	const CUresult *result = info->functionReturnValue;
	if (plumb_unlikely(now->made) && now->kernel)
		plumb_graph_named(now->made,
		                  plumb_intern(thread, now->kernel, strlen(now->kernel)));
	plumb_cuda_tell(thread, call, info, now->node);
	/* Its time, if recording was on all the while. */
	bool whole = now->epoch == plumb_epoch(thread);
	bool done = !(result && *result != CUDA_SUCCESS) && !now->captured;
	if (now->cpu)
		plumb_wait_end(thread, whole && done ? now->node : 0, now->cpu,
		               plumb_now() - now->start);
	if (!done)
		return;
	if (plumb_unlikely(plumb_trace_on))
		plumb_span_add(thread, now->node, track, now->ticks, plumb_ticks(),
		               call <= PLUMB_CALL_SYNC ? info->correlationId : 0);
	if (call <= PLUMB_CALL_SET) {
		count_launch();
		plumb_count(thread, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_RECEIVED, 1);
		plumb_observe(thread, now->node,
		              call == PLUMB_CALL_GRAPH ? PLUMB_METRIC_GPU_REPLAYS
		                                       : PLUMB_METRIC_GPU_LAUNCHES,
		              track, 1);
	}
	if (call == PLUMB_CALL_COPY && whole) {
		plumb_launch_waited(plumb_cuda_launches, info->correlationId,
		                    plumb_now() - now->start);
	} else if (call == PLUMB_CALL_COPY_BLOCKING && whole) {
		plumb_observe(thread, now->node, PLUMB_METRIC_HOST_WAIT, track,
		              (int64_t)(plumb_now() - now->start));
	} else if (call == PLUMB_CALL_SYNC) {
		if (whole)
			plumb_observe(thread, now->node, PLUMB_METRIC_HOST_WAIT, track,
			              (int64_t)(plumb_now() - now->start));
		plumb_count(thread, PLUMB_SOURCE_SYNC, PLUMB_FATE_RECEIVED, 1);
		plumb_count(thread, PLUMB_SOURCE_SYNC,
		            whole ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_PAUSED, 1);
	} else if (call >= PLUMB_CALL_ALLOC && info->functionParams) {
		memory_exit(thread, call, now->node, info->functionParams);
	}
}

static void
resource_event(CUpti_CallbackId id, const CUpti_ResourceData *resource)
{
	const CUpti_ModuleResourceData *module;
	switch (id) {
	case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
		if (pending.depth) {
			struct pending *now = &pending.calls[pending.depth - 1];
			now->captured = 1;
			now->made = plumb_graph_created(resource->resourceDescriptor, now->node);
		}
		break;
	case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
		plumb_graph_cloned(resource->resourceDescriptor);
		break;
	case CUPTI_CBID_RESOURCE_MODULE_LOADED:
		module = resource->resourceDescriptor;
		if (module)
			plumb_cuda_module_loaded(module->pCubin, module->cubinSize);
		break;
	default:
		break;
	}
}

/* Calls that start no work and have no context: what they do to graphs and modules. */
static void
making_call(enum plumb_call call, const CUpti_CallbackData *info)
{
	const cuGraphInstantiateWithFlags_params *graph = info->functionParams;
	const cuModuleLoadData_params *module = info->functionParams;
	const CUresult *result = info->functionReturnValue;
	bool enter = info->callbackSite == CUPTI_API_ENTER;
	bool made = !enter && info->functionParams && result && *result == CUDA_SUCCESS;
	if (call == PLUMB_CALL_CHANGE)
		plumb_graph_changed();
	else if (call == PLUMB_CALL_LOAD && made && !plumb_slot_has_modules())
		plumb_cuda_image_loaded(module->image);
	else if (call == PLUMB_CALL_INSTANTIATE && enter)
		plumb_graph_begin();
	else if (call == PLUMB_CALL_INSTANTIATE && made && graph->phGraphExec)
		plumb_graph_end(*graph->phGraphExec);
}
_Static_assert(offsetof(cuModuleLoadData_params, image) ==
                       offsetof(cuModuleLoadDataEx_params, image),
               "parameters of functions that load code");
#if CUDA_VERSION >= 12000
_Static_assert(offsetof(cuModuleLoadData_params, image) == offsetof(cuLibraryLoadData_params, code),
               "parameters of functions that load code");
#endif
_Static_assert(!offsetof(cuGraphInstantiateWithFlags_params, phGraphExec) &&
                       !offsetof(cuGraphInstantiateWithParams_params, phGraphExec) &&
                       !offsetof(cuGraphInstantiate_v2_params, phGraphExec) &&
                       !offsetof(cuGraphInstantiate_params, phGraphExec),
               "parameters of functions that make graphs executable");

void CUPTIAPI
plumb_cuda_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *info)
{
	(void)data;
	if (plumb_unlikely(!atomic_load_explicit(&plumb_cuda_live, memory_order_relaxed)))
		return; /* a forked child */
	if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
		resource_event(id, info);
		return;
	}
	if (domain != CUPTI_CB_DOMAIN_DRIVER_API || id >= PLUMB_CALLS_MAX || !plumb_calls[id])
		return;
	const CUpti_CallbackData *call = info;
	if (plumb_unlikely(plumb_calls[id] >= PLUMB_CALL_INSTANTIATE)) {
		making_call(plumb_calls[id], call);
		return;
	}
	if (call->callbackSite == CUPTI_API_EXIT && !pending.depth)
		return;
	bool enter = call->callbackSite == CUPTI_API_ENTER;
	enum plumb_source source = plumb_calls[id] <= PLUMB_CALL_SET ? PLUMB_SOURCE_LAUNCH : 0;
	struct plumb_thread *thread = enter ? plumb_enter_of(PLUMB_CALLBACK_GPU, source)
	                                    : plumb_enter_paused(PLUMB_CALLBACK_GPU);
	if (plumb_unlikely(!thread)) {
		if (enter && plumb_calls[id] <= PLUMB_CALL_SET &&
		    !plumb_control_is_on(plumb_control))
			launch_paused(call->correlationId);
		return;
	}
	if (enter)
		call_enter(thread, plumb_calls[id], call);
	else
		call_exit(thread, plumb_calls[id], call);
	plumb_leave(thread);
}
