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

enum name {
	LATENCY_CHAIN,
	POINTER,
	UNCOALESCED,
	BANK_CONFLICT,
	ATOMIC,
	VECTORISATION,
	CONVERSION,
	SPILL,
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
	               "Constants are fast only if all lanes read one address. Use shared or "
	               "global memory for an index that differs between lanes." },
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

static const char *
wide(const struct plumb_insn *insn)
{
	return insn->class == PLUMB_INSN_STORE    ? "store"
	       : insn->class == PLUMB_INSN_ATOMIC ? "atomic"
	                                          : "load";
}

/* Accesses near INSN with the same base whose data is next to its own. */
static uint32_t
neighbours(const struct naming *n)
{
	const struct slice_graph *g = &n->work->graph;
	const struct slice_block *block = &g->blocks.items[g->block_of[n->insn]];
	const struct plumb_regs *base = NULL;
	uint32_t count = 0;

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
	char text[80];
	const struct plumb_slice_launch *launch = &n->work->input->launch;
	const char *why = limiting(launch);

	if (has_low_occupancy(n) && why)
		name_it(n, OCCUPANCY, 1, "occupancy %.0f %%: %s%s", launch->occupancy_ppm / 1e4,
		        why, waits(n, text, sizeof text));
	else
		name_it(n, LATENCY_CHAIN, 1, "the result of %s is used before it can be there%s",
		        n->it->opcode ? n->it->opcode : "it", waits(n, text, sizeof text));
}

static void
name_far(struct naming *n)
{
	const struct slice_access *access = n->access;
	uint32_t width = n->it->width ? n->it->width : 4;
	char text[80];

	if (n->it->space == PLUMB_SPACE_LOCAL) {
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
		name_it(n, POINTER, 1, "each %s needs the address that the one before it loaded%s",
		        wide(n->it), waits(n, text, sizeof text));
	} else if (width < 16 && access->spread == SLICE_SPREAD_STRIDE &&
	           llabs(access->stride) <= 16 && neighbours(n)) {
		name_it(n, VECTORISATION, 0.5,
		        "%" PRIu32 "-byte %ss next to each other: a wider one would do", width,
		        wide(n->it));
	} else if (access->sectors > 2 * access->ideal) {
		name_it(n, UNCOALESCED, 1 - (double)access->ideal / access->sectors,
		        "%" PRIu32 " sectors for each request, %" PRIu32 " would do: %" PRIu32
		        "-byte %ss, %" PRId64 " bytes apart",
		        access->sectors, access->ideal, width, wide(n->it), access->stride);
	} else if (access->spread == SLICE_SPREAD_DATA) {
		name_it(n, POINTER, 1, "the address is made of data that was loaded before%s",
		        waits(n, text, sizeof text));
	} else if (access->spread == SLICE_SPREAD_RUNTIME) {
		name_it(n, UNCOALESCED, 1,
		        "neighbouring lanes are a number of bytes apart that is "
		        "known at run time only%s",
		        waits(n, text, sizeof text));
	} else {
		name_plain_latency(n);
	}
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
		snprintf(time, sizeof time, " after %u cycles", n->it->latency);
	if (n->it->class == PLUMB_INSN_CONVERT)
		name_it(n, CONVERSION, 1, "%s converts one value at a time", opcode);
	else if (n->it->class == PLUMB_INSN_TENSOR)
		name_it(n, TENSOR, 1, "the result of a matrix instruction is used at once");
	else if (plumb_slice_feeds_itself(n->work, n->insn, 0, &load))
		name_it(n, LATENCY_CHAIN, 1, "%s needs what it made in the turn before%s", opcode,
		        time);
	else
		name_it(n, LATENCY_CHAIN, 1, "the result of %s is used as soon as it is there%s",
		        opcode, time);
}

static void
name_data(struct naming *n)
{
	char text[80];

	if (n->it->class == PLUMB_INSN_TENSOR)
		name_it(n, TENSOR, 1, "a matrix instruction is waited for%s",
		        waits(n, text, sizeof text));
	else if (n->it->class == PLUMB_INSN_COPY)
		name_it(n, ASYNC, 1, "a copy into shared memory is waited for%s",
		        waits(n, text, sizeof text));
	else if (n->it->class == PLUMB_INSN_BARRIER)
		name_it(n, ASYNC, 0.8,
		        "an mbarrier is waited for, so copies or other warps are late%s",
		        waits(n, text, sizeof text));
	else if (n->it->space == PLUMB_SPACE_CONSTANT)
		name_it(n, CONSTANT, 1,
		        n->access->spread == SLICE_SPREAD_STRIDE && !n->access->stride
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
	           n->access->sectors > 2 * n->access->ideal || neighbours(n)) {
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
