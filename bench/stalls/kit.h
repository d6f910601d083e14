/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cases.cu and hopper.cu share: arms of a case, run once each in an order that the seed makes,
 * and a line of JSON for each: which kernel ran it, how often the stalled line was executed, and
 * how long it took.
 *
 * The arms of a case run the same machine code. Each kernel is a template of a number that it does
 * not use, its slot, so that one process runs each arm under a name of its own: samples of program
 * counters are told apart by name. Which slot an arm gets changes from run to run, so that an
 * address has no effect of its own. tests/e2e/test_stalls_kit.py compares the machine code.
 *
 * MARKERS. A comment such as "chase: cause P" marks a line that the table (known.py) speaks of.
 */
#ifndef PLUMB_BENCH_STALLS_KIT_H
#define PLUMB_BENCH_STALLS_KIT_H

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "check.h"

#define SLOT_COUNT 6
#define SLOTS(kernel) { kernel<0>, kernel<1>, kernel<2>, kernel<3>, kernel<4>, kernel<5> }

/* Work beside the slice: an arm that does more of it must not change the stall. */
#define PLACEBO(count, never)                                                                      \
	{                                                                                          \
		float beside = threadIdx.x;                                                        \
		_Pragma("unroll 1") for (int step = 0; step < (count); ++step) beside =            \
			beside * 1.0001f + 1.f;                                                    \
		if (beside == -1.f)                                                                \
			*(float *)(never) = beside;                                                \
	}

struct shape {
	unsigned blocks, threads;
	size_t shared; /* dynamic, bytes of a block */
};

struct job {
	std::string name, arm;
	int number;        /* of the arm in its case */
	double executions; /* of the stalled line by all warps, relative to the case's other arms */
	std::function<void(int slot)> launch;
	std::function<const void *(int slot)> function;
};

class kit
{
	std::vector<job> jobs;
	unsigned seed;

      public:
	int multiprocessors;

	kit(unsigned seed) : seed(seed)
	{
		cudaDeviceProp properties;
		CHECK(cudaGetDeviceProperties(&properties, 0));
		multiprocessors = properties.multiProcessorCount;
	}

	template <class... P, class... A>
	void
	arm(const char *name, const char *arm, void (*const (&slots)[SLOT_COUNT])(P...), shape size,
	    double executions, A... arguments)
	{
		int number = 0;
		for (auto &other : jobs)
			number += other.name == name;
		std::vector<void (*)(P...)> kernels(slots, slots + SLOT_COUNT);
		if (size.shared > 48 * 1024)
			for (auto kernel : kernels)
				CHECK(cudaFuncSetAttribute(
					(const void *)kernel,
					cudaFuncAttributeMaxDynamicSharedMemorySize,
					(int)size.shared));
		jobs.push_back({ name, arm, number, executions,
		                 [=](int slot) {
					 kernels[slot]<<<size.blocks, size.threads, size.shared>>>(
						 P(arguments)...);
				 },
		                 [=](int slot) { return (const void *)kernels[slot]; } });
	}

	/* Runs those of ONLY (empty: all), and writes a line for each. */
	void
	run(const std::string &only, FILE *out)
	{
		std::mt19937 random(seed);
		std::shuffle(jobs.begin(), jobs.end(), random);
		cudaEvent_t begin, end;
		CHECK(cudaEventCreate(&begin));
		CHECK(cudaEventCreate(&end));
		for (auto &job : jobs) {
			if (!only.empty() && only != job.name)
				continue;
			int slot = (job.number + seed) % SLOT_COUNT;
			const char *function;
			CHECK(cudaFuncGetName(&function, job.function(slot)));
			CHECK(cudaEventRecord(begin));
			job.launch(slot);
			CHECK(cudaGetLastError());
			CHECK(cudaEventRecord(end));
			CHECK(cudaEventSynchronize(end));
			float ms;
			CHECK(cudaEventElapsedTime(&ms, begin, end));
			fprintf(out,
			        "{\"case\": \"%s\", \"arm\": \"%s\", \"slot\": %d, "
			        "\"function\": \"%s\", \"executions\": %.17g, \"ms\": %.6f}\n",
			        job.name.c_str(), job.arm.c_str(), slot, function, job.executions,
			        ms);
		}
	}
};

template <class T>
T *
device_array(size_t count)
{
	T *array;
	CHECK(cudaMalloc(&array, count * sizeof(T)));
	CHECK(cudaMemset(array, 0, count * sizeof(T)));
	return array;
}

#define KIT_USAGE "usage: %s SEED OUTPUT [CASE]\n"

/* A program of cases: PROGRAM SEED OUTPUT [CASE]. ADD adds its cases. */
static int
run_cases(int argc, char **argv, void (*add)(kit &))
{
	if (argc < 3 || argc > 4) {
		fprintf(stderr, KIT_USAGE, argv[0]);
		return 2;
	}
	kit kit(atoi(argv[1]));
	add(kit);
	FILE *out = fopen(argv[2], "w");
	if (!out) {
		perror(argv[2]);
		return 1;
	}
	kit.run(argc > 3 ? argv[3] : "", out);
	return fclose(out) ? 1 : 0;
}

#endif
