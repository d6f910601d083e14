// SPDX-License-Identifier: Apache-2.0
// GPU code whose causes are known, for sm_80: there the size of an element is in a register.
#include "cub/lanes.cuh"

extern "C" __global__ void copy(const float *from, float *to)
{
	int t = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
	for (int i = 0; i < 4; i++)
		to[t + i] = from[t + i]; // four narrow loads
}

extern "C" __global__ void transpose(const float *from, float *to)
{
	int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
	to[x * 1024 + y] = from[y * 1024 + x]; // the store has lanes 4096 bytes apart
}

extern "C" __global__ void headers(float *out, int n)
{
	float value = out[threadIdx.x];
	for (int i = 0; i < n; i++)
		value = inverse(value); // the time is in the header
	out[threadIdx.x] = value;
}

extern "C" __global__ void digits(int *out, int base)
{
	int number = threadIdx.x;
	for (int i = 0; i < 100; i++)
		number = number / base + 1000; // a division each turn
	out[threadIdx.x] = number;
}
