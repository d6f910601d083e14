/* SPDX-License-Identifier: Apache-2.0 */
/* The slicer where one producer is not all of the answer: late warps that wait, barriers in memory,
 * queues, guards, what is surely there in time, bytes, and samples without a place. */
#include <math.h>

#include "slice_code.h"

/* ---- late warps ---- */

/* One warp brings data for the others. It waits at its store, but the load makes it late. */
static void
test_late_warp_that_waits(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "ISETP P0 = R0 ?0 !8", "MOV R6 = R7 !4", "@!P0 LDG R2 = [R4:2] >1",
	     "@!P0 STS [R6], R2 ?1", "BAR b0", "LDS R3 = [R8] >2", "FADD R5 = R3 ?2", "EXIT");
	sample(4, PLUMB_REASON_LONG, 800);
	sample(2, PLUMB_REASON_FIXED, 20);
	sample(6, PLUMB_REASON_BARRIER, 2400);
	slice_it();
	assert_int_equal(top_of(6)->kind, PLUMB_CAUSE_BARRIER);
	assert_int_equal(top_of(6)->place.insn, 3);
	assert_string_equal(top_of(6)->named->id, "barrier-imbalance");
	assert_true(top_of(6)->share > 0.9);
}

/* What the late warp waits for was started before the barrier before: it is late by waiting. */
static void
test_late_by_what_was_before(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >1", "BAR b0", "STS [R6], R7", "BAR b0", "STS [R6+8], R7",
	     "FADD R3 = R2 ?1", "BAR b0", "LDS R9 = [R8] >2", "FADD R5 = R9 ?2", "EXIT");
	sample(5, PLUMB_REASON_LONG, 800);
	sample(7, PLUMB_REASON_BARRIER, 2400);
	slice_it();
	assert_int_equal(top_of(7)->kind, PLUMB_CAUSE_BARRIER);
	assert_int_equal(top_of(7)->place.insn, 5);
}

/* ---- barriers in memory ---- */

/* Two stages, each with a barrier of its own: the wait is for the copy that completes its barrier.
 * The number of a turn in the address does not matter. */
static void
test_copy_that_completes_a_barrier(void **state)
{
	(void)state;
	CODE("UMOV UR4 = #1024", "IADD UR7 = UR4, UR9, #0", "UMOV UR6 = #4096",
	     "UBLKCP [UR6:2], UR16", "UMOV UR11 = #1088", "UMOV UR10 = #8192",
	     "UBLKCP [UR10:2], UR18", "MOV R12 = #1024", "IMAD R14 = *R12, R13, #1",
	     "wait: SYNCS P0 = [R14] >2", "@P0 BRA ^wait ?2", "EXIT");
	sample(10, PLUMB_REASON_LONG, 500);
	slice_it();
	check_causes(10, 3);
	assert_int_equal(top_of(10)->kind, PLUMB_CAUSE_SYNC);
	assert_string_equal(top_of(10)->named->id, "async-depth");
	/* Nothing completes this one but other warps. */
	CODE("UMOV UR7 = #1024", "UMOV UR6 = #4096", "UBLKCP [UR6:2], UR16", "MOV R14 = #1032",
	     "wait: SYNCS P0 = [R14] >2", "@P0 BRA ^wait ?2", "EXIT");
	sample(5, PLUMB_REASON_LONG, 500);
	slice_it();
	check_causes(5, 4);
}

/* ---- queues ---- */

/* The queue is full before the first access of a warp: others fill it, most of all the one whose
 * lanes are far apart. */
static void
test_queue_of_all_warps(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "SHL R2 = *R0, #7 ?0 !4", "SHL R4 = *R0, #2 !4", "STG [R4], R9 w4",
	     "LDG R10 = [R2] >1 w4", "LDG R11 = [R4+4096] >1 w4", "FADD R12 = R10, R11 ?1", "EXIT");
	sample(3, PLUMB_REASON_LOCAL_GLOBAL_THROTTLE, 1000);
	slice_it();
	assert_int_equal(top_of(3)->kind, PLUMB_CAUSE_THROTTLE);
	assert_int_equal(top_of(3)->place.insn, 4);
	assert_string_equal(top_of(3)->named->id, "uncoalesced");
	assert_true(top_of(3)->share > 0.6 && top_of(3)->share < 1);
}

/* ---- guards ---- */

static uint32_t
edges_of(uint32_t insn, struct plumb_slice_edge *edges)
{
	return plumb_slice_edges(&slice, (struct plumb_slice_place){ 0, insn }, edges, 8);
}

/* What was written under a guard is what its lanes have, unless the guard changed meanwhile. */
static void
test_same_guard(void **state)
{
	struct plumb_slice_edge edges[8];

	(void)state;
	CODE("LDG R2 = [R8:2] >0", "NOP ?0 !4", "@P0 FMUL R2 = R9 !4", "@P0 FADD R3 = R2 !4",
	     "EXIT");
	slice_it();
	assert_int_equal(edges_of(3, edges), 1);
	assert_int_equal(edges[0].from.insn, 2);
	/* The other lanes read what was there before. */
	CODE("DFMA R2 = R9 !4", "@P0 FMUL R2 = R10 !4", "@!P0 FADD R3 = R2 !4", "EXIT");
	slice_it();
	assert_int_equal(edges_of(2, edges), 2);
	CODE("DFMA R2 = R9 !4", "@P0 FMUL R2 = R10 !2", "ISETP P0 = R11 !2", "@P0 FADD R3 = R2",
	     "EXIT");
	slice_it();
	assert_int_equal(edges_of(3, edges), 3);
}

/* ---- coverage ---- */

/* Two loads are two, but the reason may say that neither is waited for. */
static void
test_coverage_by_reason(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "LDG R3 = [R6:2] >0", "MUFU R8 = R9 >1",
	     "FFMA R5 = R2, R3, R8 ?0 ?1", "EXIT");
	sample(3, PLUMB_REASON_SHORT, 9);
	slice_it();
	assert_true(slice.coverage == 1);
	sample(3, PLUMB_REASON_LONG, 9);
	slice_it();
	assert_true(slice.coverage == 0);
}

/* Arithmetic is done before a load that was started later; a reason may say otherwise. */
static void
test_hidden_by_what_takes_longer(void **state)
{
	(void)state;
	CODE("FMUL R7 = R9 !2", "MUFU R8 = R9 >1 !2", "FFMA R5 = R7, R8 ?1", "EXIT");
	sample(1, PLUMB_REASON_OTHER, 1);
	slice_it();
	assert_true(slice.coverage == 1);
	sample(2, PLUMB_REASON_FIXED, 5);
	sample(2, PLUMB_REASON_SHORT, 4);
	slice_it();
	check_causes(2, 0);
	assert_true(slice.coverage == 0);
	/* It was started so long ago that it may be there. */
	CODE("MUFU R8 = R9 >1 !15", "NOP !15", "FMUL R7 = R9 !4", "FFMA R5 = R7, R8 ?1", "EXIT");
	sample(1, PLUMB_REASON_OTHER, 1);
	slice_it();
	assert_true(slice.coverage == 0);
}

/* Loads of shared memory come back in order, and sources are read in order; loads of global memory
 * come back as they like. */
static void
test_hidden_by_order(void **state)
{
	(void)state;
	CODE("LDS R2 = [R8] >0", "LDS R3 = [R9] >0", "FADD R4 = R2, R3 ?0", "EXIT");
	sample(0, PLUMB_REASON_OTHER, 1);
	slice_it();
	assert_true(slice.coverage == 1);
	CODE("STG [R8:2], R2 >0s", "STG [R8:2+8], R2 >0s", "MOV R2 = R3 ?0", "EXIT");
	sample(0, PLUMB_REASON_OTHER, 1);
	slice_it();
	assert_true(slice.coverage == 1);
	CODE("LDG R2 = [R8:2] >0 !15", "LDG R3 = [R10:2] >0", "FADD R4 = R2, R3 ?0", "EXIT");
	sample(0, PLUMB_REASON_OTHER, 1);
	slice_it();
	assert_true(slice.coverage == 0);
	/* A way may lead from the first past the second. */
	CODE("LDS R2 = [R8] >0", "@P0 BRA ^over", "LDS R3 = [R9] >0", "over: FADD R4 = R2, R3 ?0",
	     "EXIT");
	sample(0, PLUMB_REASON_OTHER, 1);
	slice_it();
	assert_true(slice.coverage == 0);
}

/* ---- bytes ---- */

/* Each warp streams 2 × 128 bytes; the constant that all blocks load is in a cache. */
static void
test_bytes_of_a_stream(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "S2R R1 = >0", "IADD R2 = R0, R1 ?0 !4", "SHL R2 = *R2, #2 !4",
	     "SHL R3 = *R0, #2 !4", "LDG R4 = [R2] >1 w4", "LDG R5 = [R3] >1 w4",
	     "FADD R6 = R4, R5 ?1", "STG [R2+4096], R6 w4", "EXIT");
	slice_it();
	assert_true(slice.warp_bytes == 256);
	/* In a loop, by a stride, or by data nobody knows. */
	CODE("TID R0 = >0", "S2R R1 = >0", "IADD R2 = R0, R1 ?0 !4", "SHL R2 = *R2, #2 !4",
	     "top: LDG R4 = [R2] >1 w4", "IADD R2 = R2, #4096 ?1 !4", "@P0 BRA ^top", "EXIT");
	slice_it();
	assert_true(isnan(slice.warp_bytes));
	CODE("TID R0 = >0", "S2R R1 = >0", "IADD R2 = R0, R1 ?0 !4", "SHL R2 = *R2, #5 !4",
	     "LDG R4 = [R2] >1 w4", "FADD R6 = R4 ?1", "EXIT");
	slice_it();
	assert_true(isnan(slice.warp_bytes));
	CODE("FADD R6 = R4", "EXIT");
	slice_it();
	assert_true(isnan(slice.warp_bytes));
}

/* An address counts once, because a cache has it the second time. One place for all lanes is a
 * sector, but in a loop there may be many. */
static void
test_bytes_that_count_once(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "S2R R1 = >0", "IADD R2 = R0, R1 ?0 !4", "SHL R2 = *R2, #2 !4",
	     "STG [R2] R6 w4", "STG [R2] R7 w4", "STG [R2+4096] R8 w4", "EXIT");
	slice_it();
	assert_true(slice.warp_bytes == 256);
	CODE("TID R0 = >0", "S2R R1 = >0", "IADD R2 = R0, R1 ?0 !4", "SHL R2 = *R2, #2 !4",
	     "SHL R3 = *R1, #2 !4", "STG [R2] R6 w4", "top: LDG R4 = [R3] >1 w4",
	     "IADD R3 = R3, #4 ?1 !4", "@P0 BRA ^top", "EXIT");
	slice_it();
	assert_true(isnan(slice.warp_bytes));
}

/* ---- samples without a place ---- */

static struct slice_code device;

/* The function that is called has no samples: those without a place are its own. */
static void
test_unplaced(void **state)
{
	static const char *const lines[] = { "top: LDG R4 = [R6:2] >0", "FADD R5 = R4 ?0",
		                             "@P0 BRA ^top", "RET", NULL };
	static const struct plumb_slice_call calls[] = { { 1, 1 } };
	const struct plumb_stall *first;

	(void)state;
	CODE("MOV R4 = R10 !4", "CALL", "FADD R3 = R5", "EXIT");
	memset(&device, 0, sizeof device);
	slice_code_add(&device, lines);

	struct plumb_slice_function functions[] = {
		{ .name = "k", .insns = &code.insns, .calls = calls, .call_count = 1 },
		{ .name = "f", .insns = &device.insns },
	};

	sample(0, PLUMB_REASON_NO_INSTRUCTIONS, 11);
	unplaced = 1000003;
	slice_functions(functions, 2);
	unplaced = 0;
	assert_int_equal(slice.samples, 1000014);
	first = &slice.stalls[0];
	assert_int_equal(first->place.function, 1);
	assert_int_equal(first->place.insn, 1);
	assert_int_equal(first->reason, PLUMB_REASON_LONG);
	assert_int_equal(first->causes[0].place.insn, 0);
	assert_true(first->causes[0].confidence < 0.5);

	uint64_t all = 0;

	for (uint32_t s = 0; s < slice.stall_count; s++)
		all += slice.stalls[s].samples;
	assert_int_equal(all, 1000014);
}

/* One that has samples keeps those that it has. */
static void
test_unplaced_without_a_home(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "FADD R3 = R2 ?0", "EXIT");
	sample(1, PLUMB_REASON_LONG, 10);
	unplaced = 500;
	slice_it();
	unplaced = 0;
	assert_int_equal(slice.stall_count, 1);
	assert_int_equal(stall_at(1)->samples, 10);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_late_warp_that_waits),
		cmocka_unit_test(test_late_by_what_was_before),
		cmocka_unit_test(test_copy_that_completes_a_barrier),
		cmocka_unit_test(test_queue_of_all_warps),
		cmocka_unit_test(test_same_guard),
		cmocka_unit_test(test_coverage_by_reason),
		cmocka_unit_test(test_hidden_by_what_takes_longer),
		cmocka_unit_test(test_hidden_by_order),
		cmocka_unit_test(test_bytes_of_a_stream),
		cmocka_unit_test(test_bytes_that_count_once),
		cmocka_unit_test(test_unplaced),
		cmocka_unit_test(test_unplaced_without_a_home),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
