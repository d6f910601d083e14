/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of steps: what a damaged or hostile file says of them is passed by. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/steps/marks.h"
#include "model/builder.h"

#define STEPS 4

struct made {
	struct plumb_builder *builder;
	struct plumb_profile profile;
	struct plumb_marks marks;
	uint32_t process, thread;
};

static void
begin(struct made *m)
{
	*m = (struct made){ .builder = plumb_builder_new() };
	m->process = plumb_builder_process(
		m->builder, &(struct plumb_process){ .host = PLUMB_NONE, .command = PLUMB_NONE });
	m->thread =
		plumb_builder_track(m->builder, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                               .process = m->process,
	                                                               .device = PLUMB_NONE,
	                                                               .name = PLUMB_NONE });
}

static void
mark(struct made *m, const char *name, int64_t start_ns, int64_t end_ns)
{
	struct plumb_builder *b = m->builder;
	uint32_t frame = plumb_builder_frame(b, PLUMB_FRAME_RANGE, plumb_builder_text(b, name),
	                                     PLUMB_NONE, 0);

	assert_int_equal(
		plumb_builder_span(
			b, &(struct plumb_span){ .context = plumb_builder_context(b, 0, frame, 0),
	                                         .track = m->thread,
	                                         .start_ns = start_ns,
	                                         .end_ns = end_ns }),
		0);
}

static void
group(struct made *m)
{
	struct plumb_error error = { 0 };

	assert_int_equal(plumb_builder_finish(m->builder, &m->profile, &error), 0);
	plumb_builder_free(m->builder);
	assert_int_equal(plumb_marks_add(&m->profile, 0, m->profile.spans_count, &m->marks), 0);
	assert_int_equal(plumb_marks_group(&m->profile, m->process, &m->marks), 0);
}

static void
end(struct made *m)
{
	plumb_marks_free(&m->marks);
	plumb_profile_free(&m->profile);
}

/* Which numbers ProfilerStep has where the fact is TEXT, of two steps; false: none. */
static bool
numbers(const char *text, int64_t found[2])
{
	struct made m;
	bool numbered;

	begin(&m);
	mark(&m, "ProfilerStep", 0, 10);
	mark(&m, "ProfilerStep", 20, 30);
	plumb_builder_environment(m.builder, m.process, PLUMB_PROFILER_STEPS, text);
	group(&m);
	assert_int_equal(m.marks.groups.count, 1);
	numbered = m.marks.groups.items[0].numbered;
	for (uint32_t i = 0; i < 2; i++)
		found[i] = m.marks.items[i].number;
	end(&m);
	return numbered;
}

static void
test_numbers_of_the_fact(void **state)
{
	static const char *const unfit[] = {
		"",
		"7",
		"7 8 9",
		"7 7",
		"7..9",
		"8..7",
		"-1..0",
		"7..",
		"7 x",
		"9223372036854775807..-9223372036854775808",
		"1..-9223372036854775808",
	};
	int64_t found[2];

	(void)state;
	assert_true(numbers("7 8", found));
	assert_true(found[0] == 7 && found[1] == 8);
	assert_true(numbers("9223372036854775806..9223372036854775807", found));
	assert_true(found[0] == INT64_MAX - 1 && found[1] == INT64_MAX);
	for (size_t i = 0; i < sizeof unfit / sizeof *unfit; i++)
		if (numbers(unfit[i], found))
			fail_msg("\"%s\" numbers two steps", unfit[i]);
}

/* Which group marks the steps of a loop that begins at 0, one for each 100 ns. */
static uint32_t
choose(const struct made *m, enum plumb_marks_wanted wanted)
{
	return plumb_marks_choose(&m->marks,
	                          &(struct plumb_marks_loop){ STEPS, 5, 100 * STEPS - 50 }, wanted);
}

static const char *
chosen(const struct made *m)
{
	uint32_t group = choose(m, PLUMB_MARKS_ONCE);

	assert_int_not_equal(group, PLUMB_NONE);
	return plumb_frame_label(&m->profile, m->marks.groups.items[group].frame);
}

/* ProfilerStep, then what is around an iteration, then the first part of one, then the optimizer's
 * step. */
static void
test_which_group_tells(void **state)
{
	static const struct {
		const char *name;
		int64_t from, until;
	} sorts[] = { { "Optimizer.zero_grad#SGD.zero_grad", 1, 5 },
		      { "Optimizer.step#SGD.step", 90, 95 },
		      { "backward", 50, 90 },
		      { "forward", 6, 30 },
		      { "whole", 2, 98 },
		      { "ProfilerStep", 0, 10 } };

	(void)state;
	for (size_t most = 1; most <= sizeof sorts / sizeof *sorts; most++) {
		struct made m;

		begin(&m);
		for (int i = 0; i < STEPS; i++) {
			for (size_t k = 0; k < most; k++)
				mark(&m, sorts[k].name, 100 * i + sorts[k].from,
				     100 * i + sorts[k].until);
			mark(&m, "often", 100 * i + 20, 100 * i + 21);
			mark(&m, "often", 100 * i + 30, 100 * i + 31);
			mark(&m, "often", 100 * i + 40, 100 * i + 41);
		}
		group(&m);
		assert_string_equal(chosen(&m), sorts[most - 1].name);
		end(&m);
	}
}

/* Marks of warm-up, which is no part of the loop, do not count. */
static void
test_marks_before_the_loop(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	for (int i = -4; i < STEPS; i++)
		mark(&m, "step", 100 * i, 100 * i + 90);
	for (int i = 0; i < STEPS; i++)
		mark(&m, "warmup", 100 * (i - STEPS) - 500, 100 * (i - STEPS) - 401);
	group(&m);
	assert_string_equal(chosen(&m), "step");
	end(&m);
}

/* Times that are none do not make a mark the longest. */
static void
test_times_that_are_none(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	for (int i = 0; i < STEPS; i++) {
		mark(&m, "wild", i - PLUMB_TIME_MOST - 10, i + 1);
		mark(&m, "wilder", INT64_MIN + 1 + i, INT64_MAX);
		mark(&m, "step", 100 * i, 100 * i + 50);
	}
	group(&m);
	assert_int_equal(m.marks.count, STEPS);
	assert_int_equal(choose(&m, PLUMB_MARKS_ANY), 0);
	assert_int_equal(m.marks.groups.items[0].total_ns, 50 * STEPS);
	end(&m);
}

/* Marks whose names differ by a number are called by what they share, but never by half a name. */
static void
test_names_of_numbered_marks(void **state)
{
	static const struct {
		const char *first, *second, *name;
	} cases[] = {
		{ "step 1", "step 2", "step" },
		{ "step #1", "step #2", "step" },
		{ "step (1)", "step (2)", "step" },
		{ "iteration[7]", "iteration[8]", "iteration" },
		{ "FSDP::pre_forward (blocks.0)", "FSDP::pre_forward (blocks.1)",
		  "FSDP::pre_forward (blocks.N)" },
		{ "layer 1 of model", "layer 2 of model", "layer N of model" },
		{ "a (b, 1)", "a (b, 2)", "a (b, N)" },
		{ "1", "2", "N" },
		{ "[1]", "[2]", "[N]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct made m;
		begin(&m);
		mark(&m, cases[i].first, 0, 10);
		mark(&m, cases[i].second, 20, 30);
		group(&m);
		assert_int_equal(m.marks.groups.count, 1);
		const struct plumb_mark_group *g = &m.marks.groups.items[0];
		char name[120];
		plumb_mark_group_name(&m.profile, g, name, sizeof name);
		assert_string_equal(name, cases[i].name);
		end(&m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers_of_the_fact),
		cmocka_unit_test(test_which_group_tells),
		cmocka_unit_test(test_marks_before_the_loop),
		cmocka_unit_test(test_times_that_are_none),
		cmocka_unit_test(test_names_of_numbered_marks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
