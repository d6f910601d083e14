/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "isa/sass/sass.h"

enum { SIZE = 16 };
enum { NO_REGISTER = 255, NO_PREDICATE = 7, SCOREBOARDS = 6, NO_SCOREBOARD = 7 };
/* Counters: scoreboards 0 to 5, then the groups of matrix multiplications. */
enum { GROUP_COUNTER = SCOREBOARDS, NO_GROUP = 7 };
enum { BAR_ARRIVE = 1 };
/* The constant that the mode of indirect access puts in the place of the bank. */
enum { HIGH_FIRST = 91 };

struct decoding {
	struct plumb_sass_bits bits;
	const struct plumb_sass_op *op;
	unsigned architecture, form;
	struct plumb_insn *insn;
};

static uint32_t
get(const struct decoding *d, unsigned at, unsigned count)
{
	return plumb_sass_get(&d->bits, at, count);
}

static int64_t
get_signed(const struct decoding *d, unsigned at, unsigned count)
{
	return (int64_t)((uint64_t)get(d, at, count) << (64 - count)) >> (64 - count);
}

/* ---- registers ---- */

static void
add_regs(struct plumb_regs *regs, uint8_t *count, struct plumb_regs one)
{
	if (*count < PLUMB_INSN_REGS && one.count)
		regs[(*count)++] = one;
}

static void
add_read(struct decoding *d, unsigned file, unsigned first, unsigned count, unsigned role)
{
	add_regs(d->insn->reads, &d->insn->reads_count,
	         (struct plumb_regs){ .file = file, .role = role, .first = first, .count = count });
}

static void
add_write(struct decoding *d, unsigned file, unsigned first, unsigned count)
{
	add_regs(d->insn->writes, &d->insn->writes_count,
	         (struct plumb_regs){ .file = file, .first = first, .count = count });
}

/* The number of the register of FILE at AT. False: it is the one that is always zero, or true. */
static bool
read_number(const struct decoding *d, unsigned file, unsigned at, unsigned *number)
{
	switch (file) {
	case PLUMB_REG_VECTOR:
		*number = get(d, at, 8);
		return *number != NO_REGISTER;
	case PLUMB_REG_SCALAR:
		/* Six bits before Blackwell; there the other two may be set, too. */
		*number = get(d, at, d->architecture >= 100 ? 8 : 6);
		return *number != (d->architecture >= 100 ? NO_REGISTER : 63u);
	case PLUMB_REG_CONVERGENCE:
		*number = get(d, at, 4);
		return true;
	default:
		*number = get(d, at, 3);
		return *number != NO_PREDICATE;
	}
}

static void
read_regs(struct decoding *d, unsigned file, unsigned at, unsigned count, unsigned role)
{
	unsigned number;

	if (!read_number(d, file, at, &number))
		return;
	add_read(d, file, number, count, role);
	d->insn->is_vector_address |= role == PLUMB_REG_ADDRESS && file == PLUMB_REG_VECTOR;
}

static void
read_constant(struct decoding *d)
{
	if (get(d, HIGH_FIRST, 1)) { /* the bank is in a uniform register */
		read_regs(d, PLUMB_REG_SCALAR, 32, 2, PLUMB_REG_ADDRESS);
		return;
	}
	d->insn->reads_constant = true;
	d->insn->constant_bank = get(d, 54, 5);
	d->insn->displacement = get(d, 40, 14) * 4;
}

/* What lies at bit 32 in the forms that have no vector register there. */
static void
read_other(struct decoding *d, unsigned width, unsigned role)
{
	switch (d->form) {
	case 2:
	case 4:
		d->insn->has_immediate = true;
		d->insn->immediate = (int32_t)get(d, 32, 32);
		break;
	case 3:
	case 5:
		read_constant(d);
		break;
	case 6:
	case 7:
		read_regs(d, PLUMB_REG_SCALAR, 32, width, role);
		break;
	default:
		break;
	}
}

/* Global memory: bit 72 is set if addresses have 64 bits. With a uniform register, which then is
 * their base or has the kind of access, bit 90 says so. */
static void
read_address(struct decoding *d, const struct plumb_sass_operand *operand)
{
	bool has_uniform = get(d, 91, 1);
	bool has_bit = has_uniform && operand->place == PLUMB_SASS_ADDRESS;
	bool is_wide = get(d, has_bit ? 90 : 72, 1);

	read_regs(d, PLUMB_REG_VECTOR, 24, is_wide ? 2 : 1, operand->role);
	if (has_uniform)
		read_regs(d, PLUMB_REG_SCALAR, operand->at, 2, operand->role);
}

static void
read_offset(struct decoding *d, const struct plumb_sass_operand *operand)
{
	read_regs(d, PLUMB_REG_VECTOR, 24, 1, operand->role);
	if (get(d, 91, 1))
		read_regs(d, PLUMB_REG_SCALAR, operand->at, 1, operand->role);
}

static void
read_operand(struct decoding *d, const struct plumb_sass_operand *operand)
{
	unsigned width = operand->width, number, form = d->form;
	bool is_swapped = form == 2 || form == 3 || form == 7;

	if (width >= PLUMB_SASS_ACCESS)
		width = plumb_sass_count(d->architecture, d->op, &d->bits, width);
	switch (operand->place) {
	case PLUMB_SASS_READS:
		read_regs(d, operand->file, operand->at, width, operand->role);
		break;
	case PLUMB_SASS_WRITES:
		if (read_number(d, operand->file, operand->at, &number))
			add_write(d, operand->file, number, width);
		break;
	case PLUMB_SASS_FORM_B:
	case PLUMB_SASS_FORM_C:
		if (is_swapped == (operand->place == PLUMB_SASS_FORM_B))
			read_regs(d, PLUMB_REG_VECTOR, 64, width, operand->role);
		else if (form == 1)
			read_regs(d, PLUMB_REG_VECTOR, 32, width, operand->role);
		else
			read_other(d, width, operand->role);
		break;
	case PLUMB_SASS_FORM_S:
		if (form == 1)
			read_regs(d, PLUMB_REG_VECTOR, 32, width, operand->role);
		else
			read_other(d, width, operand->role);
		break;
	case PLUMB_SASS_FORM_U:
		if (form == 1 || form == 6)
			read_regs(d, PLUMB_REG_SCALAR, 32, width, operand->role);
		else
			read_other(d, width, operand->role);
		break;
	case PLUMB_SASS_FORM_M:
		if (form == 1 || form == 2)
			read_regs(d, PLUMB_REG_VECTOR, 32, width, operand->role);
		break;
	case PLUMB_SASS_FORM_N:
		if (form == 1 || form == 4)
			read_regs(d, PLUMB_REG_VECTOR, 64, width, operand->role);
		break;
	case PLUMB_SASS_FORM_H:
		if (form == 7)
			read_regs(d, operand->file, operand->at, width, operand->role);
		break;
	case PLUMB_SASS_EITHER:
		read_regs(d, get(d, 67, 1) ? PLUMB_REG_UNIFORM_PREDICATE : PLUMB_REG_PREDICATE,
		          operand->at, 1, 0);
		break;
	case PLUMB_SASS_INVERTED:
		number = NO_PREDICATE - get(d, operand->at, 3);
		if (number != NO_PREDICATE)
			add_read(d, operand->file, number, 1, 0);
		break;
	case PLUMB_SASS_READS91:
		if (get(d, 91, 1))
			read_regs(d, operand->file, operand->at, width, operand->role);
		break;
	case PLUMB_SASS_FORM_UB:
	case PLUMB_SASS_FORM_UC:
		if (is_swapped == (operand->place == PLUMB_SASS_FORM_UB))
			read_regs(d, PLUMB_REG_SCALAR, 64, width, operand->role);
		else if (form == 1 || form == 6)
			read_regs(d, PLUMB_REG_SCALAR, 32, width, operand->role);
		else
			read_other(d, width, operand->role);
		break;
	case PLUMB_SASS_ADDRESS:
	case PLUMB_SASS_ADDRESS72:
		read_address(d, operand);
		break;
	case PLUMB_SASS_OFFSET:
		read_offset(d, operand);
		break;
	default:
		break;
	}
}

/* ---- what is special about some operations ---- */

static void
set_target(struct decoding *d, int64_t distance)
{
	int64_t target = (int64_t)d->insn->offset + SIZE + distance;

	d->insn->has_target = target >= 0 && target <= UINT32_MAX;
	d->insn->target = d->insn->has_target ? (uint32_t)target : 0;
}

/* In units of four bytes, at bit 34 and, from Hopper on, its lowest eight bits at bit 16. */
static void
read_target(struct decoding *d, bool has_low)
{
	uint64_t high = (uint64_t)get(d, 64, 18) << 30 | get(d, 34, 30);
	int64_t units = (int64_t)(high << 16) >> 16;

	if (has_low && d->architecture >= 90)
		units = (int64_t)((uint64_t)units << 8) | get(d, 16, 8);
	set_target(d, (int64_t)((uint64_t)units << 2));
}

static void
add_wait(struct decoding *d, uint64_t counters, unsigned threshold)
{
	if (counters && d->insn->waits_count < PLUMB_INSN_WAITS)
		d->insn->waits[d->insn->waits_count++] = (struct plumb_wait_for){
			.counters = counters,
			.threshold = threshold,
			.parts = PLUMB_SYNC_RESULT | PLUMB_SYNC_SOURCES,
		};
}

static void
add_signal(struct decoding *d, unsigned counter, unsigned part, unsigned order)
{
	if (d->insn->signals_count < PLUMB_INSN_SIGNALS)
		d->insn->signals[d->insn->signals_count++] =
			(struct plumb_signal){ .counter = counter, .part = part, .order = order };
}

/* DEPBAR.LE SB1, 3, {2,4} waits until at most 3 are left in SB1 and none in SB2 and SB4. */
static void
read_depbar(struct decoding *d)
{
	add_wait(d, get(d, 32, 6), 0);
	if (get(d, 47, 1))
		add_wait(d, UINT64_C(1) << get(d, 44, 3), get(d, 38, 6));
}

/* WARPGROUP.DEPBAR.LE gsb0, 1 waits until at most 1 group of matrix multiplications is left.
 * WARPGROUP.ARRIVE waits for the other warps, so for no counter. */
static void
read_group_wait(struct decoding *d)
{
	if (!get(d, 80, 1))
		return;
	add_wait(d, UINT64_C(1) << GROUP_COUNTER, get(d, 72, 6));
	d->insn->waits[d->insn->waits_count - 1].parts = PLUMB_SYNC_RESULT;
}

/* Runs of bits that are set, as ranges of predicates. */
static void
add_predicates(struct decoding *d, bool is_written)
{
	unsigned mask = get(d, 32, NO_PREDICATE);

	if (d->form != 4)
		mask = (1u << NO_PREDICATE) - 1;
	for (unsigned first = 0, count; first < NO_PREDICATE; first += count + 1) {
		for (count = 0; mask >> (first + count) & 1; count++)
			;
		if (count && is_written)
			add_write(d, PLUMB_REG_PREDICATE, first, count);
		else if (count)
			add_read(d, PLUMB_REG_PREDICATE, first, count, 0);
	}
}

static void
read_memory(struct decoding *d)
{
	d->insn->displacement = (int32_t)get_signed(d, 40, 24);
}

/* The number of the barrier, and of threads, is a number or in a register. */
static void
read_bar(struct decoding *d)
{
	unsigned mode = get(d, 77, 3);

	d->insn->arrives_only = mode == BAR_ARRIVE;
	d->insn->barrier = 0xff;
	if (d->form == 4 || d->form == 5)
		d->insn->barrier = get(d, 54, 4);
	if (d->form != 5)
		read_regs(d, PLUMB_REG_VECTOR, 32, 1, 0);
	if (mode > BAR_ARRIVE) /* a reduction of a predicate */
		read_regs(d, PLUMB_REG_PREDICATE, 87, 1, 0);
}

static void
read_warpsync(struct decoding *d)
{
	bool is_collective = get(d, 86, 1);

	if (d->form == 1) /* of the others, the register lies at either place */
		read_regs(d, PLUMB_REG_VECTOR, is_collective || get(d, 24, 8) ? 24 : 32, 1, 0);
	if (is_collective)
		read_target(d, true);
}

/* ---- what makes addresses ---- */

/* Special registers, as S2R numbers them. */
enum {
	LANE = 0x00,
	THREAD_X = 0x21,
	THREAD_Y,
	THREAD_Z,
	BLOCK_X = 0x25,
	BLOCK_Z = 0x27,
	ZERO = 0xff
};
enum { SUB_A = 72, CARRIES = 74, SUB_C = 75, SUB_B = 63, IS_HIGH = 80, IS_RIGHT = 76 };
enum { AND = 0xc0, OR = 0xfc }; /* of the first two operands of LOP3 */

static uint8_t
made_by_special(const struct decoding *d)
{
	unsigned number = get(d, 72, 8);

	if (number == LANE || number == THREAD_X)
		return PLUMB_MAKES_LANE;
	if (number == ZERO)
		return PLUMB_MAKES_CONSTANT;
	/* Threads are numbered along x first. As a rule, a warp is in one row of y. If it is in two
	 * or four, its lanes are still next to each other in groups of sixteen or eight. */
	if (number == THREAD_Y || number == THREAD_Z)
		return PLUMB_MAKES_ROW;
	return number >= BLOCK_X && number <= BLOCK_Z ? PLUMB_MAKES_UNIFORM : PLUMB_MAKES_UNKNOWN;
}

/* Is all that it reads one immediate, in the place of the last operand? */
static bool
is_constant(const struct decoding *d)
{
	bool is_move = d->op->extra == PLUMB_SASS_MOVE;

	return (d->form == 2 || (d->form == 4 && is_move)) && d->insn->has_immediate &&
	       !d->insn->reads_count;
}

/* Is one of the operands taken away, or a carry added? */
static bool
subtracts(const struct decoding *d)
{
	bool has_sign = d->form != 2 && d->form != 4; /* bit 63 is the number's own sign */

	return get(d, SUB_A, 1) || get(d, CARRIES, 1) || get(d, SUB_C, 1) ||
	       (has_sign && get(d, SUB_B, 1));
}

static bool
has_factor(const struct plumb_insn *insn)
{
	for (unsigned i = 0; i < insn->reads_count; i++)
		if (insn->reads[i].role == PLUMB_REG_FACTOR)
			return true;
	return false;
}

static uint8_t
made_by_product(const struct decoding *d)
{
	if (get(d, CARRIES, 1) || get(d, SUB_C, 1) || (d->form == 1 && get(d, SUB_B, 1)))
		return PLUMB_MAKES_UNKNOWN;
	if (is_constant(d))
		return PLUMB_MAKES_CONSTANT;
	return has_factor(d->insn) ? PLUMB_MAKES_PRODUCT : PLUMB_MAKES_SUM; /* IMAD.MOV */
}

/* LEA adds A << a number to B. */
static uint8_t
made_by_lea(const struct decoding *d)
{
	if (get(d, IS_HIGH, 1) || get(d, CARRIES, 1) || get(d, SUB_A, 1) || d->form == 4)
		return PLUMB_MAKES_UNKNOWN;
	d->insn->has_immediate = true;
	d->insn->immediate = get(d, 75, 5);
	return PLUMB_MAKES_SHIFT;
}

/* To the right, it takes the upper word of two, of which the lower one is 0. */
static uint8_t
made_by_shift(const struct decoding *d)
{
	struct plumb_insn *insn = d->insn;

	if (d->form == 4 && get(d, IS_RIGHT, 1) && get(d, IS_HIGH, 1) &&
	    get(d, 24, 8) == NO_REGISTER && insn->reads_count == 1) {
		insn->reads[0].role = PLUMB_REG_FACTOR;
		return PLUMB_MAKES_RIGHT;
	}
	if (d->form != 4 || get(d, IS_RIGHT, 1) || get(d, IS_HIGH, 1) ||
	    get(d, 64, 8) != NO_REGISTER)
		return PLUMB_MAKES_UNKNOWN;
	return PLUMB_MAKES_SHIFT;
}

/* Compilers add by OR where no bit is set in both operands. */
static uint8_t
made_by_logic(const struct decoding *d)
{
	unsigned table = get(d, 72, 8);

	if (d->form == 4 && table == AND && get(d, 64, 8) == NO_REGISTER)
		return PLUMB_MAKES_MASKED;
	return table == OR && get(d, 64, 8) == NO_REGISTER ? PLUMB_MAKES_SUM : PLUMB_MAKES_UNKNOWN;
}

static uint8_t
made_by(const struct decoding *d)
{
	if (d->op->extra == PLUMB_SASS_MOVE && is_constant(d))
		return PLUMB_MAKES_CONSTANT;
	if (d->op->pipe == PLUMB_PIPE_UNIFORM)
		return PLUMB_MAKES_UNIFORM;
	switch (d->op->extra) {
	case PLUMB_SASS_MOVE:
		return PLUMB_MAKES_SUM;
	case PLUMB_SASS_LOGIC:
		return made_by_logic(d);
	case PLUMB_SASS_HALVES: /* 0 times 0, plus two halves: a move of any 32 bits */
		return is_constant(d) ? PLUMB_MAKES_CONSTANT : PLUMB_MAKES_UNKNOWN;
	case PLUMB_SASS_SUM:
		return subtracts(d) ? PLUMB_MAKES_UNKNOWN : PLUMB_MAKES_SUM;
	case PLUMB_SASS_PRODUCT:
		return made_by_product(d);
	case PLUMB_SASS_LEA:
		return made_by_lea(d);
	case PLUMB_SASS_SHIFT:
		return made_by_shift(d);
	case PLUMB_SASS_SPECIAL_REGISTER:
		return made_by_special(d);
	default:
		return PLUMB_MAKES_UNKNOWN;
	}
}

static void
read_extra(struct decoding *d)
{
	struct plumb_insn *insn = d->insn;

	switch (d->op->extra) {
	case PLUMB_SASS_CONSTANT:
		insn->reads_constant = true;
		insn->constant_bank = get(d, 54, 5);
		insn->displacement = (int32_t)get_signed(d, 38, 16);
		break;
	case PLUMB_SASS_MEMORY:
	case PLUMB_SASS_SYNCS:
		read_memory(d);
		insn->barrier = 0xff;
		break;
	case PLUMB_SASS_LARGE:
		insn->displacement =
			(int32_t)get_signed(d, 40, insn->class == PLUMB_INSN_LOAD ? 17 : 19) * 32;
		insn->width = 32;
		break;
	case PLUMB_SASS_COPY:
		insn->displacement = (int32_t)get_signed(d, 32, 12);
		break;
	case PLUMB_SASS_HANDLE:
		if (d->form == 7 || d->form == 1 || d->form == 4)
			break;
		insn->reads_constant = true;
		insn->constant_bank = get(d, 54, 5);
		insn->displacement = get(d, 40, 14) * 4;
		break;
	case PLUMB_SASS_TARGET:
		read_target(d, true);
		insn->is_conditional = get(d, 87, 3) != NO_PREDICATE || d->form == 2;
		break;
	case PLUMB_SASS_TARGET_OLD:
		read_target(d, false);
		break;
	case PLUMB_SASS_INDIRECT:
		insn->is_indirect = true;
		insn->is_conditional = get(d, 87, 3) != NO_PREDICATE;
		break;
	case PLUMB_SASS_DEPBAR:
		read_depbar(d);
		break;
	case PLUMB_SASS_BARRIER:
		insn->barrier = 0xff;
		break;
	case PLUMB_SASS_BAR:
		read_bar(d);
		break;
	case PLUMB_SASS_WARPSYNC:
		read_warpsync(d);
		break;
	case PLUMB_SASS_TILE:
		if (get(d, 76, 1)) /* its descriptor of caching */
			read_regs(d, PLUMB_REG_SCALAR, 40, 2, 0);
		break;
	case PLUMB_SASS_GROUP:
		if (get(d, 84, 3) != NO_GROUP)
			add_signal(d, GROUP_COUNTER, PLUMB_SYNC_RESULT, 1);
		break;
	case PLUMB_SASS_GROUP_WAIT:
		read_group_wait(d);
		break;
	case PLUMB_SASS_P2R:
		add_predicates(d, false);
		break;
	case PLUMB_SASS_R2P:
		add_predicates(d, true);
		break;
	default:
		break;
	}
}

/* ---- the instruction ---- */

static void
read_control(struct decoding *d)
{
	unsigned result = get(d, 110, 3), sources = get(d, 113, 3);

	d->insn->issue = get(d, 105, 4);
	add_wait(d, get(d, 116, 6), 0);
	if (result < SCOREBOARDS)
		add_signal(d, result, PLUMB_SYNC_RESULT, 0);
	if (sources < SCOREBOARDS)
		add_signal(d, sources, PLUMB_SYNC_SOURCES, 0);
}

static void
read_guard(struct decoding *d)
{
	unsigned number = get(d, 12, 3);
	bool is_not = get(d, 15, 1);

	d->insn->guard = PLUMB_INSN_ALWAYS;
	if (number == NO_PREDICATE && !is_not)
		return;
	d->insn->guard = number;
	d->insn->guard_not = is_not;
	d->insn->guard_file =
		d->op && d->op->is_uniform ? PLUMB_REG_UNIFORM_PREDICATE : PLUMB_REG_PREDICATE;
}

static bool
varies(const struct decoding *d)
{
	switch (d->op->latency) {
	case PLUMB_SASS_VARIES:
		return true;
	case PLUMB_SASS_FP64:
		return d->architecture != 90 && (d->architecture < 100 || d->architecture >= 110);
	case PLUMB_SASS_TENSOR:
		return d->architecture < 80;
	default:
		return false;
	}
}

static const uint8_t access_bytes[8] = { 1, 1, 2, 2, 4, 8, 16, 16 };

static void
read_class(struct decoding *d)
{
	struct plumb_insn *insn = d->insn;
	const struct plumb_sass_operand *operand = d->op->operands;

	insn->class = d->op->class;
	insn->space = d->op->space;
	insn->pipe = d->op->pipe;
	insn->opcode = d->op->name;
	insn->variable = varies(d);
	/* A100 raises a counter for FP64, but has as many units for it as Hopper. */
	if (!insn->variable || (d->op->latency == PLUMB_SASS_FP64 && d->architecture == 80))
		insn->latency = plumb_sass_latency(d->architecture, d->op);
	for (unsigned i = 0; i < PLUMB_SASS_OPERANDS && operand[i].place; i++) {
		unsigned rule = operand[i].width;
		read_operand(d, &operand[i]);
		if (rule == PLUMB_SASS_ACCESS)
			insn->width = access_bytes[get(d, 73, 3)];
		else if (rule == PLUMB_SASS_ATOMIC || rule == PLUMB_SASS_ATOMIC_PAIR ||
		         rule == PLUMB_SASS_MATRICES)
			insn->width = plumb_sass_count(d->architecture, d->op, &d->bits, rule) * 4;
	}
	read_extra(d);
	insn->makes = made_by(d);
}

/* The number in "sm_90a"; 0: it is something else. */
static unsigned
number_of(const char *architecture)
{
	if (strncmp(architecture, "sm_", 3))
		return 0;
	return (unsigned)strtoul(architecture + 3, NULL, 10);
}

unsigned
plumb_sass_decode(const char *architecture, const void *text, size_t left, uint32_t offset,
                  struct plumb_insn *insn)
{
	struct decoding d = { .architecture = number_of(architecture), .insn = insn };

	if (left < SIZE)
		return 0;
	memcpy(&d.bits.low, text, 8);
	memcpy(&d.bits.high, (const char *)text + 8, 8);
	d.form = get(&d, 9, 3);
	d.op = plumb_sass_find(d.architecture, &d.bits);
	*insn = (struct plumb_insn){ .offset = offset, .size = SIZE, .class = PLUMB_INSN_UNKNOWN };
	read_control(&d);
	read_guard(&d);
	if (d.op)
		read_class(&d);
	else
		insn->opcode = "?";
	for (unsigned i = 0; i < insn->signals_count; i++)
		insn->variable |= insn->signals[i].part == PLUMB_SYNC_RESULT;
	return SIZE;
}

const struct plumb_sass_op *
plumb_sass_find(unsigned architecture, const struct plumb_sass_bits *bits)
{
	unsigned number = plumb_sass_get(bits, 0, 9), form = plumb_sass_get(bits, 9, 3);
	uint32_t low = 0, high = plumb_sass_op_count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		if (plumb_sass_ops[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < plumb_sass_op_count && plumb_sass_ops[low].number == number; low++) {
		const struct plumb_sass_op *op = &plumb_sass_ops[low];
		if (op->forms >> form & 1 && architecture >= op->from && architecture <= op->to &&
		    (!op->bit || plumb_sass_get(bits, op->bit, 1) == op->value))
			return op;
	}
	return NULL;
}

static bool
decodes(const char *architecture)
{
	unsigned number = number_of(architecture);

	return number >= 75 && number < 130;
}

static const char *
counter_name(unsigned counter)
{
	static const char *const names[] = { "SB0", "SB1", "SB2", "SB3", "SB4", "SB5", "GSB0" };

	return counter < sizeof names / sizeof *names ? names[counter] : "?";
}

const struct plumb_isa plumb_isa_sass = {
	.name = "sass",
	.vendor = "nvidia",
	.shortest = SIZE,
	.decodes = decodes,
	.decode = plumb_sass_decode,
	.print = plumb_sass_print,
	.counter_name = counter_name,
};
