/* SPDX-License-Identifier: Apache-2.0 */
/* Grouping: exclusive, inclusive, what lies outside, recursion, the person's own code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../golden/profiles.h"
#include "analyze/group.h"
#include "analyze/ranks.h"
#include "model/user_code.h"

struct grouped {
	struct plumb_profile profile;
	struct plumb_grouping *grouping;
	struct plumb_stat *exclusive, *inclusive, outside;
	uint32_t *users;
	uint32_t count;
};

static struct grouped
group(const char *sample, enum plumb_group_by by, uint32_t metric, const char *rule)
{
	struct grouped g = { 0 };
	unsigned char *user;
	uint32_t *user_of;

	assert_true(sample_make(sample, &g.profile));
	user = plumb_user_code_frames(&g.profile, rule, NULL);
	user_of = plumb_user_contexts(&g.profile, user);
	g.grouping = plumb_grouping_new(&g.profile, by, user);
	g.count = plumb_grouping_count(g.grouping);
	g.exclusive = calloc(g.count + 1u, sizeof *g.exclusive);
	g.inclusive = calloc(g.count + 1u, sizeof *g.inclusive);
	g.users = calloc(g.count + 1u, sizeof *g.users);
	assert_int_equal(
		plumb_grouping_values(g.grouping, metric, g.exclusive, g.inclusive, &g.outside), 0);
	assert_int_equal(plumb_grouping_user(g.grouping, metric, user_of, g.users), 0);
	free(user);
	free(user_of);
	return g;
}

static void
drop(struct grouped *g)
{
	free(g->exclusive);
	free(g->inclusive);
	free(g->users);
	plumb_grouping_free(g->grouping);
	plumb_profile_free(&g->profile);
}

/* The row with this label (and line, where it is not 0). */
static uint32_t
row(const struct grouped *g, const char *label, uint32_t line)
{
	for (uint32_t r = 0; r < g->count; r++) {
		const struct plumb_group_row *at = &plumb_grouping_rows(g->grouping)[r];
		if (!strcmp(plumb_frame_label(&g->profile, at->frame), label) &&
		    (!line || at->line == line))
			return r;
	}
	fail_msg("there is no row %s:%u", label, line);
	return 0;
}

static void
expect(const struct grouped *g, const char *label, uint32_t line, int64_t exclusive,
       int64_t inclusive)
{
	uint32_t r = row(g, label, line);

	assert_int_equal(g->exclusive[r].sum, exclusive);
	assert_int_equal(g->inclusive[r].sum, inclusive);
}

static void
expect_user(const struct grouped *g, const char *label, const char *file, uint32_t line)
{
	uint32_t frame = g->users[row(g, label, 0)];

	if (!file) {
		assert_int_equal(frame, PLUMB_NONE);
		return;
	}
	assert_int_not_equal(frame, PLUMB_NONE);
	assert_string_equal(plumb_text(&g->profile, g->profile.frames[frame].file), file);
	assert_int_equal(g->profile.frames[frame].line, line);
}

static void
test_operators(void **state)
{
	struct grouped g = group("gpu", PLUMB_BY_OPERATOR, PLUMB_METRIC_GPU_TIME, NULL);
	int64_t sum = g.outside.sum;

	(void)state;
	expect(&g, "aten::linear", 0, 0, 6200000);
	expect(&g, "aten::addmm", 0, 3000000, 3000000);
	expect(&g, "AddmmBackward0", 0, 0, 3200000);
	expect(&g, "aten::mm", 0, 3200000, 3200000);
	expect(&g, "AccumulateGrad", 0, 0, 700000);
	expect(&g, "aten::copy_", 0, 0, 0);
	assert_int_equal(g.outside.sum, 500000);
	assert_int_equal(g.outside.count, 2);
	for (uint32_t r = 0; r < g.count; r++)
		sum += g.exclusive[r].sum;
	assert_int_equal(sum, 7400000);
	expect_user(&g, "aten::mm", "/home/ada/model.py", 12);
	expect_user(&g, "aten::add_", "/home/ada/train.py", 25);
	drop(&g);
}

static void
test_nested_name_counts_once(void **state)
{
	struct grouped g = group("cpu", PLUMB_BY_OPERATOR, PLUMB_METRIC_OP_TIME, NULL);

	(void)state;
	/* aten::to 3 × 100 > aten::_to_copy 3 × 200 > aten::to 3 × 50 */
	expect(&g, "aten::to", 0, 300 + 150, 300 + 600 + 150);
	expect(&g, "aten::_to_copy", 0, 600, 600 + 150);
	assert_int_equal(g.exclusive[row(&g, "aten::to", 0)].count, 6);
	assert_int_equal(g.inclusive[row(&g, "aten::to", 0)].count, 9);
	expect_user(&g, "aten::to", "/home/ada/cpu.py", 5);
	expect_user(&g, "aten::empty", NULL, 0);
	assert_int_equal(plumb_metric_default(&g.profile), PLUMB_METRIC_OP_TIME);
	drop(&g);
}

static void
test_recursion_counts_once(void **state)
{
	struct grouped g = group("deep", PLUMB_BY_PYTHON, PLUMB_METRIC_OP_TIME, NULL);

	(void)state;
	assert_int_equal(g.count, 1);
	expect(&g, "recurse", 0, 3500, 3500);
	assert_int_equal(plumb_grouping_rows(g.grouping)[0].line, 0);
	drop(&g);
	g = group("deep", PLUMB_BY_LINE, PLUMB_METRIC_OP_TIME, NULL);
	assert_int_equal(g.count, 2);
	expect(&g, "recurse", 5, 0, 3500);
	expect(&g, "recurse", 4, 3500, 3500);
	drop(&g);
}

static void
test_lines(void **state)
{
	struct grouped g = group("gpu", PLUMB_BY_LINE, PLUMB_METRIC_GPU_TIME, NULL);

	(void)state;
	expect(&g, "main", 40, 0, 6900000);
	expect(&g, "step", 22, 0, 6200000);
	expect(&g, "step", 25, 700000, 700000);
	expect(&g, "_call_impl", 1194, 0, 6200000);
	expect(&g, "forward", 114, 6200000, 6200000);
	drop(&g);
	g = group("gpu", PLUMB_BY_PYTHON, PLUMB_METRIC_GPU_TIME, NULL);
	expect(&g, "step", 0, 700000, 6900000); /* lines 22 and 25 are one function */
	drop(&g);
}

static void
test_user_lines(void **state)
{
	struct grouped g = group("gpu", PLUMB_BY_USER_LINE, PLUMB_METRIC_GPU_TIME, NULL);

	(void)state;
	expect(&g, "forward", 12, 6200000, 6200000);
	expect(&g, "step", 25, 700000, 700000);
	expect(&g, "load", 8, 0, 0);
	drop(&g);
	/* With another rule the library's line is the person's own. */
	g = group("gpu", PLUMB_BY_KERNEL, PLUMB_METRIC_GPU_TIME,
	          "+/usr/lib/python3/dist-packages/torch");
	expect_user(&g, "void gemm_fwd_h200<float, 128, 64>(float*)",
	            "/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", 114);
	expect_user(&g, "stray", NULL, 0);
	drop(&g);
}

static void
test_threads(void **state)
{
	struct grouped g = group("gpu", PLUMB_BY_THREAD, PLUMB_METRIC_OP_TIME, NULL);

	(void)state;
	assert_int_equal(g.count, 4);
	assert_int_equal(g.exclusive[0].sum, 2 * 4000 + 2 * 21000 + 2 * 8000);
	assert_int_equal(g.exclusive[1].sum, 2 * 9000 + 4 * 15000 + 2 * 3000 + 2 * 5000);
	assert_int_equal(g.inclusive[1].sum, g.exclusive[1].sum);
	assert_int_equal(g.exclusive[2].count, 0);
	drop(&g);
}

/* Two processes of rank 1 and one of none; a value without a track. */
static void
test_processes_and_ranks(void **state)
{
	static const int64_t ranks[] = { 1, PLUMB_UNKNOWN, 1 };
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_profile profile;
	struct plumb_error error;
	struct plumb_stat exclusive[3], inclusive[3], outside;
	struct plumb_grouping *g;
	uint32_t line = plumb_builder_context(b, 0,
	                                      plumb_builder_frame(b, PLUMB_FRAME_OPERATOR,
	                                                          plumb_builder_text(b, "op"),
	                                                          PLUMB_NONE, 0),
	                                      0);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct plumb_process process = {
			.pid = 10 + i, .rank = ranks[i], .host = PLUMB_NONE, .command = PLUMB_NONE
		};
		struct plumb_track track = { .kind = PLUMB_TRACK_THREAD,
			                     .process = plumb_builder_process(b, &process),
			                     .device = PLUMB_NONE,
			                     .name = PLUMB_NONE };
		for (int k = 0; k < 2; k++) { /* two threads each */
			struct plumb_value value = { line,
				                     PLUMB_METRIC_OP_TIME,
				                     plumb_builder_track(b, &track),
				                     1 << i,
				                     1,
				                     1,
				                     1,
				                     1,
				                     0 };
			track.tid = k + 1;
			assert_int_equal(plumb_builder_value(b, &value), 0);
		}
	}
	struct plumb_value nowhere = { line, PLUMB_METRIC_OP_TIME, PLUMB_NONE, 100, 1, 1, 1, 1, 0 };
	assert_int_equal(plumb_builder_value(b, &nowhere), 0);
	assert_int_equal(plumb_builder_finish(b, &profile, &error), 0);
	plumb_builder_free(b);

	g = plumb_grouping_new(&profile, PLUMB_BY_PROCESS, NULL);
	assert_int_equal(plumb_grouping_count(g), 3);
	assert_int_equal(
		plumb_grouping_values(g, PLUMB_METRIC_OP_TIME, exclusive, inclusive, &outside), 0);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(plumb_grouping_rows(g)[i].process, i);
		assert_int_equal(exclusive[i].sum, 2 << i);
		assert_int_equal(inclusive[i].sum, 2 << i);
	}
	assert_int_equal(outside.sum, 100);
	plumb_grouping_free(g);

	g = plumb_grouping_new(&profile, PLUMB_BY_RANK, NULL);
	assert_int_equal(plumb_grouping_count(g), 1);
	assert_int_equal(
		plumb_grouping_values(g, PLUMB_METRIC_OP_TIME, exclusive, inclusive, &outside), 0);
	assert_int_equal(plumb_grouping_rows(g)[0].rank, 1);
	assert_int_equal(exclusive[0].sum, 2 + 8);
	assert_int_equal(outside.sum, 100 + 4);
	plumb_grouping_free(g);

	struct plumb_ranks found;
	assert_true(plumb_ranks_find(&profile, &found));
	assert_int_equal(found.count, 1);
	assert_int_equal(found.items[0].processes, 2);
	assert_int_equal(found.items[0].op_time_ns, 10);
	assert_true(found.items[0].gpu_busy_ns == PLUMB_UNKNOWN);
	plumb_ranks_free(&found);
	plumb_profile_free(&profile);
}

static void
test_metrics_of_one_call(void **state)
{
	struct grouped g = group("gpu", PLUMB_BY_OPERATOR, PLUMB_METRIC_GPU_REGISTERS, NULL);
	uint32_t r = row(&g, "aten::addmm", 0);

	(void)state;
	assert_int_equal(g.exclusive[r].count, 2);
	assert_int_equal(plumb_stat_amount(PLUMB_METRIC_GPU_REGISTERS, &g.exclusive[r]), 96);
	assert_int_equal(g.inclusive[r].count, 0);
	drop(&g);
}

static void
test_nothing(void **state)
{
	struct grouped g = group("empty", PLUMB_BY_KERNEL, PLUMB_METRIC_GPU_TIME, NULL);

	(void)state;
	assert_int_equal(g.count, 0);
	assert_int_equal(g.outside.count, 0);
	drop(&g);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_operators),
		cmocka_unit_test(test_nested_name_counts_once),
		cmocka_unit_test(test_recursion_counts_once),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_user_lines),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_processes_and_ranks),
		cmocka_unit_test(test_metrics_of_one_call),
		cmocka_unit_test(test_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
