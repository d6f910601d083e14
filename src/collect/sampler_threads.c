/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The threads that plumb samples, their timers, and the CPU time that no sample covers.
 *
 * The kernel knows how much CPU time a thread had, and so how much there was to sample. plumb
 * records what it did not sample when a thread ends, when the process ends and when sampling goes
 * on: at "[not sampled]" in the profile, and with its reason in the ledger. Any thread may read the
 * clock of another, and make and delete its timer.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/clock.h"
#include "collect/handler_stack.h"
#include "collect/process.h"
#include "collect/recording.h"
#include "collect/sampler.h"
#include "collect/sampler_private.h"
#include "collect/table.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { COARSE = 20000000 }; /* ns: the kernel looks at timers at its own ticks */

_Thread_local struct plumb_sampler *plumb_sampler;
const char plumb_sampler_cookie[1];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* thread start and end, and rarer */
static _Atomic pid_t holder;                             /* of the lock, … */
static uint64_t holder_mask; /* … and the signals that it had blocked before */
static struct plumb_sampler *samplers;
static int number;         /* the signal; 0: none */
static int stopped;        /* enum plumb_fate: why nobody is sampled; 0: they are */
static pid_t process;      /* whose threads these are: a child of vfork has its parent's memory */
static uint64_t begun;     /* when that was, CLOCK_MONOTONIC ns */
static uint64_t begun_cpu; /* … and the process's CPU time, ns */
static _Atomic uint64_t ended_cpu; /* of threads that ended */
static pthread_key_t key;
static bool have_key;

/* ---- the lock ---- */

/* With all signals blocked: a handler of the program's may come here, too. The bare call: our own
 * wrapper would keep one signal out. */
static uint64_t
take_lock(void)
{
	uint64_t all = UINT64_MAX, before = 0;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
	pthread_mutex_lock(&lock);
	holder = (pid_t)syscall(SYS_gettid);
	holder_mask = before;
	return before;
}

static void
leave_lock(uint64_t before)
{
	holder = 0;
	pthread_mutex_unlock(&lock);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
}

bool
plumb_sampler_is_own_process(void)
{
	return process && process == (pid_t)syscall(SYS_getpid);
}

/* ---- timers ---- */

static clockid_t
clock_of(pid_t tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | 6); /* as pthread_getcpuclockid */
}

/* CPU time of a thread, at least what is told already. */
static uint64_t
cpu_of(const struct plumb_sampler *of)
{
	struct timespec now;
	uint64_t last = atomic_load_explicit(&of->last, memory_order_relaxed), ns;
	if (clock_gettime(clock_of(of->tid), &now))
		return last;
	ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return ns > last ? ns : last;
}

static uint64_t
process_cpu(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t
period_ns(void)
{
	return 1000000000u / plumb_collector_options()->cpu_hz;
}

static struct timespec
span_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
}

/* The first sample comes after a part of a period that differs from thread to thread: threads that
 * work in step are not all looked at in the same place. */
static void
arm_timer(struct plumb_sampler *of, bool run)
{
	uint64_t mixed = plumb_mix((uint64_t)of->tid, plumb_clock_ns());
	uint64_t first = period_ns() / 8 + mixed % (period_ns() - period_ns() / 8);
	struct itimerspec time = { .it_interval = span_of(run ? period_ns() : 0),
		                   .it_value = span_of(run ? first : 0) };
	if (of->has_timer)
		syscall(SYS_timer_settime, of->timer, 0, &time, NULL);
}

static bool
make_timer(struct plumb_sampler *of)
{
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
		                  .sigev_signo = number,
		                  .sigev_value.sival_ptr =
		                          (void *)(uintptr_t)plumb_sampler_cookie };
	event.sigev_notify_thread_id = of->tid;
	of->has_timer = number && !syscall(SYS_timer_create, clock_of(of->tid), &event, &of->timer);
	return of->has_timer;
}

static void
delete_timer(struct plumb_sampler *of)
{
	if (of->has_timer)
		syscall(SYS_timer_delete, of->timer);
	of->has_timer = false;
}

/* ---- what was not sampled ---- */

static _Atomic uint64_t unsampled[PLUMB_FATE_COUNT]; /* ns, by reason */

/* Tells NS of OF's CPU time as not sampled. THREAD is the calling one's. */
static void
tell_unsampled(struct plumb_thread *thread, const struct plumb_sampler *of, uint64_t ns,
               enum plumb_fate why)
{
	uint32_t track = atomic_load_explicit(&of->track, memory_order_relaxed);
	plumb_id node = plumb_child_named(thread, 0, PLUMB_FRAME_NATIVE, "[not sampled]");
	plumb_observe(thread, node, PLUMB_METRIC_CPU_TIME,
	              track ? track : plumb_thread_track(thread), (int64_t)ns);
	plumb_count(thread, PLUMB_SOURCE_SAMPLE, PLUMB_FATE_RECEIVED, ns / period_ns());
	plumb_count(thread, PLUMB_SOURCE_SAMPLE, why, ns / period_ns());
	atomic_fetch_add_explicit(&unsampled[why], ns, memory_order_relaxed);
}

static enum plumb_fate
reason_of(const struct plumb_sampler *of)
{
	int why = atomic_load_explicit(&of->why, memory_order_relaxed);
	if (why)
		return (enum plumb_fate)why;
	return of->short_of_stack ? PLUMB_FATE_SMALL_STACK : PLUMB_FATE_SIGNAL_BLOCKED;
}

/* Has thread TID our signal blocked now? By the kernel's account, which all threads may read. */
static bool
blocks_ours(pid_t tid)
{
	static const char name[] = "\nSigBlk:\t";
	char path[64], text[4096];
	if (tid == holder)
		return holder_mask >> (number - 1) & 1;
	snprintf(path, sizeof path, "/proc/self/task/%d/status", (int)tid);
	plumb_read_file(path, text, sizeof text);
	const char *line = strstr(text, name);
	return !line || strtoull(line + sizeof name - 1, NULL, 16) >> (number - 1) & 1;
}

/* What a thread's CPU time may be ahead of its last sample without a reason: some periods may be
 * the kernel's, or the host's of a virtual machine, which took the processor away meanwhile. */
static uint64_t
allowed_lateness(void)
{
	return 10 * period_ns() + 250000000u;
}

/* What a sampled thread's CPU time is ahead of its samples: a period, and what the kernel's ticks
 * add. More was lost. While recording is paused nothing is told. */
static void
tell_gap(const struct plumb_sampler *of, uint64_t now)
{
	uint64_t gap = now - atomic_load_explicit(&of->last, memory_order_relaxed);
	enum plumb_fate why = reason_of(of);
	if (gap <= period_ns() + COARSE || (why == PLUMB_FATE_SIGNAL_BLOCKED && number &&
	                                    gap <= allowed_lateness() && !blocks_ours(of->tid)))
		return;
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_SAMPLE);
	if (!thread)
		return;
	tell_unsampled(thread, of, gap, why);
	plumb_leave(thread);
}

void
plumb_sampler_tell_late(struct plumb_thread *thread, struct plumb_sampler *of, uint64_t *ns)
{
	if (*ns < allowed_lateness())
		return; /* the sample stands for all of it */
	tell_unsampled(thread, of, *ns - period_ns(), reason_of(of));
	*ns = period_ns();
}

/* Under the lock. */
static void
tell_all(void)
{
	for (struct plumb_sampler *of = samplers; of; of = of->next) {
		uint64_t now = cpu_of(of);
		tell_gap(of, now);
		atomic_store_explicit(&of->last, now, memory_order_relaxed);
	}
}

/* Under the lock: what the process's clock shows beyond that of the threads that are known. Their
 * beginnings and ends, and plumb's own threads, are some of it. */
static void
tell_unknown_threads(void)
{
	const struct plumb_sampler nobody = { .why = PLUMB_FATE_UNKNOWN_THREAD };
	uint64_t whole = process_cpu() - begun_cpu, known = atomic_load(&ended_cpu);
	for (const struct plumb_sampler *of = samplers; of; of = of->next)
		known += cpu_of(of) - of->first;
	if (whole > known && whole - known > 250000000u + whole / 10)
		tell_gap(&nobody, whole - known);
}

/* One line for the person, at the process's end. */
static void
note_gaps(void)
{
	char text[400];
	size_t used = 0;
	for (int why = 0; why < PLUMB_FATE_COUNT && used < sizeof text; why++) {
		uint64_t ns = atomic_exchange(&unsampled[why], 0);
		if (ns)
			used += (size_t)snprintf(text + used, sizeof text - used,
			                         "%s%llu.%02llu s of CPU time were not sampled: %s",
			                         used ? "; " : "",
			                         (unsigned long long)(ns / 1000000000u),
			                         (unsigned long long)(ns / 10000000u % 100u),
			                         plumb_fate_reasons[why]);
	}
	struct plumb_thread *thread = used ? plumb_enter(PLUMB_CALLBACK_SAMPLE) : NULL;
	if (!thread)
		return;
	plumb_environment(thread, "cpu.gap", text);
	plumb_leave(thread);
}

void
plumb_sampler_end(void)
{
	if (!plumb_sampler_is_own_process())
		return;
	uint64_t before = take_lock();
	tell_all();
	tell_unknown_threads();
	leave_lock(before);
	note_gaps();
}

/* ---- a debugger ---- */

bool
plumb_sampler_is_traced(void)
{
	static const char name[] = "\nTracerPid:\t";
	char text[1024];
	if (plumb_collector_options()->sample_traced)
		return false;
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	long got = syscall(SYS_read, fd, text, sizeof text - 1);
	syscall(SYS_close, fd);
	text[got > 0 ? got : 0] = '\0';
	const char *line = strstr(text, name);
	return line && line[sizeof name - 1] != '0';
}

/* Under the lock. */
static void
stop_all(enum plumb_fate why)
{
	stopped = (int)why;
	for (struct plumb_sampler *of = samplers; of; of = of->next) {
		arm_timer(of, false);
		atomic_store_explicit(&of->why, (int)why, memory_order_relaxed);
	}
}

bool
plumb_sampler_stop(enum plumb_fate why)
{
	if (pthread_mutex_trylock(&lock))
		return false;
	stop_all(why);
	pthread_mutex_unlock(&lock);
	return true;
}

/* Under the lock: the debugger left. */
static void
go_on(void)
{
	tell_all();
	stopped = 0;
	for (struct plumb_sampler *of = samplers; of; of = of->next) {
		atomic_store_explicit(&of->why, 0, memory_order_relaxed);
		arm_timer(of, true);
	}
}

/* ---- threads ---- */

struct plumb_sampler *
plumb_sampler_new(void)
{
	char *memory = plumb_handler_stack_map();
	if (!memory)
		return NULL;
	size_t bytes = (sizeof(struct plumb_sampler) + 63) & ~(size_t)63;
	struct plumb_sampler *own = (struct plumb_sampler *)(memory + PLUMB_HANDLER_STACK - bytes);
	own->memory = memory;
	return own;
}

void
plumb_sampler_free(struct plumb_sampler *own)
{
	munmap(own->memory, PLUMB_HANDLER_STACK);
}

void
plumb_sampler_thread_begin(struct plumb_sampler *own)
{
	own->tid = (pid_t)syscall(SYS_gettid);
	own->switches = -1;
	own->own = own->missed = own->short_of_stack = 0;
	own->at_work = false;
	atomic_store(&own->track, 0);
	own->first = plumb_cpu_now();
	atomic_store(&own->last, own->first);
	uint64_t before = take_lock();
	if (stopped == PLUMB_FATE_TRACED && !plumb_sampler_is_traced())
		go_on();
	own->before = NULL;
	own->next = samplers;
	if (samplers)
		samplers->before = own;
	samplers = own;
	atomic_store(&own->why, stopped);
	if (number && !make_timer(own)) {
		plumb_process_lost(PLUMB_SOURCE_THREAD, PLUMB_FATE_UNMAPPED_THREAD);
		atomic_store(&own->why, PLUMB_FATE_UNMAPPED_THREAD);
	}
	stack_t stack = plumb_handler_stack_give(own->memory, own);
	if (!atomic_load(&own->why) && plumb_handler_stack_is_small(&stack))
		atomic_store(&own->why, PLUMB_FATE_SMALL_STACK);
	own->counters = plumb_thread_counters_open();
	plumb_sampler = own;
	atomic_store(&own->on, true);
	pthread_setspecific(key, own);
	if (!atomic_load(&own->why))
		arm_timer(own, true);
	/* Perhaps inherited; see shield.c. */
	leave_lock(number ? before & ~(UINT64_C(1) << (number - 1)) : before);
}

/* The key's destructor. */
static void
thread_end(void *data)
{
	struct plumb_sampler *own = data;
	if (!plumb_sampler_is_own_process())
		return;
	atomic_store(&own->on, false);
	uint64_t before = take_lock();
	delete_timer(own);
	*(own->before ? &own->before->next : &samplers) = own->next;
	if (own->next)
		own->next->before = own->before;
	leave_lock(before);
	uint64_t now = cpu_of(own);
	tell_gap(own, now);
	atomic_fetch_add(&ended_cpu, now - own->first);
	plumb_thread_counters_close(own->counters);
	plumb_sampler = NULL;
	if (plumb_handler_stack_take(own->memory))
		plumb_sampler_free(own);
}

bool
plumb_sampler_threads_prepare(void)
{
	if (!have_key)
		have_key = !pthread_key_create(&key, thread_end);
	process = (pid_t)syscall(SYS_getpid);
	begun = plumb_clock_ns();
	begun_cpu = process_cpu();
	atomic_store(&ended_cpu, 0);
	if (plumb_sampler_is_traced())
		stopped = PLUMB_FATE_TRACED;
	return have_key;
}

void
plumb_sampler_threads_forked(void)
{
	pthread_mutex_init(&lock, NULL);
	samplers = NULL;
	stopped = number ? 0 : stopped;
	for (int why = 0; why < PLUMB_FATE_COUNT; why++)
		atomic_store(&unsampled[why], 0);
	if (plumb_sampler) { /* a timer is not inherited */
		atomic_store(&plumb_sampler->on, false);
		plumb_sampler->has_timer = false;
		plumb_thread_counters_close(plumb_sampler->counters);
		plumb_sampler->counters = NULL;
	}
}

void
plumb_sampler_stack_changed(void)
{
	struct plumb_sampler *own = plumb_sampler;
	if (!own || !plumb_sampler_is_own_process())
		return;
	stack_t stack = plumb_handler_stack_give(own->memory, own);
	int wanted = plumb_handler_stack_is_small(&stack) ? PLUMB_FATE_SMALL_STACK : 0;
	uint64_t before = take_lock();
	int why = atomic_load(&own->why);
	if (why != wanted && (!why || why == PLUMB_FATE_SMALL_STACK)) {
		uint64_t now = cpu_of(own);
		tell_gap(own, now);
		atomic_store(&own->last, now);
		atomic_store(&own->why, wanted);
		arm_timer(own, !wanted);
	}
	leave_lock(before);
}

/* ---- the signal ---- */

int
plumb_sampler_signal(void)
{
	return number;
}

/* A real-time signal that nobody handles, from the top but one: the top one is taken more often. */
static int
free_signal(const sigset_t *away)
{
	struct sigaction action;
	for (int i = SIGRTMAX - SIGRTMIN; i > 0; i--) {
		int one = i > 1 ? SIGRTMIN + i - 1 : SIGRTMAX;
		if (one != number && !(away && sigismember(away, one) == 1) &&
		    !plumb_shield_sigaction(one, NULL, &action) && action.sa_handler == SIG_DFL)
			return one;
	}
	return 0;
}

static bool
take_signal(int one)
{
	struct sigaction action = { .sa_sigaction = plumb_sampler_handle,
		                    .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK };
	sigfillset(&action.sa_mask);
	return one && !plumb_shield_sigaction(one, &action, NULL);
}

bool
plumb_sampler_move(const sigset_t *away)
{
	if (number && !plumb_sampler_is_own_process())
		return true; /* a child of vfork: its own handlers, its parent's memory */
	uint64_t saved = take_lock();
	int to = free_signal(away), before = number;
	bool took = take_signal(to);
	if (took) {
		number = to;
		for (struct plumb_sampler *of = samplers; of; of = of->next) {
			delete_timer(of);
			if (make_timer(of) && !atomic_load(&of->why))
				arm_timer(of, true);
		}
	}
	if (before && took) {
		/* What is still on its way is thrown away. */
		struct sigaction action = { .sa_handler = SIG_IGN };
		plumb_shield_sigaction(before, &action, NULL);
		action.sa_handler = SIG_DFL;
		plumb_shield_sigaction(before, &action, NULL);
	}
	leave_lock(saved);
	return took;
}

void
plumb_sampler_give_up(void)
{
	if (!plumb_sampler_is_own_process())
		return;
	struct sigaction action = { .sa_handler = SIG_IGN };
	uint64_t saved = take_lock();
	tell_all();
	for (struct plumb_sampler *of = samplers; of; of = of->next)
		delete_timer(of);
	plumb_shield_sigaction(number, &action, NULL);
	number = 0;
	stop_all(PLUMB_FATE_SIGNAL_TAKEN);
	leave_lock(saved);
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_SAMPLE);
	if (!thread)
		return;
	char text[160];
	uint64_t after = (plumb_clock_ns() - begun) / 10000000u;
	snprintf(text, sizeof text,
	         "CPU time was sampled for the first %llu.%02llu s only: the program uses all "
	         "real-time signals",
	         (unsigned long long)(after / 100), (unsigned long long)(after % 100));
	plumb_environment(thread, "cpu.off", text);
	plumb_leave(thread);
}
