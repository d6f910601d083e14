/* SPDX-License-Identifier: Apache-2.0 */
/* The time of CLOCK_MONOTONIC, which only goes forward. */
#ifndef PLUMB_BASE_CLOCK_H
#define PLUMB_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t
plumb_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static inline int64_t
plumb_clock_ms(void)
{
	return (int64_t)(plumb_clock_ns() / 1000000);
}

#endif
