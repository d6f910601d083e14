/* SPDX-License-Identifier: Apache-2.0 */
/* Which name a cause has: strides by way of what compilers make of addresses, and what is not said.
 * Each of these was said wrong of code that nvcc made of a real kernel. */
#include "slice_code.h"

/* The size of an element is in a register; it is the same on all ways, or not. */
static void
test_size_in_a_register(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "NUM R5 = #4 !4", "IMAD R2 = *R0, *R5 ?0 !4", "LDG R8 = [R2] >1 w4",
	     "FADD R3 = R8 ?1", "EXIT");
	sample(4, PLUMB_REASON_LONG, 50);
	slice_it();
	assert_string_equal(top_of(4)->named->id, "latency-chain");
	CODE("TID R0 = >0", "NUM R5 = #4 !4", "@P0 BRA ^on", "NUM R5 = #8 !4",
	     "on: IMAD R2 = *R0, *R5 ?0 !4", "LDG R8 = [R2] >1 w4", "FADD R3 = R8 ?1", "EXIT");
	sample(6, PLUMB_REASON_LONG, 50);
	slice_it();
	assert_string_equal(top_of(6)->named->id, "uncoalesced");
	assert_non_null(strstr(top_of(6)->evidence, "run time"));
}

static uint32_t
bytes_apart(const char *first, const char *second)
{
	const char *text;

	CODE("TID R0 = >0", "MOV R9 = R0 ?0 !4", first, second, "LDG R8 = [R2] >1 w4",
	     "FADD R3 = R8 ?1", "EXIT");
	sample(5, PLUMB_REASON_LONG, 50);
	slice_it();
	text = strstr(top_of(5)->evidence, "loads, ");
	return text ? (uint32_t)atoi(text + 7) : 0;
}

/* A warp's lanes are 32 numbers in a row that begin at a multiple of 32. */
static void
test_masks_and_shifts(void **state)
{
	(void)state;
	assert_int_equal(bytes_apart("AND R4 = R9, #31 !4", "SHL R2 = *R4, #5 !4"), 32);
	assert_int_equal(bytes_apart("AND R4 = R9, #255 !4", "SHL R2 = *R4, #5 !4"), 32);
	assert_int_equal(bytes_apart("SHL R4 = *R9, #7 !4", "SHR R2 = *R4, #1 !4"), 64);
	/* All lanes have the same number of the warp, so they load one place. */
	assert_int_equal(bytes_apart("SHR R4 = *R9, #5 !4", "SHL R2 = *R4, #5 !4"), 0);
	assert_string_equal(top_of(5)->named->id, "latency-chain");
	assert_int_equal(bytes_apart("AND R4 = R9, #4064 !4", "SHL R2 = *R4, #5 !4"), 0);
	/* Eight lanes in a row, four times: no stride. */
	assert_int_equal(bytes_apart("AND R4 = R9, #7 !4", "SHL R2 = *R4, #5 !4"), 0);
	assert_int_equal(bytes_apart("SHR R4 = *R9, #2 !4", "SHL R2 = *R4, #5 !4"), 0);
}

static void
test_row_of_threads(void **state)
{
	(void)state;
	CODE("ROW R0 = >0", "TID R1 = >0", "IMAD R2 = *R0, #4096 ?0 !4",
	     "IMAD R3 = *R1, #64, R2 !4", "LDG R8 = [R3] >1 w4", "FADD R4 = R8 ?1", "EXIT");
	sample(5, PLUMB_REASON_LONG, 50);
	slice_it();
	assert_non_null(strstr(top_of(5)->evidence, "64 bytes apart"));
}

/* What all lanes load from one place is the same in all of them: a table of pointers. */
static void
test_pointer_that_lanes_share(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "top: LDG R4 = [UR6] >1 w8", "IMAD R2 = *R0, #64, R4 ?0 ?1 !4",
	     "LDG R8 = [R2] >2 w4", "FADD R3 = R8 ?2", "@P0 BRA ^top", "EXIT");
	sample(2, PLUMB_REASON_LONG, 50);
	sample(4, PLUMB_REASON_LONG, 50);
	slice_it();
	assert_string_equal(top_of(2)->named->id, "pointer-indirection");
	assert_string_equal(top_of(4)->named->id, "uncoalesced");
	assert_non_null(strstr(top_of(4)->evidence, "64 bytes apart"));
}

/* A binary search: what was loaded selects where the next load is. */
static void
test_address_that_is_selected(void **state)
{
	(void)state;
	CODE("top: LDG R4 = [R2] >1 w4", "ISETP P1 = R4, R9 ?1 !8", "LOP R2 = R2, P1 !4",
	     "@P0 BRA ^top", "EXIT");
	sample(1, PLUMB_REASON_LONG, 50);
	slice_it();
	assert_string_equal(top_of(1)->named->id, "pointer-indirection");
}

static const char *
name_of_two(const char *stride)
{
	CODE("TID R0 = >0", stride, "LDG R8 = [R2] >1 w4", "LDG R9 = [R2+4] >2 w4",
	     "FADD R3 = R8 ?1", "EXIT");
	sample(4, PLUMB_REASON_LONG, 50);
	slice_it();
	return top_of(4)->named->id;
}

/* One access can have two neighbours' data only if its address is a multiple of its width. */
static void
test_what_can_be_wider(void **state)
{
	(void)state;
	assert_string_equal(name_of_two("IMAD R2 = *R0, #8 ?0 !4"), "missed-vectorisation");
	/* A stencil, where the lane beside it has the other value; and a struct of three. */
	assert_string_equal(name_of_two("IMAD R2 = *R0, #4 ?0 !4"), "latency-chain");
	assert_string_equal(name_of_two("IMAD R2 = *R0, #12 ?0 !4"), "uncoalesced");
}

/* An array of the thread is no spill: no store and load have one slot. */
static void
test_array_of_a_thread(void **state)
{
	(void)state;
	CODE("STL [R1], R7", "STL [R1+4], R7", "LDL R2 = [R1] >0", "FADD R3 = R2 ?0",
	     "LDL R5 = [R4] >0", "FADD R6 = R5 ?0", "EXIT");
	sample(3, PLUMB_REASON_LONG, 50);
	sample(5, PLUMB_REASON_LONG, 50);
	slice_it();
	assert_string_equal(top_of(3)->named->id, "spill");
	assert_string_equal(top_of(5)->named->id, "local-array");
}

/* A store has no result that somebody could wait for. */
static void
test_registers_of_a_store(void **state)
{
	(void)state;
	CODE("STG [UR4:2] R9 >0s w4", "MOV R9 = R7 ?0", "EXIT");
	sample(1, PLUMB_REASON_LONG, 50);
	slice_it();
	assert_int_equal(top_of(1)->kind, PLUMB_CAUSE_SYNC);
	assert_null(strstr(top_of(1)->evidence, "result"));
	assert_non_null(strstr(top_of(1)->evidence, "written again before"));
}

static void
test_division_of_integers(void **state)
{
	(void)state;
	CODE("F2F R2 = R1 >0", "MUFU R3 = R2 ?0 >0", "IADD R3 = R3, #268435454 ?0 !4",
	     "F2F R4 = R3 >1", "IMAD R5 = *R4, *R6 ?1", "EXIT");
	sample(1, PLUMB_REASON_SHORT, 50);
	sample(2, PLUMB_REASON_SHORT, 50);
	sample(4, PLUMB_REASON_SHORT, 50);
	slice_it();
	assert_string_equal(top_of(1)->named->id, "integer-division");
	assert_string_equal(top_of(2)->named->id, "integer-division");
	assert_string_equal(top_of(4)->named->id, "integer-division");
	/* Conversions alone are none. */
	CODE("F2F R2 = R1 >0", "FADD R3 = R2 ?0 !4", "F2F R4 = R3 >1", "IADD R5 = R4 ?1", "EXIT");
	sample(3, PLUMB_REASON_SHORT, 50);
	slice_it();
	assert_string_equal(top_of(3)->named->id, "scalar-conversion");
}

static struct plumb_stall *
static_stall(uint32_t at, uint32_t kind)
{
	for (uint32_t i = 0; i < slice.stall_count; i++)
		if (slice.stalls[i].place.insn == at && slice.stalls[i].causes->kind == kind)
			return &slice.stalls[i];
	return NULL;
}

/* A wait that the hardware counts at the next instruction, in a loop: each copy is named once. */
static void
test_copies_are_named_once(void **state)
{
	(void)state;
	CODE("top: LDGSTS [R2:2] R4 >0s", "LDGSTS [R6:2] R8 >0s", "WAIT ?5", "BAR b0",
	     "IADD R9 = R9, #1 !4", "@P0 BRA ^top", "EXIT");
	sample(3, PLUMB_REASON_LONG, 100);
	slice_it();
	assert_int_equal(stall_at(3)->cause_count, 2);
	assert_true(stall_at(3)->causes[0].place.insn != stall_at(3)->causes[1].place.insn);
}

/* Without samples, a store whose lanes are far apart is a cause, though nobody waits for it. */
static void
test_store_without_samples(void **state)
{
	struct plumb_stall *stall;

	(void)state;
	CODE("TID R0 = >0", "IMAD R2 = *R0, #4096 ?0 !4", "STG [R2] R9 w4", "EXIT");
	slice_it();
	stall = static_stall(2, PLUMB_CAUSE_THROTTLE);
	assert_non_null(stall);
	assert_string_equal(stall->causes->named->id, "uncoalesced");
	CODE("TID R0 = >0", "IMAD R2 = *R0, #4 ?0 !4", "STG [R2] R9 w4", "EXIT");
	slice_it();
	assert_null(static_stall(2, PLUMB_CAUSE_THROTTLE));
}

/* The slow way of a division is called seldom: without samples, it is not the cause. */
static void
test_slow_way_is_seldom(void **state)
{
	struct plumb_stall *fast, *slow;

	(void)state;
	CODE("top: DFMA R2:2 = R2:2, R4:2 !8", "DFMA R2:2 = R2:2, R6:2 !8", "@P1 BRA ^fast",
	     "CALL ^slow", "fast: IADD R9 = R9, #1 !4", "@P0 BRA ^top", "EXIT",
	     "slow: DFMA R2:2 = R2:2, R4:2 !8", "DFMA R2:2 = R2:2, R6:2 !8", "RET");
	slice_it();
	fast = static_stall(1, PLUMB_CAUSE_DATA);
	slow = static_stall(8, PLUMB_CAUSE_DATA);
	assert_non_null(fast);
	assert_non_null(slow);
	assert_true(fast->samples >= 10 * slow->samples);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_size_in_a_register),
		cmocka_unit_test(test_masks_and_shifts),
		cmocka_unit_test(test_row_of_threads),
		cmocka_unit_test(test_pointer_that_lanes_share),
		cmocka_unit_test(test_address_that_is_selected),
		cmocka_unit_test(test_what_can_be_wider),
		cmocka_unit_test(test_array_of_a_thread),
		cmocka_unit_test(test_registers_of_a_store),
		cmocka_unit_test(test_division_of_integers),
		cmocka_unit_test(test_copies_are_named_once),
		cmocka_unit_test(test_store_without_samples),
		cmocka_unit_test(test_slow_way_is_seldom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
