/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The published LEO has eleven defects that decide its answers. Each has a test here that LEO's way
 * fails. The queues of AMD's counters and Intel's distances and tokens are among them.
 */
#include "slice_code.h"

/*
 * 1, 2, 4. Machine code of sm_90 by nvcc 13.3 of
 *	for (int i = 0; i < turns; i++) at = next[at];
 * The control word is in the upper eight bytes. The wait is for scoreboards 0, 1 and 5, and 0 is
 * one. The load (offset 0xd0) comes after the wait (0xb0) in the order of the code.
 */
static const uint64_t chase[][2] = {
	{ 0x00000a00ff017b82, 0x000ff00000000800 }, /* 00 LDC R1 */
	{ 0x00008800ff007b82, 0x000e220000000800 }, /* 10 LDC R0, SB0 */
	{ 0x0000000000037919, 0x000e620000002100 }, /* 20 S2R R3, SB1 */
	{ 0x0000820000067ab9, 0x000fcc0000000a00 }, /* 30 ULDC.64 UR6 */
	{ 0x00008600ff047b82, 0x000e620000000a00 }, /* 40 LDC.64 R4, SB1 */
	{ 0x000000010000780c, 0x001fe20003f06270 }, /* 50 ISETP P0 */
	{ 0x0000000403047825, 0x002fd800078e0004 }, /* 60 IMAD.WIDE R4 */
	{ 0x00000000001c8947, 0x000fea0003800000 }, /* 70 @!P0 BRA 0xf0 */
	{ 0x00008400ff067b82, 0x000e220000000a00 }, /* 80 LDC.64 R6, SB0 */
	{ 0x0000003f00047c82, 0x000fca0008000000 }, /* 90 UMOV UR4 */
	{ 0x0000000104047890, 0x000fe2000fffe03f }, /* a0 UIADD3 UR4 */
	{ 0x0000000403027825, 0x023fca00078e0006 }, /* b0 IMAD.WIDE R2 = R3 * 4 + R6 */
	{ 0x0000000400007c0c, 0x000fe2000bf03270 }, /* c0 ISETP P0 */
	{ 0x0000000602037981, 0x000358000c1e1900 }, /* d0 LDG R3 = [R2], SB5 */
	{ 0xfffffffc00ec8947, 0x000fea000383ffff }, /* e0 @!P0 BRA 0xa0 */
	{ 0x0000000304007986, 0x020fe2000c101906 }, /* f0 STG [R4] = R3 */
	{ 0x000000000000794d, 0x000fea0003800000 }, /* 100 EXIT */
};

static void
test_1_2_4_control_words_of_real_code(void **state)
{
	const struct plumb_isa *isa = plumb_isa_find("sm_90");
	struct plumb_insns insns = { 0 };
	struct plumb_error error;

	(void)state;
	assert_int_equal(plumb_isa_decode(isa, "sm_90", chase, sizeof chase, &insns, &error), 0);
	assert_int_equal(insns.unknown, 0);

	struct plumb_slice_function function = { .name = "follow", .insns = &insns };

	sample_count = 0;
	sample(0xb, PLUMB_REASON_LONG, 1000);
	sample(0xf, PLUMB_REASON_LONG, 10);
	slice_functions(&function, 1);
	/* Not the S2R, which the wait at 0x60 was for, and not the LDC before the loop. */
	check_causes(0xb, 0xd);
	assert_true(top_of(0xb)->proved);
	assert_int_equal(top_of(0xb)->chain[0].counter, 5);
	assert_string_equal(top_of(0xb)->named->id, "pointer-indirection");
	check_causes(0xf, 0xd);
	plumb_slice_free(&slice);
	plumb_insns_free(&insns);
}

/* 3. A scoreboard is a counter: all producers since the last wait are candidates. */
static void
test_3_all_producers_of_a_counter(void **state)
{
	(void)state;
	CODE("LDG R2:2 = [R8:2] >2", "LDG R4:2 = [R10:2] >2", "IADD R9 = R9 !4",
	     "DFMA R6:2 = R2:2, R4:2 ?2", "EXIT");
	sample(3, PLUMB_REASON_LONG, 1001);
	slice_it();
	check_causes(3, 0, 1);
	/* Nothing tells them apart, and the answer says so. */
	assert_true(top_of(3)->ambiguity && top_of(3)->ambiguity == cause_of(3, 0)->ambiguity);
	assert_true(top_of(3)->confidence < 0.5);
	assert_true(top_of(3)->share < 0.6);
}

/* 5. A counter's proof stays a proof next to a register: this load is far away, so by the register
 * alone it would be pruned. */
static void
test_5_a_proof_survives_a_register(void **state)
{
	const char *lines[260] = { "LDG R2 = [R8:2] >2" };

	(void)state;
	for (int i = 1; i < 250; i++)
		lines[i] = "MOV R30 = R31 !15";
	lines[250] = "FADD R6 = R2 ?2";
	lines[251] = "EXIT";
	memset(&code, 0, sizeof code);
	slice_code_add(&code, lines);
	sample_count = 0;
	sample(250, PLUMB_REASON_LONG, 1001);
	slice_it();
	check_causes(250, 0);
	assert_true(top_of(250)->proved);
	assert_int_equal(top_of(250)->chain[0].via, PLUMB_HOP_REGISTER);
}

/* 6. Who comes after a use does not wait again, on this way. On the other way it does. */
static void
test_6_a_use_in_between_ends_the_way(void **state)
{
	(void)state;
	CODE("FMUL R2 = R8 !4", "FADD R3 = R2 !4", "FADD R4 = R2 !4", "EXIT");
	sample(1, PLUMB_REASON_FIXED, 10);
	sample(2, PLUMB_REASON_FIXED, 10);
	slice_it();
	check_causes(1, 0);
	assert_int_equal(top_of(2)->kind, PLUMB_CAUSE_STRUCTURAL);

	CODE("LDG R2 = [R8:2] >0", "FADD R3 = R2 ?0", "FADD R4 = R2", "EXIT");
	sample(1, PLUMB_REASON_LONG, 10);
	sample(2, PLUMB_REASON_LONG, 10);
	slice_it();
	check_causes(1, 0);
	assert_int_equal(top_of(2)->kind, PLUMB_CAUSE_UNKNOWN);
}

/* 7. Intel: {A@1,$4} waits for the instruction before in any pipe, and for the token; a mask of
 * sync.allwr waits for several tokens. Token n is counter 8 + n. */
static void
test_7_distances_and_tokens(void **state)
{
	(void)state;
	CODE("LDG R2 = [R8:2] >12", "LDG R4 = [R8:2] >13", "FADD R20 = R21 >40o1",
	     "FADD R22 = R23 >40o1", "IADD R24 = R25 >41o1", "FADD R26 = R22 ?12r ?40r<=1",
	     "WAIT ?13r", "FADD R27 = R4", "LDG R2 = [R8:2] >12", "LDG R4 = [R8:2] >13", "WAIT",
	     "EXIT");
	code.items[10].waits_count = 1;
	code.items[10].waits[0] =
		(struct plumb_wait_for){ .counters = UINT64_C(1) << 12 | UINT64_C(1) << 13,
		                         .parts = PLUMB_SYNC_RESULT };
	sample(5, PLUMB_REASON_COUNTER, 100);
	sample(6, PLUMB_REASON_COUNTER, 100);
	sample(10, PLUMB_REASON_COUNTER, 100);
	slice_it();
	/* {F@2}: the second before of its pipe, and no other. */
	check_causes(5, 0, 2);
	check_causes(6, 1);
	check_causes(10, 8, 9);
	sample_count = 0;
	sample(5, PLUMB_REASON_FIXED, 100);
	slice_it();
	check_causes(5, 2);
}

/* Intel: {$t.src} waits until operands are read; a later {$t.dst} waits for the result. */
static void
test_7_sources_and_results(void **state)
{
	(void)state;
	CODE("LDG R2 = [R8:2] >12 >12s", "MOV R8 = R9 ?12s", "FADD R3 = R2 ?12r", "EXIT");
	sample(1, PLUMB_REASON_COUNTER, 100);
	sample(2, PLUMB_REASON_COUNTER, 100);
	slice_it();
	check_causes(1, 0);
	assert_int_equal(top_of(1)->kind, PLUMB_CAUSE_SYNC);
	check_causes(2, 0);
	assert_int_equal(top_of(2)->kind, PLUMB_CAUSE_DATA);
}

/* 8. The efficiency factor comes from the stride: of two loads of one scoreboard, the one that
 * takes 32 sectors gets more. */
static void
test_8_efficiency(void **state)
{
	(void)state;
	CODE("TID R0 = >0", "IMAD R2 = *R0, #4 ?0 !4", "IMAD R4 = *R0, #128 !4",
	     "LDG R6 = [R4] >2 w4", "LDG R7 = [R2] >2 w4", "FADD R8 = R6, R7 ?2", "EXIT");
	sample(5, PLUMB_REASON_LONG, 900);
	slice_it();
	check_causes(5, 3, 4);
	assert_int_equal(top_of(5)->place.insn, 3);
	assert_true(top_of(5)->share > 0.8);
	assert_int_equal(top_of(5)->ambiguity, 0);
	assert_true(top_of(5)->factors.efficiency > 0.8);
}

/* 9. A guarded write leaves the earlier definition. */
static void
test_9_guarded_writes_do_not_kill(void **state)
{
	(void)state;
	CODE("FFMA R2 = R8 !1", "@P0 FMUL R2 = R9 !4", "FADD R3 = R2", "EXIT");
	code.items[0].latency = 5; /* both are as late as they can be */
	sample(2, PLUMB_REASON_FIXED, 10);
	slice_it();
	assert_non_null(cause_of(2, 1));

	struct plumb_slice_edge edges[4];
	uint32_t count = plumb_slice_edges(&slice, (struct plumb_slice_place){ 0, 2 }, edges, 4);

	assert_int_equal(count, 2);

	CODE("LDG R2 = [R8:2] >0", "@P0 LDG R2 = [R10:2] >1", "FADD R3 = R2 ?0 ?1", "EXIT");
	sample(2, PLUMB_REASON_LONG, 10);
	slice_it();
	check_causes(2, 0, 1);
	assert_int_equal(cause_of(2, 0)->chain[0].via, PLUMB_HOP_REGISTER);
}

/* 10. Classes come from the instruction, not from letters of its name: a strong or system-wide
 * access of global memory is no shared one, and what the decoder does not know breaks nothing. */
static void
test_10_classes(void **state)
{
	(void)state;
	CODE("HGMMA R24:64 = R24:64 >6o1", "LDG R2 = [R4:2] >0", "ODD >1", "FADD R3 = R2 ?0 ?1 ?6",
	     "EXIT");
	code.items[1].opcode = "LDG.E.STRONG.SYS";
	sample(3, PLUMB_REASON_LONG, 10);
	slice_it();
	check_causes(3, 1);
	sample_count = 0;
	sample(3, PLUMB_REASON_TENSOR_GROUP, 10);
	slice_it();
	check_causes(3, 0);
}

/* 11. AMD: vmcnt(1) releases all but the youngest, in order; then vmcnt(0) is for the youngest. */
static void
test_11_vmcnt_in_order(void **state)
{
	(void)state;
	CODE("LDG R2 = [R8:2] >0o1", "LDG R3 = [R8:2] >0o1", "LDG R4 = [R8:2] >0o1", "WAIT ?0<=2",
	     "FADD R5 = R2", "WAIT ?0<=1", "FADD R5 = R3", "WAIT ?0", "EXIT");
	sample(3, PLUMB_REASON_COUNTER, 30);
	sample(5, PLUMB_REASON_COUNTER, 20);
	sample(7, PLUMB_REASON_COUNTER, 10);
	slice_it();
	check_causes(3, 0);
	check_causes(5, 1);
	check_causes(7, 2);
	assert_true(top_of(3)->proved && top_of(5)->proved && top_of(7)->proved);
}

/* A wait for vmcnt(0) after three loads may be about each; all are named. */
static void
test_11_vmcnt_of_several(void **state)
{
	(void)state;
	CODE("LDG R2 = [R8:2] >0o1", "LDG R3 = [R8:2] >0o1", "LDG R4 = [R8:2] >0o1", "WAIT ?0",
	     "EXIT");
	sample(3, PLUMB_REASON_COUNTER, 30);
	slice_it();
	check_causes(3, 0, 1, 2);
	assert_int_equal(top_of(3)->place.insn, 2);
}

/* Scalar loads come back in any order: only 0 says that they are there, and LDS next to them is
 * still in order. */
static void
test_11_lgkmcnt_out_of_order(void **state)
{
	(void)state;
	CODE("LDC R2 = [0] >1", "LDS R3 = [R8] >1o2", "LDS R4 = [R8] >1o2", "WAIT ?1<=1",
	     "FADD R5 = R3", "WAIT ?1", "EXIT");
	sample(3, PLUMB_REASON_COUNTER, 30);
	sample(5, PLUMB_REASON_COUNTER, 30);
	slice_it();
	check_causes(3, 0, 1);
	assert_true(cause_of(3, 1)->proved);
	assert_false(cause_of(3, 0)->proved);
	check_causes(5, 0, 2);
}

/* A flat access raises both counters, so each of both waits may be about it. */
static void
test_11_flat_raises_two(void **state)
{
	(void)state;
	CODE("LDG R2 = [R8:2] >0 >1", "WAIT ?1", "WAIT ?0", "EXIT");
	code.items[0].space = PLUMB_SPACE_GENERIC;
	sample(1, PLUMB_REASON_COUNTER, 30);
	sample(2, PLUMB_REASON_COUNTER, 30);
	slice_it();
	check_causes(1, 0);
	check_causes(2, 0);
}

/* In a loop, the load of the turn before is the older one. */
static void
test_11_queue_through_a_loop(void **state)
{
	(void)state;
	CODE("LDG R2 = [R8:2] >0o1", "top: LDG R3 = [R8:2] >0o1", "WAIT ?0<=1", "FADD R5 = R3",
	     "@P0 BRA ^top", "WAIT ?0", "EXIT");
	sample(2, PLUMB_REASON_COUNTER, 30);
	sample(5, PLUMB_REASON_COUNTER, 30);
	slice_it();
	check_causes(2, 0, 1);
	check_causes(5, 1);
}

/* gfx12: loads and stores have counters of their own, and expcnt is one, too. */
static void
test_11_split_counters(void **state)
{
	(void)state;
	CODE("LDG R2 = [R8:2] >0o1", "STG [R8:2] R4 >3o1", "STG [R8:2] R5 >2s", "WAIT ?0",
	     "WAIT ?3", "MOV R5 = R6 ?2", "EXIT");
	sample(3, PLUMB_REASON_COUNTER, 30);
	sample(4, PLUMB_REASON_COUNTER, 30);
	sample(5, PLUMB_REASON_COUNTER, 30);
	slice_it();
	check_causes(3, 0);
	check_causes(4, 1);
	assert_int_equal(top_of(4)->kind, PLUMB_CAUSE_SYNC);
	check_causes(5, 2);
	assert_int_equal(top_of(5)->kind, PLUMB_CAUSE_SYNC);
}

/* The issue factor does not swamp the others: a load that runs fifty times for each time of the
 * reader counts once. */
static void
test_issue_does_not_swamp(void **state)
{
	(void)state;
	CODE("top: LDG R2 = [R8:2] >0", "IADD R8 = R8, #4 !4", "@P0 BRA ^top",
	     "LDG R3 = [R10:2] >0", "FADD R4 = R2, R3 ?0", "EXIT");
	for (uint32_t i = 0; i < 3; i++)
		sample(i, PLUMB_REASON_SELECTED, 5000);
	for (uint32_t i = 3; i < 6; i++)
		sample(i, PLUMB_REASON_SELECTED, 100);
	sample(4, PLUMB_REASON_LONG, 1000);
	slice_it();
	check_causes(4, 0, 3);
	assert_int_equal(top_of(4)->place.insn, 3);
	assert_true(top_of(4)->share < 0.6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_1_2_4_control_words_of_real_code),
		cmocka_unit_test(test_3_all_producers_of_a_counter),
		cmocka_unit_test(test_5_a_proof_survives_a_register),
		cmocka_unit_test(test_6_a_use_in_between_ends_the_way),
		cmocka_unit_test(test_7_distances_and_tokens),
		cmocka_unit_test(test_7_sources_and_results),
		cmocka_unit_test(test_8_efficiency),
		cmocka_unit_test(test_9_guarded_writes_do_not_kill),
		cmocka_unit_test(test_10_classes),
		cmocka_unit_test(test_11_vmcnt_in_order),
		cmocka_unit_test(test_11_vmcnt_of_several),
		cmocka_unit_test(test_11_lgkmcnt_out_of_order),
		cmocka_unit_test(test_11_flat_raises_two),
		cmocka_unit_test(test_11_queue_through_a_loop),
		cmocka_unit_test(test_11_split_counters),
		cmocka_unit_test(test_issue_does_not_swamp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
