/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small profiles with known numbers, for unit and golden tests.
 *
 *	struct plumb_profile profile = { 0 };
 *	sample_make("gpu", &profile);      // false: there is none of that name
 *
 *	gpu    a training step on one GPU: forward, backward, accumulation, copies, drops
 *	cpu    operators only, nested in one of their own name, unknown totals
 *	deep   a function that recurses 10 000 deep around one operator
 *	empty  nothing but the run
 *	memory who holds a CPU's and a GPU's memory
 *	trace  spans of two threads and a stream, with arrows, an overlap and a series
 *	rude   names with control characters, wide characters and quotes
 *
 *	windows start-up, training, evaluation and the rest (windows.h)
 *
 * and those of cases.h, for the analyses.
 */
#ifndef PLUMB_TESTS_PROFILES_H
#define PLUMB_TESTS_PROFILES_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/builder.h"

#define SAMPLE_DEPTH 10000

struct sample {
	struct plumb_builder *b;
	uint32_t process, thread, autograd, device, stream, copies;
};

static uint32_t
sample_text(struct sample *s, const char *text)
{
	return plumb_builder_text(s->b, text);
}

/* A child of PARENT. */
static uint32_t
sample_at(struct sample *s, uint32_t parent, uint32_t kind, const char *name, const char *file,
          uint32_t line, uint32_t flags)
{
	uint32_t frame = plumb_builder_frame(s->b, kind, sample_text(s, name),
	                                     file ? sample_text(s, file) : PLUMB_NONE, line);

	return plumb_builder_context(s->b, parent, frame, flags);
}

static uint32_t
sample_op(struct sample *s, uint32_t parent, const char *name, uint32_t flags)
{
	return sample_at(s, parent, PLUMB_FRAME_OPERATOR, name, NULL, 0, flags);
}

/* COUNT equal observations of EACH. */
static void
sample_value(struct sample *s, uint32_t context, uint32_t metric, uint32_t track, int64_t each,
             uint64_t count)
{
	struct plumb_value value = { context, metric, track, each * (int64_t)count,
		                     count,   each,   each,  (double)each,
		                     0 };

	if (plumb_builder_value(s->b, &value) < 0)
		abort();
}

static void
sample_calls(struct sample *s, uint32_t context, uint32_t track, int64_t each, uint64_t count)
{
	sample_value(s, context, PLUMB_METRIC_OP_CALLS, track, 1, count);
	sample_value(s, context, PLUMB_METRIC_OP_TIME, track, each, count);
}

static void
sample_kernel(struct sample *s, uint32_t parent, const char *name, const char *display,
              int64_t first, int64_t second, uint32_t flags)
{
	uint32_t call =
		sample_at(s, parent, PLUMB_FRAME_GPU_API, "cudaLaunchKernel", NULL, 0, flags);
	uint32_t kernel = sample_at(s, call, PLUMB_FRAME_KERNEL, name, NULL, 0, flags);
	uint32_t frame =
		plumb_builder_frame(s->b, PLUMB_FRAME_KERNEL, sample_text(s, name), PLUMB_NONE, 0);

	if (display)
		plumb_builder_frame_display(s->b, frame, sample_text(s, display));
	sample_value(s, call, PLUMB_METRIC_GPU_LAUNCHES, s->thread, 1, 2);
	sample_value(s, kernel, PLUMB_METRIC_GPU_TIME, s->stream, first, 1);
	sample_value(s, kernel, PLUMB_METRIC_GPU_TIME, s->stream, second, 1);
	sample_value(s, kernel, PLUMB_METRIC_GPU_REGISTERS, s->stream, 96, 2);
	sample_value(s, kernel, PLUMB_METRIC_GPU_OCCUPANCY, s->stream, 312500, 2);
}

static void
sample_run(struct sample *s, const char *command, int64_t wall, int64_t exit_code, int64_t overhead)
{
	struct plumb_run *run = plumb_builder_run(s->b);
	struct plumb_process process = {
		.pid = 4242,
		.ppid = 1,
		.rank = PLUMB_UNKNOWN,
		.local_rank = PLUMB_UNKNOWN,
		.host = sample_text(s, "node7"),
		.command = sample_text(s, command),
		.start_ns = 1000,
		.end_ns = wall == PLUMB_UNKNOWN ? PLUMB_UNKNOWN : 1000 + wall,
		.exit_code = exit_code,
		.overhead_ns = overhead,
	};
	struct plumb_track thread = {
		.kind = PLUMB_TRACK_THREAD,
		.device = PLUMB_NONE,
		.tid = 4242,
		.name = sample_text(s, "python3"),
		.stream = PLUMB_UNKNOWN,
		.gpu_context = PLUMB_UNKNOWN,
		.start_ns = 1000,
		.end_ns = PLUMB_UNKNOWN,
		.overhead_ns = overhead,
	};

	*run = (struct plumb_run){ sample_text(s, command), 1000, wall, exit_code, overhead,
		                   sample_text(s, "0.1.0") };
	s->process = plumb_builder_process(s->b, &process);
	thread.process = s->process;
	s->thread = plumb_builder_track(s->b, &thread);
	thread.tid = 4250;
	thread.name = sample_text(s, "pt_autograd_0");
	s->autograd = plumb_builder_track(s->b, &thread);
	plumb_builder_environment(s->b, PLUMB_NONE, "python.version", "3.11.2");
	plumb_builder_environment(s->b, PLUMB_NONE, "torch.version", "2.11.0");
}

static void
sample_gpu_device(struct sample *s)
{
	struct plumb_device device = {
		.name = sample_text(s, "NVIDIA H200"),
		.uuid = sample_text(s, "GPU-01234567-89ab-cdef-0123-456789abcdef"),
		.ordinal = 0,
		.rank = PLUMB_UNKNOWN,
		.capability_major = 9,
		.capability_minor = 0,
		.multiprocessors = 132,
		.warps_per_multiprocessor = 64,
		.clock_khz = 1980000,
		.memory_clock_khz = 3201000,
		.memory_bytes = INT64_C(150754820096),
		.kernels = 8,
		.kernel_ns = 7400000,
		.copies = 2,
		.copy_ns = 600000,
		.copy_bytes = 25165824,
		.sets = 0,
		.set_ns = 0,
		.set_bytes = 0,
		.busy_ns = 7900000,
		.first_ns = 500000,
		.last_ns = 10500000,
		.late = 0,
	};
	struct plumb_track stream = {
		.kind = PLUMB_TRACK_STREAM,
		.process = s->process,
		.name = PLUMB_NONE,
		.tid = PLUMB_UNKNOWN,
		.stream = 7,
		.gpu_context = 1,
		.start_ns = PLUMB_UNKNOWN,
		.end_ns = PLUMB_UNKNOWN,
		.overhead_ns = PLUMB_UNKNOWN,
	};

	s->device = plumb_builder_device(s->b, &device);
	stream.device = s->device;
	s->stream = plumb_builder_track(s->b, &stream);
	stream.stream = 13;
	s->copies = plumb_builder_track(s->b, &stream);
}

#define SAMPLE_SITE "/usr/lib/python3/dist-packages/torch"

static void
sample_gpu(struct sample *s)
{
	uint32_t main_, step, forward, linear, addmm, back, op, copy, set_to_none;

	sample_run(s, "python3 train.py --epochs 2", INT64_C(12345678901), 0, 98765432);
	sample_gpu_device(s);
	main_ = sample_at(s, 0, PLUMB_FRAME_PYTHON, "<module>", "/home/ada/train.py", 61, 0);
	main_ = sample_at(s, main_, PLUMB_FRAME_PYTHON, "main", "/home/ada/train.py", 40, 0);
	step = sample_at(s, main_, PLUMB_FRAME_PYTHON, "step", "/home/ada/train.py", 22, 0);
	forward = sample_at(s, step, PLUMB_FRAME_PYTHON, "_call_impl",
	                    SAMPLE_SITE "/nn/modules/module.py", 1194, 0);
	forward = sample_at(s, forward, PLUMB_FRAME_PYTHON, "forward", "/home/ada/model.py", 12, 0);
	forward = sample_at(s, forward, PLUMB_FRAME_PYTHON, "_call_impl",
	                    SAMPLE_SITE "/nn/modules/module.py", 1194, 0);
	forward = sample_at(s, forward, PLUMB_FRAME_PYTHON, "forward",
	                    SAMPLE_SITE "/nn/modules/linear.py", 114, 0);
	linear = sample_op(s, forward, "aten::linear", 0);
	sample_calls(s, linear, s->thread, 4000, 2);
	addmm = sample_op(s, linear, "aten::addmm", 0);
	sample_calls(s, addmm, s->thread, 21000, 2);
	sample_value(s, addmm, PLUMB_METRIC_OP_DURATION, s->thread, 30000, 2);
	sample_kernel(s, addmm, "_Z14gemm_fwd_h200fPf",
	              "void gemm_fwd_h200<float, 128, 64>(float*)", 1400000, 1600000, 0);
	back = sample_op(s, linear, "AddmmBackward0", PLUMB_CONTEXT_BACKWARD);
	sample_calls(s, back, s->autograd, 9000, 2);
	op = sample_op(s, back, "aten::mm", PLUMB_CONTEXT_BACKWARD);
	sample_calls(s, op, s->autograd, 15000, 4);
	sample_kernel(s, op, "_Z14gemm_bwd_h200fPf", "void gemm_bwd_h200<float, 128, 64>(float*)",
	              1500000, 1700000, PLUMB_CONTEXT_BACKWARD);
	op = sample_at(s, main_, PLUMB_FRAME_PYTHON, "step", "/home/ada/train.py", 25, 0);
	op = sample_op(s, op, "AccumulateGrad", PLUMB_CONTEXT_ACCUMULATION);
	sample_calls(s, op, s->autograd, 3000, 2);
	op = sample_op(s, op, "aten::add_", PLUMB_CONTEXT_ACCUMULATION);
	sample_calls(s, op, s->autograd, 5000, 2);
	sample_kernel(s, op, "_Z3addPf", "void add<float>(float*)", 300000, 400000,
	              PLUMB_CONTEXT_ACCUMULATION);
	copy = sample_at(s, main_, PLUMB_FRAME_PYTHON, "load", "/home/ada/data.py", 8, 0);
	copy = sample_op(s, copy, "aten::copy_", 0);
	sample_calls(s, copy, s->thread, 8000, 2);
	copy = sample_at(s, copy, PLUMB_FRAME_GPU_API, "cudaMemcpyAsync", NULL, 0, 0);
	copy = sample_at(s, copy, PLUMB_FRAME_COPY,
	                 "copy pageable\xe2\x86\x92"
	                 "device",
	                 NULL, 0, 0);
	sample_value(s, copy, PLUMB_METRIC_GPU_COPY_TIME, s->copies, 300000, 2);
	sample_value(s, copy, PLUMB_METRIC_GPU_COPY_BYTES, s->copies, 12582912, 2);
	set_to_none = sample_at(s, 0, PLUMB_FRAME_GPU_API, "cuLaunchKernel", NULL, 0, 0);
	sample_kernel(s, set_to_none, "stray", NULL, 200000, 300000, 0);
	plumb_builder_ledger(s->b, s->process, PLUMB_SOURCE_OPERATOR, PLUMB_FATE_RECEIVED,
	                     PLUMB_NONE, 16);
	plumb_builder_ledger(s->b, s->process, PLUMB_SOURCE_OPERATOR, PLUMB_FATE_ATTRIBUTED,
	                     PLUMB_NONE, 16);
	plumb_builder_ledger(s->b, s->process, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RECEIVED, PLUMB_NONE,
	                     10);
	plumb_builder_ledger(s->b, s->process, PLUMB_SOURCE_KERNEL, PLUMB_FATE_ATTRIBUTED,
	                     PLUMB_NONE, 8);
	plumb_builder_ledger(s->b, s->process, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RING_MISS,
	                     PLUMB_NONE, 2);
	plumb_builder_ledger(s->b, s->process, PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_PYTHON,
	                     PLUMB_NONE, 2);
}

static void
sample_cpu(struct sample *s)
{
	uint32_t main_, outer, inner;

	sample_run(s, "python3 cpu.py", PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN);
	main_ = sample_at(s, 0, PLUMB_FRAME_PYTHON, "main", "/home/ada/cpu.py", 5, 0);
	outer = sample_op(s, main_, "aten::to", 0);
	sample_calls(s, outer, s->thread, 100, 3);
	inner = sample_op(s, outer, "aten::_to_copy", 0);
	sample_calls(s, inner, s->thread, 200, 3);
	inner = sample_op(s, inner, "aten::to", 0);
	sample_calls(s, inner, s->thread, 50, 3);
	outer = sample_op(s, 0, "aten::empty", 0);
	sample_calls(s, outer, s->thread, 1000, 1);
}

/* COUNT tensors of EACH bytes, of which HELD bytes were held at the peak and FREED were freed. */
static void
sample_tensors(struct sample *s, uint32_t context, uint32_t track, int64_t each, uint64_t count,
               uint64_t freed, int64_t held)
{
	sample_value(s, context, PLUMB_METRIC_MEM_ALLOC, track, each, count);
	if (freed)
		sample_value(s, context, PLUMB_METRIC_MEM_FREE, track, each, freed);
	if (held)
		sample_value(s, context, PLUMB_METRIC_MEM_HELD, track, held, 1);
	sample_value(s, context, PLUMB_METRIC_MEM_PEAK, track, held ? held : each, 1);
}

static uint32_t
sample_pool(struct sample *s, const char *name, uint32_t device, const struct plumb_memory *totals)
{
	struct plumb_track track = {
		.kind = PLUMB_TRACK_MEMORY,
		.process = s->process,
		.device = device,
		.name = sample_text(s, name),
		.tid = PLUMB_UNKNOWN,
		.stream = PLUMB_UNKNOWN,
		.gpu_context = PLUMB_UNKNOWN,
		.start_ns = PLUMB_UNKNOWN,
		.end_ns = PLUMB_UNKNOWN,
		.overhead_ns = PLUMB_UNKNOWN,
	};
	struct plumb_memory memory = *totals;

	memory.track = plumb_builder_track(s->b, &track);
	plumb_builder_memory(s->b, &memory);
	return memory.track;
}

static void
sample_held(struct sample *s)
{
	uint32_t main_, line, op, cpu, gpu;

	sample_run(s, "python3 train.py", INT64_C(12345678901), 0, 98765432);
	sample_gpu_device(s);
	cpu = sample_pool(s, "CPU", PLUMB_NONE,
	                  &(struct plumb_memory){ .peak_bytes = 1 << 20,
	                                          .peak_ns = 2000001000,
	                                          .allocations = 1,
	                                          .allocated_bytes = 1 << 20,
	                                          .live_bytes = 1 << 20,
	                                          .peak_allocated_bytes = PLUMB_UNKNOWN,
	                                          .peak_reserved_bytes = PLUMB_UNKNOWN,
	                                          .most_reserved_bytes = PLUMB_UNKNOWN });
	gpu = sample_pool(s, "cuda:0", s->device,
	                  &(struct plumb_memory){ .peak_bytes = 7 << 20,
	                                          .peak_ns = 3500001000,
	                                          .allocations = 19,
	                                          .allocated_bytes = (30 << 20) + 1024,
	                                          .frees = 15,
	                                          .freed_bytes = 25 << 20,
	                                          .live_bytes = (5 << 20) + 1024,
	                                          .peak_allocated_bytes = 8 << 20,
	                                          .peak_reserved_bytes = 20 << 20,
	                                          .most_reserved_bytes = 22 << 20 });
	main_ = sample_at(s, 0, PLUMB_FRAME_PYTHON, "main", "/home/ada/train.py", 40, 0);
	op = sample_op(s, main_, "aten::empty", 0);
	sample_tensors(s, op, cpu, 1 << 20, 1, 0, 1 << 20);
	line = sample_at(s, main_, PLUMB_FRAME_PYTHON, "forward", "/home/ada/model.py", 12, 0);
	op = sample_at(s, line, PLUMB_FRAME_PYTHON, "forward", SAMPLE_SITE "/nn/modules/linear.py",
	               114, 0);
	op = sample_op(s, op, "aten::linear", 0);
	sample_tensors(s, sample_op(s, op, "aten::addmm", 0), gpu, 1 << 20, 10, 8, 4 << 20);
	sample_tensors(s, op, gpu, 1 << 20, 2, 2, 0);
	op = sample_op(s, op, "autograd::engine::evaluate_function: AddmmBackward0",
	               PLUMB_CONTEXT_BACKWARD);
	op = sample_op(s, op, "AddmmBackward0", PLUMB_CONTEXT_BACKWARD);
	op = sample_op(s, op, "aten::mm", PLUMB_CONTEXT_BACKWARD);
	sample_tensors(s, op, gpu, 3 << 20, 6, 5, 2 << 20);
	sample_tensors(s, 0, gpu, 1 << 10, 1, 0, 1 << 10);
}

static void
sample_span(struct sample *s, uint32_t context, uint32_t track, int64_t start, int64_t end,
            uint64_t correlation)
{
	struct plumb_span span = { context, track, start, end, correlation };

	if (plumb_builder_span(s->b, &span) < 0)
		abort();
}

/* Two steps of 1000 ns: an operator, one inside it, a launch inside that, and its kernel, which
 * begins while the launch returns. The second kernel overlaps the first by 100 ns. A third launch's
 * kernel was not kept, and a copy's launch neither. */
static void
sample_trace(struct sample *s)
{
	uint32_t main_, outer, inner, call, kernel, copy, back;
	struct plumb_clock clock = {
		.device = PLUMB_NONE,
		.reference_ns = 1,
		.offset_ns = -INT64_C(1700000000000000000),
		.readings = 2,
	};

	sample_run(s, "python3 train.py", 100000, 0, 0);
	sample_gpu_device(s);
	clock.process = s->process;
	plumb_builder_clock(s->b, &clock);
	main_ = sample_at(s, 0, PLUMB_FRAME_PYTHON, "step", "/home/ada/train.py", 22, 0);
	main_ = sample_at(s, main_, PLUMB_FRAME_PYTHON, "forward",
	                  SAMPLE_SITE "/nn/modules/linear.py", 114, 0);
	outer = sample_op(s, main_, "aten::linear", 0);
	inner = sample_op(s, outer, "aten::addmm", 0);
	call = sample_at(s, inner, PLUMB_FRAME_GPU_API, "cuLaunchKernel", NULL, 0, 0);
	kernel = sample_at(s, call, PLUMB_FRAME_KERNEL, "gemm", NULL, 0, 0);
	copy = sample_at(s, 0, PLUMB_FRAME_COPY, "copy pinned", NULL, 0, 0);
	back = sample_op(s, outer, "AddmmBackward0", PLUMB_CONTEXT_BACKWARD);
	for (int64_t i = 0; i < 2; i++) {
		sample_span(s, outer, s->thread, 2000 + 1000 * i, 2900 + 1000 * i, 0);
		sample_span(s, inner, s->thread, 2100 + 1000 * i, 2800 + 1000 * i, 0);
		sample_span(s, call, s->thread, 2200 + 1000 * i, 2400 + 1000 * i, (uint64_t)i + 1);
		sample_span(s, kernel, s->stream, 2300 + 1000 * i, 3400 + 1000 * i,
		            (uint64_t)i + 1);
	}
	sample_span(s, call, s->thread, 2500, 2600, 7);
	sample_span(s, copy, s->stream, 5000, 5500, 8);
	sample_span(s, back, s->autograd, 4000, 4800, 0);
	sample_calls(s, outer, s->thread, 200, 2);
	for (int64_t i = 0; i < 3; i++)
		plumb_builder_series(s->b, &(struct plumb_series_bin){
						   .device = s->device,
						   .process = s->process,
						   .start_ns = 2000 + 2000 * i,
						   .width_ns = 2000,
						   .busy_ns = 1000 * i,
						   .kernels = i,
						   .copies = 1,
					   });
}

static void
sample_deep(struct sample *s)
{
	uint32_t at = 0;

	sample_run(s, "python3 deep.py", 1000000, 0, 1000);
	for (int i = 0; i < SAMPLE_DEPTH; i++)
		at = sample_at(s, at, PLUMB_FRAME_PYTHON, "recurse", "/home/ada/deep.py",
		               i % 2 ? 4 : 5, 0);
	at = sample_op(s, at, "aten::mul", 0);
	sample_calls(s, at, s->thread, 500, 7);
}

static void
sample_rude(struct sample *s)
{
	uint32_t at;

	sample_run(s, "python3 \033[31mrude.py", 1000000, 1, 1000);
	at = sample_at(s, 0, PLUMB_FRAME_PYTHON, "\xe8\xae\xad\xe7\xbb\x83\xe6\xad\xa5\xe9\xaa\xa4",
	               "/home/ada/\"quoted\", and\ttabbed.py", 3, 0);
	at = sample_op(s, at, "aten::\033]0;title\007\r\nmul", 0);
	sample_calls(s, at, s->thread, 500, 7);
	plumb_builder_ledger(s->b, s->process, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_NOT_DELIVERED,
	                     sample_text(s, "\033[2Jdetail"), 3);
}

#include "cases.h"
#include "stalled.h"
#include "traffic.h"
#include "windows.h"

static bool
sample_make(const char *name, struct plumb_profile *profile)
{
	static const struct {
		const char *name;
		void (*make)(struct sample *s);
	} samples[] = {
		{ "gpu", sample_gpu },         { "cpu", sample_cpu },
		{ "deep", sample_deep },       { "rude", sample_rude },
		{ "memory", sample_held },     { "empty", NULL },
		{ "index", case_index },       { "unet", case_unet },
		{ "loss", case_loss },         { "loader", case_loader },
		{ "copies", case_copies },     { "trace", sample_trace },
		{ "windows", sample_windows }, { "outside", case_outside },
		{ "stalled", case_stalled },   { "traffic", case_traffic },
	};
	struct sample s = { .b = plumb_builder_new() };
	struct plumb_error error;
	bool found = false;

	for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
		if (strcmp(samples[i].name, name))
			continue;
		found = true;
		if (samples[i].make)
			samples[i].make(&s);
		else
			sample_run(&s, "true", 1000000, 0, 0);
	}
	if (found && plumb_builder_finish(s.b, profile, &error) < 0) {
		fprintf(stderr, "%s\n", error.message);
		found = false;
	}
	plumb_builder_free(s.b);
	return found;
}

#endif
