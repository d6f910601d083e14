/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes for 60, 30 and 10 % of SECONDS of CPU time in three functions: of the program, on a
 * thread of its own, and of a library that is loaded while it runs (this file with -DLIBRARY).
 * Prints what each took in ns.
 *
 *	cpu_native LIBRARY SECONDS
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

static double
cpu_time(void)
{
	struct timespec time;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Nothing is asked of the kernel but once in a while. */
static APART void
spin(double seconds)
{
	double until = cpu_time() + seconds;
	volatile unsigned total = 0;
	while (cpu_time() < until)
		for (unsigned i = 0; i < 200000; i++)
			total += i * i;
}

#ifdef LIBRARY
APART double
burn_ten(double seconds)
{
	double start = cpu_time();
	spin(seconds * 0.1);
	return cpu_time() - start;
}
#else
static APART double
burn_sixty(double seconds)
{
	double start = cpu_time();
	spin(seconds * 0.6);
	return cpu_time() - start;
}

static APART double
burn_thirty(double seconds)
{
	double start = cpu_time();
	spin(seconds * 0.3);
	return cpu_time() - start;
}

static double seconds, thirty;

static void *
on_thread(void *data)
{
	(void)data;
	thirty = burn_thirty(seconds);
	return NULL;
}

int
main(int count, char **words)
{
	double (*burn_ten)(double) = NULL;
	pthread_t thread;
	void *library = count == 3 ? dlopen(words[1], RTLD_NOW) : NULL;
	if (library)
		*(void **)&burn_ten = dlsym(library, "burn_ten");
	if (!burn_ten)
		return 1;
	seconds = atof(words[2]);
	pthread_create(&thread, NULL, on_thread, NULL);
	double sixty = burn_sixty(seconds);
	double ten = burn_ten(seconds);
	pthread_join(thread, NULL);
	printf("{\"burn_sixty\": %.0f, \"burn_thirty\": %.0f, \"burn_ten\": %.0f}\n", sixty * 1e9,
	       thirty * 1e9, ten * 1e9);
	return 0;
}
#endif
