/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of a recording are start-up, which a loop, which the rest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/windows.h"
#include "model/builder.h"

#define MS INT64_C(1000000)

/* What programs do: operators, with calls in each iteration. */
enum what {
	NOTHING,
	IMPORTS,
	VARIES,
	TRAIN,
	EVALUATE,
	MARKED,
	MIXED,
	FIRST,
	TUNE,
	GPU,
	TAIL,
	OTHER,
	STEPS,  /* a range of 60 ms for each iteration, and nothing else */
	UNEVEN, /* likewise, but one takes most of the time */
	BURST,  /* ranges of 1 ms, in what is mostly something else */
};

struct part {
	enum what what;
	int64_t ms;
	int64_t n;     /* iterations; MIXED: of both */
	int64_t quiet; /* ms at the end in which nothing happens */
};

struct made {
	struct plumb_builder *builder;
	struct plumb_profile profile;
	uint32_t processes, numbers;
};

static void
add_calls(struct made *m, uint32_t window, enum plumb_frame_kind kind, const char *name,
          int64_t each_us, int64_t calls)
{
	struct plumb_builder *b = m->builder;
	uint32_t frame = plumb_builder_frame(b, kind, plumb_builder_text(b, name), PLUMB_NONE, 0);
	struct plumb_window_value value = { .window = window,
		                            .context = plumb_builder_context(b, 0, frame, 0),
		                            .track = PLUMB_NONE,
		                            .count = (uint64_t)calls,
		                            .min = PLUMB_UNKNOWN,
		                            .max = PLUMB_UNKNOWN };

	if (!calls)
		return;
	value.metric = PLUMB_METRIC_OP_CALLS;
	value.sum = calls;
	assert_int_equal(plumb_builder_window_value(b, &value), 0);
	value.metric = PLUMB_METRIC_OP_TIME;
	value.sum = calls * each_us * 1000;
	value.m2 = 2;
	assert_int_equal(plumb_builder_window_value(b, &value), 0);
}

/* N calls of the range NAME, each of EACH ms, whose squared deviations add up to M2. */
static void
add_range(struct made *m, uint32_t window, const char *name, int64_t n, int64_t each, double m2)
{
	struct plumb_builder *b = m->builder;
	uint32_t frame = plumb_builder_frame(b, PLUMB_FRAME_RANGE, plumb_builder_text(b, name),
	                                     PLUMB_NONE, 0);
	struct plumb_window_value value = { .window = window,
		                            .context = plumb_builder_context(b, 0, frame, 0),
		                            .metric = PLUMB_METRIC_OP_DURATION,
		                            .track = PLUMB_NONE,
		                            .sum = n * each * MS,
		                            .count = (uint64_t)n,
		                            .min = PLUMB_UNKNOWN,
		                            .max = PLUMB_UNKNOWN,
		                            .m2 = m2 };

	if (!n)
		return;
	add_calls(m, window, PLUMB_FRAME_RANGE, name, each * 1000, n);
	assert_int_equal(plumb_builder_window_value(b, &value), 0);
}

static void
add_kernels(struct made *m, uint32_t window, const char *name, int64_t each_us, int64_t calls)
{
	struct plumb_builder *b = m->builder;
	uint32_t frame = plumb_builder_frame(b, PLUMB_FRAME_KERNEL, plumb_builder_text(b, name),
	                                     PLUMB_NONE, 0);
	struct plumb_window_value value = { .window = window,
		                            .context = plumb_builder_context(b, 0, frame, 0),
		                            .metric = PLUMB_METRIC_GPU_TIME,
		                            .track = PLUMB_NONE,
		                            .sum = calls * each_us * 1000,
		                            .count = (uint64_t)calls,
		                            .min = PLUMB_UNKNOWN,
		                            .max = PLUMB_UNKNOWN };

	assert_int_equal(plumb_builder_window_value(b, &value), 0);
}

/* What training does on the GPU, N times. */
static void
add_tail(struct made *m, uint32_t window, int64_t n)
{
	add_kernels(m, window, "gemm", 60, 3 * n);
	add_kernels(m, window, "relu", 20, 2 * n);
	add_kernels(m, window, "sgd", 10, n);
}

static void
add_train(struct made *m, uint32_t window, int64_t n)
{
	add_calls(m, window, PLUMB_FRAME_OPERATOR, "linear", 10, 4 * n);
	add_calls(m, window, PLUMB_FRAME_OPERATOR, "loss", 12, n);
	add_calls(m, window, PLUMB_FRAME_OPERATOR, "backward", 40, n + 1);
}

static void
add_evaluate(struct made *m, uint32_t window, int64_t n)
{
	add_calls(m, window, PLUMB_FRAME_OPERATOR, "linear of evaluation", 10, 2 * n);
	add_calls(m, window, PLUMB_FRAME_OPERATOR, "softmax", 12, n);
	add_calls(m, window, PLUMB_FRAME_OPERATOR, "argmax", 8, n);
}

static void
add_work(struct made *m, uint32_t window, const struct part *part)
{
	char name[40];

	switch (part->what) {
	case NOTHING:
		break;
	case IMPORTS:
		for (int64_t i = 0; i < 9; i++) {
			snprintf(name, sizeof name, "import %d", (int)i);
			add_calls(m, window, PLUMB_FRAME_OPERATOR, name, 200, 1 + i * i * 7 % 31);
		}
		break;
	case VARIES:
		for (int64_t i = 0; i < 9; i++) {
			snprintf(name, sizeof name, "varies %d", (int)i);
			add_calls(m, window, PLUMB_FRAME_OPERATOR, name, 200, 1 + i * i * 7 % 31);
		}
		break;
	case TRAIN:
		add_train(m, window, part->n);
		break;
	case EVALUATE:
		add_evaluate(m, window, part->n);
		break;
	case TUNE:
		add_calls(m, window, PLUMB_FRAME_OPERATOR, "autotune a (dynamo_timed)", 90,
		          4 * part->n);
		add_calls(m, window, PLUMB_FRAME_OPERATOR, "autotune b (dynamo_timed)", 90,
		          2 * part->n);
		add_calls(m, window, PLUMB_FRAME_OPERATOR, "autotune c (dynamo_timed)", 90,
		          part->n);
		add_calls(m, window, PLUMB_FRAME_OPERATOR, "zeros", 10, part->n);
		break;
	case GPU:
		add_train(m, window, part->n);
		add_tail(m, window, part->n);
		break;
	case TAIL:
		add_tail(m, window, part->n);
		break;
	case OTHER:
		add_kernels(m, window, "gemm", 60, part->n);
		add_kernels(m, window, "softmax", 70, 2 * part->n);
		add_kernels(m, window, "argmax", 70, part->n);
		break;
	case MARKED:
		add_calls(m, window, PLUMB_FRAME_RANGE, "Optimizer.step#SGD.step", 10, part->n);
		add_work(m, window, &(struct part){ VARIES, 0, 0 });
		break;
	case STEPS:
		add_range(m, window, "step", part->n, 60, 1e12 * (double)part->n);
		break;
	case UNEVEN:
		add_range(m, window, "step", part->n, 60, 1e16 * (double)part->n);
		break;
	case BURST:
		add_range(m, window, "load", part->n, 1, 0);
		break;
	case MIXED:
		add_train(m, window, part->n);
		add_evaluate(m, window, part->n);
		break;
	case FIRST:
		add_calls(m, window, PLUMB_FRAME_OPERATOR, "initialize", 10, 3);
		add_train(m, window, part->n);
		break;
	}
}

/* A process that does PARTS, one after another, from the moment 0. */
static uint32_t
add_process(struct made *m, const struct part *parts, uint32_t count)
{
	struct plumb_builder *b = m->builder;
	int64_t at = 0;
	uint32_t process;

	process = plumb_builder_process(b, &(struct plumb_process){ .pid = ++m->processes,
	                                                            .host = PLUMB_NONE,
	                                                            .command = PLUMB_NONE,
	                                                            .start_ns = 0,
	                                                            .end_ns = PLUMB_UNKNOWN });
	for (uint32_t i = 0; i < count; i++) {
		struct plumb_window window = { .process = process,
			                       .kind = PLUMB_WINDOW_PART,
			                       .number = i + 1,
			                       .iterations = (parts[i].ms - parts[i].quiet) * MS };
		uint32_t id = plumb_builder_window(b, &window);
		struct plumb_window_stretch stretch = { id, at, at + parts[i].ms * MS };
		at = stretch.end_ns;
		assert_int_equal(plumb_builder_window_stretch(b, &stretch), 0);
		add_work(m, id, &parts[i]);
	}
	return process;
}
#define ADD_PROCESS(m, parts) add_process(m, parts, sizeof(parts) / sizeof *(parts))

static void
start(struct made *m)
{
	*m = (struct made){ .builder = plumb_builder_new() };
	assert_non_null(m->builder);
}

static void
find(struct made *m)
{
	struct plumb_error error = { 0 };

	assert_int_equal(plumb_builder_finish(m->builder, &m->profile, &error), 0);
	plumb_builder_free(m->builder);
	assert_int_equal(plumb_windows_label(&m->profile, &error), 0);
}

/* "startup 0-100; loop:1 100-200 300-400 n=20; rest …" of PROCESS, in milliseconds. */
static void
expect(const struct made *m, uint32_t process, const char *expected)
{
	static const char *const kinds[] = { "all", "startup", "loop", "rest", "part" };
	const struct plumb_profile *p = &m->profile;
	char text[600] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < p->windows_count; i++) {
		const struct plumb_window *w = &p->windows[i];
		if (w->process != process)
			continue;
		used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? "; " : "",
		                         kinds[w->kind]);
		if (w->number)
			used += (size_t)snprintf(text + used, sizeof text - used, ":%u", w->number);
		for (uint32_t s = 0; s < p->window_stretches_count; s++)
			if (p->window_stretches[s].window == i)
				used += (size_t)snprintf(
					text + used, sizeof text - used, " %d-%d",
					(int)(p->window_stretches[s].start_ns / MS),
					(int)(p->window_stretches[s].end_ns / MS));
		if (w->iterations != PLUMB_UNKNOWN)
			used += (size_t)snprintf(text + used, sizeof text - used, " n=%d",
			                         (int)w->iterations);
	}
	assert_string_equal(text, expected);
}

static int64_t
sum_of(const struct made *m, uint32_t kind, const char *name)
{
	const struct plumb_profile *p = &m->profile;
	int64_t sum = 0;

	for (uint32_t i = 0; i < p->window_values_count; i++) {
		const struct plumb_window_value *v = &p->window_values[i];
		if (v->metric == PLUMB_METRIC_OP_CALLS && p->windows[v->window].kind == kind &&
		    !strcmp(plumb_text(p, plumb_context_frame(p, v->context)->name), name))
			sum += v->sum;
	}
	return sum;
}

/* ---- tests ---- */

/* A look sees one step or two, so no part has many; within a longer step it sees none. */
static void
test_ranges_that_come_evenly(void **state)
{
	static const struct part steps[] = {
		{ VARIES, 500, 0 }, { STEPS, 100, 1 }, { STEPS, 120, 2 }, { STEPS, 100, 2 },
		{ NOTHING, 70, 0 }, { STEPS, 200, 3 }, { STEPS, 60, 1 },
	};
	static const struct part few[] = { { VARIES, 500, 0 }, { STEPS, 420, 7 } };
	static const struct part uneven[] = { { VARIES, 500, 0 }, { UNEVEN, 1200, 20 } };
	static const struct part burst[] = { { VARIES, 500, 0 }, { BURST, 100, 20 } };
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, steps);
	find(&m);
	expect(&m, 0, "startup 0-500; loop:1 500-1150 n=9");
	plumb_profile_free(&m.profile);
	start(&m);
	ADD_PROCESS(&m, few);
	ADD_PROCESS(&m, uneven);
	ADD_PROCESS(&m, burst);
	find(&m);
	for (uint32_t i = 0; i < 3; i++)
		expect(&m, i, "");
	plumb_profile_free(&m.profile);
}

static void
test_train_and_evaluate(void **state)
{
	static const struct part parts[] = {
		{ IMPORTS, 500, 0 },    { TRAIN, 300, 1000 }, { TRAIN, 300, 900 },
		{ EVALUATE, 200, 700 }, { TRAIN, 400, 1300 }, { EVALUATE, 200, 600 },
		{ NOTHING, 1000, 0 },
	};
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	expect(&m, 0,
	       "startup 0-500; loop:1 500-1100 1300-1700 n=3200; loop:2 1100-1300 1700-1900 "
	       "n=1300; rest 1900-2900");
	assert_int_equal(sum_of(&m, PLUMB_WINDOW_LOOP, "linear"), 4 * 3200);
	assert_int_equal(sum_of(&m, PLUMB_WINDOW_LOOP, "softmax"), 1300);
	assert_int_equal(sum_of(&m, PLUMB_WINDOW_LOOP, "import 3"), 0);
	plumb_profile_free(&m.profile);
}

/* Values of parts that are one window now become one: deviations as well. */
static void
test_values_merge(void **state)
{
	static const struct part parts[] = { { TRAIN, 300, 1000 }, { TRAIN, 300, 500 } };
	struct made m;
	uint32_t times = 0;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	expect(&m, 0, "loop:1 0-600 n=1500");
	for (uint32_t i = 0; i < m.profile.window_values_count; i++) {
		const struct plumb_window_value *v = &m.profile.window_values[i];
		if (v->metric != PLUMB_METRIC_OP_TIME)
			continue;
		times++;
		/* The means are the same, so nothing is added to the parts' own. */
		assert_true(v->m2 > 3.9 && v->m2 < 4.1);
	}
	assert_int_equal(times, 3);
	plumb_profile_free(&m.profile);
}

static void
test_no_loop(void **state)
{
	static const struct part parts[] = { { IMPORTS, 500, 0 }, { NOTHING, 300, 0 } };
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	assert_int_equal(m.profile.windows_count, 0);
	assert_int_equal(m.profile.window_stretches_count, 0);
	assert_int_equal(m.profile.window_values_count, 0);
	plumb_profile_free(&m.profile);
}

/* Work in the first tenth of a part, and then nothing: the part is no loop, marked or not. */
static void
test_work_that_ends_early(void **state)
{
	static const struct part parts[] = { { IMPORTS, 500, 0 }, { TRAIN, 3000, 900, 2700 } };
	static const struct part marked[] = { { IMPORTS, 500, 0 }, { MARKED, 3000, 8, 2700 } };
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	assert_int_equal(m.profile.windows_count, 0);
	plumb_profile_free(&m.profile);
	start(&m);
	ADD_PROCESS(&m, marked);
	find(&m);
	assert_int_equal(m.profile.windows_count, 0);
	plumb_profile_free(&m.profile);
}

/* A tuner that tries kernels a hundred times is start-up, though it takes longer than the loop. */
static void
test_tuning_is_no_loop(void **state)
{
	static const struct part parts[] = { { IMPORTS, 500, 0 },
		                             { TUNE, 3000, 1000 },
		                             { TRAIN, 400, 1300 } };
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	expect(&m, 0, "startup 0-3500; loop:1 3500-3900 n=1300");
	plumb_profile_free(&m.profile);
}

/* Marks are believed where the calls of operators show nothing. */
static void
test_marks(void **state)
{
	static const struct part parts[] = { { IMPORTS, 500, 0 },
		                             { MARKED, 300, 6 },
		                             { NOTHING, 300, 0 } };
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	expect(&m, 0, "startup 0-500; loop:1 500-800 n=6; rest 800-1100");
	plumb_profile_free(&m.profile);
}

/* The newest GPU work shows the loop, whatever the host does. */
static void
test_gpu_loop(void **state)
{
	static const struct part parts[] = { { IMPORTS, 500, 0 },
		                             { VARIES, 300, 0 },
		                             { NOTHING, 300, 0 } };
	static const char *const names[] = { "gemm", "relu", "softmax", "sgd" };
	struct plumb_device device = { .name = PLUMB_NONE, .uuid = PLUMB_NONE };
	struct plumb_track track = { .kind = PLUMB_TRACK_STREAM, .name = PLUMB_NONE };
	struct made m;

	(void)state;
	start(&m);
	track.process = ADD_PROCESS(&m, parts);
	track.device = plumb_builder_device(m.builder, &device);
	uint32_t stream = plumb_builder_track(m.builder, &track);
	for (int64_t i = 0; i < 280; i++) {
		uint32_t frame = plumb_builder_frame(m.builder, PLUMB_FRAME_KERNEL,
		                                     plumb_builder_text(m.builder, names[i % 4]),
		                                     PLUMB_NONE, 0);
		struct plumb_work_item item = { plumb_builder_context(m.builder, 0, frame, 0),
			                        stream, (510 + i) * MS, (510 + i) * MS + MS / 2 };
		assert_int_equal(plumb_builder_work(m.builder, &item), 0);
	}
	find(&m);
	expect(&m, 0, "startup 0-500; loop:1 500-800; rest 800-1100");
	plumb_profile_free(&m.profile);
}

/* What the GPU still does when the host has called all is of the loop. */
static void
test_gpu_work_at_the_end(void **state)
{
	static const struct part parts[] = {
		{ IMPORTS, 500, 0 }, { GPU, 1000, 1000 }, { TAIL, 300, 300 }, { NOTHING, 200, 0 }
	};
	static const struct part other[] = {
		{ IMPORTS, 500, 0 }, { GPU, 1000, 1000 }, { OTHER, 300, 300 }, { NOTHING, 200, 0 }
	};
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	expect(&m, 0, "startup 0-500; loop:1 500-1800 n=1000; rest 1800-2000");
	plumb_profile_free(&m.profile);
	start(&m);
	ADD_PROCESS(&m, other);
	find(&m);
	expect(&m, 0,
	       "startup 0-500; loop:1 500-1500 n=1000; loop:2 1500-1800 n=300; rest 1800-2000");
	plumb_profile_free(&m.profile);
}

/* The moment between two loops is no third one, and goes to one of them. */
static void
test_moment_between(void **state)
{
	static const struct part parts[] = { { TRAIN, 300, 1000 },
		                             { MIXED, 50, 80 },
		                             { EVALUATE, 300, 1500 } };
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	assert_int_equal(m.profile.windows_count, 2);
	assert_int_equal(m.profile.window_stretches_count, 2);
	assert_int_equal(m.profile.windows[0].number, 1);
	assert_int_equal(m.profile.windows[1].number, 2);
	plumb_profile_free(&m.profile);
}

/* The moment in which the first iterations ran holds the end of start-up, too. */
static void
test_first_moment(void **state)
{
	static const struct part parts[] = { { IMPORTS, 500, 0 },
		                             { FIRST, 50, 150 },
		                             { TRAIN, 300, 1000 } };
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	expect(&m, 0, "startup 0-550; loop:1 550-850 n=1000");
	assert_int_equal(sum_of(&m, PLUMB_WINDOW_LOOP, "initialize"), 0);
	assert_int_equal(sum_of(&m, PLUMB_WINDOW_STARTUP, "initialize"), 3);
	plumb_profile_free(&m.profile);
}

/* A long start-up and the first iterations may be one part. */
static void
test_long_first_moment(void **state)
{
	static const struct part parts[] = { { FIRST, 2000, 150 },
		                             { TRAIN, 300, 1000 },
		                             { TRAIN, 1000, 150 } };
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	expect(&m, 0, "startup 0-2000; loop:1 2000-2300 n=1000; rest 2300-3300");
	plumb_profile_free(&m.profile);
}

/* A short loop before a much longer one is a part of start-up. */
static void
test_warm_up(void **state)
{
	static const struct part parts[] = { { EVALUATE, 200, 500 }, { TRAIN, 3000, 9000 } };
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, parts);
	find(&m);
	expect(&m, 0, "startup 0-200; loop:1 200-3200 n=9000");
	plumb_profile_free(&m.profile);
}

/* Ranks have the same numbers; a launcher that does nothing has windows by their time. */
static void
test_processes(void **state)
{
	static const struct part first[] = { { IMPORTS, 500, 0 },
		                             { TRAIN, 1000, 3000 },
		                             { EVALUATE, 500, 900 } };
	static const struct part second[] = { { IMPORTS, 450, 0 },
		                              { TRAIN, 1100, 3000 },
		                              { EVALUATE, 450, 900 } };
	static const struct part launcher[] = {
		{ NOTHING, 100, 0 }, { NOTHING, 500, 0 }, { NOTHING, 800, 0 }, { NOTHING, 900, 0 }
	};
	struct made m;

	(void)state;
	start(&m);
	ADD_PROCESS(&m, first);
	ADD_PROCESS(&m, second);
	ADD_PROCESS(&m, launcher);
	find(&m);
	expect(&m, 0, "startup 0-500; loop:1 500-1500 n=3000; loop:2 1500-2000 n=900");
	expect(&m, 1, "startup 0-450; loop:1 450-1550 n=3000; loop:2 1550-2000 n=900");
	expect(&m, 2, "startup 0-600; loop:1 600-1400; rest 1400-2300");
	plumb_profile_free(&m.profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_train_and_evaluate),
		cmocka_unit_test(test_values_merge),
		cmocka_unit_test(test_no_loop),
		cmocka_unit_test(test_tuning_is_no_loop),
		cmocka_unit_test(test_work_that_ends_early),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_gpu_work_at_the_end),
		cmocka_unit_test(test_moment_between),
		cmocka_unit_test(test_gpu_loop),
		cmocka_unit_test(test_ranges_that_come_evenly),
		cmocka_unit_test(test_first_moment),
		cmocka_unit_test(test_long_first_moment),
		cmocka_unit_test(test_warm_up),
		cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
