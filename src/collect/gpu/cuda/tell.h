/* SPDX-License-Identifier: Apache-2.0 */
/* Driver calls as events for other tools (include/plumb/monitor.h). */
#ifndef PLUMB_COLLECT_GPU_CUDA_TELL_H
#define PLUMB_COLLECT_GPU_CUDA_TELL_H

#include "collect/event.h"
#include "collect/gpu/cuda/runtime.h"

void plumb_cuda_tell_all(struct plumb_thread *thread, unsigned call, const CUpti_CallbackData *info,
                         plumb_id node);

/* Tells of a call that is at its beginning or its end, at its context NODE. */
static inline void
plumb_cuda_tell(struct plumb_thread *thread, unsigned call, const CUpti_CallbackData *info,
                plumb_id node)
{
	if (plumb_unlikely(atomic_load_explicit(&plumb_events, memory_order_relaxed)))
		plumb_cuda_tell_all(thread, call, info, node);
}

#endif
