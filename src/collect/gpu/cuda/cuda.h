/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime for CUDA through CUPTI. */
#ifndef PLUMB_COLLECT_GPU_CUDA_CUDA_H
#define PLUMB_COLLECT_GPU_CUDA_CUDA_H

#include "collect/gpu/gpu.h"

#define PLUMB_CUDA_DRIVER "cuda"
extern const struct plumb_gpu_runtime plumb_gpu_cuda;

#endif
