/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime for CUDA through the Compute Sanitizer: accesses of kernels to other devices. */
#ifndef PLUMB_COLLECT_GPU_SANITIZER_SANITIZER_H
#define PLUMB_COLLECT_GPU_SANITIZER_SANITIZER_H

#include "collect/gpu/gpu.h"

extern const struct plumb_gpu_runtime plumb_gpu_sanitizer;

#endif
