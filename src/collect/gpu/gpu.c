/* SPDX-License-Identifier: Apache-2.0 */
/* The table of GPU runtimes, and what starts and stops them. A new one is one more row. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "collect/gpu/gpu.h"
#include "collect/process.h"

static const struct plumb_gpu_runtime *const runtimes[] = { &plumb_gpu_cuda };
#define RUNTIMES (sizeof runtimes / sizeof *runtimes)

enum { IDLE, ACTIVE, OFF };
static _Atomic int states[RUNTIMES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool inherited;

/* The one line about a runtime that stays off. */
static void
say_off(const struct plumb_gpu_runtime *runtime, const struct plumb_error *error)
{
	char key[64];
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (!thread)
		return;
	snprintf(key, sizeof key, "gpu.%s.off", runtime->name);
	plumb_environment(thread, key, error->message);
	plumb_leave(thread);
}

void
plumb_gpu_start(void)
{
	if (!plumb_options()->gpu || inherited || !plumb_process_begin())
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < RUNTIMES; i++) {
		struct plumb_error error = { 0 };
		if (atomic_load(&states[i]) != IDLE)
			continue;
		int result = runtimes[i]->start(&error);
		atomic_store(&states[i], result ? OFF : ACTIVE);
		if (result)
			say_off(runtimes[i], &error);
	}
	pthread_mutex_unlock(&lock);
}

void
plumb_gpu_stop(void)
{
	for (size_t i = 0; i < RUNTIMES; i++) {
		int active = ACTIVE;
		if (atomic_compare_exchange_strong(&states[i], &active, OFF))
			runtimes[i]->stop();
	}
}

void
plumb_gpu_pause(bool paused)
{
	for (size_t i = 0; i < RUNTIMES; i++)
		if (atomic_load(&states[i]) == ACTIVE && runtimes[i]->pause)
			runtimes[i]->pause(paused);
}

bool
plumb_gpu_renew(void)
{
	bool all = !inherited;
	for (size_t i = 0; i < RUNTIMES; i++) {
		if (atomic_load(&states[i]) != OFF)
			continue;
		if (all && runtimes[i]->renew())
			atomic_store(&states[i], IDLE);
		else
			all = inherited;
	}
	return all || inherited;
}

void
plumb_gpu_forked(void)
{
	/* Locked: a thread that is not here any more was starting one. */
	inherited = inherited || pthread_mutex_trylock(&lock);
	pthread_mutex_init(&lock, NULL);
	for (size_t i = 0; i < RUNTIMES; i++)
		inherited = inherited || atomic_load(&states[i]) != IDLE;
	for (size_t i = 0; inherited && i < RUNTIMES; i++) {
		atomic_store(&states[i], OFF);
		runtimes[i]->forked();
	}
}

bool
plumb_gpu_inherited(void)
{
	return inherited;
}
