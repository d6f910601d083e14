/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at the main thread of a running process as often as it can, as `plumb run` does ten times a
 * second, and prints the paths that it saw: "COUNT name line\tname line\t…", outermost first.
 *
 *	glimpses FILE.region SECONDS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "watch/place.h"

static double
seconds(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void
print_path(const struct plumb_region *region, plumb_id id)
{
	const struct plumb_record_node *node = plumb_region_at(region, id);
	if (node->parent) {
		print_path(region, node->parent);
		putchar('\t');
	}
	const struct plumb_record_string *name = plumb_region_at(region, node->name);
	printf("%.*s %u", (int)name->bytes, (const char *)(name + 1), node->line);
}

int
main(int argc, char **argv)
{
	struct stat status;
	int fd = argc == 3 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0 || fstat(fd, &status))
		return 2;
	/* A copy: what is written here stays here. */
	struct plumb_region_header *header =
		mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (header == MAP_FAILED)
		return 2;
	struct plumb_watch_tree tree = { .region.header = header,
		                         .size = (uint64_t)status.st_size };
	const struct plumb_record_thread *thread = NULL;
	for (plumb_id id = header->newest_thread; id; id = thread->before) {
		thread = plumb_region_at(&tree.region, id);
		if (thread->tid == header->pid)
			break;
	}
	struct plumb_watch_glimpser *glimpser = calloc(1, sizeof *glimpser);
	struct plumb_watch_python python = { 0 };
	uint32_t *counts = calloc((size_t)status.st_size / 8, sizeof *counts);
	if (!thread || !glimpser || !counts)
		return 2;
	double end = seconds(CLOCK_MONOTONIC) + atof(argv[2]),
	       cpu = seconds(CLOCK_THREAD_CPUTIME_ID);
	unsigned looks = 0;
	while (seconds(CLOCK_MONOTONIC) < end) {
		counts[plumb_watch_place_glimpse(glimpser, &python, &tree, thread)]++;
		looks++;
	}
	cpu = seconds(CLOCK_THREAD_CPUTIME_ID) - cpu;
	fprintf(stderr, "%u looks, %.1f us each, %u unknown\n", looks, cpu / looks * 1e6,
	        counts[0]);
	for (plumb_id id = 1; id < status.st_size / 8; id++) {
		if (!counts[id])
			continue;
		printf("%u\t", counts[id]);
		print_path(&tree.region, id);
		putchar('\n');
	}
	return 0;
}
