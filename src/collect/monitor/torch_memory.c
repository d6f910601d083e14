/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where PyTorch's memory comes from and goes to. Preloading puts us in front of libc10, which calls
 * these functions through its procedure linkage table:
 *
 *   c10::alloc_cpu, c10::free_cpu     what every tensor on the CPU lies in
 *   c10::reportMemoryUsageToProfiler  the caching allocators of GPUs tell each block that they hand
 *                                     out (bytes > 0) or take back (< 0), with their lock held,
 *                                     whether a profiler is active or not; so do tensors in shared
 *                                     memory and mapped files
 *
 * Each does what is wanted and goes on to the real function with all its arguments. A C++ exception
 * passes through our frame by its unwind table, as through any.
 */
#include <stdlib.h>

#include "collect/monitor/framework.h"
#include "collect/monitor/memory.h"
#include "collect/monitor/torch_memory.h"
#include "collect/real.h"

/* c10::Device is two bytes, passed in a register whose other bytes are anything. */
typedef uint32_t device_word;

/* Protected: our own pointers to them are to ours, whoever stands in front. */
#define INTERPOSED __attribute__((visibility("protected")))
#define REPORT_SYMBOL "_ZN3c1027reportMemoryUsageToProfiler"
INTERPOSED void *plumb_c10_alloc_cpu(size_t bytes) __asm__("_ZN3c109alloc_cpuEm");
INTERPOSED void plumb_c10_free_cpu(void *address) __asm__("_ZN3c108free_cpuEPv");
/* PyTorch 1.13 has its totals signed, 2 unsigned. */
INTERPOSED void
plumb_c10_report_signed(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
                        device_word device) __asm__(REPORT_SYMBOL "EPvlllNS_6DeviceE");
INTERPOSED void
plumb_c10_report(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
                 device_word device) __asm__(REPORT_SYMBOL "EPvlmmNS_6DeviceE");

static struct plumb_real real_alloc = { .symbol = "_ZN3c109alloc_cpuEm",
	                                .library = "libc10.so",
	                                .ours = (void *)plumb_c10_alloc_cpu };
static struct plumb_real real_free = { .symbol = "_ZN3c108free_cpuEPv",
	                               .library = "libc10.so",
	                               .ours = (void *)plumb_c10_free_cpu };
static struct plumb_real real_report_signed = { .symbol = REPORT_SYMBOL "EPvlllNS_6DeviceE",
	                                        .library = "libc10.so",
	                                        .ours = (void *)plumb_c10_report_signed };
static struct plumb_real real_report = { .symbol = REPORT_SYMBOL "EPvlmmNS_6DeviceE",
	                                 .library = "libc10.so",
	                                 .ours = (void *)plumb_c10_report };

/* ---- the CPU ---- */

static void
changed_on_cpu(void *address, size_t bytes, bool is_free)
{
	struct plumb_memory_change change = {
		.device_kind = PLUMB_MEMORY_CPU,
		.free = is_free,
		.address = (uintptr_t)address,
		.bytes = bytes,
		.allocated = PLUMB_POOL_UNTOLD,
		.reserved = PLUMB_POOL_UNTOLD,
	};
	plumb_memory_changed(&change);
}

void *
plumb_c10_alloc_cpu(size_t bytes)
{
	void *(*real)(size_t) =
		(void *(*)(size_t))plumb_real_function(&real_alloc, __builtin_return_address(0));
	if (plumb_unlikely(!real)) { /* nobody's but ours: what the real one promises */
		void *address = NULL;
		return bytes && !posix_memalign(&address, 64, bytes) ? address : NULL;
	}
	if (plumb_likely(!plumb_memory_is_wanted()))
		return real(bytes);
	void *address = real(bytes);
	if (address)
		changed_on_cpu(address, bytes, false);
	return address;
}

void
plumb_c10_free_cpu(void *address)
{
	void (*real)(void *) =
		(void (*)(void *))plumb_real_function(&real_free, __builtin_return_address(0));
	if (plumb_unlikely(!real)) {
		free(address);
		return;
	}
	if (plumb_memory_is_wanted() && address)
		changed_on_cpu(address, 0, true);
	real(address);
}

/* ---- what allocators report ---- */

static void
take_report(const void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
            device_word device)
{
	struct plumb_memory_change change = {
		.device_kind = device & 0xff,
		.device_index = device >> 8 & 0xff,
		.free = bytes < 0,
		.address = (uintptr_t)address,
		.bytes = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes,
		.allocated = allocated,
		.reserved = reserved,
	};
	if (change.device_kind == PLUMB_MEMORY_CPU) {
		change.device_index = 0;
		change.allocated = change.reserved = PLUMB_POOL_UNTOLD;
	}
	if (address && bytes)
		plumb_memory_changed(&change);
}

/* What libc10 itself reports of the CPU, while a profiler of PyTorch's is active, came through
 * alloc_cpu and free_cpu already. */
static inline bool
is_told_twice(const struct plumb_real *real, const void *caller, const void *function,
              device_word device)
{
	return (device & 0xff) == PLUMB_MEMORY_CPU &&
	       plumb_real_is_neighbour(real, caller, function);
}

typedef void (*report_function)(void *, int64_t, uint64_t, uint64_t, device_word);

static inline void
pass_report(struct plumb_real *real, const void *caller, void *address, int64_t bytes,
            uint64_t allocated, uint64_t reserved, device_word device)
{
	report_function function = (report_function)plumb_real_function(real, caller);
	if (plumb_memory_is_wanted() && !is_told_twice(real, caller, (void *)function, device))
		take_report(address, bytes, allocated, reserved, device);
	if (plumb_likely(function))
		function(address, bytes, allocated, reserved, device);
}

void
plumb_c10_report_signed(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
                        device_word device)
{
	pass_report(&real_report_signed, __builtin_return_address(0), address, bytes, allocated,
	            reserved, device);
}

void
plumb_c10_report(void *address, int64_t bytes, uint64_t allocated, uint64_t reserved,
                 device_word device)
{
	pass_report(&real_report, __builtin_return_address(0), address, bytes, allocated, reserved,
	            device);
}

/* ---- is it so? ---- */

/* NULL: allocations come through here; else why not. */
static const char *
find_refusal(void)
{
	/* Through the linker's eyes: a program may have a function of that name in front of us. */
	if (plumb_real_dlsym(NULL, real_alloc.symbol) != real_alloc.ours ||
	    plumb_real_dlsym(NULL, real_free.symbol) != real_free.ours)
		return "memory is not recorded: another library comes before the collector at "
		       "PyTorch's allocator; start the program with plumb run --memory, and leave "
		       "LD_PRELOAD as it is";
	if (!plumb_real_find(&real_alloc, NULL) || !plumb_real_find(&real_free, NULL))
		return "memory on the CPU is not recorded: this PyTorch's libc10 has no "
		       "c10::alloc_cpu";
	if (!plumb_real_find(&real_report, NULL) && !plumb_real_find(&real_report_signed, NULL))
		return "memory on GPUs is not recorded: this PyTorch's libc10 has no "
		       "c10::reportMemoryUsageToProfiler of a known form";
	return NULL;
}

void
plumb_torch_memory_describe(struct plumb_thread *thread)
{
	const char *why = plumb_collector_options()->memory ? find_refusal() : NULL;
	if (why)
		plumb_environment(thread, "memory.off", why);
}
