/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's core inside one process: what forks, cancelled threads and a full region do. A
 * process records once in its life, so each case runs in a process of its own: this program starts
 * itself again with the case's name and a folder for the region.
 */
#include <pthread.h>
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

#include "collect/collector.h"
#include "collect/monitor/framework.h"

/* ---- the cases, each in its own process: 0 is good ---- */

static void *
meet(void *data)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	if (thread)
		plumb_leave(thread);
	*(bool *)data = thread != NULL;
	return NULL;
}

/* A child that is forked while another thread makes the region gets on with its life. */
static int
case_fork_while_beginning(void)
{
	bool met, inside;
	pthread_t thread;
	int status;
	pthread_create(&thread, NULL, meet, &met);
	usleep(300);
	pid_t child = fork();
	if (!child) {
		alarm(10);
		meet(&inside);
		_exit(0);
	}
	waitpid(child, &status, 0);
	pthread_join(thread, NULL);
	return status || !met;
}

static void *
cancelled(void *data)
{
	pthread_cancel(pthread_self());
	meet(data);
	pthread_testcancel();
	return NULL;
}

/* A thread that is cancelled in its first callback leaves no lock behind. */
static int
case_cancel_while_beginning(void)
{
	bool first = false, second = false;
	pthread_t thread;
	void *result;
	alarm(10);
	pthread_create(&thread, NULL, cancelled, &first);
	pthread_join(thread, &result);
	pthread_create(&thread, NULL, meet, &second);
	pthread_join(thread, NULL);
	return result != PTHREAD_CANCELED || !first || !second;
}

/* A forked child records nothing, is counted, and leaves its parent's region alone. */
static int
case_forked_child(void)
{
	bool met, inside;
	int status;
	meet(&met);
	struct plumb_region_header *header = plumb_region_of_process()->header;
	uint64_t next = atomic_load(&header->next);
	pid_t child = fork();
	if (!child) {
		meet(&inside);
		meet(&inside);
		_exit(inside ? 1 : 0);
	}
	waitpid(child, &status, 0);
	return !met || status || atomic_load(&header->forked_children) != 1 ||
	       atomic_load(&header->next) != next || !plumb_recording();
}

/* A full region takes no thread more, and counts every callback that it turns away. */
static int
case_full_region(void)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	char name[64];
	bool met = true;
	pthread_t other;
	for (int i = 0;; i++) {
		int bytes = snprintf(name, sizeof name, "name %d", i);
		if (!plumb_intern(thread, name, (size_t)bytes))
			break;
	}
	struct plumb_key key = { .kind = PLUMB_FRAME_OPERATOR, .name = 0 };
	bool lost = plumb_child(thread, 0, &key) == PLUMB_LOST;
	plumb_leave(thread);
	uint64_t before = atomic_load(&plumb_region_of_process()->header->lost_full);
	pthread_create(&other, NULL, meet, &met);
	pthread_join(other, NULL);
	return met || !lost ||
	       atomic_load(&plumb_region_of_process()->header->lost_full) != before + 1;
}

/* Ends in any order meet their own operators. */
static int
case_ends_out_of_order(void)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	struct plumb_operator op = { .name = "a", .sequence = -1, .range = true };
	struct plumb_ticket *a = plumb_operator_enter(thread, &op);
	op.name = "b";
	struct plumb_ticket *b = plumb_operator_enter(thread, &op);
	plumb_operator_exit(thread, a); /* b ends with it */
	op.name = "c";
	struct plumb_ticket *c = plumb_operator_enter(thread, &op);
	plumb_id in_c = plumb_context_current(thread);
	op.name = "d";
	struct plumb_ticket *d = plumb_operator_enter(thread, &op);
	plumb_id in_d = plumb_context_current(thread);
	plumb_operator_exit(thread, b); /* long gone: ends nothing */
	bool still = plumb_context_current(thread) == in_d;
	plumb_operator_exit(thread, d);
	bool back = plumb_context_current(thread) == in_c;
	plumb_operator_exit(thread, c);
	bool empty = plumb_context_current(thread) == 0;
	plumb_leave(thread);
	return !still || !back || !empty || b == c || b == d;
}

static const struct {
	const char *name;
	int (*run)(void);
} cases[] = {
	{ "fork-while-beginning", case_fork_while_beginning },
	{ "cancel-while-beginning", case_cancel_while_beginning },
	{ "forked-child", case_forked_child },
	{ "full-region", case_full_region },
	{ "ends-out-of-order", case_ends_out_of_order },
};

/* ---- the tests ---- */

static void
run_case(void **state)
{
	const char *name = *state;
	char folder[] = "/tmp/plumb-collect-XXXXXX", command[64];
	int status;
	assert_non_null(mkdtemp(folder));
	pid_t child = fork();
	if (!child) {
		setenv(PLUMB_ENV_FOLDER, folder, 1);
		setenv(PLUMB_ENV_LIMIT, "1500000", 1);
		execl("/proc/self/exe", "test_collect", name, (char *)NULL);
		_exit(99);
	}
	waitpid(child, &status, 0);
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(status, 0);
}

int
main(int argc, char **argv)
{
	enum { CASES = sizeof cases / sizeof *cases };
	struct CMUnitTest tests[CASES];
	if (argc > 1) {
		for (size_t i = 0; i < CASES; i++)
			if (!strcmp(argv[1], cases[i].name))
				return cases[i].run();
		return 98;
	}
	for (size_t i = 0; i < CASES; i++)
		tests[i] = (struct CMUnitTest){ cases[i].name, run_case, NULL, NULL,
			                        (void *)(uintptr_t)cases[i].name };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
