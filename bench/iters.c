/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long it takes to find the iterations of a profile of ten million kernels, in time of the
 * processor, and how much memory beside the profile:
 *
 *	make BUILD=build build/tool.a
 *	gcc -std=gnu17 -O2 -D_GNU_SOURCE -Isrc bench/iters.c build/tool.a -lm -o build/bench_iters
 *	build/bench_iters
 *
 * A round has 1462 kernels of 67 names with an inner loop of 30, as ResNet-50 has; in the second
 * profile 0.5 % of the kernels are others. The baseline is a sort of as many numbers in the same
 * run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analyze/iterations.h"
#include "processor_time.h"

#define COUNT 10000000u
#define PERIOD 1462u
#define NAMES 67u

static double
most_bytes(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_maxrss * 1024;
}

static int
by_number(const void *x, const void *y)
{
	const uint32_t *a = x, *b = y;

	return (*a > *b) - (*a < *b);
}

/* Context I + 1 is kernel I. */
static int
build(struct plumb_profile *profile, bool noise)
{
	static char names[NAMES][8];
	static const char *strings[NAMES];
	static struct plumb_frame frames[NAMES + 1];
	static struct plumb_context contexts[NAMES + 1];
	static struct plumb_track track = { .kind = PLUMB_TRACK_STREAM };
	static struct plumb_process process;
	static struct plumb_device device;
	struct plumb_span *spans = malloc(COUNT * sizeof *spans);

	if (!spans)
		return -1;
	frames[0] = (struct plumb_frame){ PLUMB_FRAME_ROOT, PLUMB_NONE, PLUMB_NONE, 0,
		                          PLUMB_NONE,       PLUMB_NONE, 0 };
	contexts[0] = (struct plumb_context){ PLUMB_NONE, 0, 0, NAMES, 0 };
	for (uint32_t i = 0; i < NAMES; i++) {
		snprintf(names[i], sizeof names[i], "k%u", i);
		strings[i] = names[i];
		frames[i + 1] = (struct plumb_frame){ PLUMB_FRAME_KERNEL, i,          PLUMB_NONE, 0,
			                              PLUMB_NONE,         PLUMB_NONE, 0 };
		contexts[i + 1] = (struct plumb_context){ 0, i + 1, 0, i + 1, 1 };
	}
	srand(3);
	for (uint32_t i = 0; i < COUNT; i++) {
		uint32_t context = i >= PERIOD                    ? spans[i - PERIOD].context
		                   : i >= 230 && i % PERIOD < 700 ? spans[i - 30].context
		                                                  : 1 + (uint32_t)rand() % NAMES;
		spans[i] =
			(struct plumb_span){ context, 0, 1000 * (int64_t)i, 1000 * (int64_t)i + 900,
			                     0,       0 };
	}
	for (uint32_t i = 0; noise && i < COUNT / 200; i++)
		spans[(uint32_t)rand() % COUNT].context = 1 + (uint32_t)rand() % NAMES;
	*profile = (struct plumb_profile){
		.strings = strings,
		.strings_count = NAMES,
		.frames = frames,
		.frames_count = NAMES + 1,
		.contexts = contexts,
		.contexts_count = NAMES + 1,
		.tracks = &track,
		.tracks_count = 1,
		.processes = &process,
		.processes_count = 1,
		.devices = &device,
		.devices_count = 1,
		.spans = spans,
		.spans_count = COUNT,
	};
	return 0;
}

static int
measure(bool noise)
{
	struct plumb_profile profile;
	struct plumb_iterations found;
	struct plumb_error error = { 0 };

	if (build(&profile, noise) < 0)
		return 1;
	double before = most_bytes(), start = now();
	if (plumb_iterations_find(&profile, NULL, &found, &error) < 0 ||
	    !found.tracks[0].level_count)
		return 1;
	double took = now() - start, bytes = most_bytes() - before;
	uint32_t *numbers = malloc(COUNT * sizeof *numbers);
	for (uint32_t i = 0; numbers && i < COUNT; i++)
		numbers[i] = (uint32_t)rand();
	start = now();
	if (numbers)
		qsort(numbers, COUNT, sizeof *numbers, by_number);
	double sorted = now() - start;
	const struct plumb_iteration_level *level = &found.tracks[0].levels[0];
	printf("%-10s period %u, %u iterations, coverage %.4f: %.2f s (%.2f of a "
	       "sort's %.2f s), %.1f bytes an operation\n",
	       noise ? "0.5 %" : "exact", level->period_ops, level->count, level->coverage, took,
	       took / sorted, sorted, bytes / COUNT);
	return 0;
}

int
main(void)
{
	int failed = 0;

	/* Each in a process of its own, for its memory. */
	for (int noise = 0; noise < 2; noise++) {
		int status = 1;
		fflush(stdout);
		pid_t child = fork();
		if (!child) {
			int code = measure(noise);
			fflush(stdout);
			_exit(code);
		}
		if (child < 0 || waitpid(child, &status, 0) < 0 || status)
			failed = 1;
	}
	if (failed)
		fputs("a measurement failed: not enough memory?\n", stderr);
	return failed;
}
