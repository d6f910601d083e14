// SPDX-License-Identifier: Apache-2.0
/*
 * Kernels whose cause of waiting is known, because an argument or the data takes it away and leaves
 * the machine code as it is. known.py says what each arm takes away, kit.h how they run.
 *
 *	cases SEED OUTPUT [CASE]
 */
#include "kit.h"

typedef unsigned int u32;

/* A ring of COUNT (a power of two) that visits all in an order without a pattern. */
__global__ void make_ring(u32 *ring, u32 count)
{
	for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
		ring[i] = (i * 1664525u + 1013904223u) & (count - 1);
}

/* Each load needs the one before. All lanes read the same word: nothing is uncoalesced. */
template <int SLOT> __global__ void chase(const u32 *__restrict__ ring, u32 *out, int n, int side)
{
	u32 at = blockIdx.x;
#pragma unroll 1
	for (int i = 0; i < n; ++i)
		at = ring[at]; // chase: cause P, chase: stalls
	out[blockIdx.x * blockDim.x + threadIdx.x] = at;
	PLACEBO(side, out) // chase: placebo
}

/* Two loads, one consumer. Which of the two misses is in the masks. */
template <int SLOT>
__global__ void twoload(const double *__restrict__ a, const double *__restrict__ b, double *out,
                        u32 mask_a, u32 mask_b, int n, int side)
{
	u32 thread = blockIdx.x * blockDim.x + threadIdx.x, random = thread * 2654435761u;
	double sum = 0;
#pragma unroll 1
	for (int i = 0; i < n; ++i) {
		random = random * 1664525u + 1013904223u;
		double x = a[(random >> 3) & mask_a];              // twoload: cause A
		double y = b[((random >> 5) ^ thread) & mask_b];   // twoload: cause B
		sum = fma(x, y, sum);                              // twoload: stalls
	}
	out[thread] = sum;
	PLACEBO(side, out) // twoload: placebo
}

/* 32 sectors for a request, or 4. */
template <int SLOT>
__global__ void strided(const float *__restrict__ in, float *out, int stride, u32 mask, int n,
                        int side)
{
	u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
	float sum = 0;
#pragma unroll 1
	for (int i = 0; i < n; ++i) {
		float x = in[(thread * stride + i * 8192u) & mask]; // strided: cause G
		sum += x;                                           // strided: stalls
	}
	out[thread] = sum;
	PLACEBO(side, out) // strided: placebo
}

/* 32 lanes in one bank, or each in its own. */
template <int SLOT> __global__ void bank(float *out, int pitch, int n, int side)
{
	extern __shared__ float words[];
	int thread = threadIdx.x, k = 0;
	for (int i = thread; i < 33 * 32; i += blockDim.x)
		words[i] = i;
	__syncthreads();
	float sum = 0;
#pragma unroll 1
	for (int i = 0; i < n; ++i) {
		float x = words[(thread & 31) * pitch + k]; // bank: cause S
		sum += x;                                   // bank: stalls
		k = (k + (int)(sum * 0.f) + 1) & 31;
	}
	out[blockIdx.x * blockDim.x + thread] = sum;
	PLACEBO(side, out) // bank: placebo
}

/* Warp 0 comes later than the others. They wait at the barrier, but it is not the barrier. */
template <int SLOT> __global__ void imbalance(float *out, int extra, int n, int side)
{
	float x = threadIdx.x;
#pragma unroll 1
	for (int round = 0; round < n; ++round) { // imbalance: stalls
		if (threadIdx.x < 32)
#pragma unroll 1
			for (int i = 0; i < extra; ++i) // imbalance: cause W
				x = x * 1.0001f + 0.5f; // imbalance: cause W
		__syncthreads();                        // imbalance: stalls
		x += 1.f;
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = x;
	PLACEBO(side, out) // imbalance: placebo
}

/* All threads add to one word, or each to its own. */
template <int SLOT> __global__ void atomic(int *counters, int *out, u32 mask, int n, int side)
{
	u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
	int sum = 1;
#pragma unroll 1
	for (int i = 0; i < n; ++i) {
		int old = atomicExch(counters + ((thread * 32) & mask), sum); // atomic: cause X
		sum += old & 1;                                               // atomic: stalls
	}
	out[thread] = sum;
	PLACEBO(side, out) // atomic: placebo
}

/* CHAINS chains of FP64 additions and multiplications, each step waiting for the one before. */
template <int SLOT, int CHAINS>
static __device__ __forceinline__ void dfma_chains(double *out, double a, double b, int n, int side)
{
	double x[CHAINS];
	for (int c = 0; c < CHAINS; ++c)
		x[c] = threadIdx.x + c;
#pragma unroll 4
	for (int i = 0; i < n / CHAINS; ++i)
#pragma unroll
		for (int c = 0; c < CHAINS; ++c)
			x[c] = fma(x[c], a, b); // dfma: cause D, dfma: stalls
	double sum = 0;
	for (int c = 0; c < CHAINS; ++c)
		sum += x[c];
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
	PLACEBO(side, out) // dfma: placebo
}
template <int SLOT> __global__ void dfma_one(double *out, double a, double b, int n, int side)
{
	dfma_chains<SLOT, 1>(out, a, b, n, side);
}
template <int SLOT> __global__ void dfma_four(double *out, double a, double b, int n, int side)
{
	dfma_chains<SLOT, 4>(out, a, b, n, side);
}

/* 256 bodies of code behind a table of branches: all in turn, or one again and again. */
#define BODY(k)                                                                                    \
	case (k):                                                                                  \
		x = x * 1.0001f + (float)(k);                                                      \
		x = x * .9998f + x;                                                                \
		x = fmaf(x, x, .1f + (k));                                                         \
		x = x * .99f + 1.f;                                                                \
		x = x * 1.01f - .5f;                                                               \
		x = x * .5f + .125f * (k);                                                         \
		x = x * 1.3f + x;                                                                  \
		x = fmaf(x, .7f, x);                                                               \
		x = x * .3f + (k);                                                                 \
		x = x * .9f - (k);                                                                 \
		break;
#define BODIES4(k) BODY(k) BODY(k + 1) BODY(k + 2) BODY(k + 3)
#define BODIES16(k) BODIES4(k) BODIES4(k + 4) BODIES4(k + 8) BODIES4(k + 12)
#define BODIES64(k) BODIES16(k) BODIES16(k + 16) BODIES16(k + 32) BODIES16(k + 48)
template <int SLOT> __global__ void fetch(float *out, int mask, int n, int side)
{
	float x = threadIdx.x;
#pragma unroll 1
	for (int i = 0; i < n; ++i)
		switch ((i * 37) & mask) {
			BODIES64(0)   // fetch: cause I, fetch: stalls
			BODIES64(64)  // fetch: cause I, fetch: stalls
			BODIES64(128) // fetch: cause I, fetch: stalls
			BODIES64(192) // fetch: cause I, fetch: stalls
		}
	out[blockIdx.x * blockDim.x + threadIdx.x] = x;
	PLACEBO(side, out) // fetch: placebo
}

/* Each lane reads another constant, or all the same one. */
__constant__ float constants[8192];
template <int SLOT> __global__ void constant(float *out, int step, int n, int side)
{
	int k = threadIdx.x * step;
	float sum = 0;
#pragma unroll 1
	for (int i = 0; i < n; ++i) {
		float x = constants[k & 8191]; // constant: cause C
		sum += x;                      // constant: stalls
		k += (int)(sum * 0.f) + 1;
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
	PLACEBO(side, out) // constant: placebo
}

/* 96 values a thread, with 32 registers or with as many as it likes. */
#define VALUES 96
template <int SLOT>
static __device__ __forceinline__ void mix(const float *in, float *out, int n, int side)
{
	float v[VALUES];
	for (int i = 0; i < VALUES; ++i)
		v[i] = in[i * blockDim.x + threadIdx.x];
#pragma unroll 1
	for (int round = 0; round < n; ++round)
#pragma unroll
		for (int i = 0; i < VALUES; ++i)
			v[i] = fmaf(v[i], v[(i + 7) % VALUES], v[(i + 48) % VALUES]); // spill: cause L, spill: stalls
	float sum = 0;
	for (int i = 0; i < VALUES; ++i)
		sum += v[i];
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
	PLACEBO(side, out) // spill: placebo
}
template <int SLOT>
__global__ void __launch_bounds__(256, 8) spill_few(const float *in, float *out, int n, int side)
{
	mix<SLOT>(in, out, n, side);
}
template <int SLOT>
__global__ void __launch_bounds__(256, 1) spill_many(const float *in, float *out, int n, int side)
{
	mix<SLOT>(in, out, n, side);
}

/* Warp 0 brings a word for each lane to shared memory, the others wait for it and add it up. */
template <int SLOT>
__global__ void handover(const float *__restrict__ in, float *out, u32 mask, int n, int side)
{
	__shared__ float words[32];
	u32 lane = threadIdx.x & 31, random = blockIdx.x * 2654435761u;
	float sum = 0;
#pragma unroll 1
	for (int i = 0; i < n; ++i) {
		if (threadIdx.x < 32) {
			random = random * 1664525u + 1013904223u;
			float x = in[((random >> 4) & mask) + lane]; // handover: cause G
			words[lane] = x;                             // handover: hands on
		}
		__syncthreads(); // handover: stalls
		sum += words[lane ^ (i & 31)]; // handover: stalls
		__syncthreads();
	}
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
	PLACEBO(side, out) // handover: placebo
}

static void add_cases(kit &kit)
{
	const u32 large = 1u << 26; /* words of 256 MB: more than any L2 */
	const unsigned sm = kit.multiprocessors;
	const int side = 1500;
	u32 *far_ring = device_array<u32>(large), *near_ring = device_array<u32>(2048);
	make_ring<<<sm * 8, 256>>>(far_ring, large);
	make_ring<<<1, 256>>>(near_ring, 2048);
	CHECK(cudaDeviceSynchronize());
	double *doubles = device_array<double>(large), *out64 = device_array<double>(1 << 20);
	float *floats = (float *)doubles, *out = (float *)out64;
	u32 *out32 = (u32 *)out64;
	int *counters = (int *)device_array<int>(1 << 24);

#define ARMS(name, ...) static decltype(&name<0>) const name##_slots[SLOT_COUNT] = SLOTS(name);
	ARMS(chase)
	ARMS(twoload)
	ARMS(strided)
	ARMS(bank)
	ARMS(imbalance)
	ARMS(atomic)
	ARMS(dfma_one)
	ARMS(dfma_four)
	ARMS(fetch)
	ARMS(constant)
	ARMS(spill_few)
	ARMS(spill_many)
	ARMS(handover)
#undef ARMS

	int n = 2000;
	shape size = { sm, 32, 0 };
	kit.arm("chase", "base", chase_slots, size, n, far_ring, out32, n, 0);
	kit.arm("chase", "P", chase_slots, size, n, near_ring, out32, n, 0);
	kit.arm("chase", "again", chase_slots, size, n, far_ring, out32, n, 0);
	kit.arm("chase", "placebo", chase_slots, size, n, far_ring, out32, n, side);

	n = 1500;
	size = { sm, 64, 0 };
	const u32 all = (1u << 25) - 1, few = 511;
	const double *a = doubles, *b = doubles + (1u << 25);
	kit.arm("twoload", "base", twoload_slots, size, n, a, b, out64, all, all, n, 0);
	kit.arm("twoload", "A", twoload_slots, size, n, a, b, out64, few, all, n, 0);
	kit.arm("twoload", "B", twoload_slots, size, n, a, b, out64, all, few, n, 0);
	kit.arm("twoload", "A+B", twoload_slots, size, n, a, b, out64, few, few, n, 0);
	kit.arm("twoload", "again", twoload_slots, size, n, a, b, out64, all, all, n, 0);
	kit.arm("twoload", "placebo", twoload_slots, size, n, a, b, out64, all, all, n, side);

	n = 600;
	size = { sm * 2, 256, 0 };
	kit.arm("strided", "base", strided_slots, size, n, floats, out, 32, large - 1, n, 0);
	kit.arm("strided", "G", strided_slots, size, n, floats, out, 1, large - 1, n, 0);
	kit.arm("strided", "again", strided_slots, size, n, floats, out, 32, large - 1, n, 0);
	kit.arm("strided", "placebo", strided_slots, size, n, floats, out, 32, large - 1, n, side);

	n = 10000;
	size = { sm, 128, 33 * 32 * 4 };
	kit.arm("bank", "base", bank_slots, size, n, out, 32, n, 0);
	kit.arm("bank", "S", bank_slots, size, n, out, 33, n, 0);
	kit.arm("bank", "again", bank_slots, size, n, out, 32, n, 0);
	kit.arm("bank", "placebo", bank_slots, size, n, out, 32, n, side);

	n = 1000;
	size = { sm, 256, 0 };
	kit.arm("imbalance", "base", imbalance_slots, size, n, out, 300, n, 0);
	kit.arm("imbalance", "W", imbalance_slots, size, n, out, 0, n, 0);
	kit.arm("imbalance", "again", imbalance_slots, size, n, out, 300, n, 0);
	kit.arm("imbalance", "placebo", imbalance_slots, size, n, out, 300, n, side);

	n = 200;
	size = { sm, 128, 0 };
	const u32 apart = (1u << 24) - 1;
	int *integers = (int *)out64;
	kit.arm("atomic", "base", atomic_slots, size, n, counters, integers, 0u, n, 0);
	kit.arm("atomic", "X", atomic_slots, size, n, counters, integers, apart, n, 0);
	kit.arm("atomic", "again", atomic_slots, size, n, counters, integers, 0u, n, 0);
	kit.arm("atomic", "placebo", atomic_slots, size, n, counters, integers, 0u, n, side);

	n = 200000;
	size = { sm, 64, 0 };
	kit.arm("dfma", "base", dfma_one_slots, size, n, out64, .999, .001, n, 0);
	kit.arm("dfma", "D", dfma_four_slots, size, n, out64, .999, .001, n, 0);
	kit.arm("dfma", "again", dfma_one_slots, size, n, out64, .999, .001, n, 0);
	kit.arm("dfma", "placebo", dfma_one_slots, size, n, out64, .999, .001, n, side);

	n = 8192;
	size = { sm, 64, 0 };
	kit.arm("fetch", "base", fetch_slots, size, n, out, 255, n, 0);
	kit.arm("fetch", "I", fetch_slots, size, n, out, 0, n, 0);
	kit.arm("fetch", "again", fetch_slots, size, n, out, 255, n, 0);
	kit.arm("fetch", "placebo", fetch_slots, size, n, out, 255, n, side);

	n = 3000;
	size = { sm, 64, 0 };
	kit.arm("constant", "base", constant_slots, size, n, out, 33, n, 0);
	kit.arm("constant", "C", constant_slots, size, n, out, 0, n, 0);
	kit.arm("constant", "again", constant_slots, size, n, out, 33, n, 0);
	kit.arm("constant", "placebo", constant_slots, size, n, out, 33, n, side);

	n = 200;
	size = { sm * 4, 256, 0 };
	kit.arm("spill", "base", spill_few_slots, size, n, floats, out, n, 0);
	kit.arm("spill", "L", spill_many_slots, size, n, floats, out, n, 0);
	kit.arm("spill", "again", spill_few_slots, size, n, floats, out, n, 0);
	kit.arm("spill", "placebo", spill_few_slots, size, n, floats, out, n, side);

	n = 1500;
	size = { sm, 128, 0 };
	const u32 lines = (1u << 25) - 32;
	kit.arm("handover", "base", handover_slots, size, n, floats, out, lines, n, 0);
	kit.arm("handover", "G", handover_slots, size, n, floats, out, 0u, n, 0);
	kit.arm("handover", "again", handover_slots, size, n, floats, out, lines, n, 0);
	kit.arm("handover", "placebo", handover_slots, size, n, floats, out, lines, n, side);
}

int main(int argc, char **argv)
{
	return run_cases(argc, argv, add_cases);
}
