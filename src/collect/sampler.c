/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A timer on a thread's CPU clock sends a real-time signal to that very thread. The signal restarts
 * system calls, and the clock stands still while a thread waits, so that a program sees no EINTR that
 * it would not see otherwise (short of one that was about to begin waiting when the clock struck).
 *
 * CPU time is read from the clock, not counted in periods: the kernel looks at timers at its own
 * ticks, and a sample stands for what passed since the last one. What passes while plumb itself is at
 * work on the thread is known by the guard (plumb_enter refuses) and kept apart, at "[plumb]".
 */
#include "collect/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/clock.h"
#include "collect/context.h"
#include "collect/metric.h"
#include "collect/monitor/framework.h"
#include "collect/monitor/python.h"
#include "collect/process.h"
#include "collect/span.h"
#include "collect/wait.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* The kernel's number, not glibc's timer_t: timer_create(3) allocates. */
struct sampler {
	int timer;
	bool on;
	uint64_t last;                   /* CPU time at the last sample, ns */
	uint64_t own;                    /* CPU time in plumb's own work, not yet told, ns */
	uint64_t missed;                 /* samples that fell into it */
	struct plumb_counters *counters; /* NULL: none */
};
static _Thread_local struct sampler sampler;

static int number;           /* the signal; 0: off */
static pthread_key_t key;    /* its destructor ends a thread's sampler */
static const char cookie[1]; /* what our timers carry */

/* ---- a sample ---- */

static void
observe_own(struct plumb_thread *thread)
{
	plumb_id node = plumb_child_named(thread, 0, PLUMB_FRAME_NATIVE, "[plumb]");
	plumb_observe(thread, node, PLUMB_METRIC_CPU_TIME, thread->track, (int64_t)sampler.own);
	plumb_count(thread, PLUMB_SOURCE_SAMPLE, PLUMB_FATE_RECEIVED, sampler.missed);
	plumb_count(thread, PLUMB_SOURCE_SAMPLE, PLUMB_FATE_OWN_TIME, sampler.missed);
	sampler.own = sampler.missed = 0;
}

static void
observe(struct plumb_thread *thread, const void *registers, uint64_t ns, uint64_t at)
{
	plumb_id node = plumb_context_interrupted(thread, registers);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SAMPLE, PLUMB_FATE_RECEIVED, 1);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SAMPLE,
	                  node == PLUMB_LOST ? thread->arena.fate
	                  : node             ? PLUMB_FATE_ATTRIBUTED
	                                     : PLUMB_FATE_NO_STACK,
	                  1);
	if (!node)
		node = plumb_child_named(thread, 0, PLUMB_FRAME_NATIVE, "[unknown code]");
	plumb_observe(thread, node, PLUMB_METRIC_CPU_TIME, thread->track, (int64_t)ns);
	/* The guard lets no sample into plumb's own work, so the thread's ring is not being written now. */
	if (plumb_unlikely(plumb_trace_on))
		plumb_span_sample(thread, node, at, ns);
	if (sampler.counters)
		plumb_counters_observe(sampler.counters, thread, node);
	plumb_wait_tell_where(thread);
	if (sampler.own)
		observe_own(thread);
}

static void
take(const void *registers)
{
	uint64_t now = plumb_cpu_now(), ns = now - sampler.last;
	/* Beside the other clock. */
	uint64_t at = plumb_unlikely(plumb_trace_on) ? plumb_ticks() : 0;
	sampler.last = now;
	struct plumb_thread *thread = NULL;
	if (plumb_recording() || plumb_process_may_begin())
		thread = plumb_enter(PLUMB_CALLBACK_SAMPLE);
	if (thread) {
		observe(thread, registers, ns, at);
		plumb_leave(thread);
	} else if (plumb_recording()) {
		sampler.own += ns;
		sampler.missed++;
	}
}

static void
handle(int signal, siginfo_t *info, void *registers)
{
	(void)signal;
	int saved = errno;
	if (info->si_code == SI_TIMER && info->si_value.sival_ptr == cookie && sampler.on)
		take(registers);
	errno = saved;
}

/* ---- threads ---- */

static void
thread_end(void *data)
{
	(void)data;
	if (!sampler.on)
		return;
	sampler.on = false;
	syscall(SYS_timer_delete, sampler.timer);
	plumb_counters_close(sampler.counters);
	sampler.counters = NULL;
}

/* The first sample comes after a part of a period that differs from thread to thread: threads that
 * work in step are not all looked at in the same place. */
static uint64_t
first_after(uint64_t period, pid_t tid)
{
	uint64_t mixed = plumb_mix((uint64_t)tid, plumb_now());
	return period / 8 + mixed % (period - period / 8);
}

static void
thread_begin(void)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);
	uint64_t period = 1000000000u / plumb_options()->cpu_hz;
	uint64_t first = first_after(period, tid);
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
		                  .sigev_signo = number,
		                  .sigev_value.sival_ptr = (void *)(uintptr_t)cookie };
	struct itimerspec time = {
		.it_interval = { (time_t)(period / 1000000000u), (long)(period % 1000000000u) },
		.it_value = { (time_t)(first / 1000000000u), (long)(first % 1000000000u) },
	};
	event.sigev_notify_thread_id = tid;
	sampler = (struct sampler){ .last = plumb_cpu_now() };
	if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &sampler.timer)) {
		plumb_process_lost(PLUMB_FATE_UNMAPPED_THREAD);
		return;
	}
	sampler.counters = plumb_counters_open();
	sampler.on = true;
	pthread_setspecific(key, cookie);
	syscall(SYS_timer_settime, sampler.timer, 0, &time, NULL);
}

/* Not on the heap: its locks would then be taken where the program takes none, and a signal whose
 * handler forks there would find them held. */
struct start {
	void *(*routine)(void *);
	void *argument;
};

static void *
run_thread(void *data)
{
	struct start start = *(struct start *)data;
	munmap(data, sizeof start);
	plumb_native_prepare();
	thread_begin();
	return start.routine(start.argument);
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
/* A test that is built with a sanitizer and with the collector in it has the sanitizer's own. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OF_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OF_SANITIZER
#endif
#ifdef OF_SANITIZER
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
	struct start *start =
		number && create && !is_own(routine) ? plumb_map(sizeof *start, true) : NULL;
	if (!start)
		return create ? create(thread, attributes, routine, argument) : EAGAIN;
	*start = (struct start){ routine, argument };
	int result = create(thread, attributes, run_thread, start);
	if (result)
		munmap(start, sizeof *start);
	return result;
}

/* ---- the process ---- */

/* A real-time signal that nobody handles, from the top. */
static int
choose_signal(void)
{
	struct sigaction action;
	for (int signal = SIGRTMAX - 1; signal > SIGRTMIN; signal--)
		if (!sigaction(signal, NULL, &action) && action.sa_handler == SIG_DFL)
			return signal;
	return 0;
}

void
plumb_sampler_begin(void)
{
	if (!plumb_options()->cpu_hz || !plumb_options()->folder[0])
		return;
	if (!number) {
		struct sigaction action = { .sa_sigaction = handle,
			                    .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
		int signal = choose_signal();
		sigfillset(&action.sa_mask);
		if (!signal || pthread_key_create(&key, thread_end) ||
		    sigaction(signal, &action, NULL))
			return;
		number = signal;
		plumb_native_prepare();
		plumb_framework_offer(""); /* finds Python's functions while it is safe to look */
		plumb_python_signal_begin();
	}
	plumb_waits = true;
	thread_begin();
}

void
plumb_sampler_forked(void)
{
	struct plumb_counters *of_parent = sampler.counters;
	sampler = (struct sampler){ 0 }; /* a timer is not inherited */
	plumb_counters_close(of_parent);
	plumb_sampler_begin();
}
