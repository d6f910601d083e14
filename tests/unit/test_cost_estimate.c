/* SPDX-License-Identifier: Apache-2.0 */
/* The estimate of what recording costs: of which events it is, what bounds it, and when it is not
 * known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/cost_estimate.h"
#include "model/builder.h"

#define T(test) cmocka_unit_test(test)
#define STEPS 100
#define STEP_NS 10000000

/* A run of two ranks: start-up, and a loop of 100 steps of 10 ms. Rank 0 is the second process. */
struct program {
	uint64_t calls, start_calls; /* of operators, in the loop and before */
	int64_t launches;
	int64_t overhead_ns; /* of the thread */
	int64_t busy_ns;     /* of the GPU in the loop; -1: there is no GPU */
	int64_t kernels;
	int64_t steps;
	const char *fact; /* of the environment */
	const char *frame;
	const char *file;  /* of a Python frame */
	const char *other; /* name of a second thread that does the same */
};
static const struct program usual = { .calls = 300000,
	                              .start_calls = 100000,
	                              .launches = 100000,
	                              .overhead_ns = 110000000,
	                              .busy_ns = 300000000,
	                              .kernels = 100000,
	                              .steps = STEPS,
	                              .fact = "torch.version" };

static void
add_value(struct plumb_builder *b, uint32_t context, uint32_t metric, uint32_t track,
          uint32_t window, int64_t sum, uint64_t loop, uint64_t before)
{
	struct plumb_value value = { .context = context,
		                     .metric = metric,
		                     .track = track,
		                     .sum = sum,
		                     .count = loop + before,
		                     .min = 1,
		                     .max = 1,
		                     .mean = 1 };
	struct plumb_window_value part = { .window = window,
		                           .context = context,
		                           .metric = metric,
		                           .track = track,
		                           .sum = sum,
		                           .count = loop,
		                           .min = PLUMB_UNKNOWN,
		                           .max = PLUMB_UNKNOWN };
	assert_int_equal(plumb_builder_value(b, &value), 0);
	if (loop)
		assert_int_equal(plumb_builder_window_value(b, &part), 0);
}

static void
add_rank(struct plumb_builder *b, const struct program *p, int64_t rank, uint32_t device)
{
	uint32_t process =
		plumb_builder_process(b, &(struct plumb_process){ .pid = 10 + rank,
	                                                          .rank = rank,
	                                                          .host = PLUMB_NONE,
	                                                          .command = PLUMB_NONE,
	                                                          .end_ns = 2000000000 });
	uint32_t track =
		plumb_builder_track(b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                      .process = process,
	                                                      .device = PLUMB_NONE,
	                                                      .name = PLUMB_NONE,
	                                                      .tid = 10 + rank,
	                                                      .overhead_ns = p->overhead_ns });
	uint32_t startup = plumb_builder_window(
		b, &(struct plumb_window){ process, PLUMB_WINDOW_STARTUP, 0, PLUMB_UNKNOWN });
	uint32_t loop = plumb_builder_window(
		b, &(struct plumb_window){ process, PLUMB_WINDOW_LOOP, 1, p->steps });
	uint32_t context = plumb_builder_context(
		b, 0,
		plumb_builder_frame(b, PLUMB_FRAME_OPERATOR,
	                            plumb_builder_text(b, p->frame ? p->frame : "aten::mm"),
	                            PLUMB_NONE, 0),
		0);
	uint32_t other =
		p->other
			? plumb_builder_track(
				  b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                    .process = process,
	                                                    .device = PLUMB_NONE,
	                                                    .name = plumb_builder_text(b, p->other),
	                                                    .tid = 20 + rank,
	                                                    .overhead_ns = p->overhead_ns })
			: PLUMB_NONE;
	int64_t begin = 500000000, end = begin + (int64_t)STEPS * STEP_NS;

	plumb_builder_window_stretch(b, &(struct plumb_window_stretch){ startup, 0, begin });
	plumb_builder_window_stretch(b, &(struct plumb_window_stretch){ loop, begin, end });
	if (p->calls)
		add_value(b, context, PLUMB_METRIC_OP_DURATION, track, loop, 1, p->calls,
		          p->start_calls);
	if (p->calls && p->other)
		add_value(b, context, PLUMB_METRIC_OP_DURATION, other, loop, 1, p->calls,
		          p->start_calls);
	if (p->launches)
		add_value(b, context, PLUMB_METRIC_GPU_LAUNCHES, track, loop, p->launches,
		          (uint64_t)p->launches, 0);
	if (p->busy_ns != -1)
		assert_int_equal(plumb_builder_window_device(
					 b, &(struct plumb_window_device){ .window = loop,
		                                                           .device = device,
		                                                           .kernels = p->kernels,
		                                                           .busy_ns = p->busy_ns }),
		                 0);
}

static struct plumb_cost_estimate
estimate(const struct program *p)
{
	struct program other = *p;
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_cost_estimate e;
	struct plumb_profile profile;
	struct plumb_error error;
	uint32_t device;

	other.calls *= 7; /* rank 1 is not asked */
	device = plumb_builder_device(
		b, &(struct plumb_device){ .name = PLUMB_NONE, .uuid = PLUMB_NONE });
	add_rank(b, &other, 1, device);
	add_rank(b, p, 0, device);
	if (p->file)
		plumb_builder_frame(b, PLUMB_FRAME_PYTHON, plumb_builder_text(b, "run"),
		                    plumb_builder_text(b, p->file), 3);
	if (p->fact)
		plumb_builder_environment(b, PLUMB_NONE, p->fact, "1.0");
	assert_int_equal(plumb_builder_finish(b, &profile, &error), 0);
	plumb_builder_free(b);
	assert_int_equal(plumb_cost_estimate_find(&profile, &e, &error), 0);
	if (e.process != PLUMB_NONE)
		assert_int_equal(profile.processes[e.process].rank, 0);
	plumb_profile_free(&profile);
	return e;
}

static void
test_the_host_is_the_limit(void **state)
{
	struct plumb_cost_estimate e = estimate(&usual);
	(void)state;

	assert_true(e.is_known && !e.is_hidden && !e.why);
	assert_int_equal(e.steps, STEPS);
	assert_true(fabs(e.step_ns - STEP_NS) < 1);
	/* 400 of 500 thousand events are in the loop. */
	assert_true(fabs(e.own_ns - (double)usual.overhead_ns * 0.8 / STEPS) < 1);
	assert_true(e.framework_ns > 0 && e.driver_ns > 0);
	assert_true(fabs(e.cost_ns - (e.own_ns + e.framework_ns + e.driver_ns)) < 1);
}

/* Twice the events have twice the cost. */
static void
test_it_grows_with_the_events(void **state)
{
	struct program more = usual;
	struct plumb_cost_estimate one, two;
	(void)state;

	more.calls *= 2;
	more.start_calls *= 2;
	more.launches *= 2;
	more.overhead_ns *= 2;
	one = estimate(&usual);
	two = estimate(&more);
	assert_true(fabs(two.framework_ns / one.framework_ns - 2) < 1e-9);
	assert_true(fabs(two.driver_ns / one.driver_ns - 2) < 1e-9);
}

/* The host is as slow for the others as it is for plumb. */
static void
test_a_slow_host(void **state)
{
	struct program slow = usual;
	struct plumb_cost_estimate one, two;
	(void)state;

	slow.overhead_ns *= 2;
	one = estimate(&usual);
	two = estimate(&slow);
	assert_true(fabs(two.own_ns / one.own_ns - 2) < 1e-9);
	assert_true(fabs(two.framework_ns / one.framework_ns - 2) < 1e-9);
	assert_true(fabs(two.driver_ns / one.driver_ns - 2) < 1e-9);
}

/* plumb's own time tells nothing of the others if it is out of all proportion. */
static void
test_out_of_proportion(void **state)
{
	struct program slow = usual, slower;
	struct plumb_cost_estimate one, two;
	(void)state;

	slow.overhead_ns *= 10;
	slower = slow;
	slower.overhead_ns *= 2;
	one = estimate(&slow);
	two = estimate(&slower);
	assert_true(two.own_ns > one.own_ns);
	assert_true(fabs(two.framework_ns - one.framework_ns) < 1e-6);
	assert_true(two.framework_ns < 5 * estimate(&usual).framework_ns);
}

static void
test_the_gpu_hides_the_host(void **state)
{
	struct program p = usual;
	struct plumb_cost_estimate e;
	(void)state;

	p.busy_ns = 999000000;
	e = estimate(&p);
	assert_true(e.is_known && e.is_hidden);
	assert_true(e.cost_ns < e.own_ns + e.framework_ns + e.driver_ns);
	assert_true(fabs(e.cost_ns - e.gpu_ns) < 1 && e.gpu_ns > 0);
}

/* The step cannot become longer by more than the GPU waits. */
static void
test_what_the_gpu_waits_is_the_bound(void **state)
{
	struct program p = usual;
	struct plumb_cost_estimate e;
	(void)state;

	p.busy_ns = 900000000; /* 1 ms of 10 is left */
	e = estimate(&p);
	assert_true(e.is_known && e.is_hidden);
	assert_true(fabs(e.cost_ns - 1000000) < 1);
}

static void
test_a_program_without_a_gpu(void **state)
{
	struct program p = usual;
	struct plumb_cost_estimate e;
	(void)state;

	p.busy_ns = -1;
	p.launches = 0;
	e = estimate(&p);
	assert_true(e.is_known && !e.is_hidden && e.gpu_ns == 0);
	assert_true(fabs(e.cost_ns - (e.own_ns + e.framework_ns)) < 1);
}

static void
unknown(struct program p, const char *why)
{
	struct plumb_cost_estimate e = estimate(&p);

	assert_false(e.is_known);
	assert_string_equal(e.why, why);
}

/* The thread of the backward pass works while the main thread waits. */
static void
test_threads_at_the_same_time(void **state)
{
	struct program p = usual;
	(void)state;

	p.other = "pt_autograd_0";
	assert_true(estimate(&p).is_known);
	assert_true(estimate(&p).own_ns > 1.9 * estimate(&usual).own_ns);
	p.other = "worker";
	unknown(p, "several threads work in it at the same time");
}

static void
test_what_is_not_known(void **state)
{
	struct program p = usual;
	(void)state;

	p.fact = NULL;
	unknown(p, "its operators are not PyTorch's");
	p = usual, p.file = "/usr/lib/python3/jax/_src/pjit.py";
	unknown(p, "the program uses JAX");
	p = usual, p.file = "/usr/lib/python3/tensorflow/python/eager/context.py";
	unknown(p, "the program uses TensorFlow");
	p = usual, p.frame = "Torch-Compiled Region: 0/0";
	unknown(p, "the program is compiled");
	p = usual, p.overhead_ns = PLUMB_UNKNOWN;
	unknown(p, "plumb's own time in it is not known");
	p = usual, p.busy_ns = PLUMB_UNKNOWN;
	unknown(p, "the GPU's busy time in the loop is not known");
	p = usual, p.steps = PLUMB_UNKNOWN;
	unknown(p, "the steps of the loop are not known");
	p = usual, p.calls = 0, p.launches = 0;
	unknown(p, "the loop has no operators and no launches");
	p = usual, p.busy_ns = -1, p.overhead_ns = 2000000000;
	unknown(p, "the estimate exceeds the step");
}

/* ---- what is measured stays in the profile ---- */

static void
test_a_profile_takes_a_cost(void **state)
{
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_cost cost = {
		.process = PLUMB_NONE, .scope = PLUMB_COST_OF_RUN, .pairs = 2, .ratio = 1.5
	};
	struct plumb_profile profile;
	struct plumb_error error;
	(void)state;

	assert_int_equal(plumb_builder_finish(b, &profile, &error), 0);
	plumb_builder_free(b);
	assert_int_equal(plumb_profile_set_cost(&profile, &cost, "first", &error), 0);
	assert_int_equal(plumb_profile_set_cost(&profile, &cost, "second", &error), 0);
	assert_int_equal(profile.costs_count, 1);
	assert_string_equal(plumb_text(&profile, profile.costs[0].why), "second");
	assert_int_equal(plumb_profile_set_cost(&profile, &cost, NULL, &error), 0);
	assert_int_equal(profile.costs[0].why, PLUMB_NONE);
	assert_int_equal(profile.costs[0].pairs, 2);
	plumb_profile_free(&profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_the_host_is_the_limit),
		T(test_it_grows_with_the_events),
		T(test_a_slow_host),
		T(test_out_of_proportion),
		T(test_the_gpu_hides_the_host),
		T(test_what_the_gpu_waits_is_the_bound),
		T(test_a_program_without_a_gpu),
		T(test_threads_at_the_same_time),
		T(test_what_is_not_known),
		T(test_a_profile_takes_a_cost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
