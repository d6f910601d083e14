/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches by correlation id.
 *
 * Ids ascend, but with holes: calls that start nothing take numbers too (a thread that polls an
 * event takes millions a second). So the ring is a table of buckets of four, the bucket chosen by
 * the id and the oldest id in it replaced: dense ids fill it like a ring, and with holes a launch
 * is lost only when four newer launches fell into its bucket.
 *
 * A slot's key is cleared while its other words change. A reader that finds the id before and after
 * has read what belongs to it; one that does not, has a miss. Keys are ids + 1, 0 is free.
 *
 * What is set later, `marks`, is one word that also has bits of the id: a put in between makes the
 * exchange fail, so that nothing lands at another launch.
 */
#include "collect/gpu/launch.h"
#include "collect/table.h"

#define WAYS 4u
#define BUSY UINT64_MAX

/* marks: 16 bits of the id above the bucket's, whether it was taken, the call's time in 47 (39
 * h) */
#define TAG(ring, id) ((id) / ((ring)->mask + 1) << 48)
#define TAG_BITS (UINT64_MAX << 48)
#define TAKEN (UINT64_C(1) << 47)

struct slot {
	_Atomic uint64_t key;
	_Atomic uint32_t node;
	_Atomic uint32_t track;
	_Atomic uint64_t marks;
};

struct plumb_launch_ring {
	uint64_t mask; /* buckets - 1 */
	struct slot slots[];
};

struct plumb_launch_ring *
plumb_launch_ring_new(unsigned log2_slots)
{
	if (log2_slots < 2 || log2_slots > 28)
		return NULL;
	size_t slots = (size_t)1 << log2_slots;
	struct plumb_launch_ring *ring =
		plumb_map(sizeof *ring + slots * sizeof(struct slot), false);
	if (ring)
		ring->mask = slots / WAYS - 1;
	return ring;
}

void
plumb_launch_ring_clear(struct plumb_launch_ring *ring)
{
	for (uint64_t i = 0; i < (ring->mask + 1) * WAYS; i++)
		atomic_store_explicit(&ring->slots[i].key, 0, memory_order_relaxed);
}

static struct slot *
bucket_of(struct plumb_launch_ring *ring, uint64_t correlation)
{
	return &ring->slots[(correlation & ring->mask) * WAYS];
}

void
plumb_launch_prefetch(struct plumb_launch_ring *ring, uint64_t correlation)
{
	const struct slot *bucket = bucket_of(ring, correlation);
	__builtin_prefetch(bucket, 1);
	__builtin_prefetch(bucket + WAYS - 1, 1);
}

static struct slot *
find_slot(struct plumb_launch_ring *ring, uint64_t correlation)
{
	struct slot *slots = bucket_of(ring, correlation);
	for (unsigned i = 0; i < WAYS; i++)
		if (atomic_load_explicit(&slots[i].key, memory_order_acquire) == correlation + 1)
			return &slots[i];
	return NULL;
}

/* How much older than ID a key's launch is; 0: newer, or being changed. Ids of 32 bits wrap. */
static uint64_t
age_of(uint64_t key, uint64_t id)
{
	if (!key)
		return UINT64_MAX;
	if (key == BUSY)
		return 0;
	if (key <= id)
		return id - key + 1;
	uint64_t ahead = key - id;
	return ahead > UINT32_MAX / 2 ? UINT64_MAX - ahead : 0;
}

/* The slot for ID among its four: its own, else the oldest; NULL: all are newer. */
static struct slot *
choose_slot(struct slot *slots, uint64_t id, uint64_t *key)
{
	struct slot *oldest = NULL;
	uint64_t most = 0;
	for (unsigned i = 0; i < WAYS; i++) {
		uint64_t held = atomic_load_explicit(&slots[i].key, memory_order_relaxed);
		uint64_t years = held == id + 1 ? UINT64_MAX : age_of(held, id);
		if (years > most) {
			most = years;
			oldest = &slots[i];
			*key = held;
		}
	}
	return oldest;
}

/* Sets BITS in the marks of the launch with TAG; they were *MARKS. False: the slot is another's. */
static bool
mark_launch(struct slot *slot, uint64_t tag, uint64_t bits, uint64_t *marks)
{
	*marks = atomic_load_explicit(&slot->marks, memory_order_relaxed);
	do
		if ((*marks & TAG_BITS) != tag)
			return false;
	while (!atomic_compare_exchange_weak_explicit(&slot->marks, marks, *marks | bits,
	                                              memory_order_relaxed, memory_order_relaxed));
	return true;
}

PLUMB_HOT_CODE void
plumb_launch_put(struct plumb_launch_ring *ring, uint64_t correlation,
                 const struct plumb_ring_launch *launch)
{
	struct slot *slots = bucket_of(ring, correlation);
	/* A turn fails only when another thread took the chosen slot meanwhile. */
	for (unsigned turn = 0; turn < 2 * WAYS; turn++) {
		uint64_t key;
		struct slot *slot = choose_slot(slots, correlation, &key);
		if (!slot)
			return; /* four newer ones: this one counts as overwritten already */
		if (!atomic_compare_exchange_strong_explicit(
			    &slot->key, &key, BUSY, memory_order_acquire, memory_order_relaxed))
			continue;
		atomic_thread_fence(memory_order_release);
		atomic_store_explicit(&slot->node, launch->node, memory_order_relaxed);
		atomic_store_explicit(&slot->track, launch->track, memory_order_relaxed);
		atomic_store_explicit(&slot->marks, TAG(ring, correlation), memory_order_relaxed);
		atomic_store_explicit(&slot->key, correlation + 1, memory_order_release);
		return;
	}
}

void
plumb_launch_waited(struct plumb_launch_ring *ring, uint64_t correlation, uint64_t ns)
{
	struct slot *slot = find_slot(ring, correlation);
	uint64_t marks;
	if (slot)
		mark_launch(slot, TAG(ring, correlation), ns < TAKEN ? ns : TAKEN - 1, &marks);
}

bool
plumb_launch_take(struct plumb_launch_ring *ring, uint64_t correlation,
                  struct plumb_ring_launch *launch, bool *overwritten)
{
	struct slot *slot = find_slot(ring, correlation);
	uint64_t marks;
	*overwritten = false;
	if (slot && mark_launch(slot, TAG(ring, correlation), TAKEN, &marks)) {
		launch->node = atomic_load_explicit(&slot->node, memory_order_relaxed);
		launch->track = atomic_load_explicit(&slot->track, memory_order_relaxed);
		launch->host_wait = marks & (TAKEN - 1);
		launch->taken = marks & TAKEN;
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&slot->key, memory_order_relaxed) == correlation + 1)
			return true;
	}
	/* A put replaces the oldest: while one in the bucket is older or free, none was
	 * replaced. */
	struct slot *slots = bucket_of(ring, correlation);
	*overwritten = true;
	for (unsigned i = 0; i < WAYS; i++)
		if (age_of(atomic_load_explicit(&slots[i].key, memory_order_relaxed), correlation))
			*overwritten = false;
	return false;
}
