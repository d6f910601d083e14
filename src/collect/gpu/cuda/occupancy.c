/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theoretical occupancy, from the rules of NVIDIA's occupancy calculator: how many blocks fit on a
 * multiprocessor by threads, blocks, registers (given out per warp) and shared memory.
 */
#include "collect/gpu/cuda/runtime.h"

static uint32_t
round_up(uint32_t number, uint32_t unit)
{
	return (number + unit - 1) / unit * unit;
}

static uint32_t
least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t
plumb_occupancy(const struct plumb_occupancy_limits *limits, uint32_t block_threads,
                uint32_t registers, uint32_t shared_bytes)
{
	enum { REGISTER_UNIT = 256 };
	if (!limits->warp || !limits->threads || !limits->blocks || !limits->registers ||
	    !limits->shared || !block_threads || limits->major < 5)
		return UINT32_MAX;
	uint32_t shared_unit = limits->major >= 8 ? 128 : 256;
	uint32_t warps_most = limits->threads / limits->warp;
	uint32_t warps = (block_threads + limits->warp - 1) / limits->warp;
	uint32_t blocks = least(warps_most / warps, limits->blocks);
	if (registers) {
		/* Each bank of registers serves its own warps. */
		uint32_t banks = limits->major == 6 && limits->minor == 0 ? 2 : 4;
		uint32_t per_warp = round_up(registers * limits->warp, REGISTER_UNIT);
		uint32_t per_bank = limits->registers / banks / per_warp;
		blocks = least(blocks, per_bank * banks / warps);
	}
	uint64_t shared = (uint64_t)shared_bytes + limits->shared_reserved;
	shared = (shared + shared_unit - 1) / shared_unit * shared_unit;
	if (shared)
		blocks = least(blocks, (uint32_t)(limits->shared / shared));
	if (!blocks)
		return UINT32_MAX; /* it ran, so a limit is not what we think */
	return (uint32_t)((uint64_t)blocks * warps * 1000000 / warps_most);
}
