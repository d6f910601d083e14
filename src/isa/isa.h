/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instruction of any GPU, as the analysis of stalls (analyze/slice) needs it: what it reads and
 * writes, what it waits for, and what other instructions can wait for of it. An instruction set is
 * one folder (isa/sass) and one row in isa.c.
 *
 *	const struct plumb_isa *isa = plumb_isa_find("sm_90");
 *	struct plumb_insns insns = { 0 };
 *	if (plumb_isa_decode(isa, "sm_90", text, bytes, &insns, &error) < 0) …
 *	for (uint32_t i = 0; i < insns.count; i++) … insns.items[i] …
 *	plumb_insns_free(&insns);
 *
 * SYNCHRONISATION. What waits for data waits for a counter. All three vendors' ways are that:
 *
 *	NVIDIA  scoreboards SB0…SB5. A load raises its write scoreboard until the result is there
 *	        (RESULT), its read scoreboard until its operands are read (SOURCES). A wait mask
 *	        waits until each of its scoreboards is 0; DEPBAR.LE until one is at most a number.
 *	AMD     vmcnt, lgkmcnt, expcnt, …: a load raises a counter, `s_waitcnt vmcnt(N)` waits until
 *	        at most N are left. What returns in order has the same ORDER, so a wait for N
 *	        releases all but the youngest N.
 *	Intel   tokens $0…$31 (`{$t}` raises one, `{$t.dst}` and `{$t.src}` wait for
 *	        RESULT and SOURCES), and pipes: each instruction of an in-order pipe raises the
 *	        pipe's counter, and `{F@n}` waits until at most n - 1 are left in F.
 *
 * docs/folders/isa.md works examples of each.
 */
#ifndef PLUMB_ISA_ISA_H
#define PLUMB_ISA_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* What an instruction does, as far as it matters for waiting. X(identifier, name) */
#define PLUMB_INSN_CLASSES(X)                                                                      \
	X(OTHER, "other")     /* known, and nothing of the below */                                \
	X(INTEGER, "integer") /* also logic, shifts, moves, selects, predicates */                 \
	X(FLOAT16, "float16")                                                                      \
	X(FLOAT32, "float32")                                                                      \
	X(FLOAT64, "float64")                                                                      \
	X(CONVERT, "convert") /* between number formats */                                         \
	X(SPECIAL, "special") /* reciprocals, roots, exponentials; bit counts */                   \
	X(TENSOR, "tensor")   /* matrix units */                                                   \
	X(LOAD, "load")                                                                            \
	X(STORE, "store")                                                                          \
	X(ATOMIC, "atomic") /* also reductions in memory */                                        \
	X(COPY, "copy")     /* memory to memory: cp.async, TMA, buffer_load … lds */               \
	X(CACHE, "cache")   /* prefetch, discard, invalidate */                                    \
	X(TEXTURE, "texture")                                                                      \
	X(SHUFFLE, "shuffle")   /* data between lanes; votes, matches, reductions */               \
	X(REGISTER, "register") /* special registers, and moves between register files that  \
	                                 take a variable time */     \
	X(BARRIER, "barrier")   /* waits for other warps */                                        \
	X(MEMORY_BARRIER, "memory barrier")                                                        \
	X(WAIT, "wait") /* only waits for counters: DEPBAR, s_waitcnt, sync.nop */                 \
	X(BRANCH, "branch")                                                                        \
	X(CALL, "call")                                                                            \
	X(RETURN, "return")                                                                        \
	X(EXIT, "exit")                                                                            \
	X(RECONVERGE, "reconverge") /* BSSY, BSYNC, WARPSYNC */                                    \
	X(SLEEP, "sleep")                                                                          \
	X(NOP, "nop")                                                                              \
	X(UNKNOWN, "unknown") /* the decoder does not know the opcode */

enum plumb_insn_class {
#define X(id, name) PLUMB_INSN_##id,
	PLUMB_INSN_CLASSES(X)
#undef X
		PLUMB_INSN_CLASS_COUNT
};
extern const char *const plumb_insn_class_names[PLUMB_INSN_CLASS_COUNT];

/* What integer arithmetic makes, as far as it makes addresses. An operand that is a constant of the
 * launch (c[bank][…]) counts as a number that is not known. */
enum plumb_insn_makes {
	PLUMB_MAKES_UNKNOWN,
	PLUMB_MAKES_SUM,     /* of all that it reads, and the immediate; also a move */
	PLUMB_MAKES_PRODUCT, /* of its FACTORs, or of one and the immediate; plus what else it reads
	                      */
	PLUMB_MAKES_SHIFT,   /* its FACTOR << the immediate, plus what else it reads */
	PLUMB_MAKES_LANE,    /* the number of the thread in x, or of the lane */
	PLUMB_MAKES_UNIFORM, /* something that all lanes of a warp have alike: the block's number */
	PLUMB_MAKES_ROW, /* the number of the thread in y or z: as a rule, lanes have it alike */
	PLUMB_MAKES_CONSTANT, /* the immediate */
	PLUMB_MAKES_MASKED,   /* what it reads, but only the bits that the immediate has */
	PLUMB_MAKES_RIGHT,    /* its FACTOR >> the immediate */
};

/* Where the data of a load, store, atomic or copy is. */
enum plumb_insn_space {
	PLUMB_SPACE_NONE,
	PLUMB_SPACE_GLOBAL,
	PLUMB_SPACE_LOCAL, /* a thread's own stack: spills, arrays */
	PLUMB_SPACE_SHARED,
	PLUMB_SPACE_CONSTANT,
	PLUMB_SPACE_GENERIC,     /* the address decides: global, shared or local */
	PLUMB_SPACE_DISTRIBUTED, /* shared memory of another block of the cluster */
};

/* Files of registers. A register is a file and a number. It has 32 bits a lane, a predicate one. */
enum plumb_reg_file {
	PLUMB_REG_VECTOR,    /* NVIDIA R0…R254, AMD v0…, Intel GRF (in units of 32 bits) */
	PLUMB_REG_SCALAR,    /* NVIDIA UR0…UR62, AMD s0… */
	PLUMB_REG_PREDICATE, /* NVIDIA P0…P6; AMD vcc, exec, scc; Intel flags */
	PLUMB_REG_UNIFORM_PREDICATE,
	PLUMB_REG_CONVERGENCE, /* NVIDIA B0…B15 */
	PLUMB_REG_ACCUMULATOR, /* AMD a0…; Intel acc */
	PLUMB_REG_FILES
};

#define PLUMB_REG_ADDRESS 1 /* read to make an address */
#define PLUMB_REG_DATA 2    /* read to be stored */
#define PLUMB_REG_FACTOR 3  /* read to be multiplied, or shifted */

struct plumb_regs {
	uint8_t file; /* enum plumb_reg_file */
	uint8_t role; /* of what is read: PLUMB_REG_*, 0: an operand like others */
	uint16_t first;
	uint16_t count;
};

/* What a signal or a wait is about. */
enum plumb_sync_part {
	PLUMB_SYNC_RESULT = 1,  /* what it writes is written */
	PLUMB_SYNC_SOURCES = 2, /* what it reads was read, so that others may overwrite it */
};

/* The instruction raises COUNTER, and it falls again once PART is done. */
struct plumb_signal {
	uint8_t counter;
	uint8_t part;  /* enum plumb_sync_part */
	uint8_t order; /* those of one counter with one order that is not 0 finish in order */
};

/* The instruction does not begin before each of COUNTERS is at most THRESHOLD. */
struct plumb_wait_for {
	uint64_t counters; /* bit n: counter n */
	uint16_t threshold;
	uint8_t parts; /* which signals it is about: PLUMB_SYNC_*, added up */
};

#define PLUMB_INSN_REGS 8 /* at most so many ranges are read, or written */
#define PLUMB_INSN_SIGNALS 2
#define PLUMB_INSN_WAITS 4
#define PLUMB_INSN_COUNTERS 64
#define PLUMB_INSN_ALWAYS 0xffff

/* Widths of accesses are bytes of a lane. */
struct plumb_insn {
	uint32_t offset;    /* bytes from the function's start */
	uint8_t size;       /* bytes */
	uint8_t class;      /* enum plumb_insn_class */
	uint8_t space;      /* enum plumb_insn_space */
	uint8_t width;      /* of an access; 0: unknown, or none */
	const char *opcode; /* the vendor's word for it without modifiers: "LDG"; static */

	/* It is executed by the lanes for which this holds. A guarded write leaves the old value in
	 * the other lanes, so it does not end an earlier definition. */
	uint16_t guard; /* number of the predicate, or PLUMB_INSN_ALWAYS */
	uint8_t guard_file;
	bool guard_not;

	bool variable;   /* its latency varies: a signal tells when it is done */
	uint8_t latency; /* cycles until its result can be read, of a fixed latency; 0: unknown */
	uint8_t issue;   /* cycles until the warp may issue the next instruction, as encoded */
	uint8_t pipe;    /* enum plumb_pipe */
	bool is_vector_address; /* its lanes have addresses of their own */

	uint8_t reads_count, writes_count, signals_count, waits_count;
	struct plumb_regs reads[PLUMB_INSN_REGS], writes[PLUMB_INSN_REGS];
	struct plumb_signal signals[PLUMB_INSN_SIGNALS];
	struct plumb_wait_for waits[PLUMB_INSN_WAITS];

	/* Address of a load, store or atomic: the registers with the role ADDRESS, and this. */
	int32_t displacement;
	uint8_t constant_bank; /* it reads c[bank][displacement] as an operand … */
	bool reads_constant;   /* … if this is true */
	bool has_immediate;
	int64_t immediate; /* of integer arithmetic: the operand that is no register */
	uint8_t makes;     /* enum plumb_insn_makes */

	bool has_target;     /* of branches and calls whose target is in the code */
	uint32_t target;     /* offset */
	bool is_indirect;    /* the target is in a register */
	bool is_conditional; /* besides its guard, another operand decides */
	uint8_t barrier;     /* of a BARRIER: its number; 0xff: unknown */
	bool arrives_only;   /* of a BARRIER: it does not wait */
};

/* Units that instructions queue for, so that neighbours can be in each other's way. X(id, name) */
#define PLUMB_PIPES(X)                                                                             \
	X(NONE, "none")                                                                            \
	X(INTEGER, "integer")                                                                      \
	X(FLOAT32, "float32")                                                                      \
	X(FLOAT16, "float16")                                                                      \
	X(FLOAT64, "float64")                                                                      \
	X(TENSOR, "tensor")                                                                        \
	X(SPECIAL, "special function")                                                             \
	X(UNIFORM, "uniform")                                                                      \
	X(LOCAL_GLOBAL, "local and global memory")                                                 \
	X(SHARED, "shared memory")                                                                 \
	X(TEXTURE, "texture")                                                                      \
	X(CONSTANT, "constant")                                                                    \
	X(CONTROL, "control")
enum plumb_pipe {
#define X(id, name) PLUMB_PIPE_##id,
	PLUMB_PIPES(X)
#undef X
		PLUMB_PIPE_COUNT
};
extern const char *const plumb_pipe_names[PLUMB_PIPE_COUNT];

struct plumb_insns {
	struct plumb_insn *items; /* ascending by offset, without gaps */
	uint32_t count;
	uint32_t unknown; /* how many of them have the class UNKNOWN */
};

struct plumb_isa {
	const char *name;   /* "sass" */
	const char *vendor; /* "nvidia" */
	unsigned shortest;  /* bytes of its shortest instruction */
	/* Does it decode ARCHITECTURE ("sm_90", "gfx942", "pvc")? */
	bool (*decodes)(const char *architecture);
	/* One instruction at TEXT of at most LEFT bytes. Returns its size; 0: there is none. Fields
	 * that do not apply are left 0 (class UNKNOWN is not an error). */
	unsigned (*decode)(const char *architecture, const void *text, size_t left, uint32_t offset,
	                   struct plumb_insn *insn);
	/* Writes what the instruction is as assembly, as far as the decoder knows it: "@!P0 LDG.E
	 * R2, [R4+0x10]". Used where the vendor's disassembler is not installed. */
	void (*print)(const char *architecture, const void *text, const struct plumb_insn *insn,
	              char *to, size_t size);
	/* "SB2" of a counter. */
	const char *(*counter_name)(unsigned counter);
};

/* NULL: no instruction set decodes it. */
const struct plumb_isa *plumb_isa_find(const char *architecture);

/* Decodes a function's machine code. PLUMB_EINPUT: TEXT is not code (its size is no multiple of an
 * instruction's, it is too long). PLUMB_ESYSTEM: no memory. */
int plumb_isa_decode(const struct plumb_isa *isa, const char *architecture, const void *text,
                     size_t bytes, struct plumb_insns *insns,
                     struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_insns_free(struct plumb_insns *insns);

#endif
