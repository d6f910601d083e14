/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs do before their loop, by names of libraries. Functions that also run in the loop
 * (those that call compiled code) must not fit.
 */
#include <string.h>

#include "model/framework/framework.h"

/* A Python function: a part of its file, and its name without the class, in which "*" is anything.
 * The first row that fits counts. */
static const struct {
	const char *file, *function;
	enum plumb_startup_kind kind;
} functions[] = {
	{ "<frozen importlib._bootstrap", "*", PLUMB_STARTUP_IMPORTS },
	{ "importlib/__init__.py", "import_module", PLUMB_STARTUP_IMPORTS },

	/* PyTorch */
	{ "torch/_dynamo/convert_frame.py", "*", PLUMB_STARTUP_COMPILING },
	{ "torch/_inductor/autotune_process.py", "*", PLUMB_STARTUP_TUNING },
	{ "torch/_inductor/runtime/benchmarking.py", "*", PLUMB_STARTUP_TUNING },
	{ "torch/_inductor/", "*autotune*", PLUMB_STARTUP_TUNING },
	{ "torch/_inductor/", "*benchmark*", PLUMB_STARTUP_TUNING },
	{ "torch/_inductor/compile_fx.py", "*compile*", PLUMB_STARTUP_COMPILING },
	{ "torch/_inductor/async_compile.py", "*", PLUMB_STARTUP_COMPILING },
	{ "torch/_inductor/codecache.py", "__call__", PLUMB_STARTUP_OTHER },
	{ "torch/_inductor/codecache.py", "*", PLUMB_STARTUP_COMPILING },
	{ "torch/_inductor/", "*compile*", PLUMB_STARTUP_COMPILING },
	{ "torch/utils/cpp_extension.py", "*", PLUMB_STARTUP_COMPILING },
	{ "torch/jit/_script.py", "script", PLUMB_STARTUP_COMPILING },
	{ "torch/jit/_trace.py", "trace", PLUMB_STARTUP_COMPILING },
	{ "torch/export/", "export", PLUMB_STARTUP_COMPILING },
	{ "torch/serialization.py", "load", PLUMB_STARTUP_MODEL },
	{ "torch/hub.py", "*", PLUMB_STARTUP_MODEL },
	{ "torch/nn/init.py", "*", PLUMB_STARTUP_MODEL },
	{ "torch/nn/modules/", "reset_parameters", PLUMB_STARTUP_MODEL },
	{ "torch/nn/modules/module.py", "load_state_dict", PLUMB_STARTUP_MODEL },
	{ "torch/nn/modules/module.py", "_apply", PLUMB_STARTUP_MODEL },
	{ "torch/cuda/graphs.py", "capture*", PLUMB_STARTUP_CAPTURE },
	{ "torch/cuda/graphs.py", "make_graphed_callables", PLUMB_STARTUP_CAPTURE },
	{ "torch/_inductor/cudagraph_trees.py", "record*", PLUMB_STARTUP_CAPTURE },
	{ "torch/cuda/__init__.py", "_lazy_init", PLUMB_STARTUP_GPU },
	{ "torch/cuda/__init__.py", "*is_available", PLUMB_STARTUP_GPU },
	{ "torch/distributed/distributed_c10d.py", "init_process_group", PLUMB_STARTUP_RANKS },
	{ "torch/distributed/distributed_c10d.py", "*new*group*", PLUMB_STARTUP_RANKS },
	{ "torch/utils/data/", "*", PLUMB_STARTUP_DATA },

	/* Triton, JAX, CuPy, Numba, CUDA's Python */
	{ "triton/runtime/autotuner.py", "*bench*", PLUMB_STARTUP_TUNING },
	{ "triton/testing.py", "do_bench*", PLUMB_STARTUP_TUNING },
	{ "triton/compiler/", "*compile*", PLUMB_STARTUP_COMPILING },
	{ "triton/compiler/", "make_*", PLUMB_STARTUP_COMPILING },
	{ "triton/compiler/", "_init_handles", PLUMB_STARTUP_COMPILING },
	{ "triton/backends/", "*compile*", PLUMB_STARTUP_COMPILING },
	{ "jax/_src/compiler.py", "*", PLUMB_STARTUP_COMPILING },
	{ "jax/_src/interpreters/mlir.py", "*lower*", PLUMB_STARTUP_COMPILING },
	{ "jax/_src/interpreters/pxla.py", "*lower*", PLUMB_STARTUP_COMPILING },
	{ "jax/_src/interpreters/pxla.py", "*compile*", PLUMB_STARTUP_COMPILING },
	{ "jax/_src/interpreters/partial_eval.py", "trace_to_jaxpr*", PLUMB_STARTUP_COMPILING },
	{ "jax/_src/xla_bridge.py", "*backend*", PLUMB_STARTUP_GPU },
	{ "cupy/cuda/compiler.py", "*", PLUMB_STARTUP_COMPILING },
	{ "numba/core/compiler", "*", PLUMB_STARTUP_COMPILING },
	{ "numba/cuda/compiler.py", "*", PLUMB_STARTUP_COMPILING },
	{ "tensorflow/python/eager/polymorphic_function/tracing_compilation.py", "*",
	  PLUMB_STARTUP_COMPILING },

	/* models and data sets */
	{ "transformers/", "from_pretrained", PLUMB_STARTUP_MODEL },
	{ "diffusers/", "from_pretrained", PLUMB_STARTUP_MODEL },
	{ "safetensors/", "load*", PLUMB_STARTUP_MODEL },
	{ "huggingface_hub/", "*", PLUMB_STARTUP_MODEL },
	{ "vllm/model_executor/model_loader/", "*", PLUMB_STARTUP_MODEL },
	{ "sglang/srt/model_loader/", "*", PLUMB_STARTUP_MODEL },
	{ "vllm/v1/worker/", "capture_model", PLUMB_STARTUP_CAPTURE },
	{ "sglang/srt/model_executor/cuda_graph_runner.py", "capture*", PLUMB_STARTUP_CAPTURE },
	{ "/datasets/", "load_dataset*", PLUMB_STARTUP_DATA },
	{ "/datasets/arrow_dataset.py", "map", PLUMB_STARTUP_DATA },
	{ "torchvision/datasets/", "*", PLUMB_STARTUP_DATA },
};

/* Names of ranges and operators, and of driver calls. */
static const struct {
	uint32_t frame; /* enum plumb_frame_kind */
	const char *name;
	enum plumb_startup_kind kind;
} names[] = {
	/* What PyTorch's compiler says of itself. */
	{ PLUMB_FRAME_OPERATOR, "*benchmark* (dynamo_timed)", PLUMB_STARTUP_TUNING },
	{ PLUMB_FRAME_OPERATOR, "*autotun* (dynamo_timed)", PLUMB_STARTUP_TUNING },
	{ PLUMB_FRAME_OPERATOR, "* (dynamo_timed)", PLUMB_STARTUP_COMPILING },
	{ PLUMB_FRAME_RANGE, "*benchmark* (dynamo_timed)", PLUMB_STARTUP_TUNING },
	{ PLUMB_FRAME_RANGE, "*autotun* (dynamo_timed)", PLUMB_STARTUP_TUNING },
	{ PLUMB_FRAME_RANGE, "* (dynamo_timed)", PLUMB_STARTUP_COMPILING },
	{ PLUMB_FRAME_RANGE, "*XlaCompile*", PLUMB_STARTUP_COMPILING },
	{ PLUMB_FRAME_RANGE, "*XlaOptimize*", PLUMB_STARTUP_COMPILING },
	{ PLUMB_FRAME_RANGE, "*XlaEmit*", PLUMB_STARTUP_COMPILING },
	{ PLUMB_FRAME_GPU_API, "cuInit", PLUMB_STARTUP_GPU },
	{ PLUMB_FRAME_GPU_API, "cuDevicePrimaryCtxRetain", PLUMB_STARTUP_GPU },
	{ PLUMB_FRAME_GPU_API, "cuCtxCreate*", PLUMB_STARTUP_GPU },
	{ PLUMB_FRAME_GPU_API, "cuModuleLoad*", PLUMB_STARTUP_GPU },
	{ PLUMB_FRAME_GPU_API, "cuLibraryLoad*", PLUMB_STARTUP_GPU },
	{ PLUMB_FRAME_GPU_API, "cuLink*", PLUMB_STARTUP_COMPILING },
	{ PLUMB_FRAME_GPU_API, "hipModuleLoad*", PLUMB_STARTUP_GPU },
	{ PLUMB_FRAME_GPU_API, "hipInit", PLUMB_STARTUP_GPU },
	{ PLUMB_FRAME_NATIVE, "nvrtcCompileProgram", PLUMB_STARTUP_COMPILING },
	{ PLUMB_FRAME_NATIVE, "ncclCommInit*", PLUMB_STARTUP_RANKS },
};

static bool
fits(const char *text, const char *pattern)
{
	return plumb_name_fits(text, pattern, strlen(pattern));
}

static enum plumb_startup_kind
kind_of_function(const char *file, const char *name)
{
	const char *dot = strrchr(name, '.'), *function = dot ? dot + 1 : name;

	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (strstr(file, functions[i].file) && fits(function, functions[i].function))
			return functions[i].kind;
	return PLUMB_STARTUP_OTHER;
}

enum plumb_startup_kind
plumb_framework_startup(const struct plumb_profile *p, uint32_t frame)
{
	const struct plumb_frame *f = &p->frames[frame];
	const char *file = plumb_text(p, f->file), *name = plumb_text(p, f->name);

	if (!name)
		return PLUMB_STARTUP_OTHER;
	if (f->kind == PLUMB_FRAME_PYTHON) {
		/* The body of a module runs when it is imported. */
		if (!file || !strcmp(name, "<module>"))
			return PLUMB_STARTUP_OTHER;
		return kind_of_function(file, name);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].frame == f->kind && fits(name, names[i].name))
			return names[i].kind;
	return PLUMB_STARTUP_OTHER;
}
