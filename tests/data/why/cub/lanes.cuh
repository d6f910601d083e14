// SPDX-License-Identifier: Apache-2.0
// It stands for a header of a library: its folder is called so.
static __device__ float inverse(float value)
{
	return 1.0f / sqrtf(value);
}
