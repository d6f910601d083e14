/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations, one row each. Rows are sorted by number; of those with one number, the first that
 * has the form and the architecture is the one.
 *
 * Found out from machine code that NVIDIA's compiler made and its disassembler explained. The
 * comparison with the disassembler (docs/accuracy.md) keeps the rows right.
 */
#include "isa/sass/sass.h"

#define F(form) (1u << (form))
#define REGISTERS_FORMS (F(1) | F(2) | F(3) | F(4) | F(5) | F(6) | F(7))
#define ANY REGISTERS_FORMS
#define ALL 75, 255
#define FROM(architecture) (architecture), 255
#define BETWEEN(from, to) (from), (to)

/* Vector registers */
#define D(n) { PLUMB_SASS_WRITES, PLUMB_REG_VECTOR, 16, n }
#define RD(n) { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 16, n }
#define A(n) { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 24, n }
#define RB(n) { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 32, n }
#define RC(n) { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 64, n }
#define B(n) { PLUMB_SASS_FORM_B, PLUMB_REG_VECTOR, 32, n }
#define C(n) { PLUMB_SASS_FORM_C, PLUMB_REG_VECTOR, 64, n }
#define S(n) { PLUMB_SASS_FORM_S, PLUMB_REG_VECTOR, 32, n }
#define M(n) { PLUMB_SASS_FORM_M, PLUMB_REG_VECTOR, 32, n }
#define N(n) { PLUMB_SASS_FORM_N, PLUMB_REG_VECTOR, 64, n }
/* Those that are multiplied or shifted, stored, or an address */
#define AF(n) { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 24, n, PLUMB_REG_FACTOR }
#define BF(n) { PLUMB_SASS_FORM_B, PLUMB_REG_VECTOR, 32, n, PLUMB_REG_FACTOR }
#define SF(n) { PLUMB_SASS_FORM_S, PLUMB_REG_VECTOR, 32, n, PLUMB_REG_FACTOR }
#define META { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 40, PLUMB_SASS_SPARSE }
/* What the two matrices are multiplied by. The pattern of a sparse matrix is beside the first. */
#define SCALES                                                                                     \
	{ PLUMB_SASS_READS, PLUMB_REG_VECTOR, 40, PLUMB_SASS_SCALE },                              \
		{ PLUMB_SASS_READS, PLUMB_REG_VECTOR, 52, 1 }
#define DATA(n) { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 32, n, PLUMB_REG_DATA }
#define DATA_C(n) { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 64, n, PLUMB_REG_DATA }
#define A91(n) { PLUMB_SASS_READS91, PLUMB_REG_VECTOR, 24, n, PLUMB_REG_ADDRESS }
#define AA(n) { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 24, n, PLUMB_REG_ADDRESS }
#define AD(n) { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 16, n, PLUMB_REG_ADDRESS }
#define ADDRESS(ur) { PLUMB_SASS_ADDRESS, PLUMB_REG_VECTOR, ur, 2, PLUMB_REG_ADDRESS }
/* Bit 72 alone says how wide the address is: LDGSTS, and atomics that return something. */
#define ADDRESS72(ur) { PLUMB_SASS_ADDRESS72, PLUMB_REG_VECTOR, ur, 2, PLUMB_REG_ADDRESS }
#define OFFSET(ur) { PLUMB_SASS_OFFSET, PLUMB_REG_VECTOR, ur, 1, PLUMB_REG_ADDRESS }
/* Uniform registers */
#define UD(n) { PLUMB_SASS_WRITES, PLUMB_REG_SCALAR, 16, n }
#define URD(n) { PLUMB_SASS_READS, PLUMB_REG_SCALAR, 16, n }
#define UA(n) { PLUMB_SASS_READS, PLUMB_REG_SCALAR, 24, n }
#define UB(n) { PLUMB_SASS_READS, PLUMB_REG_SCALAR, 32, n }
#define UC(n) { PLUMB_SASS_READS, PLUMB_REG_SCALAR, 64, n }
#define UFB(n) { PLUMB_SASS_FORM_UB, PLUMB_REG_SCALAR, 32, n }
#define UFC(n) { PLUMB_SASS_FORM_UC, PLUMB_REG_SCALAR, 64, n }
#define UTM(at, n) { PLUMB_SASS_READS, PLUMB_REG_SCALAR, at, n }
/* BRA.DIV, if bit 91 is set */
#define UDIV { PLUMB_SASS_READS91, PLUMB_REG_SCALAR, 24, 1 }
/* The base of an address, if bit 91 is set */
#define UA91(at, n) { PLUMB_SASS_READS91, PLUMB_REG_SCALAR, at, n, PLUMB_REG_ADDRESS }
#define UAA(n) { PLUMB_SASS_READS, PLUMB_REG_SCALAR, 24, n, PLUMB_REG_ADDRESS }
#define UBA(n) { PLUMB_SASS_READS, PLUMB_REG_SCALAR, 32, n, PLUMB_REG_ADDRESS }
#define UCA(n) { PLUMB_SASS_READS, PLUMB_REG_SCALAR, 64, n, PLUMB_REG_ADDRESS }
#define US(n) { PLUMB_SASS_FORM_U, PLUMB_REG_SCALAR, 32, n }
/* Predicates */
#define PW(at) { PLUMB_SASS_WRITES, PLUMB_REG_PREDICATE, at, 1 }
#define PR(at) { PLUMB_SASS_READS, PLUMB_REG_PREDICATE, at, 1 }
#define QW(at) { PLUMB_SASS_WRITES, PLUMB_REG_UNIFORM_PREDICATE, at, 1 }
#define QR(at) { PLUMB_SASS_READS, PLUMB_REG_UNIFORM_PREDICATE, at, 1 }
/* Convergence barriers */
/* Of either file: bit 67 says that it is a uniform one. */
#define PRM(at) { PLUMB_SASS_EITHER, PLUMB_REG_PREDICATE, at, 1 }
/* Of a group of matrix multiplications, with its bits inverted. */
#define PRN(at) { PLUMB_SASS_INVERTED, PLUMB_REG_PREDICATE, at, 1 }
#define QRN(at) { PLUMB_SASS_INVERTED, PLUMB_REG_UNIFORM_PREDICATE, at, 1 }
#define BW(at) { PLUMB_SASS_WRITES, PLUMB_REG_CONVERGENCE, at, 1 }
#define BR(at) { PLUMB_SASS_READS, PLUMB_REG_CONVERGENCE, at, 1 }

#define W(rule) PLUMB_SASS_##rule

#define OP(number, forms, archs, name, class, space, pipe, latency, extra, ...)                    \
	{                                                                                          \
		number, forms, archs, name, PLUMB_INSN_##class, PLUMB_SPACE_##space,               \
			PLUMB_PIPE_##pipe, PLUMB_SASS_##latency, PLUMB_SASS_##extra, false,        \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
/* Of the uniform datapath: guarded by a uniform predicate. */
#define UOP(number, forms, archs, name, class, space, pipe, latency, extra, ...)                   \
	{                                                                                          \
		number, forms, archs, name, PLUMB_INSN_##class, PLUMB_SPACE_##space,               \
			PLUMB_PIPE_##pipe, PLUMB_SASS_##latency, PLUMB_SASS_##extra, true,         \
		{                                                                                  \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
/* Tensor cores of Blackwell: matrices in shared or tensor memory, an accumulator there, scales or
 * what is left out of a sparse matrix. Bit AT must be VALUE. */
#define UTC(forms, name, at, value, a, scales)                                                     \
	{ 0x1ea,                                                                                   \
	  forms,                                                                                   \
	  FROM(100),                                                                               \
	  name,                                                                                    \
	  PLUMB_INSN_TENSOR,                                                                       \
	  PLUMB_SPACE_SHARED,                                                                      \
	  PLUMB_PIPE_TENSOR,                                                                       \
	  PLUMB_SASS_VARIES,                                                                       \
	  PLUMB_SASS_PLAIN,                                                                        \
	  true,                                                                                    \
	  { a, UB(2), UC(1), UTM(40, 2), UTM(48, W(scales)), QR(87) },                             \
	  at,                                                                                      \
	  value }
/* Textures and surfaces. BOUND: the handle is in a uniform register, or is a constant. */
#define BOUND (F(2) | F(3) | F(5) | F(7))
#define UHANDLE(n) { PLUMB_SASS_FORM_H, PLUMB_REG_SCALAR, 40, n }
#define TEXTURE(number, forms, name, extra, ...)                                                   \
	OP(number, forms, ALL, name, TEXTURE, NONE, TEXTURE, VARIES, extra, D(W(TEXELS)),          \
	   { PLUMB_SASS_WRITES, PLUMB_REG_VECTOR, 64, W(TEXELS_HIGH) }, PW(81), __VA_ARGS__)
#define SURFACE(number, forms, name, class, ...)                                                   \
	OP(number, forms, ALL, name, class, NONE, TEXTURE, VARIES, HANDLE, __VA_ARGS__)
#define INT(number, name, extra, ...)                                                              \
	OP(number, ANY, ALL, name, INTEGER, NONE, INTEGER, FIXED, extra, __VA_ARGS__)
#define FP32(number, name, ...)                                                                    \
	OP(number, ANY, ALL, name, FLOAT32, NONE, FLOAT32, FIXED, PLAIN, __VA_ARGS__)
/* With operands of 16 bits: bit 81. */
#define MIXED(number, name, ...)                                                                   \
	{ number,                                                                                  \
	  ANY,                                                                                     \
	  FROM(100),                                                                               \
	  name,                                                                                    \
	  PLUMB_INSN_FLOAT32,                                                                      \
	  PLUMB_SPACE_NONE,                                                                        \
	  PLUMB_PIPE_FLOAT32,                                                                      \
	  PLUMB_SASS_FIXED,                                                                        \
	  PLUMB_SASS_PLAIN,                                                                        \
	  false,                                                                                   \
	  { __VA_ARGS__ },                                                                         \
	  81,                                                                                      \
	  1 }
#define FP16(number, name, ...)                                                                    \
	OP(number, ANY, ALL, name, FLOAT16, NONE, FLOAT16, FIXED, PLAIN, __VA_ARGS__)
#define DP(number, name, ...)                                                                      \
	OP(number, ANY, ALL, name, FLOAT64, NONE, FLOAT64, FP64, PLAIN, __VA_ARGS__)
#define XU(number, name, class, ...)                                                               \
	OP(number, ANY, ALL, name, class, NONE, SPECIAL, VARIES, PLAIN, __VA_ARGS__)
#define UINT(number, name, ...)                                                                    \
	UOP(number, ANY, ALL, name, INTEGER, NONE, UNIFORM, FIXED, PLAIN, __VA_ARGS__)

const struct plumb_sass_op plumb_sass_ops[] = {
	OP(0x001, ANY, ALL, "PMTRIG", OTHER, NONE, CONTROL, FIXED, PLAIN),
	OP(0x002, F(2), FROM(100), "MOV", INTEGER, NONE, INTEGER, FIXED, MOVE, D(2), S(2)),
	INT(0x002, "MOV", MOVE, D(W(WIDE80)), S(W(WIDE80))),
	INT(0x003, "P2R", P2R, D(1), A(1), S(1)),
	INT(0x004, "R2P", R2P, A(1), S(1)),
	OP(0x005, ANY, ALL, "CS2R", REGISTER, NONE, INTEGER, FIXED, SPECIAL_REGISTER, D(W(CLOCK))),
	OP(0x006, ANY, ALL, "VOTE", SHUFFLE, NONE, INTEGER, FIXED, PLAIN, D(1), PW(81), PR(87)),
	OP(0x007, F(2) | F(7), FROM(100), "SEL", INTEGER, NONE, INTEGER, FIXED, PLAIN, D(2), A(2),
	   S(2), PR(87)),
	OP(0x007, F(3), FROM(100), "SEL", INTEGER, NONE, INTEGER, FIXED, PLAIN, D(2), A(2), RB(2),
	   PR(87)),
	INT(0x007, "SEL", PLAIN, D(1), A(1), S(1), PR(87)),
	FP32(0x008, "FSEL", D(1), A(1), S(1), PR(87)),
	FP32(0x009, "FMNMX", D(1), A(1), S(1), PR(87)),
	FP32(0x00a, "FSET", D(1), A(1), S(1), PR(87)),
	FP32(0x00b, "FSETP", PW(81), PW(84), A(1), S(1), PR(87)),
	INT(0x00c, "ISETP", PLAIN, PW(81), PW(84), A(W(WIDE80)), S(W(WIDE80)), PR(87), PR(68)),
	INT(0x00d, "CSMTEST", PLAIN, PW(81), PW(84), PR(87)),
	INT(0x00f, "VIMNMX3", PLAIN, D(1), A(1), B(1), C(1), PR(87)),
	INT(0x010, "IADD3", SUM, D(1), PW(81), PW(84), A(1), B(1), C(1), PR(87), PR(77)),
	INT(0x011, "LEA", LEA, D(1), PW(81), AF(1), B(1), C(1), PR(87)),
	INT(0x012, "LOP3", LOGIC, D(1), PW(81), A(1), B(1), C(1), PR(87)),
	INT(0x013, "IABS", PLAIN, D(1), S(1)),
	INT(0x014, "VABSDIFF", PLAIN, D(1), PW(81), A(1), B(1), C(1)),
	INT(0x015, "VABSDIFF4", PLAIN, D(1), PW(81), A(1), B(1), C(1)),
	INT(0x016, "PRMT", PLAIN, D(1), A(1), B(1), C(1)),
	OP(0x017, ANY, FROM(100), "IMNMX", INTEGER, NONE, INTEGER, FIXED, PLAIN, D(W(WIDE74)),
	   PW(81), PW(84), A(W(WIDE74)), S(W(WIDE74)), PR(87), PR(77)),
	INT(0x017, "IMNMX", PLAIN, D(1), A(1), S(1), PR(87)),
	INT(0x019, "SHF", SHIFT, D(1), AF(1), B(1), C(1)),
	INT(0x01a, "SGXT", PLAIN, D(1), A(1), S(1)),
	INT(0x01b, "BMSK", PLAIN, D(1), A(1), S(1)),
	INT(0x01c, "PLOP3", PLAIN, PW(81), PW(84), PR(87), PR(77), PRM(68)),
	INT(0x01d, "PLOP3", PLAIN, PW(81), PW(84), PR(87), S(1), PRM(68)),
	INT(0x01e, "PLOP3", PLAIN, PW(81), PW(84), PR(87), B(1), C(1)),
	INT(0x01f, "PLOP3", PLAIN, PW(81), PW(84), A(1), B(1), C(1)),
	FP32(0x020, "FMUL", D(1), A(1), S(1)),
	MIXED(0x021, "FHADD", D(1), A(1), S(1)),
	FP32(0x021, "FADD", D(1), A(1), S(1)),
	FP32(0x022, "FSWZADD", D(1), A(1), RC(1)),
	MIXED(0x023, "FHFMA", D(1), A(1), B(1), C(1)),
	FP32(0x023, "FFMA", D(1), A(1), B(1), C(1)),
	OP(0x024, ANY, ALL, "IMAD", INTEGER, NONE, FLOAT32, FIXED, PRODUCT, D(1), PW(81), AF(1),
	   BF(1), C(1), PR(87)),
	OP(0x025, ANY, ALL, "IMAD", INTEGER, NONE, FLOAT32, FIXED, PRODUCT, D(2), PW(81), AF(1),
	   BF(1), C(2), PR(87)),
	OP(0x026, ANY, ALL, "IDP", INTEGER, NONE, FLOAT32, FIXED, PLAIN, D(1), A(1), B(1), C(1)),
	OP(0x027, ANY, ALL, "IMAD", INTEGER, NONE, FLOAT32, FIXED, PLAIN, D(1), PW(81), A(1), B(1),
	   C(2), PR(87)),
	DP(0x028, "DMUL", D(2), A(2), S(2)),
	DP(0x029, "DADD", D(2), A(2), C(2)),
	DP(0x02a, "DSETP", PW(81), PW(84), A(2), S(2), PR(87)),
	DP(0x02b, "DFMA", D(2), A(2), B(2), C(2)),
	INT(0x02c, "CLMAD", PLAIN, D(2), A(2), B(2), C(2)),
	OP(0x02d, ANY, FROM(90), "PREEXIT", OTHER, NONE, CONTROL, FIXED, PLAIN),
	OP(0x02e, ANY, FROM(90), "ACQBULK", BARRIER, NONE, CONTROL, VARIES, BARRIER),
	OP(0x02f, ANY, ALL, "ELECT", SHUFFLE, NONE, INTEGER, FIXED, PLAIN, UD(1), PW(81), PR(87)),
	FP16(0x030, "HADD2", D(1), A(1), S(1)),
	OP(0x031, ANY, ALL, "HFMA2", FLOAT16, NONE, FLOAT16, FIXED, HALVES, D(1), A(1), B(1), C(1)),
	FP16(0x032, "HMUL2", D(1), A(1), S(1)),
	FP16(0x033, "HSET2", D(1), A(1), S(1), PR(87)),
	FP16(0x034, "HSETP2", PW(81), PW(84), A(1), S(1), PR(87)),
	OP(0x035, ANY, BETWEEN(75, 99), "HFMA2", FLOAT16, NONE, FLOAT16, FIXED, HALVES, D(1), A(1),
	   B(1), C(1)),
	OP(0x035, ANY, FROM(100), "IADD", INTEGER, NONE, INTEGER, FIXED, SUM, D(W(WIDE64)), PW(81),
	   A(W(WIDE64)), S(W(WIDE64)), PR(87)),
	OP(0x036, F(4) | F(6) | F(1) | F(5), FROM(90), "VIADD", INTEGER, NONE, INTEGER, FIXED, SUM,
	   D(1), A(1), S(1)),
	OP(0x036, F(1), BETWEEN(75, 79), "HMMA", TENSOR, NONE, TENSOR, TENSOR, PLAIN, D(2), A(2),
	   RB(2), RC(2)),
	OP(0x037, ANY, ALL, "IMMA", TENSOR, NONE, TENSOR, TENSOR, PLAIN, D(W(MMA_C)), A(W(MMA_A)),
	   RB(W(MMA_B)), RC(W(MMA_C)), META),
	INT(0x038, "I2I", PLAIN, D(1), S(1)),
	INT(0x039, "I2IP", PLAIN, D(1), A(1), B(1), C(1)),
	OP(0x03a, ANY, ALL, "MOVM", SHUFFLE, NONE, SHARED, VARIES, PLAIN, D(W(MOVM)), A(1)),
	OP(0x03b, ANY, ALL, "LDSM", LOAD, SHARED, SHARED, VARIES, MEMORY, D(W(MATRICES)),
	   OFFSET(32)),
	OP(0x03c, ANY, ALL, "HMMA", TENSOR, NONE, TENSOR, TENSOR, PLAIN, D(W(MMA_C)), A(W(MMA_A)),
	   RB(W(MMA_B)), RC(W(MMA_C)), META, QRN(87)),
	OP(0x03d, ANY, ALL, "BMMA", TENSOR, NONE, TENSOR, TENSOR, PLAIN, D(W(MMA_C)), A(W(MMA_A)),
	   RB(W(MMA_B)), RC(W(MMA_C))),
	OP(0x03e, ANY, ALL, "F2FP", CONVERT, NONE, FLOAT16, FIXED, PLAIN, D(1), A(1), B(1), C(1)),
	OP(0x03f, ANY, ALL, "DMMA", TENSOR, NONE, FLOAT64, VARIES, PLAIN, D(W(MMA_C)), A(W(MMA_A)),
	   RB(W(MMA_B)), RC(W(MMA_C))),
	FP16(0x040, "HMNMX2", D(1), A(1), S(1), PR(87)),
	OP(0x043, ANY, ALL, "F2IP", CONVERT, NONE, FLOAT32, FIXED, PLAIN, D(1), A(1), B(1), C(1)),
	OP(0x044, ANY, FROM(90), "STSM", STORE, SHARED, SHARED, VARIES, MEMORY, OFFSET(64),
	   DATA(W(MATRICES))),
	OP(0x045, ANY, ALL, "I2FP", CONVERT, NONE, FLOAT32, FIXED, PLAIN, D(1), S(1)),
	INT(0x046, "VIADDMNMX", PLAIN, D(1), A(1), B(1), C(1), PR(87)),
	INT(0x047, "VHMNMX", PLAIN, D(1), A(1), B(1), C(1), PR(87)),
	INT(0x048, "VIMNMX", PLAIN, D(1), A(1), S(1), PR(87)),
	OP(0x049, ANY, BETWEEN(100, 119), "FFMA2", FLOAT32, NONE, FLOAT32, FIXED, PLAIN, D(2),
	   A(W(PAIR_A)), B(W(PAIR_B)), C(W(PAIR_C))),
	UOP(0x049, ANY, FROM(120), "UVIADD", INTEGER, NONE, UNIFORM, FIXED, PLAIN, UD(1), UA(1),
	    US(1)),
	OP(0x04a, ANY, BETWEEN(100, 119), "FMUL2", FLOAT32, NONE, FLOAT32, FIXED, PLAIN, D(2),
	   A(W(PAIR_A)), S(W(PAIR_B))),
	UINT(0x04a, "UVIMNMX", UD(1), UA(1), US(1), QR(87)),
	OP(0x04b, ANY, BETWEEN(100, 119), "FADD2", FLOAT32, NONE, FLOAT32, FIXED, PLAIN, D(2),
	   A(W(PAIR_A)), S(W(PAIR_C))),
	UOP(0x04c, ANY, ALL, "UVIRTCOUNT", OTHER, NONE, UNIFORM, FIXED, PLAIN),
	UINT(0x04d, "UIABS", UD(1), US(1)),
	UINT(0x04e, "UI2I", UD(1), US(1)),
	UINT(0x04f, "UI2IP", UD(1), UA(1), UFB(1), UFC(1)),
	UINT(0x050, "UFMNMX", UD(1), UA(1), US(1), QR(87)),
	UINT(0x051, "UFSEL", UD(1), UA(1), US(1), QR(87)),
	UINT(0x052, "UFSET", UD(1), UA(1), US(1), QR(87)),
	UINT(0x053, "UFSETP", QW(81), QW(84), UA(1), US(1), QR(87)),
	UINT(0x054, "UFADD", UD(1), UA(1), UFC(1)),
	UINT(0x055, "UFFMA", UD(1), UA(1), UFB(1), UFC(1)),
	UINT(0x056, "UFMUL", UD(1), UA(1), US(1)),
	UINT(0x059, "UF2IP", UD(1), UA(1), UFB(1), UFC(1)),
	UINT(0x05a, "UI2F", UD(1), US(1)),
	UINT(0x05b, "UF2F", UD(1), US(1)),
	UINT(0x05c, "UF2I", UD(1), US(1)),
	UINT(0x05d, "UFRND", UD(1), US(1)),
	UINT(0x05e, "UI2FP", UD(1), US(1)),
	OP(0x076, ANY, FROM(100), "FMNMX3", FLOAT32, NONE, FLOAT32, FIXED, PLAIN, D(1), A(1), B(1),
	   C(1), PR(87)),
	OP(0x077, ANY, FROM(100), "ACQSHMINIT", BARRIER, NONE, CONTROL, VARIES, BARRIER),
	OP(0x07a, F(1), FROM(89), "QMMA", TENSOR, NONE, TENSOR, TENSOR, PLAIN, D(W(MMA_C)),
	   A(W(MMA_A)), RB(W(MMA_B)), RC(W(MMA_C)), META, QRN(87)),
	OP(0x07a, F(2), FROM(120), "QMMA", TENSOR, NONE, TENSOR, TENSOR, PLAIN, D(W(MMA_C)),
	   A(W(MMA_A)), RB(W(MMA_B)), RC(W(MMA_C)), SCALES, QRN(87)),
	OP(0x07f, F(2), FROM(120), "OMMA", TENSOR, NONE, TENSOR, TENSOR, PLAIN, D(W(MMA_C)),
	   A(W(MMA_A)), RB(W(MMA_B)), RC(W(MMA_C)), SCALES, QRN(87)),
	UOP(0x082, F(2), FROM(100), "UMOV", INTEGER, NONE, UNIFORM, FIXED, MOVE, UD(2)),
	UOP(0x082, ANY, ALL, "UMOV", INTEGER, NONE, UNIFORM, FIXED, MOVE, UD(W(WIDE80)),
	    US(W(WIDE80))),
	UINT(0x083, "UP2UR", UD(1), UA(1), US(1)),
	UINT(0x084, "UR2UP", UA(1), US(1)),
	UINT(0x085, "UIMNMX", UD(2), QW(81), QW(84), UA(2), US(2), QR(87), QR(77)),
	OP(0x086, ANY, ALL, "VOTEU", SHUFFLE, NONE, UNIFORM, FIXED, PLAIN, UD(1), QW(81), PR(87)),
	UOP(0x087, F(2) | F(3) | F(6) | F(7), FROM(100), "USEL", INTEGER, NONE, UNIFORM, FIXED,
	    PLAIN, UD(2), UA(2), US(2), QR(87)),
	UINT(0x087, "USEL", UD(1), UA(1), US(1), QR(87)),
	UINT(0x08c, "UISETP", QW(81), QW(84), UA(W(WIDE80)), US(W(WIDE80)), QR(87), QR(68)),
	UINT(0x090, "UIADD3", UD(1), QW(81), QW(84), UA(1), US(1), UC(1), QR(87), QR(77)),
	UINT(0x091, "ULEA", UD(1), QW(81), UA(1), US(1), UC(1), QR(87)),
	UINT(0x092, "ULOP3", UD(1), QW(81), UA(1), US(1), UC(1), QR(87)),
	UINT(0x096, "UPRMT", UD(1), UA(1), US(1), UC(1)),
	UINT(0x097, "UIADD3", UD(2), QW(81), QW(84), UA(2), US(2), UC(2), QR(87), QR(77)),
	UINT(0x099, "USHF", UD(1), UA(1), US(1), UC(1)),
	UINT(0x09a, "USGXT", UD(1), UA(1), US(1)),
	UINT(0x09b, "UBMSK", UD(1), UA(1), US(1)),
	UINT(0x09c, "UPLOP3", QW(81), QW(84), QR(87), QR(77), QR(68)),
	UINT(0x09d, "UPLOP3", QW(81), QW(84), QR(87), US(1), QR(68)),
	UINT(0x09e, "UPLOP3", QW(81), QW(84), QR(87), UFB(1), UFC(1)),
	UINT(0x09f, "UPLOP3", QW(81), QW(84), UA(1), UFB(1), UFC(1)),
	UINT(0x0a4, "UIMAD", UD(1), QW(81), UA(1), US(1), UC(1), QR(87)),
	UINT(0x0a5, "UIMAD", UD(2), QW(81), UA(1), US(1), UC(2), QR(87)),
	UINT(0x0a6, "UIMAD", UD(1), QW(81), UA(1), US(1), UC(2), QR(87)),
	UOP(0x0b9, ANY, ALL, "ULDC", LOAD, CONSTANT, UNIFORM, FIXED, CONSTANT, UD(W(ACCESS))),
	UINT(0x0ba, "UF2FP", UD(1), UA(1), UFB(1), UFC(1)),
	UOP(0x0bb, ANY, ALL, "ULDC", LOAD, CONSTANT, UNIFORM, FIXED, CONSTANT, UD(W(ACCESS)),
	    UAA(1)),
	UINT(0x0bc, "UCLEA", UD(2), QW(81), UA(2), US(1)),
	UINT(0x0bd, "UFLO", UD(1), QW(81), US(1)),
	UINT(0x0be, "UBREV", UD(1), US(1)),
	UINT(0x0bf, "UPOPC", UD(1), US(1)),
	OP(0x0ca, ANY, FROM(90), "R2UR", REGISTER, NONE, UNIFORM, FIXED, PLAIN, UD(1), PW(81),
	   A(1)),
	UOP(0x0cb, ANY, FROM(100), "CS2UR", REGISTER, NONE, UNIFORM, FIXED, SPECIAL_REGISTER,
	    UD(W(CLOCK))),
	OP(0x0cc, ANY, FROM(100), "CREDUX", SHUFFLE, NONE, UNIFORM, FIXED, PLAIN, UD(1), A(1)),
	XU(0x100, "FLO", SPECIAL, D(1), PW(81), S(1)),
	XU(0x101, "BREV", SPECIAL, D(1), S(1)),
	XU(0x102, "FCHK", SPECIAL, PW(81), A(1), S(1)),
	XU(0x104, "F2F", CONVERT, D(1), S(1)),
	XU(0x105, "F2I", CONVERT, D(1), S(1)),
	XU(0x106, "I2F", CONVERT, D(1), S(1)),
	XU(0x107, "FRND", CONVERT, D(1), S(1)),
	XU(0x108, "MUFU", SPECIAL, D(1), S(1)),
	XU(0x109, "POPC", SPECIAL, D(1), S(1)),
	XU(0x110, "F2F", CONVERT, D(W(TO)), S(W(FROM))),
	XU(0x111, "F2I", CONVERT, D(W(TO)), S(W(FROM))),
	XU(0x112, "I2F", CONVERT, D(W(TO)), S(W(FROM))),
	XU(0x113, "FRND", CONVERT, D(W(TO)), S(W(FROM))),
	OP(0x118, ANY, ALL, "NOP", NOP, NONE, NONE, FIXED, PLAIN),
	OP(0x119, ANY, ALL, "S2R", REGISTER, NONE, SPECIAL, VARIES, SPECIAL_REGISTER, D(1)),
	OP(0x11a, ANY, ALL, "DEPBAR", WAIT, NONE, CONTROL, FIXED, DEPBAR),
	OP(0x11b, ANY, ALL, "ENDCOLLECTIVE", RECONVERGE, NONE, CONTROL, FIXED, PLAIN),
	OP(0x11c, ANY, ALL, "B2R", REGISTER, NONE, CONTROL, VARIES, PLAIN, D(1), PW(81)),
	OP(0x11d, ANY, ALL, "BAR", BARRIER, NONE, CONTROL, VARIES, BAR),
	OP(0x11e, ANY, ALL, "R2B", BARRIER, NONE, CONTROL, VARIES, PLAIN, A(1)),
	OP(0x11f, ANY, ALL, "SETCTAID", OTHER, NONE, CONTROL, VARIES, PLAIN, A(1)),
	UOP(0x140, F(2), FROM(100), "CCTL", CACHE, CONSTANT, CONSTANT, VARIES, PLAIN, UAA(2)),
	OP(0x141, ANY, ALL, "BSYNC", RECONVERGE, NONE, CONTROL, FIXED, PLAIN, BR(16), PR(87)),
	OP(0x142, ANY, ALL, "BREAK", RECONVERGE, NONE, CONTROL, FIXED, PLAIN, BR(16), PR(87)),
	OP(0x143, ANY, ALL, "CALL", CALL, NONE, CONTROL, FIXED, INDIRECT, A(2), PR(87)),
	OP(0x144, ANY, ALL, "CALL", CALL, NONE, CONTROL, FIXED, TARGET, PR(87)),
	OP(0x145, ANY, ALL, "BSSY", RECONVERGE, NONE, CONTROL, FIXED, TARGET_OLD, BW(16), PR(87)),
	OP(0x146, ANY, ALL, "YIELD", NOP, NONE, CONTROL, FIXED, PLAIN, PR(87)),
	OP(0x147, F(2), ALL, "BRA", BRANCH, NONE, CONTROL, FIXED, TARGET, PR(87), QR(24)),
	OP(0x147, ANY, ALL, "BRA", BRANCH, NONE, CONTROL, FIXED, TARGET, PR(87), UDIV),
	OP(0x148, ANY, ALL, "WARPSYNC", RECONVERGE, NONE, CONTROL, FIXED, WARPSYNC, PR(87)),
	OP(0x149, ANY, ALL, "BRX", BRANCH, NONE, CONTROL, FIXED, INDIRECT, A(2), PR(87)),
	OP(0x14a, ANY, ALL, "JMP", BRANCH, NONE, CONTROL, FIXED, INDIRECT, PR(87)),
	OP(0x14c, ANY, ALL, "JMX", BRANCH, NONE, CONTROL, FIXED, INDIRECT, A(2), PR(87)),
	OP(0x14d, ANY, ALL, "EXIT", EXIT, NONE, CONTROL, FIXED, PLAIN, PR(87)),
	OP(0x14e, ANY, ALL, "LEPC", INTEGER, NONE, CONTROL, FIXED, PLAIN, D(2)),
	OP(0x14f, ANY, ALL, "RTT", RETURN, NONE, CONTROL, FIXED, PLAIN),
	OP(0x150, ANY, ALL, "RET", RETURN, NONE, CONTROL, FIXED, INDIRECT, A(2), PR(87)),
	OP(0x152, ANY, ALL, "RPCMOV", OTHER, NONE, CONTROL, FIXED, PLAIN, S(1)),
	OP(0x153, ANY, ALL, "RPCMOV", OTHER, NONE, CONTROL, FIXED, PLAIN, D(1)),
	OP(0x155, F(7), ALL, "BMOV", RECONVERGE, NONE, CONTROL, VARIES, PLAIN, BW(16)),
	OP(0x155, ANY, ALL, "BMOV", RECONVERGE, NONE, CONTROL, VARIES, PLAIN, D(1), BR(24)),
	OP(0x156, F(7), ALL, "BMOV", RECONVERGE, NONE, CONTROL, VARIES, PLAIN, BR(16)),
	OP(0x156, ANY, ALL, "BMOV", RECONVERGE, NONE, CONTROL, VARIES, PLAIN, BW(24), S(1)),
	OP(0x157, ANY, ALL, "BMOV", RECONVERGE, NONE, CONTROL, VARIES, PLAIN, BW(24), S(1)),
	OP(0x158, ANY, ALL, "BRXU", BRANCH, NONE, CONTROL, FIXED, INDIRECT, UA(2), PR(87)),
	OP(0x15b, ANY, ALL, "KILL", EXIT, NONE, CONTROL, FIXED, PLAIN, PR(87)),
	OP(0x15c, ANY, ALL, "BPT", OTHER, NONE, CONTROL, FIXED, PLAIN),
	OP(0x15d, ANY, ALL, "NANOSLEEP", SLEEP, NONE, CONTROL, FIXED, PLAIN, S(1), PR(87)),
	TEXTURE(0x160, BOUND, "TEX", HANDLE, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND)),
	        UHANDLE(2)),
	TEXTURE(0x161, F(1), "TEX", PLAIN, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND))),
	TEXTURE(0x163, BOUND, "TLD4", HANDLE, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND)),
	        UHANDLE(2)),
	TEXTURE(0x164, F(1), "TLD4", PLAIN, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND))),
	TEXTURE(0x166, BOUND, "TLD", HANDLE, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND)),
	        UHANDLE(W(FETCH_HANDLE))),
	TEXTURE(0x167, F(1), "TLD", PLAIN, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND))),
	TEXTURE(0x169, BOUND, "TMML", HANDLE, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND)),
	        UHANDLE(2)),
	TEXTURE(0x16a, F(1), "TMML", PLAIN, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND))),
	TEXTURE(0x16c, BOUND, "TXD", HANDLE, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND)),
	        UHANDLE(2)),
	TEXTURE(0x16d, F(1), "TXD", PLAIN, A(W(TEXTURE_FIRST)), RB(W(TEXTURE_SECOND))),
	OP(0x16f, BOUND, ALL, "TXQ", TEXTURE, NONE, TEXTURE, VARIES, HANDLE, D(W(TEXELS)),
	   { PLUMB_SASS_WRITES, PLUMB_REG_VECTOR, 64, W(TEXELS_HIGH) }, A(1), UHANDLE(2)),
	OP(0x170, F(1), ALL, "TXQ", TEXTURE, NONE, TEXTURE, VARIES, PLAIN, D(W(TEXELS)),
	   { PLUMB_SASS_WRITES, PLUMB_REG_VECTOR, 64, W(TEXELS_HIGH) }, A(2)),
	OP(0x17e, ANY, FROM(89), "LDG", LOAD, GLOBAL, LOCAL_GLOBAL, VARIES, LARGE, D(W(LARGE_HIGH)),
	   { PLUMB_SASS_WRITES, PLUMB_REG_VECTOR, 64, W(LARGE_LOW) }, AA(2), UA91(32, 2), PRN(87)),
	OP(0x17f, ANY, FROM(89), "STG", STORE, GLOBAL, LOCAL_GLOBAL, VARIES, LARGE, AA(2),
	   UA91(64, 2), DATA(4), { PLUMB_SASS_READS, PLUMB_REG_VECTOR, 16, 4, PLUMB_REG_DATA }),
	OP(0x180, ANY, ALL, "LD", LOAD, GENERIC, LOCAL_GLOBAL, VARIES, MEMORY, D(W(ACCESS)),
	   ADDRESS(32)),
	OP(0x181, ANY, ALL, "LDG", LOAD, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY, D(W(ACCESS)), PW(81),
	   ADDRESS(32), PRN(64)),
	OP(0x182, ANY, ALL, "LDC", LOAD, CONSTANT, CONSTANT, VARIES, CONSTANT, D(W(ACCESS)), AA(1)),
	OP(0x183, ANY, ALL, "LDL", LOAD, LOCAL, LOCAL_GLOBAL, VARIES, MEMORY, D(W(ACCESS)),
	   OFFSET(32)),
	OP(0x184, ANY, ALL, "LDS", LOAD, SHARED, SHARED, VARIES, MEMORY, D(W(ACCESS)), OFFSET(32)),
	OP(0x185, F(1), ALL, "ST", STORE, GENERIC, LOCAL_GLOBAL, VARIES, MEMORY, ADDRESS(64),
	   DATA_C(W(ACCESS))),
	OP(0x185, ANY, ALL, "ST", STORE, GENERIC, LOCAL_GLOBAL, VARIES, MEMORY, ADDRESS(64),
	   DATA(W(ACCESS))),
	OP(0x186, ANY, ALL, "STG", STORE, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY, ADDRESS(64),
	   DATA(W(ACCESS))),
	OP(0x187, ANY, ALL, "STL", STORE, LOCAL, LOCAL_GLOBAL, VARIES, MEMORY, OFFSET(64),
	   DATA(W(ACCESS))),
	OP(0x188, ANY, ALL, "STS", STORE, SHARED, SHARED, VARIES, MEMORY, OFFSET(64),
	   DATA(W(ACCESS))),
	OP(0x189, ANY, ALL, "SHFL", SHUFFLE, NONE, SHARED, VARIES, PLAIN, D(1), PW(81), A(1), M(1),
	   N(1)),
	OP(0x18a, ANY, ALL, "ATOM", ATOMIC, GENERIC, LOCAL_GLOBAL, VARIES, MEMORY, D(W(ATOMIC)),
	   PW(81), ADDRESS72(64), DATA(W(ATOMIC))),
	OP(0x18b, ANY, ALL, "ATOM", ATOMIC, GENERIC, LOCAL_GLOBAL, VARIES, MEMORY,
	   D(W(ATOMIC_PAIR)), PW(81), ADDRESS72(64), DATA(W(ATOMIC_PAIR)), DATA_C(W(ATOMIC_PAIR))),
	OP(0x18c, ANY, ALL, "ATOMS", ATOMIC, SHARED, SHARED, VARIES, MEMORY, D(W(ATOMIC)),
	   OFFSET(64), DATA(W(ATOMIC_COUNT))),
	OP(0x18d, F(2), ALL, "ATOMS", ATOMIC, SHARED, SHARED, VARIES, MEMORY, PW(81), OFFSET(64),
	   DATA(W(ATOMIC_PAIR)), DATA_C(W(ATOMIC_PAIR))),
	OP(0x18d, ANY, ALL, "ATOMS", ATOMIC, SHARED, SHARED, VARIES, MEMORY, D(W(ATOMIC_PAIR)),
	   OFFSET(64), DATA(W(ATOMIC_PAIR)), DATA_C(W(ATOMIC_PAIR))),
	OP(0x18e, ANY, FROM(90), "REDG", ATOMIC, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY, ADDRESS(64),
	   DATA(W(ATOMIC))),
	OP(0x18e, ANY, ALL, "RED", ATOMIC, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY, ADDRESS(64),
	   DATA(W(ATOMIC))),
	OP(0x18f, ANY, ALL, "CCTL", CACHE, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY, ADDRESS(32)),
	OP(0x190, ANY, ALL, "CCTLL", CACHE, LOCAL, LOCAL_GLOBAL, VARIES, MEMORY, OFFSET(32)),
	OP(0x192, ANY, ALL, "MEMBAR", MEMORY_BARRIER, NONE, LOCAL_GLOBAL, VARIES, PLAIN),
	SURFACE(0x193, BOUND, "SUATOM", ATOMIC, D(W(SURFACE_ATOMIC)), PW(81), A(W(PLACE)),
	        DATA(W(SURFACE_ATOMIC)), UHANDLE(1)),
	SURFACE(0x194, F(1), "SUATOM", ATOMIC, D(W(SURFACE_ATOMIC)), PW(81), A(W(PLACE)),
	        DATA(W(SURFACE_ATOMIC)), RC(1)),
	SURFACE(0x195, BOUND, "SUATOM", ATOMIC, D(W(SURFACE_ATOMIC)), PW(81), A(W(PLACE)),
	        DATA(W(SURFACE_PAIR)), UHANDLE(1)),
	SURFACE(0x196, F(1), "SUATOM", ATOMIC, D(W(SURFACE_ATOMIC)), PW(81), A(W(PLACE)),
	        DATA(W(SURFACE_PAIR)), RC(1)),
	SURFACE(0x197, BOUND, "SULD", TEXTURE, D(W(COMPONENTS)), PW(81), A(W(PLACE)), UHANDLE(1)),
	SURFACE(0x198, F(4), "SULD", TEXTURE, D(W(COMPONENTS)), PW(81), A(W(PLACE)), RC(1)),
	SURFACE(0x199, BOUND, "SULD", TEXTURE, D(W(ACCESS)), PW(81), A(W(PLACE)), UHANDLE(1)),
	SURFACE(0x19a, F(4), "SULD", TEXTURE, D(W(ACCESS)), PW(81), A(W(PLACE)), RC(1)),
	SURFACE(0x19b, BOUND, "SUST", STORE, A(W(PLACE)), DATA(W(COMPONENTS)), UHANDLE(1)),
	SURFACE(0x19c, F(4), "SUST", STORE, A(W(PLACE)), DATA(W(COMPONENTS)), RC(1)),
	SURFACE(0x19d, BOUND, "SUST", STORE, A(W(PLACE)), DATA(W(ACCESS)), UHANDLE(1)),
	SURFACE(0x19e, F(4), "SUST", STORE, A(W(PLACE)), DATA(W(ACCESS)), RC(1)),
	SURFACE(0x19f, BOUND, "SURED", ATOMIC, A(W(PLACE)), DATA(W(SURFACE_ATOMIC)), UHANDLE(1)),
	SURFACE(0x1a0, F(1), "SURED", ATOMIC, A(W(PLACE)), DATA(W(SURFACE_ATOMIC)), RC(1)),
	OP(0x1a1, ANY, ALL, "MATCH", SHUFFLE, NONE, SHARED, VARIES, PLAIN, D(1), PW(81),
	   A(W(WIDE64))),
	OP(0x1a2, ANY, FROM(90), "ATOM", ATOMIC, GENERIC, LOCAL_GLOBAL, VARIES, MEMORY,
	   D(W(ATOMIC_FLOAT)), PW(81), ADDRESS72(64), DATA(W(ATOMIC_FLOAT))),
	OP(0x1a3, ANY, FROM(90), "ATOMG", ATOMIC, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY,
	   D(W(ATOMIC_FLOAT)), PW(81), ADDRESS72(64), DATA(W(ATOMIC_FLOAT))),
	OP(0x1a4, ANY, FROM(90), "LDGMC", LOAD, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY, D(W(ATOMIC)),
	   AA(2), UA91(64, 2)),
	OP(0x1a5, ANY, FROM(90), "LDGMC", LOAD, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY,
	   D(W(ATOMIC_FLOAT)), AA(2), UA91(64, 2)),
	OP(0x1a6, ANY, ALL, "REDG", ATOMIC, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY, ADDRESS(64),
	   DATA(W(ATOMIC_FLOAT))),
	OP(0x1a7, F(2), FROM(90), "SYNCS", BARRIER, SHARED, SHARED, VARIES, SYNCS, PW(81), AA(1),
	   RB(1), UCA(1)),
	OP(0x1a7, ANY, FROM(90), "SYNCS", BARRIER, SHARED, SHARED, VARIES, SYNCS, D(2), AA(1),
	   RB(1), UCA(1)),
	OP(0x1a8, ANY, ALL, "ATOMG", ATOMIC, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY, D(W(ATOMIC)),
	   PW(81), ADDRESS72(64), DATA(W(ATOMIC))),
	OP(0x1a9, ANY, ALL, "ATOMG", ATOMIC, GLOBAL, LOCAL_GLOBAL, VARIES, MEMORY,
	   D(W(ATOMIC_PAIR)), PW(81), ADDRESS72(64), DATA(W(ATOMIC_PAIR)), DATA_C(W(ATOMIC_PAIR))),
	OP(0x1aa, ANY, ALL, "QSPC", CACHE, GENERIC, LOCAL_GLOBAL, VARIES, MEMORY, D(1), PW(81),
	   ADDRESS(32)),
	OP(0x1ab, F(2), ALL, "CGAERRBAR", MEMORY_BARRIER, NONE, LOCAL_GLOBAL, VARIES, PLAIN),
	OP(0x1ab, ANY, ALL, "ERRBAR", MEMORY_BARRIER, NONE, LOCAL_GLOBAL, VARIES, PLAIN),
	UOP(0x1ac, F(3) | F(5), FROM(100), "LDCU", LOAD, CONSTANT, UNIFORM, VARIES, CONSTANT,
	    UD(W(ACCESS)), UAA(1)),
	OP(0x1ae, ANY, FROM(80), "LDGSTS", COPY, GLOBAL, LOCAL_GLOBAL, VARIES, COPY, AD(1), AA(2),
	   UA91(64, W(FORM7)), PR(87)),
	OP(0x1af, ANY, FROM(80), "LDGDEPBAR", OTHER, NONE, LOCAL_GLOBAL, VARIES, PLAIN),
	OP(0x1b0, ANY, FROM(80), "ARRIVES", BARRIER, SHARED, SHARED, VARIES, SYNCS, OFFSET(64)),
	OP(0x1b1, F(4), FROM(90), "SYNCS", CACHE, SHARED, SHARED, VARIES, PLAIN, A91(1),
	   UA91(64, 1)),
	UOP(0x1b2, ANY, FROM(90), "SYNCS", ATOMIC, SHARED, SHARED, VARIES, PLAIN, UD(2), UAA(1),
	    UB(2)),
	UOP(0x1b4, F(2), FROM(90), "UTMALDG", COPY, GLOBAL, LOCAL_GLOBAL, VARIES, TILE,
	    UBA(W(TILE_LOAD)), UAA(2)),
	UOP(0x1b4, ANY, FROM(90), "UTMALDG", COPY, GLOBAL, LOCAL_GLOBAL, VARIES, TILE,
	    UBA(W(TILE_LOAD)), UAA(2), UC(1)),
	UOP(0x1b5, ANY, FROM(90), "UTMASTG", COPY, GLOBAL, LOCAL_GLOBAL, VARIES, TILE,
	    UBA(W(TILE_STORE)), UAA(2)),
	UOP(0x1b6, ANY, FROM(90), "UTMAREDG", ATOMIC, GLOBAL, LOCAL_GLOBAL, VARIES, TILE,
	    UBA(W(TILE_STORE)), UAA(2)),
	UOP(0x1b7, ANY, FROM(90), "UTMACMDFLUSH", OTHER, NONE, LOCAL_GLOBAL, VARIES, PLAIN),
	UOP(0x1b8, F(2), FROM(90), "UTMAPF", CACHE, GLOBAL, LOCAL_GLOBAL, VARIES, TILE,
	    UBA(W(TILE_PREFETCH)), UAA(2)),
	UOP(0x1b8, ANY, FROM(90), "UTMAPF", CACHE, GLOBAL, LOCAL_GLOBAL, VARIES, TILE,
	    UBA(W(TILE_PREFETCH)), UAA(2), UC(1)),
	UOP(0x1b9, ANY, FROM(90), "UTMACCTL", CACHE, GLOBAL, LOCAL_GLOBAL, VARIES, PLAIN, UAA(2)),
	UOP(0x1ba, ANY, FROM(90), "UBLKCP", COPY, GLOBAL, LOCAL_GLOBAL, VARIES, TILE, UBA(2),
	    UAA(W(BULK)), UC(1)),
	UOP(0x1bb, ANY, FROM(90), "UBLKRED", ATOMIC, GLOBAL, LOCAL_GLOBAL, VARIES, TILE, UBA(2),
	    UAA(W(BULK)), UC(1)),
	UOP(0x1bc, ANY, FROM(90), "UBLKPF", CACHE, GLOBAL, LOCAL_GLOBAL, VARIES, TILE, UAA(2),
	    UC(1)),
	OP(0x1bd, ANY, FROM(90), "STAS", STORE, DISTRIBUTED, SHARED, VARIES, PLAIN, AA(2),
	   DATA(W(ACCESS))),
	OP(0x1be, ANY, FROM(90), "REDAS", ATOMIC, DISTRIBUTED, SHARED, VARIES, PLAIN, AA(2),
	   DATA(W(ATOMIC)), UCA(1)),
	OP(0x1c2, ANY, ALL, "R2UR", REGISTER, NONE, UNIFORM, VARIES, PLAIN, UD(1), PW(81), A(1)),
	UOP(0x1c3, ANY, ALL, "S2UR", REGISTER, NONE, UNIFORM, VARIES, SPECIAL_REGISTER, UD(1)),
	OP(0x1c4, ANY, ALL, "REDUX", SHUFFLE, NONE, UNIFORM, VARIES, PLAIN, UD(1), A(1)),
	OP(0x1c5, ANY, FROM(90), "WARPGROUP", WAIT, NONE, TENSOR, FIXED, GROUP_WAIT),
	OP(0x1c6, ANY, FROM(90), "FENCE", MEMORY_BARRIER, NONE, SHARED, VARIES, PLAIN),
	OP(0x1c7, F(4), FROM(90), "UCGABAR_ARV", BARRIER, NONE, CONTROL, VARIES, BARRIER),
	OP(0x1c7, F(6), FROM(90), "UCGABAR_WAIT", BARRIER, NONE, CONTROL, VARIES, BARRIER),
	OP(0x1c8, ANY, FROM(90), "USETMAXREG", OTHER, NONE, CONTROL, VARIES, PLAIN, QW(81)),
	UOP(0x1c9, ANY, FROM(90), "USETSHMSZ", OTHER, SHARED, CONTROL, VARIES, PLAIN),
	UOP(0x1ca, ANY, FROM(100), "UGETNEXTWORKID", OTHER, SHARED, CONTROL, VARIES, PLAIN, UA(2)),
	UOP(0x1ce, ANY, FROM(90), "ULEPC", INTEGER, NONE, UNIFORM, FIXED, PLAIN, UD(2)),
	UOP(0x1e3, F(4), FROM(100), "UTCATOMSWS", ATOMIC, NONE, TENSOR, VARIES, PLAIN, UD(1),
	    UB(1)),
	UOP(0x1e3, ANY, FROM(100), "UTCATOMSWS", ATOMIC, NONE, TENSOR, VARIES, PLAIN, UD(1), QW(81),
	    UB(1)),
	UOP(0x1e6, ANY, FROM(100), "UTCSHIFT", COPY, NONE, TENSOR, VARIES, PLAIN, UA(1)),
	UOP(0x1e7, ANY, FROM(100), "UTCCP", COPY, SHARED, TENSOR, VARIES, PLAIN, UA(1), UB(2)),
	UOP(0x1e9, ANY, FROM(100), "UTCBAR", BARRIER, SHARED, TENSOR, VARIES, BARRIER, UA(1),
	    UC(1)),
	UTC(F(2), "UTCOMMA", 63, 1, UA(2), PAIR),
	UTC(F(2), "UTCHMMA", 72, 0, UA(2), MASK),
	UTC(F(2), "UTCIMMA", 73, 0, UA(2), MASK),
	UTC(F(2), "UTCQMMA", 73, 1, UA(2), MASK),
	UTC(F(4), "UTCHMMA", 72, 0, UA(1), MASK),
	UTC(F(4), "UTCIMMA", 73, 0, UA(1), MASK),
	UTC(F(4), "UTCQMMA", 73, 1, UA(1), MASK),
	UTC(F(6), "UTCQMMA", 0, 0, UA(2), PAIR),
	UTC(F(7), "UTCQMMA", 0, 0, UA(1), PAIR),
	OP(0x1ed, ANY, FROM(100), "STTM", STORE, NONE, TENSOR, VARIES, PLAIN, RB(W(TMEM)), UCA(1)),
	OP(0x1ee, ANY, FROM(100), "LDTM", LOAD, NONE, TENSOR, VARIES, PLAIN, D(W(TMEM)), UBA(1)),
	OP(0x1f0, F(4), BETWEEN(90, 99), "HGMMA", TENSOR, NONE, TENSOR, VARIES, GROUP,
	   D(W(GROUP_C)), UA(4), RC(W(GROUP_C)), QRN(87), META),
	OP(0x1f0, F(6), BETWEEN(90, 99), "HGMMA", TENSOR, NONE, TENSOR, VARIES, GROUP,
	   D(W(GROUP_C)), A(4), UB(4), RC(W(GROUP_C)), QRN(87), META),
	OP(0x1f1, F(4), BETWEEN(90, 99), "IGMMA", TENSOR, NONE, TENSOR, VARIES, GROUP,
	   D(W(GROUP_C)), UA(4), RC(W(GROUP_C)), QRN(87), META),
	OP(0x1f1, F(6), BETWEEN(90, 99), "IGMMA", TENSOR, NONE, TENSOR, VARIES, GROUP,
	   D(W(GROUP_C)), A(4), UB(4), RC(W(GROUP_C)), QRN(87), META),
	OP(0x1f2, F(4), BETWEEN(90, 99), "BGMMA", TENSOR, NONE, TENSOR, VARIES, GROUP,
	   D(W(GROUP_C)), UA(4), RC(W(GROUP_C)), QRN(87)),
	OP(0x1f2, F(6), BETWEEN(90, 99), "BGMMA", TENSOR, NONE, TENSOR, VARIES, GROUP,
	   D(W(GROUP_C)), A(4), UB(4), RC(W(GROUP_C)), QRN(87)),
	OP(0x1f3, F(4), BETWEEN(90, 99), "QGMMA", TENSOR, NONE, TENSOR, VARIES, GROUP,
	   D(W(GROUP_C)), UA(4), RC(W(GROUP_C)), QRN(87), META),
	OP(0x1f3, F(6), BETWEEN(90, 99), "QGMMA", TENSOR, NONE, TENSOR, VARIES, GROUP,
	   D(W(GROUP_C)), A(4), UB(4), RC(W(GROUP_C)), QRN(87), META),
};
const uint32_t plumb_sass_op_count = sizeof plumb_sass_ops / sizeof *plumb_sass_ops;
