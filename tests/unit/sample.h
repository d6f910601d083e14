/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small profile with something in every column, whose numbers are easy to work out by hand:
 *
 *	root
 *	  main (train.py:3)
 *	    fib (train.py:10) > fib > fib     recursion; at each level an aten::mul of 100 ns on the
 *	                                      host with one kernel of 1000 ns
 *	    aten::mul                         forward: 50 ns; its backward work: a kernel of 700 ns
 *	    copy                              300 ns, 4096 bytes
 *
 * so fib's inclusive GPU time is 3000 ns, and not 6000.
 */
#ifndef PLUMB_TESTS_SAMPLE_H
#define PLUMB_TESTS_SAMPLE_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "model/builder.h"

#define SAMPLE_KERNEL "_Z4gemmPKfS0_Pf"

struct sample_ids {
	uint32_t process, other, device, plain_device, thread, stream, nameless, memory;
	uint32_t main_frame, fib, mul, kernel, copy;
	uint32_t contexts[16];
};

static inline void
sample_value(struct plumb_builder *b, uint32_t context, uint32_t metric, uint32_t track,
             int64_t number)
{
	struct plumb_value value = { context, metric, track,          number, 1,
		                     number,  number, (double)number, 0 };
	plumb_builder_value(b, &value);
}

static inline void
sample_places(struct plumb_builder *b, struct sample_ids *ids)
{
	ids->process = plumb_builder_process(
		b, &(struct plumb_process){ .pid = 100,
	                                    .ppid = 99,
	                                    .rank = 0,
	                                    .local_rank = 0,
	                                    .host = plumb_builder_text(b, "node1"),
	                                    .command = plumb_builder_text(b, "python train.py"),
	                                    .start_ns = 1000,
	                                    .end_ns = 900000,
	                                    .exit_code = 0,
	                                    .overhead_ns = 77 });
	ids->other =
		plumb_builder_process(b, &(struct plumb_process){ .pid = 101,
	                                                          .ppid = 99,
	                                                          .rank = PLUMB_UNKNOWN,
	                                                          .local_rank = PLUMB_UNKNOWN,
	                                                          .host = PLUMB_NONE,
	                                                          .command = PLUMB_NONE,
	                                                          .start_ns = 1000,
	                                                          .end_ns = PLUMB_UNKNOWN,
	                                                          .exit_code = PLUMB_UNKNOWN,
	                                                          .overhead_ns = PLUMB_UNKNOWN });
	ids->device = plumb_builder_device(
		b, &(struct plumb_device){ .name = plumb_builder_text(b, "NVIDIA H200"),
	                                   .uuid = plumb_builder_text(
						   b, "GPU-00000000-0000-0000-0000-000000000001"),
	                                   .ordinal = 0,
	                                   .rank = 0,
	                                   .capability_major = 9,
	                                   .capability_minor = 0,
	                                   .multiprocessors = 132,
	                                   .warps_per_multiprocessor = 64,
	                                   .clock_khz = 1980000,
	                                   .memory_clock_khz = 3201000,
	                                   .memory_bytes = INT64_C(150000000000),
	                                   .kernels = 4,
	                                   .kernel_ns = 3700,
	                                   .copies = 1,
	                                   .copy_ns = 300,
	                                   .copy_bytes = 4096,
	                                   .sets = 0,
	                                   .set_ns = 0,
	                                   .set_bytes = 0,
	                                   .busy_ns = 4000,
	                                   .first_ns = 2000,
	                                   .last_ns = 9000,
	                                   .late = 0 });
	struct plumb_device plain;
	int64_t *numbers = &plain.ordinal;
	for (; numbers <= &plain.late; numbers++)
		*numbers = PLUMB_UNKNOWN;
	plain.name = plain.uuid = PLUMB_NONE;
	ids->plain_device = plumb_builder_device(b, &plain);
	ids->thread = plumb_builder_track(
		b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                  .process = ids->process,
	                                  .device = PLUMB_NONE,
	                                  .name = plumb_builder_text(b, "MainThread"),
	                                  .tid = 100,
	                                  .stream = PLUMB_UNKNOWN,
	                                  .gpu_context = PLUMB_UNKNOWN,
	                                  .start_ns = 1000,
	                                  .end_ns = 900000,
	                                  .overhead_ns = 77 });
	ids->stream = plumb_builder_track(b, &(struct plumb_track){ .kind = PLUMB_TRACK_STREAM,
	                                                            .process = ids->process,
	                                                            .device = ids->device,
	                                                            .name = PLUMB_NONE,
	                                                            .tid = PLUMB_UNKNOWN,
	                                                            .stream = 7,
	                                                            .gpu_context = 1,
	                                                            .start_ns = PLUMB_UNKNOWN,
	                                                            .end_ns = PLUMB_UNKNOWN,
	                                                            .overhead_ns = PLUMB_UNKNOWN });
	ids->nameless =
		plumb_builder_track(b, &(struct plumb_track){ .kind = PLUMB_TRACK_THREAD,
	                                                      .process = ids->other,
	                                                      .device = PLUMB_NONE,
	                                                      .name = PLUMB_NONE,
	                                                      .tid = 101,
	                                                      .stream = PLUMB_UNKNOWN,
	                                                      .gpu_context = PLUMB_UNKNOWN,
	                                                      .start_ns = PLUMB_UNKNOWN,
	                                                      .end_ns = PLUMB_UNKNOWN,
	                                                      .overhead_ns = PLUMB_UNKNOWN });
}

static inline void
sample_memory(struct plumb_builder *b, struct sample_ids *ids)
{
	plumb_builder_wait(
		b, &(struct plumb_wait){ ids->thread, ids->stream, PLUMB_NONE, 7, UINT64_MAX });
	plumb_builder_wait(b, &(struct plumb_wait){ ids->stream, PLUMB_NONE, ids->device, 8, 0 });
	ids->memory = plumb_builder_track(
		b, &(struct plumb_track){ .kind = PLUMB_TRACK_MEMORY,
	                                  .process = ids->process,
	                                  .device = ids->device,
	                                  .name = plumb_builder_text(b, "cuda:0"),
	                                  .tid = PLUMB_UNKNOWN,
	                                  .stream = PLUMB_UNKNOWN,
	                                  .gpu_context = PLUMB_UNKNOWN,
	                                  .start_ns = PLUMB_UNKNOWN,
	                                  .end_ns = PLUMB_UNKNOWN,
	                                  .overhead_ns = PLUMB_UNKNOWN });
	plumb_builder_memory(b, &(struct plumb_memory){ .track = ids->memory,
	                                                .peak_bytes = 3000,
	                                                .peak_ns = 2600,
	                                                .allocations = 2,
	                                                .allocated_bytes = 4000,
	                                                .frees = 1,
	                                                .freed_bytes = 1000,
	                                                .live_bytes = 3000,
	                                                .peak_allocated_bytes = 3500,
	                                                .peak_reserved_bytes = 8192,
	                                                .most_reserved_bytes = PLUMB_UNKNOWN });
	for (int i = 0; i < 2; i++)
		plumb_builder_memory_series(
			b, &(struct plumb_memory_series_bin){
				   ids->memory, 2000 + i * 500, 500, 1000 * i, 1500 * (i + 1), 3000,
				   i ? 8192 : PLUMB_UNKNOWN, i ? 4096 : PLUMB_UNKNOWN });
	for (int i = 0; i < 3; i++)
		plumb_builder_counter_series(
			b, &(struct plumb_counter_series_bin){
				   ids->device, ids->process,
				   plumb_builder_text(b, i < 2 ? "dram_read_bytes" : "x__y.sum"),
				   i < 2 ? plumb_builder_text(b, "byte/s") : PLUMB_NONE,
				   2000 + i * 500, 500, i + 1, 100 * (i + 1), 0.5, 1.5 + i, 1e12 });
}

static inline void
sample_frames(struct plumb_builder *b, struct sample_ids *ids)
{
	uint32_t file = plumb_builder_text(b, "train.py");
	ids->main_frame =
		plumb_builder_frame(b, PLUMB_FRAME_PYTHON, plumb_builder_text(b, "main"), file, 3);
	ids->fib =
		plumb_builder_frame(b, PLUMB_FRAME_PYTHON, plumb_builder_text(b, "fib"), file, 10);
	ids->mul = plumb_builder_frame(b, PLUMB_FRAME_OPERATOR, plumb_builder_text(b, "aten::mul"),
	                               PLUMB_NONE, 0);
	ids->kernel = plumb_builder_frame(b, PLUMB_FRAME_KERNEL,
	                                  plumb_builder_text(b, SAMPLE_KERNEL), PLUMB_NONE, 0);
	plumb_builder_frame_display(b, ids->kernel, plumb_builder_text(b, "gemm(float const*)"));
	ids->copy = plumb_builder_frame(
		b, PLUMB_FRAME_COPY, plumb_builder_text(b, "copy pageable→device"), PLUMB_NONE, 0);
}

static inline void
sample_kernel(struct plumb_builder *b, const struct sample_ids *ids, uint32_t context, int64_t ns)
{
	sample_value(b, context, PLUMB_METRIC_GPU_TIME, ids->stream, ns);
	sample_value(b, context, PLUMB_METRIC_GPU_LAUNCHES, ids->thread, 1);
	sample_value(b, context, PLUMB_METRIC_GPU_REGISTERS, ids->stream, 40);
	plumb_builder_variant(b, &(struct plumb_variant){ .context = context,
	                                                  .track = ids->stream,
	                                                  .shapes = PLUMB_NONE,
	                                                  .grid = { 8, 4, 1 },
	                                                  .block = { 128, 1, 1 },
	                                                  .registers = 40,
	                                                  .static_shared = 1024,
	                                                  .dynamic_shared = 0,
	                                                  .occupancy = PLUMB_UNKNOWN,
	                                                  .count = 1,
	                                                  .time = ns,
	                                                  .min = ns,
	                                                  .max = ns });
}

static inline void
sample_tree(struct plumb_builder *b, struct sample_ids *ids)
{
	uint32_t *c = ids->contexts;
	c[0] = 0;
	c[1] = plumb_builder_context(b, 0, ids->main_frame, 0);
	uint32_t at = c[1];
	for (int level = 0; level < 3; level++) {
		at = plumb_builder_context(b, at, ids->fib, 0);
		uint32_t mul = plumb_builder_context(b, at, ids->mul, 0);
		uint32_t kernel = plumb_builder_context(b, mul, ids->kernel, 0);
		sample_value(b, mul, PLUMB_METRIC_OP_CALLS, ids->thread, 1);
		sample_value(b, mul, PLUMB_METRIC_OP_TIME, ids->thread, 100);
		sample_value(b, mul, PLUMB_METRIC_OP_DURATION, ids->thread, 150);
		sample_kernel(b, ids, kernel, 1000);
		c[2 + level] = at;
		c[5 + level] = kernel;
		plumb_builder_work(b, &(struct plumb_work_item){ kernel, ids->stream,
		                                                 2000 + level * 1500,
		                                                 3000 + level * 1500 });
		/* Out of order: the builder sorts. */
		plumb_builder_span(b,
		                   &(struct plumb_span){ kernel, ids->stream, 2000 + level * 1500,
		                                         3000 + level * 1500, 41 + level,
		                                         level == 2 ? 12345u : 0 });
		plumb_builder_span(b, &(struct plumb_span){ mul, ids->thread, 1850 + level * 1500,
		                                            2000 + level * 1500, 41 + level });
		plumb_builder_span(b, &(struct plumb_span){ at, ids->thread, 1850 + level * 1500,
		                                            2000 + level * 1500, 0 });
	}
	uint32_t mul = plumb_builder_context(b, c[1], ids->mul, 0);
	uint32_t back = plumb_builder_context(b, mul, ids->mul, PLUMB_CONTEXT_BACKWARD);
	uint32_t kernel = plumb_builder_context(b, back, ids->kernel, PLUMB_CONTEXT_BACKWARD);
	uint32_t copy = plumb_builder_context(b, c[1], ids->copy, 0);
	sample_value(b, mul, PLUMB_METRIC_OP_CALLS, ids->thread, 1);
	sample_value(b, mul, PLUMB_METRIC_OP_TIME, ids->thread, 50);
	sample_value(b, mul, PLUMB_METRIC_OP_TIME, ids->nameless, 25);
	sample_value(b, copy, PLUMB_METRIC_GPU_COPY_TIME, ids->stream, 300);
	sample_value(b, copy, PLUMB_METRIC_GPU_COPY_BYTES, ids->stream, 4096);
	sample_value(b, copy, PLUMB_METRIC_MEM_PEAK, PLUMB_NONE, 5000);
	sample_value(b, mul, PLUMB_METRIC_MEM_HELD, ids->memory, 3000);
	sample_kernel(b, ids, kernel, 700);
	/* Out of order, too: two threads, and two in one moment. */
	plumb_builder_cpu_sample(b, &(struct plumb_cpu_sample){ ids->nameless, mul, 7000, 40 });
	plumb_builder_cpu_sample(b, &(struct plumb_cpu_sample){ ids->thread, mul, 7000, 20 });
	plumb_builder_cpu_sample(b, &(struct plumb_cpu_sample){ ids->thread, back, 5000, 30 });
	plumb_builder_cpu_sample(b, &(struct plumb_cpu_sample){ ids->thread, c[1], 7000, 0 });
	plumb_builder_work(b, &(struct plumb_work_item){ copy, ids->stream, 2500, 2800 });
	plumb_builder_work(b, &(struct plumb_work_item){ kernel, ids->stream, 8300, 9000 });
	plumb_builder_origin(b,
	                     &(struct plumb_origin){ back, c[1], PLUMB_ORIGIN_OF_BACKWARD_CALL });
	plumb_builder_variant(b, &(struct plumb_variant){
					 .context = mul,
					 .track = ids->thread,
					 .shapes = plumb_builder_text(b, "[8, 4], [4]"),
					 .grid = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
					 .block = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
					 .registers = PLUMB_UNKNOWN,
					 .static_shared = PLUMB_UNKNOWN,
					 .dynamic_shared = PLUMB_UNKNOWN,
					 .occupancy = PLUMB_UNKNOWN,
					 .count = 1,
					 .time = 50,
					 .min = 50,
					 .max = 50 });
	plumb_builder_finding(
		b, &(struct plumb_finding){ .id = plumb_builder_text(b, "sync-1"),
	                                    .rule = plumb_builder_text(b, "sync"),
	                                    .title = plumb_builder_text(b, "the host waits"),
	                                    .advice = plumb_builder_text(b, "pin the memory"),
	                                    .evidence = plumb_builder_text(b, "{\"wait_ns\": 5}"),
	                                    .severity = 2,
	                                    .context = copy,
	                                    .saving_ns = PLUMB_UNKNOWN,
	                                    .confidence = NAN });
	plumb_builder_code_object(
		b, &(struct plumb_code_object){ .process = ids->process,
	                                        .kind = plumb_builder_text(b, "elf"),
	                                        .path = plumb_builder_text(b, "/lib/libm.so.6"),
	                                        .build_id = plumb_builder_text(b, "0badcafe"),
	                                        .hash = PLUMB_NONE,
	                                        .bytes = PLUMB_UNKNOWN });
}

static inline void
sample_run(struct plumb_builder *b, const struct sample_ids *ids)
{
	plumb_builder_clock(
		b, &(struct plumb_clock){ ids->process, ids->device, 1000, -5, 1e-7, 40, 9 });
	plumb_builder_clock(b, &(struct plumb_clock){ ids->process, PLUMB_NONE, 1000, 1700000000, 0,
	                                              PLUMB_UNKNOWN, 2 });
	plumb_builder_ledger(b, ids->process, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RECEIVED, PLUMB_NONE,
	                     5);
	plumb_builder_ledger(b, ids->process, PLUMB_SOURCE_KERNEL, PLUMB_FATE_ATTRIBUTED,
	                     PLUMB_NONE, 4);
	plumb_builder_ledger(b, ids->process, PLUMB_SOURCE_KERNEL, PLUMB_FATE_RING_MISS,
	                     plumb_builder_text(b, "stream 7"), 1);
	plumb_builder_ledger(b, PLUMB_NONE, PLUMB_SOURCE_PROCESS, PLUMB_FATE_RECEIVED, PLUMB_NONE,
	                     2);
	plumb_builder_environment(b, ids->process, "python.version", "3.11.2");
	plumb_builder_environment(b, PLUMB_NONE, "host.cpus", "2");
	for (int i = 0; i < 3; i++)
		plumb_builder_series(b, &(struct plumb_series_bin){ ids->device, ids->process,
		                                                    1000 + i * 4096, 4096, 900 * i,
		                                                    2 * i, i == 1 });
	struct plumb_run *run = plumb_builder_run(b);
	run->command = plumb_builder_text(b, "python train.py");
	run->tool_version = plumb_builder_text(b, "0.1.0");
	run->start_ns = 1000;
	run->wall_ns = 899000;
	run->exit_code = 0;
	run->overhead_ns = 77;
}

static inline int
sample_build(struct plumb_profile *profile, struct sample_ids *ids, struct plumb_error *error)
{
	memset(profile, 0, sizeof *profile);
	memset(ids, 0, sizeof *ids);
	struct plumb_builder *b = plumb_builder_new();
	if (!b)
		return plumb_fail_memory(error, NULL);
	sample_places(b, ids);
	sample_memory(b, ids);
	sample_frames(b, ids);
	sample_tree(b, ids);
	sample_run(b, ids);
	int code = plumb_builder_finish(b, profile, error);
	plumb_builder_free(b);
	return code;
}

#endif
