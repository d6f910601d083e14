/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that a profiler must not hurt: threads launch, copy, allocate, compute and check what
 * they compute, while something goes wrong. Its last line is "checksum N", the same for the same
 * arguments however it is disturbed, and its exit code is 7.
 *
 *   torture SEED WHAT
 *
 *   plain          nothing goes wrong
 *   signals        signals whose handler computes, at random moments to random threads
 *   forks          signals whose handler forks; the children leave by _exit
 *   forking        a thread forks at random moments; the children compute and leave by exit
 *   storm:COUNT    COUNT threads over its life, at most 16 at once
 *   library:FILE   FILE is loaded, called and unloaded again and again
 *   end:SIGNAL:US  SIGNAL comes after US microseconds
 *   stacks         threads compute in coroutines of 8 KiB, with alternate stacks of 8 KiB, without
 *                  guard pages
 *   masks          a thread blocks all signals, waits for any, and handles all real-time signals
 *   leave:US       a thread calls _exit(7) after US microseconds, without the last line
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../mock/mock.h"

enum { THREADS = 4, TURNS = 60 };

static _Atomic unsigned long handled, children;
static _Atomic int over;
static pthread_t threads[THREADS];
static double results[THREADS];

static unsigned long
next(unsigned long *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

/* Something whose result shows when registers or memory were disturbed. */
static double
compute(unsigned long seed)
{
	double values[64], sum = 0;
	for (int i = 0; i < 64; i++)
		values[i] = (double)(next(&seed) % 1000) / 7.0;
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < 64; i++)
			values[i] = values[i] * 0.5 + values[(i + 1) % 64] * 0.25;
	for (int i = 0; i < 64; i++)
		sum += values[i];
	return sum;
}

static void
turn(unsigned long *seed)
{
	unsigned long what = next(seed) % 6;
	if (what < 3) {
		static const char *const names[] = { "gemm", "relu", "softmax" };
		mock_launch(names[what], 1000 + next(seed) % 5000);
	} else if (what == 3) {
		struct mock_copy copy = {
			.from = MOCK_PAGEABLE, .to = MOCK_DEVICE, .bytes = 4096, .duration_ns = 2000
		};
		mock_copy(&copy);
	} else if (what == 4) {
		uint64_t pointer = mock_alloc(1 << 16, -1);
		mock_free(pointer, -1);
	} else {
		mock_wait(MOCK_WAIT_STREAM, 1000);
	}
}

static void *
work(void *argument)
{
	unsigned long seed = (unsigned long)(uintptr_t)argument;
	double sum = 0;
	for (int i = 0; i < TURNS; i++) {
		turn(&seed);
		errno = 12345; /* nobody but us may change it */
		sum += compute(seed + (unsigned long)i);
		if (errno != 12345)
			abort();
	}
	results[(unsigned long)(uintptr_t)argument % THREADS] = sum;
	return NULL;
}

/* ---- what goes wrong ---- */

static void
disturb(int number)
{
	int saved = errno;
	unsigned long seed = 77;
	(void)number;
	handled++;
	if (compute(seed) < 0)
		abort();
	errno = saved;
}

/* fork(2), not fork(3): glibc's own takes locks that the interrupted thread may hold. */
static void
fork_now(int number)
{
	int saved = errno;
	(void)number;
	if (children++ < 8 && syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == 0)
		_exit(0);
	errno = saved;
}

static void *
fork_again(void *argument)
{
	unsigned long seed = (unsigned long)(uintptr_t)argument;
	for (int i = 0; i < 8 && !over; i++) {
		usleep((unsigned)(next(&seed) % 400));
		if (fork() == 0) {
			compute(seed);
			exit(0);
		}
	}
	return NULL;
}

static void
handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigaction(number, &action, NULL);
}

static void *
send_signals(void *argument)
{
	unsigned long seed = (unsigned long)(uintptr_t)argument;
	while (!over) {
		usleep((unsigned)(next(&seed) % 200));
		if (!over)
			pthread_kill(threads[next(&seed) % THREADS], SIGUSR1);
	}
	return NULL;
}

static struct {
	int number;
	unsigned after;
} ending;

static void *
end_it(void *argument)
{
	(void)argument;
	usleep(ending.after);
	if (ending.number)
		kill(getpid(), ending.number);
	else
		_exit(7);
	return NULL;
}

static void *
load_again(void *argument)
{
	while (!over) {
		void *library = dlopen(argument, RTLD_NOW);
		int (*function)(int) = NULL;
		if (library)
			*(void **)&function = dlsym(library, "torture_function");
		if (function && function(3) != 9)
			abort();
		if (library)
			dlclose(library);
	}
	return NULL;
}

static void *
small(void *argument)
{
	mock_launch("small", 100);
	return argument;
}

static void
storm(unsigned long count)
{
	pthread_t batch[16];
	for (unsigned long done = 0; done < count; done += 16) {
		for (int i = 0; i < 16; i++)
			if (pthread_create(&batch[i], NULL, small, NULL))
				abort();
		for (int i = 0; i < 16; i++)
			pthread_join(batch[i], NULL);
	}
}

/* ---- little stack ---- */

enum { LITTLE = 8192, BELOW = 16384, PATTERN = 0x5a };
struct little {
	unsigned char below[BELOW];
	_Alignas(64) unsigned char stack[LITTLE];
};
static struct {
	struct little coroutine, alternate;
	ucontext_t inside, back;
	unsigned long seed;
} littles[THREADS];

static void
compute_inside(int which)
{
	while (!over) {
		compute(littles[which].seed++);
		swapcontext(&littles[which].inside, &littles[which].back);
	}
}

static void
check_below(const struct little *little)
{
	for (int i = 0; i < BELOW; i++)
		if (little->below[i] != PATTERN)
			abort();
}

static void *
use_little(void *argument)
{
	int which = (int)(uintptr_t)argument;
	stack_t alternate = { .ss_sp = littles[which].alternate.stack, .ss_size = LITTLE };
	ucontext_t *inside = &littles[which].inside;
	memset(&littles[which].coroutine, PATTERN, sizeof(struct little));
	memset(&littles[which].alternate, PATTERN, sizeof(struct little));
	sigaltstack(which % 2 ? &alternate : NULL, NULL);
	getcontext(inside);
	inside->uc_stack.ss_sp = littles[which].coroutine.stack;
	inside->uc_stack.ss_size = LITTLE;
	inside->uc_link = &littles[which].back;
	makecontext(inside, (void (*)(void))compute_inside, 1, which);
	while (!over)
		swapcontext(&littles[which].back, inside);
	check_below(&littles[which].coroutine);
	check_below(&littles[which].alternate);
	return NULL;
}

static void *
use_littles(void *argument)
{
	pthread_t users[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&users[i], NULL, use_little, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(users[i], NULL);
	return argument;
}

/* ---- masks ---- */

static _Atomic int came;

static void
count_it(int number)
{
	came = number;
}

static void *
use_masks(void *argument)
{
	unsigned long seed = (unsigned long)(uintptr_t)argument;
	struct timespec none = { 0, 0 };
	sigset_t all, before;
	sigfillset(&all);
	while (!over) {
		int number =
			SIGRTMIN + (int)(next(&seed) % (unsigned long)(SIGRTMAX - SIGRTMIN + 1));
		pthread_sigmask(SIG_BLOCK, &all, &before);
		compute(seed);
		if (sigtimedwait(&all, NULL, &none) > 0) /* nobody sent one */
			abort();
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		came = 0;
		handle(number, count_it);
		pthread_kill(pthread_self(), number);
		if (came != number)
			abort();
		signal(number, SIG_DFL);
	}
	return NULL;
}

/* Starts what WHAT says; *HELPER is to be joined when the result is not 0. */
static int
begin(char *what, unsigned long seed, pthread_t *helper)
{
	char *number = strchr(what, ':');
	if (number)
		*number++ = '\0';
	if (!strcmp(what, "signals") || !strcmp(what, "forks")) {
		handle(SIGUSR1, *what == 's' ? disturb : fork_now);
		return !pthread_create(helper, NULL, send_signals, (void *)(uintptr_t)seed);
	}
	if (!strcmp(what, "forking"))
		return !pthread_create(helper, NULL, fork_again, (void *)(uintptr_t)seed);
	if (!strcmp(what, "stacks"))
		return !pthread_create(helper, NULL, use_littles, NULL);
	if (!strcmp(what, "masks"))
		return !pthread_create(helper, NULL, use_masks, (void *)(uintptr_t)seed);
	if (!strcmp(what, "library"))
		return !pthread_create(helper, NULL, load_again, number);
	if (!strcmp(what, "storm"))
		storm(strtoul(number, NULL, 10));
	if (!strcmp(what, "end") || !strcmp(what, "leave")) {
		char *after = *what == 'e' ? strchr(number, ':') + 1 : number;
		ending.number = *what == 'e' ? atoi(number) : 0;
		ending.after = (unsigned)atoi(after);
		pthread_create(helper, NULL, end_it, NULL);
	}
	return 0;
}

int
main(int argc, char **argv)
{
	pthread_t helper;
	double sum = 0;
	if (argc != 3)
		return 1;
	unsigned long seed = strtoul(argv[1], NULL, 10);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work,
		               (void *)(uintptr_t)(seed * THREADS + (unsigned long)i));
	int join = begin(argv[2], seed, &helper);
	/* A signal to a thread that was joined would be a mistake of ours: stop sending first. */
	if (!strcmp(argv[2], "signals") || !strcmp(argv[2], "forks")) {
		usleep(20000);
		over = 1;
		pthread_join(helper, NULL);
		join = 0;
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		sum += results[i];
	}
	over = 1;
	if (join)
		pthread_join(helper, NULL);
	while (wait(NULL) > 0)
		;
	if (!strcmp(argv[2], "end") || !strcmp(argv[2], "leave"))
		pause(); /* it comes */
	printf("checksum %.17g\n", sum);
	return 7;
}
