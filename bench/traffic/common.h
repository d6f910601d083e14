/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs of bench/traffic share. Accesses are inline PTX, so that the compiler neither
 * merges nor widens them: what a kernel accesses is what its loop says.
 */
#ifndef PLUMB_BENCH_TRAFFIC_COMMON_H
#define PLUMB_BENCH_TRAFFIC_COMMON_H

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                                \
	do {                                                                                       \
		int error_ = (int)(call);                                                          \
		if (error_) {                                                                      \
			fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call,        \
			        error_);                                                           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* One access of WIDTH bytes; the value is the low byte of X in each byte. */
template <int width>
__device__ __forceinline__ void
store(char *at, uint32_t x)
{
	uint32_t word = (x & 0xff) * 0x01010101u;
	if (width == 1)
		asm volatile("st.global.u8 [%0], %1;" ::"l"(at), "r"(word) : "memory");
	if (width == 2)
		asm volatile("st.global.u16 [%0], %1;" ::"l"(at), "h"((uint16_t)word) : "memory");
	if (width == 4)
		asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(word) : "memory");
	if (width == 8)
		asm volatile("st.global.v2.u32 [%0], {%1, %1};" ::"l"(at), "r"(word) : "memory");
	if (width == 16)
		asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(at), "r"(word)
		             : "memory");
}

template <int width>
__device__ __forceinline__ uint32_t
load(const char *at)
{
	uint32_t a = 0, b = 0, c = 0, d = 0;
	uint16_t half = 0;
	if (width == 1)
		asm volatile("ld.global.u8 %0, [%1];" : "=r"(a) : "l"(at) : "memory");
	if (width == 2) {
		asm volatile("ld.global.u16 %0, [%1];" : "=h"(half) : "l"(at) : "memory");
		a = half;
	}
	if (width == 4)
		asm volatile("ld.global.u32 %0, [%1];" : "=r"(a) : "l"(at) : "memory");
	if (width == 8)
		asm volatile("ld.global.v2.u32 {%0, %1}, [%2];"
		             : "=r"(a), "=r"(b)
		             : "l"(at)
		             : "memory");
	if (width == 16)
		asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
		             : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
		             : "l"(at)
		             : "memory");
	return a ^ b ^ c ^ d;
}

static int devices;

/* All devices, which all reach each other. */
static void
all_devices(int most)
{
	CHECK(cudaGetDeviceCount(&devices));
	if (most && devices > most)
		devices = most;
	if (devices < 2) {
		fprintf(stderr, "this needs two GPUs\n");
		exit(77);
	}
	for (int i = 0; i < devices; i++) {
		CHECK(cudaSetDevice(i));
		for (int k = 0; k < devices; k++) {
			int can = 0;
			if (i == k)
				continue;
			CHECK(cudaDeviceCanAccessPeer(&can, i, k));
			if (!can) {
				fprintf(stderr, "GPU %d cannot reach GPU %d\n", i, k);
				exit(77);
			}
			CHECK(cudaDeviceEnablePeerAccess(k, 0));
		}
	}
}

static char *
allocate(int device, size_t bytes)
{
	void *memory;
	CHECK(cudaSetDevice(device));
	CHECK(cudaMalloc(&memory, bytes));
	CHECK(cudaMemset(memory, 0, bytes));
	CHECK(cudaDeviceSynchronize());
	return (char *)memory;
}

static void
synchronize()
{
	for (int i = 0; i < devices; i++) {
		CHECK(cudaSetDevice(i));
		CHECK(cudaDeviceSynchronize());
	}
}

#endif
