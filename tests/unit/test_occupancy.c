/* SPDX-License-Identifier: Apache-2.0 */
/* Theoretical occupancy against NVIDIA's own calculator, which comes as a header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cuda_occupancy.h>

#include "collect/gpu/cuda/runtime.h"

static const struct {
	int major, minor, threads, blocks, registers, shared, reserved, block_shared;
} chips[] = {
	{ 6, 0, 2048, 32, 65536, 65536, 0, 49152 },       /* P100 */
	{ 6, 1, 2048, 32, 65536, 98304, 0, 49152 },       /* GTX 1080 */
	{ 7, 0, 2048, 32, 65536, 98304, 0, 98304 },       /* V100 */
	{ 7, 5, 1024, 16, 65536, 65536, 0, 65536 },       /* T4 */
	{ 8, 0, 2048, 32, 65536, 167936, 1024, 166912 },  /* A100 */
	{ 8, 6, 1536, 16, 65536, 102400, 1024, 101376 },  /* A10 */
	{ 8, 9, 1536, 24, 65536, 102400, 1024, 101376 },  /* L40 */
	{ 9, 0, 2048, 32, 65536, 233472, 1024, 232448 },  /* H100, H200 */
	{ 10, 0, 2048, 32, 65536, 233472, 1024, 232448 }, /* B200 */
	{ 12, 0, 1536, 24, 65536, 102400, 1024, 101376 }, /* RTX 5090 */
};
#define CHIPS (sizeof chips / sizeof *chips)

static struct plumb_occupancy_limits
limits_of(size_t i)
{
	return (struct plumb_occupancy_limits){
		.major = (uint32_t)chips[i].major,
		.minor = (uint32_t)chips[i].minor,
		.warp = 32,
		.threads = (uint32_t)chips[i].threads,
		.blocks = (uint32_t)chips[i].blocks,
		.registers = (uint32_t)chips[i].registers,
		.shared = (uint32_t)chips[i].shared,
		.shared_reserved = (uint32_t)chips[i].reserved,
	};
}

/* What the calculator says, in parts per million; 0: it does not fit. */
static uint32_t
oracle(size_t i, int threads, int registers, size_t shared)
{
	cudaOccDeviceProp chip = {
		.computeMajor = chips[i].major,
		.computeMinor = chips[i].minor,
		.maxThreadsPerBlock = 1024,
		.maxThreadsPerMultiprocessor = chips[i].threads,
		.regsPerBlock = 65536,
		.regsPerMultiprocessor = chips[i].registers,
		.warpSize = 32,
		.sharedMemPerBlock = 49152,
		.sharedMemPerMultiprocessor = (size_t)chips[i].shared,
		.numSms = 1,
		.sharedMemPerBlockOptin = (size_t)chips[i].block_shared,
		.reservedSharedMemPerBlock = (size_t)chips[i].reserved,
	};
	cudaOccFuncAttributes kernel = {
		.maxThreadsPerBlock = 1024,
		.numRegs = registers,
		.maxDynamicSharedSizeBytes = (size_t)chips[i].block_shared,
		.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN,
	};
	cudaOccDeviceState state = { .carveoutConfig = 100 };
	cudaOccResult result;
	if (cudaOccMaxActiveBlocksPerMultiprocessor(&result, &chip, &kernel, &state, threads,
	                                            shared) != CUDA_OCC_SUCCESS)
		return 0;
	uint64_t warps =
		(uint64_t)result.activeBlocksPerMultiprocessor * (uint64_t)((threads + 31) / 32);
	return (uint32_t)(warps * 1000000 / (uint64_t)(chips[i].threads / 32));
}

static void
agrees_with_the_calculator(void **state)
{
	unsigned compared = 0;
	(void)state;
	for (size_t i = 0; i < CHIPS; i++) {
		struct plumb_occupancy_limits limits = limits_of(i);
		for (int threads = 1; threads <= 1024; threads += threads < 64 ? 31 : 32)
			for (int registers = 16; registers <= 255; registers += 7)
				for (size_t shared = 0; shared <= 98304; shared += 3072) {
					uint32_t expected = oracle(i, threads, registers, shared);
					if (!expected)
						continue;
					uint32_t ours = plumb_occupancy(&limits, (uint32_t)threads,
					                                (uint32_t)registers,
					                                (uint32_t)shared);
					if (ours != expected)
						fail_msg("%d.%d: %d threads, %d registers, %zu "
						         "bytes: %u, not %u",
						         chips[i].major, chips[i].minor, threads,
						         registers, shared, ours, expected);
					compared++;
				}
	}
	assert_true(compared > 100000);
}

static void
known_values(void **state)
{
	struct plumb_occupancy_limits h100 = limits_of(7), none = { 0 };
	(void)state;
	assert_int_equal(plumb_occupancy(&h100, 256, 32, 0), 1000000);
	assert_int_equal(plumb_occupancy(&h100, 256, 64, 0), 500000);
	assert_int_equal(plumb_occupancy(&h100, 1024, 255, 0), UINT32_MAX); /* cannot run */
	assert_int_equal(plumb_occupancy(&h100, 128, 168, 200000),
	                 62500); /* one block of 4 warps */
	assert_int_equal(plumb_occupancy(&h100, 0, 32, 0), UINT32_MAX);
	assert_int_equal(plumb_occupancy(&none, 256, 32, 0), UINT32_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_calculator),
		cmocka_unit_test(known_values),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
