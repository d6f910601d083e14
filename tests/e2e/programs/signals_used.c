/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that has its own business with signals while it computes for half a second in `work`.
 * It prints the same with and without a profiler, and however long it computes: with COMPUTES in
 * the environment for that part of the time.
 *
 *   signals_used masked      blocks all signals, by the C library
 *   signals_used blocked     blocks all signals, by the kernel's call
 *   signals_used blocked-thread   likewise on a thread that ends before the program does
 *   signals_used bare-thread starts a thread by the kernel's call, and that one computes
 *   signals_used handles N   has a handler for signal N and sends itself 1,000 of them
 *   signals_used waits N     blocks signal N, and waits for 100 of them
 *   signals_used handles-all has a handler for every signal
 *   signals_used waits-all   a thread waits for all signals and gets only what is sent
 *   signals_used descriptor  likewise by signalfd
 *   signals_used defaults    sets each signal to its default and looks what it was
 *   signals_used kill N      sends itself signal N, which nobody handles
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile double sink;
static volatile sig_atomic_t got;
static double part = 1;

__attribute__((noinline, noclone)) void
work(double seconds)
{
	struct timespec start, now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do {
		for (int i = 0; i < 20000; i++)
			sink = sink * 0.5 + i;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	} while ((double)(now.tv_sec - start.tv_sec) + (double)(now.tv_nsec - start.tv_nsec) / 1e9 <
	         seconds * part);
}

static void
count(int number)
{
	(void)number;
	got++;
}

static void
block_by_kernel(void)
{
	unsigned long all = ~0ul;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof all);
}

static void *
blocked(void *data)
{
	block_by_kernel();
	work(0.5);
	return data;
}

static volatile int bare_done;

/* It has no thread's memory of its own, so it calls nothing. */
static int
bare(void *data)
{
	(void)data;
	for (long i = 0; i < 300000000; i++)
		sink = sink * 0.5 + (double)i;
	bare_done = 1;
	return 0;
}

static void
start_bare_thread(void)
{
	static char stack[65536] __attribute__((aligned(64)));
	clone(bare, stack + sizeof stack,
	      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
	      NULL);
	while (!bare_done)
		usleep(10000);
}

static void
handles(int number)
{
	struct sigaction action = { .sa_handler = count }, old;
	union sigval none = { 0 };
	work(0.1);
	if (sigaction(number, &action, &old) || old.sa_handler != SIG_DFL)
		printf("something was there before\n");
	for (int i = 0; i < 1000; i++) {
		sigqueue(getpid(), number, none);
		if (i % 100 == 0)
			work(0.05);
	}
	sigaction(number, NULL, &old);
	printf("%d came, the handler is %s\n", (int)got,
	       old.sa_handler == count ? "mine" : "another");
}

static void
waits(int number)
{
	union sigval none = { 0 };
	sigset_t set;
	siginfo_t info;
	sigemptyset(&set);
	sigaddset(&set, number);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 100; i++)
		sigqueue(getpid(), number, none);
	work(0.5);
	while (got < 100 && sigwaitinfo(&set, &info) == number && info.si_code == SI_QUEUE)
		got++;
	printf("%d came\n", (int)got);
}

static void *
worker(void *data)
{
	work(0.5);
	kill(getpid(), SIGTERM);
	return data;
}

/* What is sent meanwhile is SIGUSR1; SIGTERM is the last. */
static void
waits_all(int descriptor)
{
	pthread_t thread;
	sigset_t all;
	int seen[2] = { 0, 0 }, other = 0, number = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	int fd = descriptor ? signalfd(-1, &all, 0) : -1;
	pthread_create(&thread, NULL, worker, NULL);
	for (int i = 0; number != SIGTERM; i++) {
		if (i < 50)
			kill(getpid(), SIGUSR1);
		work(0.005);
		struct signalfd_siginfo info;
		if (fd < 0)
			number = sigwaitinfo(&all, NULL);
		else
			number = read(fd, &info, sizeof info) == sizeof info ? (int)info.ssi_signo
			                                                     : -1;
		seen[0] += number == SIGUSR1;
		seen[1] += number == SIGTERM;
		other += number != SIGUSR1 && number != SIGTERM;
	}
	pthread_join(thread, NULL);
	printf("%s, %d, other %d\n", seen[0] ? "some" : "none", seen[1], other);
}

int
main(int words, char **word)
{
	const char *what = words > 1 ? word[1] : "";
	int number = words > 2 ? atoi(word[2]) : 0, failed = 0, handled = 0;
	sigset_t all;
	sigfillset(&all);
	if (getenv("COMPUTES"))
		part = atof(getenv("COMPUTES"));
	if (!strcmp(what, "masked")) {
		pthread_sigmask(SIG_BLOCK, &all, NULL);
		work(0.5);
	} else if (!strcmp(what, "blocked")) {
		blocked(NULL);
	} else if (!strcmp(what, "blocked-thread")) {
		pthread_t thread;
		pthread_create(&thread, NULL, blocked, NULL);
		pthread_join(thread, NULL);
	} else if (!strcmp(what, "bare-thread")) {
		start_bare_thread();
	} else if (!strcmp(what, "handles")) {
		handles(number);
	} else if (!strcmp(what, "waits")) {
		waits(number);
	} else if (!strcmp(what, "handles-all")) {
		work(0.2);
		for (int i = 1; i <= SIGRTMAX; i++)
			failed += signal(i, count) == SIG_ERR;
		work(0.5);
		for (int i = SIGRTMIN; i <= SIGRTMAX; i++)
			raise(i);
		printf("%d failed, %d came of %d\n", failed, (int)got, SIGRTMAX - SIGRTMIN + 1);
	} else if (!strcmp(what, "waits-all")) {
		waits_all(0);
	} else if (!strcmp(what, "descriptor")) {
		waits_all(1);
	} else if (!strcmp(what, "defaults")) {
		for (int i = 1; i <= SIGRTMAX; i++) {
			struct sigaction old;
			handled += !sigaction(i, NULL, &old) && old.sa_handler != SIG_DFL;
			signal(i, SIG_DFL);
		}
		work(0.5);
		printf("%d were handled\n", handled);
	} else if (!strcmp(what, "kill")) {
		work(0.2);
		kill(getpid(), number);
		work(0.2);
	} else {
		return 2;
	}
	return 0;
}
