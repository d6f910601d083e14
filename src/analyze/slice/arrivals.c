/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies that arrive at barriers in memory (NVIDIA's mbarriers). A copy into shared memory names
 * the barrier that it completes, and a warp waits for a barrier by its address. Both addresses are
 * followed back through integer arithmetic: the sum of the constants in them tells barriers apart,
 * or arrays of barriers. What else is in them, such as the number of a stage, is left out.
 */
#include "analyze/slice/slice_private.h"

#define DEEPEST 32

struct constant {
	bool open; /* it is being looked at: a turn of a loop */
	int64_t sum;
};

struct lookup {
	const struct slice_graph *graph;
	const struct slice_links *links;
	struct constant *found; /* by instruction: of its first result */
	uint8_t *state;         /* by instruction: 0 not yet, 1 being looked at, 2 known */
};

static struct constant follow(struct lookup *lookup, uint32_t insn, unsigned depth);

/* The constant in register NUMBER of FILE where INSN reads it. 0: its definitions differ. One that
 * adds to itself in a loop does not count. */
static int64_t
operand(struct lookup *lookup, uint32_t insn, uint8_t file, uint32_t number, unsigned depth)
{
	const struct slice_links *links = lookup->links;
	struct constant all = { .open = true };

	for (uint32_t l = links->first[insn]; l < links->first[insn + 1]; l++) {
		const struct slice_link *link = &links->all.items[l];
		struct constant one;

		if (!(link->flags & SLICE_BY_REGISTER) || link->regs.file != file ||
		    link->regs.first > number || link->regs.first + link->regs.count <= number)
			continue;
		one = follow(lookup, link->from, depth + 1);
		if (one.open)
			continue;
		if (!all.open && one.sum != all.sum)
			return 0;
		all = one;
	}
	return all.sum;
}

static int64_t
look(struct lookup *lookup, uint32_t insn, unsigned depth)
{
	const struct plumb_insn *it = lookup->graph->insns[insn];
	bool moves = it->class == PLUMB_INSN_REGISTER && it->reads_count;
	uint64_t sum = 0;

	/* Of arithmetic on uniform registers it is not known which operand is a factor. It is the
	 * number of a stage or of the block, so it has no constant. */
	if (it->makes == PLUMB_MAKES_CONSTANT)
		return it->immediate;
	if ((it->class != PLUMB_INSN_INTEGER || it->makes == PLUMB_MAKES_UNKNOWN ||
	     it->makes == PLUMB_MAKES_MASKED || it->makes == PLUMB_MAKES_RIGHT) &&
	    !moves)
		return 0;
	for (uint8_t r = 0; r < it->reads_count; r++) {
		uint64_t one;

		if (it->reads[r].file != PLUMB_REG_VECTOR && it->reads[r].file != PLUMB_REG_SCALAR)
			continue;
		one = (uint64_t)operand(lookup, insn, it->reads[r].file, it->reads[r].first, depth);
		if (it->reads[r].role == PLUMB_REG_FACTOR)
			one = !it->has_immediate                 ? 0
			      : it->makes == PLUMB_MAKES_PRODUCT ? one * (uint64_t)it->immediate
			      : (uint64_t)it->immediate < 64     ? one << it->immediate
			                                         : 0;
		sum += one;
	}
	if (it->has_immediate && it->makes != PLUMB_MAKES_PRODUCT && it->makes != PLUMB_MAKES_SHIFT)
		sum += (uint64_t)it->immediate;
	return (int64_t)sum;
}

static struct constant
follow(struct lookup *lookup, uint32_t insn, unsigned depth)
{
	if (lookup->state[insn] == 2)
		return lookup->found[insn];
	if (lookup->state[insn] == 1)
		return (struct constant){ .open = true };
	if (depth > DEEPEST)
		return (struct constant){ 0 };
	lookup->state[insn] = 1;
	lookup->found[insn].sum = look(lookup, insn, depth);
	lookup->state[insn] = 2;
	return lookup->found[insn];
}

/* The first range of registers that INSN reads as an address. */
static const struct plumb_regs *
address_of(const struct plumb_insn *insn)
{
	for (uint8_t r = 0; r < insn->reads_count; r++)
		if (insn->reads[r].role == PLUMB_REG_ADDRESS)
			return &insn->reads[r];
	return NULL;
}

/* A copy by the hardware's own engine has where to copy and the barrier next to each other. */
static bool
completes_barrier(const struct plumb_insn *insn)
{
	const struct plumb_regs *regs = address_of(insn);

	return insn->class == PLUMB_INSN_COPY && regs && regs->file == PLUMB_REG_SCALAR &&
	       regs->count >= 2;
}

bool
plumb_slice_waits_for_copies(const struct plumb_insn *insn)
{
	return insn->class == PLUMB_INSN_BARRIER && insn->space == PLUMB_SPACE_SHARED &&
	       insn->writes_count && insn->writes[0].file == PLUMB_REG_PREDICATE &&
	       address_of(insn);
}

static int
add_arrivals(struct lookup *lookup, struct slice_links *links, uint32_t to)
{
	const struct slice_graph *g = lookup->graph;
	const struct plumb_regs *at = address_of(g->insns[to]);
	int64_t waits = operand(lookup, to, at->file, at->first, 0) + g->insns[to]->displacement;

	for (uint32_t from = 0; from < g->insn_count; from++) {
		const struct plumb_regs *regs = address_of(g->insns[from]);
		struct slice_link *link;

		if (!completes_barrier(g->insns[from]) ||
		    operand(lookup, from, regs->file, regs->first + 1u, 0) != waits)
			continue;
		link = plumb_vec_add(&links->all);
		if (!link)
			return PLUMB_ESYSTEM;
		*link = (struct slice_link){ .from = from, .to = to, .via = PLUMB_HOP_SHARED };
	}
	return 0;
}

int
plumb_slice_arrivals(const struct slice_graph *g, struct slice_links *links)
{
	struct lookup lookup = { .graph = g, .links = links };
	bool any = false;
	int result = 0;

	for (uint32_t i = 0; i < g->insn_count; i++)
		any |= completes_barrier(g->insns[i]);
	if (!any)
		return 0;
	lookup.found = calloc(g->insn_count + 1, sizeof *lookup.found);
	lookup.state = calloc(g->insn_count + 1, 1);
	if (!lookup.found || !lookup.state)
		result = PLUMB_ESYSTEM;
	for (uint32_t i = 0; !result && i < g->insn_count; i++)
		if (plumb_slice_waits_for_copies(g->insns[i]))
			result = add_arrivals(&lookup, links, i);
	free(lookup.found);
	free(lookup.state);
	return result;
}
