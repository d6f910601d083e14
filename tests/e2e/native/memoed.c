/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memo of native paths as the collector uses it, for shapes.cc and inside.c. Here a node is the
 * number of a list of sites, so that what the memo says can be compared with a walk. Parents go by
 * how deep the stack is and stops lie at a few distances, so that paths stand under one key that
 * the stack alone tells apart. No heap.
 */
#include "memoed.h"

#include <stdio.h>
#include <string.h>

#include "collect/native_memo.h"
#include "collect/stack/stack.h"
#include "collect/table.h"

enum { SITES = 512, PATHS = 1 << 17, ROOM = 1 << 24 };

struct path {
	uint32_t from, count;
};
struct state {
	struct plumb_native_memo memo;
	struct plumb_stack_trail trail;
	uint32_t generation, used;
	struct plumb_id_table table;
	uint32_t paths; /* numbered from 1 */
	struct path path[PATHS];
	uintptr_t room[ROOM];
	uintptr_t sites[SITES];
};

unsigned long memoed_known, memoed_wrong;
static _Thread_local struct state *state;

static int
is_path(const struct state *s, uint32_t node, const struct plumb_stack_walk *walk)
{
	const struct path *path = &s->path[node];
	return path->count == walk->count &&
	       !memcmp(s->room + path->from, walk->sites, walk->count * sizeof *walk->sites);
}

/* The number of the path of WALK; 0: there is no room. */
static uint32_t
node_of(struct state *s, const struct plumb_stack_walk *walk)
{
	uint32_t hash =
		plumb_hash_text((const char *)walk->sites, walk->count * sizeof *walk->sites);
	uint32_t at = hash, node;
	while ((node = plumb_id_table_next(&s->table, hash, &at)))
		if (is_path(s, node, walk))
			return node;
	if (s->paths + 1 == PATHS || walk->count > ROOM - s->used)
		return 0;
	node = ++s->paths;
	s->path[node] = (struct path){ s->used, (uint32_t)walk->count };
	memcpy(s->room + s->used, walk->sites, walk->count * sizeof *walk->sites);
	s->used += (uint32_t)walk->count;
	plumb_id_table_add(&s->table, hash, node);
	return node;
}

static void
check_one(struct state *s, const struct plumb_memo_place *at)
{
	struct plumb_stack_walk walk = {
		.sites = s->sites,
		.max = SITES,
		.stop = at->stop,
		.trail = &s->trail,
	};
	plumb_id said = 0;
	int known = plumb_native_memo_find(&s->memo, at, &said);
	plumb_stack_walk(at->from, at->bounds, &walk);
	int ended = walk.end == PLUMB_STACK_STOP || walk.end == PLUMB_STACK_OUTERMOST;
	__atomic_fetch_add(&memoed_known, (unsigned long)known, __ATOMIC_RELAXED);
	if (known && (!ended || !is_path(s, said, &walk))) {
		__atomic_fetch_add(&memoed_wrong, 1, __ATOMIC_RELAXED);
		fprintf(stderr, "the memo knows %u sites, the walk has %zu\n", s->path[said].count,
		        walk.count);
	}
	plumb_id node = node_of(s, &walk);
	if (!known && node)
		plumb_native_memo_put(&s->memo, at, &s->trail, node);
}

void
memoed_check(const struct plumb_stack_registers *from, const struct plumb_stack_bounds *bounds)
{
	static const uint32_t distances[] = { 0, 256, 1024, 2048, 8192 };
	struct state *s = state;
	if (!s)
		s = state = plumb_map(sizeof *s, 1);
	if (!s)
		return;
	if (s->generation != plumb_stack_generation()) {
		plumb_native_memo_clear(&s->memo);
		s->generation = plumb_stack_generation();
	}
	struct plumb_memo_place at = { .from = from, .bounds = bounds };
	for (unsigned i = 0; i < sizeof distances / sizeof *distances; i++) {
		at.stop = distances[i] ? from->sp + distances[i] : 0;
		at.parent = (plumb_id)(bounds->high - from->sp) / 64 % 512;
		if (at.stop < bounds->high)
			check_one(s, &at);
	}
}
