/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many bytes of memory a warp must move, where the code alone tells: it accesses global memory
 * outside of loops only, and each access has lanes next to each other at an address that depends on
 * the block. Then each byte is another one, and no cache can save it. Else it is not known.
 */
#include <math.h>

#include "analyze/slice/slice_private.h"

#define LANES 32
#define MOST_SEARCHED 256
#define SELDOM 0.02 /* of all warps: what happens then does not matter */

/* Does an address of INSN depend on a number that blocks differ in? */
static bool
depends_on_block(const struct slice_work *work, uint32_t insn)
{
	uint32_t queue[MOST_SEARCHED], count = 0, at = 0;

	slice_search(work);
	queue[count++] = insn;
	while (at < count) {
		uint32_t to = queue[at++];

		for (uint32_t l = work->links.first[to]; l < work->links.first[to + 1]; l++) {
			const struct slice_link *link = &work->links.all.items[l];
			const struct plumb_insn *from = work->graph.insns[link->from];

			if (!(link->flags & SLICE_BY_REGISTER) ||
			    (to == insn && !(link->flags & SLICE_ADDRESS)))
				continue;
			if (from->class == PLUMB_INSN_REGISTER && !from->reads_count &&
			    from->makes == PLUMB_MAKES_UNIFORM)
				return true;
			if (count < MOST_SEARCHED && slice_is_new(work, link->from))
				queue[count++] = link->from;
		}
	}
	return false;
}

/* Do two accesses have the same address, as far as registers and constants say? */
static bool
is_same_address(const struct slice_work *work, uint32_t a, uint32_t b)
{
	const struct slice_graph *g = &work->graph;
	const struct slice_links *links = &work->links;
	uint32_t l = links->first[a], m = links->first[b];

	if (g->insns[a]->class != g->insns[b]->class ||
	    g->insns[a]->displacement != g->insns[b]->displacement)
		return false;
	for (;;) {
		while (l < links->first[a + 1] && !(links->all.items[l].flags & SLICE_ADDRESS))
			l++;
		while (m < links->first[b + 1] && !(links->all.items[m].flags & SLICE_ADDRESS))
			m++;
		if (l == links->first[a + 1] || m == links->first[b + 1])
			return l == links->first[a + 1] && m == links->first[b + 1];
		if (links->all.items[l++].from != links->all.items[m++].from)
			return false;
	}
}

/* Bytes of a request of INSN that no cache has; NAN: unknown. */
static double
bytes_of(const struct slice_work *work, uint32_t insn)
{
	const struct plumb_insn *it = work->graph.insns[insn];
	const struct slice_access *access = &work->access[insn];

	if (it->class == PLUMB_INSN_COPY || it->class == PLUMB_INSN_TEXTURE)
		return NAN;
	if ((it->class != PLUMB_INSN_LOAD && it->class != PLUMB_INSN_STORE &&
	     it->class != PLUMB_INSN_ATOMIC) ||
	    (it->space != PLUMB_SPACE_GLOBAL && it->space != PLUMB_SPACE_GENERIC))
		return 0;
	if (access->spread != SLICE_SPREAD_STRIDE || it->class == PLUMB_INSN_ATOMIC)
		return NAN;
	if (!depends_on_block(work, insn))
		return 0;
	/* One place for all lanes is a sector at most, but in a loop there may be many. */
	if (!access->stride)
		return work->graph.blocks.items[work->graph.block_of[insn]].depth ? NAN : 0;
	return llabs(access->stride) == it->width ? LANES * (double)it->width : NAN;
}

/* How often each warp runs block B, which is in no loop; NAN: unknown. All run ONCE. */
static double
times_of(const struct slice_graph *g, uint32_t b, uint32_t once, uint32_t last)
{
	for (uint32_t at = last; at != PLUMB_NONE; at = g->blocks.items[at].above)
		if (at == b)
			return 1;
	return g->counted ? fmin(1, g->blocks.items[b].frequency / g->blocks.items[once].frequency)
	                  : NAN;
}

double
plumb_slice_traffic(const struct slice_work *work)
{
	const struct slice_graph *g = &work->graph;
	PLUMB_VEC(uint32_t) counted = { 0 };
	uint32_t last = PLUMB_NONE;
	double sum = 0;

	/* The end that comes last in the code is that of warps with something to do. */
	for (uint32_t i = 0; i < g->insn_count; i++)
		if (g->insns[i]->class == PLUMB_INSN_EXIT &&
		    !g->blocks.items[g->block_of[i]].function)
			last = g->block_of[i];
	for (uint32_t i = 0; last != PLUMB_NONE && i < g->insn_count; i++) {
		const struct slice_block *block = &g->blocks.items[g->block_of[i]];
		double bytes = bytes_of(work, i), times;

		if (!(bytes != 0))
			continue;
		times = block->function ? NAN : times_of(g, g->block_of[i], g->block_of[0], last);
		if (times < SELDOM)
			continue;
		if (isnan(bytes) || isnan(times) || block->depth) {
			sum = NAN;
			break;
		}
		for (uint32_t c = 0; c < counted.count && times > 0; c++)
			if (is_same_address(work, counted.items[c], i))
				times = 0; /* the cache has it */
		if (times > 0 && plumb_vec_add(&counted))
			counted.items[counted.count - 1] = i;
		sum += bytes * times;
	}
	plumb_vec_free(&counted);
	return sum > 0 ? sum : NAN;
}
