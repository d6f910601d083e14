/* SPDX-License-Identifier: Apache-2.0 */
/* A library whose own thread calls Python, which makes and frees a thread state for it each time,
 * and then waits in C. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static pthread_t thread;

static void *
work(void *callback)
{
	((void (*)(void))callback)();
	usleep(600000);
	return NULL;
}

void
start(void (*callback)(void))
{
	pthread_create(&thread, NULL, work, (void *)callback);
}

void
finish(void)
{
	pthread_join(thread, NULL);
}
