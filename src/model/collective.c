/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's kernels have been called
 *
 *   ncclDevKernel_AllReduce_Sum_f32_RING_LL           (2.19 and newer, and RCCL)
 *   ncclSymDevKernel_AllReduce_AGxLL_R_sum_f32        (symmetric memory: 2.27; ncclSymk… later)
 *   ncclKernel_AllReduce_RING_LL_Sum_float            (to 2.18)
 *   ncclAllReduceRingLLKernel_sum_f32                 (to 2.7)
 *   ncclDevKernel_Generic, ncclDevKernel_Generic_4    (any operation; RCCL's are all so)
 *
 * so what is looked for is the name of an operation anywhere in one that begins with "nccl" and has
 * "Kernel" in it. A kernel may run several operations that were grouped; its name is that of the
 * first, and to 2.13 not even that.
 */
#include "model/collective.h"

#include <string.h>

/* Of two that begin at one place the longer stands first. */
static const char *const operations[] = {
	"AllReduce", "AllGather", "ReduceScatter", "Reduce", "Broadcast",
	"SendRecv",  "AlltoAll",  "Scatter",       "Gather",
};

/* Finds the identifier in a name such as _Z12name…: its start, and its length. */
static const char *
find_identifier(const char *name, size_t *length)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
	size_t number = 0, whole;

	*length = strspn(name, letters);
	if (strncmp(name, "_Z", 2))
		return name;
	for (name += 2; *name >= '0' && *name <= '9' && number < 1000000; name++)
		number = number * 10 + (size_t)(*name - '0');
	whole = strnlen(name, number);
	*length = whole;
	return name;
}

const char *
plumb_collective_name(const char *kernel)
{
	size_t length;
	const char *name = find_identifier(kernel, &length);

	if (length < 4 || memcmp(name, "nccl", 4) || !memmem(name, length, "Kernel", 6))
		return NULL;
	for (size_t at = 4; at < length; at++)
		for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
			if (!strncmp(name + at, operations[i], strlen(operations[i])) &&
			    at + strlen(operations[i]) <= length)
				return operations[i];
	return "Generic";
}
