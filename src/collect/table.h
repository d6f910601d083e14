/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An index from hash to id for one writer. It uses open addressing, and doubles by mapping a new
 * table, never on the heap. The caller knows what an id means, and compares it with what it looks
 * for.
 */
#ifndef PLUMB_COLLECT_TABLE_H
#define PLUMB_COLLECT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct plumb_id_table_slot {
	uint32_t hash;
	uint32_t id; /* 0: free */
};
struct plumb_id_table {
	struct plumb_id_table_slot *slots;
	uint32_t mask; /* slots - 1 */
	uint32_t count;
};

/* Adds ID under HASH without looking for an equal one. False: no memory, nothing was added. */
bool plumb_id_table_add(struct plumb_id_table *table, uint32_t hash, uint32_t id);

/* Walks the ids under HASH: start with *at = HASH, 0 at the end. */
static inline uint32_t
plumb_id_table_next(const struct plumb_id_table *table, uint32_t hash, uint32_t *at)
{
	if (!table->slots)
		return 0;
	for (;;) {
		const struct plumb_id_table_slot *slot = &table->slots[*at & table->mask];
		if (!slot->id)
			return 0;
		++*at;
		if (slot->hash == hash)
			return slot->id;
	}
}

static inline uint64_t
plumb_mix(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xe7037ed1a0b428dbu);
	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Hash of a text. */
static inline uint32_t
plumb_hash_text(const char *text, size_t bytes)
{
	uint64_t hash = bytes, word;
	for (; bytes >= 8; text += 8, bytes -= 8) {
		memcpy(&word, text, 8);
		hash = plumb_mix(hash, word);
	}
	word = 0;
	memcpy(&word, text, bytes);
	hash = plumb_mix(hash, word);
	return (uint32_t)(hash ^ (hash >> 32));
}

/* Zeroed, page-aligned memory of its own, or NULL. RESERVE: pages appear when touched and may be
 * more than the machine has; else they are made present now. */
void *plumb_map(size_t bytes, bool reserve);

#endif
