/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions by hand, for tests of the slicer. A line is an instruction of no vendor:
 *
 *	"top: @!P0 LDG R2:2 = [R4:2+16] >0 ?1 !4 ^top"
 *
 *	top:      a label                      @P0 @!P0  a guard
 *	R2:2      two registers from R2        UR4, P0   other files
 *	[R4:2+16] an address                   *R4       a factor
 *	#4        an immediate                 ^top      target of a branch or call
 *	>0        raises counter 0, result     >0s       … until its sources are read
 *	>0o1      … in the order 1             ?0        waits until counter 0 is 0
 *	?0<=2     … is at most 2               ?0r ?0s   … for results, for sources only
 *	!4        issue cycles (default 1)     ~4        latency
 *	w8        bytes of an access           b1        number of a barrier
 *	c         reads a constant operand
 */
#ifndef PLUMB_TESTS_SLICE_CODE_H
#define PLUMB_TESTS_SLICE_CODE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/slice/slice.h"

#define SLICE_CODE_MOST 4096

struct slice_code {
	struct plumb_insn items[SLICE_CODE_MOST];
	struct plumb_insns insns;
	char labels[SLICE_CODE_MOST][12], targets[SLICE_CODE_MOST][12];
};

struct slice_opcode {
	const char *word;
	uint8_t class, space, pipe, makes, latency;
	bool variable;
};

static const struct slice_opcode slice_opcodes[] = {
	{ "LDG", PLUMB_INSN_LOAD, PLUMB_SPACE_GLOBAL, PLUMB_PIPE_LOCAL_GLOBAL, 0, 0, true },
	{ "LDL", PLUMB_INSN_LOAD, PLUMB_SPACE_LOCAL, PLUMB_PIPE_LOCAL_GLOBAL, 0, 0, true },
	{ "LDS", PLUMB_INSN_LOAD, PLUMB_SPACE_SHARED, PLUMB_PIPE_SHARED, 0, 0, true },
	{ "LDC", PLUMB_INSN_LOAD, PLUMB_SPACE_CONSTANT, PLUMB_PIPE_CONSTANT, 0, 0, true },
	{ "STG", PLUMB_INSN_STORE, PLUMB_SPACE_GLOBAL, PLUMB_PIPE_LOCAL_GLOBAL, 0, 0, true },
	{ "STL", PLUMB_INSN_STORE, PLUMB_SPACE_LOCAL, PLUMB_PIPE_LOCAL_GLOBAL, 0, 0, true },
	{ "STS", PLUMB_INSN_STORE, PLUMB_SPACE_SHARED, PLUMB_PIPE_SHARED, 0, 0, true },
	{ "ATOMG", PLUMB_INSN_ATOMIC, PLUMB_SPACE_GLOBAL, PLUMB_PIPE_LOCAL_GLOBAL, 0, 0, true },
	{ "LDGSTS", PLUMB_INSN_COPY, PLUMB_SPACE_SHARED, PLUMB_PIPE_LOCAL_GLOBAL, 0, 0, true },
	{ "UBLKCP", PLUMB_INSN_COPY, PLUMB_SPACE_GLOBAL, PLUMB_PIPE_LOCAL_GLOBAL, 0, 0, true },
	{ "SYNCS", PLUMB_INSN_BARRIER, PLUMB_SPACE_SHARED, PLUMB_PIPE_SHARED, 0, 0, true },
	{ "UMOV", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_UNIFORM, PLUMB_MAKES_UNIFORM, 0, false },
	{ "S2R", PLUMB_INSN_REGISTER, 0, PLUMB_PIPE_NONE, PLUMB_MAKES_UNIFORM, 0, true },
	{ "TID", PLUMB_INSN_REGISTER, 0, PLUMB_PIPE_NONE, PLUMB_MAKES_LANE, 0, true },
	{ "ROW", PLUMB_INSN_REGISTER, 0, PLUMB_PIPE_NONE, PLUMB_MAKES_ROW, 0, true },
	{ "MUFU", PLUMB_INSN_SPECIAL, 0, PLUMB_PIPE_SPECIAL, 0, 0, true },
	{ "F2F", PLUMB_INSN_CONVERT, 0, PLUMB_PIPE_SPECIAL, 0, 0, true },
	{ "IADD", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_INTEGER, PLUMB_MAKES_SUM, 4, false },
	{ "MOV", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_INTEGER, PLUMB_MAKES_SUM, 4, false },
	{ "IMAD", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_INTEGER, PLUMB_MAKES_PRODUCT, 4, false },
	{ "SHL", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_INTEGER, PLUMB_MAKES_SHIFT, 4, false },
	{ "NUM", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_INTEGER, PLUMB_MAKES_CONSTANT, 4, false },
	{ "AND", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_INTEGER, PLUMB_MAKES_MASKED, 4, false },
	{ "SHR", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_INTEGER, PLUMB_MAKES_RIGHT, 4, false },
	{ "LOP", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_INTEGER, 0, 4, false },
	{ "ISETP", PLUMB_INSN_INTEGER, 0, PLUMB_PIPE_INTEGER, 0, 5, false },
	{ "FFMA", PLUMB_INSN_FLOAT32, 0, PLUMB_PIPE_FLOAT32, 0, 4, false },
	{ "FADD", PLUMB_INSN_FLOAT32, 0, PLUMB_PIPE_FLOAT32, 0, 4, false },
	{ "FMUL", PLUMB_INSN_FLOAT32, 0, PLUMB_PIPE_FLOAT32, 0, 4, false },
	{ "DFMA", PLUMB_INSN_FLOAT64, 0, PLUMB_PIPE_FLOAT64, 0, 8, false },
	{ "HGMMA", PLUMB_INSN_TENSOR, 0, PLUMB_PIPE_TENSOR, 0, 0, true },
	{ "BAR", PLUMB_INSN_BARRIER, 0, PLUMB_PIPE_CONTROL, 0, 0, false },
	{ "MEMBAR", PLUMB_INSN_MEMORY_BARRIER, 0, PLUMB_PIPE_CONTROL, 0, 0, false },
	{ "WAIT", PLUMB_INSN_WAIT, 0, PLUMB_PIPE_CONTROL, 0, 0, false },
	{ "WARPGROUP", PLUMB_INSN_WAIT, 0, PLUMB_PIPE_TENSOR, 0, 0, false },
	{ "BRA", PLUMB_INSN_BRANCH, 0, PLUMB_PIPE_CONTROL, 0, 0, false },
	{ "BRX", PLUMB_INSN_BRANCH, 0, PLUMB_PIPE_CONTROL, 0, 0, false },
	{ "CALL", PLUMB_INSN_CALL, 0, PLUMB_PIPE_CONTROL, 0, 0, false },
	{ "RET", PLUMB_INSN_RETURN, 0, PLUMB_PIPE_CONTROL, 0, 0, false },
	{ "EXIT", PLUMB_INSN_EXIT, 0, PLUMB_PIPE_CONTROL, 0, 0, false },
	{ "NOP", PLUMB_INSN_NOP, 0, PLUMB_PIPE_NONE, 0, 0, false },
	{ "ODD", PLUMB_INSN_UNKNOWN, 0, PLUMB_PIPE_NONE, 0, 0, false },
};

static struct plumb_regs
slice_code_regs(const char *word)
{
	struct plumb_regs regs = { .count = 1 };
	const char *number = word + 1;

	regs.file = *word == 'R' ? PLUMB_REG_VECTOR : PLUMB_REG_PREDICATE;
	if (*word == 'U') {
		regs.file = PLUMB_REG_SCALAR;
		number++;
	}
	regs.first = (uint16_t)strtoul(number, NULL, 10);
	if (strchr(word, ':'))
		regs.count = (uint16_t)strtoul(strchr(word, ':') + 1, NULL, 10);
	return regs;
}

static inline void
slice_code_word(struct slice_code *code, struct plumb_insn *insn, const char *word, bool *read)
{
	uint32_t at = (uint32_t)(insn - code->items);
	char *end;

	if (word[strlen(word) - 1] == ':') {
		snprintf(code->labels[at], sizeof code->labels[at], "%.*s", (int)strlen(word) - 1,
		         word);
	} else if (*word == '@') {
		insn->guard_not = word[1] == '!';
		insn->guard = (uint16_t)strtoul(word + 2 + insn->guard_not, NULL, 10);
		insn->guard_file = PLUMB_REG_PREDICATE;
	} else if (*word == '=') {
		*read = true;
	} else if (*word == '[') {
		struct plumb_regs *regs = &insn->reads[insn->reads_count];

		insn->displacement = strchr(word, '+') ? atoi(strchr(word, '+') + 1) : 0;
		if (word[1] >= '0' && word[1] <= '9') {
			insn->displacement = atoi(word + 1);
		} else {
			*regs = slice_code_regs(word + 1);
			regs->role = PLUMB_REG_ADDRESS;
			insn->reads_count++;
		}
		*read = true;
	} else if (*word == '*') {
		insn->reads[insn->reads_count] = slice_code_regs(word + 1);
		insn->reads[insn->reads_count++].role = PLUMB_REG_FACTOR;
	} else if (*word == '#') {
		insn->has_immediate = true;
		insn->immediate = atoi(word + 1);
	} else if (*word == '^') {
		snprintf(code->targets[at], sizeof code->targets[at], "%s", word + 1);
	} else if (*word == '>') {
		struct plumb_signal *signal = &insn->signals[insn->signals_count++];

		signal->counter = (uint8_t)strtoul(word + 1, &end, 10);
		signal->part = *end == 's' ? PLUMB_SYNC_SOURCES : PLUMB_SYNC_RESULT;
		signal->order = strchr(word, 'o') ? (uint8_t)atoi(strchr(word, 'o') + 1) : 0;
	} else if (*word == '?') {
		struct plumb_wait_for *wait = &insn->waits[insn->waits_count++];

		wait->counters = UINT64_C(1) << strtoul(word + 1, &end, 10);
		wait->parts = *end == 's'   ? PLUMB_SYNC_SOURCES
		              : *end == 'r' ? PLUMB_SYNC_RESULT
		                            : PLUMB_SYNC_RESULT | PLUMB_SYNC_SOURCES;
		wait->threshold = strchr(word, '=') ? (uint16_t)atoi(strchr(word, '=') + 1) : 0;
	} else if (*word == '!') {
		insn->issue = (uint8_t)atoi(word + 1);
	} else if (*word == '~') {
		insn->latency = (uint8_t)atoi(word + 1);
	} else if (*word == 'w') {
		insn->width = (uint8_t)atoi(word + 1);
	} else if (*word == 'b') {
		insn->barrier = (uint8_t)atoi(word + 1);
	} else if (*word == 'c') {
		insn->reads_constant = true;
	} else if (!insn->opcode) {
		for (size_t i = 0; i < sizeof slice_opcodes / sizeof *slice_opcodes; i++)
			if (!strcmp(slice_opcodes[i].word, word)) {
				insn->opcode = slice_opcodes[i].word;
				insn->class = slice_opcodes[i].class;
				insn->space = slice_opcodes[i].space;
				insn->pipe = slice_opcodes[i].pipe;
				insn->makes = slice_opcodes[i].makes;
				insn->latency = slice_opcodes[i].latency;
				insn->variable = slice_opcodes[i].variable;
				if (insn->space)
					insn->width = 4;
			}
		if (!insn->opcode) {
			fprintf(stderr, "no opcode %s\n", word);
			abort();
		}
	} else if (*read) {
		insn->reads[insn->reads_count++] = slice_code_regs(word);
	} else {
		insn->writes[insn->writes_count++] = slice_code_regs(word);
	}
}

/* Appends LINES, which end with NULL. Without "=" or an address all registers are read. */
static inline void
slice_code_add(struct slice_code *code, const char *const *lines)
{
	for (; *lines; lines++) {
		struct plumb_insn *insn = &code->items[code->insns.count++];
		bool read =
			!strchr(strchr(*lines, '?') ? "" : *lines, '=') && !strstr(*lines, " = ");
		char copy[160], *rest = copy;

		snprintf(copy, sizeof copy, "%s", *lines);
		*insn = (struct plumb_insn){ .guard = PLUMB_INSN_ALWAYS,
			                     .issue = 1,
			                     .size = 16,
			                     .offset = (code->insns.count - 1) * 16 };
		for (char *word; (word = strsep(&rest, " ,")) != NULL;)
			if (*word)
				slice_code_word(code, insn, word, &read);
	}
	code->insns.items = code->items;
	for (uint32_t i = 0; i < code->insns.count; i++)
		for (uint32_t t = 0; *code->targets[i] && t < code->insns.count; t++)
			if (!strcmp(code->targets[i], code->labels[t])) {
				code->items[i].has_target = true;
				code->items[i].target = code->items[t].offset;
			}
}

/* ---- one kernel, its samples, and the answer ---- */

static struct slice_code code;
static struct plumb_sliced slice;
static struct plumb_slice_sample samples[256];
static uint32_t sample_count;
static uint64_t unplaced;
static struct plumb_slice_launch launch;

#define CODE(...)                                                                                  \
	do {                                                                                       \
		const char *const lines_[] = { __VA_ARGS__, NULL };                                \
		memset(&code, 0, sizeof code);                                                     \
		slice_code_add(&code, lines_);                                                     \
		sample_count = 0;                                                                  \
	} while (0)

static inline void
sample(uint32_t insn, unsigned reason, uint64_t count)
{
	samples[sample_count++] =
		(struct plumb_slice_sample){ { 0, insn }, (uint16_t)reason, false, count };
}

/* Causes add up to their stall, and no share is below 0. */
static inline void
check_conservation(const struct plumb_sliced *of)
{
	for (uint32_t s = 0; s < of->stall_count; s++) {
		const struct plumb_stall *stall = &of->stalls[s];
		uint64_t sum = 0;
		double share = 0;

		assert_true(stall->cause_count > 0);
		for (uint32_t c = 0; c < stall->cause_count; c++) {
			sum += stall->causes[c].samples;
			share += stall->causes[c].share;
			assert_true(stall->causes[c].share >= 0);
			assert_true(stall->causes[c].chain_count <= PLUMB_CHAIN_MOST);
			assert_true(!c || stall->causes[c].samples <= stall->causes[c - 1].samples);
		}
		assert_int_equal(sum, stall->samples);
		assert_true(share > 0.999999 && share < 1.000001);
	}
}

static inline void
slice_functions(const struct plumb_slice_function *functions, uint32_t count)
{
	struct plumb_slice_input input = { .functions = functions,
		                           .function_count = count,
		                           .samples = sample_count ? samples : NULL,
		                           .sample_count = sample_count,
		                           .unplaced = unplaced,
		                           .launch = launch };
	struct plumb_error error;

	plumb_slice_free(&slice);
	assert_int_equal(plumb_slice_make(&input, &slice, &error), 0);
	check_conservation(&slice);
}

static inline void
slice_it(void)
{
	struct plumb_slice_function function = { .name = "k", .insns = &code.insns };

	slice_functions(&function, 1);
}

static inline const struct plumb_stall *
stall_at(uint32_t insn)
{
	for (uint32_t s = 0; s < slice.stall_count; s++)
		if (!slice.stalls[s].place.function && slice.stalls[s].place.insn == insn)
			return &slice.stalls[s];
	fail_msg("no stall at %u", insn);
	return NULL;
}

/* NULL: INSN is no cause of the stall at AT. */
static inline const struct plumb_stall_cause *
cause_of(uint32_t at, uint32_t insn)
{
	const struct plumb_stall *stall = stall_at(at);

	for (uint32_t c = 0; c < stall->cause_count; c++)
		if (stall->causes[c].has_place && stall->causes[c].place.insn == insn)
			return &stall->causes[c];
	return NULL;
}

static inline const struct plumb_stall_cause *
top_of(uint32_t at)
{
	return &stall_at(at)->causes[0];
}

/* The causes of the stall at AT are exactly these; the list ends with -1. */
#define check_causes(at, ...)                                                                      \
	do {                                                                                       \
		static const int wanted_[] = { __VA_ARGS__, -1 };                                  \
		uint32_t n_ = 0;                                                                   \
		for (; wanted_[n_] >= 0; n_++)                                                     \
			if (!cause_of(at, (uint32_t)wanted_[n_]))                                  \
				fail_msg("%d is no cause of %d", wanted_[n_], at);                 \
		assert_int_equal(stall_at(at)->cause_count, n_);                                   \
	} while (0)

#endif
