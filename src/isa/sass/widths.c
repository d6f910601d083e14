/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many registers operands have, and how long results of a fixed latency take.
 */
#include "isa/sass/sass.h"

static unsigned
access_registers(const struct plumb_sass_bits *bits)
{
	static const uint8_t registers[8] = { 1, 1, 1, 1, 1, 2, 4, 8 };

	return registers[plumb_sass_get(bits, 73, 3)];
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

/* Two, four and eight float16, the same of bfloat16; one, two and four float32 twice; float64. */
static unsigned
float_atomic_registers(const struct plumb_sass_bits *bits)
{
	static const uint8_t registers[16] = { 1, 2, 4, 1, 2, 4, 1, 1, 1, 1, 2, 4, 1, 2, 4, 2 };

	return registers[plumb_sass_get(bits, 73, 4)];
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
	return (struct shape){ 16,   8, plumb_sass_get(bits, 75, 1) ? 32 : 16,
		               8,    8, plumb_sass_get(bits, 77, 1) ? 32 : 16,
		               false };
}

enum { IMMA = 0x037, BMMA = 0x03d, DMMA = 0x03f, QMMA = 0x07a, IGMMA = 0x1f1, BGMMA = 0x1f2 };

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
	if (op->number >= 0x100 || op->number == QMMA) /* of a warp group */
		return plumb_sass_get(bits, 73, 1);
	return shape_of(op, bits).is_sparse;
}

/* HGMMA: each of the 128 threads of a warp group has 64 x N / 128 numbers. Integers and bits have
 * fewer widths, which are counted. */
static unsigned
group_registers(const struct plumb_sass_op *op, const struct plumb_sass_bits *bits)
{
	unsigned width = plumb_sass_get(bits, 53, 6), n = 8 * (width + 1);
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

unsigned
plumb_sass_count(unsigned architecture, const struct plumb_sass_op *op,
                 const struct plumb_sass_bits *bits, unsigned rule)
{
	switch (rule) {
	case PLUMB_SASS_ACCESS:
		return access_registers(bits);
	case PLUMB_SASS_ATOMIC:
	case PLUMB_SASS_ATOMIC_PAIR:
		return atomic_registers(architecture, bits);
	case PLUMB_SASS_ATOMIC_COUNT:
		return plumb_sass_get(bits, 87, 4) == 0xb ? 0
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
		return 1;
	}
}

/* From a result to the same pipe's operand. Other pipes take a cycle or two longer. */
unsigned
plumb_sass_latency(unsigned architecture, const struct plumb_sass_op *op)
{
	unsigned more = architecture >= 120; /* consumer GPUs of Blackwell */

	switch (op->pipe) {
	case PLUMB_PIPE_INTEGER:
	case PLUMB_PIPE_FLOAT32:
		return 4 + more;
	case PLUMB_PIPE_FLOAT16:
		return (architecture >= 100 ? 4 : 5) + more;
	case PLUMB_PIPE_FLOAT64: /* fixed on data centre GPUs only */
		return 8;
	default:
		return 0;
	}
}
