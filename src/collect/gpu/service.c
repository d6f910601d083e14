/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/gpu/service.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static void
futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec limit = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
}

static void
futex_wake(_Atomic uint32_t *word)
{
	atomic_fetch_add(word, 1);
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void
plumb_service_adopt(struct plumb_service *service)
{
	service->process = (pid_t)syscall(SYS_getpid);
}

void
plumb_service_forked(struct plumb_service *service)
{
	service->process = 0;
}

bool
plumb_service_is_own(const struct plumb_service *service)
{
	return service->process && service->process == (pid_t)syscall(SYS_getpid);
}

int
plumb_service_start(struct plumb_service *service, void *(*serve)(void *data), const char *what,
                    struct plumb_error *error)
{
	sigset_t all, before;
	pthread_t thread;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	errno = pthread_create(&thread, NULL, serve, NULL);
	int result = errno;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result)
		return plumb_fail_errno(error, "%s: plumb's thread for it could not be started",
		                        what);
	pthread_detach(thread);
	service->serving = true;
	return 0;
}

void
plumb_service_wake(struct plumb_service *service)
{
	int saved = errno;
	futex_wake(&service->wakes);
	errno = saved;
}

bool
plumb_service_stop(struct plumb_service *service, uint64_t limit_ns)
{
	if (!plumb_service_is_own(service) || atomic_exchange(&service->stopping, true))
		return false;
	uint64_t limit = plumb_clock_ns() + limit_ns, now;
	plumb_service_wake(service);
	for (;;) {
		uint32_t seen = atomic_load(&service->ends);
		if (atomic_load(&service->ended) || (now = plumb_clock_ns()) >= limit)
			return true;
		futex_wait(&service->ends, seen, limit - now);
	}
}

bool
plumb_service_renew(struct plumb_service *service)
{
	if (!atomic_load(&service->ended))
		return false;
	service->serving = false;
	atomic_store(&service->stopping, false);
	atomic_store(&service->ended, false);
	return true;
}

bool
plumb_service_is_stopping(const struct plumb_service *service)
{
	return atomic_load(&service->stopping);
}

uint32_t
plumb_service_wakes(const struct plumb_service *service)
{
	return atomic_load(&service->wakes);
}

void
plumb_service_sleep(struct plumb_service *service, uint32_t seen, uint64_t ns)
{
	if (!plumb_service_is_stopping(service))
		futex_wait(&service->wakes, seen, ns);
}

void
plumb_service_ended(struct plumb_service *service)
{
	atomic_store(&service->ended, true);
	futex_wake(&service->ends);
}
