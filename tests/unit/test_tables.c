/* SPDX-License-Identifier: Apache-2.0 */
/* The standard tables: arithmetic, published figures, layers of small profiles with known
 * numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "near.h"

#include "analyze/constraint.h"
#include "analyze/peaks.h"
#include "analyze/tables.h"
#include "model/builder.h"

#define MIB 1048576.0

static int
holds(const char *text, double latency, double throughput, double memory)
{
	struct plumb_constraints constraints;
	double values[PLUMB_CONSTRAINT_KINDS] = { latency, throughput, memory };

	if (!plumb_constraints_read(text, &constraints))
		fail_msg("\"%s\" is no constraint", text);
	return plumb_constraints_hold(&constraints, values);
}

static void
test_constraints(void **state)
{
	static const char *const wrong[] = {
		"",
		"latency",
		"latency<",
		"latency<50",
		"latency<50MB",
		"<50ms",
		"speed<50ms",
		"latency=50ms",
		"latency<-5ms",
		"latency<infms",
		"latency<0x10ms",
		"latency<5ms,",
		",latency<5ms",
		"latency<5msx",
		"memory<8",
		"throughput>9ms",
		"latency<1.2.3ms",
		"latency<.ms",
		"latency<50ms<60ms",
		"latency<1ms,latency<1ms,latency<1ms,latency<1ms,latency<1ms",
	};
	struct plumb_constraints constraints;

	(void)state;
	assert_int_equal(holds("latency<50ms", 49999, NAN, NAN), 1);
	assert_int_equal(holds("latency<50ms", 50000, NAN, NAN), 0);
	assert_int_equal(holds(" latency <= 50 ms ", 50000, NAN, NAN), 1);
	assert_int_equal(holds("latency<0.05s", 49999, NAN, NAN), 1);
	assert_int_equal(holds("latency>2us", 3, NAN, NAN), 1);
	assert_int_equal(holds("latency<50ms", NAN, 1, 1), -1);
	assert_int_equal(holds("memory<8GB", NAN, NAN, 7.9e9), 1);
	assert_int_equal(holds("memory<8GB", NAN, NAN, 8.1e9), 0);
	assert_int_equal(holds("memory<8GiB", NAN, NAN, 8.1e9), 1);
	assert_int_equal(holds("throughput>=900", NAN, 900, NAN), 1);
	assert_int_equal(holds("throughput>900/s", NAN, 900, NAN), 0);
	/* one that does not hold decides, whatever is not known */
	assert_int_equal(holds("latency<50ms,memory<8GB", 60000, NAN, NAN), 0);
	assert_int_equal(holds("memory<8GB,latency<50ms", 60000, NAN, NAN), 0);
	assert_int_equal(holds("latency<50ms,memory<8GB", 40000, NAN, NAN), -1);
	assert_int_equal(holds("latency<50ms,memory<8GB", 40000, NAN, 1), 1);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		if (plumb_constraints_read(wrong[i], &constraints))
			fail_msg("\"%s\" is a constraint", wrong[i]);
}

/* ---- the paper's figures ---- */

static void
test_published_intensity(void **state)
{
	const struct plumb_peak *v100 = plumb_peak_of("Tesla V100-SXM2-16GB");
	double ideal;

	(void)state;
	/* Table III, cgemm: 77.42 Gflop, 40.33 and 43.86 "MB", which are MiB; the paper prints
	 * 876.97 */
	near(plumb_intensity(77.42e9, 40.33 * MIB, 43.86 * MIB), 876.99, 0.005);
	assert_true(fabs(plumb_intensity(77.42e9, 40.33e6, 43.86e6) - 876.97) > 40);
	assert_true(isnan(plumb_intensity(1, 0, 0)) && isnan(plumb_intensity(NAN, 1, 1)) &&
	            isnan(plumb_intensity(1, NAN, 1)));

	/* Table VI's flags follow 17.44 flop/B: what lies below is bound by memory */
	assert_non_null(v100);
	ideal = v100->tflops[PLUMB_FP32] / v100->terabytes;
	near(ideal, 17.44, 0.005);
	assert_int_equal(plumb_memory_bound(30.61, 15700, 0.9e12), 0);
	assert_int_equal(plumb_memory_bound(876.99, 15700, 0.9e12), 0);
	assert_int_equal(plumb_memory_bound(17.43, 15700, 0.9e12), 1);
	assert_int_equal(plumb_memory_bound(17.45, 15700, 0.9e12), 0);
	assert_int_equal(plumb_memory_bound(NAN, 15700, 0.9e12), -1);
	assert_int_equal(plumb_memory_bound(1, NAN, 0.9e12), -1);
	assert_int_equal(plumb_memory_bound(1, 15700, NAN), -1);
}

/* Table VI's last gains: 64 to 128 3.6 %, 128 to 256 3.9 %; before, doubling gains more than 5
 * %. */
static void
test_published_optimal_batch(void **state)
{
	double batches[] = { 16, 32, 64, 128, 256 };
	double throughput[5] = { 700, 800, 870 };

	(void)state;
	throughput[3] = throughput[2] * 1.036;
	throughput[4] = throughput[3] * 1.039;
	near(batches[plumb_optimal_doubling(batches, throughput, 5, 0.05)], 64, 0);
	near(batches[plumb_optimal_greatest(throughput, 5)], 256, 0);
	/* all gain more: the last; a gain of no more than the limit: the one before */
	near(batches[plumb_optimal_doubling(batches, throughput, 5, 0.01)], 256, 0);
	near(batches[plumb_optimal_doubling(batches, throughput, 5, 0.037)], 64, 0);
	/* 16 to 64 is two doublings: 8 % are less than 5 % each */
	assert_int_equal(
		plumb_optimal_doubling((double[]){ 16, 64 }, (double[]){ 100, 108 }, 2, 0.05), 0);
	assert_int_equal(plumb_optimal_doubling(batches, throughput, 0, 0.05), PLUMB_NONE);
	assert_int_equal(plumb_optimal_greatest(throughput, 0), PLUMB_NONE);
}

/* ---- peaks ---- */

static void
test_peaks(void **state)
{
	(void)state;
	near(plumb_peak_of("NVIDIA H200")->terabytes, 4.8, 0);
	near(plumb_peak_of("NVIDIA H20")->terabytes, 4.0, 0);
	near(plumb_peak_of("NVIDIA H100 80GB HBM3")->tflops[PLUMB_FP32], 67, 0);
	near(plumb_peak_of("NVIDIA H100 PCIe")->tflops[PLUMB_FP32], 51, 0);
	near(plumb_peak_of("AMD Instinct MI300X")->terabytes, 5.3, 0);
	near(plumb_peak_of("NVIDIA A100-PG509-200")->tflops[PLUMB_BF16], 312, 0);
	near(plumb_peak_of("Tesla V100-SXM2-16GB")->tflops[PLUMB_FP16], 125, 0);
	near(plumb_peak_of("Tesla V100-SXM2-16GB")->tflops[PLUMB_BF16], 0, 0);
	near(plumb_peak_of("AMD Instinct MI300X")->tflops[PLUMB_FP16], 1307, 0);
	near(plumb_peak_of("AMD Instinct MI300X")->tflops[PLUMB_FP8], 2610, 0);
	near(plumb_peak_of("NVIDIA GB200")->tflops[PLUMB_TF32], 1250, 0);
	near(plumb_peak_of("NVIDIA B200")->tflops[PLUMB_TF32], 1125, 0);
	/* variants that the sources have no numbers of do not get their family's */
	near(plumb_peak_of("NVIDIA A100-SXM4-40GB")->terabytes, 0, 0);
	near(plumb_peak_of("NVIDIA A100-SXM4-80GB")->terabytes, 2, 0);
	near(plumb_peak_of("NVIDIA H100 NVL")->tflops[PLUMB_FP32], 0, 0);
	near(plumb_peak_of("Tesla V100-PCIE-16GB")->tflops[PLUMB_FP32], 0, 0);
	for (const struct plumb_peak *peak = plumb_peaks; peak->name; peak++)
		assert_true(!(peak->tflops[PLUMB_FP32] > 0) || peak->source);
	assert_null(plumb_peak_of("NVIDIA GeForce RTX 2080 Ti"));
	assert_null(plumb_peak_of("NVIDIA H2000"));
	assert_null(plumb_peak_of(""));
	assert_null(plumb_peak_of(NULL));
}

/* ---- work from shapes ---- */

static void
test_flops(void **state)
{
	(void)state;
	near(plumb_flops_of("aten::mm", "(float32[2,3], float32[3,5]) -> float32[2,5]"), 60, 0);
	near(plumb_flops_of("aten::mm",
	                    "(float32[2,3], float32[3,5] strides (1,3)) -> float32[2,5]"),
	     60, 0);
	near(plumb_flops_of("aten::addmm", "(float32[96], float32[32,32], float32[32,96] strides "
	                                   "(1,32), int, int) -> float32[32,96]"),
	     2.0 * 32 * 32 * 96, 0);
	near(plumb_flops_of("aten::bmm", "(float32[4,2,3], float32[4,3,5]) -> float32[4,2,5]"), 240,
	     0);
	near(plumb_flops_of("aten::baddbmm", "(float32[4,2,5], float32[4,2,3], float32[4,3,5], "
	                                     "int, int) -> float32[4,2,5]"),
	     240, 0);
	/* 3x3 filters over 3 channels, 64 of them, 112x112 places */
	near(plumb_flops_of("aten::convolution",
	                    "(float32[1,3,224,224], float32[64,3,3,3], None, [2,2], [1,1], [1,1], "
	                    "bool, [0,0], int) -> float32[1,64,112,112]"),
	     2.0 * 64 * 112 * 112 * 27, 0);
	/* transposed: filters of 2x2 over 6 channels for each of the input's 3 of 8x8 */
	near(plumb_flops_of(
		     "aten::convolution",
		     "(float32[2,3,8,8], float32[3,6,2,2], float32[6], [2, 2], [0, 0], [1, 1], "
		     "bool, [0, 0], int) -> float32[2,6,16,16]"),
	     2.0 * 2 * 3 * 64 * 6 * 4, 0);
	/* groups: every output channel has its filters over 2 of 4 channels; one number for both
	 * places */
	near(plumb_flops_of(
		     "aten::convolution",
		     "(float32[1,4,9,9], float32[6,2,3,3], None, [2], [0], [2], bool, [0], int) "
		     "-> float32[1,6,3,3]"),
	     2.0 * 6 * 9 * 2 * 9, 0);
	/* without lists the channels tell, and where both are as many nothing does, unless it is
	 * all the same */
	near(plumb_flops_of("aten::convolution", "(float32[1,3,64,64], float32[64,3,7,7], None, "
	                                         "..., ..., ..., bool, ..., int) -> "
	                                         "float32[1,64,32,32]"),
	     2.0 * 64 * 32 * 32 * 147, 0);
	near(plumb_flops_of("aten::convolution", "(float32[1,64,8,8], float32[64,32,2,2], None, "
	                                         "..., ..., ..., bool, ..., int) -> "
	                                         "float32[1,32,16,16]"),
	     2.0 * 64 * 8 * 8 * 32 * 4, 0);
	near(plumb_flops_of(
		     "aten::convolution",
		     "(float32[1,8,9,9], float32[8,8,3,3], None, ..., ..., ..., bool, ..., int) -> "
		     "float32[1,8,9,9]"),
	     2.0 * 8 * 81 * 72, 0);
	assert_true(isnan(
		plumb_flops_of("aten::convolution",
	                       "(float32[1,8,9,9], float32[8,8,3,3], None, ..., ..., ..., bool, "
	                       "..., int) -> float32[1,8,7,7]")));
	/* sizes that no convolution has */
	assert_true(isnan(plumb_flops_of(
		"aten::convolution", "(float32[1,4,9,9], float32[6,4,3,3], None, [1, 1], [0, 0], "
				     "[1, 1], bool, [0, 0], int) -> float32[1,6,9,9]")));
	assert_true(isnan(
		plumb_flops_of("aten::convolution", "(float32[1,4,9,9], float32[6,4,3,3], None)")));

	near(plumb_flops_of("aten::linear",
	                    "(float32[2,5,7], float32[4,7], float32[4]) -> float32[2,5,4]"),
	     2.0 * 2 * 5 * 7 * 4, 0);
	near(plumb_flops_of("aten::linear", "(float32[2,7], float32[7], float32[]) -> float32[2]"),
	     28, 0);
	assert_true(isnan(plumb_flops_of("aten::linear", "(float32[2,7], float32[4,8], None)")));

	near(plumb_flops_of("aten::matmul", "(a[2,3], a[3,5])"), 60, 0);
	near(plumb_flops_of("aten::matmul", "(a[2,1,5,7], a[4,7,3]) -> a[2,4,5,3]"),
	     2.0 * 2 * 4 * 5 * 7 * 3, 0);
	near(plumb_flops_of("aten::matmul", "(a[6,5,7], a[7])"), 2.0 * 6 * 5 * 7, 0);
	near(plumb_flops_of("aten::matmul", "(a[7], a[6,7,2])"), 2.0 * 6 * 7 * 2, 0);
	near(plumb_flops_of("aten::matmul", "(a[7], a[7])"), 14, 0);
	assert_true(isnan(plumb_flops_of("aten::matmul", "(a[2,5,7], a[3,7,3])")));
	assert_true(isnan(plumb_flops_of("aten::matmul", "(a[], a[3])")));
	assert_true(isnan(
		plumb_flops_of("aten::matmul", "([2, 3], a[3,5])"))); /* a list is no tensor */
	near(plumb_flops_of("aten::mv", "(a[4,7], a[7])"), 56, 0);
	near(plumb_flops_of("aten::addmv", "(a[4], a[4,7], a[7], int, int)"), 56, 0);
	near(plumb_flops_of("aten::dot", "(a[7], a[7])"), 14, 0);
	near(plumb_flops_of("aten::addbmm", "(a[2,5], a[4,2,3], a[4,3,5], int, int)"), 240, 0);

	/* 2 sequences, 4 heads, 6 queries over 9 keys, of 8 and of 5 */
	static const char *const attention[] = { "aten::scaled_dot_product_attention",
		                                 "aten::_scaled_dot_product_flash_attention",
		                                 "aten::_scaled_dot_product_attention_math" };
	for (size_t i = 0; i < 3; i++)
		near(plumb_flops_of(attention[i],
		                    "(a[2,4,6,8], a[2,4,9,8], a[2,4,9,5], None, float, bool)"),
		     2.0 * 2 * 4 * 6 * 9 * (8 + 5), 0);
	/* 4 heads of queries share 2 of keys */
	near(plumb_flops_of(attention[0], "(a[2,4,6,8], a[2,2,9,8], a[2,2,9,5])"),
	     2.0 * 2 * 4 * 6 * 9 * (8 + 5), 0);
	assert_true(isnan(plumb_flops_of(attention[0], "(a[2,4,6,8], a[2,3,9,8], a[2,3,9,5])")));
	assert_true(isnan(plumb_flops_of(attention[0], "(a[2,4,6,8], a[2,4,9,7], a[2,4,9,5])")));
	assert_true(isnan(plumb_flops_of("aten::_scaled_dot_product_flash_attention_backward",
	                                 "(a[2,4,6,8], a[2,4,9,8], a[2,4,9,8])")));
	static const char *const rude[] = {
		"",
		"(",
		"(float32[2,3]",
		"(others)",
		"(float32[2,3])",
		"() -> x",
		"(float32[",
		"(a[2,3], b[4,5])",
		"(a[2,], b[3,5])",
		"(a[-2,3], b[3,5])",
		"([a[2,3]], b[3,5])",
		"(a[1,1,1,1,1,1,1,1,1,1], b[1,1])",
		"((((((",
		"(a[2,3],,,,,,",
	};
	for (size_t i = 0; i < sizeof rude / sizeof *rude; i++)
		if (!isnan(plumb_flops_of("aten::mm", rude[i])))
			fail_msg("%s tells something", rude[i]);
	assert_true(isnan(plumb_flops_of("aten::relu", "(float32[2,3]) -> float32[2,3]")));
	assert_true(isnan(plumb_flops_of(NULL, NULL)));
}

/* ---- layers ---- */

struct made {
	struct plumb_builder *b;
	uint32_t thread, stream, model, conv, relu;
	struct plumb_profile profile;
};

static uint32_t
child(struct made *m, uint32_t parent, uint32_t kind, const char *name, const char *file,
      uint32_t flags)
{
	uint32_t frame = plumb_builder_frame(m->b, kind, plumb_builder_text(m->b, name),
	                                     file ? plumb_builder_text(m->b, file) : PLUMB_NONE, 0);

	return plumb_builder_context(m->b, parent, frame, flags);
}

static void
value(struct made *m, uint32_t context, uint32_t metric, uint32_t track, int64_t sum,
      uint64_t count)
{
	int64_t each = sum / (int64_t)count;
	struct plumb_value v = { context, metric, track, sum,
		                 count,   each,   each,  (double)sum / (double)count,
		                 0 };

	plumb_builder_value(m->b, &v);
}

static void
span(struct made *m, uint32_t context, uint32_t track, int64_t start, int64_t end,
     uint64_t correlation)
{
	struct plumb_span s = { context, track, start * 1000, end * 1000, correlation };

	assert_int_equal(plumb_builder_span(m->b, &s), 0);
}

/*
 * A model called twice, a Conv2d with one kernel and a relu beside it (an operator of the model).
 * The host leaves the convolution after 10 µs, its kernel ends after 110: naively 10 - 100 would be
 * left for the host.
 */
static void
make_model(struct made *m, bool counters, bool spans)
{
	m->b = plumb_builder_new();
	uint32_t process =
		plumb_builder_process(m->b, &(struct plumb_process){ .rank = PLUMB_UNKNOWN,
	                                                             .local_rank = PLUMB_UNKNOWN,
	                                                             .host = PLUMB_NONE,
	                                                             .command = PLUMB_NONE });
	uint32_t device = plumb_builder_device(
		m->b, &(struct plumb_device){ .name = plumb_builder_text(m->b, "Tesla V100-SXM2"),
	                                      .uuid = PLUMB_NONE });
	m->thread = plumb_builder_track(m->b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                             .process = process,
	                                                             .device = PLUMB_NONE,
	                                                             .name = PLUMB_NONE,
	                                                             .tid = 1 });
	m->stream = plumb_builder_track(m->b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
	                                                             .process = process,
	                                                             .device = device,
	                                                             .name = PLUMB_NONE,
	                                                             .stream = 7 });
	m->model = child(m, 0, PLUMB_FRAME_MODULE, "net", "Net", 0);
	m->relu = child(m, m->model, PLUMB_FRAME_OPERATOR, "aten::relu", NULL, 0);
	m->conv = child(m, m->model, PLUMB_FRAME_MODULE, "net.conv", "torch.nn.Conv2d", 0);
	uint32_t op = child(m, m->conv, PLUMB_FRAME_OPERATOR, "aten::convolution", NULL, 0);
	uint32_t call = child(m, op, PLUMB_FRAME_GPU_API, "cudaLaunchKernel", NULL, 0);
	uint32_t kernel = child(m, call, PLUMB_FRAME_KERNEL, "gemm", NULL, 0);
	uint32_t back = child(m, op, PLUMB_FRAME_OPERATOR, "Back", NULL, PLUMB_CONTEXT_BACKWARD);
	uint32_t back_kernel = child(m, back, PLUMB_FRAME_KERNEL, "gemm", NULL, 0);
	value(m, m->model, PLUMB_METRIC_MODULE_CALLS, m->thread, 2, 2);
	value(m, m->conv, PLUMB_METRIC_MODULE_CALLS, m->thread, 2, 2);
	value(m, m->relu, PLUMB_METRIC_OP_CALLS, m->thread, 4, 4);
	value(m, m->relu, PLUMB_METRIC_OP_TIME, m->thread, 8000, 4);
	value(m, op, PLUMB_METRIC_OP_TIME, m->thread, 16000, 2);
	value(m, kernel, PLUMB_METRIC_GPU_TIME, m->stream, 200000, 2);
	value(m, back_kernel, PLUMB_METRIC_GPU_TIME, m->stream, 600000, 2);
	struct plumb_variant variant = {
		.context = op,
		.track = m->thread,
		.shapes = plumb_builder_text(m->b, "(a[1,3,4,4], a[8,3,3,3], None, [1,1], [1,1], "
		                                   "[1,1], bool, [0,0], int) -> a[1,8,4,4]"),
		.grid = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
		.block = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
		.registers = PLUMB_UNKNOWN,
		.static_shared = PLUMB_UNKNOWN,
		.dynamic_shared = PLUMB_UNKNOWN,
		.occupancy = PLUMB_UNKNOWN,
		.count = 2,
	};
	plumb_builder_variant(m->b, &variant);
	static const struct {
		const char *name;
		int64_t each;
	} known[] = { { "flop_count_sp", 5000 },
		      { "dram_read_bytes", 100 },
		      { "dram_write_bytes", 400 },
		      { "achieved_occupancy", 250000 } };
	for (size_t i = 0; counters && i < 4; i++)
		value(m, call,
		      plumb_builder_metric(m->b, plumb_builder_text(m->b, known[i].name),
		                           PLUMB_NONE),
		      m->thread, 2 * known[i].each, 2);
	for (uint32_t i = 0; spans && i < 2; i++) {
		int64_t at = 1000 * i;
		span(m, m->model, m->thread, at, at + 40, 0);
		span(m, m->conv, m->thread, at + 2, at + 12, 0);
		span(m, op, m->thread, at + 3, at + 11, 0);
		span(m, call, m->thread, at + 4, at + 6, 10 + i);
		span(m, m->relu, m->thread, at + 20, at + 22, 0);
		span(m, kernel, m->stream, at + 12, at + 112, 10 + i);
	}
	struct plumb_error error;
	assert_int_equal(plumb_builder_finish(m->b, &m->profile, &error), 0);
	plumb_builder_free(m->b);
}

static struct plumb_layers
layers_of(const struct made *m, enum plumb_layer_kind kind, bool serialised)
{
	struct plumb_layers layers;
	struct plumb_error error;
	struct plumb_layers_options options = { .kind = kind, .serialised = serialised };

	assert_int_equal(plumb_layers_make(&m->profile, &options, &layers, &error), 0);
	return layers;
}

static const struct plumb_layer_row *
layer(const struct plumb_layers *layers, const char *name)
{
	for (uint32_t i = 0; i < layers->count; i++)
		if (!strcmp(plumb_frame_label(layers->profile, layers->items[i].frame), name))
			return &layers->items[i];
	fail_msg("no layer %s", name);
	return NULL;
}

static void
test_layers_from_spans(void **state)
{
	struct made m = { 0 };
	struct plumb_layers layers;
	const struct plumb_layer_row *row;

	(void)state;
	make_model(&m, false, true);
	layers = layers_of(&m, PLUMB_LAYER_IS_EITHER, false);
	assert_int_equal(layers.count, 2);
	assert_int_equal(layers.runs, 2);
	assert_true(layers.in_order);
	assert_ptr_equal(layer(&layers, "net.conv"), &layers.items[0]); /* it runs first */
	near(layers.model_us, 112, 1e-9);
	assert_int_equal(layers.model_kind, PLUMB_LATENCY_COMPLETE);
	row = layer(&layers, "net.conv");
	near(row->host_us, 10, 1e-9);
	near(row->latency_us, 110, 1e-9);
	near(row->busy_us, 100, 1e-9);
	near(row->idle_us, 10, 1e-9);
	near(row->device_us, 100, 1e-9);
	near(row->backward_us, 300, 1e-9);
	row = layer(&layers, "aten::relu");
	near(row->calls, 2, 0);
	near(row->host_us, 4, 1e-9); /* twice 2 */
	near(row->device_us, 0, 0);
	plumb_layers_free(&layers);
	plumb_profile_free(&m.profile);
}

static void
test_layers_from_totals(void **state)
{
	struct made m = { 0 };
	struct plumb_layers layers;
	const struct plumb_layer_row *row;

	(void)state;
	make_model(&m, false, false);
	layers = layers_of(&m, PLUMB_LAYER_IS_EITHER, false);
	assert_false(layers.in_order);
	row = layer(&layers, "net.conv");
	near(row->host_us, 8, 1e-9);
	assert_int_equal(row->host, PLUMB_LATENCY_OPERATORS);
	/* a host that does not wait says nothing of what is not the GPU's */
	assert_true(isnan(row->latency_us) && isnan(row->idle_us));
	near(layers.model_us, 12, 1e-9);
	plumb_layers_free(&layers);
	layers = layers_of(&m, PLUMB_LAYER_IS_EITHER, true);
	row = layer(&layers, "net.conv");
	near(row->latency_us, 8, 1e-9);
	assert_true(row->idle_us >= 0);
	plumb_layers_free(&layers);
	layers = layers_of(&m, PLUMB_LAYER_IS_MODULE, false);
	assert_int_equal(layers.count, 1);
	plumb_layers_free(&layers);
	layers = layers_of(&m, PLUMB_LAYER_IS_OPERATOR, false);
	assert_int_equal(layers.count, 2);
	near(layer(&layers, "aten::convolution")->device_us, 100, 1e-9);
	plumb_layers_free(&layers);
	plumb_profile_free(&m.profile);
}

/* Spans of an asynchronous run with the times of a serialised one beside them, and totals alone
 * with them. */
static void
test_a_serialised_run_beside(void **state)
{
	struct made spans = { 0 }, totals = { 0 };
	struct plumb_layers layers, serialised;
	const struct plumb_layer_row *row;

	(void)state;
	make_model(&spans, false, true);
	make_model(&totals, false, false);
	serialised = layers_of(&totals, PLUMB_LAYER_IS_EITHER, true);
	layers = layers_of(&spans, PLUMB_LAYER_IS_EITHER, false);
	assert_int_equal(plumb_layers_take_serialised(&layers, &serialised), 0);
	row = layer(&layers, "net.conv");
	near(row->serialised_us, 8, 1e-9);
	near(row->latency_us, 110, 1e-9); /* what spans tell stays */
	assert_int_equal(row->latency, PLUMB_LATENCY_COMPLETE);
	plumb_layers_free(&layers);
	layers = layers_of(&totals, PLUMB_LAYER_IS_EITHER, false);
	assert_true(isnan(layer(&layers, "net.conv")->serialised_us));
	assert_int_equal(plumb_layers_take_serialised(&layers, &serialised), 0);
	row = layer(&layers, "net.conv");
	assert_int_equal(row->latency, PLUMB_LATENCY_SERIALISED);
	near(row->latency_us, 8, 1e-9);
	near(row->busy_us, 8, 1e-9); /* of 100 on the device no more than the latency has */
	near(row->idle_us, 0, 1e-9);
	row = layer(&layers, "aten::relu");
	near(row->busy_us, 0, 0);
	near(row->idle_us, row->serialised_us, 0);
	plumb_layers_free(&layers);
	plumb_layers_free(&serialised);
	plumb_profile_free(&spans.profile);
	plumb_profile_free(&totals.profile);
}

static void
test_counters(void **state)
{
	struct made m = { 0 };
	struct plumb_layers layers;

	(void)state;
	make_model(&m, true, true);
	layers = layers_of(&m, PLUMB_LAYER_IS_EITHER, false);
	const struct plumb_counters *c = &layer(&layers, "net.conv")->counters;
	near(c->flops, 5000, 1e-9);
	assert_false(c->derived);
	near(c->dram_read, 100, 1e-9);
	near(c->dram_write, 400, 1e-9);
	near(c->achieved, 0.25, 1e-12);
	plumb_layers_free(&layers);
	plumb_profile_free(&m.profile);

	make_model(&m, false, true);
	layers = layers_of(&m, PLUMB_LAYER_IS_EITHER, false);
	c = &layer(&layers, "net.conv")->counters;
	near(c->flops, 2.0 * 8 * 16 * 27, 1e-9);
	assert_true(c->derived && isnan(c->dram_read) && isnan(c->achieved));
	assert_true(isnan(layer(&layers, "aten::relu")->counters.flops));
	assert_int_equal(layers.kernel_count, 1);
	near(layers.kernels[0].counters.flops, 2.0 * 8 * 16 * 27, 1e-9);
	plumb_layers_free(&layers);
	plumb_profile_free(&m.profile);
}

/* What is unknown of two kernels makes the sum unknown; occupancy is weighted by time. */
static void
test_sums_of_counters(void **state)
{
	struct plumb_counters a = { 10, 20, 30, 0.2, 0.5, false }, b = { 1, NAN, 3, 0.8, 1, true };
	struct plumb_counters_sum sum = { 0 };
	struct plumb_counters end = plumb_counters_end(&sum);

	(void)state;
	assert_true(isnan(end.flops) && isnan(end.achieved));
	plumb_counters_add(&sum, &a, 2, 30);
	plumb_counters_add(&sum, &b, 1, 10);
	end = plumb_counters_end(&sum);
	near(end.flops, 21, 0);
	assert_true(isnan(end.dram_read) && end.derived);
	near(end.dram_write, 63, 0);
	near(end.achieved, 0.35, 1e-12);
	near(end.theoretical, 0.625, 1e-12);
}

/* ---- every table of both ---- */

static uint32_t
column(const struct plumb_answer *a, const char *name)
{
	for (uint32_t c = 0; c < a->column_count; c++)
		if (!strcmp(a->columns[c].name, name))
			return c;
	fail_msg("%s has no column %s", a->id, name);
	return 0;
}

static void
test_every_table(void **state)
{
	struct made m = { 0 };
	struct plumb_error error;

	(void)state;
	for (int counters = 0; counters < 2; counters++) {
		make_model(&m, counters, true);
		struct plumb_layers layers = layers_of(&m, PLUMB_LAYER_IS_EITHER, false);
		struct plumb_tables_input input = { &layers, 1,      (int64_t[]){ 4 },
			                            15700,   0.9e12, 0.05 };
		for (const struct plumb_tables_kind *k = plumb_tables_kinds; k->id; k++) {
			struct plumb_answer a;
			assert_int_equal(plumb_tables_answer(k, &input, &a, &error), 0);
			/* of one profile nothing has changed */
			assert_int_equal(a.row_count > 0, strcmp(k->id, "swapped") != 0);
			assert_int_equal(a.cell_count, (uint64_t)a.row_count * a.column_count);
			if (!strcmp(k->id, "A14")) {
				uint32_t at = column(&a, "layer_arithmetic_intensity (flops/byte)");
				assert_int_equal(a.cells[at].type, counters ? PLUMB_ANSWER_NUMBER
				                                            : PLUMB_ANSWER_UNKNOWN);
				assert_int_equal(a.columns[at].source,
				                 counters ? PLUMB_SOURCE_IS_MEASURED
				                          : PLUMB_SOURCE_IS_UNKNOWN);
				at = column(&a, "layer_arithmetic_throughput (GFlops)");
				assert_int_equal(a.columns[at].source,
				                 counters ? PLUMB_SOURCE_IS_MEASURED
				                          : PLUMB_SOURCE_IS_DERIVED);
				near(a.cells[at].number, (counters ? 5000 : 6912) / 100e3, 1e-12);
			}
			if (!strcmp(k->id, "A1"))
				near(a.cells[column(&a, "throughput (input/s)")].number, 4 / 112e-6,
				     1e-6);
			plumb_answer_free(&a);
		}
		plumb_layers_free(&layers);
		plumb_profile_free(&m.profile);
	}
	assert_non_null(plumb_tables_find("a13"));
	assert_null(plumb_tables_find("A16"));
}

static void
test_no_layer(void **state)
{
	struct plumb_builder *b = plumb_builder_new();
	struct plumb_profile profile;
	struct plumb_layers layers;
	struct plumb_error error;

	(void)state;
	assert_int_equal(plumb_builder_finish(b, &profile, &error), 0);
	plumb_builder_free(b);
	assert_int_equal(
		plumb_layers_make(&profile, &(struct plumb_layers_options){ 0 }, &layers, &error),
		PLUMB_EEMPTY);
	plumb_profile_free(&profile);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_constraints),
		cmocka_unit_test(test_published_intensity),
		cmocka_unit_test(test_published_optimal_batch),
		cmocka_unit_test(test_peaks),
		cmocka_unit_test(test_flops),
		cmocka_unit_test(test_layers_from_spans),
		cmocka_unit_test(test_layers_from_totals),
		cmocka_unit_test(test_a_serialised_run_beside),
		cmocka_unit_test(test_counters),
		cmocka_unit_test(test_sums_of_counters),
		cmocka_unit_test(test_every_table),
		cmocka_unit_test(test_no_layer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
