/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's core inside one process: what forks, cancelled threads and a full region do. A
 * process records once in its life, so each case runs in a process of its own: this program starts
 * itself again with the case's name and a folder for the region.
 */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "collect/collector.h"
#include "collect/monitor/framework.h"
#include "collect/thread.h"

int plumb_start(void), plumb_stop(void), plumb_is_recording(void);

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

/* How many regions there are. */
static int
regions(void)
{
	DIR *folder = opendir(getenv(PLUMB_ENV_FOLDER));
	struct dirent *entry;
	int count = 0;
	while (folder && (entry = readdir(folder)))
		count += strstr(entry->d_name, PLUMB_REGION_SUFFIX) != NULL;
	closedir(folder);
	return count;
}

/* Everything that a region says at one moment. */
static uint64_t
sum_of(const struct plumb_region_header *header)
{
	const unsigned char *at = (const void *)header, *end = at + atomic_load(&header->next);
	uint64_t sum = 0;
	for (; at < end; at++)
		sum = sum * 31 + *at;
	return sum;
}

static uint64_t
ended_elsewhere(struct plumb_thread *thread)
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	plumb_id id = arena->ledger[PLUMB_SOURCE_OPERATOR][PLUMB_FATE_ENDED_ELSEWHERE];
	const struct plumb_record_ledger *row = id ? plumb_region_at(arena->region, id) : NULL;
	return row ? atomic_load(&row->count) : 0;
}

/* Ends the parent's operators and runs one of its own. */
static int
as_child(struct plumb_ticket *outer, struct plumb_ticket *inner)
{
	struct plumb_operator op = { .name = "child", .sequence = -1 };
	for (int i = 0; i < 2; i++) {
		struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_EXIT);
		if (!thread || !plumb_recording())
			return 1;
		plumb_operator_end_oddly(thread, i ? outer : inner);
		plumb_leave(thread);
	}
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	if (plumb_context_current(thread))
		return 2;
	struct plumb_ticket *ticket = plumb_operator_enter(thread, &op);
	plumb_operator_exit(thread, ticket);
	bool counted = ended_elsewhere(thread) == 2;
	plumb_leave(thread);
	return !counted ? 3 : regions() != 2 ? 4 : 0;
}

/* A forked child records into a region of its own and leaves its parent's alone, whose operators
 * were open at the fork; and so does a child that no fork handler saw. */
static int
forked_child(bool bare)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	struct plumb_operator op = { .name = "outer", .sequence = -1 };
	struct plumb_ticket *outer = plumb_operator_enter(thread, &op);
	struct plumb_ticket *inner = plumb_operator_enter(thread, &op);
	plumb_leave(thread);
	struct plumb_region_header *header = plumb_region_of_process()->header;
	uint64_t sum = sum_of(header);
	int status;
	pid_t child = bare ? (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL) : fork();
	if (!child)
		_exit(as_child(outer, inner));
	waitpid(child, &status, 0);
	if (status || sum_of(header) != sum || !plumb_recording())
		return status ? status : 50;
	thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_EXIT);
	plumb_operator_exit(thread, inner);
	plumb_operator_exit(thread, outer);
	bool fine = !plumb_context_current(thread) && !ended_elsewhere(thread);
	plumb_leave(thread);
	return !fine;
}

static int
case_forked_child(void)
{
	return forked_child(false);
}

static int
case_cloned_child(void)
{
	return forked_child(true);
}

/* A signal's handler forks in the middle of a callback, which goes on in the child. */
static int
case_fork_in_a_callback(void)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	struct plumb_region_header *header = plumb_region_of_process()->header;
	plumb_child_named(thread, 0, PLUMB_FRAME_OPERATOR, "before");
	uint64_t sum = sum_of(header);
	int status;
	pid_t child = fork();
	if (!child) {
		bool met;
		plumb_child_named(thread, 0, PLUMB_FRAME_OPERATOR, "goes on");
		for (int i = 0; i < 5000; i++) /* beyond its chunk */
			plumb_environment(thread, "key", "value");
		plumb_leave(thread);
		if (regions() != 1)
			_exit(1);
		meet(&met);
		_exit(!met || regions() != 2);
	}
	waitpid(child, &status, 0);
	bool alone = sum_of(header) == sum;
	plumb_leave(thread);
	return status ? status : !alone;
}

/* One operator as PyTorch's callbacks do it. */
static void
run_operator(const char *name)
{
	struct plumb_operator op = { .name = name, .sequence = -1 };
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	struct plumb_ticket *ticket = thread ? plumb_operator_enter(thread, &op) : NULL;
	if (thread)
		plumb_leave(thread);
	if (!ticket)
		return;
	thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_EXIT);
	if (thread && thread == ticket->thread)
		plumb_operator_exit(thread, ticket);
	else
		plumb_operator_end_oddly(thread, ticket);
	if (thread)
		plumb_leave(thread);
}

static volatile sig_atomic_t storm_forks, is_child;

static void
storm_handler(int number)
{
	(void)number;
	pid_t child = is_child ? 1 : fork();
	if (!child)
		is_child = 1;
	else if (child > 0 && !is_child)
		storm_forks++;
}

/* A signal's handler forks at any moment, in our callbacks, too; what was interrupted goes on in
 * both processes, and both run operators. */
static int
case_fork_storm(void)
{
	enum { FORKS = 200 };
	const struct itimerval often = { { 0, 150 }, { 0, 150 } }, never = { { 0, 0 }, { 0, 0 } };
	struct sigaction action = { .sa_handler = storm_handler, .sa_flags = SA_RESTART };
	char name[32];
	alarm(100);
	sigaction(SIGVTALRM, &action, NULL);
	setitimer(ITIMER_VIRTUAL, &often, NULL); /* children have none */
	for (unsigned i = 0; storm_forks < FORKS && !is_child; i++) {
		snprintf(name, sizeof name, "operator %u", i % 1000);
		run_operator(name);
	}
	if (is_child) {
		for (int i = 0; i < 100; i++)
			run_operator("in a child");
		_exit(plumb_recording() ? 0 : 1);
	}
	setitimer(ITIMER_VIRTUAL, &never, NULL);
	int bad = 0, status;
	while (wait(&status) > 0)
		bad += status != 0;
	return bad ? bad & 0x7f : !plumb_recording();
}

/* Operators that recording paused in have no time; those that began in a pause are not seen. */
static int
case_pause(void)
{
	struct plumb_operator op = { .name = "a", .sequence = -1 };
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	struct plumb_ticket *spanning = plumb_operator_enter(thread, &op);
	struct plumb_ticket *half = plumb_operator_enter(thread, &op);
	plumb_leave(thread);
	plumb_stop();
	if (plumb_is_recording() || plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER) ||
	    !plumb_recording())
		return 1;
	plumb_operator_end_oddly(NULL, half);
	plumb_start();
	thread = plumb_enter(PLUMB_CALLBACK_OPERATOR_ENTER);
	if (!thread || !plumb_is_recording())
		return 2;
	struct plumb_ticket *inside = plumb_operator_enter(thread, &op);
	plumb_operator_exit(thread, inside);
	plumb_operator_exit(thread, spanning);
	bool empty = !plumb_context_current(thread);
	struct plumb_arena *arena = plumb_thread_arena(thread);
	const plumb_id *of = arena->ledger[PLUMB_SOURCE_OPERATOR];
	const struct plumb_record_ledger *paused =
		plumb_region_at(arena->region, of[PLUMB_FATE_PAUSED]);
	const struct plumb_record_ledger *attributed =
		plumb_region_at(arena->region, of[PLUMB_FATE_ATTRIBUTED]);
	bool counted = of[PLUMB_FATE_PAUSED] && paused->count == 2 && of[PLUMB_FATE_ATTRIBUTED] &&
	               attributed->count == 1;
	plumb_leave(thread);
	return !empty ? 3 : !counted ? 4 : 0;
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
	struct plumb_region_lost *turned =
		&plumb_region_of_process()->header->lost[PLUMB_SOURCE_OPERATOR];
	uint64_t before = atomic_load(&turned->full), received = atomic_load(&turned->received);
	pthread_create(&other, NULL, meet, &met);
	pthread_join(other, NULL);
	return met || !lost || atomic_load(&turned->full) != before + 1 ||
	       atomic_load(&turned->received) != received + 1;
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
	{ "cloned-child", case_cloned_child },
	{ "fork-in-a-callback", case_fork_in_a_callback },
	{ "fork-storm", case_fork_storm },
	{ "pause", case_pause },
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
		setenv(PLUMB_ENV_LAYERS, "7", 1); /* PLUMB_LAYERS_LIGHT: no native frames */
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
