/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long it takes to find the loop in ten million operations, in time of the processor, and how
 * much memory:
 *
 *	make BUILD=build build/tool.a
 *	gcc -std=gnu17 -O2 -D_GNU_SOURCE -Isrc bench/iters.c build/tool.a -lm -o build/bench_iters
 *	build/bench_iters
 *
 * A round has 1462 operations of 67 names with an inner loop of 30, as ResNet-50 has; the second
 * text has 0.5 % of its operations replaced.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "analyze/pattern/period.h"

#define COUNT 10000000
#define PERIOD 1462
#define NAMES 67

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int
main(void)
{
	int32_t *text = malloc(COUNT * sizeof *text);

	for (int noise = 0; text && noise < 2; noise++) {
		struct plumb_loop loop;
		struct rusage usage;

		srand(3);
		for (int32_t i = 0; i < COUNT; i++)
			text[i] = i >= PERIOD                    ? text[i - PERIOD]
			          : i >= 230 && i % PERIOD < 700 ? text[i - 30]
			                                         : rand() % NAMES;
		for (int32_t i = 0; noise && i < COUNT / 200; i++)
			text[rand() % COUNT] = rand() % NAMES;
		double start = now();
		int found = plumb_loop_find(text, COUNT, NAMES, 0.5, &loop);
		double took = now() - start;
		getrusage(RUSAGE_SELF, &usage);
		printf("%-10s period %d, %u rounds, coverage %.4f: %.2f s, %.1f bytes an "
		       "operation\n",
		       noise ? "0.5 %" : "exact", found > 0 ? loop.period : 0, loop.rounds.count,
		       loop.coverage, took, (double)usage.ru_maxrss * 1024 / COUNT);
		plumb_loop_free(&loop);
	}
	free(text);
	return 0;
}
