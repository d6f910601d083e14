/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A path may be in two sets. One is its parent's, which can be prefetched. The other depends on
 * parent and distance, for parents with more paths than fit (the root, if no other layer is
 * wanted). Trails are only added. When there is no more room, plumb forgets everything.
 */
#include "collect/native_memo.h"

#include <string.h>

#include "collect/collector.h"
#include "collect/table.h"

/* A trail among the words: this, its words, its places four to a word. */
struct kept {
	uintptr_t pc;
	uint32_t reach, hash;
	uint16_t calls, pointers;
	uint32_t pad;
};
enum { HEAD = sizeof(struct kept) / sizeof(uint64_t), MOST_TRAILS = PLUMB_MEMO_INDEX / 2 };
_Static_assert(sizeof(struct kept) % sizeof(uint64_t) == 0, "whole words");
_Static_assert(sizeof(struct plumb_native_memo) <= 256 << 10, "bounded");
_Static_assert(PLUMB_MEMO_WORDS <= UINT16_MAX, "a place fits into the index");
_Static_assert(sizeof(struct plumb_memo_entry) * PLUMB_MEMO_WAYS == 64, "a set is a cache line");

enum { REPLACE_ONE_IN = 8 };
#define NO_DISTANCE 0u /* a walk takes at least a word */

/* From the stack pointer to the stop, or without one to the stack's end, with the last bit set. */
static inline uint32_t
distance_of(const struct plumb_memo_place *at)
{
	uintptr_t to = at->stop ? at->stop : at->bounds->high;
	uintptr_t distance = to - at->from->sp;
	if (plumb_unlikely(distance >= UINT32_MAX / 2 || to >= at->bounds->high + !at->stop))
		return NO_DISTANCE;
	return (uint32_t)distance << 1 | !at->stop;
}

static inline uint64_t
second_key(const struct plumb_memo_place *at, uint32_t distance)
{
	return (uint64_t)distance << 32 ^ at->parent;
}

static inline const struct kept *
kept_at(const struct plumb_native_memo *memo, uint32_t place)
{
	return (const struct kept *)(memo->words + place * sizeof(uint64_t));
}

/* Whether a walk from AT goes as the one did that left KEPT; see struct plumb_stack_trail. */
static inline bool
is_followed(const struct kept *kept, const struct plumb_memo_place *at)
{
	const uint64_t *word = (const uint64_t *)(kept + 1);
	const uint16_t *place = (const uint16_t *)(word + kept->calls + kept->pointers);
	const uintptr_t *begin = (const uintptr_t *)at->from->sp;
	uintptr_t sp = at->from->sp;
	uint32_t i = 0, calls = kept->calls, all = calls + kept->pointers;
	if (plumb_unlikely(kept->pc != at->from->pc || kept->reach > at->bounds->high - sp ||
	                   sp % sizeof(uintptr_t)))
		return false;
	for (; i < calls; i++)
		if (plumb_stack_plain(begin[place[i]]) != word[i])
			return false;
	for (; i < all; i++) {
		uintptr_t pointer =
			place[i] == PLUMB_STACK_REGISTER ? at->from->fp : begin[place[i]];
		if (pointer - sp != word[i])
			return false;
	}
	return true;
}

PLUMB_HOT_CODE bool
plumb_native_memo_find(const struct plumb_native_memo *memo, const struct plumb_memo_place *at,
                       plumb_id *node)
{
	uint32_t distance = distance_of(at);
	const struct plumb_memo_entry *sets[] = {
		memo->sets[plumb_native_memo_set(at->parent)],
		memo->sets[plumb_native_memo_set(second_key(at, distance))],
	};
	for (int set = 0; set < 2; set++) {
		for (int way = 0; way < PLUMB_MEMO_WAYS; way++) {
			const struct plumb_memo_entry *entry = &sets[set][way];
			if (entry->parent == at->parent && entry->distance == distance &&
			    entry->trail && is_followed(kept_at(memo, entry->trail), at)) {
				*node = entry->node;
				return true;
			}
		}
	}
	return false;
}

/* ---- keeping ---- */

void
plumb_native_memo_clear(struct plumb_native_memo *memo)
{
	if (!memo->used) /* pages that were never touched stay so */
		return;
	memset(memo->sets, 0, sizeof memo->sets);
	memset(memo->index, 0, sizeof memo->index);
	memo->used = memo->trails = 0;
}

static uint32_t
hash_of(const struct plumb_stack_trail *trail)
{
	uint64_t hash = plumb_mix(trail->pc, (uint64_t)trail->calls << 16 | trail->pointers);
	for (uint32_t i = 0; i < (uint32_t)trail->calls + trail->pointers; i++)
		hash = plumb_mix(hash ^ trail->at[i], trail->word[i]);
	return (uint32_t)(hash ^ hash >> 32);
}

static bool
is_same(const struct kept *kept, const struct plumb_stack_trail *trail, uint32_t hash)
{
	size_t all = (size_t)trail->calls + trail->pointers;
	const uint64_t *word = (const uint64_t *)(kept + 1);
	return kept->hash == hash && kept->pc == trail->pc && kept->reach == trail->reach &&
	       kept->calls == trail->calls && kept->pointers == trail->pointers &&
	       !memcmp(word, trail->word, all * sizeof *word) &&
	       !memcmp(word + all, trail->at, all * sizeof *trail->at);
}

/* Adds TRAIL at the place of the index where it was not found; 0: there is no room. */
static uint32_t
add_trail(struct plumb_native_memo *memo, uint16_t *slot, const struct plumb_stack_trail *trail,
          uint32_t hash)
{
	uint32_t all = (uint32_t)trail->calls + trail->pointers;
	uint32_t words = HEAD + all + (all + 3) / 4;
	uint32_t at = memo->used ? memo->used : 1;
	if (words > PLUMB_MEMO_WORDS - at || memo->trails == MOST_TRAILS)
		return 0;
	struct kept *kept = (struct kept *)kept_at(memo, at);
	uint64_t *word = (uint64_t *)(kept + 1);
	*kept = (struct kept){
		.pc = trail->pc,
		.reach = trail->reach,
		.hash = hash,
		.calls = trail->calls,
		.pointers = trail->pointers,
	};
	memcpy(word, trail->word, all * sizeof *word);
	memcpy(word + all, trail->at, all * sizeof *trail->at);
	memo->used = at + words;
	memo->trails++;
	*slot = (uint16_t)at;
	return at;
}

/* The place of TRAIL among the words, perhaps a new one; 0: there is no room. */
static uint32_t
intern_trail(struct plumb_native_memo *memo, const struct plumb_stack_trail *trail)
{
	uint32_t hash = hash_of(trail), at = hash;
	uint16_t *slot;
	for (;; at++) { /* the index is half empty */
		slot = &memo->index[at % PLUMB_MEMO_INDEX];
		if (!*slot)
			return add_trail(memo, slot, trail, hash);
		if (is_same(kept_at(memo, *slot), trail, hash))
			return *slot;
	}
}

/*
 * A free entry of the two sets. Where none is free, mostly NULL, and once in a while one after the
 * other: of paths that take turns and are more than fit, most stay, where each would else make room
 * for the next one just before it comes again.
 */
static struct plumb_memo_entry *
choose_entry(struct plumb_native_memo *memo, const struct plumb_memo_place *at, uint32_t distance)
{
	struct plumb_memo_entry *sets[] = {
		memo->sets[plumb_native_memo_set(at->parent)],
		memo->sets[plumb_native_memo_set(second_key(at, distance))],
	};
	uint32_t way = 0;
	while (way < 2 * PLUMB_MEMO_WAYS &&
	       sets[way / PLUMB_MEMO_WAYS][way % PLUMB_MEMO_WAYS].trail)
		way++;
	if (way == 2 * PLUMB_MEMO_WAYS) {
		if (++memo->turn % REPLACE_ONE_IN)
			return NULL;
		way = memo->turn / REPLACE_ONE_IN % (2 * PLUMB_MEMO_WAYS);
	}
	return &sets[way / PLUMB_MEMO_WAYS][way % PLUMB_MEMO_WAYS];
}

void
plumb_native_memo_put(struct plumb_native_memo *memo, const struct plumb_memo_place *at,
                      const struct plumb_stack_trail *trail, plumb_id node)
{
	uint32_t distance = distance_of(at);
	if (!trail->calls || distance == NO_DISTANCE)
		return;
	struct plumb_memo_entry *entry = choose_entry(memo, at, distance);
	if (!entry)
		return;
	uint32_t place = intern_trail(memo, trail);
	if (!place) {
		plumb_native_memo_clear(memo);
		place = intern_trail(memo, trail);
	}
	*entry = (struct plumb_memo_entry){
		.parent = at->parent,
		.node = node,
		.distance = distance,
		.trail = place,
	};
}
