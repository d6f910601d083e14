/* SPDX-License-Identifier: Apache-2.0 */
/* The table of GPU runtimes. A new one is one more row. */
#include "collect/gpu/cuda/cuda.h"
#include "collect/gpu/sanitizer/sanitizer.h"

const struct plumb_gpu_runtime *const plumb_gpu_runtimes[PLUMB_GPU_RUNTIMES_MAX + 1] = {
	&plumb_gpu_cuda,
	&plumb_gpu_sanitizer,
};
