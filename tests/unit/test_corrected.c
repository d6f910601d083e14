/* SPDX-License-Identifier: Apache-2.0 */
/* What looking costs, level by level, and the corrected tree: runs that the test makes up. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "analyze/levels.h"
#include "analyze/windows.h"
#include "model/builder.h"
#include "store/store.h"

#define T(test) cmocka_unit_test(test)

#define STEPS 10

/*
 * A program: in each of STEPS steps the module `net` calls aten::mm from two lines and aten::add
 * from one; aten::mm launches a kernel. With Python, lines are frames, too:
 *
 *	main (train.py:1) > net > forward (net.py:10) > aten::mm > gemm
 *	                        > forward (net.py:20) > aten::mm, aten::add
 */
struct program {
	bool python, kernels;
	int64_t mm_10, mm_20, add; /* ns of a call */
	int64_t gemm;
	uint32_t adds;  /* calls of aten::add in a step */
	uint32_t extra; /* calls of aten::other in a step */
	int64_t step;
	bool has_no_loop;
	uint32_t ranges; /* calls of the range `predict` in a step; M has nothing else */
};

static uint32_t
frame(struct plumb_builder *b, uint32_t parent, uint32_t kind, const char *name, const char *file,
      uint32_t line)
{
	return plumb_builder_context(
		b, parent,
		plumb_builder_frame(b, kind, plumb_builder_text(b, name),
	                            file ? plumb_builder_text(b, file) : PLUMB_NONE, line),
		0);
}

struct making {
	struct plumb_builder *b;
	uint32_t track, window;
};

/* CALLS in each step, of NS each; start-up has one call more, which takes ten times as long. */
static void
value(struct making *m, uint32_t context, uint32_t metric, uint32_t calls, int64_t ns)
{
	struct plumb_value all = {
		context, metric,     m->track, ns * calls * STEPS + 10 * ns, calls * STEPS + 1, ns,
		ns,      (double)ns, 0
	};
	struct plumb_window_value loop = { .window = m->window,
		                           .context = context,
		                           .metric = metric,
		                           .track = m->track,
		                           .sum = ns * calls * STEPS,
		                           .count = calls * STEPS,
		                           .min = ns,
		                           .max = ns };

	if (!calls)
		return;
	plumb_builder_value(m->b, &all);
	plumb_builder_window_value(m->b, &loop);
}

static void
make_calls(struct making *m, const struct program *p)
{
	struct plumb_builder *b = m->b;
	if (p->ranges)
		value(m, frame(b, 0, PLUMB_FRAME_RANGE, "predict", NULL, 0), PLUMB_METRIC_OP_TIME,
		      p->ranges, 1);
	if (!p->adds)
		return;
	uint32_t main = p->python ? frame(b, 0, PLUMB_FRAME_PYTHON, "main", "train.py", 1) : 0;
	uint32_t net = frame(b, main, PLUMB_FRAME_MODULE, "net", "Net", 0);
	uint32_t ten = p->python ? frame(b, net, PLUMB_FRAME_PYTHON, "forward", "net.py", 10) : net;
	uint32_t twenty =
		p->python ? frame(b, net, PLUMB_FRAME_PYTHON, "forward", "net.py", 20) : net;
	uint32_t first = frame(b, ten, PLUMB_FRAME_OPERATOR, "aten::mm", NULL, 0);
	uint32_t add = frame(b, twenty, PLUMB_FRAME_OPERATOR, "aten::add", NULL, 0);

	value(m, first, PLUMB_METRIC_OP_TIME, 1, p->mm_10);
	value(m, frame(b, twenty, PLUMB_FRAME_OPERATOR, "aten::mm", NULL, 0), PLUMB_METRIC_OP_TIME,
	      1, p->mm_20);
	value(m, add, PLUMB_METRIC_OP_TIME, p->adds, p->add);
	if (p->extra)
		value(m, frame(b, twenty, PLUMB_FRAME_OPERATOR, "aten::other", NULL, 0),
		      PLUMB_METRIC_OP_TIME, p->extra, 1);
	if (p->kernels)
		value(m, frame(b, first, PLUMB_FRAME_KERNEL, "gemm", NULL, 0),
		      PLUMB_METRIC_GPU_TIME, 1, p->gemm);
}

static void
make(struct plumb_profile *profile, const struct program *p)
{
	struct plumb_error error;
	struct making m = { .b = plumb_builder_new() };
	uint32_t process =
		plumb_builder_process(m.b, &(struct plumb_process){ .pid = 7,
	                                                            .rank = PLUMB_UNKNOWN,
	                                                            .local_rank = PLUMB_UNKNOWN,
	                                                            .host = PLUMB_NONE,
	                                                            .command = PLUMB_NONE });

	m.track = plumb_builder_track(m.b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                          .process = process,
	                                                          .device = PLUMB_NONE,
	                                                          .name = PLUMB_NONE });
	m.window = plumb_builder_window(
		m.b, &(struct plumb_window){ process,
	                                     p->has_no_loop ? PLUMB_WINDOW_REST : PLUMB_WINDOW_LOOP,
	                                     !p->has_no_loop, STEPS });
	plumb_builder_window_stretch(
		m.b, &(struct plumb_window_stretch){ m.window, 1000, 1000 + STEPS * p->step });
	make_calls(&m, p);
	assert_int_equal(plumb_builder_finish(m.b, profile, &error), 0);
	plumb_builder_free(m.b);
}

/* ---- the levels ---- */

static const struct program deep = { true, true, 400, 600, 500, 300, 1, 0, 3000 };
static const struct program layers = { false, false, 300, 400, 450, 0, 1, 0, 2000 };

struct measured {
	struct plumb_profile profile; /* the first run's */
	struct plumb_cost_loop loop;
	struct plumb_levels *levels;
	struct plumb_error error;
	uint32_t number;
};

static void
begin(struct measured *m, const struct program *first)
{
	memset(m, 0, sizeof *m);
	make(&m->profile, first);
	assert_int_equal(plumb_cost_loop_find(&m->profile, &m->loop, &m->error), 0);
	assert_int_equal(m->loop.process, 0);
	m->levels = plumb_levels_new(&m->profile, &m->loop, PLUMB_LEVEL_BY_LAUNCHES, &m->error);
	assert_non_null(m->levels);
	m->number = 1;
}

/* A run at LEVEL in ROUND: of P, or of the program alone, which takes NS a step. */
static void
run(struct measured *m, uint32_t level, uint32_t round, const struct program *p, int64_t ns)
{
	struct plumb_profile profile = { 0 };
	struct plumb_level_run one = { .level = level,
		                       .number = ++m->number,
		                       .round = round,
		                       .time_ns = (double)(p ? p->step : ns),
		                       .profile = p ? &profile : NULL };

	if (p)
		make(&profile, p);
	assert_true(plumb_levels_add(m->levels, &one, &m->error) >= 0);
	plumb_profile_free(&profile);
}

static void
end(struct measured *m, int code)
{
	assert_int_equal(plumb_levels_conclude(m->levels, &m->profile, &m->error), code);
	plumb_levels_free(m->levels);
	m->levels = NULL;
}

/* The value of METRIC at the context with this NAME; under PARENT, if there is one. */
static const struct plumb_level_value *
at(const struct measured *m, const char *parent, uint32_t line, const char *name)
{
	const struct plumb_profile *p = &m->profile;

	for (uint32_t i = 0; i < p->level_values_count; i++) {
		uint32_t context = p->level_values[i].context;
		const struct plumb_frame *above;

		if (strcmp(plumb_frame_label(p, p->contexts[context].frame), name) != 0)
			continue;
		above = context ? plumb_context_frame(p, p->contexts[context].parent) : NULL;
		if (!parent ||
		    (above && !strcmp(plumb_text(p, above->name), parent) && above->line == line))
			return &p->level_values[i];
	}
	return NULL;
}

/* Parts add up to the whole, at each context. */
static void
check_sums(const struct plumb_profile *p, uint32_t metric)
{
	int64_t *sums = calloc(p->contexts_count, sizeof *sums);

	for (uint32_t i = 0; i < p->level_values_count; i++)
		if (p->level_values[i].metric == metric &&
		    p->level_values[i].own_ns != PLUMB_UNKNOWN)
			sums[p->level_values[i].context] = p->level_values[i].own_ns;
	for (uint32_t i = p->contexts_count; i-- > 1;)
		sums[p->contexts[i].parent] += sums[i];
	for (uint32_t i = 0; i < p->level_values_count; i++) {
		const struct plumb_level_value *v = &p->level_values[i];

		if (v->metric != metric || v->corrected_ns == PLUMB_UNKNOWN)
			continue;
		assert_int_equal(v->corrected_ns, sums[v->context]);
		assert_true(v->own_ns == PLUMB_UNKNOWN || v->own_ns >= 0);
		if (v->low_ns != PLUMB_UNKNOWN) {
			assert_true(v->low_ns <= v->corrected_ns);
			assert_true(v->high_ns >= v->corrected_ns);
		}
	}
	free(sums);
}

/* ---- estimates ---- */

static void
trims_as_xsp(void **state)
{
	double one[] = { 5 }, two[] = { 4, 6 }, three[] = { 1, 100, 2 };
	double five[] = { 100, 10, 12, 0, 14 };
	struct plumb_level_estimate e = plumb_level_estimate(one, 0);

	(void)state;
	assert_true(isnan(e.value) && isnan(e.low));
	e = plumb_level_estimate(one, 1);
	assert_true(e.value == 5 && isnan(e.low) && isnan(e.high));
	e = plumb_level_estimate(two, 2);
	/* Student's quantile for one degree of freedom is 12.706; the error is 1. */
	assert_true(e.value == 5 && fabs(e.high - 17.706) < 0.01 && fabs(e.low + 7.706) < 0.01);
	e = plumb_level_estimate(three, 3);
	assert_true(e.value == 2 && e.low <= 2 && e.high >= 2);
	e = plumb_level_estimate(five, 5);
	assert_true(e.value == 12 && e.low < 12 && e.high > 12);
}

/* ---- subtraction ---- */

/* The machine becomes slower from round to round; what a level adds does not change. */
static void
levels_are_subtracted_by_rounds(void **state)
{
	struct measured m;
	const struct plumb_level_row *row;

	(void)state;
	begin(&m, &deep);
	for (uint32_t round = 0; round < 5; round++) {
		struct program l = layers, k = deep;
		l.step = 1300 + 100 * round;
		k.step = 2000 + 100 * round;
		run(&m, PLUMB_LEVEL_MLG, round, &k, 0);
		run(&m, PLUMB_LEVEL_M, round, NULL, 1000 + 100 * round);
		run(&m, PLUMB_LEVEL_ML, round, &l, 0);
	}
	end(&m, 0);
	assert_int_equal(m.profile.levels_count, 3);
	row = plumb_levels_row(&m.profile, PLUMB_LEVEL_M);
	assert_int_equal(row->time_ns, 1200);
	assert_int_equal(row->kept, 5);
	assert_int_equal(row->steps, STEPS);
	assert_int_equal(row->added_ns, PLUMB_UNKNOWN);
	row = plumb_levels_row(&m.profile, PLUMB_LEVEL_ML);
	assert_int_equal(row->added_ns, 300);
	assert_int_equal(row->added_low_ns, 300);
	assert_int_equal(row->added_high_ns, 300);
	row = plumb_levels_row(&m.profile, PLUMB_LEVEL_MLG);
	assert_int_equal(row->added_ns, 700);
	assert_string_equal(plumb_level_name(row->level), "M/L/G");
	plumb_profile_free(&m.profile);
}

/* ---- the corrected tree ---- */

/* M is longer than its layers together, so nothing is scaled. */
static void
layers_have_the_time_of_their_level(void **state)
{
	struct measured m;
	const struct plumb_level_value *v;

	(void)state;
	begin(&m, &deep);
	for (uint32_t round = 0; round < 3; round++) {
		run(&m, PLUMB_LEVEL_M, round, NULL, 1500);
		run(&m, PLUMB_LEVEL_ML, round, &layers, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &deep, 0);
	}
	end(&m, 0);
	check_sums(&m.profile, PLUMB_METRIC_OP_TIME);
	/* M/L sees one aten::mm of 700 ns a step. Its lines have 400 and 600 ns of 1000. */
	v = at(&m, "forward", 10, "aten::mm");
	assert_int_equal(v->measured_ns, 400 * STEPS);
	assert_int_equal(v->corrected_ns, 280 * STEPS);
	assert_int_equal(v->level, PLUMB_LEVEL_ML);
	v = at(&m, "forward", 20, "aten::mm");
	assert_int_equal(v->corrected_ns, 420 * STEPS);
	assert_int_equal(v->own_recorded_ns, 600 * STEPS);
	assert_int_equal(at(&m, "forward", 20, "aten::add")->corrected_ns, 450 * STEPS);
	v = at(&m, NULL, 0, "net");
	assert_int_equal(v->corrected_ns, 1150 * STEPS);
	assert_int_equal(v->own_ns, 0);
	assert_int_equal(at(&m, NULL, 0, "main")->corrected_ns, 1150 * STEPS);
	/* A kernel has the time of M/L/G. */
	v = at(&m, NULL, 0, "gemm");
	assert_int_equal(v->metric, PLUMB_METRIC_GPU_TIME);
	assert_int_equal(v->corrected_ns, 300 * STEPS);
	assert_int_equal(v->level, PLUMB_LEVEL_MLG);
	plumb_profile_free(&m.profile);
}

static void
layers_fit_into_the_model(void **state)
{
	struct measured m;

	(void)state;
	begin(&m, &deep);
	for (uint32_t round = 0; round < 3; round++) {
		run(&m, PLUMB_LEVEL_M, round, NULL, 575);
		run(&m, PLUMB_LEVEL_ML, round, &layers, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &deep, 0);
	}
	end(&m, 0);
	check_sums(&m.profile, PLUMB_METRIC_OP_TIME);
	assert_int_equal(at(&m, NULL, 0, "main")->corrected_ns, 575 * STEPS);
	assert_int_equal(at(&m, "forward", 20, "aten::add")->corrected_ns, 225 * STEPS);
	plumb_profile_free(&m.profile);
}

/* Several threads work at once: their layers may take more than an iteration, in M as in M/L. */
static void
threads_work_at_once(void **state)
{
	struct measured m;
	struct program l = layers;

	(void)state;
	l.step = 575; /* the layers take 1150 */
	begin(&m, &deep);
	for (uint32_t round = 0; round < 3; round++) {
		run(&m, PLUMB_LEVEL_M, round, NULL, 460);
		run(&m, PLUMB_LEVEL_ML, round, &l, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &deep, 0);
	}
	end(&m, 0);
	assert_int_equal(at(&m, NULL, 0, "main")->corrected_ns, 920 * STEPS);
	plumb_profile_free(&m.profile);
}

/* Numbers that do not divide: the parts still add up, and never to more than the iteration. */
static void
parts_of_any_tree_add_up(void **state)
{
	(void)state;
	srandom(19);
	for (int i = 0; i < 200; i++) {
		struct measured m;
		struct program first = deep, l = layers, k = deep;
		int64_t model = 1 + random() % 2000;

		first.mm_10 = 1 + random() % 997;
		first.mm_20 = 1 + random() % 997;
		first.add = 1 + random() % 997;
		l.mm_10 = 1 + random() % 997;
		l.mm_20 = 1 + random() % 997;
		l.add = 1 + random() % 997;
		l.step = l.mm_10 + l.mm_20 + l.add + random() % 100;
		begin(&m, &first);
		for (uint32_t round = 0; round < 3; round++) {
			l.add += random() % 7;
			l.step += 7;
			k.gemm += random() % 7;
			run(&m, PLUMB_LEVEL_M, round, NULL, model);
			run(&m, PLUMB_LEVEL_ML, round, &l, 0);
			run(&m, PLUMB_LEVEL_MLG, round, &k, 0);
		}
		end(&m, 0);
		check_sums(&m.profile, PLUMB_METRIC_OP_TIME);
		check_sums(&m.profile, PLUMB_METRIC_GPU_TIME);
		assert_true(at(&m, NULL, 0, "main")->corrected_ns <= model * STEPS);
		plumb_profile_free(&m.profile);
	}
}

/* ---- the order ---- */

/* Looking at kernels makes aten::mm of line 10 seem to cost more than aten::add. */
static void
a_changed_order_is_marked(void **state)
{
	struct measured m;
	struct program k = deep, l = layers;

	(void)state;
	k.mm_10 = 2000;
	k.mm_20 = 10;
	k.step = 4000;
	l.mm_10 = 100;
	l.mm_20 = 10;
	begin(&m, &k);
	for (uint32_t round = 0; round < 3; round++) {
		k.add = 500 + round;
		run(&m, PLUMB_LEVEL_M, round, NULL, 1500);
		run(&m, PLUMB_LEVEL_ML, round, &l, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &k, 0);
	}
	end(&m, 0);
	assert_int_equal(at(&m, "net", 0, "forward")->passed,
	                 at(&m, "forward", 20, "aten::add")->context - 1);
	assert_int_equal(at(&m, "forward", 20, "aten::add")->passed, PLUMB_NONE);
	plumb_profile_free(&m.profile);
}

/* The same, but the runs differ by more than the two do. */
static void
an_unsure_order_is_not_marked(void **state)
{
	struct measured m;
	struct program k = deep, l = layers;

	(void)state;
	k.mm_10 = 2000;
	l.mm_10 = 100;
	begin(&m, &k);
	for (uint32_t round = 0; round < 3; round++) {
		k.mm_10 = 500 + 2000 * (round % 2);
		run(&m, PLUMB_LEVEL_M, round, NULL, 1500);
		run(&m, PLUMB_LEVEL_ML, round, &l, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &k, 0);
	}
	end(&m, 0);
	for (uint32_t i = 0; i < m.profile.level_values_count; i++)
		assert_int_equal(m.profile.level_values[i].passed, PLUMB_NONE);
	plumb_profile_free(&m.profile);
}

/* ---- unlike work ---- */

static const char *
why(const struct measured *m, enum plumb_level_kind level)
{
	const char *text = plumb_text(&m->profile, plumb_levels_row(&m->profile, level)->why);

	return text ? text : "";
}

static void
a_path_that_differs_is_left_out(void **state)
{
	struct measured m;
	struct program l = layers;

	(void)state;
	begin(&m, &deep);
	for (uint32_t round = 0; round < 3; round++) {
		l.adds = 1 + (round == 1);
		run(&m, PLUMB_LEVEL_M, round, NULL, 1500);
		run(&m, PLUMB_LEVEL_ML, round, &l, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &deep, 0);
	}
	end(&m, 0);
	assert_int_equal(at(&m, "forward", 20, "aten::add")->own_ns, PLUMB_UNKNOWN);
	assert_int_equal(at(&m, "forward", 20, "aten::add")->corrected_ns, PLUMB_UNKNOWN);
	assert_int_equal(at(&m, "forward", 10, "aten::mm")->corrected_ns, 280 * STEPS);
	assert_int_equal(at(&m, NULL, 0, "main")->corrected_ns, 700 * STEPS);
	assert_string_equal(
		why(&m, PLUMB_LEVEL_ML),
		"1 call path is left out, because runs did other work: aten::add has 21 "
		"calls, and 11 in the first run (run 6)");
	assert_int_equal(plumb_levels_row(&m.profile, PLUMB_LEVEL_ML)->kept, 3);
	plumb_profile_free(&m.profile);
}

/* Most of a run's time differs: the run is left out, and the others are not. */
static void
a_run_that_differs_is_left_out(void **state)
{
	struct measured m;
	struct program first = deep, l = layers, k = deep;

	(void)state;
	first.add = l.add = k.add = 5000;
	l.step = k.step = first.step = 9000;
	begin(&m, &first);
	for (uint32_t round = 0; round < 3; round++) {
		l.adds = 1 + (round == 1);
		run(&m, PLUMB_LEVEL_M, round, NULL, 8000);
		run(&m, PLUMB_LEVEL_ML, round, &l, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &k, 0);
	}
	end(&m, 0);
	assert_int_equal(plumb_levels_row(&m.profile, PLUMB_LEVEL_ML)->kept, 2);
	assert_string_equal(why(&m, PLUMB_LEVEL_ML),
	                    "run 6 is left out: it did other work: aten::add has 21 calls, and 11 "
	                    "in the first run");
	assert_int_equal(at(&m, "forward", 20, "aten::add")->corrected_ns, 5000 * STEPS);
	plumb_profile_free(&m.profile);
}

/* Looks found no loop in a run's profile, but its launches bound it: its time counts. */
static void
a_run_without_a_loop_has_a_time(void **state)
{
	struct measured m;
	struct program l = layers;

	(void)state;
	begin(&m, &deep);
	for (uint32_t round = 0; round < 2; round++) {
		l.has_no_loop = round == 1;
		run(&m, PLUMB_LEVEL_M, round, NULL, 1500);
		run(&m, PLUMB_LEVEL_ML, round, &l, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &deep, 0);
	}
	end(&m, 0);
	assert_int_equal(plumb_levels_row(&m.profile, PLUMB_LEVEL_ML)->kept, 2);
	assert_int_equal(plumb_levels_row(&m.profile, PLUMB_LEVEL_ML)->added_low_ns, 500);
	assert_string_equal(why(&m, PLUMB_LEVEL_ML),
	                    "the call paths of run 6 are left out, but for its time: its profile "
	                    "has no main loop");
	assert_int_equal(at(&m, "forward", 20, "aten::add")->corrected_ns, 450 * STEPS);
	assert_int_equal(at(&m, "forward", 20, "aten::add")->low_ns, PLUMB_UNKNOWN);
	plumb_profile_free(&m.profile);
}

/* M sees ranges alone, where nothing is launched: their calls tell whether the work is the same. */
static void
ranges_of_the_model_are_compared(void **state)
{
	struct measured m;
	struct program alone = { .ranges = 1, .adds = 0, .step = 1500 }, more = alone;
	struct program k = deep, l = layers;

	(void)state;
	k.ranges = l.ranges = 1;
	more.ranges = 2;
	begin(&m, &k);
	run(&m, PLUMB_LEVEL_M, 0, &alone, 0);
	run(&m, PLUMB_LEVEL_M, 1, &more, 0);
	run(&m, PLUMB_LEVEL_ML, 0, &l, 0);
	run(&m, PLUMB_LEVEL_MLG, 0, &k, 0);
	end(&m, 0);
	assert_int_equal(plumb_levels_row(&m.profile, PLUMB_LEVEL_M)->kept, 1);
	assert_string_equal(why(&m, PLUMB_LEVEL_M),
	                    "run 3 is left out: it did other work: predict has 21 calls, and 11 in "
	                    "the first run");
	plumb_profile_free(&m.profile);
}

static void
a_path_that_is_new_is_named(void **state)
{
	struct measured m;
	struct program l = layers;

	(void)state;
	begin(&m, &deep);
	for (uint32_t round = 0; round < 2; round++) {
		l.extra = round;
		run(&m, PLUMB_LEVEL_M, round, NULL, 1500);
		run(&m, PLUMB_LEVEL_ML, round, &l, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &deep, 0);
	}
	end(&m, 0);
	assert_string_equal(why(&m, PLUMB_LEVEL_ML),
	                    "aten::other is left out: run 6 called it, and "
	                    "the first run did not");
	assert_null(at(&m, NULL, 0, "aten::other"));
	plumb_profile_free(&m.profile);
}

static void
a_failed_run_is_left_out(void **state)
{
	struct measured m;
	struct plumb_level_run failed = { .level = PLUMB_LEVEL_ML,
		                          .number = 2,
		                          .time_ns = 1,
		                          .why = "the program failed with exit code 3" };

	(void)state;
	begin(&m, &deep);
	assert_int_equal(plumb_levels_add(m.levels, &failed, &m.error), 0);
	run(&m, PLUMB_LEVEL_M, 1, NULL, 1500);
	run(&m, PLUMB_LEVEL_ML, 1, &layers, 0);
	run(&m, PLUMB_LEVEL_MLG, 1, &deep, 0);
	end(&m, 0);
	assert_int_equal(plumb_levels_row(&m.profile, PLUMB_LEVEL_ML)->runs, 2);
	assert_int_equal(plumb_levels_row(&m.profile, PLUMB_LEVEL_ML)->kept, 1);
	assert_int_equal(plumb_levels_row(&m.profile, PLUMB_LEVEL_ML)->time_ns, layers.step);
	assert_int_equal(plumb_levels_row(&m.profile, PLUMB_LEVEL_ML)->low_ns, PLUMB_UNKNOWN);
	assert_string_equal(why(&m, PLUMB_LEVEL_ML),
	                    "run 2 is left out: the program failed with exit code 3");
	plumb_profile_free(&m.profile);
}

static void
nothing_can_be_compared(void **state)
{
	struct measured m;
	struct program other = layers;

	(void)state;
	other.adds = 2;
	other.mm_10 = other.mm_20 = 1;
	begin(&m, &(struct program){ true, true, 1, 1, 5000, 300, 1, 0, 9000 });
	run(&m, PLUMB_LEVEL_ML, 0, &other, 0);
	run(&m, PLUMB_LEVEL_MLG, 0, &deep, 0);
	end(&m, PLUMB_EEMPTY);
	assert_string_equal(m.error.message,
	                    "no two levels can be compared: run 2 is left out: it did other work: "
	                    "aten::add has 21 calls, and 11 in the first run");
	plumb_profile_free(&m.profile);
}

/* ---- the file ---- */

static void
a_file_keeps_the_levels(void **state)
{
	struct measured m;
	struct plumb_profile read = { 0 };
	char path[] = "/tmp/plumb-levels-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	begin(&m, &deep);
	for (uint32_t round = 0; round < 2; round++) {
		run(&m, PLUMB_LEVEL_M, round, NULL, 1500);
		run(&m, PLUMB_LEVEL_ML, round, &layers, 0);
		run(&m, PLUMB_LEVEL_MLG, round, &deep, 0);
	}
	end(&m, 0);
	close(fd);
	assert_int_equal(plumb_store_write(&m.profile, path, NULL, NULL, &m.error), 0);
	assert_int_equal(plumb_store_read(&read, path, &m.error), 0);
	assert_int_equal(read.levels_count, 3);
	assert_memory_equal(read.levels, m.profile.levels, 3 * sizeof *read.levels);
	assert_int_equal(read.level_values_count, m.profile.level_values_count);
	for (uint32_t i = 0; i < read.level_values_count; i++) {
		assert_int_equal(read.level_values[i].context, m.profile.level_values[i].context);
		assert_int_equal(read.level_values[i].corrected_ns,
		                 m.profile.level_values[i].corrected_ns);
		assert_int_equal(read.level_values[i].low_ns, m.profile.level_values[i].low_ns);
	}
	unlink(path);
	plumb_profile_free(&read);
	plumb_profile_free(&m.profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(trims_as_xsp),
		T(levels_are_subtracted_by_rounds),
		T(layers_have_the_time_of_their_level),
		T(layers_fit_into_the_model),
		T(threads_work_at_once),
		T(parts_of_any_tree_add_up),
		T(a_changed_order_is_marked),
		T(an_unsure_order_is_not_marked),
		T(a_path_that_differs_is_left_out),
		T(a_run_that_differs_is_left_out),
		T(a_run_without_a_loop_has_a_time),
		T(ranges_of_the_model_are_compared),
		T(a_path_that_is_new_is_named),
		T(a_failed_run_is_left_out),
		T(nothing_can_be_compared),
		T(a_file_keeps_the_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
