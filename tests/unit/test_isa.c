/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions of NVIDIA's GPUs, word by word. Words and what they mean are from nvdisasm.
 * tests/e2e/test_decode.py compares whole kernels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "isa/isa.h"

static struct plumb_insn
decode(const char *architecture, uint64_t low, uint64_t high)
{
	const struct plumb_isa *isa = plumb_isa_find(architecture);
	const uint64_t words[2] = { low, high };
	struct plumb_insn insn;

	assert_non_null(isa);
	assert_int_equal(isa->decode(architecture, words, sizeof words, 0x100, &insn), 16);
	assert_int_equal(insn.offset, 0x100);
	return insn;
}

static void
check_regs(struct plumb_regs regs, unsigned file, unsigned first, unsigned count, unsigned role)
{
	assert_int_equal(regs.file, file);
	assert_int_equal(regs.first, first);
	assert_int_equal(regs.count, count);
	assert_int_equal(regs.role, role);
}

/* @!P0 LDG.E.128 R16, desc[UR10][R32.64], with SB2, after SB0 and SB4. */
static void
test_load(void **state)
{
	uint64_t control =
		UINT64_C(4) << 41 | UINT64_C(2) << 46 | UINT64_C(7) << 49 | UINT64_C(0x11) << 52;
	struct plumb_insn insn = decode("sm_90", 0x0000000a20108981, 0x0c1e1d00 | control);

	(void)state;
	assert_string_equal(insn.opcode, "LDG");
	assert_int_equal(insn.class, PLUMB_INSN_LOAD);
	assert_int_equal(insn.space, PLUMB_SPACE_GLOBAL);
	assert_int_equal(insn.width, 16);
	assert_true(insn.is_vector_address && insn.variable);
	assert_int_equal(insn.guard, 0);
	assert_true(insn.guard_not);
	assert_int_equal(insn.issue, 4);
	assert_int_equal(insn.writes_count, 1);
	check_regs(insn.writes[0], PLUMB_REG_VECTOR, 16, 4, 0);
	assert_int_equal(insn.reads_count, 2);
	check_regs(insn.reads[0], PLUMB_REG_VECTOR, 32, 2, PLUMB_REG_ADDRESS);
	check_regs(insn.reads[1], PLUMB_REG_SCALAR, 10, 2, PLUMB_REG_ADDRESS);
	assert_int_equal(insn.signals_count, 1);
	assert_int_equal(insn.signals[0].counter, 2);
	assert_int_equal(insn.signals[0].part, PLUMB_SYNC_RESULT);
	assert_int_equal(insn.waits_count, 1);
	assert_int_equal(insn.waits[0].counters, 0x11);
	assert_int_equal(insn.waits[0].threshold, 0);
}

#define NO_SIGNALS (UINT64_C(7) << 46 | UINT64_C(7) << 49)

/* STS.64 [R109.X8+0x200], R190 */
static void
test_store(void **state)
{
	struct plumb_insn insn = decode("sm_80", 0x000200be6d007388, 0x8a00 | NO_SIGNALS);

	(void)state;
	assert_int_equal(insn.class, PLUMB_INSN_STORE);
	assert_int_equal(insn.space, PLUMB_SPACE_SHARED);
	assert_int_equal(insn.displacement, 0x200);
	assert_int_equal(insn.guard, PLUMB_INSN_ALWAYS);
	assert_int_equal(insn.writes_count, 0);
	check_regs(insn.reads[0], PLUMB_REG_VECTOR, 109, 1, PLUMB_REG_ADDRESS);
	check_regs(insn.reads[1], PLUMB_REG_VECTOR, 190, 2, PLUMB_REG_DATA);
	assert_int_equal(insn.signals_count, 0);
}

/* DEPBAR.LE SB1, 0x3, {2} */
static void
test_depbar(void **state)
{
	struct plumb_insn insn =
		decode("sm_80", 0x000090c40000791a, NO_SIGNALS | UINT64_C(1) << 52);

	(void)state;
	assert_int_equal(insn.class, PLUMB_INSN_WAIT);
	assert_int_equal(insn.waits_count, 3);
	assert_int_equal(insn.waits[0].counters, 1); /* of its control word */
	assert_int_equal(insn.waits[1].counters, 4);
	assert_int_equal(insn.waits[1].threshold, 0);
	assert_int_equal(insn.waits[2].counters, 2);
	assert_int_equal(insn.waits[2].threshold, 3);
}

/* The latency of DFMA is fixed on data centre GPUs from Hopper on. */
static void
test_latency(void **state)
{
	static const struct {
		const char *architecture;
		bool varies;
	} cases[] = { { "sm_75", true },   { "sm_80", true },   { "sm_89", true },
		      { "sm_90a", false }, { "sm_100", false }, { "sm_120", true } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct plumb_insn insn =
			decode(cases[i].architecture, 0x0000000a0a0a722b, 0x0000000a | NO_SIGNALS);
		assert_int_equal(insn.variable, cases[i].varies);
		check_regs(insn.writes[0], PLUMB_REG_VECTOR, 10, 2, 0);
	}
}

/* Registers of fragments. */
static void
test_tensor(void **state)
{
	/* HMMA.1688.F32 R4, R36, R40, R4 and HMMA.16816.F32 R4, R136, R140, R4 */
	struct plumb_insn small = decode("sm_75", 0x000000282404723c, 0x1004 | NO_SIGNALS);
	struct plumb_insn large = decode("sm_80", 0x0000008c8804723c, 0x1804 | NO_SIGNALS);
	/* HGMMA.64x128x16.F32.BF16 R24, gdesc[UR20].tnspA, R24, UP0, gsb0 */
	struct plumb_insn group = decode("sm_90a", 0x21e00000141879f0, 0x0b801818 | NO_SIGNALS);

	(void)state;
	assert_int_equal(small.reads[0].count, 2);
	assert_int_equal(small.reads[1].count, 1);
	assert_int_equal(small.reads[2].count, 4);
	assert_true(small.variable);
	assert_int_equal(large.reads[0].count, 4);
	assert_int_equal(large.reads[1].count, 2);
	assert_false(large.variable);
	check_regs(group.writes[0], PLUMB_REG_VECTOR, 24, 64, 0);
	check_regs(group.reads[0], PLUMB_REG_SCALAR, 20, 4, 0);
	check_regs(group.reads[2], PLUMB_REG_UNIFORM_PREDICATE, 0, 1, 0);
	assert_int_equal(group.signals_count, 1);
	assert_string_equal(plumb_isa_find("sm_90a")->counter_name(group.signals[0].counter),
	                    "GSB0");
	assert_int_equal(group.signals[0].order, 1);
}

/* What waits for groups of matrix multiplications: DEPBAR does, ARRIVE waits for other warps. */
static void
test_groups(void **state)
{
	/* WARPGROUP.DEPBAR.LE gsb0, 0x2; WARPGROUP.ARRIVE */
	struct plumb_insn wait = decode("sm_90a", 0x00008000000079c5, 0x10200 | NO_SIGNALS);
	struct plumb_insn arrive = decode("sm_90a", 0x00000000000079c5, NO_SIGNALS);

	(void)state;
	assert_int_equal(wait.waits_count, 1);
	assert_int_equal(wait.waits[0].counters, 1 << 6);
	assert_int_equal(wait.waits[0].threshold, 2);
	assert_int_equal(wait.waits[0].parts, PLUMB_SYNC_RESULT);
	assert_int_equal(wait.class, PLUMB_INSN_WAIT);
	assert_int_equal(arrive.waits_count, 0);
}

static void
test_textures(void **state)
{
	/* TEX.LL.DC R9, R6, R8, R6, UR4, 0x0, 2D, 0xb: three of four numbers; level, value */
	struct plumb_insn tex = decode("sm_90", 0x2000040608067f60, 0x099e4b09 | NO_SIGNALS);
	/* TEX.SCR.LZ.DC P0, R8, R6, R6, R8, 0x0, 0x60, ARRAY_2D: half of four in each range */
	struct plumb_insn halves = decode("sm_75", 0xb000600806067b60, 0x00904f08 | NO_SIGNALS);
	/* SULD.D.BA.2D_ARRAY.128 R8, [R4], UR6, 0x0; SUST.P.3D [R4], R8, UR4, 0x0 */
	struct plumb_insn load = decode("sm_90", 0x8800060004087f99, 0x081f4d00 | NO_SIGNALS);
	struct plumb_insn store = decode("sm_90", 0xa000040804007f9b, 0x0810af00 | NO_SIGNALS);

	(void)state;
	assert_string_equal(tex.opcode, "TEX");
	assert_int_equal(tex.class, PLUMB_INSN_TEXTURE);
	check_regs(tex.writes[0], PLUMB_REG_VECTOR, 6, 2, 0);
	check_regs(tex.writes[1], PLUMB_REG_VECTOR, 9, 1, 0);
	check_regs(tex.reads[0], PLUMB_REG_VECTOR, 8, 2, 0);
	check_regs(tex.reads[1], PLUMB_REG_VECTOR, 6, 2, 0);
	check_regs(tex.reads[2], PLUMB_REG_SCALAR, 4, 2, 0);
	check_regs(halves.reads[0], PLUMB_REG_VECTOR, 6, 2, 0);
	check_regs(halves.reads[1], PLUMB_REG_VECTOR, 8, 2, 0);
	check_regs(halves.writes[2], PLUMB_REG_PREDICATE, 0, 1, 0);
	assert_int_equal(halves.displacement, 0x60 * 4);
	check_regs(load.writes[0], PLUMB_REG_VECTOR, 8, 4, 0);
	check_regs(load.reads[0], PLUMB_REG_VECTOR, 4, 3, 0);
	assert_int_equal(load.width, 16);
	check_regs(store.reads[1], PLUMB_REG_VECTOR, 8, 4, PLUMB_REG_DATA);
	assert_int_equal(store.class, PLUMB_INSN_STORE);
}

/* @P0 BRA, at 0x60 of a function, to 0x150; and one instruction back on Ampere. */
static void
test_branches(void **state)
{
	struct plumb_insn forth = decode("sm_90", 0x0000000000380947, 0x03800000 | NO_SIGNALS);
	struct plumb_insn back = decode("sm_80", 0xfffffff000007947, 0x0383ffff | NO_SIGNALS);

	(void)state;
	assert_true(forth.has_target && back.has_target);
	assert_int_equal(forth.target - forth.offset, 0xf0);
	assert_int_equal(back.target, back.offset);
	assert_int_equal(forth.class, PLUMB_INSN_BRANCH);
}

static void
test_what_makes_addresses(void **state)
{
	/* IMAD.WIDE R12, R12, 0x40, R102; LEA R3, R3, R0, 0x18; S2R R16, SR_TID.X */
	struct plumb_insn wide = decode("sm_90", 0x000000400c0c7825, 0x078e0266 | NO_SIGNALS);
	struct plumb_insn lea = decode("sm_90", 0x0000000003037211, 0x078ec0ff | NO_SIGNALS);
	struct plumb_insn lane = decode("sm_90", 0x0000000000107919, 0x2100 | NO_SIGNALS);

	(void)state;
	assert_int_equal(wide.makes, PLUMB_MAKES_PRODUCT);
	assert_int_equal(wide.immediate, 0x40);
	check_regs(wide.reads[0], PLUMB_REG_VECTOR, 12, 1, PLUMB_REG_FACTOR);
	check_regs(wide.reads[1], PLUMB_REG_VECTOR, 102, 2, 0);
	assert_int_equal(lea.makes, PLUMB_MAKES_SHIFT);
	assert_int_equal(lea.immediate, 0x18);
	assert_int_equal(lane.makes, PLUMB_MAKES_LANE);
}

/* Encodings that nvcc made. */
static void
test_what_keeps_strides(void **state)
{
	/* LEA R7, R0, UR4, 0x2; S2R R3, SR_TID.Y; LOP3.LUT R8, R3, 0x1f, RZ, 0xc0, !PT;
	 * SHF.R.U32.HI R5, RZ, 0x5, R3; SHF.R.S32.HI R0, RZ, 0x1f, R6 */
	struct plumb_insn lea = decode("sm_90", 0x0000000400077c11, 0x0f8e10ff | NO_SIGNALS);
	struct plumb_insn row = decode("sm_90", 0x0000000000037919, 0x2200 | NO_SIGNALS);
	struct plumb_insn and = decode("sm_90", 0x0000001f03087812, 0x078ec0ff | NO_SIGNALS);
	struct plumb_insn shift = decode("sm_90", 0x00000005ff057819, 0x00011603 | NO_SIGNALS);

	(void)state;
	assert_int_equal(lea.makes, PLUMB_MAKES_SHIFT);
	assert_int_equal(lea.immediate, 2);
	check_regs(lea.reads[0], PLUMB_REG_VECTOR, 0, 1, PLUMB_REG_FACTOR);
	assert_int_equal(row.makes, PLUMB_MAKES_ROW);
	assert_int_equal(and.makes, PLUMB_MAKES_MASKED);
	assert_int_equal(and.immediate, 0x1f);
	assert_int_equal(shift.makes, PLUMB_MAKES_RIGHT);
	assert_int_equal(shift.immediate, 5);
	check_regs(shift.reads[0], PLUMB_REG_VECTOR, 3, 1, PLUMB_REG_FACTOR);
}

/* Three ways in which compilers put the number 4 into a register. */
static void
test_constants_in_registers(void **state)
{
	/* HFMA2.MMA R5, -RZ, RZ, 0, 2.384185791015625e-07; MOV R5, 0x4;
	 * IMAD.MOV.U32 R5, RZ, RZ, 0x4 */
	struct plumb_insn halves = decode("sm_80", 0x00000004ff057435, 0x000001ff | NO_SIGNALS);
	struct plumb_insn move = decode("sm_75", 0x0000000400057802, 0x00000f00 | NO_SIGNALS);
	struct plumb_insn product = decode("sm_80", 0x00000004ff057424, 0x078e00ff | NO_SIGNALS);
	/* HFMA2.MMA R5, R6, R7, 0, 2.384185791015625e-07 makes something else. */
	struct plumb_insn other = decode("sm_80", 0x0000000406057435, 0x00000107 | NO_SIGNALS);

	(void)state;
	assert_int_equal(halves.makes, PLUMB_MAKES_CONSTANT);
	assert_int_equal(halves.immediate, 4);
	assert_int_equal(move.makes, PLUMB_MAKES_CONSTANT);
	assert_int_equal(move.immediate, 4);
	assert_int_equal(product.makes, PLUMB_MAKES_CONSTANT);
	assert_int_equal(product.immediate, 4);
	assert_int_equal(other.makes, PLUMB_MAKES_UNKNOWN);
}

/* The control word of an unknown operation is read all the same. */
static void
test_unknown(void **state)
{
	struct plumb_insn insn =
		decode("sm_90", 0x71ff, UINT64_C(3) << 41 | NO_SIGNALS | UINT64_C(2) << 52);

	(void)state;
	assert_int_equal(insn.class, PLUMB_INSN_UNKNOWN);
	assert_int_equal(insn.issue, 3);
	assert_int_equal(insn.waits[0].counters, 2);
	assert_int_equal(insn.reads_count + insn.writes_count, 0);
	assert_null(plumb_isa_find("sm_70"));
	assert_null(plumb_isa_find("gfx942"));
}

static void
test_code(void **state)
{
	const uint64_t words[4] = { 0x794d, 0x03800000 | NO_SIGNALS, 0x7918, NO_SIGNALS };
	const struct plumb_isa *isa = plumb_isa_find("sm_90");
	struct plumb_insns insns;
	struct plumb_error error;
	char assembly[16];

	(void)state;
	assert_int_equal(plumb_isa_decode(isa, "sm_90", words, 32, &insns, &error), 0);
	assert_int_equal(insns.count, 2);
	assert_int_equal(insns.unknown, 0);
	isa->print("sm_90", words, &insns.items[0], assembly, sizeof assembly);
	assert_string_equal(assembly, "EXIT");
	isa->print("sm_90", words, &insns.items[0], assembly, 3);
	assert_string_equal(assembly, "EX");
	plumb_insns_free(&insns);
	assert_int_equal(plumb_isa_decode(isa, "sm_90", words, 20, &insns, &error), PLUMB_EINPUT);
	assert_non_null(strstr(error.message, "ends within"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_load),
		cmocka_unit_test(test_store),
		cmocka_unit_test(test_depbar),
		cmocka_unit_test(test_latency),
		cmocka_unit_test(test_tensor),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_textures),
		cmocka_unit_test(test_branches),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_what_makes_addresses),
		cmocka_unit_test(test_what_keeps_strides),
		cmocka_unit_test(test_constants_in_registers),
		cmocka_unit_test(test_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
