/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this folder share. The instructions of all functions have one row of numbers,
 * in the order of the input. slice.c runs the steps in this order:
 *
 *	graph.c    blocks, arcs, procedures
 *	loops.c    loops, frequencies, ways back
 *	pending.c  which signals may be pending at each wait
 *	flow.c     which definitions reach each use; of stack slots and shared memory too
 *	arrivals.c  which copies complete the barriers in memory that are waited for
 *	links.c    both as one list of links by instruction, and which of them are kept
 *	access.c   strides of addresses
 *	traffic.c  bytes that a warp must move
 *	split.c    the samples of each stall to its candidates, exactly
 *	others.c   candidates that are not data flow
 *	chain.c    from a cause back to its root
 *	catalogue.c  names, evidence, advice
 */
#ifndef PLUMB_ANALYZE_SLICE_PRIVATE_H
#define PLUMB_ANALYZE_SLICE_PRIVATE_H

#include "analyze/slice/slice.h"
#include "base/vec.h"
#include "model/profile.h"

enum slice_arc_kind {
	SLICE_ARC_NEXT,   /* falls through, or jumps */
	SLICE_ARC_CALL,   /* from a call to the procedure's first block */
	SLICE_ARC_RETURN, /* from a block that returns to the one after the call */
	SLICE_ARC_OVER,   /* from a call to the block after it: what the procedure leaves alone */
};

struct slice_arc {
	uint32_t from, to;  /* blocks */
	uint8_t kind;       /* enum slice_arc_kind */
	uint32_t procedure; /* of all kinds but NEXT */
};

struct slice_block {
	uint32_t first, count; /* instructions */
	uint32_t function;
	uint32_t in, in_count, out, out_count; /* ranges of the graph's arcs_in and arcs_out */
	uint32_t rank;                         /* in reverse postorder */
	uint32_t loop;                         /* innermost loop, or PLUMB_NONE */
	uint32_t above;                        /* all ways to it go through this block, or none */
	uint16_t depth;                        /* of loops */
	bool returns;
	bool calls_unknown; /* it ends with a call of nobody knows what */
	double frequency;   /* how often it runs, in a unit that all blocks share */
};

struct slice_loop {
	uint32_t header; /* block */
	uint32_t parent; /* loop, or PLUMB_NONE */
	uint32_t blocks, insns;
	uint64_t bytes;
};

/* What is called: a function, or a part of one that a call's target begins. */
struct slice_procedure {
	uint32_t entry;   /* block */
	uint64_t *blocks; /* a bit for each block that belongs to it or to what it calls */
	uint64_t *own;    /* without what it calls */
};

struct slice_graph {
	const struct plumb_slice_input *input;
	uint32_t *base; /* by function: its first instruction; one more at the end */
	const struct plumb_insn **insns;
	uint32_t *block_of; /* by instruction */
	uint64_t *clock;    /* by instruction: issue cycles of those before it, in code order */
	uint32_t insn_count;
	PLUMB_VEC(struct slice_block) blocks;
	PLUMB_VEC(struct slice_arc) arcs;
	uint32_t *arcs_in, *arcs_out; /* indexes of arcs, by block */
	PLUMB_VEC(struct slice_procedure) procedures;
	PLUMB_VEC(struct slice_loop) loops;
	uint32_t *order; /* blocks in reverse postorder */
	bool counted;    /* frequencies come from samples */
};

#define SLICE_ARCS_ALL 15
#define SLICE_ARCS_WITHIN (1 << SLICE_ARC_NEXT | 1 << SLICE_ARC_OVER) /* of one procedure */
/* ORDER: blocks in reverse postorder by arcs of KINDS (bits 1 << enum slice_arc_kind). */
int plumb_slice_order(const struct slice_graph *graph, unsigned kinds, uint32_t *order);
/* Finds loops, and what dominates what. */
int plumb_slice_loops(struct slice_graph *graph);
int plumb_slice_graph_make(const struct plumb_slice_input *input, struct slice_graph *graph);
/* Frequencies: ISSUED has the samples by instruction at which it issued; NULL: not known. SILENT: a
 * bit for each function that has no samples although it ran. */
void
plumb_slice_frequencies(struct slice_graph *graph, const uint64_t *issued, const uint64_t *silent);
void plumb_slice_graph_free(struct slice_graph *graph);

static inline bool
slice_bit(const uint64_t *bits, uint32_t at)
{
	return bits[at / 64] >> at % 64 & 1;
}

static inline void
slice_set(uint64_t *bits, uint32_t at)
{
	bits[at / 64] |= UINT64_C(1) << at % 64;
}

static inline struct plumb_slice_place
slice_place(const struct slice_graph *graph, uint32_t insn)
{
	uint32_t function = graph->blocks.items[graph->block_of[insn]].function;

	return (struct plumb_slice_place){ function, insn - graph->base[function] };
}

/* Cycles from when an instruction issues until the next of its warp may. */
static inline uint32_t
slice_issue(const struct plumb_insn *insn)
{
	return insn->issue ? insn->issue : 1;
}

/* Walks back from INSN, nearest first. VISIT returns whether what is before it is looked at, too.
 * At most MOST instructions are visited. AWAY: how many instructions there are between. */
int plumb_slice_back(const struct slice_graph *graph, uint32_t insn, uint32_t most,
                     bool (*visit)(void *own, uint32_t insn, uint32_t away), void *own);

/* Distances of this and more are one. */
#define SLICE_FAR 4095

/* A link: TO may wait for FROM. */
struct slice_link {
	uint32_t from, to;
	struct plumb_regs regs; /* BY_REGISTER: the first range of registers; else count 0 */
	uint8_t via;            /* enum plumb_hop_via: REGISTER also if both */
	uint8_t counter;        /* BY_COUNTER */
	uint8_t parts;          /* BY_COUNTER: PLUMB_SYNC_* */
	uint8_t flags;          /* SLICE_* below */
	uint16_t distance;      /* fewest issue cycles from FROM to TO */
};
#define SLICE_BY_REGISTER 1
#define SLICE_BY_COUNTER 2
#define SLICE_PROVED 4    /* a counter proves it; of memory: the addresses are equal */
#define SLICE_FRESH 8     /* on some path nothing in between reads the register */
#define SLICE_ADDRESS 16  /* TO reads the register to make an address */
#define SLICE_KEPT 32     /* after pruning */
#define SLICE_SHADOWED 64 /* in order: a younger one must be there, too */
#define SLICE_CALLED 128  /* FROM is a call of nobody knows what */

enum slice_kind {
	SLICE_LONG,  /* memory that is far: global, local, texture */
	SLICE_SHORT, /* shared memory, constants, and units with a variable time */
	SLICE_FIXED, /* a time that the instruction encodes */
};
static inline bool
slice_is_far(const struct plumb_insn *insn)
{
	return (insn->class == PLUMB_INSN_LOAD || insn->class == PLUMB_INSN_STORE ||
	        insn->class == PLUMB_INSN_ATOMIC || insn->class == PLUMB_INSN_COPY ||
	        insn->class == PLUMB_INSN_TEXTURE) &&
	       insn->space != PLUMB_SPACE_SHARED && insn->space != PLUMB_SPACE_CONSTANT;
}

static inline enum slice_kind
slice_kind(const struct plumb_insn *insn)
{
	if (slice_is_far(insn))
		return SLICE_LONG;
	return insn->variable ? SLICE_SHORT : SLICE_FIXED;
}

/* Cycles that its result takes as a rule (TYPICAL), and as far as tables go (UPPER). */
struct slice_latency {
	uint32_t typical, upper;
};
struct slice_latency plumb_slice_latency(const struct plumb_insn *insn);

struct slice_links {
	PLUMB_VEC(struct slice_link) all; /* by TO, then FROM */
	uint32_t *first;                  /* by instruction; one more at the end */
	uint64_t *hidden;                 /* by link: another one surely takes longer */
	uint32_t kept;
};

typedef PLUMB_VEC(struct slice_link) slice_link_vec;

/* Adds links BY_COUNTER. */
int plumb_slice_pending(const struct slice_graph *graph, struct slice_links *links);
/* Adds links BY_REGISTER, and those of memory. */
int plumb_slice_flow(const struct slice_graph *graph, struct slice_links *links);
/* Adds links of memory from copies to waits for the barrier that they complete. Links of registers
 * are there, sorted. */
int plumb_slice_arrivals(const struct slice_graph *graph, struct slice_links *links);
/* Does INSN wait until a barrier in memory has its copies? */
bool plumb_slice_waits_for_copies(const struct plumb_insn *insn);
/* Sorts, joins and prunes. */
int plumb_slice_links_finish(const struct slice_graph *graph, struct slice_links *links);
/* Sorts by TO and FROM, joins those of one pair, and makes FIRST. */
int plumb_slice_links_sort(const struct slice_graph *graph, struct slice_links *links);
void plumb_slice_links_free(struct slice_links *links);

/* Fewest issue cycles on a way from FROM to TO. */
struct slice_distances {
	uint32_t block; /* for which the rest is */
	uint32_t *cycles;
	PLUMB_VEC(uint32_t) touched;
	PLUMB_VEC(uint64_t) heap;
};
int plumb_slice_distance(const struct slice_graph *graph, struct slice_distances *distances,
                         uint32_t from, uint32_t to, uint16_t *cycles);
void plumb_slice_distances_free(struct slice_distances *distances);

/* ---- blame ---- */

/* How the lanes of a warp spread an access. */
enum slice_spread {
	SLICE_SPREAD_UNKNOWN,
	SLICE_SPREAD_STRIDE,  /* neighbours are STRIDE bytes apart; 0: all are at one place */
	SLICE_SPREAD_RUNTIME, /* by a number that is known at run time only */
	SLICE_SPREAD_DATA,    /* as data says: the address was loaded */
};
struct slice_access {
	uint8_t spread; /* enum slice_spread */
	int64_t stride;
	uint32_t sectors; /* of 32 bytes, of a request of 32 lanes; 0: unknown */
	uint32_t ideal;   /* the same if the lanes were next to each other */
	uint32_t ways;    /* of shared memory: how often a bank is asked; 0: unknown */
	uint32_t source;  /* the load that made the address, or PLUMB_NONE */
	bool is_own;      /* DATA: it is the access itself, a turn of the loop earlier */
	bool is_slot;     /* of the stack: a store and a load have this very place */
	bool is_index;    /* a load: loads from far memory make addresses of what it loads */
	bool some_lanes;  /* of any instruction: its guard may differ between lanes */
};

struct slice_candidate {
	enum plumb_cause_kind kind;
	uint32_t insn; /* PLUMB_NONE: no place */
	uint32_t link; /* PLUMB_NONE: by no link */
	double weight;
	struct plumb_slice_factors factors; /* not yet parts of 1 */
	bool proved;
	double confidence;
};
typedef PLUMB_VEC(struct slice_candidate) slice_candidate_vec;

struct slice_stall {
	uint32_t insn;
	uint16_t reason;
	uint64_t samples, hidden;
	uint32_t first_cause, cause_count;
};

/* What fills a queue of memory most, the fullest first. More would not be among the causes. */
#define SLICE_QUEUED 16
#define SLICE_QUEUES 4
struct slice_queue {
	uint16_t reason; /* 0: it is none */
	uint32_t count, insns[SLICE_QUEUED];
	double turns[SLICE_QUEUED];
};

struct slice_work {
	struct slice_queue queues[SLICE_QUEUES];
	uint32_t function_count;
	const struct plumb_slice_input *input;
	struct slice_graph graph;
	struct slice_links links;
	/* By instruction. */
	uint64_t *issued;   /* samples at which it issued */
	uint64_t *waited;   /* samples at which it waited, hidden or not */
	uint64_t *held;     /* those of them at a barrier */
	uint32_t *stall_of; /* its stall with most samples, or PLUMB_NONE */
	struct slice_access *access;
	uint32_t *stamps; /* of a search; the last is the number of the search */
	uint64_t *silent; /* by function: samples that have no place may be its own */
	uint64_t *blamed; /* by link: a stall may be because of it */
	PLUMB_VEC(struct slice_stall) stalls;
	PLUMB_VEC(struct plumb_stall_cause) causes;
	uint64_t all; /* samples */
	bool is_static;
	slice_candidate_vec candidates;
};

enum plumb_stall_class plumb_slice_reason_class(unsigned reason);

/* Cycles that are left of what is linked when TO is reached, as a rule; and how often FROM ran for
 * each time that TO did, at most 1. */
double plumb_slice_left(const struct slice_work *work, const struct slice_link *link);
double plumb_slice_often(const struct slice_work *work, const struct slice_link *link);
int plumb_slice_accesses(struct slice_work *work);
/* Does INSN read what arithmetic made of its own result, a turn of a loop earlier? ROLE:
 * SLICE_ADDRESS if only its address counts, else 0. LOAD: a load that it reads on such a way, or
 * PLUMB_NONE. */
bool plumb_slice_feeds_itself(const struct slice_work *work, uint32_t insn, uint8_t role,
                              uint32_t *load);
/* Fills WORK's candidates for STALL, with weights. */
int plumb_slice_candidates(struct slice_work *work, const struct slice_stall *stall);
/* The same, where it is no data that is waited for. */
int plumb_slice_others(struct slice_work *work, const struct slice_stall *stall);
/* Makes causes of WORK's candidates, whose samples add up to those of STALL. */
int plumb_slice_split(struct slice_work *work, struct slice_stall *stall);
void plumb_slice_chain(const struct slice_work *work, struct plumb_stall_cause *cause);
void plumb_slice_name(const struct slice_work *work, const struct slice_stall *stall,
                      struct plumb_stall_cause *cause);
/* Bytes of memory that a warp must move; NAN: unknown. */
double plumb_slice_traffic(const struct slice_work *work);
/* Is FUNCTION called, and has it no samples, although the kernel has? */
static inline bool
slice_is_silent(const struct slice_work *work, uint32_t function)
{
	return !work->is_static && slice_bit(work->silent, function);
}

/* A new search over instructions; and whether it comes to INSN for the first time. */
static inline void
slice_search(const struct slice_work *work)
{
	work->stamps[work->graph.insn_count]++;
}

static inline bool
slice_is_new(const struct slice_work *work, uint32_t insn)
{
	uint32_t search = work->stamps[work->graph.insn_count];
	bool is_new = work->stamps[insn] != search;

	work->stamps[insn] = search;
	return is_new;
}

static inline uint32_t
slice_insn(const struct slice_graph *graph, struct plumb_slice_place place)
{
	return graph->base[place.function] + place.insn;
}

#endif
