// SPDX-License-Identifier: Apache-2.0
/* A pair whose fix is in a function of another file (compile with -rdc=true). */
#include "calls.h"
#include "pairs.h"

__global__ void calls_before(const float *keys, const float *queries, int *ranks)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	ranks[i] = table_rank(keys, queries[i]);
}
__global__ void calls_after(const float *keys, const int *firsts, const float *queries, int *ranks)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	ranks[i] = table_rank_near(keys, firsts, queries[i]);
}

int main(int argc, char **argv)
{
	std::vector<float> keys(KEYS);
	unsigned long long state = 1;
	for (auto &key : keys) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		key = (float)(state >> 40) / (1 << 24);
	}
	std::sort(keys.begin(), keys.end());
	std::vector<int> firsts(BUCKETS);
	for (int b = 0; b < BUCKETS; ++b)
		firsts[b] = (int)(std::lower_bound(keys.begin(), keys.end(), (float)b / BUCKETS) -
		                  keys.begin());
	float *device_keys = device_new<float>(KEYS);
	int *device_firsts = device_new<int>(BUCKETS);
	CHECK(cudaMemcpy(device_keys, keys.data(), KEYS * 4, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(device_firsts, firsts.data(), BUCKETS * 4, cudaMemcpyHostToDevice));
	float *queries = device_random<float>(QUERIES, 0, 1, 31);
	int *x = device_new<int>(QUERIES), *y = device_new<int>(QUERIES);
	pairs all = { { "calls",
		        [=] { calls_before<<<QUERIES / 256, 256>>>(device_keys, queries, x); },
		        [=] {
			        calls_after<<<QUERIES / 256, 256>>>(device_keys, device_firsts, queries, y);
		        },
		        [=] { return difference(x, y, QUERIES); }, 0 } };
	return run_pairs(argc, argv, all);
}
