/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that allocates as PyTorch's do: it has the real functions and calls them through its
 * procedure linkage table, so that whoever stands in front of it is called first. The real ones
 * keep what they were given.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct device {
	int8_t kind, index;
};

void *alloc_cpu(size_t bytes) __asm__("_ZN3c109alloc_cpuEm");
void free_cpu(void *address) __asm__("_ZN3c108free_cpuEPv");
void report(void *address, int64_t bytes, size_t allocated, size_t reserved,
            struct device device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void report_signed(
	void *address, int64_t bytes, int64_t allocated, int64_t reserved,
	struct device device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE");

/* What reached the real functions. */
struct seen {
	int64_t calls, address, bytes, allocated, reserved, kind, index;
};
struct seen standin_seen;

static void
see(const void *address, int64_t bytes, uint64_t allocated, uint64_t reserved, struct device device)
{
	standin_seen = (struct seen){
		standin_seen.calls + 1, (intptr_t)address, bytes,       (int64_t)allocated,
		(int64_t)reserved,      device.kind,       device.index
	};
}

void *
alloc_cpu(size_t bytes)
{
	see(NULL, (int64_t)bytes, 0, 0, (struct device){ 0, -1 });
	return malloc(bytes);
}

void
free_cpu(void *address)
{
	see(address, -1, 0, 0, (struct device){ 0, -1 });
	free(address);
}

void
report(void *address, int64_t bytes, size_t allocated, size_t reserved, struct device device)
{
	see(address, bytes, allocated, reserved, device);
}

void
report_signed(void *address, int64_t bytes, int64_t allocated, int64_t reserved,
              struct device device)
{
	see(address, bytes, (uint64_t)allocated, (uint64_t)reserved, device);
}

/* ---- what the test calls ---- */

void
standin_report(int is_signed, int64_t address, int64_t bytes, int64_t allocated, int64_t reserved,
               int kind, int index)
{
	struct device device = { (int8_t)kind, (int8_t)index };
	if (is_signed)
		report_signed((void *)(intptr_t)address, bytes, allocated, reserved, device);
	else
		report((void *)(intptr_t)address, bytes, (size_t)allocated, (size_t)reserved,
		       device);
}

void *
standin_alloc(size_t bytes)
{
	return alloc_cpu(bytes);
}

void
standin_free(void *address)
{
	free_cpu(address);
}
