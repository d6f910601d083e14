/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb keeps for each CUDA context, and which thread works on it. The tables of stalls.c and
 * counters.c are arrays whose items begin with a struct plumb_cuda_claim.
 */
#ifndef PLUMB_COLLECT_GPU_CUDA_CLAIM_H
#define PLUMB_COLLECT_GPU_CUDA_CLAIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "collect/gpu/cuda/runtime.h"

struct plumb_cuda_claim {
	_Atomic(CUcontext) context; /* NULL: free */
	_Atomic bool claimed;
};

/* False: another thread works on it, and did so for all of WAIT_NS. */
static inline bool
plumb_cuda_claim(struct plumb_cuda_claim *item, uint64_t wait_ns)
{
	uint64_t limit = wait_ns ? plumb_clock_ns() + wait_ns : 0;
	while (atomic_exchange(&item->claimed, true)) {
		struct timespec moment = { 0, 1000000 };
		if (!limit || plumb_clock_ns() >= limit)
			return false;
		nanosleep(&moment, NULL);
	}
	return true;
}

static inline void
plumb_cuda_unclaim(struct plumb_cuda_claim *item)
{
	atomic_store(&item->claimed, false);
}

/* The item of CONTEXT among COUNT of SIZE bytes each; NULL: it has none. */
static inline void *
plumb_cuda_claim_find(void *items, size_t size, unsigned count, CUcontext context)
{
	for (unsigned i = 0; context && i < count; i++) {
		struct plumb_cuda_claim *item = (void *)((char *)items + i * size);
		if (atomic_load_explicit(&item->context, memory_order_relaxed) == context)
			return item;
	}
	return NULL;
}

/* The same, in a free one if it has none yet; NULL: none is free. One for each context, though
 * several threads may launch their first kernel at once. */
static inline void *
plumb_cuda_claim_add(void *items, size_t size, unsigned count, CUcontext context)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	struct plumb_cuda_claim *found = plumb_cuda_claim_find(items, size, count, context);
	for (unsigned i = 0; context && !found && i < count; i++) {
		struct plumb_cuda_claim *item = (void *)((char *)items + i * size);
		CUcontext none = NULL;
		if (atomic_compare_exchange_strong(&item->context, &none, context))
			found = item;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

#endif
