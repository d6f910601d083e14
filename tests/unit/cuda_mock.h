/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of the CUDA runtime against the stand-in drivers of tests/mock: programs with known
 * kernels, times and faults run under the real collector, libplumb.so, and their regions are read.
 *
 *	run_program(&run, "mock-program", "KEY=VALUE;…", "launch:_Z1av:1000 …");
 *	assert_int_equal(KERNEL("_Z1av", GPU_TIME).sum, 1000);
 *	finish(&run);
 *	…; return run_releases("…", tests, count);   // once for each set of CUPTI's headers
 */
#ifndef PLUMB_TESTS_CUDA_MOCK_H
#define PLUMB_TESTS_CUDA_MOCK_H

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/words.h"
#include "region/reader.h"

static const char *const releases[] = { "11.8", "12.1", "12.8", "13.0" };
#define RELEASES (sizeof releases / sizeof *releases)

static char build[4096];    /* where the libraries are */
static const char *release; /* of the test that runs */

struct run {
	int status; /* exit code, or 128 + signal */
	char output[4096];
	char folder[64];
	struct plumb_region_reader region;
	bool recorded; /* there was a region */
};

/* ---- running ---- */

static inline void
child(const struct run *run, const char *program, const char *environment, char **arguments,
      int out)
{
	char path[8192], text[8192];
	snprintf(path, sizeof path, "%s/mock/%s/%s", build, release, program);
	arguments[0] = path;
	dup2(out, 1);
	setenv("PLUMB_FOLDER", run->folder, 1);
	setenv("PLUMB_LIMIT", "33554432", 1);
	setenv("PLUMB_FLUSH_MS", "20", 1);
	setenv("PLUMB_LAYERS", "7", 1); /* PLUMB_LAYERS_LIGHT: no native frames */
	snprintf(text, sizeof text, "%s/libplumb.so", build);
	setenv("CUDA_INJECTION64_PATH", text, 1);
	/* A sanitizer's runtime has to come first. */
	const char *first = getenv("PLUMB_TEST_PRELOAD");
	snprintf(text, sizeof text, "%s%s%s/libplumb.so", first ? first : "", first ? " " : "",
	         build);
	setenv("LD_PRELOAD", text, 1);
	/* KEY=VALUE;KEY=VALUE */
	snprintf(text, sizeof text, "%s", environment);
	for (char *item = strtok(text, ";"); item; item = strtok(NULL, ";"))
		putenv(strdup(item));
	execv(path, arguments);
	_exit(127);
}

static inline void
open_region(struct run *run)
{
	struct plumb_error error;
	char path[512];
	DIR *folder = opendir(run->folder);
	assert_non_null(folder);
	struct dirent *entry;
	while ((entry = readdir(folder))) {
		if (!strstr(entry->d_name, PLUMB_REGION_SUFFIX))
			continue;
		assert_false(run->recorded); /* one process, one region */
		snprintf(path, sizeof path, "%s/%s", run->folder, entry->d_name);
		if (plumb_region_open(&run->region, path, &error))
			fail_msg("%s", error.message);
		unlink(path);
		run->recorded = true;
	}
	closedir(folder);
	rmdir(run->folder);
}

/* Runs PROGRAM with ACTIONS (split at spaces). */
static inline void
run_program(struct run *run, const char *program, const char *environment, const char *actions)
{
	char *arguments[64] = { NULL }, text[4096];
	int pipes[2], count = 1;
	memset(run, 0, sizeof *run);
	strcpy(run->folder, "/tmp/plumb-mock-XXXXXX");
	assert_non_null(mkdtemp(run->folder));
	snprintf(text, sizeof text, "%s", actions);
	for (char *action = strtok(text, " "); action; action = strtok(NULL, " "))
		arguments[count++] = action;
	assert_int_equal(pipe(pipes), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		child(run, program, environment, arguments, pipes[1]);
	close(pipes[1]);
	size_t have = 0;
	ssize_t got;
	while ((got = read(pipes[0], run->output + have, sizeof run->output - 1 - have)) > 0)
		have += (size_t)got;
	close(pipes[0]);
	waitpid(pid, &run->status, 0);
	run->status =
		WIFEXITED(run->status) ? WEXITSTATUS(run->status) : 128 + WTERMSIG(run->status);
	open_region(run);
}

static inline void
finish(struct run *run)
{
	if (run->recorded)
		plumb_region_reader_close(&run->region);
}

/* ---- reading ---- */

static inline const struct plumb_record *
next_of(const struct run *run, uint64_t *cursor, enum plumb_record_type type)
{
	const struct plumb_record *record;
	while ((record = plumb_region_next(&run->region, cursor)))
		if (record->type == type)
			return record;
	return NULL;
}

static inline bool
is_text(const struct run *run, plumb_id id, const char *text)
{
	size_t bytes;
	const char *have = plumb_region_string(&run->region, id, &bytes);
	return have && bytes == strlen(text) && !memcmp(have, text, bytes);
}

static inline uint64_t
ledger(const struct run *run, enum plumb_source source, enum plumb_fate fate)
{
	uint64_t cursor = 0, sum = 0;
	const struct plumb_record_ledger *row;
	while ((row = (const void *)next_of(run, &cursor, PLUMB_RECORD_LEDGER)))
		if (row->source == source && row->fate == fate)
			sum += row->count;
	return sum;
}

struct stat_of {
	int64_t sum, min, max;
	uint64_t count, nodes;
};

/* METRIC over all nodes named NAME of KIND whose parent is named UNDER (NULL: any). */
static inline struct stat_of
metric(const struct run *run, enum plumb_frame_kind kind, const char *name, const char *under,
       enum plumb_metric which)
{
	struct stat_of all = { .min = INT64_MAX, .max = INT64_MIN };
	uint64_t cursor = 0;
	const struct plumb_record_value *value;
	while ((value = (const void *)next_of(run, &cursor, PLUMB_RECORD_VALUE))) {
		const struct plumb_record_node *node = plumb_region_get(
			&run->region, value->node, PLUMB_RECORD_NODE, sizeof *node);
		if (value->metric != which || !node || node->kind != kind ||
		    !is_text(run, node->name, name))
			continue;
		const struct plumb_record_node *parent = plumb_region_get(
			&run->region, node->parent, PLUMB_RECORD_NODE, sizeof *node);
		if (under && (!parent || !is_text(run, parent->name, under)))
			continue;
		all.sum += value->sum;
		all.count += value->count;
		all.nodes++;
		if (value->min < all.min)
			all.min = value->min;
		if (value->max > all.max)
			all.max = value->max;
	}
	return all;
}

#define KERNEL(name, which)                                                                        \
	metric(&run, PLUMB_FRAME_KERNEL, name, "cuLaunchKernel", PLUMB_METRIC_##which)
#define API(name, which) metric(&run, PLUMB_FRAME_GPU_API, name, NULL, PLUMB_METRIC_##which)
#define LEDGER(source, fate) ledger(&run, PLUMB_SOURCE_##source, PLUMB_FATE_##fate)

static inline const struct plumb_record_device_total *
total(const struct run *run, unsigned device)
{
	uint64_t cursor = 0;
	const struct plumb_record_device_total *record;
	while ((record = (const void *)next_of(run, &cursor, PLUMB_RECORD_DEVICE_TOTAL))) {
		const struct plumb_record_device *owner = plumb_region_get(
			&run->region, record->device, PLUMB_RECORD_DEVICE, sizeof *owner);
		if (owner && owner->ordinal == device)
			return record;
	}
	return NULL;
}

static inline uint64_t
busy(const struct plumb_record_device_total *record)
{
	uint64_t sum = record->busy_ns;
	for (uint64_t i = 0; i < record->open_count; i++)
		sum += record->open[i].end - record->open[i].start;
	return sum;
}

/* The text of environment row KEY into TEXT; false: there is none. */
static inline bool
environment(const struct run *run, const char *key, char *text, size_t size)
{
	uint64_t cursor = 0;
	const struct plumb_record_environment *row;
	while ((row = (const void *)next_of(run, &cursor, PLUMB_RECORD_ENVIRONMENT))) {
		size_t bytes;
		const char *value = plumb_region_string(&run->region, row->value, &bytes);
		if (!is_text(run, row->key, key) || !value)
			continue;
		snprintf(text, size, "%.*s", (int)bytes, value);
		return true;
	}
	return false;
}

/* ---- the tests ---- */

/* Runs COUNT tests, called NAME together, for each set of headers. */
static inline int
run_releases(const char *name, const struct CMUnitTest *tests, size_t count)
{
	int failed = 0;
	ssize_t length = readlink("/proc/self/exe", build, sizeof build - 1);
	if (length <= 0)
		return 1;
	build[length] = '\0';
	/* BUILD/unit/test_cuda_mock… */
	for (int i = 0; i < 2; i++)
		*strrchr(build, '/') = '\0';
	for (size_t i = 0; i < RELEASES; i++) {
		release = releases[i];
		fprintf(stderr, "CUPTI of CUDA %s\n", release);
		failed += _cmocka_run_group_tests(name, tests, count, NULL, NULL);
	}
	return failed ? 1 : 0;
}

#endif
