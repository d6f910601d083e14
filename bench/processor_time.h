/* SPDX-License-Identifier: Apache-2.0 */
/* Processor time of this process, in seconds. */
#ifndef PLUMB_BENCH_PROCESSOR_TIME_H
#define PLUMB_BENCH_PROCESSOR_TIME_H

#include <time.h>

static inline double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
