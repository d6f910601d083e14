/* SPDX-License-Identifier: Apache-2.0 */
/* The slicer on code by hand: what made an instruction wait, and what made that wait. */
#include <math.h>

#include "slice_code.h"

/* A pointer chase: the load comes after the wait in the order of the code. */
static void
test_chase(void **state)
{
	(void)state;
	CODE("LDC R8 = [0] >0", "TID R3 = >1", "LDC R6:2 = [8] >0", "ISETP P0 = R8 ?0 !4",
	     "MOV R3 = R3 ?1 !4", "top: IMAD R2:2 = *R3, #4, R6:2 ?0 ?1 ?5 !5", "ISETP P0 = R8 !1",
	     "LDG R3 = [R2:2] >5 !4", "@!P0 BRA ^top !5", "STG [R2:2] R3 ?5", "EXIT");
	sample(5, PLUMB_REASON_LONG, 1001);
	sample(5, PLUMB_REASON_SELECTED, 10);
	slice_it();
	check_causes(5, 7);

	const struct plumb_stall_cause *top = top_of(5);

	assert_int_equal(top->kind, PLUMB_CAUSE_DATA);
	assert_true(top->proved);
	assert_int_equal(top->ambiguity, 0);
	assert_string_equal(top->named->id, "pointer-indirection");
	assert_non_null(strstr(top->evidence, "about 100 cycles"));
	/* The chain ends where it comes to the load again. */
	assert_int_equal(top->chain_count, 3);
	assert_int_equal(top->chain[1].place.insn, 5);
	assert_int_equal(top->chain[2].place.insn, 7);
	assert_true(top->saving > 0.9 && top->saving < 1);
}

/* ---- control flow ---- */

/* Both arms of a branch load into one register; after the join either may be waited for. */
static void
test_join(void **state)
{
	(void)state;
	CODE("ISETP P0 = R0 !8", "@P0 BRA ^else !8", "LDG R2 = [R4:2] >0", "BRA ^join !8",
	     "else: LDG R2 = [R6:2] >0", "join: FADD R3 = R2 ?0", "FADD R9 = R2", "EXIT");
	sample(5, PLUMB_REASON_LONG, 100);
	sample(6, PLUMB_REASON_LONG, 7);
	slice_it();
	check_causes(5, 2, 4);
	/* Both were waited for already. */
	assert_int_equal(stall_at(6)->cause_count, 1);
	assert_int_equal(top_of(6)->kind, PLUMB_CAUSE_UNKNOWN);
	assert_int_equal(top_of(6)->samples, 7);
}

/* What is waited for on one way only is still a cause on the other. */
static void
test_waited_on_one_way(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "ISETP P0 = R0 !8", "@P0 BRA ^over !8", "FADD R3 = R2 ?0",
	     "over: FADD R9 = R2 ?0", "EXIT");
	sample(4, PLUMB_REASON_LONG, 9);
	slice_it();
	check_causes(4, 0);
}

/* An inner loop's load is pending in the next turn of the outer one. */
static void
test_nested_loops(void **state)
{
	(void)state;
	CODE("outer: FADD R3 = R2 ?1 !4", "inner: IADD R5 = R5, #1 !4", "LDG R2 = [R4:2] >1",
	     "ISETP P0 = R5 !8", "@P0 BRA ^inner !8", "ISETP P1 = R6 !8", "@P1 BRA ^outer !8",
	     "EXIT");
	sample(0, PLUMB_REASON_LONG, 5);
	slice_it();
	check_causes(0, 2);
}

/* Not known where it goes, so to all that nothing else leads to. */
static void
test_indirect_branch(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "BRX R8", "FADD R3 = R2 ?0", "BRA ^end", "FMUL R3 = R2 ?0",
	     "end: EXIT", "pad: BRA ^pad", "NOP");
	sample(2, PLUMB_REASON_LONG, 5);
	sample(4, PLUMB_REASON_LONG, 5);
	slice_it();
	check_causes(2, 0);
	check_causes(4, 0);
}

/* A part of the function that two places call: callers do not mix, and what it leaves alone goes
 * past it. */
static void
test_call_within(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "LDG R8 = [R4:2] >2", "CALL ^sub", "FADD R3 = R2 ?0",
	     "FADD R9 = R20 ?1 ?2", "LDG R2 = [R6:2] >0", "CALL ^sub", "FADD R3 = R2 ?0", "EXIT",
	     "sub: LDG R20 = [R10:2] >1", "RET");
	sample(3, PLUMB_REASON_LONG, 5);
	sample(4, PLUMB_REASON_LONG, 5);
	sample(7, PLUMB_REASON_LONG, 5);
	slice_it();
	check_causes(3, 0);
	check_causes(4, 9, 1);
	check_causes(7, 5);
}

/* A procedure that waits for a counter has done so for its callers. */
static void
test_call_waits(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "CALL ^sub", "FADD R3 = R2 ?0", "EXIT", "sub: MOV R20 = R21 ?0",
	     "RET");
	sample(2, PLUMB_REASON_LONG, 5);
	sample(4, PLUMB_REASON_LONG, 5);
	slice_it();
	assert_int_equal(top_of(2)->kind, PLUMB_CAUSE_UNKNOWN);
	check_causes(4, 0);
}

static struct slice_code device;

/* Another function: its last writers are causes after the call. */
static void
test_call_of_function(void **state)
{
	static const char *const lines[] = { "LDG R4 = [R6:2] >0", "FADD R5 = R4 ?0",
		                             "LDG R4 = [R8:2] >0", "RET", NULL };
	static const struct plumb_slice_call calls[] = { { 1, 1 } };

	(void)state;
	CODE("MOV R4 = R10 !4", "CALL", "FADD R3 = R4 ?0", "EXIT");
	memset(&device, 0, sizeof device);
	slice_code_add(&device, lines);

	struct plumb_slice_function functions[] = {
		{ .name = "k", .insns = &code.insns, .calls = calls, .call_count = 1 },
		{ .name = "f", .insns = &device.insns },
	};

	sample(2, PLUMB_REASON_LONG, 11);
	slice_functions(functions, 2);
	assert_int_equal(stall_at(2)->cause_count, 1);
	assert_int_equal(top_of(2)->place.function, 1);
	assert_int_equal(top_of(2)->place.insn, 2);
	assert_true(top_of(2)->proved);
}

/* Nobody knows what is called: the call may have written what is read after it. */
static void
test_call_of_unknown(void **state)
{
	(void)state;
	CODE("MOV R4 = R10 !4", "CALL R12", "FADD R3 = R4 ?0", "EXIT");
	sample(2, PLUMB_REASON_LONG, 11);
	slice_it();
	check_causes(2, 1);
	assert_false(top_of(2)->proved);
}

/* Functions that call each other come to an end, too. */
static void
test_recursion(void **state)
{
	static const char *const lines[] = { "ISETP P0 = R4 !8",        "@P0 BRA ^end", "CALL",
		                             "end: LDG R4 = [R6:2] >0", "RET",          NULL };
	static const struct plumb_slice_call calls[] = { { 1, 1 } }, again[] = { { 2, 1 } };

	(void)state;
	CODE("MOV R4 = R10 !4", "CALL", "FADD R3 = R4 ?0", "EXIT");
	memset(&device, 0, sizeof device);
	slice_code_add(&device, lines);

	struct plumb_slice_function functions[] = {
		{ .name = "k", .insns = &code.insns, .calls = calls, .call_count = 1 },
		{ .name = "f", .insns = &device.insns, .calls = again, .call_count = 1 },
	};

	sample(2, PLUMB_REASON_LONG, 11);
	slice_functions(functions, 2);
	assert_int_equal(top_of(2)->place.function, 1);
	assert_int_equal(top_of(2)->place.insn, 3);
}

/* ---- memory ---- */

/* The load of a stack slot leads to the store of the same slot, and on to what was stored. */
static void
test_spill(void **state)
{
	(void)state;
	CODE("IADD R1 = R1, #-64 !4", "LDG R8 = [R4:2] >0", "STL [R1+8] R8 ?0 w4",
	     "STL [R1+12] R9 w4", "LDL R10 = [R1+8] >1 w4", "FADD R3 = R10 ?1", "EXIT");
	sample(5, PLUMB_REASON_LONG, 50);
	slice_it();
	check_causes(5, 4);

	const struct plumb_stall_cause *top = top_of(5);

	assert_string_equal(top->named->id, "spill");
	assert_int_equal(top->chain_count, 3);
	assert_int_equal(top->chain[1].place.insn, 2);
	assert_int_equal(top->chain[1].via, PLUMB_HOP_SPILL);
	assert_int_equal(top->chain[2].place.insn, 1);

	struct plumb_slice_edge edges[8];
	uint32_t count = plumb_slice_edges(&slice, (struct plumb_slice_place){ 0, 4 }, edges, 8);
	bool found = false;

	for (uint32_t i = 0; i < count; i++) {
		found |= edges[i].via == PLUMB_HOP_SPILL && edges[i].from.insn == 2 &&
		         edges[i].proved;
		assert_true(edges[i].from.insn != 3);
	}
	assert_true(found);
}

/* Eight bytes are two words: a store of one of them is found. */
static void
test_spill_of_a_part(void **state)
{
	(void)state;
	CODE("STL [R1+8] R8 w8", "STL [R1+12] R9 w4", "LDL R10:2 = [R1+8] >1 w8",
	     "FADD R3 = R11 ?1", "EXIT");
	sample(3, PLUMB_REASON_LONG, 50);
	slice_it();

	struct plumb_slice_edge edges[8];

	assert_int_equal(plumb_slice_edges(&slice, (struct plumb_slice_place){ 0, 2 }, edges, 8),
	                 2);
}

/* Shared memory: proved if base and displacement are equal, else possible. */
static void
test_shared(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "SHL R2 = *R0, #2 ?0 !4", "LDG R8 = [R4:2] >1", "STS [R2+16] R8 ?1",
	     "BAR b0", "LDS R9 = [R2+16] >2", "LDS R10 = [R7] >3", "FADD R3 = R9 ?2",
	     "FADD R3 = R10 ?3", "EXIT");
	sample(7, PLUMB_REASON_SHORT, 50);
	sample(8, PLUMB_REASON_SHORT, 50);
	slice_it();
	check_causes(7, 5);
	assert_int_equal(top_of(7)->chain[1].place.insn, 3);
	assert_int_equal(top_of(7)->chain[1].via, PLUMB_HOP_SHARED);
	assert_int_equal(top_of(7)->chain[2].place.insn, 2);

	struct plumb_slice_edge edges[8];

	assert_int_equal(plumb_slice_edges(&slice, (struct plumb_slice_place){ 0, 6 }, edges, 8),
	                 1);
	assert_int_equal(edges[0].from.insn, 3);
	assert_false(edges[0].proved);
}

/* ---- strides ---- */

static void
test_strides(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "IMAD R2 = *R0, #128, R6 ?0 !4", "LDG R8 = [R2] >1 w4",
	     "FADD R3 = R8 ?1", "IMAD R2 = *R0, #4, R6 !4", "LDG R8 = [R2] >1 w4",
	     "FADD R3 = R8 ?1", "SHL R2 = *R0, #7 !4", "LDS R8 = [R2] >1 w4", "FADD R3 = R8 ?1",
	     "IMAD R2 = *R0, *R5 !4", "LDG R8 = [R2] >1 w4", "FADD R3 = R8 ?1", "EXIT");
	/* R6 and R5 are arguments: uniform. */
	code.items[1].reads_count = code.items[4].reads_count = 1;
	code.items[10].reads[1].file = PLUMB_REG_SCALAR;
	for (uint32_t at = 3; at < 13; at += 3)
		sample(at, at == 9 ? PLUMB_REASON_SHORT : PLUMB_REASON_LONG, 50);
	slice_it();
	assert_string_equal(top_of(3)->named->id, "uncoalesced");
	assert_string_equal(top_of(3)->evidence, "32 sectors for each request, 4 would do: 4-byte "
	                                         "loads, 128 bytes apart");
	assert_true(fabs(top_of(3)->saving - 0.25 * 28 / 32) < 1e-9);
	assert_string_equal(top_of(6)->named->id, "latency-chain");
	assert_string_equal(top_of(9)->named->id, "bank-conflict");
	assert_non_null(strstr(top_of(9)->evidence, "32 lanes ask one bank"));
	assert_string_equal(top_of(12)->named->id, "uncoalesced");
	assert_non_null(strstr(top_of(12)->evidence, "run time"));
}

/* After a mask nobody knows the stride, wherever the operand is that all lanes share. */
static void
test_stride_after_a_mask(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "SHL R2 = *R0, #5 ?0 !4", "LOP R3 = R2, UR4 !4", "LOP R4 = UR4, R2 !4",
	     "LOP R5 = UR4, UR5 !4", "ATOMG R8 = [R3] >1 w4", "ATOMG R9 = [R4] >2 w4",
	     "ATOMG R10 = [R5] >3 w4", "FADD R11 = R8 ?1", "FADD R11 = R9 ?2", "FADD R11 = R10 ?3",
	     "EXIT");
	for (uint32_t at = 8; at < 11; at++)
		sample(at, PLUMB_REASON_LONG, 50);
	slice_it();
	for (uint32_t at = 8; at < 11; at++) {
		bool one = strstr(top_of(at)->evidence, "all lanes update one address") != NULL;

		assert_string_equal(top_of(at)->named->id, "contended-atomic");
		assert_int_equal(one, at == 10);
	}
}

/* A pointer that grows by a loop's step has the stride that it began with. */
static void
test_stride_in_a_loop(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "SHL R2 = *R0, #5 ?0 !4", "top: LDG R8 = [R2] >1 w4", "FADD R3 = R8 ?1",
	     "IADD R2 = R2, #4096 !4", "ISETP P0 = R2 !8", "@P0 BRA ^top", "EXIT");
	sample(3, PLUMB_REASON_LONG, 50);
	slice_it();
	assert_string_equal(top_of(3)->named->id, "uncoalesced");
	assert_non_null(strstr(top_of(3)->evidence, "32 bytes apart"));
}

/* ---- classes ---- */

/* One instruction waits for a global load, for shared memory, and for arithmetic: the reason says
 * which. */
static void
test_reason_first(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "LDS R6 = [R8] >0", "FMUL R7 = R9 !4", "FFMA R3 = R2, R6, R7 ?0",
	     "EXIT");
	sample(3, PLUMB_REASON_LONG, 5);
	slice_it();
	check_causes(3, 0);
	sample_count = 0;
	sample(3, PLUMB_REASON_SHORT, 5);
	slice_it();
	check_causes(3, 1);
	sample_count = 0;
	sample(3, PLUMB_REASON_FIXED, 5);
	slice_it();
	check_causes(3, 2);
	assert_string_equal(top_of(3)->named->id, "latency-chain");
	sample_count = 0;
	sample(3, PLUMB_REASON_COUNTER, 5);
	slice_it();
	check_causes(3, 0, 1);
}

/* Arithmetic that feeds itself is a chain; what comes late enough is not waited for. */
static void
test_fixed(void **state)
{
	(void)state;
	CODE("top: DFMA R2:2 = R2:2, R4:2 !8", "DFMA R2:2 = R2:2, R6:2 !3", "IADD R9 = R9, #1 !4",
	     "@P0 BRA ^top !1", "FADD R3 = R9 !1", "MOV R8 = R9 !1", "EXIT");
	sample(1, PLUMB_REASON_FIXED, 100);
	sample(0, PLUMB_REASON_FIXED, 50);
	sample(5, PLUMB_REASON_FIXED, 10);
	slice_it();
	check_causes(1, 0);
	assert_non_null(strstr(top_of(1)->evidence, "needs its own last result"));
	check_causes(0, 1);
	/* One cycle after the instruction before: it only took its turn. */
	assert_int_equal(top_of(5)->kind, PLUMB_CAUSE_STRUCTURAL);
	assert_int_equal(top_of(5)->place.insn, 5);
}

/* The warps that come late ran the loop that the others skip. */
static void
test_barrier(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "ISETP P0 = R0 ?0 !8", "MOV R5 = R6 !4", "@P0 BRA ^over !8",
	     "top: FFMA R2 = R2, R3 !4", "ISETP P1 = R2 !8", "@P1 BRA ^top !8", "over: BAR b0",
	     "EXIT");
	sample(7, PLUMB_REASON_BARRIER, 1000);
	sample(4, PLUMB_REASON_FIXED, 60);
	sample(2, PLUMB_REASON_FIXED, 60);
	slice_it();
	assert_int_equal(top_of(7)->kind, PLUMB_CAUSE_BARRIER);
	assert_int_equal(top_of(7)->place.insn, 4);
	assert_string_equal(top_of(7)->named->id, "barrier-imbalance");
	assert_true(top_of(7)->share > 0.7);
	for (uint32_t c = 0; c < stall_at(7)->cause_count; c++)
		assert_true(stall_at(7)->causes[c].place.insn != 7);
}

/* Warps may go on from the barrier, and wait behind it: nobody is late by that. */
static void
test_waiting_at_a_barrier_makes_nobody_late(void **state)
{
	(void)state;
	CODE("outer: @P0 BRA ^over !8", "top: FFMA R2 = R2, R3 !4", "ISETP P1 = R2 !8",
	     "@P1 BRA ^top !8", "over: BAR b0", "FADD R4 = R4 !4", "@P2 BRA ^outer !8", "EXIT");
	sample(6, PLUMB_REASON_BARRIER, 1000);
	sample(1, PLUMB_REASON_FIXED, 60);
	slice_it();
	assert_int_equal(top_of(6)->kind, PLUMB_CAUSE_BARRIER);
	assert_int_equal(top_of(6)->place.insn, 1);
	for (uint32_t c = 0; c < stall_at(6)->cause_count; c++)
		assert_true(stall_at(6)->causes[c].place.insn != 6);
}

/* The wait for a group of matrix instructions counts as one at a barrier. */
static void
test_group_that_counts_as_a_barrier(void **state)
{
	(void)state;
	CODE("HGMMA R24:64 = R24:64", "FADD R4 = R4 !4", "HGMMA", "WARPGROUP", "EXIT");
	sample(1, PLUMB_REASON_FIXED, 500);
	sample(3, PLUMB_REASON_BARRIER, 100);
	slice_it();
	check_causes(3, 0);
	assert_int_equal(top_of(3)->kind, PLUMB_CAUSE_SYNC);
}

/* Code before the barrier before is no cause. */
static void
test_barrier_ends_at_the_one_before(void **state)
{
	(void)state;
	CODE("FFMA R2 = R2, R3 !4", "BAR b0", "FADD R4 = R4 !4", "STS [R8] R4", "BAR b0", "EXIT");
	sample(0, PLUMB_REASON_FIXED, 1000);
	sample(2, PLUMB_REASON_FIXED, 10);
	sample(4, PLUMB_REASON_BARRIER, 100);
	slice_it();
	check_causes(4, 2);
}

/* Between two barriers without an access of memory, the warp may still wait for the first. */
static void
test_barrier_that_blocks_later(void **state)
{
	(void)state;
	CODE("STS [R8] R4", "BAR b0", "FFMA R2 = R2, R3 !4", "BAR b0", "FADD R4 = R4 !4", "BAR b0",
	     "EXIT");
	sample(0, PLUMB_REASON_FIXED, 1000);
	sample(2, PLUMB_REASON_FIXED, 1000);
	sample(4, PLUMB_REASON_FIXED, 10);
	sample(5, PLUMB_REASON_BARRIER, 100);
	slice_it();
	check_causes(5, 2, 4);
	assert_int_equal(top_of(5)->place.insn, 2);
}

static void
test_other_kinds(void **state)
{
	static const struct {
		uint32_t insn, reason, kind, cause;
		const char *id;
	} wanted[] = {
		{ 2, PLUMB_REASON_LOCAL_GLOBAL_THROTTLE, PLUMB_CAUSE_THROTTLE, 1, "spill" },
		{ 4, PLUMB_REASON_MATH_THROTTLE, PLUMB_CAUSE_THROTTLE, 3, "saturated-pipe" },
		{ 6, PLUMB_REASON_MEMBAR, PLUMB_CAUSE_SYNC, 5, NULL },
		{ 7, PLUMB_REASON_CONSTANT, PLUMB_CAUSE_FETCH, 7, "constant-misses" },
		{ 9, PLUMB_REASON_BRANCH, PLUMB_CAUSE_FETCH, 8, "instruction-fetch" },
		{ 9, PLUMB_REASON_NO_INSTRUCTIONS, PLUMB_CAUSE_FETCH, 8, "instruction-fetch" },
		{ 3, PLUMB_REASON_SLEEP, PLUMB_CAUSE_STRUCTURAL, 3, NULL },
		{ 10, PLUMB_REASON_DRAIN, PLUMB_CAUSE_SYNC, 5, NULL },
	};

	(void)state;
	CODE("STL [R1], R7", "LDL R2 = [R1] >0", "LDG R3 = [R4:2] >0", "DFMA R8:2 = R8:2",
	     "DFMA R10:2 = R10:2", "STG [R4:2] R9", "MEMBAR", "FADD R3 = R9 c", "@P0 BRA ^top",
	     "top: FADD R4 = R4", "EXIT");
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		sample_count = 0;
		sample(wanted[i].insn, wanted[i].reason, 100);
		if (wanted[i].reason == PLUMB_REASON_DRAIN)
			code.items[6].class = PLUMB_INSN_NOP;
		slice_it();

		const struct plumb_stall_cause *top = top_of(wanted[i].insn);

		assert_int_equal(top->kind, wanted[i].kind);
		assert_int_equal(top->place.insn, wanted[i].cause);
		if (wanted[i].id)
			assert_string_equal(top->named->id, wanted[i].id);
	}
}

/* No headroom in a unit that is busy. */
static void
test_saturated_saves_nothing(void **state)
{
	(void)state;
	CODE("DFMA R8:2 = R8:2", "DFMA R10:2 = R10:2", "EXIT");
	sample(1, PLUMB_REASON_MATH_THROTTLE, 100);
	slice_it();
	assert_true(top_of(1)->saving == 0);
	assert_non_null(strstr(top_of(1)->evidence, "no headroom"));
}

static void
test_copies_and_groups(void **state)
{
	(void)state;
	CODE("LDGSTS [R2:2] R4 >0", "HGMMA R24:64 = R24:64 >6o1", "HGMMA R88:64 = R88:64 >6o1",
	     "WAIT ?6<=1", "FADD R3 = R24", "WAIT ?0", "EXIT");
	sample(3, PLUMB_REASON_TENSOR_GROUP, 100);
	sample(5, PLUMB_REASON_LONG, 100);
	slice_it();
	check_causes(3, 1);
	assert_string_equal(top_of(3)->named->id, "tensor-wait");
	check_causes(5, 0);
	assert_int_equal(top_of(5)->kind, PLUMB_CAUSE_SYNC);
	assert_string_equal(top_of(5)->named->id, "async-depth");
}

/* An H200 counts the wait for a group of copies at the instruction after DEPBAR. */
static void
test_wait_that_is_counted_behind_it(void **state)
{
	(void)state;
	CODE("LDGSTS [R2:2] R4", "NOP >0", "IADD R9 = R9", "WAIT ?0<=1", "BAR", "LDS R5 = [R6] >1",
	     "FADD R3 = R5 ?1", "EXIT");
	sample(4, PLUMB_REASON_LONG, 100);
	sample(6, PLUMB_REASON_LONG, 100);
	slice_it();
	check_causes(4, 0);
	assert_int_equal(top_of(4)->kind, PLUMB_CAUSE_SYNC);
	assert_int_equal(top_of(4)->place.insn, 0);
}

static void
test_occupancy(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "FADD R3 = R2 ?0", "EXIT");
	sample(1, PLUMB_REASON_LONG, 100);
	launch = (struct plumb_slice_launch){ .blocks = 10000,
		                              .threads = 256,
		                              .registers = 200,
		                              .occupancy_ppm = 125000,
		                              .multiprocessors = 132,
		                              .warps_per_multiprocessor = 64 };
	slice_it();
	assert_string_equal(top_of(1)->named->id, "low-occupancy");
	assert_non_null(strstr(top_of(1)->evidence, "registers limit it"));
	launch.blocks = 100;
	slice_it();
	assert_non_null(strstr(top_of(1)->evidence, "too few blocks"));
	launch = (struct plumb_slice_launch){ 0 };
}

static void
test_vectorisation(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "SHL R4 = *R0, #4 ?0 !4", "LDG R8 = [R4] >1 w4",
	     "LDG R9 = [R4+4] >2 w4", "FADD R3 = R8 ?1", "EXIT");
	sample(4, PLUMB_REASON_LONG, 100);
	slice_it();
	check_causes(4, 2);
	assert_string_equal(top_of(4)->named->id, "missed-vectorisation");
}

/* ---- the answer as a whole ---- */

static void
test_hidden_and_outside(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "FADD R3 = R2 ?0", "EXIT");
	sample(1, PLUMB_REASON_LONG, 100);
	sample(1, PLUMB_REASON_LONG, 40);
	samples[1].issued = true;
	sample(77, PLUMB_REASON_LONG, 3);
	sample(1, PLUMB_REASON_NOT_SELECTED, 6);
	slice_it();
	assert_int_equal(slice.stall_count, 1);
	assert_int_equal(slice.stalls[0].samples, 100);
	assert_int_equal(slice.stalls[0].hidden, 40);
	assert_int_equal(slice.stalls[0].class, PLUMB_STALL_MEMORY);
	assert_int_equal(slice.samples, 149);
	assert_int_equal(slice.outside, 3);
	assert_true(slice.coverage == 1);
}

/* Counts as large as a file may say. */
static void
test_large_counts(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "LDG R6 = [R4:2] >0", "LDG R7 = [R4:2] >0",
	     "FFMA R3 = R2, R6, R7 ?0", "EXIT");
	sample(3, PLUMB_REASON_LONG, UINT64_MAX - 1);
	sample(3, PLUMB_REASON_LONG, UINT64_MAX - 1);
	slice_it();
	assert_int_equal(slice.stalls[0].cause_count, 3);
}

/* Without samples: cycles by the tables, more in loops. */
static void
test_static(void **state)
{
	(void)state;
	CODE("LDG R2 = [R4:2] >0", "FADD R3 = R2 ?0", "top: LDG R2 = [R4:2] >0", "FADD R3 = R2 ?0",
	     "ISETP P0 = R3 !8", "@P0 BRA ^top", "EXIT");
	slice_it();
	assert_int_equal(slice.stalls[0].place.insn, 3);
	assert_int_equal(top_of(3)->place.insn, 2);
	assert_true(stall_at(3)->samples > 5 * stall_at(1)->samples);
	assert_true(slice.samples > stall_at(3)->samples);
}

static void
test_nothing(void **state)
{
	struct plumb_insns none = { 0 };
	struct plumb_slice_function function = { .name = "k", .insns = &none };
	struct plumb_slice_input input = { .functions = &function, .function_count = 1 };
	struct plumb_error error;

	(void)state;
	plumb_slice_free(&slice);
	assert_int_equal(plumb_slice_make(&input, &slice, &error), PLUMB_EEMPTY);
	plumb_slice_free(&slice);
}

static void
test_reasons(void **state)
{
	static const struct {
		const char *word;
		unsigned reason, class;
	} wanted[] = {
		{ "smsp__pcsamp_warps_issue_stalled_long_scoreboard", PLUMB_REASON_LONG,
		  PLUMB_STALL_MEMORY },
		{ "smsp__pcsamp_warps_issue_stalled_short_scoreboard_not_issued",
		  PLUMB_REASON_SHORT, PLUMB_STALL_SHARED },
		{ "wait", PLUMB_REASON_FIXED, PLUMB_STALL_EXECUTION },
		{ "smsp__pcsamp_warps_issue_stalled_selected", PLUMB_REASON_SELECTED,
		  PLUMB_STALL_NONE },
		{ "smsp__pcsamp_warps_issue_stalled_warpgroup_arrive", PLUMB_REASON_TENSOR_GROUP,
		  PLUMB_STALL_SHARED },
		{ "smsp__pcsamp_warps_issue_stalled_dispatch_stall", PLUMB_REASON_DISPATCH,
		  PLUMB_STALL_OTHER },
		{ "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_WAITCNT",
		  PLUMB_REASON_COUNTER, PLUMB_STALL_MEMORY },
		{ "SbidStall", PLUMB_REASON_COUNTER, PLUMB_STALL_MEMORY },
		{ "InstrFetchStall", PLUMB_REASON_NO_INSTRUCTIONS, PLUMB_STALL_FETCH },
		{ "DistStall", PLUMB_REASON_FIXED, PLUMB_STALL_EXECUTION },
		{ "from next year", PLUMB_REASON_OTHER, PLUMB_STALL_OTHER },
		{ "", PLUMB_REASON_NOT_SELECTED, PLUMB_STALL_NONE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		const struct plumb_stall_reason_info *info =
			plumb_stall_reason_find(wanted[i].word);

		assert_int_equal(info->reason, wanted[i].reason);
		assert_int_equal(info->class, wanted[i].class);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_chase),
		cmocka_unit_test(test_join),
		cmocka_unit_test(test_waited_on_one_way),
		cmocka_unit_test(test_nested_loops),
		cmocka_unit_test(test_indirect_branch),
		cmocka_unit_test(test_call_within),
		cmocka_unit_test(test_call_waits),
		cmocka_unit_test(test_call_of_function),
		cmocka_unit_test(test_call_of_unknown),
		cmocka_unit_test(test_recursion),
		cmocka_unit_test(test_spill),
		cmocka_unit_test(test_spill_of_a_part),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_strides),
		cmocka_unit_test(test_stride_after_a_mask),
		cmocka_unit_test(test_stride_in_a_loop),
		cmocka_unit_test(test_reason_first),
		cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_barrier),
		cmocka_unit_test(test_waiting_at_a_barrier_makes_nobody_late),
		cmocka_unit_test(test_group_that_counts_as_a_barrier),
		cmocka_unit_test(test_barrier_ends_at_the_one_before),
		cmocka_unit_test(test_barrier_that_blocks_later),
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_saturated_saves_nothing),
		cmocka_unit_test(test_copies_and_groups),
		cmocka_unit_test(test_wait_that_is_counted_behind_it),
		cmocka_unit_test(test_occupancy),
		cmocka_unit_test(test_vectorisation),
		cmocka_unit_test(test_hidden_and_outside),
		cmocka_unit_test(test_large_counts),
		cmocka_unit_test(test_static),
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_reasons),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
