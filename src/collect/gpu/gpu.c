/* SPDX-License-Identifier: Apache-2.0 */
/* What starts and stops GPU runtimes. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "collect/gpu/gpu.h"
#include "collect/process.h"

enum { IDLE, ACTIVE, OFF };
static _Atomic int states[PLUMB_GPU_RUNTIMES_MAX]; /* of plumb_gpu_runtimes */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool inherited;

/* The one line about a runtime or driver, NAME, that stays off. */
static void
say_off(const char *name, const char *why)
{
	char key[64];
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (!thread)
		return;
	snprintf(key, sizeof key, "gpu.%s.off", name);
	plumb_environment(thread, key, why);
	plumb_leave(thread);
}

/* Starts runtime I, unless that was done before. */
static void
start_runtime(size_t i)
{
	struct plumb_error error = { 0 };
	if (atomic_load(&states[i]) != IDLE)
		return;
	int result = plumb_gpu_runtimes[i]->start(&error);
	atomic_store(&states[i], result ? OFF : ACTIVE);
	if (result)
		say_off(plumb_gpu_runtimes[i]->name, error.message);
}

void
plumb_gpu_start(const char *driver)
{
	enum plumb_gpu_mode mode = plumb_collector_options()->gpu;
	bool served = false;
	char why[128];
	if (mode == PLUMB_GPU_OFF || inherited || !plumb_process_begin())
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; plumb_gpu_runtimes[i]; i++) {
		const struct plumb_gpu_runtime *runtime = plumb_gpu_runtimes[i];
		if (!(runtime->modes & 1u << mode) ||
		    (driver ? strcmp(runtime->driver, driver) : !runtime->ready()))
			continue;
		served = true;
		start_runtime(i);
	}
	if (driver && !served) {
		snprintf(why, sizeof why, "GPU work is not recorded: plumb has no --gpu=%s for %s",
		         plumb_gpu_mode_of(mode)->name, driver);
		say_off(driver, why);
	}
	pthread_mutex_unlock(&lock);
}

void
plumb_gpu_stop(void)
{
	for (size_t i = 0; plumb_gpu_runtimes[i]; i++) {
		int active = ACTIVE;
		if (atomic_compare_exchange_strong(&states[i], &active, OFF))
			plumb_gpu_runtimes[i]->stop();
	}
}

void
plumb_gpu_pause(bool paused)
{
	for (size_t i = 0; plumb_gpu_runtimes[i]; i++)
		if (atomic_load(&states[i]) == ACTIVE && plumb_gpu_runtimes[i]->pause)
			plumb_gpu_runtimes[i]->pause(paused);
}

bool
plumb_gpu_renew(void)
{
	bool all = !inherited;
	for (size_t i = 0; plumb_gpu_runtimes[i]; i++) {
		if (atomic_load(&states[i]) != OFF)
			continue;
		if (all && plumb_gpu_runtimes[i]->renew())
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
	for (size_t i = 0; plumb_gpu_runtimes[i]; i++)
		inherited = inherited || atomic_load(&states[i]) != IDLE;
	for (size_t i = 0; inherited && plumb_gpu_runtimes[i]; i++) {
		atomic_store(&states[i], OFF);
		plumb_gpu_runtimes[i]->forked();
	}
}

bool
plumb_gpu_inherited(void)
{
	return inherited;
}
