/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows a report has if nobody says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/builder.h"
#include "view/report.h"

static uint32_t
step_into(struct plumb_builder *b, uint32_t parent, enum plumb_frame_kind kind, const char *name)
{
	return plumb_builder_context(
		b, parent, plumb_builder_frame(b, kind, plumb_builder_text(b, name), PLUMB_NONE, 0),
		0);
}

/* A path of frames, "kind name > kind name", with an amount of METRIC at its end. */
static void
observe(struct plumb_builder *b, uint32_t metric, const char *path, int64_t amount)
{
	char copy[200], *rest = copy;
	uint32_t context = 0;
	struct plumb_value value = { .metric = metric,
		                     .track = 0,
		                     .sum = amount,
		                     .count = 1,
		                     .min = amount,
		                     .max = amount,
		                     .mean = (double)amount };

	snprintf(copy, sizeof copy, "%s", path);
	for (char *part; (part = strsep(&rest, ">"));) {
		uint32_t kind = 0;
		part += strspn(part, " ");
		char *name = strchr(part, ' ');
		*name++ = '\0';
		name[strcspn(name, ">")] = '\0';
		while (strcmp(plumb_frame_kind_names[kind], part))
			kind++;
		context = step_into(b, context, kind, name);
	}
	value.context = context;
	plumb_builder_value(b, &value);
}

struct observed {
	const char *path; /* NULL: the end */
	int64_t amount;
};

static struct plumb_report_choice
choose(uint32_t metric, const struct observed *observed)
{
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_profile profile;
	struct plumb_report_choice choice;
	struct plumb_error error;
	uint32_t process = plumb_builder_process(
		b, &(struct plumb_process){ .host = PLUMB_NONE, .command = PLUMB_NONE });

	plumb_builder_track(b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                              .process = process,
	                                              .device = PLUMB_NONE,
	                                              .name = PLUMB_NONE });
	for (; observed->path; observed++)
		observe(b, metric, observed->path, observed->amount);
	assert_int_equal(plumb_builder_finish(b, &profile, &error), 0);
	plumb_builder_free(b);
	assert_int_equal(plumb_report_choose(&profile, metric, &choice), 0);
	plumb_profile_free(&profile);
	return choice;
}

#define CHOOSE(metric, ...)                                                                        \
	choose(PLUMB_METRIC_##metric, (const struct observed[]){ __VA_ARGS__, { NULL, 0 } })

static void
operators_that_explain_most(void **state)
{
	struct plumb_report_choice choice =
		CHOOSE(GPU_TIME, { "operator aten::mm > kernel gemm", 70 }, { "kernel rest", 30 });

	(void)state;
	assert_int_equal(choice.by, PLUMB_BY_OPERATOR);
	assert_string_equal(choice.why, "");
}

/* Decoding with CUDA graphs: the graph's kernels are under no operator. */
static void
operators_that_explain_little(void **state)
{
	struct plumb_report_choice choice = CHOOSE(
		GPU_TIME, { "operator aten::argmax > kernel reduce", 1 },
		{ "range decode > kernel gemm", 70 }, { "range decode > kernel attention", 29 });

	(void)state;
	assert_int_equal(choice.by, PLUMB_BY_KERNEL);
	assert_string_equal(choice.why,
	                    "rows are kernels, because operators explain only 1.0 % of gpu.time");
}

static void
replays_that_were_timed_as_a_whole(void **state)
{
	struct plumb_report_choice choice =
		CHOOSE(GPU_TIME, { "operator aten::argmax > kernel reduce", 10 },
	               { "gpu_api cuGraphLaunch > kernel CUDA graph of 404 nodes", 90 });

	(void)state;
	assert_int_equal(choice.by, PLUMB_BY_KERNEL);
	assert_string_equal(choice.why,
	                    "rows are kernels, because operators explain only 10.0 % of gpu.time; "
	                    "replays of graphs, timed as a whole, are 90.0 %; --graphs=nodes times "
	                    "their kernels");
}

/* Kernels of Triton that modules launch without an operator. One module around everything tells
 * nothing. */
static void
modules_have_to_divide(void **state)
{
	struct plumb_report_choice choice =
		CHOOSE(GPU_TIME, { "module a > kernel k", 50 }, { "module b > kernel k", 45 },
	               { "operator aten::mm > kernel gemm", 5 });

	(void)state;
	assert_int_equal(choice.by, PLUMB_BY_MODULE);
	assert_string_equal(choice.why,
	                    "rows are modules, because operators explain only 5.0 % of gpu.time");
	choice = CHOOSE(GPU_TIME, { "module a > kernel k", 95 },
	                { "operator aten::mm > kernel gemm", 5 });
	assert_int_equal(choice.by, PLUMB_BY_KERNEL);
}

static void
no_operators_at_all(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE(GPU_TIME, { "native main > kernel k", 5 }).by, PLUMB_BY_KERNEL);
	assert_string_equal(CHOOSE(GPU_TIME, { "native main > kernel k", 5 }).why, "");
	assert_int_equal(CHOOSE(CPU_TIME, { "native main", 5 }).by, PLUMB_BY_NATIVE);
	assert_int_equal(CHOOSE(CPU_TIME, { "python main", 5 }).by, PLUMB_BY_PYTHON);
	assert_int_equal(CHOOSE(CPU_TIME, { "python main > native f", 5 }).by, PLUMB_BY_CONTEXT);
	assert_int_equal(CHOOSE(OP_TIME, { "range a", 5 }, { "range b", 5 }).by, PLUMB_BY_RANGE);
	assert_int_equal(CHOOSE(OP_TIME, { "range a", 5 }).by, PLUMB_BY_RANGE);
}

static void
nothing_was_recorded(void **state)
{
	(void)state;
	assert_int_equal(CHOOSE(GPU_TIME, { "operator aten::mm", 0 }).by, PLUMB_BY_OPERATOR);
	assert_int_equal(CHOOSE(GPU_TIME, { "kernel k", 0 }).by, PLUMB_BY_KERNEL);
	assert_int_equal(CHOOSE(OP_TIME, { "kernel k", 0 }).by, PLUMB_BY_OPERATOR);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operators_that_explain_most),
		cmocka_unit_test(operators_that_explain_little),
		cmocka_unit_test(replays_that_were_timed_as_a_whole),
		cmocka_unit_test(modules_have_to_divide),
		cmocka_unit_test(no_operators_at_all),
		cmocka_unit_test(nothing_was_recorded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
