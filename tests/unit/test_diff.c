/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons: statistics, the grammar of gates, the map of operators, spreads of a profile without
 * loops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "failing_malloc.h"
#include "near.h"

#include "analyze/diff/diff.h"
#include "analyze/diff/names.h"
#include "analyze/group.h"
#include "analyze/statistic.h"
#include "model/builder.h"

/* ---- statistics ---- */

static void
test_median(void **state)
{
	struct plumb_estimate e;

	(void)state;
	assert_int_equal(plumb_estimate_median(NULL, 0, &e), 0);
	assert_true(isnan(e.value) && isnan(e.error));
	assert_int_equal(plumb_estimate_median((double[]){ 7, 9 }, 2, &e), 0);
	assert_true(e.value == 8 && isnan(e.error) && e.basis == PLUMB_SPREAD_NONE);
	/* One that is far off moves neither the median nor its error. */
	double samples[] = { 10, 12, 11, 9, 10, 11, 10, 9, 1000, 10, 11 };
	assert_int_equal(plumb_estimate_median(samples, 11, &e), 0);
	near(e.value, 10, 0);
	near(e.error, 1.2533 * 1.4826 / sqrt(11), 0.05);
	assert_int_equal(e.basis, PLUMB_SPREAD_ITERATIONS);
	/* More than half are equal: the rest tell the spread. */
	double even[] = { 5, 5, 5, 5, 6 };
	assert_int_equal(plumb_estimate_median(even, 5, &e), 0);
	assert_true(e.value == 5 && e.error > 0);
	double same[] = { 5, 5, 5 };
	assert_int_equal(plumb_estimate_median(same, 3, &e), 0);
	assert_true(e.value == 5 && e.error == 0);
}

static void
test_alike_neighbours(void **state)
{
	double slow[100], fast[100];
	struct plumb_estimate a, b;

	(void)state;
	for (int i = 0; i < 100; i++) {
		slow[i] = i < 50 ? 1 : 2; /* one step in all */
		fast[i] = i % 2 ? 1 : 2;
	}
	a = plumb_estimate_mean(slow, 100);
	b = plumb_estimate_mean(fast, 100);
	near(a.value, b.value, 1e-12);
	near(b.error, sqrt(25.0 / 99) / 10, 1e-9);
	assert_true(a.error > 5 * b.error);
}

static struct plumb_estimate
known(double value, double error, double freedom)
{
	return (struct plumb_estimate){ value, error, freedom, PLUMB_SPREAD_ITERATIONS };
}

static void
test_change(void **state)
{
	struct plumb_estimate a = known(100, 1, 1e9), b = known(110, 1.1, 1e9),
			      unknown = plumb_estimate_unknown(), zero = known(0, 0, 5);
	struct plumb_change c = plumb_change(&a, &b);
	double width = 1.959964 * sqrt(2) * 0.01;

	(void)state;
	near(c.change, 10, 0);
	near(c.ratio, 1.1, 1e-12);
	near(c.low, 1.1 * exp(-width) - 1, 1e-6);
	near(c.high, 1.1 * exp(width) - 1, 1e-6);
	assert_true(plumb_change_is_clear(&c));
	c = plumb_change(&a, &unknown);
	assert_true(c.before == 100 && isnan(c.after) && isnan(c.change) && isnan(c.ratio));
	assert_true(isnan(c.low) && !plumb_change_is_clear(&c));
	c = plumb_change(&zero, &b);
	assert_true(c.change == 110 && isnan(c.ratio) && isnan(c.low));
	struct plumb_estimate wild = known(15, 30000, 3); /* its upper end is no number */
	c = plumb_change(&wild, &wild);
	assert_true(c.ratio == 1 && isnan(c.low) && isnan(c.high) && c.basis == PLUMB_SPREAD_NONE);
	struct plumb_estimate runs[] = { known(9, 0.1, 50), known(10, 0.1, 50),
		                         known(11, 0.1, 50) };
	struct plumb_estimate r = plumb_estimate_runs(runs, 3);
	near(r.value, 10, 1e-12);
	near(r.error, 1 / sqrt(3), 1e-12);
	assert_true(r.freedom == 2 && r.basis == PLUMB_SPREAD_RUNS);
	runs[1].value = NAN;
	assert_true(isnan(plumb_estimate_runs(runs, 3).value));
}

/* ---- gates ---- */

static void
test_gate_grammar(void **state)
{
	struct plumb_gate g;
	struct plumb_error error;

	(void)state;
	assert_int_equal(plumb_gate_parse("gpu.time@void f<int>(float)<+5%", &g, &error), 0);
	assert_string_equal(g.name, "gpu.time");
	assert_int_equal(g.row_bytes, strlen("void f<int>(float)"));
	assert_memory_equal(g.row, "void f<int>(float)", g.row_bytes);
	assert_true(g.relative && !g.above);
	near(g.limit, 5, 0);
	assert_int_equal(plumb_gate_parse("mem.peak < -1.5MiB", &g, &error), 0);
	assert_string_equal(g.unit, "byte");
	near(g.limit, -1.5 * 1024 * 1024, 0);
	assert_int_equal(plumb_gate_parse("iteration.time>-.5 ms", &g, &error), 0);
	assert_true(g.above && !g.relative);
	near(g.limit, -5e5, 0);
	static const char *const wrong[] = { "",         "<",      "a",      "a<",     "a<+",
		                             "a<b",      "<5%",    "a@<5%",  "a<5 %%", "a<5parsec",
		                             "a<1e400%", "a<inf%", "a<0x5%", "a<-+5%", "@b<5%" };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (plumb_gate_parse(wrong[i], &g, &error) != PLUMB_EUSAGE)
			fail_msg("\"%s\" is taken", wrong[i]);
}

/* ---- the map ---- */

static void
family(const char *name, const char *expected)
{
	const char *found = plumb_operator_family(name);

	if (!found != !expected || (found && strcmp(found, expected)))
		fail_msg("%s is %s, not %s", name, found ? found : "nothing",
		         expected ? expected : "nothing");
}

static void
test_families(void **state)
{
	(void)state;
	family("aten::linear", "matmul");
	family("aten::addmm", "matmul");
	family("aten::_scaled_mm", "matmul");
	family("jit(train)/jit(main)/transpose(jvp(dense))/dot_general[precision=HIGH]", "matmul");
	family("cublas-gemm.12.0", "matmul");
	family("aten::cudnn_convolution", "convolution");
	family("aten::miopen_convolution", "convolution");
	family("aten::cudnn_convolution_transpose", "convolution");
	family("jit(f)/jit(main)/conv_general_dilated", "convolution");
	family("cudnn-conv.1.0", "convolution");
	family("aten::convolution_backward", "convolution, backward");
	family("autograd::engine::evaluate_function: ConvolutionBackward0",
	       "convolution, backward");
	family("aten::_flash_attention_forward", "attention");
	family("aten::_scaled_dot_product_efficient_attention", "attention");
	family("aten::_scaled_dot_product_efficient_attention_backward", "attention, backward");
	family("flash_attn::_flash_attn_backward", "attention, backward");
	family("aten::_fused_adamw_", "optimizer");
	family("aten::_foreach_addcdiv_", "optimizer");
	family("nccl:all_reduce", "all-reduce");
	family("rccl:all_reduce", "all-reduce");
	family("ncclAllReduce", "all-reduce");
	family("c10d::allreduce_", "all-reduce");
	family("nccl:_all_gather_base", "all-gather");
	family("aten::native_batch_norm", "batch norm");
	family("aten::miopen_batch_norm_backward", "batch norm, backward");
	family("aten::relu_", "relu");
	family("aten::add_", "add");
	family("aten::fft_r2c", NULL);
	family("", NULL);
}

/* Every name of the map leads to its own row, and none stands twice. */
static void
test_map_is_sound(void **state)
{
	(void)state;
	for (const struct plumb_operator_family *f = plumb_operator_families; f->family; f++)
		for (const char *at = f->names; *at; at += strspn(at, " ")) {
			char name[100];
			size_t bytes = strcspn(at, " "), used = 0;

			assert_true(bytes && bytes < sizeof name);
			for (size_t i = 0; i < bytes; i++)
				name[used++] = at[i] == '*' ? 'x' : at[i];
			name[used] = '\0';
			family(name, f->family);
			at += bytes;
		}
}

static void
test_bases(void **state)
{
	char text[64];

	(void)state;
	assert_string_equal(plumb_operator_base("aten::_to_copy", text, sizeof text), "to_copy");
	assert_string_equal(plumb_operator_base("AddmmBackward0", text, sizeof text),
	                    "addmmbackward");
	assert_string_equal(plumb_operator_base("AddmmBackward", text, sizeof text),
	                    "addmmbackward");
	assert_string_equal(plumb_operator_base("input_transpose_fusion.1", text, sizeof text),
	                    "input_transpose_fusion");
	assert_string_equal(plumb_operator_base("aten::conv2d", text, sizeof text), "conv2d");
	assert_string_equal(plumb_operator_base("x::yyyyyyyy", text, 4), "yyy");
	assert_string_equal(plumb_kernel_base("triton_poi_fused_add_12", text, sizeof text),
	                    "triton_poi_fused_add");
	assert_string_equal(plumb_kernel_base("loop_add_fusion_3", text, sizeof text),
	                    "loop_add_fusion");
	assert_null(plumb_kernel_base("sgemm_128", text, sizeof text));
	assert_null(plumb_kernel_base("triton_poi_fused_add", text, sizeof text));
}

/* ---- a profile without loops ---- */

/* One kernel of TIME a call, CALLS of them, and a series whose bins are busy for BUSY in turn. */
static void
make_profile(struct plumb_profile *profile, int64_t time, uint64_t calls, const int64_t *busy,
             uint32_t bins)
{
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_process process = { .rank = PLUMB_UNKNOWN, .local_rank = PLUMB_UNKNOWN };
	struct plumb_device device = { .name = plumb_builder_text(b, "GPU"),
		                       .uuid = PLUMB_NONE,
		                       .busy_ns = time * (int64_t)calls };
	struct plumb_track stream = { .kind = PLUMB_TRACK_STREAM, .name = PLUMB_NONE };
	uint32_t frame = plumb_builder_frame(b, PLUMB_FRAME_KERNEL, plumb_builder_text(b, "k"),
	                                     PLUMB_NONE, 0);

	stream.process = plumb_builder_process(b, &process);
	stream.device = plumb_builder_device(b, &device);
	struct plumb_value value = { .context = plumb_builder_context(b, 0, frame, 0),
		                     .metric = PLUMB_METRIC_GPU_TIME,
		                     .track = plumb_builder_track(b, &stream),
		                     .sum = time * (int64_t)calls,
		                     .count = calls,
		                     .min = time,
		                     .max = time,
		                     .mean = (double)time,
		                     .m2 = 4.0 * (double)(calls - 1) };
	assert_int_equal(plumb_builder_value(b, &value), 0);
	for (uint32_t i = 0; i < bins; i++) {
		struct plumb_series_bin bin = {
			stream.device, stream.process, i * 1000, 1000, busy[i], 0, 0
		};
		assert_int_equal(plumb_builder_series(b, &bin), 0);
	}
	assert_int_equal(plumb_builder_finish(b, profile, NULL), 0);
	plumb_builder_free(b);
}

static void
compare(const struct plumb_profile *a, const struct plumb_profile *b, uint32_t by, const char *name,
        struct plumb_diff_measure *measure, struct plumb_diff_table *table)
{
	const struct plumb_profile *list[] = { a, b };
	struct plumb_diff_options options = { .by = by };
	struct plumb_error error;
	struct plumb_diff *diff = plumb_diff_new(list, 1, 2, &options, &error);

	assert_non_null(diff);
	assert_false(plumb_diff_is_normal(diff));
	assert_int_equal(plumb_diff_measure(diff, name, measure, &error), 0);
	assert_int_equal(plumb_diff_table(diff, "gpu.time", table, &error), 0);
	plumb_diff_free(diff);
}

static void
test_spread_of_series(void **state)
{
	static const int64_t busy[] = { 0, 0, 400, 600, 500, 700, 300, 500, 0 };
	struct plumb_profile a = { 0 }, b = { 0 };
	struct plumb_diff_measure m;
	struct plumb_diff_table table;

	(void)state;
	make_profile(&a, 10, 100, busy, 9);
	make_profile(&b, 12, 100, busy, 9);
	compare(&a, &b, PLUMB_BY_KERNEL, "gpu.busy", &m, &table);
	assert_true(m.amount.before == 1000 && m.amount.after == 1200);
	assert_int_equal(m.amount.basis, PLUMB_SPREAD_SERIES);
	/* Bins from the first that is busy to the last: mean 500, deviation 141.4 of six. */
	double error = sqrt(20000.0) / 500 / sqrt(6) * sqrt(2);
	near(log(m.amount.high + 1) - log(1.2), plumb_student(10) * error, 0.02);
	assert_string_equal(m.statistic, "sum");
	/* A row has no series of its own, but calls: 100 of them, of deviation 2. */
	assert_int_equal(table.count, 1);
	assert_int_equal(table.rows[0].amount.basis, PLUMB_SPREAD_CALLS);
	error = sqrt(pow(20.0 / 1000, 2) + pow(20.0 / 1200, 2));
	near(log(table.rows[0].amount.high + 1) - log(1.2), plumb_student(190) * error, 0.001);
	plumb_diff_table_free(&table);
	plumb_profile_free(&a);
	plumb_profile_free(&b);
}

static void
test_no_spread(void **state)
{
	struct plumb_profile a = { 0 }, b = { 0 };
	struct plumb_diff_measure m;
	struct plumb_diff_table table;

	(void)state;
	make_profile(&a, 10, 1, NULL, 0);
	make_profile(&b, 12, 1, NULL, 0);
	compare(&a, &b, PLUMB_DIFF_CONTEXT, "iteration.time", &m, &table);
	assert_true(isnan(m.amount.before) && isnan(m.amount.after) && isnan(m.amount.low));
	assert_int_equal(table.count, 2);
	assert_int_equal(table.rows[0].parent, PLUMB_NONE);
	assert_int_equal(table.rows[1].parent, 0);
	assert_true(table.rows[1].amount.change == 2 && isnan(table.rows[1].amount.low));
	assert_true(table.rows[0].amount.change == 2 && table.rows[0].own.change == 0);
	plumb_diff_table_free(&table);
	plumb_profile_free(&a);
	plumb_profile_free(&b);
}

/* ---- the newest work alone ---- */

#define KERNELS 6

/* ITERATIONS rounds of six kernels of LENGTH each, after a wait; the newest KEPT are known one by
 * one. */
static void
make_newest(struct plumb_profile *profile, uint32_t iterations, uint32_t kept, int64_t length)
{
	static const char *const names[] = { "a", "b", "c", "d", "e", "f" };
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_process process = { .rank = PLUMB_UNKNOWN, .local_rank = PLUMB_UNKNOWN };
	struct plumb_device device = { .name = plumb_builder_text(b, "GPU"), .uuid = PLUMB_NONE };
	struct plumb_track stream = { .kind = PLUMB_TRACK_STREAM, .name = PLUMB_NONE };
	uint32_t contexts[KERNELS], track;

	stream.process = plumb_builder_process(b, &process);
	stream.device = plumb_builder_device(b, &device);
	track = plumb_builder_track(b, &stream);
	for (uint32_t k = 0; k < KERNELS; k++) {
		uint32_t frame = plumb_builder_frame(
			b, PLUMB_FRAME_KERNEL, plumb_builder_text(b, names[k]), PLUMB_NONE, 0);
		struct plumb_value value = { .metric = PLUMB_METRIC_GPU_TIME,
			                     .track = track,
			                     .sum = length * iterations,
			                     .count = iterations,
			                     .min = length,
			                     .max = length,
			                     .mean = (double)length };

		contexts[k] = value.context = plumb_builder_context(b, 0, frame, 0);
		assert_int_equal(plumb_builder_value(b, &value), 0);
	}
	for (uint32_t i = 0; i < kept; i++)
		for (uint32_t k = 0; k < KERNELS; k++) {
			int64_t start = (KERNELS * length + 500) * i + length * k;
			struct plumb_work_item item = { contexts[k], track, start, start + length };

			assert_int_equal(plumb_builder_work(b, &item), 0);
		}
	assert_int_equal(plumb_builder_finish(b, profile, NULL), 0);
	plumb_builder_free(b);
}

/* A hundred iterations against a hundred and twenty, of either the last ten: the kernels tell how
 * many. */
static void
test_newest_work(void **state)
{
	struct plumb_profile a = { 0 }, b = { 0 };
	const struct plumb_profile *list[] = { &a, &b };
	struct plumb_diff_options options = { .by = PLUMB_BY_KERNEL };
	struct plumb_diff_measure m;
	struct plumb_diff_table table;
	struct plumb_error error;
	uint32_t count, before;

	(void)state;
	make_newest(&a, 100, 10, 1000);
	make_newest(&b, 120, 10, 1100);
	struct plumb_diff *diff = plumb_diff_new(list, 1, 2, &options, &error);
	assert_non_null(diff);
	const struct plumb_diff_run *runs = plumb_diff_runs(diff, &count, &before);
	assert_true(count == 2 && before == 1 && plumb_diff_from(diff) == PLUMB_STEPS_LOOP);
	near(runs[0].iterations, 100, 0);
	near(runs[1].iterations, 120, 0);
	assert_true(runs[0].newest && runs[0].measured == 9 && plumb_diff_is_alike(diff));
	assert_int_equal(plumb_diff_measure(diff, "iteration.time", &m, &error), 0);
	near(m.amount.before, 6500, 0);
	near(m.amount.after, 7100, 0);
	assert_int_equal(plumb_diff_measure(diff, "gpu.time", &m, &error), 0);
	near(m.amount.ratio, 1.1, 1e-12);
	assert_string_equal(m.statistic, "median of iterations");
	assert_int_equal(plumb_diff_table(diff, "gpu.time", &table, &error), 0);
	assert_int_equal(table.count, KERNELS);
	for (uint32_t i = 0; i < KERNELS; i++) {
		near(table.rows[i].amount.before, 1000, 1e-9);
		near(table.rows[i].amount.after, 1100, 1e-9);
		assert_int_equal(table.rows[i].amount.basis, PLUMB_SPREAD_ITERATIONS);
	}
	plumb_diff_table_free(&table);
	plumb_diff_free(diff);
	plumb_profile_free(&a);
	plumb_profile_free(&b);
}

/* ---- memory ---- */

/* Everything that a comparison does; negative: it said that memory is out. */
static int
compare_all(const struct plumb_profile *const *list, uint32_t by)
{
	struct plumb_diff_options options = { .by = by };
	struct plumb_error error = { 0 };
	struct plumb_diff_environment environment = { 0 };
	struct plumb_diff_table table = { 0 };
	struct plumb_diff_measure m;
	struct plumb_gate gate;
	struct plumb_gate_result result;
	struct plumb_diff *diff = plumb_diff_new(list, 1, 2, &options, &error);
	int code = diff ? plumb_diff_environment(diff, &environment, &error) : error.code;

	if (!code)
		code = plumb_diff_measure(diff, "iteration.time", &m, &error);
	if (!code)
		code = plumb_diff_measure(diff, "gpu.time", &m, &error);
	if (!code)
		code = plumb_diff_table(diff, "gpu.time", &table, &error);
	if (!code)
		code = plumb_gate_parse("gpu.time@b<+5%", &gate, &error);
	if (!code)
		code = plumb_gate_decide(diff, &gate, &result, &error);
	if (code)
		assert_true(error.code == PLUMB_ESYSTEM && error.message[0]);
	plumb_diff_table_free(&table);
	plumb_diff_environment_free(&environment);
	plumb_diff_free(diff);
	return code;
}

static void
test_memory_is_out(void **state)
{
	static const uint32_t ways[] = { PLUMB_BY_KERNEL, PLUMB_BY_OPERATOR, PLUMB_DIFF_CONTEXT,
		                         PLUMB_DIFF_ITERATION };
	struct plumb_profile a = { 0 }, b = { 0 };
	const struct plumb_profile *list[] = { &a, &b };

	(void)state;
	make_newest(&a, 20, 10, 1000);
	make_newest(&b, 20, 10, 1100);
	for (size_t w = 0; FAILING_MALLOC && w < sizeof ways / sizeof *ways; w++) {
		bool failed = true;
		int refused = 0;

		for (long n = 0; failed; n++) {
			failing_malloc_at = n;
			int code = compare_all(list, ways[w]);
			failed = failing_malloc_stop();
			refused += code < 0;
			assert_int_equal(failed, code < 0);
			assert_true(n < 5000);
		}
		assert_true(refused > 20);
	}
	plumb_profile_free(&a);
	plumb_profile_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_median),        cmocka_unit_test(test_alike_neighbours),
		cmocka_unit_test(test_change),        cmocka_unit_test(test_gate_grammar),
		cmocka_unit_test(test_families),      cmocka_unit_test(test_map_is_sound),
		cmocka_unit_test(test_bases),         cmocka_unit_test(test_spread_of_series),
		cmocka_unit_test(test_no_spread),     cmocka_unit_test(test_newest_work),
		cmocka_unit_test(test_memory_is_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
