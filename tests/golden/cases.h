/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles with one thing wrong each, for the analyses; the numbers of `the_case` make it so, and a
 * test may change one of them to take the fault away.
 *
 *	index   an embedding by aten::index, whose backward pass is slow
 *	unet    a convolution in channels_first: layout conversions, forwards and backwards
 *	loss    a loss function of six short kernels
 *	loader  a DataLoader with more workers than processors, and code that keeps the CPU busy
 *	outside  no GPU; a function that sleeps, and one that calls operators
 *	copies  pageable copies each step, pinned ones beside them, results read, tensors converted
 *	stalled  a kernel that follows pointers, with samples of its code (stalled.h)
 *	traffic  four GPUs that move data they need not (traffic.h)
 *
 * Each but `outside` has 40 ms of matrix products in 20 kernels, in a device's span of 200 ms.
 * Included by profiles.h.
 */
#ifndef PLUMB_TESTS_CASES_H
#define PLUMB_TESTS_CASES_H

#define CASE_MS 1000000
#define CASE_SITE "/usr/lib/python3/dist-packages/torch"

struct the_case {
	int64_t busy, span;
	int64_t index_forward, index_backward;
	int64_t layout; /* of each of three kernels */
	int64_t short_kernel;
	uint64_t repetitions;
	int backward; /* of the six short kernels, how many run backwards */
	int64_t registers;
	int workers, cores;
	int64_t augment; /* each of 1000 calls */
	/* a function of dataloader.py that takes 100 ms of the training process */
	const char *in_loader;
	int64_t copy_bytes, copy_wait, pinned_time;
	int64_t read_wait;
	int64_t converted;
	int64_t asleep;     /* of the main thread's 1000 ms: in a function of your own */
	uint64_t looks;     /* that found it there */
	int64_t calls;      /* operators' time in that function */
	int64_t elsewhere;  /* operators' time on another thread */
	const char *sleeps; /* in a function of this name, of the standard library; NULL: none */
	int64_t walk;       /* time of a kernel that follows pointers (stalled.h) */
	uint64_t walk_waits, walk_other, walk_issues; /* its samples */
	bool walk_code;                               /* the profile has its machine code */
	uint64_t pointer_loads, pointer_lanes; /* of each GPU, by how many lanes (traffic.h) */
	int64_t counter_step, relayed, touched;
};

static const struct the_case case_defaults = {
	.busy = 190 * CASE_MS,
	.span = 200 * CASE_MS,
	.index_forward = 1 * CASE_MS,
	.index_backward = 30 * CASE_MS,
	.layout = 4 * CASE_MS,
	.short_kernel = 4000,
	.repetitions = 500,
	.registers = 32,
	.workers = 8,
	.cores = 4,
	.augment = 60000,
	.copy_bytes = 1048576,
	.copy_wait = 150000,
	.pinned_time = 40000,
	.read_wait = 300000,
	.converted = 8 * CASE_MS,
	.asleep = 300 * CASE_MS,
	.looks = 5,
	.calls = 10 * CASE_MS,
	.sleeps = "request",
	.walk = 20 * CASE_MS,
	.walk_waits = 800,
	.walk_other = 20,
	.walk_issues = 150,
	.walk_code = true,
	.pointer_loads = 100000,
	.pointer_lanes = 1,
	.counter_step = 4,
	.relayed = 1 << 20,
	.touched = 1 << 20,
};
static struct the_case the_case;

/* COUNT kernels of EACH under PARENT, without a driver call between them. */
static uint32_t
case_kernel(struct sample *s, uint32_t parent, const char *name, int64_t each, uint64_t count,
            uint32_t flags)
{
	uint32_t kernel = sample_at(s, parent, PLUMB_FRAME_KERNEL, name, NULL, 0, flags);

	sample_value(s, kernel, PLUMB_METRIC_GPU_TIME, s->stream, each, count);
	sample_value(s, kernel, PLUMB_METRIC_GPU_REGISTERS, s->stream, the_case.registers, count);
	sample_value(s, kernel, PLUMB_METRIC_GPU_SHARED_BYTES, s->stream, 1024, count);
	return kernel;
}

static uint32_t
case_python(struct sample *s, uint32_t parent, const char *name, const char *file, uint32_t line)
{
	return sample_at(s, parent, PLUMB_FRAME_PYTHON, name, file, line, 0);
}

/* The run, its device and what all cases have. Returns the context of a training step. */
static uint32_t
case_start(struct sample *s)
{
	struct plumb_device *device;
	uint32_t main_, step, op;
	char cores[20];

	if (!the_case.span)
		the_case = case_defaults;
	snprintf(cores, sizeof cores, "%d", the_case.cores);
	sample_run(s, "python3 case.py", 400 * CASE_MS, 0, 1000);
	sample_gpu_device(s);
	plumb_builder_environment(s->b, PLUMB_NONE, "host.cpus", cores);
	device = plumb_builder_get_device(s->b, s->device);
	device->busy_ns = the_case.busy;
	device->first_ns = 1000;
	device->last_ns = 1000 + the_case.span;
	main_ = case_python(s, 0, "main", "/home/ada/case.py", 90);
	step = case_python(s, main_, "step", "/home/ada/case.py", 70);
	op = sample_op(s, step, "aten::mm", 0);
	sample_calls(s, op, s->thread, 10000, 20);
	case_kernel(s, op, "sm90_xmma_gemm_f32", 2 * CASE_MS, 20, 0);
	return step;
}

static void
case_index(struct sample *s)
{
	uint32_t step = case_start(s);
	uint32_t line = case_python(s, step, "embed", "/home/ada/case.py", 12);
	uint32_t op = sample_op(s, line, "aten::index", 0), back;

	case_kernel(s, op, "index_elementwise_kernel", the_case.index_forward / 10, 10, 0);
	back = sample_op(s, op, "IndexBackward0", PLUMB_CONTEXT_BACKWARD);
	back = sample_op(s, back, "aten::_index_put_impl_", 0);
	case_kernel(s, back, "indexing_backward_kernel", the_case.index_backward / 10, 10, 0);
}

static void
case_unet(struct sample *s)
{
	uint32_t step = case_start(s);
	uint32_t line = case_python(s, step, "forward", "/home/ada/unet.py", 33);
	uint32_t conv = sample_op(s, line, "aten::conv2d", 0);
	uint32_t op = sample_op(s, conv, "aten::cudnn_convolution", 0), native, back;

	native = sample_at(s, op, PLUMB_FRAME_NATIVE, "cudnnConvolutionForward", "b1d5", 0, 0);
	native = sample_at(s, native, PLUMB_FRAME_NATIVE, "libcudnn.so.9+0x10", "b1d5", 0, 0);
	case_kernel(s, native, "_ZN5cudnn3ops16nchwToNhwcKernelIfffLb0EEEv", the_case.layout / 20,
	            20, 0);
	case_kernel(s, native, "_ZN5cudnn3ops16nhwcToNchwKernelIfffLb0EEEv", the_case.layout / 20,
	            20, 0);
	case_kernel(s, op, "sm90_xmma_fprop_implicit_gemm_nhwc", CASE_MS, 10, 0);
	back = sample_op(s, conv, "ConvolutionBackward0", PLUMB_CONTEXT_BACKWARD);
	back = sample_op(s, back, "aten::convolution_backward", 0);
	back = sample_at(s, back, PLUMB_FRAME_NATIVE, "libcudnn.so.9+0x20", "b1d5", 0, 0);
	case_kernel(s, back, "_ZN5cudnn3ops16nchwToNhwcKernelIfffLb0EEEv", the_case.layout / 20, 20,
	            0);
}

static void
case_loss(struct sample *s)
{
	static const char *const names[] = { "sub", "abs", "pow", "mul", "add", "mean" };
	uint32_t step = case_start(s);
	uint32_t line = case_python(s, step, "loss_fn", "/home/ada/case.py", 21);

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char op[40];
		uint32_t context;

		snprintf(op, sizeof op, "aten::%s", names[i]);
		context = sample_op(s, line, op, 0);
		if (i < (size_t)the_case.backward) {
			context = sample_op(s, context, "Backward0", PLUMB_CONTEXT_BACKWARD);
			context = sample_op(s, context, op, 0);
		}
		case_kernel(s, context, names[i], the_case.short_kernel, the_case.repetitions, 0);
	}
}

static void
case_worker(struct sample *s, uint32_t parent, int number)
{
	struct plumb_process process = *plumb_builder_get_process(s->b, s->process);
	struct plumb_track thread = *plumb_builder_get_track(s->b, s->thread);
	uint32_t context;

	process.ppid = process.pid;
	process.pid += 1 + number;
	thread.process = plumb_builder_process(s->b, &process);
	thread.tid = process.pid;
	thread.name = sample_text(s, "pt_data_worker");
	context = case_python(s, parent, "_worker_loop", CASE_SITE "/utils/data/_utils/worker.py",
	                      309);
	context = case_python(s, context, "__getitem__", "/home/ada/data.py", 8);
	context = sample_op(s, context, "aten::stack", 0);
	sample_calls(s, context, plumb_builder_track(s->b, &thread), 50000, 10);
}

static void
case_loader(struct sample *s)
{
	uint32_t step, main_, loader, op;

	if (!the_case.span) {
		the_case = case_defaults;
		the_case.busy = 60 * CASE_MS;
	}
	step = case_start(s);
	main_ = case_python(s, 0, "main", "/home/ada/case.py", 88);
	loader = case_python(s, main_, "DataLoader.__iter__", CASE_SITE "/utils/data/dataloader.py",
	                     441);
	for (int i = 0; i < the_case.workers; i++)
		case_worker(s, loader, i);
	if (the_case.in_loader) {
		op = case_python(s, main_, the_case.in_loader,
		                 CASE_SITE "/utils/data/dataloader.py", 7);
		sample_calls(s, sample_op(s, op, "aten::stack", 0), s->thread, 100000, 1000);
	}
	op = case_python(s, step, "augment", "/home/ada/case.py", 40);
	op = sample_op(s, op, "aten::flip", 0);
	sample_calls(s, op, s->thread, the_case.augment, 1000);
}

static void
case_copy(struct sample *s, uint32_t parent, const char *name, int64_t bytes, int64_t time,
          int64_t wait)
{
	uint32_t copy = sample_at(s, parent, PLUMB_FRAME_COPY, name, NULL, 0, 0);

	sample_value(s, copy, PLUMB_METRIC_GPU_COPY_TIME, s->copies, time, 100);
	sample_value(s, copy, PLUMB_METRIC_GPU_COPY_BYTES, s->copies, bytes, 100);
	if (wait)
		sample_value(s, copy, PLUMB_METRIC_HOST_WAIT, s->thread, wait, 100);
}

static void
case_outside(struct sample *s)
{
	uint32_t main_, sleeps, op;

	if (!the_case.span)
		the_case = case_defaults;
	sample_run(s, "python3 case.py", 1000 * CASE_MS, 0, 1000);
	main_ = case_python(s, 0, "<module>", "/home/ada/case.py", 90);
	sleeps = case_python(s, main_, "fetch", "/home/ada/case.py", 31);
	op = sample_op(s, sleeps, "aten::mul", 0);
	sample_calls(s, op, s->thread, the_case.calls / 10, 10);
	if (the_case.sleeps)
		sleeps = case_python(s, sleeps, the_case.sleeps,
		                     "/usr/lib/python3.11/http/client.py", 1300);
	sample_value(s, sleeps, PLUMB_METRIC_HOST_TIME, s->thread,
	             the_case.asleep / (int64_t)the_case.looks, the_case.looks);
	main_ = case_python(s, main_, "forward", "/home/ada/case.py", 50);
	sample_value(s, main_, PLUMB_METRIC_HOST_TIME, s->thread,
	             (1000 * CASE_MS - the_case.asleep) / 7, 7);
	op = sample_op(s, main_, "aten::mm", 0);
	sample_calls(s, op, s->thread, 65 * CASE_MS, 10);
	sample_calls(s, op, s->autograd, the_case.elsewhere / 10, 10);
}

static void
case_copies(struct sample *s)
{
	uint32_t step, line;

	if (!the_case.span) {
		the_case = case_defaults;
		the_case.busy = 80 * CASE_MS;
	}
	step = case_start(s);
	line = case_python(s, step, "load", "/home/ada/case.py", 50);
	case_copy(s, sample_op(s, line, "aten::copy_", 0),
	          "copy pageable\xe2\x86\x92"
	          "device",
	          the_case.copy_bytes, 120000, the_case.copy_wait);
	line = case_python(s, step, "load_labels", "/home/ada/case.py", 53);
	case_copy(s, sample_op(s, line, "aten::copy_", 0),
	          "copy pinned\xe2\x86\x92"
	          "device",
	          1048576, the_case.pinned_time, 0);
	line = case_python(s, step, "log", "/home/ada/case.py", 60);
	case_copy(s, sample_op(s, line, "aten::copy_", 0),
	          "copy device\xe2\x86\x92"
	          "pageable",
	          4, 1000, the_case.read_wait);
	line = case_python(s, step, "cast", "/home/ada/case.py", 63);
	line = sample_op(s, sample_op(s, line, "aten::to", 0), "aten::_to_copy", 0);
	case_kernel(s, sample_op(s, line, "aten::copy_", 0), "bfloat16_copy_kernel_cuda",
	            the_case.converted / 100, 100, 0);
}

#endif
