/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/monitor/framework.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "collect/monitor/python.h"
#include "collect/process.h"
#include "collect/wait.h"

static const struct plumb_framework *const frameworks[] = {
	&plumb_framework_torch,
};
enum { FRAMEWORKS = sizeof frameworks / sizeof *frameworks };

enum { WAITING, ATTACHED, REFUSED };
static int states[FRAMEWORKS];
static _Atomic int waiting = FRAMEWORKS;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* start-up only */

static void
offer_one(size_t i)
{
	struct plumb_error error = { 0 };
	int result = frameworks[i]->attach(&error);
	if (result > 0)
		return;
	states[i] = result ? REFUSED : ATTACHED;
	atomic_fetch_sub(&waiting, 1);
	if (!result)
		return;
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_OPERATOR_ENTER);
	if (thread) {
		char key[64];
		snprintf(key, sizeof key, "framework.%s.off", frameworks[i]->name);
		plumb_environment(thread, key, error.message);
		plumb_leave(thread);
	}
}

/* Python is met with or without a framework: GPU calls have Python lines, too. */
static struct plumb_error python_refusal;

static void
offer_python(void)
{
	static _Atomic bool settled;
	if (atomic_load_explicit(&settled, memory_order_relaxed))
		return;
	struct plumb_error error = { 0 };
	int result = plumb_python_attach(&error);
	if (result > 0)
		return;
	if (result < 0)
		python_refusal = error;
	atomic_store_explicit(&settled, true, memory_order_release);
	plumb_process_choose_layers();
	struct plumb_thread *thread =
		plumb_recording() ? plumb_enter_paused(PLUMB_CALLBACK_OPERATOR_ENTER) : NULL;
	if (thread) {
		plumb_framework_describe_python(plumb_thread_arena(thread));
		plumb_leave(thread);
	}
	plumb_wait_met_python();
}

void
plumb_framework_describe_python(struct plumb_arena *arena)
{
	if (plumb_python_ready())
		plumb_arena_environment(arena, "python.version", plumb_python_version());
	else if (python_refusal.code)
		plumb_arena_environment(arena, "python.off", python_refusal.message);
}

void
plumb_framework_offer(const char *symbol)
{
	if (!plumb_process_wanted())
		return;
	offer_python();
	if (!atomic_load_explicit(&waiting, memory_order_relaxed))
		return;
	/* Whoever holds it attaches; and a child that was forked meanwhile must not wait for
	 * ever. */
	if (pthread_mutex_trylock(&lock))
		return;
	for (size_t i = 0; i < FRAMEWORKS; i++)
		if (states[i] == WAITING && (!symbol || !strcmp(symbol, frameworks[i]->symbol)))
			offer_one(i);
	pthread_mutex_unlock(&lock);
}

void
plumb_framework_listen(bool on)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < FRAMEWORKS; i++)
		if (states[i] == ATTACHED)
			frameworks[i]->listen(on);
	pthread_mutex_unlock(&lock);
}

void
plumb_framework_describe(struct plumb_thread *thread)
{
	static uint32_t described; /* generation; the first one's frameworks describe themselves */
	if (plumb_likely(described == plumb_generation))
		return;
	described = plumb_generation;
	for (size_t i = 0; i < FRAMEWORKS; i++)
		if (states[i] == ATTACHED)
			frameworks[i]->describe(thread);
}
