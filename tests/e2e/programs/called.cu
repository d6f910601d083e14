// SPDX-License-Identifier: Apache-2.0
// called.cubin is this file: nvcc -arch=sm_90 -rdc=true -lineinfo -dc -o called.o /home/u/called.cu, then
// nvlink -arch=sm_90 -o called.cubin called.o (CUDA 13.5).
__device__ __noinline__ float smooth(const float *x, int i) {
	return 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}

__global__ void smoothed(const float *x, float *y, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i > 0 && i < n - 1)
		y[i] = smooth(x, i);
}

__global__ void doubled(float *y, int n) {
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		y[i] = 2 * y[i];
}
