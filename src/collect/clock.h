/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time for the hot path. To read the processor's own counter costs half of clock_gettime, and an
 * operator needs two readings. plumb uses the counter only where the kernel itself trusts it: its
 * clock source is the TSC, or the architecture defines the counter, as AArch64 does. Elsewhere
 * ticks are CLOCK_MONOTONIC nanoseconds. Use ticks for durations only. Timestamps that plumb stores
 * come from plumb_clock_ns().
 */
#ifndef PLUMB_COLLECT_CLOCK_H
#define PLUMB_COLLECT_CLOCK_H

#include "collect/collector.h"

extern uint64_t plumb_tick_scale; /* ns per tick, 32.32 fixed point; 0: ticks are ns */

extern uint64_t plumb_clock_cost; /* ns that one plumb_clock_ns() takes */

/* Finds the scale and the cost; takes about a millisecond. Call once, before the first
 * plumb_ticks. */
void plumb_clock_calibrate(void);

/* CPU time of the calling thread, ns. A system call: 350 ns. */
static inline uint64_t
plumb_cpu_now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static inline uint64_t
plumb_ticks(void)
{
	if (plumb_unlikely(!plumb_tick_scale))
		return plumb_clock_ns();
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t ticks;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
#else
	return plumb_clock_ns();
#endif
}

/* The time at the kernel's last tick, which is at most 1 to 10 ms ago. Unlike the other clocks it
 * does not hold up the processor: 4 ns instead of 20 among other work. */
static inline uint64_t
plumb_clock_coarse_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Nanoseconds between two readings; 0 when they went backwards. */
static inline uint64_t
plumb_ticks_between(uint64_t start, uint64_t end)
{
	if (plumb_unlikely(end < start))
		return 0;
	if (plumb_unlikely(!plumb_tick_scale))
		return end - start;
	return (uint64_t)(((__uint128_t)(end - start) * plumb_tick_scale) >> 32);
}

#endif
