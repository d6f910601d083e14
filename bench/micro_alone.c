/* SPDX-License-Identifier: Apache-2.0 */
/* A program without Python: launches COUNT kernels on the stand-in driver, DEPTH calls deep, and
 * prints the thread's time for each in ns. See micro_alone.py. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "mock.h"

static __attribute__((noinline)) void
launch(int depth)
{
	if (depth)
		launch(depth - 1);
	else
		mock_launch("_Z4axpyPf", 1000);
	__asm__ volatile("");
}

static double
thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int
main(int count, char **arguments)
{
	int times = count > 1 ? atoi(arguments[1]) : 40000;
	int depth = count > 2 ? atoi(arguments[2]) : 10;
	double start;

	for (int i = 0; i < times / 10; i++)
		launch(depth);
	start = thread_ns();
	for (int i = 0; i < times; i++)
		launch(depth);
	printf("%.1f\n", (thread_ns() - start) / times);
	return 0;
}
