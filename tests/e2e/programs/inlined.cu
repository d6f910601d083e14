// SPDX-License-Identifier: Apache-2.0
// inlined.cubin is this file: nvcc 13.2 -arch=sm_80 -cubin -lineinfo -o inlined.cubin /home/u/inlined.cu
__device__ __forceinline__ float square(float x) {
	return x * x;
}

__device__ __forceinline__ float norm(float x, float y) {
	float a = square(x);
	float b = square(y);
	return sqrtf(a + b);
}

extern "C" __global__ void plain(float *out, const float *in) {
	out[threadIdx.x] = in[0];
}

extern "C" __global__ void nested(float *out, const float *in) {
	int i = threadIdx.x;
	out[i] = norm(in[i], in[i + 1]);
}

extern "C" __global__ void twice(float *out, const float *in) {
	out[threadIdx.x] = norm(in[0], in[1]) + square(in[2]);
}
