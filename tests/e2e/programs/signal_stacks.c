/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the same with and without a profiler that sends signals. Ends with 1 when a signal changed
 * the program's data.
 *
 *   signal_stacks below     computes with data far below the stack pointer
 *   signal_stacks pointer   computes while the stack pointer points into the middle of an array
 *   signal_stacks shown     says what alternate stacks it has, sets some and gives them up
 *   signal_stacks handlers  has handlers for alternate stacks in threads that have none
 *   signal_stacks threads   starts threads and says whether mappings remain
 *   signal_stacks child     computes as in "below" in a forked child whose alternate stack is tiny
 *
 * "below" and "pointer" compute on the main thread and on another one, for SECONDS each.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { AREA = 65536, NEAR = 1024, PATTERN = 0x5a, TURNS = 20000000, OWN = 32768, TINY = 2048 };
#define SECONDS 0.3

static double
cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

__attribute__((noinline, noclone)) bool
compute(double seconds)
{
	volatile unsigned char room[NEAR];
	double end = cpu_seconds() + seconds;
	bool same = true;
	memset((void *)room, PATTERN, sizeof room);
	while (cpu_seconds() < end)
		for (int i = 0; i < NEAR; i++)
			same &= room[i] == PATTERN;
	return same;
}

static void
check(size_t changed)
{
	if (!changed)
		return;
	printf("changed %zu bytes\n", changed);
	fflush(stdout);
	_exit(1);
}

/* Calls nothing, so that only a signal can write below its frame. */
__attribute__((noinline, noclone)) size_t
compute_below(void)
{
	uintptr_t top = (uintptr_t)__builtin_frame_address(0) - NEAR;
	volatile unsigned char *area;
	size_t changed = 0;
	__asm__ volatile("" : "=r"(area) : "0"(top - AREA));
	for (int i = AREA - 1; i >= 0; i--)
		area[i] = PATTERN;
	for (int i = 0; i < TURNS; i++)
		__asm__ volatile("");
	for (int i = 0; i < AREA; i++)
		changed += area[i] != PATTERN;
	return changed;
}

__attribute__((noinline, noclone)) void
compute_pointer(unsigned char *middle)
{
	void *saved;
	long turns = TURNS;
#if defined(__x86_64__)
	__asm__ volatile("mov %%rsp, %0\n\tmov %2, %%rsp\n1:\tdec %1\n\tjnz 1b\n\tmov %0, %%rsp"
	                 : "=&r"(saved), "+r"(turns)
	                 : "r"(middle)
	                 : "cc", "memory");
#elif defined(__aarch64__)
	__asm__ volatile("mov %0, sp\n\tmov sp, %2\n1:\tsubs %1, %1, #1\n\tb.ne 1b\n\tmov sp, %0"
	                 : "=&r"(saved), "+r"(turns)
	                 : "r"(middle)
	                 : "cc", "memory");
#endif
}

static void *
below(void *data)
{
	(void)data;
	double end = cpu_seconds() + SECONDS;
	while (cpu_seconds() < end)
		check(compute_below());
	return NULL;
}

static void *
pointer(void *data)
{
	unsigned char *area = malloc(AREA);
	double end = cpu_seconds() + SECONDS;
	memset(area, PATTERN, AREA);
	while (cpu_seconds() < end) {
		size_t changed = 0;
		compute_pointer(area + AREA / 2);
		for (int i = 0; i < AREA; i++)
			changed += area[i] != PATTERN;
		check(changed);
	}
	free(area);
	return data;
}

static void *
in_thread(void *(*routine)(void *), void *data)
{
	pthread_t thread;
	void *result;
	pthread_create(&thread, NULL, routine, data);
	pthread_join(thread, &result);
	return result;
}

/* ---- what is shown ---- */

static _Thread_local unsigned char own[2][OWN];

static void
tell(const char *what, const stack_t *stack)
{
	int which = stack->ss_sp == own[0] ? 1 : stack->ss_sp == own[1] ? 2 : 0;
	printf("%s: %s, flags %d, %zu bytes\n", what,
	       which          ? which == 1 ? "first" : "second"
	       : stack->ss_sp ? "another"
	                      : "none",
	       stack->ss_flags, stack->ss_size);
}

static void
tell_now(const char *what)
{
	stack_t now;
	memset(&now, PATTERN, sizeof now);
	if (sigaltstack(NULL, &now))
		perror(what);
	tell(what, &now);
}

static void
set(const char *what, int which, stack_t *before)
{
	stack_t stack = { .ss_sp = which ? own[which - 1] : NULL,
		          .ss_size = which ? OWN : 0,
		          .ss_flags = which ? 0 : SS_DISABLE };
	if (sigaltstack(&stack, before))
		perror(what);
	if (before)
		tell(what, before);
	tell_now(what);
}

static void *
shown(void *data)
{
	stack_t before, bad;
	tell_now("at first");
	set("none again", 0, &before);
	set("one", 1, &before);
	set("a second one", 2, &before);
	set("none", 0, &before);
	check(compute_below());
	set("one", 1, NULL);
	bad = (stack_t){ .ss_sp = own[0], .ss_size = 16 };
	printf("too small: %d\n", sigaltstack(&bad, NULL));
	bad = (stack_t){ .ss_sp = own[0], .ss_size = OWN, .ss_flags = 1234 };
	printf("bad flags: %d\n", sigaltstack(&bad, NULL));
	pid_t child = vfork();
	if (!child) {
		bad = (stack_t){ .ss_sp = own[0], .ss_size = OWN };
		sigaltstack(&bad, NULL);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	tell_now("after vfork");
	child = fork();
	if (!child) {
		tell_now("in a child");
		set("in a child", 1, &before);
		set("in a child", 0, &before);
		check(compute_below());
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	set("left", 1, NULL);
	fflush(stdout);
	return data;
}

/* ---- handlers ---- */

enum { DEEP = 200000, JUMPS = 300 };
static _Thread_local volatile int depth, handled;
static _Thread_local sigjmp_buf back;

static void
deep(int number)
{
	volatile unsigned char room[DEEP];
	memset((void *)room, PATTERN, sizeof room);
	stack_t now;
	sigaltstack(NULL, &now);
	handled += (now.ss_flags & SS_DISABLE) != 0;
	if (++depth < 3)
		raise(number);
	depth--;
	for (int i = 0; i < DEEP; i++)
		if (room[i] != PATTERN)
			check(1);
}

static void
jumps(int number)
{
	handled++;
	siglongjmp(back, number);
}

static void
forks(int number)
{
	pid_t child = fork();
	if (!child)
		_exit(compute(0.05) ? number : 1);
	int status = 0;
	waitpid(child, &status, 0);
	handled = WIFEXITED(status) ? WEXITSTATUS(status) == number : 0;
}

static void
ends(int number)
{
	(void)number;
	check(!compute(0.05));
	pthread_exit((void *)own);
}

static void
handle(int number, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER };
	sigaction(number, &action, NULL);
}

static void *
handlers(void *data)
{
	handle(SIGUSR1, deep);
	raise(SIGUSR1);
	printf("deep: %d, ", handled);
	handled = 0;
	handle(SIGUSR1, jumps);
	for (volatile int i = 0; i < JUMPS; i++) {
		if (!sigsetjmp(back, 1))
			raise(SIGUSR1);
		else if (i % 30 == 0)
			check(compute_below());
	}
	printf("jumps: %d, ", handled);
	handle(SIGUSR1, forks);
	raise(SIGUSR1);
	printf("forks: %d\n", handled);
	return data;
}

static void *
ended(void *data)
{
	handle(SIGUSR1, ends);
	raise(SIGUSR1);
	return data;
}

static void *
leaves(void *data)
{
	stack_t stack = { .ss_sp = own[0], .ss_size = OWN };
	if (data)
		sigaltstack(&stack, NULL);
	return data;
}

static int
mappings(int threads)
{
	for (int i = 0; i < threads; i++)
		in_thread(leaves, i % 2 ? own : NULL);
	FILE *file = fopen("/proc/self/maps", "r");
	int lines = 0;
	for (int c; (c = getc(file)) != EOF;)
		lines += c == '\n';
	fclose(file);
	return lines;
}

int
main(int count, char **words)
{
	const char *what = count > 1 ? words[1] : "";
	if (!strcmp(what, "below")) {
		below(NULL);
		in_thread(below, NULL);
	} else if (!strcmp(what, "pointer")) {
		pointer(NULL);
		in_thread(pointer, NULL);
	} else if (!strcmp(what, "shown")) {
		shown(NULL);
		in_thread(shown, NULL);
	} else if (!strcmp(what, "handlers")) {
		handlers(NULL);
		in_thread(handlers, NULL);
		printf("ended by its handler: %d\n", in_thread(ended, NULL) != NULL);
	} else if (!strcmp(what, "threads")) {
		int first = mappings(20);
		printf("mappings remain: %d\n", mappings(200) > first + 20);
	} else if (!strcmp(what, "child")) {
		stack_t tiny = { .ss_sp = own[0], .ss_size = TINY };
		sigaltstack(&tiny, NULL);
		pid_t child = fork();
		int status = 1;
		if (child)
			waitpid(child, &status, 0);
		else
			below(NULL);
		if (child)
			printf("child: %d\n", status);
	} else {
		return 2;
	}
	printf("intact\n");
	return 0;
}
