/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many registers operands have, and how long results of a fixed latency take.
 */
#include "isa/sass/sass.h"

/* The last is 128 bits of all lanes alike (LDG.U.128, Turing), or 256 bits of uniform registers. */
static unsigned
access_registers(unsigned architecture, const struct plumb_sass_bits *bits)
{
	static const uint8_t registers[8] = { 1, 1, 1, 1, 1, 2, 4, 4 };
	unsigned size = plumb_sass_get(bits, 73, 3);

	return size == 7 && architecture >= 100 ? 8 : registers[size];
}

/* Unsigned, signed, unsigned 64, float, two halfs, signed 64, double, -; from Hopper on unsigned,
 * signed, unsigned 64, signed 64, 128 bits. */
static unsigned
atomic_registers(unsigned architecture, const struct plumb_sass_bits *bits)
{
	static const uint8_t before[8] = { 1, 1, 2, 1, 1, 2, 2, 1 };
	static const uint8_t hopper[8] = { 1, 1, 2, 2, 4, 2, 2, 1 };

	return (architecture < 90 ? before : hopper)[plumb_sass_get(bits, 73, 3)];
}

/* Two, four and eight float16, the same of bfloat16; one, two and four float32 twice; float64. With
 * bit 87 four, eight and sixteen float8 of both kinds. */
static unsigned
float_atomic_registers(const struct plumb_sass_bits *bits)
{
	static const uint8_t registers[16] = { 1, 2, 4, 1, 2, 4, 1, 1, 1, 1, 2, 4, 1, 2, 4, 2 };
	static const uint8_t of_float8[8] = { 1, 1, 2, 4, 1, 2, 4, 1 };
	unsigned type = plumb_sass_get(bits, 73, 4);

	return plumb_sass_get(bits, 87, 1) ? of_float8[type % 8] : registers[type];
}

/* A bit for each register of 256 bits says whether it is wanted. What is wanted lies together. */
static unsigned
large_registers(const struct plumb_sass_bits *bits, bool is_high)
{
	static const uint8_t ones[16] = { 0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4 };

	return ones[is_high ? plumb_sass_get(bits, 61, 3) | plumb_sass_get(bits, 72, 1) << 3
	                    : plumb_sass_get(bits, 57, 4)];
}

/* A matrix of ROWS times COLUMNS is spread over the 32 lanes. */
static unsigned
fragment(unsigned rows, unsigned columns, unsigned bits)
{
	unsigned registers = rows * columns * bits / (32 * 32);

	return registers ? registers : 1;
}

/* What a warp multiplies: M x K and K x N, of numbers of so many bits. */
struct shape {
	unsigned m, n, k, a_bits, b_bits, c_bits;
	bool is_sparse; /* half of the numbers of A are left out */
};

static struct shape
half_shape(const struct plumb_sass_bits *bits)
{
	static const uint8_t ks[4] = { 8, 16, 4, 32 };
	unsigned k = ks[plumb_sass_get(bits, 78, 1) << 1 | plumb_sass_get(bits, 75, 1)];
	unsigned size = plumb_sass_get(bits, 82, 2) == 2 ? 32 : 16; /* TF32 */

	return (struct shape){ 16,
		               8,
		               k,
		               size,
		               size,
		               plumb_sass_get(bits, 76, 1) ? 32 : 16,
		               plumb_sass_get(bits, 73, 1) };
}

static struct shape
integer_shape(const struct plumb_sass_bits *bits)
{
	static const uint8_t ks[8] = { 16, 16, 32, 64, 16, 32, 64, 128 };
	unsigned shape = plumb_sass_get(bits, 85, 2) << 1 | plumb_sass_get(bits, 75, 1);

	return (struct shape){ shape & 4 ? 16 : 8,
		               8,
		               ks[shape],
		               plumb_sass_get(bits, 83, 1) ? 4 : 8,
		               plumb_sass_get(bits, 84, 1) ? 4 : 8,
		               32,
		               plumb_sass_get(bits, 72, 1) };
}

static struct shape
bit_shape(const struct plumb_sass_bits *bits)
{
	unsigned shape = plumb_sass_get(bits, 75, 2);

	return (struct shape){ shape ? 16 : 8, 8, shape == 2 ? 256 : 128, 1, 1, 32, false };
}

static struct shape
double_shape(const struct plumb_sass_bits *bits)
{
	static const uint8_t ks[4] = { 4, 4, 8, 16 };
	unsigned shape = plumb_sass_get(bits, 76, 2);

	return (struct shape){ shape ? 16 : 8, 8, ks[shape], 64, 64, 64, false };
}

static struct shape
quarter_shape(const struct plumb_sass_bits *bits)
{
	bool is_sparse = plumb_sass_get(bits, 80, 1);
	unsigned k = is_sparse ? 64 : plumb_sass_get(bits, 75, 1) ? 32 : 16;

	return (struct shape){ 16, 8, k, 8, 8, plumb_sass_get(bits, 77, 1) ? 32 : 16, is_sparse };
}

/* Numbers of four bits. */
static struct shape
eighth_shape(const struct plumb_sass_bits *bits)
{
	bool is_sparse = plumb_sass_get(bits, 80, 1);

	return (struct shape){ 16, 8, is_sparse ? 128 : 64, 4, 4, 32, is_sparse };
}

enum { IMMA = 0x037, BMMA = 0x03d, DMMA = 0x03f, QMMA = 0x07a, OMMA = 0x07f };
enum { IGMMA = 0x1f1, BGMMA = 0x1f2 };

static struct shape
shape_of(const struct plumb_sass_op *op, const struct plumb_sass_bits *bits)
{
	switch (op->number) {
	case IMMA:
		return integer_shape(bits);
	case BMMA:
		return bit_shape(bits);
	case DMMA:
		return double_shape(bits);
	case QMMA:
		return quarter_shape(bits);
	case OMMA:
		return eighth_shape(bits);
	default:
		return half_shape(bits);
	}
}

static unsigned
multiplied_registers(const struct plumb_sass_op *op, const struct plumb_sass_bits *bits,
                     unsigned rule)
{
	struct shape shape = shape_of(op, bits);

	switch (rule) {
	case PLUMB_SASS_MMA_A:
		return fragment(shape.m, shape.k / (shape.is_sparse ? 2 : 1), shape.a_bits);
	case PLUMB_SASS_MMA_B:
		return fragment(shape.k, shape.n, shape.b_bits);
	default:
		return fragment(shape.m, shape.n, shape.c_bits);
	}
}

/* Is the multiplication sparse? */
static bool
is_sparse(const struct plumb_sass_op *op, const struct plumb_sass_bits *bits)
{
	if (op->number >= 0x100) /* of a warp group */
		return plumb_sass_get(bits, 73, 1);
	return shape_of(op, bits).is_sparse;
}

/* HGMMA: each of the 128 threads of a warp group has 64 x N / 128 numbers. Integers and bits have
 * fewer widths, which are counted. */
static unsigned
group_registers(const struct plumb_sass_op *op, const struct plumb_sass_bits *bits)
{
	unsigned width = plumb_sass_get(bits, 53, 6), n = 8 * (width % 32 + 1);
	unsigned place = op->number == IGMMA ? width / 3 : width;

	if (op->number == IGMMA || op->number == BGMMA)
		return (place < 4 ? 8 * (place + 1) : 16 * (place - 1)) / 2;
	return plumb_sass_get(bits, 75, 1) ? n / 2 : n / 4;
}

/* LDTM: of each repetition, by its shape. */
static unsigned
tensor_memory_registers(const struct plumb_sass_bits *bits)
{
	static const uint8_t registers[4] = { 2, 4, 1, 1 };

	return (plumb_sass_get(bits, 87, 1) ? 1 : registers[plumb_sass_get(bits, 81, 2)])
	       << plumb_sass_get(bits, 83, 3);
}

/* LDSM and STSM: 8 x 8 of 16 bits fill one register, 16 x 16 of 8 bits two. */
static unsigned
matrix_registers(const struct plumb_sass_bits *bits)
{
	unsigned count = 1u << plumb_sass_get(bits, 72, 2);

	return plumb_sass_get(bits, 76, 1) && plumb_sass_get(bits, 80, 1) ? 2 * count : count;
}

/* Of a tensor copy: one for each dimension, but five if bit LINES says that it gathers lines. */
static unsigned
coordinates(const struct plumb_sass_bits *bits, unsigned lines)
{
	return plumb_sass_get(bits, lines, 1) ? 5 : 1 + plumb_sass_get(bits, 79, 3);
}

/* Numbers of a pair that are the same register. */
static unsigned
pair_registers(const struct plumb_sass_bits *bits, unsigned at)
{
	return plumb_sass_get(bits, at, 2) == 2 ? 1 : 2;
}

unsigned
plumb_sass_count(unsigned architecture, const struct plumb_sass_op *op,
                 const struct plumb_sass_bits *bits, unsigned rule)
{
	switch (rule) {
	case PLUMB_SASS_ACCESS:
		return access_registers(architecture, bits);
	case PLUMB_SASS_ATOMIC:
	case PLUMB_SASS_ATOMIC_PAIR:
		return atomic_registers(architecture, bits);
	case PLUMB_SASS_ATOMIC_COUNT:
		return plumb_sass_get(bits, 87, 4) == (architecture < 90 ? 0xa : 0xb)
		               ? 0
		               : atomic_registers(architecture, bits);
	case PLUMB_SASS_ATOMIC_FLOAT:
		return float_atomic_registers(bits);
	case PLUMB_SASS_TO:
		return plumb_sass_get(bits, 75, 2) == 3 ? 2 : 1;
	case PLUMB_SASS_FROM:
		return plumb_sass_get(bits, 84, 2) == 3 ? 2 : 1;
	case PLUMB_SASS_MATRICES:
		return matrix_registers(bits);
	case PLUMB_SASS_SPARSE:
		return is_sparse(op, bits);
	case PLUMB_SASS_MOVM: /* 16 to 8 bits, or to more */
		return plumb_sass_get(bits, 78, 1) ? 2 : 1;
	case PLUMB_SASS_WIDE74:
		return plumb_sass_get(bits, 74, 1) ? 2 : 1;
	case PLUMB_SASS_FORM7:
		return plumb_sass_get(bits, 9, 3) == 7 || plumb_sass_get(bits, 76, 1) ? 2 : 1;
	case PLUMB_SASS_LARGE_LOW:
	case PLUMB_SASS_LARGE_HIGH:
		return large_registers(bits, rule == PLUMB_SASS_LARGE_HIGH);
	case PLUMB_SASS_PAIR_A:
		return pair_registers(bits, 81);
	case PLUMB_SASS_PAIR_B:
		return pair_registers(bits, 87);
	case PLUMB_SASS_PAIR_C:
		return pair_registers(bits, 84);
	case PLUMB_SASS_SCALE:
		return is_sparse(op, bits) ? 2 : 1;
	case PLUMB_SASS_PAIR:
		return 2;
	case PLUMB_SASS_MASK:
		return plumb_sass_get(bits, 83, 1) ? 2 : 1;
	case PLUMB_SASS_CLOCK:
	case PLUMB_SASS_WIDE80:
		return plumb_sass_get(bits, 80, 1) ? 2 : 1;
	case PLUMB_SASS_WIDE64:
		return plumb_sass_get(bits, 73, 1) ? 2 : 1;
	case PLUMB_SASS_MMA_A:
	case PLUMB_SASS_MMA_B:
	case PLUMB_SASS_MMA_C:
		return multiplied_registers(op, bits, rule);
	case PLUMB_SASS_GROUP_C:
		return group_registers(op, bits);
	case PLUMB_SASS_TILE_LOAD:
		return 2 + coordinates(bits, 84);
	case PLUMB_SASS_TILE_STORE:
		return 1 + coordinates(bits, 83);
	case PLUMB_SASS_TILE_PREFETCH:
		return coordinates(bits, 84);
	case PLUMB_SASS_BULK:
		return plumb_sass_get(bits, 74, 1) ? 1 : 2;
	case PLUMB_SASS_TMEM:
		return tensor_memory_registers(bits);
	default:
		return plumb_sass_texture_count(architecture, op, bits, rule);
	}
}

enum { HADD2 = 0x030, UMOV = 0x082, ULDC = 0x0b9, ULDC_INDEXED = 0x0bb, R2UR = 0x0ca };

static unsigned
uniform_latency(const struct plumb_sass_op *op)
{
	switch (op->number) {
	case UMOV:
	case ULDC:
	case ULDC_INDEXED:
		return 2;
	case R2UR:
		return 13;
	default:
		return 4;
	}
}

/* From a result to the same pipe's operand, as the compiler has it (tests/accuracy/latencies.py).
 * Other pipes take a cycle or two longer; a guard needs 13 after a comparison. */
unsigned
plumb_sass_latency(unsigned architecture, const struct plumb_sass_op *op)
{
	switch (op->pipe) {
	case PLUMB_PIPE_INTEGER:
	case PLUMB_PIPE_FLOAT32:
		return 4;
	case PLUMB_PIPE_FLOAT16:
		return architecture < 80 ? 6 : op->number == HADD2 ? 5 : 4;
	case PLUMB_PIPE_FLOAT64: /* fixed on data centre GPUs only */
		return 8;
	case PLUMB_PIPE_UNIFORM:
		return uniform_latency(op);
	default:
		return 0;
	}
}
