/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer on a thread's CPU clock sends a real-time signal to that very thread. The signal restarts
 * system calls, and the clock stands still while a thread waits. So a program sees no extra EINTR,
 * unless the signal comes just when the thread begins to wait.
 *
 * plumb reads CPU time from the clock and does not count periods: the kernel looks at timers at its
 * own ticks, and a sample covers the time since the last one. Time in plumb's own work on the
 * thread is kept apart, at "[plumb]". The guard tells it: plumb_enter refuses.
 */
#include "collect/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "collect/clock.h"
#include "collect/context.h"
#include "collect/handler_stack.h"
#include "collect/monitor/framework.h"
#include "collect/monitor/python.h"
#include "collect/process.h"
#include "collect/real.h"
#include "collect/sampler_private.h"
#include "collect/span.h"
#include "collect/wait.h"

/* ---- a sample ---- */

static void
observe_own(struct plumb_thread *thread, struct plumb_sampler *own)
{
	plumb_id node = plumb_child_named(thread, 0, PLUMB_FRAME_NATIVE, "[plumb]");
	plumb_observe(thread, node, PLUMB_METRIC_CPU_TIME, thread->track, (int64_t)own->own);
	plumb_count(thread, PLUMB_SOURCE_SAMPLE, PLUMB_FATE_RECEIVED, own->missed);
	plumb_count(thread, PLUMB_SOURCE_SAMPLE, PLUMB_FATE_OWN_TIME, own->missed);
	own->own = own->missed = 0;
}

static void
count_short_of_stack(struct plumb_thread *thread, struct plumb_sampler *own)
{
	plumb_count(thread, PLUMB_SOURCE_SAMPLE, PLUMB_FATE_RECEIVED, own->short_of_stack);
	plumb_count(thread, PLUMB_SOURCE_SAMPLE, PLUMB_FATE_SHORT_OF_STACK, own->short_of_stack);
	own->short_of_stack = 0;
}

static void
observe_sample(struct plumb_thread *thread, struct plumb_sampler *own, const void *registers,
               uint64_t ns, uint64_t at)
{
	plumb_id node = plumb_context_interrupted(thread, registers);
	plumb_sampler_tell_late(thread, own, &ns);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SAMPLE, PLUMB_FATE_RECEIVED, 1);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SAMPLE,
	                  node == PLUMB_LOST ? thread->arena.fate
	                  : node             ? PLUMB_FATE_ATTRIBUTED
	                                     : PLUMB_FATE_NO_STACK,
	                  1);
	if (!node)
		node = plumb_child_named(thread, 0, PLUMB_FRAME_NATIVE, "[unknown code]");
	plumb_observe(thread, node, PLUMB_METRIC_CPU_TIME, thread->track, (int64_t)ns);
	/* The guard lets no sample into plumb's own work, so the thread's ring is not being written
	 * now. */
	if (plumb_unlikely(plumb_trace_on))
		plumb_span_sample(thread, node, at, ns);
	if (own->counters)
		plumb_thread_counters_observe(own->counters, thread, node);
	plumb_wait_tell_where(thread);
	atomic_store_explicit(&own->track, thread->track, memory_order_relaxed);
	if (own->own)
		observe_own(thread, own);
	if (own->short_of_stack)
		count_short_of_stack(thread, own);
}

/* A debugger that attached meanwhile would stop at each of our signals, and another tracer sees
 * them. A traced thread has stopped before it gets a signal, so one that has not waited needs no
 * look. */
static void
look_for_tracer(struct plumb_sampler *own)
{
	struct rusage usage;
	if (getrusage(RUSAGE_THREAD, &usage) || usage.ru_nvcsw == own->switches)
		return;
	own->switches = usage.ru_nvcsw;
	if (plumb_sampler_is_traced() && !plumb_sampler_stop(PLUMB_FATE_TRACED))
		own->switches = -1;
}

/* On our own stack. Not in its caller, whose frame has to be small. */
static __attribute__((noinline)) void
take_sample(const void *registers)
{
	struct plumb_sampler *own = plumb_sampler;
	int saved = errno;
	if (!plumb_recording() && !plumb_process_may_begin())
		return; /* another thread makes the region: the next sample tells this time */
	uint64_t now = plumb_cpu_now();
	uint64_t ns = now - atomic_load_explicit(&own->last, memory_order_relaxed);
	/* Beside the other clock. */
	uint64_t at = plumb_unlikely(plumb_trace_on) ? plumb_ticks() : 0;
	atomic_store_explicit(&own->last, now, memory_order_relaxed);
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_SAMPLE);
	if (thread) {
		observe_sample(thread, own, registers, ns, at);
		plumb_leave(thread);
	} else if (plumb_thread_inside()) {
		own->own += ns;
		own->missed++;
	}
	look_for_tracer(own);
	errno = saved;
}

/* Perhaps on a stack of the program's, of which it may take PLUMB_HANDLER_FRAME bytes: it calls
 * nothing that the loader would have to find first, and keeps nothing. */
void
plumb_sampler_handle(int number, siginfo_t *info, void *registers)
{
	struct plumb_sampler *own = plumb_sampler;
	if (plumb_unlikely(info->si_code != SI_TIMER ||
	                   info->si_value.sival_ptr != plumb_sampler_cookie)) {
		plumb_shield_foreign(number);
		return;
	}
	if (!own || !atomic_load_explicit(&own->on, memory_order_relaxed))
		return;
	bool on_ours = plumb_handler_stack_has(own->memory, __builtin_frame_address(0));
	size_t room = on_ours ? PLUMB_HANDLER_ROOM : PLUMB_HANDLER_FRAME;
	if (plumb_unlikely(own->at_work || plumb_handler_stack_is_short(registers, room))) {
		own->short_of_stack++;
		return;
	}
	own->at_work = true;
	if (on_ours)
		take_sample(registers);
	else
		plumb_handler_stack_call(own, take_sample, registers);
	own->at_work = false;
}

/* ---- threads ---- */

static bool sampling; /* is it asked for? */

static void *
run_thread(void *data)
{
	struct plumb_sampler *own = data;
	plumb_native_prepare();
	plumb_sampler_thread_begin(own);
	return own->routine(own->argument);
}

/* plumb's own threads are not the program's. */
static bool
is_own(void *(*routine)(void *))
{
	extern const char __ehdr_start[] __attribute__((visibility("hidden")));
	extern const char _end[] __attribute__((visibility("hidden")));
	uintptr_t at = (uintptr_t)routine;
	return at >= (uintptr_t)__ehdr_start && at < (uintptr_t)_end;
}

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
#ifdef PLUMB_OF_SANITIZER
#define pthread_create plumb_pthread_create
#endif
PLUMB_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                                void *(*routine)(void *), void *argument);

int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*routine)(void *),
               void *argument)
{
	static create_function *_Atomic real;
	create_function *create = atomic_load_explicit(&real, memory_order_relaxed);
	if (!create) {
		*(void **)&create = plumb_real_dlsym(RTLD_NEXT, "pthread_create");
		atomic_store_explicit(&real, create, memory_order_relaxed);
	}
	/* Not on the heap: its locks would then be taken where the program takes none, and a signal
	 * whose handler forks there would find them held. */
	struct plumb_sampler *own =
		sampling && create && !is_own(routine) ? plumb_sampler_new() : NULL;
	if (!own)
		return create ? create(thread, attributes, routine, argument) : EAGAIN;
	own->routine = routine;
	own->argument = argument;
	int result = create(thread, attributes, run_thread, own);
	if (result)
		plumb_sampler_free(own);
	return result;
}

/* ---- the process ---- */

void
plumb_sampler_begin(void)
{
	if (!plumb_collector_options()->cpu_hz || !plumb_collector_options()->folder[0])
		return;
	struct plumb_sampler *own = plumb_sampler ? plumb_sampler : plumb_sampler_new();
	if (!own || !plumb_sampler_threads_prepare())
		return;
	if (!sampling) {
		plumb_shield_begin();
		plumb_threads_prepare();
		if (!plumb_sampler_move(NULL))
			return;
		sampling = true;
		plumb_native_prepare();
		plumb_framework_offer(""); /* finds Python's functions while it is safe to look */
		plumb_python_signal_begin();
	}
	plumb_waits = true;
	plumb_sampler_thread_begin(own);
}

void
plumb_sampler_forked(void)
{
	plumb_sampler_threads_forked();
	plumb_sampler_begin();
}
