/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profile with windows: a program that imports and compiles for 21.4 s, trains (400 iterations of
 * 60 ms, 48 ms of them on the GPU), evaluates twice (100 iterations in all), and stores a file.
 * CPU samples of the main thread say what start-up did. The newest work has the last 20 iterations.
 * Included by profiles.h.
 */
#ifndef PLUMB_TESTS_WINDOWS_H
#define PLUMB_TESTS_WINDOWS_H

#include "model/rows.h"

#define WINDOWS_MS INT64_C(1000000)
#define WINDOWS_STEP (60 * WINDOWS_MS)
#define WINDOWS_STEPS 400
#define WINDOWS_NEWEST 20

enum { IN_STARTUP, IN_TRAINING, IN_EVALUATION, IN_REST, IN_COUNT };

/* COUNT observations of EACH in a window, which vary a little. */
static void
windows_value(struct sample *s, int window, uint32_t context, uint32_t metric, uint32_t track,
              int64_t each, uint64_t count)
{
	double m2 = count > 1 ? (double)(count - 1) * 1e10 : 0;
	struct plumb_value value = { context, metric,        track,         each * (int64_t)count,
		                     count,   each - 100000, each + 100000, (double)each,
		                     m2 };
	struct plumb_window_value part = { .window = (uint32_t)window,
		                           .context = context,
		                           .metric = metric,
		                           .track = track,
		                           .sum = value.sum,
		                           .count = count,
		                           .min = PLUMB_UNKNOWN,
		                           .max = PLUMB_UNKNOWN,
		                           .m2 = m2 };

	if (plumb_builder_value(s->b, &value) < 0 || plumb_builder_window_value(s->b, &part) < 0)
		abort();
}

static void
windows_kernel(struct sample *s, int window, uint32_t op, const char *name, int64_t each,
               uint64_t count, uint32_t *kernel)
{
	uint32_t call = sample_at(s, op, PLUMB_FRAME_GPU_API, "cudaLaunchKernel", NULL, 0, 0);

	*kernel = sample_at(s, call, PLUMB_FRAME_KERNEL, name, NULL, 0, 0);
	windows_value(s, window, op, PLUMB_METRIC_OP_TIME, s->thread, 200000, count);
	windows_value(s, window, op, PLUMB_METRIC_OP_CALLS, s->thread, 1, count);
	windows_value(s, window, *kernel, PLUMB_METRIC_GPU_TIME, s->stream, each, count);
}

static void
windows_device(struct sample *s, int window, int64_t kernels, int64_t busy)
{
	struct plumb_window_device row = { .window = (uint32_t)window,
		                           .device = s->device,
		                           .kernels = kernels,
		                           .kernel_ns = busy,
		                           .busy_ns = busy };
	struct plumb_device *device = plumb_builder_get_device(s->b, s->device);

	device->kernels += kernels;
	device->kernel_ns += busy;
	device->busy_ns += busy;
	if (plumb_builder_window_device(s->b, &row) < 0)
		abort();
}

static void
windows_add(struct sample *s)
{
	static const struct {
		uint32_t kind, number;
		int64_t iterations;
	} windows[IN_COUNT] = {
		{ PLUMB_WINDOW_STARTUP, 0, PLUMB_UNKNOWN },
		{ PLUMB_WINDOW_LOOP, 1, WINDOWS_STEPS },
		{ PLUMB_WINDOW_LOOP, 2, 100 },
		{ PLUMB_WINDOW_REST, 0, PLUMB_UNKNOWN },
	};
	static const int64_t stretches[][3] = {
		{ IN_STARTUP, 0, 21400 },        { IN_TRAINING, 21400, 33400 },
		{ IN_EVALUATION, 33400, 34400 }, { IN_TRAINING, 34400, 46400 },
		{ IN_EVALUATION, 46400, 47400 }, { IN_REST, 47400, 49000 },
	};

	for (int w = 0; w < IN_COUNT; w++)
		plumb_builder_window(s->b, &(struct plumb_window){ s->process, windows[w].kind,
		                                                   windows[w].number,
		                                                   windows[w].iterations });
	for (size_t i = 0; i < sizeof stretches / sizeof *stretches; i++) {
		struct plumb_window_stretch row = { (uint32_t)stretches[i][0],
			                            1000 + stretches[i][1] * WINDOWS_MS,
			                            1000 + stretches[i][2] * WINDOWS_MS };
		if (plumb_builder_window_stretch(s->b, &row) < 0)
			abort();
	}
}

/* The last iterations of training: three kernels, and a gap that grows and shrinks by 1 ms. */
static void
windows_newest(struct sample *s, const uint32_t kernels[3])
{
	for (int i = 0; i < WINDOWS_NEWEST; i++) {
		int64_t at = 1000 + 46400 * WINDOWS_MS - (WINDOWS_NEWEST - i) * WINDOWS_STEP +
		             (i % 2) * WINDOWS_MS;
		for (int k = 0; k < 3; k++) {
			int64_t length = (k == 0 ? 32 : 8) * WINDOWS_MS;
			struct plumb_work_item item = { .track = s->stream,
				                        .context = kernels[k],
				                        .start_ns = at,
				                        .end_ns = at + length };
			if (plumb_builder_work(s->b, &item) < 0)
				abort();
			at += length + 100000;
		}
	}
}

static void
sample_windows(struct sample *s)
{
	uint32_t main_, at, op, kernels[3], other;

	sample_run(s, "python3 train.py", 49000 * WINDOWS_MS, 0, 98765432);
	sample_gpu_device(s);
	*plumb_builder_get_device(s->b, s->device) = (struct plumb_device){
		.name = sample_text(s, "NVIDIA H200"),
		.uuid = PLUMB_NONE,
		.rank = PLUMB_UNKNOWN,
		.first_ns = 1000 + 8000 * WINDOWS_MS,
		.last_ns = 1000 + 47400 * WINDOWS_MS,
	};
	windows_add(s);
	main_ = sample_at(s, 0, PLUMB_FRAME_PYTHON, "<module>", "/home/ada/train.py", 3, 0);
	at = sample_at(s, main_, PLUMB_FRAME_PYTHON, "_find_and_load",
	               "<frozen importlib._bootstrap>", 1176, 0);
	windows_value(s, IN_STARTUP, at, PLUMB_METRIC_CPU_TIME, s->thread, 10000000, 280);
	main_ = sample_at(s, 0, PLUMB_FRAME_PYTHON, "<module>", "/home/ada/train.py", 40, 0);
	at = sample_at(s, main_, PLUMB_FRAME_PYTHON, "_compile",
	               SAMPLE_SITE "/_dynamo/convert_frame.py", 500, 0);
	windows_value(s, IN_STARTUP, at, PLUMB_METRIC_CPU_TIME, s->thread, 10000000, 500);
	windows_value(s, IN_STARTUP, at, PLUMB_METRIC_WAIT_TIME, s->thread, 10000000, 100);
	at = sample_at(s, at, PLUMB_FRAME_PYTHON, "autotune_to_one_config",
	               SAMPLE_SITE "/_inductor/runtime/triton_heuristics.py", 900, 0);
	windows_value(s, IN_STARTUP, at, PLUMB_METRIC_CPU_TIME, s->thread, 10000000, 1190);
	op = sample_op(s, at, "aten::fill_", 0);
	windows_kernel(s, IN_STARTUP, op, "fill", 4 * WINDOWS_MS, 2000, &other);
	windows_device(s, IN_STARTUP, 2000, 8000 * WINDOWS_MS);
	at = sample_at(s, main_, PLUMB_FRAME_PYTHON, "train", "/home/ada/train.py", 44, 0);
	windows_value(s, IN_TRAINING, at, PLUMB_METRIC_CPU_TIME, s->thread, 10000000, 2200);
	op = sample_op(s, at, "aten::convolution", 0);
	windows_kernel(s, IN_TRAINING, op, "implicit_gemm", 32 * WINDOWS_MS, WINDOWS_STEPS,
	               &kernels[0]);
	op = sample_op(s, at, "aten::relu", 0);
	windows_kernel(s, IN_TRAINING, op, "relu", 8 * WINDOWS_MS, WINDOWS_STEPS, &kernels[1]);
	op = sample_op(s, at, "aten::add_", 0);
	windows_kernel(s, IN_TRAINING, op, "add", 8 * WINDOWS_MS, WINDOWS_STEPS, &kernels[2]);
	windows_device(s, IN_TRAINING, 3 * WINDOWS_STEPS, 48 * WINDOWS_STEPS * WINDOWS_MS);
	at = sample_at(s, main_, PLUMB_FRAME_PYTHON, "evaluate", "/home/ada/train.py", 52, 0);
	windows_value(s, IN_EVALUATION, at, PLUMB_METRIC_CPU_TIME, s->thread, 10000000, 100);
	op = sample_op(s, at, "aten::convolution", 0);
	windows_kernel(s, IN_EVALUATION, op, "implicit_gemm", 10 * WINDOWS_MS, 100, &other);
	windows_device(s, IN_EVALUATION, 100, 1000 * WINDOWS_MS);
	windows_newest(s, kernels);
}

/* When its process used the device: so it is known for how much of a loop that idled. */
static inline void
windows_add_use(struct plumb_profile *p)
{
	struct plumb_device_process *use =
		plumb_row_add(p, &plumb_row_tables[PLUMB_TABLE_DEVICE_PROCESSES]);

	if (!use)
		abort();
	*use = (struct plumb_device_process){ .busy_ns = p->devices[0].busy_ns,
		                              .first_ns = p->devices[0].first_ns,
		                              .last_ns = p->devices[0].last_ns };
}

#endif
