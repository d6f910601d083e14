/* SPDX-License-Identifier: Apache-2.0 */
/* What recording costs, from the launches of runs: programs whose times the test makes up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/cost.h"
#include "base/launch_entry.h"

#define T(test) cmocka_unit_test(test)

#define KERNELS 7 /* of a step */
#define RUNS 7

/* A run: START launches of start-up, STEPS steps, and END more launches; a launch of a step takes
 * LAUNCH_NS. */
struct program {
	uint32_t start, steps, end;
	int64_t launch_ns;
	uint32_t kernels;
	bool by_turns; /* two threads launch: their order differs from run to run */
};

static char functions[64];

struct made {
	uint64_t *entries[RUNS];
	struct plumb_cost_run runs[RUNS];
	struct plumb_cost_loop loop;
	struct plumb_cost cost;
	char why[PLUMB_COST_WHY];
};

static void
make(struct made *m, uint32_t number, const struct program *p)
{
	uint32_t count = p->start + p->steps * p->kernels + p->end, seed = number;
	uint64_t *entries = calloc(count, sizeof *entries);
	struct plumb_cost_run *run = &m->runs[number];
	int64_t now = 1000;

	for (uint32_t i = 0; i < count; i++) {
		bool loop = i >= p->start && i < p->start + p->steps * p->kernels;
		/* A layer has seven kernels; the last three of a long step come once. */
		uint32_t place = (i - p->start) % p->kernels;
		place = place < 1200 ? place % KERNELS : place - 1190;
		const char *function = loop ? &functions[place] : &functions[20 + i % 13];
		if (loop && p->by_turns && (i - p->start) % p->kernels < 2) {
			if ((i - p->start) % p->kernels == 0)
				seed = seed * 1103515245 + 12345;
			function = &functions[((i - p->start) % p->kernels) ^ (seed >> 16 & 1)];
		}
		/* Another run has its functions elsewhere. */
		uintptr_t address = (uintptr_t)function + 4096 * number;
		entries[i] = plumb_launch_entry((uint64_t)now, (const void *)address);
		now += loop ? p->launch_ns : 50000;
	}
	m->entries[number] = entries;
	*run = (struct plumb_cost_run){ .recorded =
		                                !number || (number - 1 + (number - 1) / 2) % 2 == 0,
		                        .wall_ns = now,
		                        .launches = count,
		                        .timed = count,
		                        .entries = entries,
		                        .start_ns = 5000000000 + 100 * number };
}

/* The loop as looks find it: its borders are off by some steps, and so is the number of steps. */
static void
find(struct made *m, const struct program *p)
{
	int64_t begin = m->runs[0].start_ns + 1000 + 50000 * (int64_t)p->start;
	int64_t step = p->launch_ns * p->kernels;

	m->loop = (struct plumb_cost_loop){ .process = 3,
		                            .start_ns = begin + 3 * step + step / 3,
		                            .end_ns = begin + (p->steps - 5) * step,
		                            .step_ns = (double)step * 1.03 };
}

static void
compare(struct made *m, uint32_t count)
{
	struct plumb_error error;

	assert_int_equal(plumb_cost_compare(&m->loop, m->runs, count, &m->cost, m->why, &error), 0);
	for (uint32_t i = 0; i < count; i++)
		free(m->entries[i]);
}

static const struct program usual = { 500, 1000, 40, 300000, KERNELS, false };

/* The plain runs are PLAIN. */
static void
make_all(struct made *m, uint32_t count, const struct program *recorded,
         const struct program *plain)
{
	memset(m, 0, sizeof *m);
	for (uint32_t i = 0; i < count; i++) {
		make(m, i, recorded);
		if (m->runs[i].recorded)
			continue;
		free(m->entries[i]);
		make(m, i, plain);
	}
	find(m, recorded);
}

static void
test_a_known_cost(void **state)
{
	struct program plain = usual;
	struct made m;
	(void)state;

	plain.launch_ns = 250000;
	make_all(&m, RUNS, &usual, &plain);
	compare(&m, RUNS);
	assert_string_equal(m.why, "");
	assert_int_equal(m.cost.scope, PLUMB_COST_OF_STEP);
	assert_int_equal(m.cost.process, 3);
	assert_int_equal(m.cost.pairs, 3);
	assert_true(fabs(m.cost.ratio - 1.2) < 1e-4);
	assert_true(m.cost.low <= m.cost.ratio && m.cost.ratio <= m.cost.high);
	assert_true(m.cost.high - m.cost.low < 1e-3);
	/* The steps are exact, though the loop said 3 % more. */
	assert_true(llabs(m.cost.recorded_ns - 2100000) < 100);
	assert_true(llabs(m.cost.plain_ns - 1750000) < 100);
	assert_in_range(m.cost.steps, 900, 992);
}

/* Most of a step is one layer, again and again: a step is not a layer more or less. */
static void
test_steps_of_like_layers(void **state)
{
	struct program p = usual;
	struct made m;
	(void)state;

	p.kernels = 1203;
	p.steps = 100;
	p.launch_ns = 10000;
	make_all(&m, 3, &p, &p);
	compare(&m, 3);
	assert_true(llabs(m.cost.plain_ns - 12030000) < 100);
	assert_true(fabs(m.cost.ratio - 1) < 1e-6);
}

static void
test_one_pair_has_no_interval(void **state)
{
	struct made m;
	(void)state;

	make_all(&m, 3, &usual, &usual);
	compare(&m, 3);
	assert_true(fabs(m.cost.ratio - 1) < 1e-6);
	assert_true(isnan(m.cost.low) && isnan(m.cost.high));
	assert_int_equal(m.cost.pairs, 1);
}

/* A compiler that tries more or fewer kernels before the loop. */
static void
test_another_start_up_is_passed_over(void **state)
{
	struct program plain = usual;
	struct made m;
	(void)state;

	plain.start = 437;
	plain.launch_ns = 200000;
	make_all(&m, RUNS, &usual, &plain);
	compare(&m, RUNS);
	assert_string_equal(m.why, "");
	assert_true(fabs(m.cost.ratio - 1.5) < 1e-4);
}

static void
test_another_end_is_passed_over(void **state)
{
	struct program plain = usual;
	struct made m;
	(void)state;

	plain.end = 45;
	make_all(&m, RUNS, &usual, &plain);
	compare(&m, RUNS);
	assert_string_equal(m.why, "");
	assert_true(fabs(m.cost.ratio - 1) < 1e-6);
}

static void
test_another_number_of_steps_is_no_equal_work(void **state)
{
	struct program plain = usual;
	struct made m;
	(void)state;

	plain.steps = 999;
	make_all(&m, RUNS, &usual, &plain);
	compare(&m, RUNS);
	assert_true(isnan(m.cost.ratio));
	assert_non_null(strstr(m.why, "7533 launches in run 3 (without plumb), 7540 in the first"));
	assert_non_null(strstr(m.why, "a step has 7"));
}

static void
test_other_steps_are_no_equal_work(void **state)
{
	struct program plain = usual;
	struct made m;
	(void)state;

	plain.kernels = 8;
	make_all(&m, RUNS, &usual, &plain);
	compare(&m, RUNS);
	assert_true(isnan(m.cost.ratio));
	assert_non_null(strstr(m.why, "different work"));
}

static void
test_threads_that_launch_by_turns(void **state)
{
	struct program recorded = usual, plain = usual;
	struct made m;
	(void)state;

	recorded.by_turns = plain.by_turns = true;
	plain.launch_ns = 200000;
	make_all(&m, RUNS, &recorded, &plain);
	compare(&m, RUNS);
	assert_string_equal(m.why, "");
	assert_true(fabs(m.cost.ratio - 1.5) < 1e-2);
}

/* One block of many is slow, in one run. */
static void
test_a_moment_of_noise_does_not_count(void **state)
{
	struct made m;
	(void)state;

	make_all(&m, RUNS, &usual, &usual);
	for (uint32_t i = 4000; i < m.runs[2].launches; i++)
		m.entries[2][i] += UINT64_C(1000000000) >> PLUMB_LAUNCH_UNIT_BITS
		                                                   << PLUMB_LAUNCH_MARK_BITS;
	compare(&m, RUNS);
	assert_true(fabs(m.cost.ratio - 1) < 1e-6);
}

static void
test_launches_without_times_are_unknown(void **state)
{
	struct made m;
	(void)state;

	make_all(&m, RUNS, &usual, &usual);
	m.runs[3].timed = 600; /* the disk was full */
	compare(&m, RUNS);
	assert_true(isnan(m.cost.ratio));
	assert_string_equal(m.why,
	                    "only the first 600 of 7540 launches of run 4 (without plumb) could be "
	                    "timed; is the disk full?");
}

static void
test_runs_as_a_whole(void **state)
{
	struct made m;
	(void)state;

	make_all(&m, RUNS, &usual, &usual);
	m.loop.process = PLUMB_NONE;
	for (uint32_t i = 0; i < RUNS; i++)
		m.runs[i].wall_ns = m.runs[i].recorded ? 1100 : 1000;
	compare(&m, RUNS);
	assert_string_equal(m.why, "");
	assert_int_equal(m.cost.scope, PLUMB_COST_OF_RUN);
	assert_int_equal(m.cost.process, PLUMB_NONE);
	assert_true(fabs(m.cost.ratio - 1.1) < 1e-9);
	assert_true(m.cost.steps == PLUMB_UNKNOWN && m.cost.plain_ns == 1000);
}

static void
test_other_exit_codes(void **state)
{
	struct made m;
	(void)state;

	make_all(&m, RUNS, &usual, &usual);
	m.runs[4].exit_code = 3;
	compare(&m, RUNS);
	assert_true(isnan(m.cost.ratio));
	assert_non_null(strstr(m.why, "exit code 3 in run 5"));
}

/* Runs that are in no pairs, each with its own steps. The loop begins with a few launches of
 * start-up: what is one step more must not hide behind them. */
static void
test_steps_of_single_runs(void **state)
{
	struct program fast = usual, longer = usual;
	struct made m = { 0 };
	struct plumb_error error;
	char why[4][PLUMB_COST_WHY];
	double step_ns[4];
	int64_t steps = 0;
	(void)state;

	fast.launch_ns = 200000;
	longer.steps++;
	make(&m, 0, &usual);
	make(&m, 1, &fast);
	make(&m, 2, &longer);
	find(&m, &usual);
	m.loop.start_ns = m.runs[0].start_ns + 1000 + 50000 * ((int64_t)usual.start - 5) - 1;
	assert_int_equal(plumb_cost_steps(&m.loop, m.runs, 4, step_ns, why, &steps, &error), 0);
	assert_in_range(steps, 900, 1000);
	assert_true(fabs(step_ns[0] - 2100000) < 100);
	assert_true(fabs(step_ns[1] - 1400000) < 100);
	assert_true(isnan(step_ns[2]));
	assert_string_equal(why[2], "it had 7547 launches, and the first run 7540");
	assert_true(isnan(step_ns[3]));
	assert_non_null(strstr(why[3], "its launches were not counted"));
	m.loop.process = PLUMB_NONE;
	assert_int_equal(plumb_cost_steps(&m.loop, m.runs, 4, step_ns, why, &steps, &error), 0);
	assert_int_equal(steps, 0);
	for (int i = 0; i < 3; i++)
		free(m.entries[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_known_cost),
		T(test_steps_of_like_layers),
		T(test_one_pair_has_no_interval),
		T(test_another_start_up_is_passed_over),
		T(test_another_end_is_passed_over),
		T(test_another_number_of_steps_is_no_equal_work),
		T(test_other_steps_are_no_equal_work),
		T(test_threads_that_launch_by_turns),
		T(test_a_moment_of_noise_does_not_count),
		T(test_launches_without_times_are_unknown),
		T(test_runs_as_a_whole),
		T(test_other_exit_codes),
		T(test_steps_of_single_runs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
