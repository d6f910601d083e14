/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes on stacks of several shapes, on two threads, until each has taken SECONDS of CPU time,
 * for test_native_walk.py: sampled SECONDS
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

static volatile unsigned sink;

static APART double
cpu_time(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static APART void
leaf(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sink += i * i;
}

/* Calls and returns all the time: a sample falls into beginnings and ends of functions, too. */
static APART unsigned
small(unsigned number)
{
	return number < 2 ? number + sink : small(number - 1) + small(number - 2);
}

static APART int
compare(const void *a, const void *b)
{
	leaf(300);
	return *(const int *)a - *(const int *)b;
}

/* Through libc, which has no symbols for the functions between. */
static APART void
sorted(void)
{
	int numbers[64];
	for (int i = 0; i < 64; i++)
		numbers[i] = i * 37 % 64;
	qsort(numbers, 64, sizeof numbers[0], compare);
	sink += (unsigned)numbers[5];
}

/* A frame whose size is only known at run time. */
static APART void
dynamic(unsigned size)
{
	char *area = alloca(size);
	memset(area, 1, size);
	leaf(20000);
	sink += (unsigned char)area[size / 2];
}

static void
on_signal(int number)
{
	(void)number;
	leaf(60000);
}

static APART void
deep(int depth)
{
	if (depth) {
		deep(depth - 1);
		leaf(100);
		return;
	}
	leaf(20000);
	raise(SIGUSR1);
	sink++;
}

static APART void *
work(void *data)
{
	double seconds = *(const double *)data;
	while (cpu_time() < seconds) {
		small(16);
		sorted();
		dynamic(500 + sink % 1000);
		deep(12);
	}
	sink++;
	return NULL;
}

int
main(int count, char **words)
{
	double seconds = count > 1 ? atof(words[1]) : 0;
	pthread_t thread;
	signal(SIGUSR1, on_signal);
	if (pthread_create(&thread, NULL, work, &seconds))
		return 1;
	work(&seconds);
	pthread_join(thread, NULL);
	return 0;
}
