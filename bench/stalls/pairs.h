/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pairs share: a kernel before and after a known fix, of which the results must be equal
 * and the times are measured.
 *
 *	PROGRAM time OUTPUT              a line of JSON for each pair: times in ms, the greatest
 *	                                 difference of the results
 *	PROGRAM before|after REPEATS     runs one side alone, for a profiler
 *
 * A comment such as "gemm: fix" marks a line of the "before" that the fix changes.
 */
#ifndef PLUMB_BENCH_STALLS_PAIRS_H
#define PLUMB_BENCH_STALLS_PAIRS_H

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "check.h"

struct pair {
	const char *name;
	std::function<void()> before, after;
	std::function<double()> difference; /* of the results, relative to the greatest value */
	double tolerance;
};
typedef std::vector<pair> pairs;

template <class T>
T *
device_new(size_t count)
{
	T *array;
	CHECK(cudaMalloc(&array, count * sizeof(T)));
	CHECK(cudaMemset(array, 0, count * sizeof(T)));
	return array;
}

/* COUNT numbers from LOW to HIGH without a pattern, the same ones in each run. */
template <class T>
T *
device_random(size_t count, double low, double high, unsigned seed = 1)
{
	std::vector<T> host(count);
	unsigned long long state = seed * 0x9e3779b97f4a7c15ull + 1;
	for (auto &value : host) {
		state = state * 6364136223846793005ull + 1442695040888963407ull;
		value = (T)(low + (high - low) * (double)(state >> 40) / (1 << 24));
	}
	T *array = device_new<T>(count);
	CHECK(cudaMemcpy(array, host.data(), count * sizeof(T), cudaMemcpyHostToDevice));
	return array;
}

template <class T>
double
difference(const T *a, const T *b, size_t count)
{
	std::vector<T> x(count), y(count);
	CHECK(cudaMemcpy(x.data(), a, count * sizeof(T), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(y.data(), b, count * sizeof(T), cudaMemcpyDeviceToHost));
	double greatest = 0, differs = 0;
	for (size_t i = 0; i < count; ++i) {
		double p = (double)x[i], q = (double)y[i];
		if (!std::isfinite(p) || !std::isfinite(q))
			return INFINITY;
		greatest = std::max(greatest, std::fabs(p));
		differs = std::max(differs, std::fabs(p - q));
	}
	return greatest > 0 ? differs / greatest : INFINITY; /* all 0: nothing was computed */
}

static std::vector<float>
times(const std::function<void()> &work)
{
	const int warm = 3, repeats = 25;
	std::vector<float> all;
	cudaEvent_t begin, end;
	CHECK(cudaEventCreate(&begin));
	CHECK(cudaEventCreate(&end));
	for (int i = 0; i < warm + repeats; ++i) {
		float ms;
		CHECK(cudaEventRecord(begin));
		work();
		CHECK(cudaGetLastError());
		CHECK(cudaEventRecord(end));
		CHECK(cudaEventSynchronize(end));
		CHECK(cudaEventElapsedTime(&ms, begin, end));
		if (i >= warm)
			all.push_back(ms);
	}
	std::sort(all.begin(), all.end());
	return all;
}

static int
run_pairs(int argc, char **argv, const pairs &all)
{
	if (argc != 3) {
		fprintf(stderr, "usage: %s time OUTPUT | before REPEATS | after REPEATS\n",
		        argv[0]);
		return 2;
	}
	if (strcmp(argv[1], "time")) {
		for (int i = 0; i < atoi(argv[2]); ++i)
			for (auto &pair : all)
				(strcmp(argv[1], "after") ? pair.before : pair.after)();
		CHECK(cudaDeviceSynchronize());
		return 0;
	}
	FILE *out = fopen(argv[2], "w");
	if (!out) {
		perror(argv[2]);
		return 1;
	}
	int failed = 0;
	for (auto &pair : all) {
		pair.before();
		pair.after();
		CHECK(cudaDeviceSynchronize());
		double differs = pair.difference();
		auto before = times(pair.before), after = times(pair.after);
		size_t n = before.size();
		fprintf(out,
		        "{\"pair\": \"%s\", \"difference\": %s, \"equal\": %s, \"repeats\": %zu, "
		        "\"before_ms\": %.6f, \"before_low_ms\": %.6f, \"before_high_ms\": %.6f, "
		        "\"after_ms\": %.6f, \"after_low_ms\": %.6f, \"after_high_ms\": %.6f}\n",
		        pair.name,
		        std::isfinite(differs) ? std::to_string(differs).c_str() : "null",
		        differs <= pair.tolerance ? "true" : "false", n, before[n / 2],
		        before[n / 10], before[n - 1 - n / 10], after[n / 2], after[n / 10],
		        after[n - 1 - n / 10]);
		if (!(differs <= pair.tolerance)) {
			fprintf(stderr, "%s: the results differ by %g\n", pair.name, differs);
			failed = 1;
		}
	}
	return fclose(out) ? 1 : failed;
}

#endif
