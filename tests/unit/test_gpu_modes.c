/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU runtimes and modes: of several runtimes only those of the chosen mode start, pause and stop.
 * The table of runtimes is this test's own. Each test is a process, as a process has one mode.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/gpu/gpu.h"

/* Every mode but activity and off, such as that of a later runtime. */
#define OTHER_MODE ~(PLUMB_GPU_MODE(ACTIVITY) | PLUMB_GPU_MODE(OFF))

static char said[256]; /* what runtimes were told to do */
static bool is_ready, fails;

static void
say(const char *word)
{
	strcat(said, word);
	strcat(said, " ");
}

static int
start_a(struct plumb_error *error)
{
	say("start-a");
	return fails ? plumb_fail(error, PLUMB_ESYSTEM, "no a here") : 0;
}
static void
stop_a(void)
{
	say("stop-a");
}
static void
pause_a(bool paused)
{
	say(paused ? "pause-a" : "go-a");
}
static bool
renew_a(void)
{
	say("renew-a");
	return true;
}
static bool
ready(void)
{
	return is_ready;
}
static void
forked(void)
{
}

static int
start_b(struct plumb_error *error)
{
	(void)error;
	say("start-b");
	return 0;
}
static void
stop_b(void)
{
	say("stop-b");
}
static bool
renew_b(void)
{
	say("renew-b");
	return true;
}

static const struct plumb_gpu_runtime a = { "a",     "cuda",  PLUMB_GPU_MODE(ACTIVITY),
	                                    ready,   start_a, stop_a,
	                                    pause_a, renew_a, forked },
				      b = { "b",    "cuda", OTHER_MODE, ready, start_b,
	                                    stop_b, NULL,   renew_b,    forked },
				      rocm = { "rocm", "hip", OTHER_MODE, ready, start_b,
	                                       stop_b, NULL,  renew_b,    forked };
const struct plumb_gpu_runtime *const plumb_gpu_runtimes[PLUMB_GPU_RUNTIMES_MAX + 1] = { &a, &b,
	                                                                                 &rocm };

static bool
is_text(plumb_id id, const char *text)
{
	const struct plumb_record_string *string = plumb_region_at(plumb_region_of_process(), id);
	return string->bytes == strlen(text) && !memcmp(string + 1, text, string->bytes);
}

/* Does the environment have the row KEY? Its text must be VALUE then. */
static bool
says(const char *key, const char *value)
{
	char *base = (char *)plumb_region_of_process()->header;
	const struct plumb_region_header *header = (const void *)base;
	for (uint64_t at = PLUMB_REGION_HEADER_SIZE; at < header->next;) {
		const struct plumb_chunk_header *chunk = (const void *)(base + at);
		const char *record = (const char *)(chunk + 1), *end = record + chunk->used;
		for (; record < end; record += ((const struct plumb_record *)record)->length) {
			const struct plumb_record_environment *row = (const void *)record;
			if (row->head.type == PLUMB_RECORD_ENVIRONMENT && is_text(row->key, key)) {
				assert_true(is_text(row->value, value));
				return true;
			}
		}
		at += chunk->size;
	}
	return false;
}

static void
only_the_chosen_mode_starts(void **state)
{
	(void)state;
	plumb_gpu_start("cuda");
	plumb_gpu_start("cuda");
	plumb_gpu_pause(true);
	plumb_gpu_pause(false);
	plumb_gpu_stop();
	assert_true(plumb_gpu_renew());
	plumb_gpu_start("cuda");
	assert_string_equal(said, "start-a pause-a go-a stop-a renew-a start-a ");
	assert_false(says("gpu.a.off", "") || says("gpu.b.off", "") || says("gpu.cuda.off", ""));
}

static void
a_runtime_starts_when_its_driver_is_ready(void **state)
{
	(void)state;
	plumb_gpu_start(NULL);
	assert_string_equal(said, "");
	is_ready = true;
	plumb_gpu_start(NULL);
	assert_string_equal(said, "start-a ");
}

static void
a_driver_without_the_mode_says_so(void **state)
{
	(void)state;
	plumb_gpu_start("hip");
	assert_string_equal(said, "");
	assert_true(says("gpu.hip.off",
	                 "GPU work is not recorded: plumb has no --gpu=activity for hip"));
}

static void
a_runtime_that_fails_stays_off(void **state)
{
	(void)state;
	fails = true;
	plumb_gpu_start("cuda");
	plumb_gpu_start("cuda");
	plumb_gpu_stop();
	assert_string_equal(said, "start-a ");
	assert_true(says("gpu.a.off", "no a here"));
}

static void
off_starts_nothing(void **state)
{
	(void)state;
	is_ready = true;
	plumb_gpu_start("cuda");
	plumb_gpu_start(NULL);
	assert_string_equal(said, "");
}

static void
modes_have_names(void **state)
{
	(void)state;
	assert_int_equal(plumb_gpu_mode_find("activity")->mode, PLUMB_GPU_ACTIVITY);
	assert_string_equal(plumb_gpu_mode_of(PLUMB_GPU_OFF)->name, "off");
	assert_null(plumb_gpu_mode_find("sanitizer"));
	assert_null(plumb_gpu_mode_of(99));
}

static const struct {
	const char *mode; /* of plumb run, as a number */
	struct CMUnitTest test;
} tests[] = {
	{ "1", cmocka_unit_test(only_the_chosen_mode_starts) },
	{ "1", cmocka_unit_test(a_runtime_starts_when_its_driver_is_ready) },
	{ "1", cmocka_unit_test(a_driver_without_the_mode_says_so) },
	{ "1", cmocka_unit_test(a_runtime_that_fails_stays_off) },
	{ "0", cmocka_unit_test(off_starts_nothing) },
	{ "99", cmocka_unit_test(off_starts_nothing) }, /* a mode that nobody knows */
	{ "1", cmocka_unit_test(modes_have_names) },
};

/* Runs test I in a process of its own, whose collector reads its options at the start. */
static int
run_process(int i, char **arguments)
{
	char folder[] = "/tmp/plumb-gpu-XXXXXX", number[16], command[64];
	int status;
	if (!mkdtemp(folder))
		return 1;
	pid_t pid = fork();
	if (!pid) {
		snprintf(number, sizeof number, "%d", i);
		setenv("PLUMB_FOLDER", folder, 1);
		setenv("PLUMB_GPU", tests[i].mode, 1);
		setenv("PLUMB_TEST", number, 1);
		execv("/proc/self/exe", arguments);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command) || status;
}

int
main(int count, char **arguments)
{
	const char *number = getenv("PLUMB_TEST");
	int failed = 0;
	(void)count;
	if (number) {
		const struct CMUnitTest one[] = { tests[atoi(number)].test };
		return cmocka_run_group_tests(one, NULL, NULL);
	}
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		failed |= run_process((int)i, arguments);
	return failed;
}
