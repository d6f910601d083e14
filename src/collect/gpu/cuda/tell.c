/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/gpu/cuda/tell.h"

#include <stddef.h>
#include <string.h>

/* Kinds of event by kind of call; nobody wants to know of the others. */
static const uint8_t event_kinds[] = {
	[PLUMB_CALL_LAUNCH] = 1 + PLUMB_MONITOR_LAUNCH,
	[PLUMB_CALL_GRAPH] = 1 + PLUMB_MONITOR_LAUNCH,
	[PLUMB_CALL_COPY] = 1 + PLUMB_MONITOR_COPY,
	[PLUMB_CALL_COPY_BLOCKING] = 1 + PLUMB_MONITOR_COPY,
	[PLUMB_CALL_COPY_DEVICE] = 1 + PLUMB_MONITOR_COPY,
	[PLUMB_CALL_SET] = 1 + PLUMB_MONITOR_SET,
	[PLUMB_CALL_SYNC] = 1 + PLUMB_MONITOR_SYNC,
	[PLUMB_CALL_ALLOC] = 1 + PLUMB_MONITOR_DEVICE_ALLOC,
	[PLUMB_CALL_ALLOC_MANAGED] = 1 + PLUMB_MONITOR_DEVICE_ALLOC,
	[PLUMB_CALL_ALLOC_ASYNC] = 1 + PLUMB_MONITOR_DEVICE_ALLOC,
	[PLUMB_CALL_ALLOC_POOL] = 1 + PLUMB_MONITOR_DEVICE_ALLOC,
	[PLUMB_CALL_ALLOC_PITCH] = 1 + PLUMB_MONITOR_DEVICE_ALLOC,
	[PLUMB_CALL_CREATE] = 1 + PLUMB_MONITOR_DEVICE_ALLOC,
	[PLUMB_CALL_FREE] = 1 + PLUMB_MONITOR_DEVICE_FREE,
	[PLUMB_CALL_RELEASE] = 1 + PLUMB_MONITOR_DEVICE_FREE,
};

/* What a call's parameters say of memory. Copies between host and device begin with (to, from,
 * bytes) where they have no shape; other forms say nothing that is common. */
static void
describe_memory(struct plumb_monitor_event *event, unsigned call, const char *name,
                const void *params)
{
	const cuMemAlloc_v2_params *alloc = params;
	const cuMemAllocPitch_v2_params *pitch = params;
	const cuMemCreate_params *create = params;
	const cuMemcpyHtoD_v2_params *copy = params;
	bool done = event->phase == PLUMB_MONITOR_END && !event->result;
	switch (call) {
	case PLUMB_CALL_ALLOC:
	case PLUMB_CALL_ALLOC_MANAGED:
	case PLUMB_CALL_ALLOC_ASYNC:
	case PLUMB_CALL_ALLOC_POOL:
		event->bytes = alloc->bytesize;
		if (done && alloc->dptr)
			event->address = *alloc->dptr;
		break;
	case PLUMB_CALL_ALLOC_PITCH:
		if (done && pitch->dptr && pitch->pPitch) {
			event->address = *pitch->dptr;
			event->bytes = *pitch->pPitch * pitch->Height;
		}
		break;
	case PLUMB_CALL_CREATE:
		event->bytes = create->size;
		if (done && create->handle)
			event->address = *create->handle;
		break;
	case PLUMB_CALL_FREE:
	case PLUMB_CALL_RELEASE:
		event->address = ((const cuMemFree_v2_params *)params)->dptr;
		break;
	case PLUMB_CALL_COPY:
	case PLUMB_CALL_COPY_BLOCKING:
	case PLUMB_CALL_COPY_DEVICE:
		/* The first version of each had a count of 32 bits. */
		if ((!strncmp(name, "cuMemcpyHtoD", 12) || !strncmp(name, "cuMemcpyDtoH", 12) ||
		     !strncmp(name, "cuMemcpyDtoD", 12)) &&
		    strstr(name, "_v2"))
			event->bytes = copy->ByteCount;
		break;
	default:
		break;
	}
}
_Static_assert(offsetof(cuMemcpyDtoH_v2_params, ByteCount) ==
                               offsetof(cuMemcpyHtoD_v2_params, ByteCount) &&
                       offsetof(cuMemcpyDtoD_v2_params, ByteCount) ==
                               offsetof(cuMemcpyHtoD_v2_params, ByteCount) &&
                       offsetof(cuMemcpyHtoDAsync_v2_params, ByteCount) ==
                               offsetof(cuMemcpyHtoD_v2_params, ByteCount) &&
                       offsetof(cuMemcpyDtoHAsync_v2_params, ByteCount) ==
                               offsetof(cuMemcpyHtoD_v2_params, ByteCount) &&
                       offsetof(cuMemcpyDtoDAsync_v2_params, ByteCount) ==
                               offsetof(cuMemcpyHtoD_v2_params, ByteCount) &&
                       offsetof(cuMemRelease_params, handle) == offsetof(cuMemFree_v2_params, dptr),
               "parameters of copies");

void
plumb_cuda_tell_all(struct plumb_thread *thread, unsigned call, const CUpti_CallbackData *info,
                    plumb_id node)
{
	struct plumb_monitor_event event = PLUMB_EVENT(LAUNCH, BEGIN);
	const CUresult *result = info->functionReturnValue;
	if (call >= sizeof event_kinds || !event_kinds[call])
		return;
	event.kind = event_kinds[call] - 1u;
	if (!plumb_event_wanted(event.kind))
		return;
	if (info->callbackSite == CUPTI_API_EXIT) {
		event.phase = PLUMB_MONITOR_END;
		event.result = result ? (int64_t)*result : 0;
	}
	event.name = info->functionName;
	event.correlation = info->correlationId;
	event.kernel = call == PLUMB_CALL_LAUNCH ? info->symbolName : NULL;
	event.parameters = info->functionParams;
	if (info->functionParams && info->functionName)
		describe_memory(&event, call, info->functionName, info->functionParams);
	plumb_event_emit(thread, node, &event);
}
