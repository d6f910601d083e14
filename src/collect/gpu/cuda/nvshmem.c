/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVSHMEM: what nvshmem_malloc and its like allocate is an object of this process, and what the
 * same call of each other PE allocated, which this one reaches, is memory of another process there.
 *
 * NVSHMEM maps the heaps of all PEs in one piece each, so the driver's calls say nothing of what is
 * in them, and its device functions are inlined, so there is no call to see. But the host function
 * nvshmem_ptr says where the memory of each PE is, in every version. The calls that allocate are
 * collective: all PEs make them in the same order. So the number of a call, with the PE, is a key
 * by which settle finds the process that owns the memory.
 *
 * What is in a heap beside such allocations (NVSHMEM's own flags) is memory that is not known from
 * the first of them on.
 */
#include <string.h>

#include "base/hash.h"
#include "collect/gpu/cuda/interpose.h"
#include "collect/gpu/cuda/runtime.h"
#include "collect/object.h"
#include "collect/process.h"
#include "collect/real.h"

#define LIBRARY "libnvshmem_host.so"
#define PES_MOST 512 /* further ones have no windows */

PLUMB_EXPORT void *nvshmem_malloc(size_t bytes);
PLUMB_EXPORT void *nvshmem_calloc(size_t count, size_t bytes);
PLUMB_EXPORT void *nvshmem_align(size_t alignment, size_t bytes);
PLUMB_EXPORT void nvshmem_free(void *address);

#define REAL(name) { .symbol = #name, .library = LIBRARY, .ours = (void *)name }
static struct plumb_real real_malloc = REAL(nvshmem_malloc), real_calloc = REAL(nvshmem_calloc),
			 real_align = REAL(nvshmem_align), real_free = REAL(nvshmem_free);
/* Which we only call. */
static struct plumb_real real_ptr = { .symbol = "nvshmem_ptr", .library = LIBRARY },
			 real_my_pe = { .symbol = "nvshmem_my_pe", .library = LIBRARY },
			 real_n_pes = { .symbol = "nvshmem_n_pes", .library = LIBRARY };

static const struct {
	const char *name;
	void *function;
} functions[] = {
	{ "nvshmem_malloc", (void *)nvshmem_malloc },
	{ "nvshmem_calloc", (void *)nvshmem_calloc },
	{ "nvshmem_align", (void *)nvshmem_align },
	{ "nvshmem_free", (void *)nvshmem_free },
};

void *
plumb_nvshmem_interpose(const char *symbol)
{
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(symbol, functions[i].name))
			return plumb_process_wanted() ? functions[i].function : NULL;
	return NULL;
}

/* ---- windows ---- */

struct window {
	uint64_t address;
	uint32_t ordinal;
	int pe;
};

/* Whose memory it is: as the driver says, else as it was mapped, else as before: a PE has one
 * device. */
static uint32_t
owner_of(uint64_t address, int pe)
{
	static _Atomic uint32_t known[PES_MOST]; /* ordinal + 1 */
	_Atomic uint32_t *its = &known[(unsigned)pe % PES_MOST];
	struct plumb_object_place place = { .kind = 0 };
	int ordinal = -1;
	if (plumb_driver.cuPointerGetAttribute &&
	    plumb_driver.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
	                                       address) == CUDA_SUCCESS &&
	    ordinal >= 0)
		return (uint32_t)ordinal;
	plumb_allocation_at(address, &place);
	if (place.kind)
		atomic_store_explicit(its, place.ordinal + 1, memory_order_relaxed);
	return atomic_load_explicit(its, memory_order_relaxed) - 1; /* 0: PLUMB_HOST_ORDINAL */
}

/* Where the memory at ADDRESS of this PE is on all PEs that it reaches; this one comes first. */
static int
find_windows(void *address, const void *caller, struct window *windows)
{
	void *(*ptr)(const void *, int) =
		(void *(*)(const void *, int))plumb_real_function(&real_ptr, caller);
	int (*my_pe)(void) = (int (*)(void))plumb_real_function(&real_my_pe, caller);
	int (*n_pes)(void) = (int (*)(void))plumb_real_function(&real_n_pes, caller);
	if (!ptr || !my_pe || !n_pes)
		return 0;
	int me = my_pe(), all = n_pes(), count = 1;
	windows[0] = (struct window){ (uintptr_t)address, 0, me };
	for (int pe = 0; pe < all && count < PES_MOST; pe++) {
		void *there = pe == me ? NULL : ptr(address, pe);
		if (there && there != address)
			windows[count++] = (struct window){ (uintptr_t)there, 0, pe };
	}
	return count;
}

/* The same in the process that owns the memory, and in those that reach it. */
static uint64_t
key_of(uint64_t call, int pe)
{
	uint64_t parts[] = { 0x6d656d687376ull, call, (uint64_t)pe };
	return plumb_hash_bytes(parts, sizeof parts) | 1;
}

/* A collective call of this process gave BYTES bytes at ADDRESS. */
static void
allocated(void *address, size_t bytes, const void *caller)
{
	static _Atomic uint64_t calls;
	struct window windows[PES_MOST];
	uint64_t call = atomic_fetch_add(&calls, 1);
	int count;
	if (!plumb_traffic_wanted || !address || !bytes)
		return;
	count = find_windows(address, caller, windows);
	for (int i = 0; i < count; i++)
		windows[i].ordinal = owner_of(windows[i].address, windows[i].pe);
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	if (!thread)
		return;
	for (int i = 0; i < count; i++)
		plumb_object_allocated(thread, windows[i].ordinal,
		                       i ? PLUMB_OBJECT_IMPORTED : PLUMB_OBJECT_DEVICE,
		                       windows[i].address, bytes, key_of(call, windows[i].pe));
	plumb_leave(thread);
}

static void
about_to_free(void *address, const void *caller)
{
	struct window windows[PES_MOST];
	int count = plumb_traffic_wanted && address ? find_windows(address, caller, windows) : 0;
	struct plumb_thread *thread = count ? plumb_enter_paused(PLUMB_CALLBACK_GPU) : NULL;
	if (!thread)
		return;
	for (int i = 0; i < count; i++)
		plumb_object_freed(thread, windows[i].address);
	plumb_leave(thread);
}

/* ---- the functions ---- */

void *
nvshmem_malloc(size_t bytes)
{
	const void *caller = __builtin_return_address(0);
	void *(*real)(size_t) = (void *(*)(size_t))plumb_real_function(&real_malloc, caller);
	void *address = real ? real(bytes) : NULL;
	allocated(address, bytes, caller);
	return address;
}

void *
nvshmem_calloc(size_t count, size_t bytes)
{
	const void *caller = __builtin_return_address(0);
	void *(*real)(size_t, size_t) =
		(void *(*)(size_t, size_t))plumb_real_function(&real_calloc, caller);
	void *address = real ? real(count, bytes) : NULL;
	allocated(address, count * bytes, caller);
	return address;
}

void *
nvshmem_align(size_t alignment, size_t bytes)
{
	const void *caller = __builtin_return_address(0);
	void *(*real)(size_t, size_t) =
		(void *(*)(size_t, size_t))plumb_real_function(&real_align, caller);
	void *address = real ? real(alignment, bytes) : NULL;
	allocated(address, bytes, caller);
	return address;
}

void
nvshmem_free(void *address)
{
	const void *caller = __builtin_return_address(0);
	void (*real)(void *) = (void (*)(void *))plumb_real_function(&real_free, caller);
	about_to_free(address, caller);
	if (real)
		real(address);
}
