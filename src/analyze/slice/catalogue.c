/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Named causes: what they are, what shows that it is one, and what helps. A saving is a bound: the
 * samples that would go if the cause were gone, as part of all samples of the kernel. NAN: unknown.
 */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "analyze/slice/slice_private.h"

#define QUOTIENT_STEPS 6 /* of arithmetic from the last conversion */
#define DIVIDES 32       /* instructions from the first to the last conversion of a division */

enum name {
	LATENCY_CHAIN,
	POINTER,
	UNCOALESCED,
	BANK_CONFLICT,
	ATOMIC,
	VECTORISATION,
	CONVERSION,
	DIVISION,
	SPILL,
	LOCAL_ARRAY,
	IMBALANCE,
	OCCUPANCY,
	FETCH,
	CONSTANT,
	SATURATED,
	ASYNC,
	TENSOR,
};

static const struct plumb_named_cause names[] = {
	[LATENCY_CHAIN] = { "latency chain", "latency-chain",
	                    "Let independent work run between the instruction and the use of "
	                    "its result: unroll, load earlier, or use more accumulators." },
	[POINTER] = { "pointer indirection", "pointer-indirection",
	              "The address is loaded from memory first. Store indexes next to each other, "
	              "prefetch the next element, or replace links by arrays." },
	[UNCOALESCED] = { "uncoalesced access", "uncoalesced",
	                  "Let neighbouring threads access neighbouring addresses: swap loops "
	                  "or array dimensions, or go through shared memory." },
	[BANK_CONFLICT] = { "bank conflict", "bank-conflict",
	                    "Pad the rows of the shared array by one element, or permute the "
	                    "index, so that the lanes of a warp use different banks." },
	[ATOMIC] = { "contended atomic", "contended-atomic",
	             "Reduce within the warp or block first, and let one thread update memory. "
	             "Or spread the updates over several addresses." },
	[VECTORISATION] = { "missed vectorisation", "missed-vectorisation",
	                    "Neighbouring accesses of one thread can be one wider access: use "
	                    "float4 or aligned vector types." },
	[CONVERSION] = { "scalar conversion", "scalar-conversion",
	                 "Convert several packed values at once (two halves, for example), or "
	                 "keep data in the format of the arithmetic." },
	[SPILL] = { "spill", "spill",
	            "Registers are kept on the stack. Raise the limit of registers (launch "
	            "bounds, maxrregcount), or let fewer values live at a time." },
	[DIVISION] = { "integer division", "integer-division",
	               "A division or remainder takes about twenty instructions if the compiler "
	               "does not know the divisor. Use constants or powers of two, divide once "
	               "before the loop, or count instead.",
	               "division" },
	[LOCAL_ARRAY] = { "array in local memory", "local-array",
	                  "An array of a thread is in registers only if all its indexes are known "
	                  "when it is compiled. Unroll the loops around it, or keep it in shared "
	                  "memory." },
	[IMBALANCE] = { "barrier imbalance", "barrier-imbalance",
	                "Warps wait at the barrier for those that run this code. Spread its work "
	                "over all warps, or use fewer barriers." },
	[OCCUPANCY] = { "low occupancy", "low-occupancy",
	                "Few warps are there to run while others wait. Let each block use less "
	                "of what limits it, or give each thread more independent work." },
	[FETCH] = { "instruction fetch", "instruction-fetch",
	            "The code that runs is larger than the instruction cache or jumps much. Unroll "
	            "less, and move rare code out of the loop." },
	[CONSTANT] = { "constant misses", "constant-misses",
	               "Constants are fast only if all lanes read one address. If the index "
	               "differs between lanes, use shared or global memory. Else load the "
	               "constant earlier, before the loop." },
	[SATURATED] = { "saturated pipe", "saturated-pipe",
	                "The unit is busy: there is no headroom here. Only less work of this kind "
	                "helps." },
	[ASYNC] = { "depth of asynchronous copies", "async-depth",
	            "Start copies earlier: use more stages in the pipeline of the tiles." },
	[TENSOR] = { "wait for matrix units", "tensor-wait",
	             "Keep more matrix instructions in flight before you wait, or do other work "
	             "meanwhile." },
};

static const char *const pipe_words[PLUMB_PIPE_COUNT] = {
#define X(id, name) [PLUMB_PIPE_##id] = name,
	PLUMB_PIPES(X)
#undef X
};

struct naming {
	const struct slice_work *work;
	const struct slice_stall *stall;
	struct plumb_stall_cause *cause;
	uint32_t insn; /* of the cause */
	const struct plumb_insn *it;
	const struct slice_access *access;
	double part;   /* of all samples */
	double cycles; /* that each execution waits; NAN: unknown */
};

static void PLUMB_PRINTF(4, 5)
	name_it(struct naming *n, enum name name, double saved, const char *format, ...)
{
	va_list list;

	n->cause->named = &names[name];
	n->cause->saving = n->part * saved;
	va_start(list, format);
	vsnprintf(n->cause->evidence, sizeof n->cause->evidence, format, list);
	va_end(list);
}

static const char *
waits(const struct naming *n, char *to, size_t size)
{
	to[0] = '\0';
	if (!isnan(n->cycles))
		snprintf(to, size, "; it waits about %.0f cycles each time", n->cycles);
	return to;
}

/* "LDG's result is used after 9 of about 400 cycles". What was measured counts more than tables. */
static const char *
used_after(const struct naming *n, char *to, size_t size)
{
	const struct slice_links *links = &n->work->links;
	uint32_t typical = plumb_slice_latency(n->it).typical;
	const char *opcode = n->it->opcode ? n->it->opcode : "the instruction";
	char waited[80];

	snprintf(to, size, "%s's result is used before it can be there%s", opcode,
	         waits(n, waited, sizeof waited));
	for (uint32_t l = links->first[n->stall->insn]; l < links->first[n->stall->insn + 1]; l++) {
		const struct slice_link *link = &links->all.items[l];

		if (link->from != n->insn || link->distance >= typical)
			continue;
		if (*waited)
			snprintf(to, size, "%s's result is used after %u cycles%s", opcode,
			         link->distance, waited);
		else
			snprintf(to, size, "%s's result is used after %u of about %u cycles",
			         opcode, link->distance, typical);
	}
	return to;
}

static const char *
wide(const struct plumb_insn *insn)
{
	return insn->class == PLUMB_INSN_STORE    ? "store"
	       : insn->class == PLUMB_INSN_ATOMIC ? "atomic"
	                                          : "load";
}

/* Accesses near INSN with the same base whose data is next to its own, so that one access of twice
 * the width can have both. Its address must be a multiple of its width in all lanes. */
static uint32_t
neighbours(const struct naming *n)
{
	const struct slice_graph *g = &n->work->graph;
	const struct slice_block *block = &g->blocks.items[g->block_of[n->insn]];
	const struct plumb_regs *base = NULL;
	uint32_t count = 0;

	if (n->it->width > 8 || !n->it->width || n->access->spread != SLICE_SPREAD_STRIDE ||
	    n->access->stride % (2 * n->it->width))
		return 0;
	for (uint8_t r = 0; r < n->it->reads_count && !base; r++)
		if (n->it->reads[r].role == PLUMB_REG_ADDRESS)
			base = &n->it->reads[r];
	for (uint32_t i = block->first; base && i < block->first + block->count; i++) {
		const struct plumb_insn *other = g->insns[i];
		int64_t away = (int64_t)other->displacement - n->it->displacement;
		bool is_same = false;

		if (other->class != n->it->class || other->space != n->it->space ||
		    other->width != n->it->width || i == n->insn ||
		    (away != other->width && away != -(int64_t)other->width))
			continue;
		for (uint8_t r = 0; r < other->reads_count; r++)
			is_same |= other->reads[r].role == PLUMB_REG_ADDRESS &&
			           other->reads[r].file == base->file &&
			           other->reads[r].first == base->first;
		count += is_same;
	}
	return count;
}

/* ---- occupancy ---- */

static const char *
limiting(const struct plumb_slice_launch *launch)
{
	uint32_t warps = (launch->threads + 31) / 32, blocks;
	uint64_t by_registers, by_shared;

	if (!launch->threads || !launch->warps_per_multiprocessor)
		return NULL;
	blocks = launch->warps_per_multiprocessor / warps;
	if (launch->multiprocessors && launch->blocks &&
	    launch->blocks < launch->multiprocessors * (blocks ? blocks : 1))
		return "the grid has too few blocks";
	/* 65,536 registers and at most some 227 KiB of shared memory a multiprocessor. */
	by_registers = launch->registers ? 65536 / ((uint64_t)launch->registers * launch->threads)
	                                 : blocks;
	by_shared = launch->shared_bytes ? 232448 / launch->shared_bytes : blocks;
	if (by_registers < blocks && by_registers <= by_shared)
		return "registers limit it";
	return by_shared < blocks ? "shared memory limits it" : "the size of blocks limits it";
}

static bool
has_low_occupancy(const struct naming *n)
{
	const struct plumb_slice_launch *launch = &n->work->input->launch;

	return launch->occupancy_ppm && launch->occupancy_ppm < 400000;
}

/* ---- data ---- */

static void
name_plain_latency(struct naming *n)
{
	char text[160];
	const struct plumb_slice_launch *launch = &n->work->input->launch;
	const char *why = limiting(launch);

	if (has_low_occupancy(n) && why)
		name_it(n, OCCUPANCY, 1, "occupancy %.0f %%: %s%s", launch->occupancy_ppm / 1e4,
		        why, waits(n, text, sizeof text));
	else
		name_it(n, LATENCY_CHAIN, 1, "%s", used_after(n, text, sizeof text));
}

/* Where no result is waited for, but until the registers of an instruction were read. */
static void
name_sources(struct naming *n)
{
	char text[80];

	name_it(n, LATENCY_CHAIN, 1, "a register of %s is written again before %s has read it%s",
	        n->it->opcode ? n->it->opcode : "it", n->it->opcode ? n->it->opcode : "it",
	        waits(n, text, sizeof text));
}

/* Is A among what INSN reads by registers, in at most STEPS steps back? */
static uint32_t
made_of(const struct slice_work *work, uint32_t insn, uint8_t class, int steps)
{
	const struct slice_links *links = &work->links;
	uint32_t found = PLUMB_NONE;

	for (uint32_t l = links->first[insn]; l < links->first[insn + 1] && found == PLUMB_NONE;
	     l++) {
		const struct slice_link *link = &links->all.items[l];

		if (!(link->flags & SLICE_BY_REGISTER) || link->regs.file == PLUMB_REG_PREDICATE)
			continue;
		if (work->graph.insns[link->from]->class == class)
			found = link->from;
		else if (steps > 1 && work->graph.insns[link->from]->class == PLUMB_INSN_INTEGER)
			found = made_of(work, link->from, class, steps - 1);
	}
	return found;
}

/* Integers are divided by the reciprocal of a float: a conversion, a reciprocal, and a conversion
 * back. Is INSN one of these three? */
static bool
is_division(const struct slice_work *work, uint32_t insn)
{
	const struct slice_graph *g = &work->graph;
	const struct slice_block *block = &g->blocks.items[g->block_of[insn]];
	uint32_t reciprocal = PLUMB_NONE;

	for (uint32_t i = insn; i < block->first + block->count && i < insn + DIVIDES; i++) {
		if (g->insns[i]->class != PLUMB_INSN_CONVERT)
			continue;
		reciprocal = made_of(work, i, PLUMB_INSN_SPECIAL, 2);
		if (reciprocal == PLUMB_NONE)
			continue;
		if (i == insn || reciprocal == insn ||
		    made_of(work, reciprocal, PLUMB_INSN_CONVERT, 1) == insn)
			return made_of(work, reciprocal, PLUMB_INSN_CONVERT, 1) != PLUMB_NONE;
	}
	return false;
}

/* Is INSN arithmetic that makes the quotient of what is_division finds, for the same line? */
static bool
is_quotient(const struct slice_work *work, uint32_t insn)
{
	const struct slice_graph *g = &work->graph;
	uint32_t function = g->blocks.items[g->block_of[insn]].function;
	const uint32_t *lines = work->input->functions[function].lines;
	uint32_t from = g->insns[insn]->class == PLUMB_INSN_INTEGER && lines
	                        ? made_of(work, insn, PLUMB_INSN_CONVERT, QUOTIENT_STEPS)
	                        : PLUMB_NONE;

	return from != PLUMB_NONE && g->blocks.items[g->block_of[from]].function == function &&
	       lines[insn - g->base[function]] &&
	       lines[insn - g->base[function]] == lines[from - g->base[function]] &&
	       is_division(work, from);
}

static void
name_own(struct naming *n)
{
	char text[80];

	name_it(n, POINTER, 1, "each %s needs the address that the one before it loaded%s",
	        wide(n->it), waits(n, text, sizeof text));
}

/* Do lanes access what is next to each other, as far as that is known? */
static bool
is_near(const struct slice_access *access)
{
	return access->spread == SLICE_SPREAD_STRIDE && access->sectors <= 2 * access->ideal;
}

/* Is its address loaded each time, and not once before a loop? */
static bool
is_indirect(const struct naming *n)
{
	const struct slice_graph *g = &n->work->graph;
	uint32_t source = n->access->source;

	return source != PLUMB_NONE && g->blocks.items[g->block_of[source]].frequency * 2 >=
	                                       g->blocks.items[g->block_of[n->insn]].frequency;
}

/* Is it an access to an array of the thread? What has a slot is spilled. Where there are calls, so
 * may be what has a fixed place: a function keeps its caller's registers, or comes to be again. */
static bool
is_array(const struct naming *n)
{
	const struct slice_access *access = n->access;
	bool is_fixed = access->spread == SLICE_SPREAD_STRIDE && !access->stride;

	return n->it->space == PLUMB_SPACE_LOCAL && !access->is_slot &&
	       (!is_fixed || !n->work->graph.procedures.count);
}

static void
name_far(struct naming *n)
{
	const struct slice_access *access = n->access;
	uint32_t width = n->it->width ? n->it->width : 4;
	char text[80];

	if (is_array(n)) {
		name_it(n, LOCAL_ARRAY, 1,
		        "a %s of %" PRIu32 " bytes of an array in local memory%s", wide(n->it),
		        width, waits(n, text, sizeof text));
	} else if (n->it->space == PLUMB_SPACE_LOCAL) {
		name_it(n, SPILL, 1, "a %s of %" PRIu32 " bytes of the stack%s", wide(n->it), width,
		        waits(n, text, sizeof text));
	} else if (n->it->class == PLUMB_INSN_ATOMIC) {
		if (access->spread == SLICE_SPREAD_STRIDE && !access->stride)
			name_it(n, ATOMIC, 1, "all lanes update one address%s",
			        waits(n, text, sizeof text));
		else
			name_it(n, ATOMIC, 1, "the result of an atomic is waited for%s",
			        waits(n, text, sizeof text));
	} else if (access->is_own) {
		name_own(n);
	} else if (access->is_index && is_near(access)) {
		name_it(n, POINTER, 1, "what it loads is the index or address of another load%s",
		        waits(n, text, sizeof text));
	} else if (width < 16 && access->spread == SLICE_SPREAD_STRIDE &&
	           llabs(access->stride) <= 16 && neighbours(n)) {
		name_it(n, VECTORISATION, 0.5,
		        "%" PRIu32 "-byte %ss of a thread next to each other: a wider one would do",
		        width, wide(n->it));
	} else if (access->sectors > 2 * access->ideal) {
		name_it(n, UNCOALESCED, 1 - (double)access->ideal / access->sectors,
		        "%" PRIu32 " sectors for each request, %" PRIu32 " would do: %" PRIu32
		        "-byte %ss, %" PRId64 " bytes apart",
		        access->sectors, access->ideal, width, wide(n->it), access->stride);
	} else if (access->spread == SLICE_SPREAD_DATA || is_indirect(n)) {
		name_it(n, POINTER, 1, "the address is made of data that was loaded before%s",
		        waits(n, text, sizeof text));
	} else if (access->spread == SLICE_SPREAD_RUNTIME) {
		name_it(n, UNCOALESCED, 1,
		        "the distance of lanes is known at run time only; uncoalesced unless it is "
		        "one element%s",
		        waits(n, text, sizeof text));
	} else {
		name_plain_latency(n);
	}
}

/* Is its address loaded from shared memory each time? */
static bool
is_shared_data(const struct naming *n)
{
	uint32_t source = n->access->source;

	return is_indirect(n) && n->work->graph.insns[source]->space == PLUMB_SPACE_SHARED;
}

static void
name_shared(struct naming *n)
{
	const struct slice_access *access = n->access;
	char text[80];

	if (access->ways > 1)
		name_it(n, BANK_CONFLICT, 1 - 1.0 / access->ways,
		        "%" PRIu32 " lanes ask one bank: %" PRIu32 "-byte %ss, %" PRId64
		        " bytes apart",
		        access->ways, n->it->width ? n->it->width : 4u, wide(n->it),
		        access->stride);
	else if (!access->ways && access->spread != SLICE_SPREAD_UNKNOWN && n->cycles > 60)
		name_it(n, BANK_CONFLICT, 1, "the lanes' banks depend on a number of run time%s",
		        waits(n, text, sizeof text));
	else if (!access->ways && n->cycles > 120)
		name_it(n, BANK_CONFLICT, 1, "far longer than shared memory takes%s",
		        waits(n, text, sizeof text));
	else if (access->is_own || is_shared_data(n))
		name_own(n);
	else
		name_plain_latency(n);
}

static void
name_fixed(struct naming *n)
{
	const char *opcode = n->it->opcode ? n->it->opcode : "the instruction";
	char time[40] = "";
	uint32_t load;

	if (n->it->latency)
		snprintf(time, sizeof time, "; it takes %u cycles", n->it->latency);
	if (n->it->class == PLUMB_INSN_CONVERT)
		name_it(n, CONVERSION, 1, "%s converts one value at a time", opcode);
	else if (n->it->class == PLUMB_INSN_TENSOR)
		name_it(n, TENSOR, 1, "the result of a matrix instruction is used at once");
	else if (plumb_slice_feeds_itself(n->work, n->insn, 0, &load))
		name_it(n, LATENCY_CHAIN, 1, "%s needs its own last result%s", opcode, time);
	else
		name_it(n, LATENCY_CHAIN, 1, "%s's result is used at once%s", opcode, time);
}

/* Does the stall wait until the cause has read its registers, and not for its result? A spill and
 * a bad access show in that, too. */
static bool
is_sources(const struct naming *n)
{
	const struct slice_access *access = n->access;

	return n->cause->kind == PLUMB_CAUSE_SYNC && n->it->space != PLUMB_SPACE_LOCAL &&
	       n->it->class != PLUMB_INSN_ATOMIC && n->it->class != PLUMB_INSN_WAIT &&
	       n->it->class != PLUMB_INSN_MEMORY_BARRIER && access->ways <= 1 &&
	       access->sectors <= 2 * access->ideal && access->spread != SLICE_SPREAD_RUNTIME;
}

static void
name_data(struct naming *n)
{
	char text[80];

	if (is_division(n->work, n->insn) || is_quotient(n->work, n->insn))
		name_it(n, DIVISION, 1, "%s is part of dividing by a number of run time",
		        n->it->opcode);
	else if (n->it->class == PLUMB_INSN_TENSOR)
		name_it(n, TENSOR, 1, "a matrix instruction is waited for%s",
		        waits(n, text, sizeof text));
	else if (n->it->class == PLUMB_INSN_COPY ||
	         (n->it->pipe == PLUMB_PIPE_LOCAL_GLOBAL && n->it->class == PLUMB_INSN_OTHER))
		name_it(n, ASYNC, 1, "a copy into shared memory is waited for%s",
		        waits(n, text, sizeof text));
	else if (n->it->class == PLUMB_INSN_BARRIER)
		name_it(n, ASYNC, 0.8,
		        "an mbarrier is waited for, so copies or other warps are late%s",
		        waits(n, text, sizeof text));
	else if (n->stall->reason != PLUMB_REASON_FIXED && is_sources(n))
		name_sources(n);
	else if (n->it->space == PLUMB_SPACE_CONSTANT)
		name_it(n, CONSTANT, 1,
		        n->access->spread == SLICE_SPREAD_UNKNOWN
		                ? "the index of the constant is known at run time only%s"
		        : n->access->spread == SLICE_SPREAD_STRIDE && !n->access->stride
		                ? "a constant is loaded right before its use%s"
		                : "the index of the constant differs between lanes%s",
		        waits(n, text, sizeof text));
	else if (slice_is_far(n->it))
		name_far(n);
	else if (n->it->space == PLUMB_SPACE_SHARED || n->it->space == PLUMB_SPACE_DISTRIBUTED)
		name_shared(n);
	else if (slice_kind(n->it) == SLICE_FIXED || n->it->class == PLUMB_INSN_CONVERT)
		name_fixed(n);
	else
		name_plain_latency(n);
}

/* ---- the rest ---- */

static void
name_throttle(struct naming *n)
{
	if (n->stall->reason == PLUMB_REASON_MATH_THROTTLE) {
		name_it(n, SATURATED, 0, "no headroom: warps queue for the %s unit",
		        n->it->pipe < PLUMB_PIPE_COUNT ? pipe_words[n->it->pipe] : "same");
	} else if (n->it->space == PLUMB_SPACE_LOCAL || n->access->ways > 1 ||
	           n->access->sectors > 2 * n->access->ideal ||
	           n->access->spread == SLICE_SPREAD_RUNTIME || neighbours(n)) {
		if (slice_is_far(n->it))
			name_far(n);
		else
			name_shared(n);
	} else {
		name_it(n, SATURATED, NAN, "the queue of this unit is full");
		n->cause->saving = NAN;
	}
}

static void
name_fetch(struct naming *n)
{
	const struct slice_graph *g = &n->work->graph;
	uint32_t loop = g->blocks.items[g->block_of[n->stall->insn]].loop;
	uint64_t bytes = 0;

	if (n->stall->reason == PLUMB_REASON_CONSTANT || n->it->space == PLUMB_SPACE_CONSTANT) {
		name_it(n, CONSTANT, 1, "the constant was not in the cache");
		return;
	}
	while (loop != PLUMB_NONE) {
		bytes = g->loops.items[loop].bytes;
		loop = g->loops.items[loop].parent;
	}
	if (bytes)
		name_it(n, FETCH, 1, "the loop around it has %.1f KiB of instructions",
		        (double)bytes / 1024);
	else
		name_it(n, FETCH, 1, "it runs for the first time, or after a jump");
}

void
plumb_slice_name(const struct slice_work *work, const struct slice_stall *stall,
                 struct plumb_stall_cause *cause)
{
	struct naming n = { .work = work, .stall = stall, .cause = cause };
	uint64_t waited = stall->samples + stall->hidden;

	if (!cause->has_place)
		return;
	n.insn = slice_insn(&work->graph, cause->place);
	n.it = work->graph.insns[n.insn];
	n.access = &work->access[n.insn];
	n.part = work->all ? (double)cause->samples / (double)work->all : NAN;
	n.cycles = !work->is_static && work->issued[stall->insn] >= 8
	                   ? (double)waited / (double)work->issued[stall->insn]
	                   : NAN;
	switch (cause->kind) {
	case PLUMB_CAUSE_DATA:
	case PLUMB_CAUSE_SYNC:
		name_data(&n);
		break;
	case PLUMB_CAUSE_BARRIER:
		name_it(&n, IMBALANCE, 1, "other warps wait at the barrier while this runs");
		break;
	case PLUMB_CAUSE_FETCH:
		name_fetch(&n);
		break;
	case PLUMB_CAUSE_THROTTLE:
		name_throttle(&n);
		break;
	default:
		break;
	}
}
