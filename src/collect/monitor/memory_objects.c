/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors on GPUs as objects: what a caching allocator hands out is a part of the segment that it
 * took from the driver, at the context that asked for the tensor.
 */
#include "collect/monitor/memory.h"
#include "collect/object.h"

static void
tensor_changed(const struct plumb_memory_change *change)
{
	if (change->device_kind != PLUMB_MEMORY_CUDA || !plumb_traffic_wanted)
		return;
	/* Its end counts also while recording is paused. */
	struct plumb_thread *thread = change->free ? plumb_enter_paused(PLUMB_CALLBACK_MEMORY)
	                                           : plumb_enter(PLUMB_CALLBACK_MEMORY);
	if (!thread)
		return;
	if (change->free)
		plumb_tensor_freed(thread, change->address);
	else
		plumb_object_allocated(thread, change->device_index, PLUMB_OBJECT_TENSOR,
		                       change->address, change->bytes, 0);
	plumb_leave(thread);
}

void
plumb_objects_of_tensors(void)
{
	plumb_memory_listen(tensor_changed);
}
