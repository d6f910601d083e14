/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions in unwind tables. They are few and alike (PLT stubs, frames that were aligned
 * anew, signal frames, hand-written assembly), so they are solved for the one instruction that is
 * asked about: arithmetic on numbers is done here, and what remains is a register or a word in
 * memory, plus a number.
 */
#include "collect/stack/eh_frame.h"

uint64_t
plumb_eh_fixed(struct plumb_eh_cursor *cursor, unsigned bytes)
{
	uint64_t value = 0;
	if ((size_t)(cursor->end - cursor->at) < bytes) {
		cursor->bad = true;
		cursor->at = cursor->end;
		return 0;
	}
	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)cursor->at[i] << 8 * i;
	cursor->at += bytes;
	return value;
}

static uint64_t
leb(struct plumb_eh_cursor *cursor, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;
	do {
		byte = (uint8_t)plumb_eh_fixed(cursor, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= UINT64_MAX << shift;
	return value;
}

uint64_t
plumb_eh_uleb(struct plumb_eh_cursor *cursor)
{
	return leb(cursor, false);
}

int64_t
plumb_eh_sleb(struct plumb_eh_cursor *cursor)
{
	return (int64_t)leb(cursor, true);
}

enum { DEPTH = 16 };

struct machine {
	struct plumb_eh_cursor code;
	uintptr_t pc;
	struct plumb_eh_value stack[DEPTH];
	unsigned depth;
	bool bad;
};

static void
push(struct machine *m, struct plumb_eh_value value)
{
	if (m->depth == DEPTH)
		m->bad = true;
	else
		m->stack[m->depth++] = value;
}

static struct plumb_eh_value
pop(struct machine *m)
{
	if (m->depth)
		return m->stack[--m->depth];
	m->bad = true;
	return (struct plumb_eh_value){ .kind = PLUMB_EH_NUMBER };
}

static void
push_number(struct machine *m, int64_t number)
{
	push(m, (struct plumb_eh_value){ .kind = PLUMB_EH_NUMBER, .add = number });
}

static int64_t
pop_number(struct machine *m)
{
	struct plumb_eh_value value = pop(m);
	if (value.kind != PLUMB_EH_NUMBER)
		m->bad = true;
	return value.add;
}

static int64_t
wrap(uint64_t value)
{
	return (int64_t)value;
}

/* The instruction pointer is a number here: the row is for one instruction only. */
static void
push_register(struct machine *m, uint64_t reg, int64_t add)
{
#if defined(__x86_64__)
	if (reg == PLUMB_EH_RA) {
		push_number(m, wrap((uint64_t)m->pc + (uint64_t)add));
		return;
	}
#endif
	if (reg > 31)
		m->bad = true;
	push(m, (struct plumb_eh_value){
			.kind = PLUMB_EH_REGISTER, .reg = (uint32_t)reg, .add = add });
}

static void
dereference(struct machine *m)
{
	struct plumb_eh_value value = pop(m);
	if (value.kind != PLUMB_EH_REGISTER)
		m->bad = true;
	push(m,
	     (struct plumb_eh_value){ .kind = PLUMB_EH_MEMORY, .reg = value.reg, .at = value.add });
}

static void
pick(struct machine *m, uint64_t from_top)
{
	if (from_top >= m->depth)
		m->bad = true;
	else
		push(m, m->stack[m->depth - 1 - from_top]);
}

static void
add_number(struct machine *m, uint64_t number)
{
	struct plumb_eh_value value = pop(m);
	value.add = wrap((uint64_t)value.add + number);
	push(m, value);
}

/* Sums may have one operand that is no number. */
static void
add_values(struct machine *m)
{
	struct plumb_eh_value top = pop(m);
	if (top.kind == PLUMB_EH_NUMBER) {
		add_number(m, (uint64_t)top.add);
		return;
	}
	top.add = wrap((uint64_t)top.add + (uint64_t)pop_number(m));
	push(m, top);
}

/* Operations on two numbers, by DW_OP. False: another operation. */
static bool
combine_numbers(uint8_t op, int64_t a, int64_t b, int64_t *result)
{
	uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
	switch (op) {
	case 0x1a: /* and */
		*result = wrap(ua & ub);
		return true;
	case 0x1e: /* mul */
		*result = wrap(ua * ub);
		return true;
	case 0x21: /* or */
		*result = wrap(ua | ub);
		return true;
	case 0x24: /* shl */
		*result = ub < 64 ? wrap(ua << ub) : 0;
		return true;
	case 0x25: /* shr */
		*result = ub < 64 ? wrap(ua >> ub) : 0;
		return true;
	case 0x26: /* shra */
		*result = a >> (ub < 63 ? ub : 63);
		return true;
	case 0x27: /* xor */
		*result = wrap(ua ^ ub);
		return true;
	case 0x29: /* eq */
		*result = a == b;
		return true;
	case 0x2a: /* ge */
		*result = a >= b;
		return true;
	case 0x2b: /* gt */
		*result = a > b;
		return true;
	case 0x2c: /* le */
		*result = a <= b;
		return true;
	case 0x2d: /* lt */
		*result = a < b;
		return true;
	case 0x2e: /* ne */
		*result = a != b;
		return true;
	default:
		return false;
	}
}

static void
calculate_number(struct machine *m, uint8_t op)
{
	int64_t result = 0, b = pop_number(m), a = pop_number(m);
	if (!combine_numbers(op, a, b, &result))
		m->bad = true;
	push_number(m, result);
}

/* Constants in the code: 1, 2, 4, 8 bytes, unsigned and signed by turns. */
static void
push_constant(struct machine *m, uint8_t op)
{
	unsigned bytes = 1u << (op - 0x08) / 2, unused = 64 - 8 * bytes;
	uint64_t value = plumb_eh_fixed(&m->code, bytes);
	if (op & 1)
		value = (uint64_t)(wrap(value << unused) >> unused);
	push_number(m, wrap(value));
}

static void
swap(struct machine *m)
{
	struct plumb_eh_value b = pop(m), a = pop(m);
	push(m, b);
	push(m, a);
}

static void
step_once(struct machine *m)
{
	uint8_t op = (uint8_t)plumb_eh_fixed(&m->code, 1);
	uint64_t reg;
	if (op >= 0x08 && op <= 0x0f) {
		push_constant(m, op);
		return;
	}
	if (op >= 0x30 && op <= 0x4f) { /* lit0 … lit31 */
		push_number(m, op - 0x30);
		return;
	}
	if (op >= 0x70 && op <= 0x8f) { /* breg0 … breg31 */
		push_register(m, op - 0x70u, plumb_eh_sleb(&m->code));
		return;
	}
	switch (op) {
	case 0x06:
		dereference(m);
		return;
	case 0x10:
		push_number(m, wrap(plumb_eh_uleb(&m->code)));
		return;
	case 0x11:
		push_number(m, plumb_eh_sleb(&m->code));
		return;
	case 0x12: /* dup */
		pick(m, 0);
		return;
	case 0x13: /* drop */
		pop(m);
		return;
	case 0x14: /* over */
		pick(m, 1);
		return;
	case 0x16:
		swap(m);
		return;
	case 0x1c: /* minus */
		add_number(m, 0 - (uint64_t)pop_number(m));
		return;
	case 0x22:
		add_values(m);
		return;
	case 0x23: /* plus_uconst */
		add_number(m, plumb_eh_uleb(&m->code));
		return;
	case 0x92: /* bregx */
		reg = plumb_eh_uleb(&m->code);
		push_register(m, reg, plumb_eh_sleb(&m->code));
		return;
	case 0x96: /* nop */
		return;
	default:
		calculate_number(m, op);
	}
}

bool
plumb_eh_evaluate(const uint8_t *expression, size_t bytes, uintptr_t pc,
                  struct plumb_eh_value *value)
{
	struct machine m = { .code = { expression, expression + bytes, false }, .pc = pc };
	while (!m.bad && !m.code.bad && m.code.at < m.code.end)
		step_once(&m);
	*value = pop(&m);
	return !m.bad && !m.code.bad;
}
