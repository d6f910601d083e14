/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a framework's allocators hand out, on the contexts that asked for it, and who holds
 * the bytes at each device's peak. A shim (torch_memory.c) calls the two functions below; whoever
 * wants the events themselves registers a listener.
 *
 * Not to be mixed up with what the driver hands out (gpu/cuda/callbacks.c, gpu.alloc_bytes): a
 * caching allocator takes large segments from the driver and cuts tensors out of them, so the two
 * are two metrics and never added up. What the driver has handed out over time is a pool of its
 * own, without contexts.
 */
#ifndef PLUMB_COLLECT_MONITOR_MEMORY_H
#define PLUMB_COLLECT_MONITOR_MEMORY_H

#include "collect/collector.h"

/* Kinds of device, numbered as PyTorch's c10::DeviceType does. */
enum plumb_memory_device_kind {
	PLUMB_MEMORY_CPU = 0,
	PLUMB_MEMORY_CUDA = 1,
};

struct plumb_memory_change {
	uint8_t device_kind; /* enum plumb_memory_device_kind, or another number of PyTorch's */
	uint8_t device_index;
	bool free;
	uint64_t address; /* not 0 */
	uint64_t bytes;   /* of a free: as the allocator tells it, 0 where it does not */
	/* The allocator's own account after the change: bytes handed out, bytes taken from the
	 * device. PLUMB_POOL_UNTOLD where it keeps none. */
	uint64_t allocated, reserved;
};

/* What is wanted of changes, so that a shim can leave at once: one load while nothing is. */
enum { PLUMB_MEMORY_RECORD = 1 << 0, PLUMB_MEMORY_LISTEN = 1 << 1 };
extern _Atomic unsigned plumb_memory_wanted;
static inline bool
plumb_memory_is_wanted(void)
{
	return plumb_unlikely(atomic_load_explicit(&plumb_memory_wanted, memory_order_relaxed));
}

/*
 * A change happened: after an allocation and before the memory is given back, so that nobody else
 * can have been given the address. Any thread, with or without the allocator's lock: takes no lock
 * that a thread with that lock could wait for, no GIL and nothing from the heap.
 */
void plumb_memory_changed(const struct plumb_memory_change *change);

/* The driver handed out BYTES of device memory in CONTEXT (the GPU runtime's number of it), or got
 * them back if they are negative. Recorded over time only. THREAD is in a callback. */
void plumb_memory_driver(struct plumb_thread *thread, uint32_t context, int64_t bytes);

/* Begins recording, when the options say so. */
void plumb_memory_start(void);

/* LISTENER is called with every change from now on, before it is recorded, or no more. False: there
 * are as many as can be. Doing it again changes nothing. */
#define PLUMB_MEMORY_LISTENERS 4u
typedef void plumb_memory_listener(const struct plumb_memory_change *change);
bool plumb_memory_listen(plumb_memory_listener *listener);
void plumb_memory_unlisten(plumb_memory_listener *listener);

/* "cpu", "cuda", …; NULL where the number is not known. Stays valid. */
const char *plumb_memory_device_name(uint8_t device_kind);

/* A forked child starts anew: what its parent allocated is unknown to it. */
void plumb_memory_forget(void);

#endif
