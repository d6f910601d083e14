/* SPDX-License-Identifier: Apache-2.0 */
/* The table of GPU runtimes, and what starts and stops them. A new one is one more row. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "collect/gpu/gpu.h"

static const struct plumb_gpu_runtime *const runtimes[] = { &plumb_gpu_cuda };
#define RUNTIMES (sizeof runtimes / sizeof *runtimes)

enum { WAITING, ACTIVE, REFUSED, STOPPED };
static _Atomic int states[RUNTIMES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The one line about a runtime that stays off. */
static void
say_off(const struct plumb_gpu_runtime *runtime, const struct plumb_error *error)
{
	char key[64];
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU_RECORDS);
	if (!thread)
		return;
	snprintf(key, sizeof key, "gpu.%s.off", runtime->name);
	plumb_environment(thread, key, error->message);
	plumb_leave(thread);
}

void
plumb_gpu_start(void)
{
	if (!plumb_options()->gpu || !plumb_options()->folder[0])
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RUNTIMES; i++) {
		struct plumb_error error = { 0 };
		if (atomic_load(&states[i]) != WAITING)
			continue;
		int result = runtimes[i]->start(&error);
		if (!result) {
			atomic_store(&states[i], ACTIVE);
		} else if (result < 0) {
			atomic_store(&states[i], REFUSED);
			say_off(runtimes[i], &error);
		}
	}
	pthread_mutex_unlock(&lock);
}

bool
plumb_gpu_active(void)
{
	for (size_t i = 0; i < RUNTIMES; i++)
		if (atomic_load_explicit(&states[i], memory_order_relaxed) == ACTIVE)
			return true;
	return false;
}

void
plumb_gpu_flush(bool force)
{
	for (size_t i = 0; i < RUNTIMES; i++)
		if (atomic_load(&states[i]) == ACTIVE)
			runtimes[i]->flush(force);
}

void
plumb_gpu_stop(void)
{
	for (size_t i = 0; i < RUNTIMES; i++) {
		int active = ACTIVE;
		if (atomic_compare_exchange_strong(&states[i], &active, STOPPED))
			runtimes[i]->stop();
	}
}
