/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a cause back to its root: what did the cause itself wait for? A load of a stack slot waits
 * for the store, a load of shared memory for the store that another thread did before the barrier.
 * An access whose address is data waits for the load of this data, by way of the arithmetic in
 * between. Else the greatest cause of its own stall is next.
 *
 * A chain ends where it comes to an instruction that it has: then the last hop is this instruction
 * again, and a loop feeds itself.
 */
#include "analyze/slice/slice_private.h"

#define MOST_SEARCHED 192

struct way {
	uint32_t insn, link, before; /* BEFORE: index of the step that led here */
};

static bool
is_root_memory(const struct plumb_insn *insn)
{
	return (insn->class == PLUMB_INSN_LOAD || insn->class == PLUMB_INSN_ATOMIC ||
	        insn->class == PLUMB_INSN_TEXTURE) &&
	       insn->space != PLUMB_SPACE_CONSTANT;
}

/* Appends a hop; false: the chain is at its end. */
static bool
add_hop(const struct slice_work *work, struct plumb_stall_cause *cause, uint32_t l)
{
	const struct slice_link *link = &work->links.all.items[l];
	struct plumb_slice_place place = slice_place(&work->graph, link->from);
	bool is_call = place.function != cause->chain[cause->chain_count - 1].place.function;
	bool seen = false;

	if (cause->chain_count == PLUMB_CHAIN_MOST)
		return false;
	for (uint32_t i = 0; i < cause->chain_count; i++)
		seen |= cause->chain[i].place.function == place.function &&
		        cause->chain[i].place.insn == place.insn;
	cause->chain[cause->chain_count++] =
		(struct plumb_slice_hop){ place, is_call ? (uint8_t)PLUMB_HOP_CALL : link->via,
		                          link->regs, link->counter };
	return !seen;
}

/* The store that INSN loads from; PLUMB_NONE: not known. Proved ones first. */
static uint32_t
stored_by(const struct slice_work *work, uint32_t insn)
{
	uint32_t found = PLUMB_NONE;

	for (uint32_t l = work->links.first[insn]; l < work->links.first[insn + 1]; l++) {
		const struct slice_link *link = &work->links.all.items[l];

		if (link->via != PLUMB_HOP_SPILL && link->via != PLUMB_HOP_SHARED)
			continue;
		if (found == PLUMB_NONE ||
		    (link->flags & SLICE_PROVED) >
		            (work->links.all.items[found].flags & SLICE_PROVED))
			found = l;
	}
	return found;
}

/* Breadth first from INSN by registers to the nearest load. ADDRESS: only those that make its
 * address. Appends the hops on the way. */
static bool
to_load(const struct slice_work *work, struct plumb_stall_cause *cause, uint32_t insn, uint8_t role)
{
	struct way ways[MOST_SEARCHED];
	uint32_t count = 0, at = 0, steps[PLUMB_CHAIN_MOST], n = 0;
	bool found = false;

	slice_search(work);
	ways[count++] = (struct way){ insn, PLUMB_NONE, PLUMB_NONE };
	for (; at < count && !found; at += !found)
		for (uint32_t l = work->links.first[ways[at].insn];
		     l < work->links.first[ways[at].insn + 1] && !found; l++) {
			const struct slice_link *link = &work->links.all.items[l];

			if (!(link->flags & SLICE_BY_REGISTER) ||
			    link->regs.file == PLUMB_REG_PREDICATE ||
			    (!at && (link->flags & role) != role))
				continue;
			if (count == MOST_SEARCHED || !slice_is_new(work, link->from))
				continue;
			ways[count++] = (struct way){ link->from, l, at };
			found = is_root_memory(work->graph.insns[link->from]);
		}
	if (!found)
		return false;
	for (uint32_t i = count - 1; i && n < PLUMB_CHAIN_MOST; i = ways[i].before)
		steps[n++] = ways[i].link;
	while (n)
		if (!add_hop(work, cause, steps[--n]))
			return false;
	return true;
}

/* The link to what INSN itself was held up by most. */
static uint32_t
own_cause(const struct slice_work *work, uint32_t insn)
{
	uint32_t stall = work->stall_of[insn], found = PLUMB_NONE;
	const struct plumb_stall_cause *top;
	double most = 0;

	if (stall != PLUMB_NONE && work->stalls.items[stall].cause_count) {
		top = &work->causes.items[work->stalls.items[stall].first_cause];
		for (uint32_t l = work->links.first[insn]; l < work->links.first[insn + 1]; l++)
			if (top->has_place && (work->links.all.items[l].flags & SLICE_KEPT) &&
			    work->links.all.items[l].from == slice_insn(&work->graph, top->place))
				return l;
	}
	for (uint32_t l = work->links.first[insn]; l < work->links.first[insn + 1]; l++) {
		const struct slice_link *link = &work->links.all.items[l];
		double left = plumb_slice_left(work, link) * plumb_slice_often(work, link);

		if ((link->flags & SLICE_KEPT) && left > most) {
			most = left;
			found = l;
		}
	}
	return found;
}

void
plumb_slice_chain(const struct slice_work *work, struct plumb_stall_cause *cause)
{
	bool on = cause->has_place && cause->kind != PLUMB_CAUSE_FETCH &&
	          cause->kind != PLUMB_CAUSE_STRUCTURAL;

	if (!cause->has_place)
		return;
	if (!cause->chain_count)
		cause->chain[cause->chain_count++] =
			(struct plumb_slice_hop){ cause->place, PLUMB_HOP_CONTROL, { 0 }, 0 };
	while (on && cause->chain_count < PLUMB_CHAIN_MOST) {
		uint32_t insn =
			slice_insn(&work->graph, cause->chain[cause->chain_count - 1].place);
		const struct plumb_insn *it = work->graph.insns[insn];
		uint32_t link = stored_by(work, insn);

		if (link != PLUMB_NONE)
			on = add_hop(work, cause, link);
		else if (is_root_memory(it) || it->class == PLUMB_INSN_COPY)
			on = to_load(work, cause, insn, SLICE_ADDRESS);
		else if (it->class == PLUMB_INSN_STORE)
			on = to_load(work, cause, insn, 0);
		else
			on = (link = own_cause(work, insn)) != PLUMB_NONE &&
			     add_hop(work, cause, link);
	}
}
