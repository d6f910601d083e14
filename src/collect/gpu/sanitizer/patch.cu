/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the Compute Sanitizer calls before instructions that access global memory. It has 24
 * registers, and it is called for every access, so the way out for the device's own memory comes
 * first: two comparisons. All else is in a function of its own, so that this way saves no register.
 *
 * Built with nvcc --fatbin --compile-as-tools-patch: scripts/patches.sh.
 */
#include "counting.h"

#define PATCH extern "C" __device__ __noinline__ int

/* Beside the sanitizer's flags: the access is a thread's copy into shared memory. */
#define ASYNC_COPY 0x10000u

/* Of lanes whose address is in no window of the device. Its parameters are those of the patch in
 * their order, so that nothing moves. */
static __device__ __noinline__ void
count_foreign(const struct plumb_counting *counting, plumb_u64 pc, plumb_u64 address,
              plumb_u32 width, plumb_u32 flags)
{
	plumb_u32 kind =
		flags == ASYNC_COPY ? PLUMB_COUNTING_ASYNC_COPY : plumb_counting_kind(flags);
	/* Generic instructions reach shared and local memory too. */
	if (kind && !__isShared((const void *)address) && !__isLocal((const void *)address))
		plumb_counting_warp(counting, pc, address, __activemask(), kind, width);
}

PATCH
plumb_patch_global(const struct plumb_counting *counting, plumb_u64 pc, plumb_u64 address,
                   plumb_u32 width, plumb_u32 flags, const void *)
{
	if (counting && !plumb_counting_is_own(counting, address))
		count_foreign(counting, pc, address, width, flags);
	return 0;
}

/* A thread's own copy into shared memory (LDGSTS). Without a source it fills with zeros. */
PATCH
plumb_patch_async_copy(const struct plumb_counting *counting, plumb_u64 pc, plumb_u64 address,
                       plumb_u32, plumb_u32 width)
{
	if (counting && address && !plumb_counting_is_own(counting, address))
		count_foreign(counting, pc, address, width, ASYNC_COPY);
	return 0;
}

/* Of bulk copies, all lanes that execute it have the same parameters. They count once. The low 16
 * bits of DATA are blocks of 16 bytes. */
static __device__ __noinline__ void
count_bulk(const struct plumb_counting *counting, plumb_u64 pc, plumb_u64 address, plumb_u32 kind,
           plumb_u32 data)
{
	PLUMB_LANES_ONE(__activemask())
	{
		plumb_counting_bulk(counting, pc, address, kind, (plumb_u64)(data & 0xffff) * 16);
	}
}

PATCH
plumb_patch_bulk_load(const struct plumb_counting *counting, plumb_u64 pc, plumb_u64 address,
                      plumb_u32, plumb_u32, plumb_u32 data, plumb_u32)
{
	if (counting)
		count_bulk(counting, pc, address, PLUMB_COUNTING_BULK_LOAD, data);
	return 0;
}

PATCH
plumb_patch_bulk_store(const struct plumb_counting *counting, plumb_u64 pc, plumb_u64 address,
                       plumb_u32, plumb_u32 data)
{
	if (counting)
		count_bulk(counting, pc, address, PLUMB_COUNTING_BULK_STORE, data);
	return 0;
}

PATCH
plumb_patch_bulk_reduction(const struct plumb_counting *counting, plumb_u64 pc, plumb_u64 address,
                           plumb_u32, plumb_u32 data)
{
	if (counting)
		count_bulk(counting, pc, address, PLUMB_COUNTING_BULK_REDUCTION, data);
	return 0;
}
