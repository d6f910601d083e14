/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spends its time at one instruction, first by itself, then beneath a signal's handler, and again
 * by itself, for test_native_walk.py.
 */
#include <setjmp.h>
#include <signal.h>
#include <time.h>

enum { STRETCHES = 6, TICKS = 50 };

static sigjmp_buf out;
static volatile unsigned sink;

static double
cpu_time(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void
on_signal(int number)
{
	(void)number;
	for (double end = cpu_time() + TICKS / 1e3; cpu_time() < end;)
		sink++;
	siglongjmp(out, 1);
}

static __attribute__((noinline, noclone)) void
spin(void)
{
	__asm__ volatile("nop; 1: jmp 1b" ::: "memory"); /* not where the function begins */
}

int
main(void)
{
	timer_t timer;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	struct itimerspec time = { .it_value = { 0, TICKS * 1000000L } };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };
	volatile int left = STRETCHES;
	if (sigaction(SIGUSR1, &action, NULL) ||
	    timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer))
		return 1;
	sigsetjmp(out, 1);
	if (left--) {
		timer_settime(timer, 0, &time, NULL);
		spin();
	}
	return 0;
}
