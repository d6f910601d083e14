/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs against a small simulator. It issues in order, has six scoreboards, and gives
 * each load a time of its own that the slicer does not know. For each cycle in which the warp
 * stands it knows the operand that came last. So it knows whom to blame, and makes the samples.
 *
 * The simulator shares the slicer's idea of the hardware: it cannot show that the idea is wrong.
 */
#include <math.h>

#include "slice_code.h"

#define REGS 24 /* R0… are results of arithmetic, from LOADED on of loads */
#define LOADED 12
#define SCOREBOARDS 6
#define MOST 400

static uint64_t seed;

static uint32_t
random_below(uint32_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 16) % n);
}

/* ---- a program ---- */

struct program {
	struct plumb_insn items[MOST];
	struct plumb_insns insns;
	uint8_t turns[MOST]; /* of a branch back: how often at most */
	uint32_t sub;        /* first of the procedure; 0: none */
};

static struct plumb_insn *
add(struct program *p, const char *opcode, uint8_t class, uint8_t space)
{
	struct plumb_insn *insn = &p->items[p->insns.count];

	*insn = (struct plumb_insn){ .offset = p->insns.count++ * 16,
		                     .size = 16,
		                     .opcode = opcode,
		                     .class = class,
		                     .space = space,
		                     .guard = PLUMB_INSN_ALWAYS,
		                     .issue = 1 };
	return insn;
}

/* Every reader and writer of a register that loads write waits for the register's scoreboard. */
static void
wait_for(struct plumb_insn *insn, uint16_t reg)
{
	if (reg < LOADED)
		return;
	if (!insn->waits_count)
		insn->waits[insn->waits_count++].parts = PLUMB_SYNC_RESULT | PLUMB_SYNC_SOURCES;
	insn->waits[0].counters |= UINT64_C(1) << reg % SCOREBOARDS;
}

static void
reads(struct plumb_insn *insn, uint16_t reg, uint8_t role)
{
	insn->reads[insn->reads_count++] = (struct plumb_regs){ PLUMB_REG_VECTOR, role, reg, 1 };
	wait_for(insn, reg);
}

static void
writes(struct plumb_insn *insn, uint16_t reg)
{
	insn->writes[insn->writes_count++] = (struct plumb_regs){ PLUMB_REG_VECTOR, 0, reg, 1 };
	wait_for(insn, reg);
}

static void
add_plain(struct program *p)
{
	static const struct {
		const char *opcode;
		uint8_t class, space;
	} loads[] = { { "LDG", PLUMB_INSN_LOAD, PLUMB_SPACE_GLOBAL },
		      { "LDG", PLUMB_INSN_LOAD, PLUMB_SPACE_GLOBAL },
		      { "LDS", PLUMB_INSN_LOAD, PLUMB_SPACE_SHARED },
		      { "MUFU", PLUMB_INSN_SPECIAL, PLUMB_SPACE_NONE } };
	uint32_t which = random_below(8);
	struct plumb_insn *insn;

	if (which < 4) {
		uint16_t reg = (uint16_t)(LOADED + random_below(REGS - LOADED));

		insn = add(p, loads[which].opcode, loads[which].class, loads[which].space);
		insn->variable = true;
		reads(insn, (uint16_t)random_below(REGS), which < 3 ? PLUMB_REG_ADDRESS : 0);
		writes(insn, reg);
		insn->signals[insn->signals_count++] =
			(struct plumb_signal){ (uint8_t)(reg % SCOREBOARDS), PLUMB_SYNC_RESULT, 0 };
	} else {
		static const struct {
			const char *opcode;
			uint8_t class, latency;
		} ops[] = { { "FFMA", PLUMB_INSN_FLOAT32, 4 }, { "DFMA", PLUMB_INSN_FLOAT64, 8 } };
		uint32_t op = random_below(2);

		insn = add(p, ops[op].opcode, ops[op].class, PLUMB_SPACE_NONE);
		insn->latency = ops[op].latency;
		reads(insn, (uint16_t)random_below(REGS), 0);
		reads(insn, (uint16_t)random_below(REGS), 0);
		writes(insn, (uint16_t)random_below(LOADED));
	}
	if (!random_below(8)) {
		insn->guard = 5;
		insn->guard_file = PLUMB_REG_PREDICATE;
	}
}

static void
add_branch(struct program *p, uint32_t to, uint8_t turns)
{
	struct plumb_insn *insn = add(p, "BRA", PLUMB_INSN_BRANCH, 0);

	insn->guard = 6;
	insn->guard_file = PLUMB_REG_PREDICATE;
	insn->has_target = true;
	insn->target = to * 16;
	p->turns[p->insns.count - 1] = turns;
}

static void
add_sequence(struct program *p, int depth, uint32_t end, bool calls)
{
	uint32_t count = 3 + random_below(8);

	for (uint32_t i = 0; i < count && p->insns.count + 4 < end; i++) {
		uint32_t which = random_below(12), first = p->insns.count;

		if (which == 0 && depth < 3) {
			add_sequence(p, depth + 1, end, calls);
			add_branch(p, first, (uint8_t)(2 + random_below(6)));
		} else if (which == 1 && depth < 3) {
			add_branch(p, 0, 0);
			add_sequence(p, depth + 1, end, calls);
			p->items[first].target = p->insns.count * 16;
		} else if (which == 2 && calls) {
			add(p, "CALL", PLUMB_INSN_CALL, 0)->has_target = true;
		} else {
			add_plain(p);
		}
	}
}

/* Stalls on purpose, so that results of a fixed time are there. At ends of blocks all are. */
static void
set_issue(struct program *p)
{
	uint8_t left[REGS] = { 0 };

	for (uint32_t i = 0; i < p->insns.count; i++) {
		struct plumb_insn *insn = &p->items[i];
		bool ends = insn->class == PLUMB_INSN_BRANCH || insn->class == PLUMB_INSN_CALL ||
		            insn->class == PLUMB_INSN_RETURN;
		uint8_t need = 0;

		for (uint8_t r = 0; r < insn->reads_count; r++)
			if (left[insn->reads[r].first] > need)
				need = left[insn->reads[r].first];
		for (uint32_t r = 0; ends && r < REGS; r++)
			need = left[r] > need ? left[r] : need;
		/* A target may be anywhere, so what is left at one counts as in need, too. */
		for (uint32_t b = 0; b < p->insns.count; b++)
			for (uint32_t r = 0; p->items[b].has_target &&
			                     p->items[b].target == insn->offset && r < REGS;
			     r++)
				need = left[r] > need ? left[r] : need;
		if (i && need)
			p->items[i - 1].issue = (uint8_t)(p->items[i - 1].issue + need);
		for (uint32_t r = 0; r < REGS; r++)
			left[r] = left[r] > need ? left[r] - need : 0;
		/* One cycle goes by with each instruction. */
		for (uint32_t r = 0; r < REGS; r++)
			left[r] -= left[r] > 0;
		if (!insn->variable && insn->writes_count)
			left[insn->writes[0].first] = (uint8_t)(insn->latency - 1);
	}
}

static void
make_program(struct program *p)
{
	bool calls = !random_below(3);

	memset(p, 0, sizeof *p);
	p->insns.items = p->items;
	for (int i = 0; i < 6; i++)
		add_sequence(p, 0, 300, calls);
	add(p, "EXIT", PLUMB_INSN_EXIT, 0);
	if (calls) {
		p->sub = p->insns.count;
		for (int i = 0; i < 8; i++)
			add_plain(p);
		add(p, "RET", PLUMB_INSN_RETURN, 0);
		for (uint32_t i = 0; i < p->sub; i++)
			if (p->items[i].class == PLUMB_INSN_CALL)
				p->items[i].target = p->sub * 16;
	}
	set_issue(p);
}

/* ---- the simulator ---- */

struct flight {
	uint32_t insn;
	uint64_t done;
};

struct blame {
	uint32_t to, from; /* FROM: UINT32_MAX: nobody needed the cycles */
	uint16_t reason;
	uint64_t cycles;
};

struct machine {
	const struct program *program;
	uint32_t latency[MOST]; /* by load: of its own, and unknown to the slicer */
	struct flight flights[SCOREBOARDS][64];
	uint32_t in_flight[SCOREBOARDS];
	uint64_t ready[REGS]; /* results of a fixed time */
	uint32_t writer[REGS];
	uint32_t back; /* where the procedure returns to */
	uint8_t taken[MOST];
	struct blame blames[4096];
	uint32_t blame_count;
	uint64_t issued[MOST];
};

static void
blame(struct machine *m, uint32_t to, uint32_t from, uint16_t reason, uint64_t cycles)
{
	struct blame *it = NULL;

	for (uint32_t i = 0; i < m->blame_count && !it; i++)
		if (m->blames[i].to == to && m->blames[i].from == from &&
		    m->blames[i].reason == reason)
			it = &m->blames[i];
	if (!it) {
		assert_true(m->blame_count < sizeof m->blames / sizeof *m->blames);
		it = &m->blames[m->blame_count++];
		*it = (struct blame){ to, from, reason, 0 };
	}
	it->cycles += cycles;
}

/* Waits at NOW for what INSN waits for, and returns when all of it is there. While a load from far
 * is missing, the hardware gives this as the reason. */
static uint64_t
wait_at(struct machine *m, uint32_t at, uint64_t now)
{
	const struct plumb_insn *insn = &m->program->items[at];
	struct flight last = { UINT32_MAX, now };
	uint64_t far = now;

	for (uint32_t c = 0; insn->waits_count && c < SCOREBOARDS; c++) {
		if (!(insn->waits[0].counters >> c & 1))
			continue;
		for (uint32_t i = 0; i < m->in_flight[c]; i++) {
			const struct flight *flight = &m->flights[c][i];

			if (flight->done > far &&
			    m->program->items[flight->insn].space == PLUMB_SPACE_GLOBAL)
				far = flight->done;
			if (flight->done > last.done)
				last = *flight;
		}
		m->in_flight[c] = 0;
	}
	if (far > now)
		blame(m, at, last.insn, PLUMB_REASON_LONG, far - now);
	if (last.done > far)
		blame(m, at, last.insn, PLUMB_REASON_SHORT, last.done - far);
	return last.done;
}

/* Who needed the cycles that the instruction before waits on purpose: whose result is there not a
 * cycle earlier. CLOCK counts these cycles alone, because the compiler knew no others. */
static uint32_t
binding(const struct machine *m, const struct plumb_insn *insn, uint64_t clock)
{
	for (uint8_t r = 0; r < insn->reads_count; r++)
		if (insn->reads[r].first < LOADED && m->ready[insn->reads[r].first] == clock)
			return m->writer[insn->reads[r].first];
	return UINT32_MAX;
}

static uint32_t
next_of(struct machine *m, uint32_t at, bool skipped)
{
	const struct plumb_insn *insn = &m->program->items[at];
	bool back;

	if (insn->class == PLUMB_INSN_CALL) {
		m->back = at + 1;
		return insn->target / 16;
	}
	if (insn->class == PLUMB_INSN_RETURN)
		return m->back;
	if (insn->class != PLUMB_INSN_BRANCH)
		return at + 1;
	if (insn->target > insn->offset)
		return skipped ? at + 1 : insn->target / 16;
	back = m->taken[at] + 1 < m->program->turns[at];
	m->taken[at] = back ? m->taken[at] + 1 : 0;
	return back ? insn->target / 16 : at + 1;
}

static void
run(struct machine *m)
{
	const struct program *p = m->program;
	uint64_t now = 1, clock = 1;
	uint8_t issue = 1; /* of the instruction before */

	memset(m->in_flight, 0, sizeof m->in_flight);
	memset(m->ready, 0, sizeof m->ready);
	memset(m->taken, 0, sizeof m->taken);
	for (uint32_t at = 0, steps = 0; steps < 4000; steps++) {
		const struct plumb_insn *insn = &p->items[at];
		bool skipped = insn->guard != PLUMB_INSN_ALWAYS && random_below(2);

		if (issue > 1)
			blame(m, at, binding(m, insn, clock), PLUMB_REASON_FIXED, issue - 1u);
		now = wait_at(m, at, now);
		m->issued[at]++;
		if (insn->class == PLUMB_INSN_EXIT)
			return;
		if (insn->signals_count && !skipped) {
			uint8_t c = insn->signals[0].counter;

			if (m->in_flight[c] < 64)
				m->flights[c][m->in_flight[c]++] =
					(struct flight){ at,
					                 now + m->latency[at] + random_below(8) };
		} else if (!insn->signals_count && insn->writes_count) {
			m->ready[insn->writes[0].first] = clock + insn->latency;
			m->writer[insn->writes[0].first] = at;
		}
		issue = insn->issue;
		now += issue;
		clock += issue;
		at = next_of(m, at, skipped);
	}
}

/* ---- anything ---- */

static void
random_regs(struct plumb_regs *regs, uint8_t *count)
{
	*count = (uint8_t)random_below(4);
	for (uint8_t i = 0; i < *count; i++)
		regs[i] =
			(struct plumb_regs){ (uint8_t)random_below(PLUMB_REG_FILES),
			                     (uint8_t)random_below(4),
			                     (uint16_t)(random_below(50) ? random_below(8) : 65530),
			                     (uint16_t)random_below(9) };
}

/* Fields that no compiler puts together, and targets that are nowhere. */
static void
random_insn(struct plumb_insn *insn, uint32_t at, uint32_t count)
{
	*insn = (struct plumb_insn){ .offset = at * 16, .size = 16 };
	insn->opcode = random_below(9) ? "X" : NULL;
	insn->class = (uint8_t)random_below(PLUMB_INSN_CLASS_COUNT);
	if (insn->class >= PLUMB_INSN_BRANCH && random_below(3))
		insn->class = PLUMB_INSN_LOAD;
	insn->space = (uint8_t)random_below(PLUMB_SPACE_DISTRIBUTED + 1);
	insn->width = (uint8_t)random_below(40);
	insn->guard = random_below(2) ? PLUMB_INSN_ALWAYS : (uint16_t)random_below(7);
	insn->guard_file = PLUMB_REG_PREDICATE;
	insn->variable = random_below(2);
	insn->latency = (uint8_t)random_below(12);
	insn->issue = (uint8_t)random_below(16);
	insn->pipe = (uint8_t)random_below(PLUMB_PIPE_COUNT);
	insn->makes = (uint8_t)random_below(PLUMB_MAKES_RIGHT + 1);
	insn->has_immediate = random_below(2);
	insn->immediate = random_below(5) ? (int64_t)random_below(40) : INT64_MIN;
	insn->displacement = (int32_t)random_below(64) - 32;
	random_regs(insn->reads, &insn->reads_count);
	random_regs(insn->writes, &insn->writes_count);
	insn->signals_count = (uint8_t)random_below(PLUMB_INSN_SIGNALS + 1);
	for (uint8_t i = 0; i < insn->signals_count; i++)
		insn->signals[i] =
			(struct plumb_signal){ (uint8_t)random_below(random_below(9) ? 6 : 256),
			                       (uint8_t)random_below(4), (uint8_t)random_below(3) };
	insn->waits_count = (uint8_t)random_below(PLUMB_INSN_WAITS + 1);
	for (uint8_t i = 0; i < insn->waits_count; i++)
		insn->waits[i] = (struct plumb_wait_for){ seed & 63, (uint16_t)random_below(4),
			                                  (uint8_t)random_below(4) };
	insn->has_target = random_below(4);
	insn->target = random_below(count + 2) * 16;
	insn->is_indirect = !random_below(3);
	insn->is_conditional = !random_below(3);
	insn->barrier = (uint8_t)random_below(2);
}

static void
test_anything(void **state)
{
	enum { INSNS = 60, SAMPLES = 80, FUNCTIONS = 3 };
	static struct plumb_insn items[FUNCTIONS][INSNS];
	struct plumb_slice_sample made[SAMPLES];

	(void)state;
	seed = 7;
	for (int turn = 0; turn < 3000; turn++) {
		struct plumb_insns insns[FUNCTIONS];
		struct plumb_slice_call calls[FUNCTIONS][4];
		struct plumb_slice_function functions[FUNCTIONS] = { { 0 } };
		struct plumb_slice_input input = { .functions = functions,
			                           .function_count = 1 + random_below(3),
			                           .samples = turn % 5 ? made : NULL,
			                           .sample_count = random_below(SAMPLES) };
		struct plumb_error error;

		for (uint32_t f = 0; f < FUNCTIONS; f++) {
			uint32_t count = f && !random_below(9) ? 0 : 1 + random_below(INSNS);

			for (uint32_t i = 0; i < count; i++)
				random_insn(&items[f][i], i, count);
			insns[f] = (struct plumb_insns){ items[f], count, 0 };
			for (int c = 0; c < 4; c++)
				calls[f][c] = (struct plumb_slice_call){ random_below(INSNS),
					                                 random_below(4) };
			functions[f] = (struct plumb_slice_function){ "f", &insns[f], calls[f],
				                                      random_below(5), NULL };
		}
		for (int i = 0; i < SAMPLES; i++)
			made[i] = (struct plumb_slice_sample){
				{ random_below(4), random_below(INSNS + 2) },
				(uint16_t)random_below(PLUMB_REASON_COUNT + 2),
				random_below(2),
				random_below(20) ? random_below(1000) : seed
			};
		plumb_slice_free(&slice);
		assert_int_equal(plumb_slice_make(&input, &slice, &error), 0);
		check_conservation(&slice);
	}
	plumb_slice_free(&slice);
}

/* ---- scores ---- */

struct score {
	double edges, recalled; /* producers that were truly waited for, 1 % of the stall or more */
	double cycles, named;   /* cycles of stalls; whose producer is named */
	double single, single_right;
	double ambiguous, ambiguous_right;
	double variation; /* of blame against the truth, in cycles */
};

static bool
is_named(const struct plumb_stall *stall, uint32_t from, uint32_t *which)
{
	for (uint32_t c = 0; c < stall->cause_count; c++) {
		const struct plumb_stall_cause *cause = &stall->causes[c];

		*which = c;
		if (from == UINT32_MAX
		            ? cause->kind == PLUMB_CAUSE_STRUCTURAL
		            : cause->kind == PLUMB_CAUSE_DATA && cause->place.insn == from)
			return true;
	}
	return false;
}

static void
score_stall(const struct machine *m, const struct plumb_stall *stall, struct score *score)
{
	const struct blame *most = NULL;
	uint32_t which;
	double off = 0;

	for (uint32_t i = 0; i < m->blame_count; i++) {
		const struct blame *it = &m->blames[i];
		bool named;

		if (it->to != stall->place.insn || it->reason != stall->reason)
			continue;
		if (!most || it->cycles > most->cycles)
			most = it;
		named = is_named(stall, it->from, &which);
		if ((double)it->cycles >= 0.01 * (double)stall->samples) {
			score->edges++;
			score->recalled += named;
		}
		score->cycles += (double)it->cycles;
		score->named += named ? (double)it->cycles : 0;
		off += fabs((double)it->cycles -
		            (named ? (double)stall->causes[which].samples : 0));
	}
	assert_non_null(most);
	score->variation += off / 2;
	if (stall->causes[0].ambiguity) {
		score->ambiguous++;
		score->ambiguous_right +=
			is_named(stall, most->from, &which) && stall->causes[which].ambiguity;
	} else {
		score->single++;
		score->single_right += is_named(stall, most->from, &which) && !which;
	}
}

static void
test_simulator(void **state)
{
	static struct program program;
	static struct machine machine;
	static struct plumb_slice_sample made[8192];
	struct score score = { 0 };

	(void)state;
	seed = 20260427;
	for (int turn = 0; turn < 300; turn++) {
		struct plumb_slice_function function = { .name = "k", .insns = &program.insns };
		struct plumb_slice_input input = { .functions = &function,
			                           .function_count = 1,
			                           .samples = made };
		struct plumb_error error;

		make_program(&program);
		memset(&machine, 0, sizeof machine);
		machine.program = &program;
		for (uint32_t i = 0; i < program.insns.count; i++)
			machine.latency[i] =
				program.items[i].space == PLUMB_SPACE_GLOBAL
					? random_below(2) ? 600 + random_below(200) : 40
					: 20 + random_below(15);
		for (int warp = 0; warp < 20; warp++)
			run(&machine);
		for (uint32_t i = 0; i < machine.blame_count; i++)
			made[input.sample_count++] =
				(struct plumb_slice_sample){ { 0, machine.blames[i].to },
				                             machine.blames[i].reason,
				                             false,
				                             machine.blames[i].cycles };
		for (uint32_t i = 0; i < program.insns.count; i++)
			made[input.sample_count++] = (struct plumb_slice_sample){
				{ 0, i }, PLUMB_REASON_SELECTED, false, machine.issued[i]
			};
		plumb_slice_free(&slice);
		assert_int_equal(plumb_slice_make(&input, &slice, &error), 0);
		check_conservation(&slice);
		for (uint32_t s = 0; s < slice.stall_count; s++)
			score_stall(&machine, &slice.stalls[s], &score);
	}
	plumb_slice_free(&slice);
	print_message("edges %.0f, recall %.4f; cycles whose producer is named %.4f\n", score.edges,
	              score.recalled / score.edges, score.named / score.cycles);
	print_message("single %.0f, right %.4f; ambiguous %.0f, right %.4f; variation %.4f\n",
	              score.single, score.single_right / score.single, score.ambiguous,
	              score.ambiguous_right / score.ambiguous, score.variation / score.cycles);
	assert_true(score.edges > 5000 && score.single > 1000 && score.ambiguous > 200);
	assert_true(score.recalled / score.edges >= 0.95);
	assert_true(score.named / score.cycles >= 0.99);
	assert_true(score.single_right / score.single >= 0.97);
	assert_true(score.ambiguous_right / score.ambiguous >= 0.97);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_anything),
		cmocka_unit_test(test_simulator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
