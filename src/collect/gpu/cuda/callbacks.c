/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver calls, on the program's threads, as CUPTI tells of them. What is recorded of a call:
 * collect/gpu/call.c. Capturing makes a graph node within the call, which a callback of its own
 * tells.
 */
#include <string.h>

#include "collect/comm/comm.h"
#include "collect/gpu/cuda/runtime.h"
#include "collect/gpu/cuda/tell.h"
#include "collect/object.h"

/* The name of a call. Variants of one function (_v2, _ptsz: the per-thread default stream) are one
 * API. */
static __attribute__((noinline, cold)) plumb_id
intern_api(struct plumb_thread *thread, const char *name)
{
	if (!name)
		name = "?";
	size_t length = strlen(name);
	if (length > 5 &&
	    (!memcmp(name + length - 5, "_ptsz", 5) || !memcmp(name + length - 5, "_ptds", 5)))
		length -= 5;
	if (length > 3 && name[length - 3] == '_' && name[length - 2] == 'v' &&
	    name[length - 1] >= '0' && name[length - 1] <= '9')
		length -= 3;
	return plumb_intern(thread, name, length);
}

/* The name of the call ID. A number always stands for the same function, so its text is read once
 * on each thread. */
static inline plumb_id
api_name(struct plumb_thread *thread, CUpti_CallbackId id, const char *name)
{
	plumb_id *known = plumb_call_name(thread, id);
	if (plumb_unlikely(!*known))
		*known = intern_api(thread, name);
	return *known;
}
_Static_assert(PLUMB_CALLS_MAX <= PLUMB_CALL_NAMES, "each call has its place");

static bool
starts_kernels(unsigned kind)
{
	return kind == PLUMB_CALL_LAUNCH || kind == PLUMB_CALL_GRAPH;
}

static bool
is_copy(unsigned kind)
{
	return kind >= PLUMB_CALL_COPY && kind <= PLUMB_CALL_COPY_DEVICE;
}

static void
call_enter(struct plumb_thread *thread, unsigned kind, CUpti_CallbackId id,
           const CUpti_CallbackData *info)
{
	struct plumb_gpu_call *call =
		plumb_gpu_call_enter(plumb_cuda_activity, thread, kind,
	                             api_name(thread, id, info->functionName), info->correlationId);
	if (plumb_unlikely(call->captured)) /* records are off, though recording is on again */
		plumb_cuda_wake();
	if (kind == PLUMB_CALL_LAUNCH)
		call->kernel = info->symbolName;
	if (plumb_unlikely(plumb_comm_wanted) && plumb_comm_is_kernel(call->kernel))
		plumb_comm_launching(info->correlationId);
	if (plumb_unlikely(plumb_cuda_stalls_wanted) && starts_kernels(kind))
		plumb_cuda_stalls_launch(info->correlationId, call->node);
	if (plumb_unlikely(plumb_cuda_counters_wanted) && starts_kernels(kind))
		plumb_cuda_counters_launch(thread, id, info, call->node);
	if (kind == PLUMB_CALL_GRAPH && !call->captured && info->functionParams)
		plumb_cuda_graph_launched(
			((const cuGraphLaunch_params *)info->functionParams)->hGraph,
			info->correlationId, call->node);
	plumb_cuda_tell(thread, kind, info, call->node);
	if (plumb_unlikely(plumb_traffic_wanted) && info->functionParams) {
		if (is_copy(kind))
			plumb_cuda_copy_enter(id, info);
		else if (kind >= PLUMB_CALL_MEMORY)
			plumb_cuda_memory_enter(thread, kind, info);
	}
	plumb_gpu_call_clock(thread, kind, call);
}

/* A handle of cuMemCreate could equal an address, so its key has a bit set. */
#define ALLOCATION_HANDLE (1ull << 63)

static void
count_memory(struct plumb_thread *thread, unsigned kind, plumb_id node, uint32_t context,
             const void *params)
{
	/* The first members of all functions of a kind agree: (pointer *, bytes), (pointer). */
	const cuMemAlloc_v2_params *alloc = params;
	const cuMemAllocPitch_v2_params *pitch = params;
	const cuMemCreate_params *create = params;
	const cuMemFree_v2_params *free_params = params;
	const cuMemRelease_params *release = params;
	switch (kind) {
	case PLUMB_CALL_ALLOC:
	case PLUMB_CALL_ALLOC_MANAGED:
	case PLUMB_CALL_ALLOC_ASYNC:
	case PLUMB_CALL_ALLOC_POOL:
		if (alloc->dptr)
			plumb_gpu_allocated(plumb_cuda_activity, thread, node, context,
			                    *alloc->dptr, alloc->bytesize);
		break;
	case PLUMB_CALL_ALLOC_PITCH:
		if (pitch->dptr && pitch->pPitch)
			plumb_gpu_allocated(plumb_cuda_activity, thread, node, context,
			                    *pitch->dptr, *pitch->pPitch * pitch->Height);
		break;
	case PLUMB_CALL_CREATE:
		if (create->handle)
			plumb_gpu_allocated(plumb_cuda_activity, thread, node, context,
			                    *create->handle | ALLOCATION_HANDLE, create->size);
		break;
	case PLUMB_CALL_FREE:
		plumb_gpu_freed(plumb_cuda_activity, thread, node, free_params->dptr);
		break;
	case PLUMB_CALL_RELEASE:
		plumb_gpu_freed(plumb_cuda_activity, thread, node,
		                release->handle | ALLOCATION_HANDLE);
		break;
	default:
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

static void
call_exit(struct plumb_thread *thread, unsigned kind, CUpti_CallbackId id,
          const CUpti_CallbackData *info)
{
	const CUresult *result = info->functionReturnValue;
	struct plumb_gpu_call *call = plumb_gpu_call_leave(info->correlationId);
	if (!call)
		return;
	if (plumb_unlikely(call->made) && call->kernel)
		plumb_graph_named(plumb_cuda_activity, call->made,
		                  plumb_intern(thread, call->kernel, strlen(call->kernel)));
	if (plumb_unlikely(plumb_comm_wanted) && plumb_comm_is_kernel(call->kernel))
		plumb_comm_launched(info->correlationId,
		                    call->captured &&
		                            !plumb_gpu_activity_paused(plumb_cuda_activity));
	if (plumb_unlikely(plumb_traffic_wanted) && call->made &&
	    (is_copy(kind) || kind == PLUMB_CALL_ADD_COPY))
		plumb_cuda_copy_captured(id, info, call->made);
	plumb_cuda_tell(thread, kind, info, call->node);
	if (!plumb_gpu_call_count(plumb_cuda_activity, thread, kind, call,
	                          !result || *result == CUDA_SUCCESS) ||
	    kind < PLUMB_CALL_MEMORY || !info->functionParams)
		return;
	count_memory(thread, kind, call->node, info->contextUid, info->functionParams);
	if (plumb_unlikely(plumb_traffic_wanted))
		plumb_cuda_memory_exit(thread, kind, call->node, info);
}

static void
resource_event(CUpti_CallbackId id, const CUpti_ResourceData *resource)
{
	const CUpti_ModuleResourceData *module;
	struct plumb_gpu_call *call;
	switch (id) {
	case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
		call = plumb_gpu_call_current();
		if (call) {
			call->captured = true;
			call->made =
				plumb_cuda_graph_created(resource->resourceDescriptor, call->node);
		}
		break;
	case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
		plumb_cuda_graph_cloned(resource->resourceDescriptor);
		break;
	case CUPTI_CBID_RESOURCE_MODULE_LOADED:
		module = resource->resourceDescriptor;
		if (module)
			plumb_cuda_module_loaded(module->pCubin, module->cubinSize);
		plumb_cuda_stalls_modules();
		break;
	case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
		plumb_cuda_stalls_modules();
		break;
	case CUPTI_CBID_RESOURCE_CONTEXT_CREATED:
		plumb_cuda_stalls_prepare(resource->context);
		plumb_cuda_counters_prepare(resource->context, false);
		plumb_cuda_series_prepare(resource->context, false);
		break;
	case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
		plumb_cuda_stalls_destroyed(resource->context);
		plumb_cuda_counters_destroyed(resource->context);
		plumb_cuda_series_destroyed(resource->context);
		break;
	default:
		break;
	}
}

/* Calls that start no work and have no context: what they do to graphs and modules. */
static void
making_call(unsigned kind, const CUpti_CallbackData *info)
{
	const cuGraphInstantiateWithFlags_params *graph = info->functionParams;
	const cuModuleLoadData_params *module = info->functionParams;
	const CUresult *result = info->functionReturnValue;
	bool enter = info->callbackSite == CUPTI_API_ENTER;
	bool made = !enter && info->functionParams && result && *result == CUDA_SUCCESS;
	if (kind == PLUMB_CALL_CHANGE)
		plumb_graph_changed(plumb_cuda_activity);
	else if (kind == PLUMB_CALL_LOAD && made && !plumb_slot_has_modules())
		plumb_cuda_image_loaded(module->image);
	else if (kind == PLUMB_CALL_CAPTURE && made)
		plumb_cuda_counters_captured(true);
	else if (kind == PLUMB_CALL_CAPTURE_END && !enter && result &&
	         *result != CUDA_ERROR_ILLEGAL_STATE)
		plumb_cuda_counters_captured(false);
	else if (kind == PLUMB_CALL_INSTANTIATE && enter)
		plumb_graph_begin(plumb_slot_replays());
	else if (kind == PLUMB_CALL_INSTANTIATE && made && graph->phGraphExec)
		plumb_cuda_graph_made(*graph->phGraphExec);
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

/* What is freed while recording is paused is gone all the same. */
static __attribute__((noinline, cold)) void
paused_call(unsigned kind, const CUpti_CallbackData *info)
{
	struct plumb_thread *thread =
		info->functionParams ? plumb_enter_paused(PLUMB_CALLBACK_GPU) : NULL;
	if (!thread)
		return;
	plumb_cuda_memory_enter(thread, kind, info);
	plumb_leave(thread);
}

PLUMB_HOT_CODE void CUPTIAPI
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
	unsigned kind = plumb_calls[id];
	if (plumb_unlikely(kind >= PLUMB_CALL_INSTANTIATE)) {
		making_call(kind, call);
		return;
	}
	bool enter = call->callbackSite == CUPTI_API_ENTER;
	bool sampled = plumb_unlikely(plumb_cuda_stalls_wanted) && starts_kernels(kind);
	if (plumb_unlikely(sampled && enter))
		plumb_cuda_stalls_prepare(call->context);
	if (plumb_unlikely(plumb_cuda_series_wanted) && enter && kind < PLUMB_CALL_SYNC)
		plumb_cuda_series_prepare(call->context, true);
	bool counted = plumb_unlikely(plumb_cuda_counters_wanted) && starts_kernels(kind);
	if (plumb_unlikely(counted && enter))
		plumb_cuda_counters_prepare(call->context, true);
	else if (plumb_unlikely(counted))
		plumb_cuda_counters_stop(call->correlationId);
	struct plumb_thread *thread =
		enter ? plumb_gpu_call_begin(plumb_cuda_activity, kind, call->correlationId)
		      : plumb_gpu_call_end();
	if (plumb_unlikely(!thread)) {
		if (plumb_unlikely(plumb_traffic_wanted) && enter && kind >= PLUMB_CALL_MEMORY)
			paused_call(kind, call);
		return;
	}
	if (enter)
		call_enter(thread, kind, id, call);
	else
		call_exit(thread, kind, id, call);
	plumb_leave(thread);
	if (plumb_unlikely(counted && enter))
		plumb_cuda_counters_start();
	if (plumb_unlikely(sampled && !enter))
		plumb_cuda_stalls_launched(call->context, call->correlationId);
}
