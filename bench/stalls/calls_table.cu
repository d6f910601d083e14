// SPDX-License-Identifier: Apache-2.0
#include "calls.h"

__device__ __noinline__ int table_rank(const float *keys, float x)
{
	int low = 0, high = KEYS;
	while (low < high) {
		int middle = (low + high) / 2;
		if (keys[middle] < x) // calls: fix
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

__device__ __noinline__ int table_rank_near(const float *keys, const int *firsts, float x)
{
	int at = firsts[(int)(x * BUCKETS)];
	while (at < KEYS && keys[at] < x)
		++at;
	return at;
}
