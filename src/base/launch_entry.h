/* SPDX-License-Identifier: Apache-2.0 */
/* A launch of work on a GPU in 64 bits: when it was, and a mark of what was launched. */
#ifndef PLUMB_BASE_LAUNCH_ENTRY_H
#define PLUMB_BASE_LAUNCH_ENTRY_H

#include <stdint.h>

/* An entry: the time since the first launch, in units of 16 ns (for three days), and a mark of what
 * was launched. The marks of one function are the same in one process, and two functions rarely
 * have the same. 0: not written. */
#define PLUMB_LAUNCH_MARK_BITS 20
#define PLUMB_LAUNCH_UNIT_BITS 4

static inline uint64_t
plumb_launch_entry(uint64_t ns, const void *function)
{
	uint64_t mark = ((uint64_t)(uintptr_t)function * UINT64_C(0x9e3779b97f4a7c15)) >>
	                (64 - PLUMB_LAUNCH_MARK_BITS);

	return ns >> PLUMB_LAUNCH_UNIT_BITS << PLUMB_LAUNCH_MARK_BITS | (mark ? mark : 1);
}

static inline uint64_t
plumb_launch_ns(uint64_t entry)
{
	return entry >> PLUMB_LAUNCH_MARK_BITS << PLUMB_LAUNCH_UNIT_BITS;
}

static inline uint32_t
plumb_launch_mark(uint64_t entry)
{
	return entry & ((1u << PLUMB_LAUNCH_MARK_BITS) - 1);
}

#endif
