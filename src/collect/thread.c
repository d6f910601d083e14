/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: making, parking and taking over their part of the collector, and the frame around every
 * callback (re-entry guard, errno, timing of one callback in 64).
 */
#include "collect/thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/clock.h"
#include "collect/process.h"
#include "collect/range.h"
#include "collect/user_metric.h"

/* All the thread-local storage there is: initial-exec space is scarce in a preloaded library. */
static _Thread_local struct plumb_thread *current;
static _Thread_local bool inside;
static _Thread_local uint16_t
	wait_for_room; /* callbacks to let pass before asking for room again */

static _Atomic(struct plumb_thread *) threads;
static pthread_mutex_t parked_lock = PTHREAD_MUTEX_INITIALIZER; /* thread start and end only */
static struct plumb_thread *parked;
static pthread_key_t exit_key;
static bool have_exit_key;

/* ---- life ---- */

/* Writes into OF's record the name that its thread has now. */
static void
thread_name(struct plumb_thread *self, struct plumb_thread *of, uint32_t tid)
{
	char path[64], name[32] = "";
	if (self == of) {
		prctl(PR_GET_NAME, name);
	} else {
		snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
		plumb_read_file(path, name, sizeof name);
		name[strcspn(name, "\n")] = '\0';
	}
	plumb_id id = name[0] ? plumb_intern(self, name, strlen(name)) : 0;
	if (id)
		of->record->name = id;
}

/* The thread ends: leave its part to the next one. Runs as a pthread key's destructor. */
static void
thread_park(void *data)
{
	struct plumb_thread *thread = data;
	current = NULL;
	if (!plumb_recording())
		return;
	inside = true;
	thread_name(thread, thread, atomic_load_explicit(&thread->tid, memory_order_relaxed));
	thread->record->end = plumb_now();
	plumb_ranges_drop(thread);
	plumb_operators_drop(thread);
	atomic_store_explicit(&thread->tid, 0, memory_order_relaxed);
	pthread_mutex_lock(&parked_lock);
	thread->next_parked = parked;
	parked = thread;
	pthread_mutex_unlock(&parked_lock);
	inside = false;
}

void
plumb_threads_finish(struct plumb_thread *self)
{
	for (struct plumb_thread *t = atomic_load(&threads); t; t = t->next) {
		uint32_t tid = atomic_load_explicit(&t->tid, memory_order_relaxed);
		if (tid && t->record) {
			thread_name(self, t, tid);
			t->record->end = plumb_now();
		}
	}
}

struct plumb_thread *
plumb_thread_get(void)
{
	return current;
}

static struct plumb_thread *
thread_new(void)
{
	pthread_mutex_lock(&parked_lock);
	if (!have_exit_key)
		have_exit_key = !pthread_key_create(&exit_key, thread_park);
	struct plumb_thread *thread = parked;
	if (thread)
		parked = thread->next_parked;
	pthread_mutex_unlock(&parked_lock);
	if (thread)
		return thread;

	/* One mapping; what is never touched costs no memory. */
	size_t sizes[] = {
		sizeof *thread,
		sizeof(struct plumb_operator_frame) * (PLUMB_OPERATORS_MAX + 1),
		sizeof(struct plumb_ticket) * (PLUMB_OPERATORS_MAX + 1),
		sizeof(struct plumb_python_frame) * PLUMB_PYTHON_MAX,
		sizeof(struct plumb_python_entry) * PLUMB_PYTHON_MAX,
		sizeof(struct plumb_python_location) * PLUMB_LOCATION_SETS * PLUMB_LOCATION_WAYS,
		sizeof(struct plumb_name_entry) * PLUMB_NAME_CACHE,
		sizeof(struct plumb_python_symbol),
		sizeof(struct plumb_python_identity) * PLUMB_PYTHON_MAX,
		sizeof(struct plumb_open_range) * PLUMB_RANGES_MAX,
		sizeof(struct plumb_metric_slot) * PLUMB_METRIC_SLOTS,
	};
	enum { PARTS = sizeof sizes / sizeof *sizes };
	size_t offsets[PARTS], total = 0;
	for (size_t i = 0; i < PARTS; i++) {
		offsets[i] = total;
		total += (sizes[i] + 63) & ~(size_t)63;
	}
	char *memory = plumb_map(total, true);
	if (!memory)
		return NULL;
	thread = (struct plumb_thread *)memory;
	thread->stack = (void *)(memory + offsets[1]);
	thread->tickets = (void *)(memory + offsets[2]);
	thread->walk = (void *)(memory + offsets[3]);
	thread->python = (void *)(memory + offsets[4]);
	thread->locations = (void *)(memory + offsets[5]);
	thread->names = (void *)(memory + offsets[6]);
	thread->symbol = (void *)(memory + offsets[7]);
	thread->identities = (void *)(memory + offsets[8]);
	thread->ranges = (void *)(memory + offsets[9]);
	thread->metrics = (void *)(memory + offsets[10]);
	plumb_arena_init(&thread->arena, plumb_region_of_process());
	struct plumb_thread *first = atomic_load(&threads);
	do
		thread->next = first;
	while (!atomic_compare_exchange_weak(&threads, &first, thread));
	return thread;
}

/* Makes the tallies of what will not find room, while there is room for them. */
static void
reserve_tallies(struct plumb_arena *arena)
{
	static const enum plumb_source sources[] = { PLUMB_SOURCE_OPERATOR, PLUMB_SOURCE_PYTHON,
		                                     PLUMB_SOURCE_VALUE, PLUMB_SOURCE_REGION };
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
		plumb_arena_count(arena, sources[i], PLUMB_FATE_REGION_FULL, 0);
		plumb_arena_count(arena, sources[i], PLUMB_FATE_NO_SPACE, 0);
	}
}

/* Gives the calling thread a track and an overhead record of its own. */
static bool
thread_introduce(struct plumb_thread *thread)
{
	/* The track comes last: without room for both, none is left behind. */
	struct plumb_record_overhead *overhead =
		plumb_arena_append(&thread->arena, PLUMB_RECORD_OVERHEAD, sizeof *overhead);
	if (!overhead)
		return false;
	plumb_process_empty_costs(overhead);
	plumb_arena_commit(&thread->arena, overhead);
	struct plumb_record_thread *record =
		plumb_arena_append(&thread->arena, PLUMB_RECORD_THREAD, sizeof *record);
	if (!record)
		return false;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	record->tid = tid;
	record->start = plumb_now();
	plumb_arena_commit(&thread->arena, record);
	thread->record = record;
	thread->track = plumb_region_id(thread->arena.region, record);
	overhead->thread = thread->track;
	thread->overhead = overhead;
	reserve_tallies(&thread->arena);
	thread->caller = 0;
	atomic_store_explicit(&thread->last_context, 0, memory_order_relaxed);
	atomic_store_explicit(&thread->backward_context, 0, memory_order_relaxed);
	atomic_store_explicit(&thread->tid, tid, memory_order_relaxed);
	thread_name(thread, thread, tid);
	return true;
}

static struct plumb_thread *
thread_start(void)
{
	struct plumb_thread *thread = thread_new();
	if (!thread || !thread_introduce(thread)) {
		plumb_process_lost(thread ? thread->arena.fate : PLUMB_FATE_UNMAPPED_THREAD);
		if (thread) { /* no room for a track: keep it for a thread that finds some */
			pthread_mutex_lock(&parked_lock);
			thread->next_parked = parked;
			parked = thread;
			pthread_mutex_unlock(&parked_lock);
		}
		return NULL;
	}
	current = thread;
	if (have_exit_key)
		pthread_setspecific(exit_key, thread);
	return thread;
}

/* ---- callbacks ---- */

/* Recording has not begun, is over, or this is a forked child; or the thread is new. */
static __attribute__((noinline)) struct plumb_thread *
enter_slowly(void)
{
	enum { RETRY_AFTER = 1024 };
	int saved = errno, cancel;
	struct plumb_thread *thread = NULL;
	if (wait_for_room) {
		wait_for_room--;
		plumb_process_lost(PLUMB_FATE_REGION_FULL);
		return NULL;
	}
	inside = true;
	/* Files are read here, and a thread that is cancelled in that must not keep a lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	if (plumb_process_begin()) {
		thread = current ? current : thread_start();
		if (!thread)
			wait_for_room = RETRY_AFTER;
	}
	pthread_setcancelstate(cancel, NULL);
	inside = false;
	errno = saved;
	return thread;
}

struct plumb_thread *
plumb_enter(enum plumb_callback_kind kind)
{
	if (plumb_unlikely(inside))
		return NULL;
	struct plumb_thread *thread = current;
	if (plumb_unlikely(!thread || !plumb_recording())) {
		thread = enter_slowly();
		if (!thread)
			return NULL;
	}
	inside = true;
	thread->saved_errno = errno;
	thread->callback = kind;
	thread->callback_start = 0;
	if (plumb_unlikely((++thread->overhead->kinds[kind].calls & 63) == 0))
		thread->callback_start = plumb_now();
	return thread;
}

void
plumb_leave(struct plumb_thread *thread)
{
	if (plumb_unlikely(thread->callback_start)) {
		/* Between two readings lies the cost of one. */
		uint64_t took = plumb_now() - thread->callback_start;
		thread->overhead->kinds[thread->callback].timed_ns +=
			took > plumb_clock_cost ? took - plumb_clock_cost : 0;
		thread->overhead->kinds[thread->callback].timed++;
	}
	errno = thread->saved_errno;
	inside = false;
}

struct plumb_arena *
plumb_thread_arena(struct plumb_thread *thread)
{
	return &thread->arena;
}

plumb_id
plumb_thread_track(const struct plumb_thread *thread)
{
	return thread->track;
}
