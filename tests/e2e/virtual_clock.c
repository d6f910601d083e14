/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A clock that only sleeping moves, the same one in all processes that have this library in
 * LD_PRELOAD and the file $VIRTUAL_CLOCK: a program takes exactly as long as it says, however busy
 * the machine is. A sleep is a short real one too, so that others see the program run. The
 * processor's own counter is hidden: plumb then reads this clock.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)
#define REAL_PART 4 /* a sleep really takes this part of its time */

struct shared {
	_Atomic int64_t now;   /* CLOCK_MONOTONIC */
	_Atomic int64_t epoch; /* CLOCK_REALTIME less that; 0: not yet set */
};

static struct shared *shared;
static int (*real_gettime)(clockid_t, struct timespec *);
static int (*real_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);

static int64_t
read_real(clockid_t clock)
{
	struct timespec ts;

	real_gettime(clock, &ts);
	return ts.tv_sec * SECOND + ts.tv_nsec;
}

static void
begin(void)
{
	const char *path = getenv("VIRTUAL_CLOCK");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	int64_t none = 0;

	real_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	real_nanosleep = (int (*)(clockid_t, int, const struct timespec *, struct timespec *))dlsym(
		RTLD_NEXT, "clock_nanosleep");
	if (fd < 0 || ftruncate(fd, sizeof *shared) != 0)
		abort();
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (shared == MAP_FAILED)
		abort();
	if (atomic_compare_exchange_strong(&shared->now, &none, read_real(CLOCK_MONOTONIC)))
		atomic_store(&shared->epoch, read_real(CLOCK_REALTIME) - atomic_load(&shared->now));
}

static __attribute__((constructor)) void
load(void)
{
	if (!shared)
		begin();
}

int
clock_gettime(clockid_t clock, struct timespec *ts)
{
	int64_t now;

	load();
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_MONOTONIC_COARSE &&
	    clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME && clock != CLOCK_MONOTONIC_RAW)
		return real_gettime(clock, ts);
	/* No two readings are the same. */
	now = atomic_fetch_add(&shared->now, 1);
	if (clock == CLOCK_REALTIME)
		now += atomic_load(&shared->epoch);
	ts->tv_sec = now / SECOND;
	ts->tv_nsec = now % SECOND;
	return 0;
}

static void
pass(int64_t ns)
{
	struct timespec real = { ns / REAL_PART / SECOND, ns / REAL_PART % SECOND };

	if (ns <= 0)
		return;
	real_nanosleep(CLOCK_MONOTONIC, 0, &real, NULL);
	/* What other threads wait for is no work of the program. */
	if (gettid() == getpid())
		atomic_fetch_add(&shared->now, ns);
}

int
clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
	int64_t ns = time->tv_sec * SECOND + time->tv_nsec;

	load();
	(void)left;
	if (flags & TIMER_ABSTIME)
		ns -= atomic_load(&shared->now) +
		      (clock == CLOCK_REALTIME ? atomic_load(&shared->epoch) : 0);
	pass(ns);
	return 0;
}

int
nanosleep(const struct timespec *time, struct timespec *left)
{
	return clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);
}

int
usleep(useconds_t us)
{
	load();
	pass((int64_t)us * 1000);
	return 0;
}

/* Where plumb asks whether the kernel trusts the processor's counter. */
int
open(const char *path, int flags, ...)
{
	static int (*real_open)(const char *, int, ...);
	va_list args;
	int mode;

	if (!real_open)
		real_open = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	va_start(args, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0;
	va_end(args);
	return real_open(strstr(path, "current_clocksource") ? "/dev/null" : path, flags, mode);
}
