/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unwind tables made by hand: every rule that the decoder knows, at every instruction, and what it
 * must refuse. Walks on real stacks are in tests/e2e/test_native_walk.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "collect/stack/eh_frame.h"

#define CODE 0x100000u /* where the function lies, from the tables on */
#define SIZE 0x1000u

/* ---- an image: header with an index of one function, a CIE, an FDE ---- */

struct image {
	uint8_t bytes[1024];
	size_t used, cie, fde;
	struct plumb_eh_image open;
};

static void
put(struct image *m, const void *bytes, size_t count)
{
	assert_true(m->used + count <= sizeof m->bytes);
	memcpy(m->bytes + m->used, bytes, count);
	m->used += count;
}

static void
put1(struct image *m, unsigned value)
{
	uint8_t byte = (uint8_t)value;
	put(m, &byte, 1);
}

static void
put4(struct image *m, uint32_t value)
{
	put(m, &value, 4);
}

static void
set4(struct image *m, size_t at, size_t value)
{
	uint32_t four = (uint32_t)value;
	memcpy(m->bytes + at, &four, 4);
}

/* Ends the record that begins at AT. */
static void
end_record(struct image *m, size_t at)
{
	while ((m->used - at) % 8)
		put1(m, 0);
	set4(m, at, m->used - at - 4);
}

/* An image with AUGMENTATION ("zR", "zRS") and the FDE's PROGRAM; the CIE says CFA = sp + 8, return
 * address at CFA - 8. */
static void
make(struct image *m, const char *augmentation, const void *program, size_t bytes)
{
	static const uint8_t initial[] = { 0x0c, 7, 8, 0x90, 1 };
	*m = (struct image){ 0 };
	put(m, "\x01\x1b\x03\x3b", 4); /* pcrel sdata4, udata4, datarel sdata4 */
	put4(m, 0);
	put4(m, 1);
	put4(m, CODE);
	put4(m, 0);
	m->cie = m->used;
	put4(m, 0);
	put4(m, 0);
	put1(m, 1);
	put(m, augmentation, strlen(augmentation) + 1);
	put(m, "\x01\x78\x10", 3); /* code ×1, data ×-8, the return address is r16 */
	if (*augmentation)
		put(m, "\x01\x1b", 2);
	put(m, initial, sizeof initial);
	end_record(m, m->cie);
	m->fde = m->used;
	put4(m, 0);
	put4(m, (uint32_t)(m->used - m->cie));
	put4(m, (uint32_t)(CODE - m->used));
	put4(m, SIZE);
	put1(m, 0);
	put(m, program, bytes);
	end_record(m, m->fde);
	put4(m, 0);
	set4(m, 4, m->cie - 4);
	set4(m, 16, m->fde);
}

static bool
open_image(struct image *m)
{
	struct plumb_eh_range all = { m->bytes, m->bytes + m->used };
	return plumb_eh_open(&m->open, m->bytes, m->used, &all, 1);
}

static uintptr_t
at(const struct image *m, uintptr_t offset)
{
	return (uintptr_t)m->bytes + CODE + offset;
}

static bool
same(const struct plumb_eh_row *a, const struct plumb_eh_row *b)
{
	return a->kind == b->kind && a->base == b->base && a->save == b->save &&
	       a->deref == b->deref && a->link == b->link && a->in_register == b->in_register &&
	       a->internal == b->internal && a->cfa == b->cfa && a->at == b->at && a->fp == b->fp &&
	       a->ra == b->ra;
}

/* The row at OFFSET of the function, with and without the index, and through a word. */
static struct plumb_eh_row
row_at(struct image *m, uintptr_t offset)
{
	struct plumb_eh_row row, linear, again = { 0 };
	assert_true(open_image(m));
	bool found = plumb_eh_decode(&m->open, at(m, offset), &row);
	m->open.index = NULL;
	assert_int_equal(plumb_eh_decode(&m->open, at(m, offset), &linear), found);
	assert_true(same(&row, &linear));
	uint64_t word = plumb_eh_pack(&row);
	if (word) {
		plumb_eh_unpack(word, &again);
		assert_true(same(&row, &again));
	}
	assert_int_equal(found, row.kind != PLUMB_EH_NONE);
	return row;
}

#define MAKE(m, augmentation, ...)                                                                 \
	do {                                                                                       \
		static const uint8_t program[] = { __VA_ARGS__ };                                  \
		make(m, augmentation, program, sizeof program);                                    \
	} while (0)

static void
assert_frame(struct plumb_eh_row row, unsigned base, int cfa, int save, int fp)
{
	assert_int_equal(row.kind, PLUMB_EH_FRAME);
	assert_int_equal(row.base, base);
	assert_int_equal(row.cfa, cfa);
	assert_int_equal(row.save, save);
	assert_int_equal(row.fp, fp);
	assert_int_equal(row.ra, -8);
}

/* ---- rules ---- */

/* push %rbp; mov %rsp,%rbp; … pop %rbp; ret; and a second part as it was before the end */
static void
test_frame_pointer(void **state)
{
	struct image m;
	(void)state;
	MAKE(&m, "zR", 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 200, 0x0a, 0x0c, 7, 8, 0xc6,
	     0x41, 0x0b, 0x03, 0, 1, 0x0e, 32);
	assert_frame(row_at(&m, 0), 7, 8, PLUMB_EH_FP_SAME, 0);
	assert_frame(row_at(&m, 1), 7, 16, PLUMB_EH_FP_AT_CFA, -16);
	assert_frame(row_at(&m, 3), 7, 16, PLUMB_EH_FP_AT_CFA, -16);
	assert_frame(row_at(&m, 4), 6, 16, PLUMB_EH_FP_AT_CFA, -16);
	assert_frame(row_at(&m, 203), 6, 16, PLUMB_EH_FP_AT_CFA, -16);
	assert_frame(row_at(&m, 204), 7, 8, PLUMB_EH_FP_SAME, 0);
	assert_frame(row_at(&m, 205), 6, 16, PLUMB_EH_FP_AT_CFA, -16);
	assert_frame(row_at(&m, 461), 6, 32, PLUMB_EH_FP_AT_CFA, -16);
	assert_frame(row_at(&m, SIZE - 1), 6, 32, PLUMB_EH_FP_AT_CFA, -16);
}

static void
test_bounds_of_a_function(void **state)
{
	struct image m;
	struct plumb_eh_row row;
	uintptr_t start, end;
	(void)state;
	MAKE(&m, "zR", 0);
	assert_true(open_image(&m));
	assert_false(plumb_eh_decode(&m.open, at(&m, 0) - 1, &row));
	assert_false(plumb_eh_decode(&m.open, at(&m, SIZE), &row));
	assert_true(plumb_eh_extent(&m.open, at(&m, 5), &start, &end));
	assert_int_equal(start, at(&m, 0));
	assert_int_equal(end, at(&m, SIZE));
}

/* An operand of two bytes, an offset that is signed, all forms of "saved at". */
static void
test_wide_operands(void **state)
{
	struct image m;
	(void)state;
	MAKE(&m, "zR", 0x0e, 0x80, 0x08, 0x05, 6, 0x80, 0x01);
	assert_frame(row_at(&m, 9), 7, 1024, PLUMB_EH_FP_AT_CFA, -1024);
	MAKE(&m, "zR", 0x12, 6, 0x7c, 0x11, 6, 3);
	assert_frame(row_at(&m, 9), 6, 32, PLUMB_EH_FP_AT_CFA, -24);
	MAKE(&m, "zR", 0x13, 0x7e, 0x2f, 6, 2);
	assert_frame(row_at(&m, 9), 7, 16, PLUMB_EH_FP_AT_CFA, 16);
	MAKE(&m, "zR", 0x86, 2, 0x06, 6, 0x2e, 48);
	assert_frame(row_at(&m, 9), 7, 8, PLUMB_EH_FP_SAME, 0);
	MAKE(&m, "zR", 0x86, 2, 0x08, 6);
	assert_frame(row_at(&m, 9), 7, 8, PLUMB_EH_FP_SAME, 0);
	MAKE(&m, "zR", 0x09, 6, 3);
	assert_frame(row_at(&m, 9), 7, 8, PLUMB_EH_FP_LOST, 0);
	MAKE(&m, "zR", 0x14, 6, 3, 0x16, 3, 2, 0x76, 0);
	assert_frame(row_at(&m, 9), 7, 8, PLUMB_EH_FP_LOST, 0);
}

/* A frame larger than a word can say is decoded each time. */
static void
test_large_frame(void **state)
{
	struct image m;
	(void)state;
	MAKE(&m, "zR", 0x0e, 0x88, 0x80, 0x80, 0x01);
	struct plumb_eh_row row = row_at(&m, 0);
	assert_frame(row, 7, 0x200008, PLUMB_EH_FP_SAME, 0);
	assert_int_equal(plumb_eh_pack(&row), 0);
}

/* The frame of a function that aligns its stack anew: CFA = *(rbp - 40), rbp at rbp + 0. */
static void
test_realigned(void **state)
{
	struct image m;
	(void)state;
	MAKE(&m, "zR", 0x44, 0x0c, 10, 0, 0x44, 0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x58, 0x06);
	struct plumb_eh_row row = row_at(&m, 8);
	assert_int_equal(row.base, 6);
	assert_true(row.deref);
	assert_int_equal(row.at, -40);
	assert_int_equal(row.cfa, 0);
	assert_int_equal(row.save, PLUMB_EH_FP_AT_FP);
	assert_int_equal(row.fp, 0);
	row = row_at(&m, 4);
	assert_int_equal(row.base, 10);
	assert_int_equal(row.cfa, 0);
	assert_false(row.deref);
}

/* The procedure linkage table: 16 bytes an entry, where 8 more are on the stack from its byte 11
 * on. */
static void
test_linkage_table(void **state)
{
	struct image m;
	(void)state;
	MAKE(&m, "zR", 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
	for (uintptr_t offset = 0; offset < 64; offset++)
		assert_frame(row_at(&m, offset), 7, (at(&m, offset) & 15) >= 11 ? 16 : 8,
		             PLUMB_EH_FP_SAME, 0);
}

static void
test_ends_and_signals(void **state)
{
	struct image m;
	struct plumb_eh_row row;
	(void)state;
	MAKE(&m, "zR", 0x07, 16);
	assert_int_equal(row_at(&m, 3).kind, PLUMB_EH_END);
	/* glibc's trampoline: sp at sp + 160, rbp at sp + 120, the address at sp + 168 */
	MAKE(&m, "zRS", 0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 6, 3, 0x77, 0xf8, 0, 0x10, 16, 3, 0x77,
	     0xa8, 1);
	row = row_at(&m, 0);
	assert_int_equal(row.kind, PLUMB_EH_SIGNAL);
	assert_int_equal(row.cfa, 160);
	assert_int_equal(row.fp, 120);
	assert_int_equal(row.ra, 168);
	MAKE(&m, "zR", 0x41, 0x09, 16, 2); /* pop %rcx; jmp *%rcx */
	row = row_at(&m, 1);
	assert_true(row.in_register);
	assert_int_equal(row.ra, 2);
	assert_int_equal(plumb_eh_pack(&row), 0);
}

/* Where a register is kept that rows do not tell of. */
static void
test_other_registers(void **state)
{
	struct image m;
	bool saved;
	int32_t offset;
	(void)state;
	MAKE(&m, "zR", 0x41, 0x83, 2, 0x41, 0xc3, 0x41, 0x09, 3, 12);
	assert_true(open_image(&m));
	assert_true(plumb_eh_saved(&m.open, at(&m, 0), 3, &saved, &offset) && !saved);
	assert_true(plumb_eh_saved(&m.open, at(&m, 1), 3, &saved, &offset) && saved);
	assert_int_equal(offset, -16);
	assert_true(plumb_eh_saved(&m.open, at(&m, 2), 3, &saved, &offset) && !saved);
	assert_false(plumb_eh_saved(&m.open, at(&m, 3), 3, &saved, &offset));
	assert_true(plumb_eh_saved(&m.open, at(&m, 3), 12, &saved, &offset) && !saved);
}

/* ---- expressions ---- */

static void
assert_value(const char *expression, size_t bytes, int kind, uint32_t reg, int64_t where,
             int64_t add)
{
	struct plumb_eh_value value;
	assert_true(plumb_eh_evaluate((const uint8_t *)expression, bytes, 100, &value));
	assert_int_equal(value.kind, kind);
	assert_int_equal(value.reg, reg);
	assert_int_equal(value.at, where);
	assert_int_equal(value.add, add);
}
#define VALUE(text, kind, reg, where, add)                                                         \
	assert_value(text, sizeof text - 1, PLUMB_EH_##kind, reg, where, add)

static void
test_expressions(void **state)
{
	struct plumb_eh_value value;
	(void)state;
	VALUE("\x08\xff", NUMBER, 0, 0, 255);
	VALUE("\x09\xff", NUMBER, 0, 0, -1);
	VALUE("\x0b\xfe\xff", NUMBER, 0, 0, -2);
	VALUE("\x0d\xfd\xff\xff\xff", NUMBER, 0, 0, -3);
	VALUE("\x0e\x01\0\0\0\0\0\0\0", NUMBER, 0, 0, 1);
	VALUE("\x10\x80\x01\x11\x7f\x1e", NUMBER, 0, 0, -128);
	VALUE("\x37\x32\x1c", NUMBER, 0, 0, 5);
	VALUE("\x37\x32\x16\x1c", NUMBER, 0, 0, -5);
	VALUE("\x33\x34\x14\x13\x12\x22\x22", NUMBER, 0, 0, 11);
	VALUE("\x3f\x33\x21\x32\x27\x31\x25", NUMBER, 0, 0, 6);
	VALUE("\x77\x08\x23\x10", REGISTER, 7, 0, 24);
	VALUE("\x92\x07\x08\x96", REGISTER, 7, 0, 8);
	VALUE("\x77\x78\x06\x23\x08", MEMORY, 7, -8, 8);
	VALUE("\x38\x77\0\x22", REGISTER, 7, 0, 8);
	VALUE("\x80\x05", NUMBER, 0, 0, 105);
	static const char *const wrong[] = {
		"",         "\x22",         "\x31\x22", "\x06",
		"\x31\x06", "\x77",         "\x9c",     "\x77\x08\x77\x08\x22",
		"\x0e\x01", "\x77\x08\x1a", "\x10\x80", "\x92\x40\x01"
	};
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_false(
			plumb_eh_evaluate((const uint8_t *)wrong[i], strlen(wrong[i]), 0, &value));
	uint8_t deep[64];
	memset(deep, 0x31, sizeof deep);
	assert_false(plumb_eh_evaluate(deep, sizeof deep, 0, &value));
}

/* ---- what is refused ---- */

static void
test_refusals(void **state)
{
	struct image m;
	(void)state;
	MAKE(&m, "zR", 0x3f); /* no such instruction */
	assert_int_equal(row_at(&m, 0).kind, PLUMB_EH_NONE);
	MAKE(&m, "zR", 0x0b); /* a state that was not remembered */
	assert_int_equal(row_at(&m, 0).kind, PLUMB_EH_NONE);
	MAKE(&m, "zR", 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a);
	assert_int_equal(row_at(&m, 0).kind, PLUMB_EH_NONE);
	MAKE(&m, "zR", 0x0f, 0xff, 0x7f); /* a block beyond the end */
	assert_int_equal(row_at(&m, 0).kind, PLUMB_EH_NONE);
	MAKE(&m, "zR", 0x0f, 1, 0x31); /* a CFA that is a number */
	assert_int_equal(row_at(&m, 0).kind, PLUMB_EH_NONE);
	MAKE(&m, "zR", 0x0d, 99);
	assert_int_equal(row_at(&m, 0).kind, PLUMB_EH_NONE);
	MAKE(&m, "zR", 0x10, 16, 2, 0x77, 0); /* a return address at an expression */
	assert_int_equal(row_at(&m, 0).kind, PLUMB_EH_NONE);
	MAKE(&m, "zX", 0);
	assert_int_equal(row_at(&m, 0).kind, PLUMB_EH_NONE);
	MAKE(&m, "eh", 0);
	assert_int_equal(row_at(&m, 0).kind, PLUMB_EH_NONE);
}

/* Cut anywhere, an image has its row or none. */
static void
test_cut_short(void **state)
{
	struct image m;
	struct plumb_eh_row whole, row;
	(void)state;
	MAKE(&m, "zR", 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6);
	whole = row_at(&m, 8);
	for (size_t size = m.used; size--;) {
		m.used = size;
		if (!open_image(&m))
			continue;
		if (plumb_eh_decode(&m.open, at(&m, 8), &row))
			assert_true(same(&row, &whole));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_frame_pointer),
		cmocka_unit_test(test_bounds_of_a_function),
		cmocka_unit_test(test_wide_operands),
		cmocka_unit_test(test_large_frame),
		cmocka_unit_test(test_realigned),
		cmocka_unit_test(test_linkage_table),
		cmocka_unit_test(test_ends_and_signals),
		cmocka_unit_test(test_other_registers),
		cmocka_unit_test(test_expressions),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_cut_short),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
