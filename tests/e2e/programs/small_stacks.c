/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes where little stack is left for a signal's handler, and says how much of it was used.
 *
 *   small_stacks alternate   on threads with an alternate stack of 8 KiB, as Rust makes them
 *   small_stacks coroutines  in coroutines with stacks of 8 KiB
 *   small_stacks tiny        with an alternate stack that is too small for any handler
 *   small_stacks crowded     in a handler that has used most of its alternate stack
 *
 * No stack has a guard page: what lies below it has a known pattern, and so has its unused part.
 * Prints "used BYTES of BYTES, kernel BYTES" and ends with 1 when something below a stack was
 * changed. With COMPUTES in the environment it computes for that part of the time.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <ucontext.h>

enum { MOST = 65536, BELOW = 65536, THREADS = 3, PATTERN = 0x5a, TINY = 2048, HANDLERS = 2048 };
#define SECONDS 0.4

struct area {
	unsigned char below[BELOW];
	_Alignas(64) unsigned char stack[MOST]; /* of which `size` is used */
};
static struct area areas[THREADS];
static size_t used[THREADS], size = 8192;
static volatile double sink;
static double part = 1;

__attribute__((noinline, noclone)) void
compute(double seconds)
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
check(int which)
{
	struct area *area = &areas[which];
	for (size_t i = 0; i < BELOW; i++) {
		if (area->below[i] != PATTERN) {
			printf("changed %zu bytes below a stack\n", BELOW - i);
			exit(1);
		}
	}
	size_t free = 0;
	while (free < size && area->stack[free] == PATTERN)
		free++;
	used[which] = size - free;
}

static void
set_alternate(void *memory, size_t bytes)
{
	stack_t stack = { .ss_sp = memory, .ss_size = bytes };
	if (sigaltstack(&stack, NULL)) {
		perror("sigaltstack");
		exit(3);
	}
}

static void *
alternate(void *data)
{
	int which = (int)(size_t)data;
	set_alternate(areas[which].stack, size);
	compute(SECONDS);
	check(which);
	return NULL;
}

static ucontext_t back, inside;

static void
coroutine(void)
{
	compute(SECONDS);
	swapcontext(&inside, &back);
}

static void
run_coroutine(int which)
{
	getcontext(&inside);
	inside.uc_stack.ss_sp = areas[which].stack;
	inside.uc_stack.ss_size = size;
	inside.uc_link = &back;
	makecontext(&inside, coroutine, 0);
	swapcontext(&back, &inside);
	check(which);
}

__attribute__((noinline)) static void
crowd(unsigned char *low)
{
	/* What is left is enough for what it calls, and not for a second handler. */
	unsigned char here;
	volatile unsigned char *room = __builtin_alloca((size_t)(&here - low) - 3900);
	room[0] = PATTERN;
	compute(SECONDS);
}

static void
crowded(int number)
{
	(void)number;
	crowd(areas[0].stack);
}

int
main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";
	unsigned long kernel = getauxval(51); /* what it may push for a signal: 12 KB with AMX */
	if (kernel + HANDLERS > size)
		size = kernel + HANDLERS;
	memset(areas, PATTERN, sizeof areas);
	if (getenv("COMPUTES"))
		part = atof(getenv("COMPUTES"));
	if (!strcmp(what, "alternate")) {
		pthread_t threads[THREADS];
		for (size_t i = 0; i < THREADS; i++)
			pthread_create(&threads[i], NULL, alternate, (void *)i);
		for (size_t i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
	} else if (!strcmp(what, "coroutines")) {
		for (int i = 0; i < THREADS; i++)
			run_coroutine(i);
	} else if (!strcmp(what, "tiny")) {
		set_alternate(areas[0].stack, TINY);
		compute(SECONDS);
	} else if (!strcmp(what, "crowded")) {
		struct sigaction action = { .sa_handler = crowded, .sa_flags = SA_ONSTACK };
		set_alternate(areas[0].stack, size);
		sigaction(SIGUSR1, &action, NULL);
		raise(SIGUSR1);
		check(0);
	} else {
		return 2;
	}
	size_t most = 0;
	for (int i = 0; i < THREADS; i++)
		most = used[i] > most ? used[i] : most;
	printf("used %zu of %zu, kernel %lu\n", most, size, kernel);
	return 0;
}
