// SPDX-License-Identifier: Apache-2.0
// It moves memory and does little else: 12 bytes for each thread.
extern "C" __global__ void
stream(const float *a, const float *b, float *c)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	c[i] = a[i] + 3.f * b[i];
}
