/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in libnvshmem_host: STANDIN_PES PEs, this one is STANDIN_PE. Heaps lie one behind the
 * other, one's own first, as NVSHMEM lays them out. Nothing is initialised or exchanged.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define HEAP 0x7f8000000000ull /* tests/mock/traffic.c has it too */
#define HEAP_BYTES 0x100000ull

EXPORT int nvshmem_my_pe(void);
EXPORT int nvshmem_n_pes(void);
EXPORT void *nvshmem_malloc(size_t bytes);
EXPORT void *nvshmem_calloc(size_t count, size_t bytes);
EXPORT void *nvshmem_align(size_t alignment, size_t bytes);
EXPORT void nvshmem_free(void *address);
EXPORT void *nvshmem_ptr(const void *address, int pe);

static uint64_t used;

static int
number_of(const char *name, int otherwise)
{
	const char *text = getenv(name);
	return text ? atoi(text) : otherwise;
}

int
nvshmem_my_pe(void)
{
	return number_of("STANDIN_PE", 0);
}

int
nvshmem_n_pes(void)
{
	return number_of("STANDIN_PES", 1);
}

void *
nvshmem_malloc(size_t bytes)
{
	return nvshmem_align(256, bytes);
}

void *
nvshmem_calloc(size_t count, size_t bytes)
{
	return nvshmem_align(256, count * bytes);
}

void *
nvshmem_align(size_t alignment, size_t bytes)
{
	uint64_t at = (used + alignment - 1) / alignment * alignment;
	if (!bytes || at + bytes > HEAP_BYTES)
		return NULL;
	used = at + bytes;
	return (void *)(uintptr_t)(HEAP + at);
}

void
nvshmem_free(void *address)
{
	(void)address;
}

void *
nvshmem_ptr(const void *address, int pe)
{
	int all = nvshmem_n_pes(), behind = (pe - nvshmem_my_pe() + all) % all;
	return (char *)(uintptr_t)address + HEAP_BYTES * (uint64_t)behind;
}
