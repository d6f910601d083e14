/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open addressing in buckets of one cache line of keys. A key's hash names one bucket in each
 * level, and the key is in one of these. So a free slot never hides another key: to take an object
 * is to clear its key, and nothing moves. If a bucket is full, the next level takes the key. It is
 * eight times as large, and is mapped when it is first needed.
 */
#include "collect/live.h"

#include <stddef.h>
#include <sys/mman.h>

#include "collect/collector.h"
#include "collect/table.h"

#define WAYS 8u
#define FIRST_LOG2 12u
#define STEP_LOG2 3u

struct plumb_live_level {
	_Atomic uint64_t *keys; /* 0: free */
	struct plumb_live_object *objects;
	size_t bytes;  /* of the mapping, which this struct is at the end of */
	uint64_t mask; /* buckets - 1 */
};

/* Maps LEVEL unless another thread was faster. NULL: no memory. */
static struct plumb_live_level *
make_level(struct plumb_live *live, unsigned number)
{
	size_t slots = (size_t)1 << (FIRST_LOG2 + number * STEP_LOG2);
	size_t keys = slots * sizeof(uint64_t), objects = slots * sizeof(struct plumb_live_object);
	size_t bytes = keys + objects + sizeof(struct plumb_live_level);
	char *memory = plumb_map(bytes, true);
	if (!memory)
		return NULL;
	struct plumb_live_level *level = (void *)(memory + keys + objects), *there = NULL;
	level->keys = (void *)memory;
	level->objects = (void *)(memory + keys);
	level->bytes = bytes;
	level->mask = slots / WAYS - 1;
	if (atomic_compare_exchange_strong(&live->levels[number], &there, level))
		return level;
	munmap(memory, bytes);
	return there;
}

static struct plumb_live_level *
level_at(struct plumb_live *live, unsigned number)
{
	return atomic_load_explicit(&live->levels[number], memory_order_acquire);
}

/* The slots of a level that may hold a key of HASH: WAYS from the one returned. */
static size_t
bucket_of(const struct plumb_live_level *level, uint64_t hash)
{
	return (size_t)(hash & level->mask) * WAYS;
}

/* Puts KEY where a slot is free. */
static bool
claim_slot(struct plumb_live_level *level, size_t bucket, uint64_t key,
           const struct plumb_live_object *object)
{
	for (size_t slot = bucket; slot < bucket + WAYS; slot++) {
		uint64_t there = atomic_load_explicit(&level->keys[slot], memory_order_relaxed);
		if (there || !atomic_compare_exchange_strong_explicit(&level->keys[slot], &there,
		                                                      key, memory_order_acquire,
		                                                      memory_order_relaxed))
			continue;
		level->objects[slot] = *object;
		return true;
	}
	return false;
}

/* The slot of LEVEL that holds KEY, or SIZE_MAX. */
static size_t
find_slot(const struct plumb_live_level *level, size_t bucket, uint64_t key)
{
	for (size_t slot = bucket; slot < bucket + WAYS; slot++)
		if (atomic_load_explicit(&level->keys[slot], memory_order_acquire) == key)
			return slot;
	return SIZE_MAX;
}

enum plumb_live_result
plumb_live_put(struct plumb_live *live, uint64_t key, const struct plumb_live_object *object,
               struct plumb_live_object *was)
{
	uint64_t hash = plumb_mix(key, 1);
	struct plumb_live_level *level;
	for (unsigned i = 0; i < PLUMB_LIVE_LEVELS && (level = level_at(live, i)); i++) {
		size_t slot = find_slot(level, bucket_of(level, hash), key);
		if (plumb_likely(slot == SIZE_MAX))
			continue;
		*was = level->objects[slot];
		level->objects[slot] = *object;
		return PLUMB_LIVE_REPLACED;
	}
	for (unsigned i = 0; i < PLUMB_LIVE_LEVELS; i++) {
		level = level_at(live, i);
		if (!level && !(level = make_level(live, i)))
			break;
		if (claim_slot(level, bucket_of(level, hash), key, object))
			return PLUMB_LIVE_NEW;
	}
	return PLUMB_LIVE_FULL;
}

bool
plumb_live_get(const struct plumb_live *live, uint64_t key, struct plumb_live_object *object)
{
	uint64_t hash = plumb_mix(key, 1);
	for (unsigned i = 0; i < PLUMB_LIVE_LEVELS; i++) {
		const struct plumb_live_level *level =
			atomic_load_explicit(&live->levels[i], memory_order_acquire);
		size_t slot = level ? find_slot(level, bucket_of(level, hash), key) : SIZE_MAX;
		if (slot == SIZE_MAX)
			continue;
		*object = level->objects[slot];
		return true;
	}
	return false;
}

bool
plumb_live_take(struct plumb_live *live, uint64_t key, struct plumb_live_object *object)
{
	uint64_t hash = plumb_mix(key, 1);
	struct plumb_live_level *level;
	for (unsigned i = 0; i < PLUMB_LIVE_LEVELS && (level = level_at(live, i)); i++) {
		size_t slot = find_slot(level, bucket_of(level, hash), key);
		if (slot == SIZE_MAX)
			continue;
		*object = level->objects[slot];
		return atomic_compare_exchange_strong_explicit(
			&level->keys[slot], &key, 0, memory_order_release, memory_order_relaxed);
	}
	return false;
}

void
plumb_live_clear(struct plumb_live *live)
{
	for (unsigned i = 0; i < PLUMB_LIVE_LEVELS; i++) {
		struct plumb_live_level *level = level_at(live, i);
		atomic_store_explicit(&live->levels[i], NULL, memory_order_relaxed);
		if (level)
			munmap(level->keys, level->bytes);
	}
}
