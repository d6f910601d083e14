/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many registers the operands of textures and surfaces have. A texture's place is in the
 * first registers; the second ones have what the modifiers ask for, in this order: the handle,
 * the level of detail, the offset, and the value to compare with.
 */
#include "isa/sass/sass.h"

/* Kinds of a texture, in bits 61 to 63. */
enum { LINE, PLANE, VOLUME, CUBE, ARRAYS };

static unsigned
texture_kind(const struct plumb_sass_bits *bits)
{
	return plumb_sass_get(bits, 61, 3);
}

static unsigned
dimensions(const struct plumb_sass_bits *bits)
{
	static const uint8_t of_kind[ARRAYS] = {
		[LINE] = 1, [PLANE] = 2, [VOLUME] = 3, [CUBE] = 3
	};

	return of_kind[texture_kind(bits) % ARRAYS];
}

static bool
is_array(const struct plumb_sass_bits *bits)
{
	return texture_kind(bits) >= ARRAYS;
}

/* Blackwell moved the bit that says that there is an offset, but not of TLD4. */
static bool
has_offset(unsigned architecture, const struct plumb_sass_bits *bits)
{
	return plumb_sass_get(bits, architecture >= 100 ? 56 : 76, 1);
}

/* The level of detail: a bias or a level, and the lowest level that is allowed. */
static unsigned
level_registers(unsigned architecture, const struct plumb_sass_bits *bits)
{
	static const uint8_t before[8] = { 0, 0, 1, 1, 1, 2, 1, 0 };

	if (architecture < 100)
		return before[plumb_sass_get(bits, 87, 3)];
	return plumb_sass_get(bits, 87, 1) + plumb_sass_get(bits, 88, 1);
}

/* What follows the place of TLD4: an offset, or one for each of the four texels; a value. */
static unsigned
gather_more(const struct plumb_sass_bits *bits)
{
	static const uint8_t offsets[4] = { 0, 1, 2, 0 };

	return offsets[plumb_sass_get(bits, 76, 2)] + plumb_sass_get(bits, 78, 1);
}

/* Of TLD: the level, the offset, the number of the sample. */
static unsigned
fetch_more(unsigned architecture, const struct plumb_sass_bits *bits)
{
	bool is_new = architecture >= 100;
	bool has_level = is_new ? plumb_sass_get(bits, 87, 1) : plumb_sass_get(bits, 87, 3) == 3;

	return has_level + has_offset(architecture, bits) +
	       plumb_sass_get(bits, is_new ? 77 : 78, 1);
}

enum { TEX = 0x160, TLD4 = 0x163, TLD = 0x166, TXD = 0x16c }; /* each has the form .B after it */

/* The number of registers in the two ranges. */
static void
count_parameters(unsigned architecture, const struct plumb_sass_op *op,
                 const struct plumb_sass_bits *bits, unsigned count[2])
{
	bool has_handle = (op->forms & 1u << 1) != 0;

	count[0] = dimensions(bits) + is_array(bits);
	count[1] = has_handle;
	switch (op->number - has_handle) {
	case TEX:
		count[1] += level_registers(architecture, bits) + has_offset(architecture, bits) +
		            plumb_sass_get(bits, 78, 1);
		break;
	case TLD4:
		count[1] += gather_more(bits);
		break;
	case TLD:
		count[1] += fetch_more(architecture, bits);
		break;
	case TXD: /* the number in the array, the offset and the lowest level share a register */
		count[0] = has_handle + dimensions(bits) +
		           (is_array(bits) || has_offset(architecture, bits) ||
		            plumb_sass_get(bits, 87, 1));
		count[1] = 2 * dimensions(bits);
		return;
	default:
		break;
	}
	if (architecture < 90 && plumb_sass_get(bits, 60, 1)) { /* .SCR: half in each */
		unsigned sum = count[0] + count[1];
		count[0] = (sum + 1) / 2;
		count[1] = sum / 2;
	}
}

static unsigned
components(const struct plumb_sass_bits *bits)
{
	static const uint8_t of_half[4] = { 0, 1, 1, 2 };

	return of_half[plumb_sass_get(bits, 72, 2)] + of_half[plumb_sass_get(bits, 74, 2)];
}

/* Numbers of 16 bits share registers. */
static unsigned
texels(const struct plumb_sass_bits *bits, bool is_high)
{
	unsigned count = components(bits);

	if (plumb_sass_get(bits, 79, 2))
		return 1;
	if (is_high)
		return count > 2 ? count - 2 : 0;
	return count > 2 ? 2 : count;
}

/* A line, a buffer, an array of lines, a plane, an array of planes, a volume. */
static unsigned
surface_place(const struct plumb_sass_bits *bits)
{
	static const uint8_t of_kind[8] = { 1, 1, 2, 2, 3, 3, 1, 1 };

	return of_kind[plumb_sass_get(bits, 61, 3)];
}

static unsigned
surface_atomic(const struct plumb_sass_bits *bits)
{
	static const uint8_t registers[8] = { 1, 1, 2, 1, 1, 2, 2, 1 };

	return registers[plumb_sass_get(bits, 73, 3)];
}

unsigned
plumb_sass_texture_count(unsigned architecture, const struct plumb_sass_op *op,
                         const struct plumb_sass_bits *bits, unsigned rule)
{
	unsigned count[2];

	switch (rule) {
	case PLUMB_SASS_TEXELS:
	case PLUMB_SASS_TEXELS_HIGH:
		return texels(bits, rule == PLUMB_SASS_TEXELS_HIGH);
	case PLUMB_SASS_TEXTURE_FIRST:
	case PLUMB_SASS_TEXTURE_SECOND:
		count_parameters(architecture, op, bits, count);
		return count[rule == PLUMB_SASS_TEXTURE_SECOND];
	case PLUMB_SASS_FETCH_HANDLE: /* it needs no sampler */
		return architecture >= 120 ? 1 : 2;
	case PLUMB_SASS_PLACE:
		return surface_place(bits);
	case PLUMB_SASS_COMPONENTS:
		return components(bits);
	case PLUMB_SASS_SURFACE_ATOMIC:
		return surface_atomic(bits);
	case PLUMB_SASS_SURFACE_PAIR:
		return 2 * surface_atomic(bits);
	default:
		return 1;
	}
}
