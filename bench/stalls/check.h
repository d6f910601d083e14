/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the program if a call of CUDA's runtime fails, and says which. */
#ifndef PLUMB_BENCH_STALLS_CHECK_H
#define PLUMB_BENCH_STALLS_CHECK_H

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t error_ = (call);                                                       \
		if (error_ != cudaSuccess) {                                                       \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__,                         \
			        cudaGetErrorString(error_));                                       \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#endif
