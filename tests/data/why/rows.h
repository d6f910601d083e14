// SPDX-License-Identifier: Apache-2.0
#pragma once

// Neighbouring lanes read 128 bytes apart.
static __device__ __forceinline__ float
element(const float *in, int row, int c)
{
	return in[row * 32 + c] * 0.5f;
}

static __device__ __noinline__ float
shrink(float x, int n)
{
#pragma unroll 1
	for (int i = 0; i < n; i++)
		x = x / (x + 1.5f);
	return x;
}
