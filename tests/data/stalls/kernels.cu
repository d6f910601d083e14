// SPDX-License-Identifier: Apache-2.0
// Compiled to kernels.sm_90.cubin, which tests load into the stand-in GPU:
//   nvcc -O3 -arch=sm_90 -lineinfo -cubin -o kernels.sm_90.cubin kernels.cu
// (nvcc 13.2, in a folder named /project). A kernel that calls a function and has another one inlined.

__device__ __noinline__ float far_away(const float *table, int at)
{
	return table[at * 7 % 1024] * 3.0f;
}

__device__ __forceinline__ float nearby(float value)
{
	return value * value + 1.0f;
}

extern "C" __global__ void gather(float *out, const float *in, const int *index, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i >= n)
		return;
	float value = in[index[i]];
	value = nearby(value);
	value += far_away(in, i);
	out[i] = value;
}

extern "C" __global__ void scale(float *out, float by)
{
	out[threadIdx.x] *= by;
}
