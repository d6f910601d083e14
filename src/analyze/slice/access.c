/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the lanes of a warp spread an access: the address is followed back through integer arithmetic
 * to the number of the thread. What is the same in all lanes adds nothing to the stride. So the
 * counter of a loop, the block's number and a pointer of the launch's arguments do not matter.
 */
#include "analyze/slice/slice_private.h"

#define DEEPEST 64 /* instructions on the way back */
#define MOST_SEARCHED 256
#define LANES 32
#define SECTOR 32
#define BANKS 32

struct stride {
	uint8_t spread; /* enum slice_spread; STRIDE with 0: the same in all lanes */
	bool open;      /* it is being looked at: a turn of a loop, which adds nothing new */
	int64_t bytes;
	uint32_t source;
};

struct lookup {
	const struct slice_work *work;
	struct stride *known; /* by instruction: of its first result */
	uint8_t *state;       /* by instruction: 0 not yet, 1 being looked at, 2 known */
};

static struct stride follow(struct lookup *lookup, uint32_t insn, unsigned depth);

static struct stride
unknown(void)
{
	return (struct stride){ SLICE_SPREAD_UNKNOWN, false, 0, PLUMB_NONE };
}

static struct stride
uniform(void)
{
	return (struct stride){ SLICE_SPREAD_STRIDE, false, 0, PLUMB_NONE };
}

static bool
is_uniform(struct stride s)
{
	return s.open || (s.spread == SLICE_SPREAD_STRIDE && !s.bytes);
}

/* What is worse to know wins: data, then unknown, then a number of run time, then a stride. */
static struct stride
worse(struct stride a, struct stride b)
{
	if (a.open)
		return b;
	if (b.open)
		return a;
	if (a.spread == SLICE_SPREAD_DATA || b.spread == SLICE_SPREAD_DATA)
		return a.spread == SLICE_SPREAD_DATA ? a : b;
	if (a.spread == SLICE_SPREAD_UNKNOWN || b.spread == SLICE_SPREAD_UNKNOWN)
		return a.spread == SLICE_SPREAD_UNKNOWN ? a : b;
	if (a.spread == SLICE_SPREAD_RUNTIME || b.spread == SLICE_SPREAD_RUNTIME)
		return a.spread == SLICE_SPREAD_RUNTIME ? a : b;
	return a.bytes ? a : b;
}

static struct stride
sum(struct stride a, struct stride b)
{
	if (a.open || b.open)
		return a.open ? b : a;
	if (a.spread == SLICE_SPREAD_STRIDE && b.spread == SLICE_SPREAD_STRIDE) {
		if (__builtin_add_overflow(a.bytes, b.bytes, &a.bytes))
			return unknown();
		return a;
	}
	return worse(a, b);
}

/* The value of one register where INSN reads it: all its definitions must agree. */
static struct stride
operand(struct lookup *lookup, uint32_t insn, const struct plumb_regs *regs, unsigned depth)
{
	const struct slice_links *links = &lookup->work->links;
	struct stride result = { .open = true };
	bool found = false;

	/* Uniform registers hold one value for the warp. */
	if (regs->file == PLUMB_REG_SCALAR)
		return uniform();
	for (uint32_t l = links->first[insn]; l < links->first[insn + 1]; l++) {
		const struct slice_link *link = &links->all.items[l];
		struct stride one;

		/* Of a pair, the lower half has the lower bits. */
		if (!(link->flags & SLICE_BY_REGISTER) || link->regs.file != regs->file ||
		    link->regs.first > regs->first ||
		    link->regs.first + link->regs.count <= regs->first)
			continue;
		found = true;
		one = follow(lookup, link->from, depth + 1);
		if (result.open)
			result = one;
		else if (!one.open && (one.spread != result.spread || one.bytes != result.bytes))
			result = one.spread == SLICE_SPREAD_STRIDE &&
			                         result.spread == SLICE_SPREAD_STRIDE
			                 ? unknown()
			                 : worse(result, one);
	}
	return found ? result : unknown();
}

/* Is one register always the same number where INSN reads it? Compilers keep sizes of elements in
 * registers. */
static bool
is_number(const struct lookup *lookup, uint32_t insn, const struct plumb_regs *regs,
          int64_t *number)
{
	const struct slice_links *links = &lookup->work->links;
	bool found = false;

	for (uint32_t l = links->first[insn]; l < links->first[insn + 1]; l++) {
		const struct slice_link *link = &links->all.items[l];
		const struct plumb_insn *from = lookup->work->graph.insns[link->from];

		if (!(link->flags & SLICE_BY_REGISTER) || link->regs.file != regs->file ||
		    link->regs.first > regs->first ||
		    link->regs.first + link->regs.count <= regs->first)
			continue;
		if (from->makes != PLUMB_MAKES_CONSTANT || from->writes_count != 1 ||
		    from->writes[0].first != regs->first || (found && from->immediate != *number))
			return false;
		found = true;
		*number = from->immediate;
	}
	return found;
}

/* STRIDE of a number of which only the bits of MASK are kept. Warps begin at multiples of 32. */
static struct stride
masked(struct stride stride, uint64_t mask)
{
	uint64_t step = stride.bytes < 0 ? 0 : (uint64_t)stride.bytes, reach = 1;

	if (is_uniform(stride) || stride.spread != SLICE_SPREAD_STRIDE)
		return stride;
	if (stride.bytes < 0 || !mask)
		return mask ? unknown() : uniform();
	while (reach < step * LANES && reach < UINT32_MAX)
		reach *= 2;
	if (reach <= (mask & -mask)) /* the lowest bit that is kept */
		return uniform();
	/* Are all bits in which the lanes differ kept? Those below the step's lowest are equal. */
	return ~mask & (reach - 1) & ~((step & -step) - 1) ? unknown() : stride;
}

static struct stride
shifted_right(struct stride stride, int64_t bits)
{
	if (is_uniform(stride) || stride.spread != SLICE_SPREAD_STRIDE)
		return stride;
	if (stride.bytes < 0 || bits < 0 || bits > 31)
		return unknown();
	if (stride.bytes * LANES <= INT64_C(1) << bits)
		return uniform();
	if (stride.bytes & ((INT64_C(1) << bits) - 1))
		return unknown();
	stride.bytes >>= bits;
	return stride;
}

static struct stride
product(struct lookup *lookup, uint32_t insn, unsigned depth)
{
	const struct plumb_insn *it = lookup->work->graph.insns[insn];
	struct stride factors = uniform(), rest = uniform();
	int64_t number = it->immediate, own = 0;
	bool has_number = it->has_immediate;
	unsigned count = 0;

	for (uint8_t r = 0; r < it->reads_count; r++) {
		struct stride one = operand(lookup, insn, &it->reads[r], depth);

		if (it->reads[r].role != PLUMB_REG_FACTOR) {
			rest = sum(rest, one);
		} else if (!has_number && is_number(lookup, insn, &it->reads[r], &own)) {
			number = own;
			has_number = true;
		} else if (!count++) {
			factors = one;
		} else if (!is_uniform(factors) || !is_uniform(one)) {
			/* A number times another that is known at run time only. */
			if (is_uniform(one) || is_uniform(factors))
				factors = is_uniform(one) ? factors : one;
			if (factors.spread == SLICE_SPREAD_STRIDE)
				factors.spread = SLICE_SPREAD_RUNTIME;
		}
	}
	if (count == 1 && factors.spread == SLICE_SPREAD_STRIDE && factors.bytes) {
		if (!has_number)
			factors.spread = SLICE_SPREAD_RUNTIME;
		else if (it->makes == PLUMB_MAKES_SHIFT
		                 ? number < 0 || number > 31 ||
		                           __builtin_mul_overflow(factors.bytes,
		                                                  INT64_C(1) << number,
		                                                  &factors.bytes)
		                 : __builtin_mul_overflow(factors.bytes, number, &factors.bytes))
			return unknown();
	}
	return sum(factors, rest);
}

static struct stride
look(struct lookup *lookup, uint32_t insn, unsigned depth)
{
	const struct plumb_insn *it = lookup->work->graph.insns[insn];
	struct stride result = uniform();

	/* What all lanes load from one place they have alike. */
	if (it->class == PLUMB_INSN_LOAD && it->space != PLUMB_SPACE_LOCAL) {
		bool is_indexed = it->space != PLUMB_SPACE_CONSTANT && !it->reads_count;

		for (uint8_t r = 0; r < it->reads_count; r++)
			is_indexed |= !is_uniform(operand(lookup, insn, &it->reads[r], depth));
		if (!is_indexed)
			return uniform();
	}
	if (it->class == PLUMB_INSN_LOAD || it->class == PLUMB_INSN_ATOMIC ||
	    it->class == PLUMB_INSN_TEXTURE)
		return (struct stride){ SLICE_SPREAD_DATA, false, 0, insn };
	switch (it->makes) {
	case PLUMB_MAKES_LANE:
		return (struct stride){ SLICE_SPREAD_STRIDE, false, 1, PLUMB_NONE };
	case PLUMB_MAKES_UNIFORM:
	case PLUMB_MAKES_ROW:
	case PLUMB_MAKES_CONSTANT:
		return uniform();
	case PLUMB_MAKES_MASKED:
	case PLUMB_MAKES_RIGHT:
		for (uint8_t r = 0; r < it->reads_count; r++)
			result = worse(result, operand(lookup, insn, &it->reads[r], depth));
		return it->makes == PLUMB_MAKES_RIGHT ? shifted_right(result, it->immediate)
		                                      : masked(result, (uint32_t)it->immediate);
	case PLUMB_MAKES_PRODUCT:
	case PLUMB_MAKES_SHIFT:
		return product(lookup, insn, depth);
	case PLUMB_MAKES_SUM:
		for (uint8_t r = 0; r < it->reads_count; r++)
			result = sum(result, operand(lookup, insn, &it->reads[r], depth));
		return result;
	default:
		break;
	}
	/* Whatever it does: of equal operands it makes equal results, and data stays data. */
	if (it->class == PLUMB_INSN_REGISTER || it->class == PLUMB_INSN_SHUFFLE ||
	    it->class == PLUMB_INSN_UNKNOWN || !it->reads_count)
		return it->reads_count || it->class != PLUMB_INSN_INTEGER ? unknown() : uniform();
	for (uint8_t r = 0; r < it->reads_count; r++)
		if (it->reads[r].file != PLUMB_REG_PREDICATE)
			result = worse(result, operand(lookup, insn, &it->reads[r], depth));
	return is_uniform(result) || result.spread != SLICE_SPREAD_STRIDE ? result : unknown();
}

static struct stride
follow(struct lookup *lookup, uint32_t insn, unsigned depth)
{
	struct stride result;

	if (lookup->state[insn] == 2)
		return lookup->known[insn];
	if (lookup->state[insn] == 1)
		return (struct stride){ .open = true, .source = PLUMB_NONE };
	if (depth > DEEPEST)
		return unknown();
	lookup->state[insn] = 1;
	result = look(lookup, insn, depth);
	/* A result that rests on an open one holds for the way on which it was found only. */
	lookup->state[insn] = 2;
	lookup->known[insn] = result;
	return result;
}

/* ---- an access ---- */

static uint32_t
sectors(int64_t stride, uint32_t width)
{
	uint64_t step = stride < 0 ? (uint64_t)-stride : (uint64_t)stride, last = UINT64_MAX;
	uint32_t count = 0;

	if (step > 4096)
		step = 4096;
	for (uint64_t lane = 0; lane < LANES; lane++)
		for (uint64_t at = lane * step / SECTOR; at <= (lane * step + width - 1) / SECTOR;
		     at++)
			if (last == UINT64_MAX || at > last) {
				last = at;
				count++;
			}
	return count;
}

/* How often the busiest bank is asked for different words, by one pass over the lanes. */
static uint32_t
ways(int64_t stride, uint32_t width)
{
	uint32_t asked[BANKS] = { 0 }, most = 0, ideal = width > 4 ? width / 4 : 1;
	uint64_t step = stride < 0 ? (uint64_t)-stride : (uint64_t)stride, last = UINT64_MAX;

	for (uint64_t lane = 0; lane < LANES; lane++)
		for (uint64_t byte = 0; byte < width; byte += 4) {
			uint64_t word = (lane * step + byte) / 4;

			if (last != UINT64_MAX && word <= last)
				continue;
			last = word;
			if (++asked[word % BANKS] > most)
				most = asked[word % BANKS];
		}
	return (most + ideal - 1) / ideal;
}

static bool
is_access(const struct plumb_insn *insn)
{
	return (insn->class == PLUMB_INSN_LOAD || insn->class == PLUMB_INSN_STORE ||
	        insn->class == PLUMB_INSN_ATOMIC) &&
	       insn->space != PLUMB_SPACE_NONE;
}

bool
plumb_slice_feeds_itself(const struct slice_work *work, uint32_t insn, uint8_t role, uint32_t *load)
{
	uint32_t queue[MOST_SEARCHED], count = 0, at = 0;
	bool own = false;

	*load = PLUMB_NONE;
	slice_search(work);
	queue[count++] = insn;
	while (at < count && !own) {
		uint32_t to = queue[at++];

		for (uint32_t l = work->links.first[to]; l < work->links.first[to + 1]; l++) {
			const struct slice_link *link = &work->links.all.items[l];
			const struct plumb_insn *from = work->graph.insns[link->from];

			/* Of an address, what selects between two values counts, too. */
			if (!(link->flags & SLICE_BY_REGISTER) ||
			    (to == insn && (link->flags & role) != role) ||
			    (link->regs.file == PLUMB_REG_PREDICATE &&
			     (to == insn || role != SLICE_ADDRESS)))
				continue;
			own |= link->from == insn;
			if (slice_is_far(from) || from->class == PLUMB_INSN_LOAD) {
				if (from->space != PLUMB_SPACE_CONSTANT && *load == PLUMB_NONE)
					*load = link->from;
				continue;
			}
			if (count < MOST_SEARCHED && slice_is_new(work, link->from))
				queue[count++] = link->from;
		}
	}
	if (own)
		*load = insn;
	return own;
}

static struct slice_access
access_of(struct lookup *lookup, uint32_t at)
{
	const struct plumb_insn *insn = lookup->work->graph.insns[at];
	struct slice_access access = { .source = PLUMB_NONE };
	uint32_t width = insn->width ? insn->width : 4;
	struct stride stride = uniform();
	uint8_t last = 0xff;

	for (uint8_t r = 0; r < insn->reads_count; r++) {
		/* Of a pair of registers only the first; a second range is a base. */
		if (insn->reads[r].role != PLUMB_REG_ADDRESS)
			continue;
		stride = sum(stride, operand(lookup, at, &insn->reads[r], 0));
		last = r;
	}
	if (last == 0xff && !insn->is_vector_address)
		stride = uniform();
	access.spread = stride.open ? SLICE_SPREAD_UNKNOWN : stride.spread;
	access.is_own = plumb_slice_feeds_itself(lookup->work, at, SLICE_ADDRESS, &access.source);
	if (access.source != PLUMB_NONE && access.spread != SLICE_SPREAD_STRIDE)
		access.spread = SLICE_SPREAD_DATA;
	access.ideal = (LANES * width + SECTOR - 1) / SECTOR;
	if (access.spread != SLICE_SPREAD_STRIDE)
		return access;
	access.stride = stride.bytes;
	if (insn->space == PLUMB_SPACE_SHARED || insn->space == PLUMB_SPACE_DISTRIBUTED)
		access.ways = stride.bytes ? ways(stride.bytes, width) : 1;
	else if (insn->space != PLUMB_SPACE_CONSTANT)
		/* A thread's own stack is laid out so that lanes are next to each other. */
		access.sectors = insn->space == PLUMB_SPACE_LOCAL ? access.ideal
		                                                  : sectors(stride.bytes, width);
	return access;
}

/* Of a branch: whether all lanes agree. */
static struct slice_access
guard_of(struct lookup *lookup, uint32_t at)
{
	const struct plumb_insn *insn = lookup->work->graph.insns[at];
	struct plumb_regs guard = { .file = insn->guard_file, .first = insn->guard, .count = 1 };
	struct stride stride = uniform();

	if (insn->guard != PLUMB_INSN_ALWAYS && insn->guard_file == PLUMB_REG_PREDICATE)
		stride = operand(lookup, at, &guard, 0);
	return (struct slice_access){ .spread = stride.open ? SLICE_SPREAD_UNKNOWN : stride.spread,
		                      .stride = stride.bytes,
		                      .source = PLUMB_NONE };
}

/* What accesses are for others: slots of the stack, loads of indexes and pointers. */
static void
mark_uses(struct slice_work *work)
{
	const struct slice_links *links = &work->links;

	for (uint32_t i = 0; i < work->graph.insn_count; i++)
		if (work->access[i].source != PLUMB_NONE && work->access[i].source != i &&
		    work->graph.insns[i]->class == PLUMB_INSN_LOAD &&
		    slice_is_far(work->graph.insns[i]))
			work->access[work->access[i].source].is_index = true;
	for (uint32_t l = 0; l < links->all.count; l++)
		if (links->all.items[l].via == PLUMB_HOP_SPILL &&
		    links->all.items[l].flags & SLICE_PROVED)
			work->access[links->all.items[l].from].is_slot =
				work->access[links->all.items[l].to].is_slot = true;
}

int
plumb_slice_accesses(struct slice_work *work)
{
	struct lookup lookup = { .work = work };
	uint32_t n = work->graph.insn_count;

	work->access = calloc(n + 1, sizeof *work->access);
	lookup.known = calloc(n + 1, sizeof *lookup.known);
	lookup.state = calloc(n + 1, 1);
	if (!work->access || !lookup.known || !lookup.state) {
		free(lookup.known);
		free(lookup.state);
		return PLUMB_ESYSTEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		work->access[i].source = PLUMB_NONE;
		if (is_access(work->graph.insns[i]))
			work->access[i] = access_of(&lookup, i);
		else if (work->graph.insns[i]->class == PLUMB_INSN_BRANCH)
			work->access[i] = guard_of(&lookup, i);
		if (work->graph.insns[i]->guard != PLUMB_INSN_ALWAYS &&
		    work->graph.insns[i]->class != PLUMB_INSN_BRANCH) {
			struct slice_access guard = guard_of(&lookup, i);

			work->access[i].some_lanes =
				guard.spread != SLICE_SPREAD_STRIDE || guard.stride;
		}
	}
	mark_uses(work);
	free(lookup.known);
	free(lookup.state);
	return 0;
}
