/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVIDIA's machine code from Turing (sm_75) on: instructions of 128 bits, with a control word in
 * bits 105 to 125 of each. This header is private to the folder.
 *
 * ops.c has a row for each operation: its number and forms, the architectures that have it, what it
 * does, and where its operands lie. decode.c reads an instruction by its row.
 */
#ifndef PLUMB_ISA_SASS_SASS_H
#define PLUMB_ISA_SASS_SASS_H

#include "isa/isa.h"

extern const struct plumb_isa plumb_isa_sass;

/* An instruction's bits, 0 to 127. */
struct plumb_sass_bits {
	uint64_t low, high;
};

/* COUNT (at most 32) bits from bit AT on. */
static inline uint32_t
plumb_sass_get(const struct plumb_sass_bits *bits, unsigned at, unsigned count)
{
	uint64_t value = at >= 64 ? bits->high >> (at - 64) : bits->low >> at;

	if (at < 64 && at + count > 64)
		value |= bits->high << (64 - at);
	return (uint32_t)(value & ((UINT64_C(1) << count) - 1));
}

/* Where an operand lies. FORM_ operands lie where the form of the instruction (bits 9 to 11) says:
 *
 *	form   B        C        S (the only one of them)
 *	1      R at 32  R at 64  R at 32
 *	2      R at 64  number   number
 *	3      R at 64  c[][]    c[][]
 *	4      number   R at 64  number
 *	5      c[][]    R at 64  c[][]
 *	6      UR at 32 R at 64  UR at 32
 *	7      R at 64  UR at 32 UR at 32
 */
enum plumb_sass_place {
	PLUMB_SASS_END,
	PLUMB_SASS_READS,   /* register of FILE at AT */
	PLUMB_SASS_READS91, /* the same, if bit 91 is set */
	PLUMB_SASS_WRITES,
	PLUMB_SASS_FORM_B,
	PLUMB_SASS_FORM_C,
	PLUMB_SASS_FORM_S,
	PLUMB_SASS_FORM_U,  /* of uniform operations: UR at 32 in forms 1 and 6, else a number */
	PLUMB_SASS_FORM_UB, /* as FORM_B and FORM_C, of uniform registers */
	PLUMB_SASS_FORM_UC,
	PLUMB_SASS_FORM_M,    /* R at 32, but a number in forms that have none there (SHFL) */
	PLUMB_SASS_FORM_N,    /* R at 64, the same */
	PLUMB_SASS_FORM_H,    /* UR at AT in form 7, else the handle is a constant */
	PLUMB_SASS_EITHER,    /* a predicate; bit 67: a uniform one */
	PLUMB_SASS_INVERTED,  /* a predicate, with its bits inverted */
	PLUMB_SASS_ADDRESS,   /* R at 24, and UR at AT: global memory */
	PLUMB_SASS_ADDRESS72, /* the same, of operations in which bit 90 means something else */
	PLUMB_SASS_OFFSET,    /* R at 24, and UR at AT: shared and local memory */
};

/* How many registers an operand has: a number, or a rule. */
enum plumb_sass_width {
	PLUMB_SASS_ACCESS = 200, /* the size of the access */
	PLUMB_SASS_ATOMIC,       /* the type of an atomic's data */
	PLUMB_SASS_ATOMIC_PAIR,  /* of a compare and swap */
	PLUMB_SASS_ATOMIC_COUNT, /* as ATOMIC, but none where it only counts */
	PLUMB_SASS_ATOMIC_FLOAT, /* of those that add numbers, from Hopper on */
	PLUMB_SASS_TO,           /* the type that a conversion makes, and takes */
	PLUMB_SASS_FROM,
	PLUMB_SASS_MATRICES, /* of LDSM and STSM */
	PLUMB_SASS_MOVM,
	PLUMB_SASS_MMA_A, /* fragments of a matrix multiplication */
	PLUMB_SASS_MMA_B,
	PLUMB_SASS_MMA_C,
	PLUMB_SASS_SPARSE,  /* one, if the multiplication is sparse */
	PLUMB_SASS_GROUP_C, /* of HGMMA and its like */
	PLUMB_SASS_CLOCK,   /* CS2R */
	PLUMB_SASS_WIDE64,  /* two if bit 73 is set: 64-bit integers of sm_120 */
	PLUMB_SASS_WIDE74,  /* the same of bits 74 and 80 */
	PLUMB_SASS_WIDE80,
	PLUMB_SASS_FORM7,     /* two in form 7, or if bit 76 is set */
	PLUMB_SASS_LARGE_LOW, /* of 256 bits: those that are wanted of each half */
	PLUMB_SASS_LARGE_HIGH,
	PLUMB_SASS_PAIR_A, /* two numbers, or one for both: of FFMA2 and its like */
	PLUMB_SASS_PAIR_B,
	PLUMB_SASS_PAIR_C,
	PLUMB_SASS_SCALE,     /* two if the multiplication is sparse */
	PLUMB_SASS_PAIR,      /* two */
	PLUMB_SASS_MASK,      /* of UTCHMMA and its like: two if a part of the warps multiplies */
	PLUMB_SASS_TMEM,      /* LDTM and STTM */
	PLUMB_SASS_TILE_LOAD, /* place and coordinates of a tensor copy */
	PLUMB_SASS_TILE_STORE,
	PLUMB_SASS_TILE_PREFETCH,
	PLUMB_SASS_BULK, /* where a copy of bytes begins: in global memory, or another */
	/* Textures: what is read, and the two ranges of what says what and where */
	PLUMB_SASS_TEXELS,
	PLUMB_SASS_TEXELS_HIGH,
	PLUMB_SASS_TEXTURE_FIRST,
	PLUMB_SASS_TEXTURE_SECOND,
	PLUMB_SASS_FETCH_HANDLE,
	PLUMB_SASS_PLACE, /* of a surface */
	PLUMB_SASS_COMPONENTS,
	PLUMB_SASS_SURFACE_ATOMIC,
	PLUMB_SASS_SURFACE_PAIR,
};

struct plumb_sass_operand {
	uint8_t place; /* enum plumb_sass_place */
	uint8_t file;  /* enum plumb_reg_file */
	uint8_t at;
	uint8_t width; /* a number, or enum plumb_sass_width */
	uint8_t role;  /* PLUMB_REG_* */
};

/* What else is to be read of an instruction. */
enum plumb_sass_extra {
	PLUMB_SASS_PLAIN,
	PLUMB_SASS_CONSTANT,   /* c[bank][R + displacement] is what it loads */
	PLUMB_SASS_MEMORY,     /* displacement of 24 bits at 40 */
	PLUMB_SASS_LARGE,      /* accesses of 256 bits */
	PLUMB_SASS_COPY,       /* LDGSTS */
	PLUMB_SASS_HANDLE,     /* of a texture or surface: a constant, in form 5 */
	PLUMB_SASS_TARGET,     /* a branch */
	PLUMB_SASS_TARGET_OLD, /* a target whose lowest bits are not at 16: BSSY */
	PLUMB_SASS_INDIRECT,
	PLUMB_SASS_DEPBAR,
	PLUMB_SASS_GROUP_WAIT, /* WARPGROUP */
	PLUMB_SASS_GROUP,      /* HGMMA and its like */
	PLUMB_SASS_BARRIER,
	PLUMB_SASS_BAR,
	PLUMB_SASS_TILE, /* UTMALDG and its like */
	PLUMB_SASS_SYNCS,
	PLUMB_SASS_WARPSYNC,
	PLUMB_SASS_P2R,
	PLUMB_SASS_R2P,
	PLUMB_SASS_MOVE,
	PLUMB_SASS_SUM,
	PLUMB_SASS_PRODUCT,
	PLUMB_SASS_LEA,
	PLUMB_SASS_SHIFT,
	PLUMB_SASS_LOGIC,
	PLUMB_SASS_HALVES, /* may move a constant */
	PLUMB_SASS_SPECIAL_REGISTER,
};

/* When its latency varies. */
enum plumb_sass_latency {
	PLUMB_SASS_FIXED,
	PLUMB_SASS_VARIES,
	PLUMB_SASS_FP64,   /* on all but data centre GPUs from Hopper on */
	PLUMB_SASS_TENSOR, /* on Turing */
};

#define PLUMB_SASS_OPERANDS 12

struct plumb_sass_op {
	uint16_t number;  /* bits 0 to 8 */
	uint8_t forms;    /* bit n: form n */
	uint8_t from, to; /* architectures */
	const char *name;
	uint8_t class, space, pipe, latency, extra;
	bool is_uniform; /* its guard is a uniform predicate */
	struct plumb_sass_operand operands[PLUMB_SASS_OPERANDS];
	uint8_t bit, value; /* it is this one only if bit number BIT, if not 0, has VALUE */
};

/* Sorted by number. */
extern const struct plumb_sass_op plumb_sass_ops[];
extern const uint32_t plumb_sass_op_count;

/* NULL: unknown. ARCHITECTURE is 90 for sm_90. */
const struct plumb_sass_op *
plumb_sass_find(unsigned architecture, const struct plumb_sass_bits *bits);
/* Cycles until a result of fixed latency can be read; 0: unknown. */
unsigned plumb_sass_latency(unsigned architecture, const struct plumb_sass_op *op);
/* How many registers an operand has, by a rule of enum plumb_sass_width. */
unsigned plumb_sass_count(unsigned architecture, const struct plumb_sass_op *op,
                          const struct plumb_sass_bits *bits, unsigned rule);
/* The same, by a rule of textures and surfaces. */
unsigned plumb_sass_texture_count(unsigned architecture, const struct plumb_sass_op *op,
                                  const struct plumb_sass_bits *bits, unsigned rule);

unsigned plumb_sass_decode(const char *architecture, const void *text, size_t left, uint32_t offset,
                           struct plumb_insn *insn);
void plumb_sass_print(const char *architecture, const void *text, const struct plumb_insn *insn,
                      char *to, size_t size);

#endif
