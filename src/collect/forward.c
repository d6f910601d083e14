/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From an autograd node back to the forward operator that made it. A node is known by the thread
 * that made it and a sequence number of that thread; its backward may run on any thread, much
 * later, or never. Each thread that runs forward operators writes a ring; engine threads read it
 * without a lock. A slot holds the whole key, so what was overwritten is a miss and never another
 * operator.
 */
#include <unistd.h>

#include "collect/process.h"
#include "collect/thread.h"

static _Atomic(struct plumb_forward_ring *) rings;

/* Sequence numbers fit 40 bits (10^12 nodes), thread numbers 24: both in one word, so that a slot's
 * key is written at once. Never 0, which marks an empty slot. */
static uint64_t
slot_key(uint64_t thread, int64_t sequence)
{
	return ((thread & 0xffffff) << 40 | ((uint64_t)sequence & 0xffffffffff)) + 1;
}

/* Every thread counts from 0. A ring that is taken over must keep what its last owner left, so each
 * thread begins elsewhere in it; its own numbers stay neighbours. */
static struct plumb_forward_slot *
slot_at(struct plumb_forward_ring *ring, uint64_t key)
{
	uint64_t start = (key >> 40) * 0x9e3779b97f4a7c15u >> 40;
	return &ring->slots[(start + key) % PLUMB_FORWARD_SLOTS];
}

static struct plumb_forward_ring *
ring_of(struct plumb_thread *thread, uint64_t framework_thread)
{
	struct plumb_forward_ring *ring = thread->forward;
	if (plumb_unlikely(!ring)) {
		/* The main thread's is made present at once: memory must not creep up while
		 * training runs. Others' appear as they are used: there may be many, and so of
		 * forked children. */
		bool main = thread->record->tid == (uint32_t)getpid() && !plumb_generation;
		ring = plumb_map(sizeof *ring, !main);
		if (!ring)
			return NULL;
		ring->owner = thread;
		atomic_store_explicit(&ring->thread, framework_thread, memory_order_relaxed);
		struct plumb_forward_ring *first = atomic_load(&rings);
		do
			ring->next = first;
		while (!atomic_compare_exchange_weak(&rings, &first, ring));
		thread->forward = ring;
	} else if (plumb_unlikely(atomic_load_explicit(&ring->thread, memory_order_relaxed) !=
	                          framework_thread)) {
		/* Taken over from a thread that ended; its slots stay until they are
		 * overwritten. */
		atomic_store_explicit(&ring->thread, framework_thread, memory_order_relaxed);
	}
	return ring;
}

PLUMB_HOT_CODE void
plumb_forward_put(struct plumb_thread *thread, uint64_t framework_thread, int64_t sequence,
                  plumb_id node)
{
	struct plumb_forward_ring *ring = ring_of(thread, framework_thread);
	if (!ring)
		return;
	uint64_t key = slot_key(framework_thread, sequence);
	struct plumb_forward_slot *slot = slot_at(ring, key);
	if (atomic_load_explicit(&slot->key, memory_order_relaxed) != key)
		atomic_store_explicit(&slot->key, 0, memory_order_release);
	atomic_store_explicit(&slot->node, node, memory_order_release);
	atomic_store_explicit(&slot->key, key, memory_order_release);
}

static plumb_id
slot_read(struct plumb_forward_ring *ring, uint64_t key)
{
	struct plumb_forward_slot *slot = slot_at(ring, key);
	if (atomic_load_explicit(&slot->key, memory_order_acquire) != key)
		return 0;
	plumb_id node = atomic_load_explicit(&slot->node, memory_order_acquire);
	return atomic_load_explicit(&slot->key, memory_order_relaxed) == key ? node : 0;
}

PLUMB_HOT_CODE plumb_id
plumb_forward_get(uint64_t framework_thread, int64_t sequence, struct plumb_thread **owner)
{
	uint64_t key = slot_key(framework_thread, sequence);
	plumb_id node = 0;
	*owner = NULL;
	for (struct plumb_forward_ring *ring = atomic_load(&rings); ring && !node;
	     ring = ring->next) {
		node = slot_read(ring, key);
		if (node &&
		    atomic_load_explicit(&ring->thread, memory_order_relaxed) == framework_thread)
			*owner = ring->owner;
	}
	return node;
}

void
plumb_forward_forked(void)
{
	atomic_store(&rings, NULL);
}
