/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that compute for so many ns of their thread's CPU time, for shares.py. Each adds up
 * what it took by its own readings of that clock: `spent_NAME`.
 */
#include <stdint.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

static int64_t
cpu_time(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* The clock is a system call: it is read once in a few microseconds. */
static APART int64_t
spin(int64_t ns)
{
	int64_t start = cpu_time(), now;
	volatile unsigned total = 0;
	do {
		for (unsigned i = 0; i < 2000; i++)
			total += i * i;
		now = cpu_time();
	} while (now - start < ns);
	return now - start;
}

/* A function is for one thread at a time. */
#define BURNER(name)                                                                               \
	int64_t spent_##name;                                                                      \
	APART void name(int64_t ns)                                                                \
	{                                                                                          \
		spent_##name += spin(ns);                                                          \
	}

BURNER(c_heavy)
BURNER(c_left)
BURNER(c_right)
BURNER(c_worker)
BURNER(c_helper)

/* Two functions in turn, far shorter than a sampling period. */
APART void
c_alternate(int64_t ns)
{
	for (int64_t start = cpu_time(); cpu_time() - start < ns;) {
		c_left(50000);
		c_right(20000);
	}
}
