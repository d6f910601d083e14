/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers the native paths of a thread, so that a stack that comes again costs only a comparison.
 * A walk and the look-ups of its frames touch some fifty cache lines, which the program's work has
 * pushed out meanwhile. This touches ten, which lie in a row or are in the cache.
 *
 *	if (!plumb_native_memo_find(memo, &at, &node)) {
 *		walk.trail = &trail;
 *		plumb_stack_walk(at.from, at.bounds, &walk);
 *		… node …
 *		plumb_native_memo_put(memo, &at, &trail, node);
 *	}
 *
 * It keeps a walk's trail (struct plumb_stack_trail) once, even if many contexts share it: the
 * layers of a model share their operators' stacks. One thread owns it, and no handler uses it.
 */
#ifndef PLUMB_COLLECT_NATIVE_MEMO_H
#define PLUMB_COLLECT_NATIVE_MEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/stack/stack.h"
#include "region/layout.h"

enum {
	PLUMB_MEMO_SETS = 1024,
	PLUMB_MEMO_WAYS = 4,
	PLUMB_MEMO_INDEX = 2048,      /* twice as many trails as there may be */
	PLUMB_MEMO_WORDS = 23 * 1024, /* for their text, of 8 bytes */
};

/* A path: 16 bytes, so that a set is a cache line. */
struct plumb_memo_entry {
	plumb_id parent, node;
	uint32_t distance; /* from the beginning of the walk to where it stops */
	uint32_t trail;    /* place among the words; 0: the entry is free */
};

/* 252 KiB, but only the used pages take memory. All zero at first. */
struct plumb_native_memo {
	_Alignas(64) struct plumb_memo_entry sets[PLUMB_MEMO_SETS][PLUMB_MEMO_WAYS];
	_Alignas(8) char words[PLUMB_MEMO_WORDS * 8];
	uint16_t index[PLUMB_MEMO_INDEX]; /* of trails by hash: places */
	uint32_t used;                    /* words */
	uint32_t trails, turn;
};

/* Where a walk begins, and for which parent. */
struct plumb_memo_place {
	plumb_id parent;
	const struct plumb_stack_registers *from;
	const struct plumb_stack_bounds *bounds; /* FROM's stack pointer lies within */
	uintptr_t stop;                          /* as in struct plumb_stack_walk */
};

/* The node that a walk from AT would lead to. False: it is not known. */
bool plumb_native_memo_find(const struct plumb_native_memo *memo, const struct plumb_memo_place *at,
                            plumb_id *node);

/* Remembers that a walk from AT left TRAIL (perhaps none) and led to NODE. */
void plumb_native_memo_put(struct plumb_native_memo *memo, const struct plumb_memo_place *at,
                           const struct plumb_stack_trail *trail, plumb_id node);

/* Forgets everything: addresses may mean other code, or ids other contexts. */
void plumb_native_memo_clear(struct plumb_native_memo *memo);

static inline size_t
plumb_native_memo_set(uint64_t key)
{
	return key * UINT64_C(0x9e3779b97f4a7c15) >> 54;
}
_Static_assert(PLUMB_MEMO_SETS == 1 << (64 - 54), "the hash has as many bits");

/* Prefetches what a find under PARENT will look at first. */
static inline void
plumb_native_memo_prefetch(const struct plumb_native_memo *memo, plumb_id parent)
{
	__builtin_prefetch(memo->sets[plumb_native_memo_set(parent)]);
}

#endif
