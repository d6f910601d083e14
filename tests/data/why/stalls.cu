// SPDX-License-Identifier: Apache-2.0
// Kernels with known stalls, for tests/e2e/test_why.py. README.md says how the files beside this one are made.
#include "rows.h"

extern "C" __global__ void
row_sums(const float *in, float *out, int columns)
{
	int row = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;

#pragma unroll 1
	for (int c = 0; c < columns; c++)
		sum += element(in, row, c);
	out[row] = sum;
}

template <typename T>
__global__ void
chase(const T *next, T *out, int steps)
{
	T at = threadIdx.x;

#pragma unroll 1
	for (int i = 0; i < steps; i++)
		at = next[at];
	out[threadIdx.x] = at;
}
template __global__ void chase<unsigned>(const unsigned *, unsigned *, int);

extern "C" __global__ void
shared(const float *in, float *out, int n)
{
	__shared__ float tile[256];
	int i = threadIdx.x;

	tile[i] = in[i];
	__syncthreads();
	out[i] = shrink(tile[(i * 32) & 255], n) + tile[255 - i];
}

extern "C" __global__ void
__launch_bounds__(1024, 2) spills(const float *in, float *out, int n)
{
	float v[40];

#pragma unroll
	for (int i = 0; i < 40; i++)
		v[i] = in[i * 1024 + threadIdx.x];
#pragma unroll 1
	for (int r = 0; r < n; r++) {
#pragma unroll
		for (int i = 0; i < 40; i++)
			v[i] = v[i] * v[(i + 7) % 40] + v[(i + 20) % 40];
	}
	float sum = 0;
#pragma unroll
	for (int i = 0; i < 40; i++)
		sum += v[i];
	out[threadIdx.x] = sum;
}
