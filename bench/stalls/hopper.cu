// SPDX-License-Identifier: Apache-2.0
/*
 * As cases.cu, for what only Hopper has: bulk copies with mbarriers (TMA), and matrix products of a
 * warp group. Compile for sm_90a.
 *
 *	hopper SEED OUTPUT [CASE]
 */
#include <cstdint>

#include "kit.h"

typedef unsigned int u32;
#define COPY_WORDS 2048
#define COPY_BYTES (COPY_WORDS * 4)
#define DEPTH_MAX 4

static __device__ __forceinline__ u32 shared_address(const void *pointer)
{
	return (u32)__cvta_generic_to_shared(pointer);
}

/* As macros, so that they belong to the line that uses them. */
#define EXPECT(barrier, bytes)                                                                     \
	asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),      \
	             "r"(bytes)                                                                    \
	             : "memory")
#define COPY(to, from, bytes, barrier)                                                             \
	asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "          \
	             "[%0], [%1], %2, [%3];" ::"r"(to),                                            \
	             "l"(from), "r"(bytes), "r"(barrier)                                           \
	             : "memory")
#define TRY_WAIT(done, barrier, phase)                                                             \
	asm volatile("{ .reg .pred p;\n"                                                           \
	             "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"                     \
	             "selp.u32 %0, 1, 0, p; }"                                                     \
	             : "=r"(done)                                                                  \
	             : "r"(barrier), "r"(phase)                                                    \
	             : "memory")

/* DEPTH copies are under way while the block adds up the oldest. */
template <int SLOT>
__global__ void tma(const float *in, float *out, u32 mask, int depth, int n, int side)
{
	extern __shared__ __align__(128) float stages[];
	__shared__ __align__(8) uint64_t barriers[DEPTH_MAX];
	u32 thread = threadIdx.x, stage0 = shared_address(stages), barrier0 = shared_address(barriers);
	if (thread == 0) {
		for (int k = 0; k < DEPTH_MAX; ++k)
			asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier0 + 8 * k)
			             : "memory");
		asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
		asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	}
	__syncthreads();
	float sum = 0;
	u32 in_stage = 0, out_stage = 0, phase = 0, random = blockIdx.x * 2654435761u;
#pragma unroll 1
	for (int i = 0; i < n + depth - 1; ++i) {
		if (thread == 0 && i < n) {
			random = random * 1664525u + 1013904223u;
			const float *from = in + (size_t)((random >> 8) & mask) * COPY_WORDS;
			u32 to = stage0 + in_stage * COPY_BYTES, barrier = barrier0 + in_stage * 8;
			EXPECT(barrier, COPY_BYTES);
			COPY(to, from, COPY_BYTES, barrier); // tma: cause T
		}
		in_stage = in_stage + 1 == depth ? 0 : in_stage + 1;
		if (i < depth - 1)
			continue;
		u32 done = 0;
		while (!done)                                              // tma: stalls
			TRY_WAIT(done, barrier0 + out_stage * 8, phase);   // tma: stalls
		sum += stages[out_stage * COPY_WORDS + thread];            // tma: stalls
		__syncthreads();
		if (++out_stage == depth) {
			out_stage = 0;
			phase ^= 1;
		}
	}
	out[blockIdx.x * blockDim.x + thread] = sum;
	PLACEBO(side, out) // tma: placebo
}

#define OPERANDS                                                                                   \
	"+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]), "+f"(x[4]), "+f"(x[5]), "+f"(x[6]),        \
		"+f"(x[7]), "+f"(x[8]), "+f"(x[9]), "+f"(x[10]), "+f"(x[11]), "+f"(x[12]),         \
		"+f"(x[13]), "+f"(x[14]), "+f"(x[15]), "+f"(x[16]), "+f"(x[17]), "+f"(x[18]),      \
		"+f"(x[19]), "+f"(x[20]), "+f"(x[21]), "+f"(x[22]), "+f"(x[23]), "+f"(x[24]),      \
		"+f"(x[25]), "+f"(x[26]), "+f"(x[27]), "+f"(x[28]), "+f"(x[29]), "+f"(x[30]),      \
		"+f"(x[31])
/* x (64 × 64) += a (64 × 16) b (16 × 64) */
#define PRODUCT(a, b)                                                                              \
	asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "                         \
	             "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "     \
	             "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, " \
	             "%31}, %32, %33, 1, 1, 1, 0, 0;"                                              \
	             : OPERANDS                                                                    \
	             : "l"(a), "l"(b)                                                              \
	             : "memory")
#define FENCE() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT() asm volatile("wgmma.wait_group.sync.aligned 0;" : OPERANDS::"memory")

/* A tile without swizzling: blocks of 8 rows × 16 bytes, 128 bytes apart along K, 256 along M. */
static __device__ uint64_t tile(u32 address)
{
	return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(128 >> 4) << 16 |
	       (uint64_t)(256 >> 4) << 32;
}

/* A group of PRODUCTS matrix products, then a wait for all of it. */
template <int SLOT> __global__ void __launch_bounds__(128) hgmma(float *out, int products, int n, int side)
{
	__shared__ __align__(128) unsigned char tiles[2][64 * 16 * 2];
	for (int i = threadIdx.x; i < (int)sizeof(tiles) / 4; i += blockDim.x)
		((u32 *)tiles)[i] = 0;
	asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
	__syncthreads();
	uint64_t a = tile(shared_address(tiles[0])), b = tile(shared_address(tiles[1]));
	float x[32], sum = 0;
	for (int k = 0; k < 32; ++k)
		x[k] = 0;
#pragma unroll 1
	for (int i = 0; i < n; ++i) {
		FENCE();
#pragma unroll 1
		for (int k = 0; k < products; ++k) // hgmma: cause H
			PRODUCT(a, b);             // hgmma: cause H
		COMMIT();
		WAIT(); // hgmma: stalls
		sum += x[0] + x[31];
	}
	for (int k = 1; k < 31; ++k)
		sum += x[k];
	out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
	PLACEBO(side, out) // hgmma: placebo
}

static decltype(&tma<0>) const tma_slots[SLOT_COUNT] = SLOTS(tma);
static decltype(&hgmma<0>) const hgmma_slots[SLOT_COUNT] = SLOTS(hgmma);

static void add_cases(kit &kit)
{
	const unsigned sm = kit.multiprocessors;
	const int side = 1500;
	const u32 tiles = (1u << 15) - 1; /* of 256 MB */
	float *in = device_array<float>((size_t)COPY_WORDS << 15);
	float *out = device_array<float>(1 << 20);

	int n = 1500;
	shape size = { sm, 128, COPY_BYTES * DEPTH_MAX };
	kit.arm("tma", "base", tma_slots, size, n, in, out, tiles, 1, n, 0);
	kit.arm("tma", "T", tma_slots, size, n, in, out, tiles, DEPTH_MAX, n, 0);
	kit.arm("tma", "again", tma_slots, size, n, in, out, tiles, 1, n, 0);
	kit.arm("tma", "placebo", tma_slots, size, n, in, out, tiles, 1, n, side);

	n = 2000;
	size = { sm, 128, 0 };
	kit.arm("hgmma", "base", hgmma_slots, size, n, out, 32, n, 0);
	kit.arm("hgmma", "H", hgmma_slots, size, n, out, 1, n, 0);
	kit.arm("hgmma", "again", hgmma_slots, size, n, out, 32, n, 0);
	kit.arm("hgmma", "placebo", hgmma_slots, size, n, out, 32, n, side);
}

int main(int argc, char **argv)
{
	return run_cases(argc, argv, add_cases);
}
