/* SPDX-License-Identifier: Apache-2.0 */
/* Three stages over an array, without a framework. Fault: each step copies the input to the GPU again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

__global__ void blur(const float *in, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = (in[i] + in[(i + 1) % n] + in[(i + n - 1) % n]) / 3;
}

__global__ void scale(float *x, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	for (int k = 0; i < n && k < 200; k++)
		x[i] = x[i] * 1.0001f + 0.5f;
}

static __attribute__((noinline)) void load(float *to, const float *from, size_t bytes)
{
	cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice); /* @fault */
}

static __attribute__((noinline)) void compute(float *a, float *b, int n)
{
	blur<<<(n + 255) / 256, 256>>>(a, b, n);
	scale<<<(n + 255) / 256, 256>>>(b, n);
	blur<<<(n + 255) / 256, 256>>>(b, a, n);
}

int main(int count, char **words)
{
	int fault = count > 1 && !strcmp(words[1], "fault"), steps = count > 3 ? atoi(words[3]) : 100, n = 1 << 24;
	size_t bytes = (size_t)n * sizeof(float);
	float *host = (float *)calloc(1, bytes), *a, *b;

	if (cudaMalloc(&a, bytes) || cudaMalloc(&b, bytes))
		return 1;
	load(a, host, bytes);
	for (int i = 0; i < steps; i++) {
		if (fault)
			load(a, host, bytes);
		compute(a, b, n);
		cudaDeviceSynchronize();
	}
	printf("%s\n", cudaGetErrorString(cudaGetLastError()));
	return 0;
}
