/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of regions: one file in a folder of the test's own (`setup`, `teardown`), written,
 * read, and used by children whose exit code is the test's result.
 */
#ifndef PLUMB_TESTS_REGION_FILE_H
#define PLUMB_TESTS_REGION_FILE_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "region/reader.h"
#include "region/writer.h"

#define SKIPPED 77
#define CHUNK_ROOM (PLUMB_CHUNK_SIZE - sizeof(struct plumb_chunk_header))

static char folder[64];
static char path[128];

static inline int
setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof folder, "/tmp/plumb-region-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof path, "%s/a.region", folder);
	return 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static inline void
create(struct plumb_region *region, struct plumb_arena *arena, uint64_t size)
{
	struct plumb_error error = { 0 };

	if (plumb_region_create(region, path, size, &error))
		fail_msg("%s", error.message);
	plumb_arena_init(arena, region);
}

static inline void
open_region(struct plumb_region_reader *reader)
{
	struct plumb_error error = { 0 };

	if (plumb_region_open(reader, path, &error))
		fail_msg("%s", error.message);
}

/* Runs BODY in a child and returns its exit code; a signal fails the test. */
static inline int
in_child(int (*body)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fail_msg("the child died of signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* In a child: says what is wrong and gives the line as the exit code. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__,           \
			        #condition);                                                       \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static inline void
check_child(int (*body)(void))
{
	int code = in_child(body);

	if (code == SKIPPED)
		skip();
	assert_int_equal(code, 0);
}

static inline unsigned
open_descriptors(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

#endif
