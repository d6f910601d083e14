/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a kernel's warps wait: for each instruction at which they were sampled, the earlier
 * instructions that made them wait, with a share each.
 *
 *	struct plumb_slice_input input = { .functions = functions, .function_count = n, … };
 *	struct plumb_sliced slice;
 *	if (plumb_slice_make(&input, &slice, &error) < 0) …
 *	… slice.stalls[i].causes[j] …
 *	plumb_slice_free(&slice);
 *
 * It knows no vendor and no file: instructions come as isa/isa.h has them, samples as numbers.
 *
 * BLAME IS CONSERVED: the samples of the causes of a stall add up to the samples of the stall,
 * exactly. What no rule explains is a cause of the kind UNKNOWN.
 *
 * Method: LEO (arXiv 2604.20032), derived anew. docs/why-method.md says what differs, and
 * how right it is.
 */
#ifndef PLUMB_ANALYZE_SLICE_H
#define PLUMB_ANALYZE_SLICE_H

#include "base/error.h"
#include "isa/isa.h"

/* Why a warp stood, in classes that all vendors have. Each is a metric stall.<name>.
 * X(identifier, name, meaning) */
#define PLUMB_STALL_CLASSES(X)                                                                     \
	X(MEMORY, "memory", "for data from global, local or texture memory")                       \
	X(SHARED, "shared", "for data from shared memory, or a unit with a variable time")         \
	X(EXECUTION, "execution", "for the result of arithmetic of a fixed time")                  \
	X(BARRIER, "barrier", "at a barrier, for other warps")                                     \
	X(THROTTLE, "throttle", "because the queue of a unit was full")                            \
	X(FETCH, "fetch", "for instructions, branches or constants")                               \
	X(FLUSH, "flush", "for its stores: memory barriers, the end of the program")               \
	X(OTHER, "other", "for something else, or asleep")                                         \
	X(NONE, "none", "it did not wait: it issued, or another warp was chosen")
enum plumb_stall_class {
#define X(id, name, meaning) PLUMB_STALL_##id,
	PLUMB_STALL_CLASSES(X)
#undef X
		PLUMB_STALL_CLASS_COUNT
};

/* Reasons as plumb knows them, from all vendors' words. */
enum plumb_stall_reason {
	PLUMB_REASON_OTHER,
	PLUMB_REASON_SELECTED,     /* it issued */
	PLUMB_REASON_NOT_SELECTED, /* it could have issued */
	PLUMB_REASON_LONG,         /* long_scoreboard */
	PLUMB_REASON_SHORT,        /* short_scoreboard */
	PLUMB_REASON_FIXED,        /* wait */
	PLUMB_REASON_BARRIER,
	PLUMB_REASON_MEMBAR,
	PLUMB_REASON_DRAIN,
	PLUMB_REASON_LOCAL_GLOBAL_THROTTLE,
	PLUMB_REASON_SHARED_THROTTLE, /* mio_throttle */
	PLUMB_REASON_TEXTURE_THROTTLE,
	PLUMB_REASON_MATH_THROTTLE,
	PLUMB_REASON_DISPATCH,
	PLUMB_REASON_NO_INSTRUCTIONS,
	PLUMB_REASON_BRANCH,
	PLUMB_REASON_CONSTANT,     /* imc_miss */
	PLUMB_REASON_TENSOR_GROUP, /* warpgroup_arrive, gmma */
	PLUMB_REASON_SLEEP,
	PLUMB_REASON_COUNTER, /* AMD WAITCNT, Intel SBID: waits for a counter, whatever it is of */
	PLUMB_REASON_COUNT
};
struct plumb_stall_reason_info {
	const char *word; /* the vendor's, without prefix and suffix: "long_scoreboard" */
	enum plumb_stall_reason reason;
	enum plumb_stall_class class;
	const char *meaning; /* completes "the warp waited …" */
};
/* Of a vendor's word, with or without its prefixes and suffixes. Never NULL: unknown words are
 * OTHER. */
const struct plumb_stall_reason_info *plumb_stall_reason_find(const char *word);

/* A place in the code. */
struct plumb_slice_place {
	uint32_t function; /* index in the input */
	uint32_t insn;     /* index in its instructions */
};

struct plumb_slice_call {
	uint32_t insn;     /* a CALL, or a branch to another function */
	uint32_t function; /* index in the input */
};
struct plumb_slice_function {
	const char *name;
	const struct plumb_insns *insns;
	const struct plumb_slice_call *calls; /* whose target is another function */
	uint32_t call_count;
	/* Blame goes to lines too: is what both instructions are of the same source line? NULL: not
	 * known. */
	const uint32_t *lines; /* by instruction: equal numbers, equal places; 0: unknown */
};

struct plumb_slice_sample {
	struct plumb_slice_place place;
	uint16_t reason; /* enum plumb_stall_reason */
	bool issued;     /* the scheduler issued another warp meanwhile: the stall was hidden */
	uint64_t count;
};

/* What is known of the launches; 0: unknown. */
struct plumb_slice_launch {
	uint32_t blocks, threads; /* of a grid, of a block */
	uint32_t registers, shared_bytes, stack_bytes;
	uint32_t occupancy_ppm; /* theoretical */
	uint32_t multiprocessors, warps_per_multiprocessor;
};

struct plumb_slice_input {
	const struct plumb_isa *isa;
	const char *architecture;
	const struct plumb_slice_function *functions; /* [0] is the kernel, then what it calls */
	uint32_t function_count;
	const struct plumb_slice_sample *samples; /* NULL: none; then causes are what the code alone
	                                             says, and shares are of cycles by the tables */
	uint32_t sample_count;
	/* Samples without a place, of functions that have no samples. They are placed by tables,
	 * as if there were no samples at all. */
	uint64_t unplaced;
	struct plumb_slice_launch launch;
};

enum plumb_cause_kind {
	PLUMB_CAUSE_DATA,    /* a register, or memory between a store and a load */
	PLUMB_CAUSE_SYNC,    /* a counter, but no register: copies, stores, groups */
	PLUMB_CAUSE_BARRIER, /* the code of the warps that come last */
	PLUMB_CAUSE_FETCH,
	PLUMB_CAUSE_THROTTLE,   /* neighbours that use the same unit */
	PLUMB_CAUSE_STRUCTURAL, /* the instruction itself: issue, dispatch, sleep */
	PLUMB_CAUSE_UNKNOWN,
};
extern const char *const plumb_cause_kind_names[PLUMB_CAUSE_UNKNOWN + 1];

/* Named causes (catalogue.c): what it is, what shows it, what to do. */
struct plumb_named_cause {
	const char *name;   /* "uncoalesced access" */
	const char *id;     /* "uncoalesced" */
	const char *advice; /* one or two sentences */
	/* What its instructions are together, if they are of several classes; else NULL. */
	const char *noun;
};

/* A step of the chain back to the root. VIA says what it hands on to the step before it in the
 * array, and of step 0 to the stalled instruction (CONTROL: it is no data). */
struct plumb_slice_hop {
	struct plumb_slice_place place;
	uint8_t via;            /* enum plumb_hop_via */
	struct plumb_regs regs; /* what it hands on, if VIA is REGISTER */
	uint8_t counter;        /* if it is COUNTER */
};
enum plumb_hop_via {
	PLUMB_HOP_REGISTER,
	PLUMB_HOP_COUNTER,
	PLUMB_HOP_SPILL,  /* a store and a load of one stack slot */
	PLUMB_HOP_SHARED, /* a store and a load of shared memory, across a barrier */
	PLUMB_HOP_CALL,
	PLUMB_HOP_CONTROL,
};

/* Factors multiply; each is a part of 1 among the candidates of a stall, NAN: it does not apply. */
struct plumb_slice_factors {
	double distance, efficiency, issue, match;
};

#define PLUMB_CHAIN_MOST 16
struct plumb_stall_cause {
	enum plumb_cause_kind kind;
	const struct plumb_named_cause *named; /* NULL: nothing of the catalogue fits */
	bool has_place;
	struct plumb_slice_place place; /* the instruction that made it wait */
	uint64_t samples;               /* of the stall's */
	double share;                   /* of the stall */
	struct plumb_slice_factors factors;
	double confidence; /* 0…1 */
	bool proved;       /* a counter proves the dependence; else it is possible */
	/* The hardware cannot tell it apart from other causes of this stall: all with this number
	 * are candidates together. 0: it stands alone. */
	uint32_t ambiguity;
	/* chain[0] is the cause itself, then what it waited for in turn. If the last step is one
	 * that the chain has already, a loop feeds itself. */
	uint32_t chain_count;
	struct plumb_slice_hop chain[PLUMB_CHAIN_MOST];
	double saving;      /* part of the kernel's samples that would go if the cause were gone: at
	                  most; NAN: unknown */
	char evidence[200]; /* "32 sectors for each request: 4-byte loads, 128 bytes apart" */
};

struct plumb_stall {
	struct plumb_slice_place place;
	uint16_t reason;                  /* enum plumb_stall_reason */
	uint8_t class;                    /* enum plumb_stall_class */
	uint64_t samples;                 /* no warp of the scheduler issued: exposed */
	uint64_t hidden;                  /* another one issued */
	struct plumb_stall_cause *causes; /* greatest first */
	uint32_t cause_count;
};

struct plumb_sliced {
	struct plumb_stall *stalls; /* most samples first */
	uint32_t stall_count;
	uint64_t samples; /* of the kernel: all, exposed and hidden, issued too */
	uint64_t outside; /* samples that lie in no function given */
	/* Single-dependency coverage: of instructions with at least one incoming edge, the part
	 * with at most one of each class (GPA's count); and weighted by samples. NAN: none. */
	double coverage, coverage_weighted;
	/* Bytes of global memory that each warp must move, because no cache can have them. NAN: the
	 * code does not say, as it accesses memory in loops, for example. */
	double warp_bytes;
	uint32_t edges; /* before pruning */
	uint32_t edges_kept;
	void *memory; /* the slicer's own */
};

/* PLUMB_ESYSTEM: no memory. PLUMB_EEMPTY: no instruction. */
int plumb_slice_make(const struct plumb_slice_input *input, struct plumb_sliced *slice,
                     struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_slice_free(struct plumb_sliced *slice);

/* For --annotate: the instructions that INSN of FUNCTION may wait for, after pruning. Returns how
 * many; writes at most MOST. */
struct plumb_slice_edge {
	struct plumb_slice_place from;
	struct plumb_regs regs;
	uint8_t via; /* enum plumb_hop_via */
	uint8_t counter;
	bool proved;
};
uint32_t plumb_slice_edges(const struct plumb_sliced *slice, struct plumb_slice_place to,
                           struct plumb_slice_edge *edges, uint32_t most);

#endif
