/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that compute and block in turns; prints how many of their system calls were interrupted,
 * by call. What it does is the same with and without a profiler. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, TURNS = 120, CALLS = 5 };
static const char *const names[CALLS] = { "nanosleep", "poll", "select", "sem_timedwait", "read" };
static _Atomic unsigned interrupted[CALLS];

static void
compute(long ns)
{
	struct timespec now;
	long end = 0;
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
		long at = now.tv_sec * 1000000000 + now.tv_nsec;
		if (!end)
			end = at + ns;
		if (at >= end)
			return;
	} while (1);
}

static void
count(int call, int result)
{
	if (result && errno == EINTR)
		interrupted[call]++;
}

static void *
work(void *argument)
{
	int *pipe_ends = argument;
	sem_t semaphore;
	sem_init(&semaphore, 0, 0);
	for (int turn = 0; turn < TURNS; turn++) {
		struct timespec wait = { 0, 1000000 }, until;
		struct timeval time = { 0, 1000 };
		char byte = 'x';
		compute(1500000);
		count(0, nanosleep(&wait, NULL));
		count(1, poll(NULL, 0, 1) < 0);
		compute(1500000);
		count(2, select(0, NULL, NULL, NULL, &time) < 0);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 1000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		count(3, sem_timedwait(&semaphore, &until));
		if (write(pipe_ends[1], &byte, 1) == 1)
			count(4, read(pipe_ends[0], &byte, 1) < 0);
	}
	return NULL;
}

int
main(void)
{
	pthread_t threads[THREADS];
	int pipes[THREADS][2];
	for (int i = 0; i < THREADS; i++)
		if (pipe(pipes[i]) || pthread_create(&threads[i], NULL, work, pipes[i]))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < CALLS; i++)
		printf("%s %u\n", names[i], interrupted[i]);
	return 0;
}
