/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sizes of device allocations by address, so that a free can tell how much it frees. Allocations
 * are rare and slow calls, so a lock does no harm; the table grows by mapping a new one.
 */
#include <pthread.h>
#include <sys/mman.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/table.h"

struct entry {
	uint64_t key; /* 0: free */
	uint64_t bytes;
};
static struct entry *entries;
static size_t mask, used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t
home(uint64_t key)
{
	return (size_t)plumb_mix(key, 1) & mask;
}

static void
insert(uint64_t key, uint64_t bytes)
{
	size_t at = home(key);
	while (entries[at].key && entries[at].key != key)
		at = (at + 1) & mask;
	if (!entries[at].key)
		used++;
	entries[at] = (struct entry){ key, bytes };
}

static bool
grow(void)
{
	struct entry *old = entries;
	size_t count = old ? mask + 1 : 0, larger = old ? 2 * count : 4096;
	struct entry *map = plumb_map(larger * sizeof *map, true);
	if (!map)
		return false;
	entries = map;
	mask = larger - 1;
	used = 0;
	for (size_t i = 0; i < count; i++)
		if (old[i].key)
			insert(old[i].key, old[i].bytes);
	if (old)
		munmap(old, count * sizeof *old);
	return true;
}

bool
plumb_allocation_put(uint64_t key, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	bool room = key && ((entries && 2 * used < mask) || grow());
	if (room)
		insert(key, bytes);
	pthread_mutex_unlock(&lock);
	return room;
}

uint64_t
plumb_allocation_take(uint64_t key)
{
	uint64_t bytes = 0;
	if (!key)
		return 0;
	pthread_mutex_lock(&lock);
	size_t at = entries ? home(key) : 0;
	while (entries && entries[at].key && entries[at].key != key)
		at = (at + 1) & mask;
	if (entries && entries[at].key == key) {
		bytes = entries[at].bytes;
		used--;
		/* Moves up what could no longer be found past the hole. */
		size_t hole = at;
		for (size_t next = (hole + 1) & mask; entries[next].key; next = (next + 1) & mask) {
			if (((next - home(entries[next].key)) & mask) >= ((next - hole) & mask)) {
				entries[hole] = entries[next];
				hole = next;
			}
		}
		entries[hole] = (struct entry){ 0 };
	}
	pthread_mutex_unlock(&lock);
	return bytes;
}
