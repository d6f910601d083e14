/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads: making, parking and taking over their part of the collector, and the frame around every
 * callback (re-entry guard, errno, timing of one callback in 64).
 */
#include "collect/thread.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collect/clock.h"
#include "collect/module.h"
#include "collect/monitor/framework.h"
#include "collect/process.h"
#include "collect/range.h"
#include "collect/recording.h"
#include "collect/task.h"
#include "collect/user_metric.h"
#include "collect/wait.h"

/* All the thread-local storage there is: initial-exec space is scarce in a preloaded library. */
static _Thread_local struct plumb_thread *current;
static _Thread_local bool inside;
static _Thread_local uint16_t
	wait_for_room; /* callbacks to let pass before asking for room again */

static _Atomic int slow; /* threads that are being made, and have no `busy` yet */
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
	inside = true;
	current = NULL;
	if (!plumb_recording() || thread->generation != plumb_generation) {
		inside = false;
		return;
	}
	thread_name(thread, thread, atomic_load_explicit(&thread->tid, memory_order_relaxed));
	plumb_wait_tell_end(thread);
	thread->record->end = plumb_clock_ns();
	plumb_tasks_drop(thread);
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
	plumb_module_end(self, 0);
	for (struct plumb_thread *t = atomic_load(&threads); t; t = t->next) {
		uint32_t tid = atomic_load_explicit(&t->tid, memory_order_relaxed);
		if (tid && t->record) {
			thread_name(self, t, tid);
			t->record->end = plumb_clock_ns();
		}
	}
}

struct plumb_thread *
plumb_thread_get(void)
{
	return current;
}

bool
plumb_thread_inside(void)
{
	return inside;
}

/* `inside` stays: where a signal's handler forked in a callback, that callback ends in the
 * child. */
void
plumb_threads_forked(void)
{
	current = NULL;
	wait_for_room = 0;
	pthread_mutex_init(&parked_lock, NULL);
	parked = NULL;
	atomic_store(&threads, NULL);
	if (have_exit_key)
		pthread_setspecific(exit_key, NULL);
}

/* Under parked_lock. */
static void
make_exit_key(void)
{
	if (!have_exit_key)
		have_exit_key = !pthread_key_create(&exit_key, thread_park);
}

/* Early: of later keys the C library keeps a thread's values on the heap, and a handler would
 * allocate. */
void
plumb_threads_prepare(void)
{
	pthread_mutex_lock(&parked_lock);
	make_exit_key();
	pthread_mutex_unlock(&parked_lock);
}

/* ---- a second recording ---- */

bool
plumb_threads_quiesce(void)
{
	const struct timespec step = { 0, 1000000 };
	enum { STEPS = 2000 };
	/* After this a thread that read the gate before it was closed shows that it is busy. */
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) ||
	    syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
	for (int i = 0; i < STEPS; i++) {
		bool any = atomic_load(&slow) != 0;
		for (struct plumb_thread *t = atomic_load(&threads); t && !any; t = t->next)
			any = t != current && atomic_load(&t->busy);
		if (!any)
			return true;
		nanosleep(&step, NULL);
	}
	return false;
}

/* Does the framework hold none of its tickets? It may give one back however late. */
static bool
holds_no_ticket(const struct plumb_thread *thread)
{
	uint32_t free = 0;
	for (uint32_t at = thread->free_tickets; at; at = thread->tickets[at].next_free)
		free++;
	return free == thread->tickets_made;
}

void
plumb_threads_renew(void)
{
	struct plumb_thread *next;
	pthread_mutex_lock(&parked_lock);
	for (struct plumb_thread *t = atomic_exchange(&threads, NULL); t; t = next) {
		next = t->next;
		/* A living thread has a pointer to its own, and frees it when it comes by. */
		if (!atomic_load(&t->tid) && holds_no_ticket(t))
			munmap(t, t->bytes);
	}
	parked = NULL;
	pthread_mutex_unlock(&parked_lock);
}

/* The calling thread's part of an earlier recording. */
static void
forget_own(void)
{
	struct plumb_thread *thread = current;
	current = NULL;
	if (have_exit_key)
		pthread_setspecific(exit_key, NULL);
	if (thread->bytes && holds_no_ticket(thread))
		munmap(thread, thread->bytes);
}

static struct plumb_thread *
thread_new(void)
{
	pthread_mutex_lock(&parked_lock);
	make_exit_key();
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
		sizeof(struct plumb_module_call) * PLUMB_PYTHON_MAX,
		sizeof(struct plumb_open_range) * PLUMB_RANGES_MAX,
		sizeof(struct plumb_metric_slot) * PLUMB_METRIC_SLOTS,
		sizeof(void *) * PLUMB_PYTHON_MAX,
		sizeof(struct plumb_range_site) * PLUMB_RANGE_SITES,
		sizeof(plumb_id) * PLUMB_CALL_NAMES,
		sizeof(plumb_id) * PLUMB_ENGINE_TYPES,
		sizeof(struct plumb_backward_entry) * PLUMB_BACKWARD_ENTRIES,
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
	thread->bytes = total;
	thread->stack = (void *)(memory + offsets[1]);
	thread->tickets = (void *)(memory + offsets[2]);
	thread->walk = (void *)(memory + offsets[3]);
	thread->python = (void *)(memory + offsets[4]);
	thread->locations = (void *)(memory + offsets[5]);
	thread->names = (void *)(memory + offsets[6]);
	thread->symbol = (void *)(memory + offsets[7]);
	thread->identities = (void *)(memory + offsets[8]);
	thread->calls = (void *)(memory + offsets[9]);
	thread->ranges = (void *)(memory + offsets[10]);
	thread->metrics = (void *)(memory + offsets[11]);
	thread->chain = (void *)(memory + offsets[12]);
	thread->sites = (void *)(memory + offsets[13]);
	thread->call_names = (void *)(memory + offsets[14]);
	thread->engine_names = (void *)(memory + offsets[15]);
	thread->backward = (void *)(memory + offsets[16]);
	thread->generation = plumb_generation;
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
	record->start = plumb_clock_ns();
	plumb_arena_commit(&thread->arena, record);
	thread->record = record;
	thread->track = plumb_region_id(thread->arena.region, record);
	overhead->thread = thread->track;
	thread->overhead = overhead;
	_Atomic uint32_t *newest = &thread->arena.region->header->newest_thread;
	record->before = atomic_load_explicit(newest, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(newest, &record->before, thread->track,
	                                              memory_order_release, memory_order_relaxed))
		;
	reserve_tallies(&thread->arena);
	thread->caller = 0;
	atomic_store_explicit(&thread->last_context, 0, memory_order_relaxed);
	atomic_store_explicit(&thread->backward_context, 0, memory_order_relaxed);
	atomic_store_explicit(&thread->tid, tid, memory_order_relaxed);
	thread_name(thread, thread, tid);
	return true;
}

/* NULL: there is no room, and *WHY says of what kind. */
static struct plumb_thread *
thread_start(enum plumb_fate *why)
{
	struct plumb_thread *thread = thread_new();
	if (!thread || !thread_introduce(thread)) {
		*why = thread ? thread->arena.fate : PLUMB_FATE_UNMAPPED_THREAD;
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
	plumb_framework_describe(thread);
	plumb_wait_tell_main(thread);
	return thread;
}

/* ---- callbacks ---- */

/* Recording has not begun, is paused or over; or the thread is new. With `inside` set. What finds
 * no room is counted at SOURCE: the thread itself has nowhere to count it. */
static __attribute__((noinline)) struct plumb_thread *
enter_slowly(bool paused_too, enum plumb_source source)
{
	enum { RETRY_AFTER = 1024 };
	int saved = errno, cancel;
	struct plumb_thread *thread = NULL;
	if (!paused_too && !plumb_control_is_on(plumb_control))
		return NULL;
	if (wait_for_room) {
		wait_for_room--;
		plumb_process_lost(source, PLUMB_FATE_REGION_FULL);
		return NULL;
	}
	/* Files are read here, and a thread that is cancelled in that must not keep a lock. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	atomic_fetch_add(&slow, 1);
	if (plumb_process_begin()) {
		/* An earlier recording's; or a parent's: a signal's handler forked while this one
		 * was being made. */
		if (current && current->generation != plumb_generation)
			forget_own();
		enum plumb_fate why = PLUMB_FATE_REGION_FULL;
		thread = current ? current : thread_start(&why);
		if (!thread) {
			wait_for_room = RETRY_AFTER;
			plumb_process_lost(source, why);
		}
	}
	if (thread)
		atomic_store_explicit(&thread->busy, true, memory_order_relaxed);
	atomic_fetch_sub(&slow, 1);
	pthread_setcancelstate(cancel, NULL);
	errno = saved;
	return thread;
}

static inline __attribute__((always_inline)) struct plumb_thread *
enter(enum plumb_callback_kind kind, bool paused_too, enum plumb_source source)
{
	if (plumb_unlikely(inside))
		return NULL;
	/* First of all: a signal's handler that forks has to see that we are at it. */
	inside = true;
	atomic_signal_fence(memory_order_seq_cst);
	struct plumb_thread *thread = current;
	/* Before the gate is looked at: see plumb_threads_quiesce. */
	if (plumb_likely(thread))
		atomic_store_explicit(&thread->busy, true, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	uint64_t word = plumb_process_gate_word();
	if (plumb_unlikely(!thread || !(word & PLUMB_CONTROL_ON) ||
	                   thread->generation != plumb_generation)) {
		struct plumb_thread *before = thread;
		thread = enter_slowly(paused_too, source);
		if (!thread) {
			if (before && before == current)
				atomic_store_explicit(&before->busy, false, memory_order_relaxed);
			inside = false;
			return NULL;
		}
		word = plumb_process_gate_word();
	}
	thread->saved_errno = errno;
	thread->epoch = (uint32_t)word;
	thread->callback = kind;
	thread->callback_start = 0;
	if (plumb_unlikely((++thread->overhead->kinds[kind].calls & 63) == 0))
		thread->callback_start = plumb_clock_ns();
	return thread;
}

/* What a callback tells of, where its kind says it. */
static const uint8_t source_of[PLUMB_CALLBACK_KINDS] = {
	[PLUMB_CALLBACK_OPERATOR_ENTER] = PLUMB_SOURCE_OPERATOR,
	[PLUMB_CALLBACK_OPERATOR_EXIT] = 0, /* its beginning was counted */
	[PLUMB_CALLBACK_GPU] = PLUMB_SOURCE_REGION,
	[PLUMB_CALLBACK_GPU_RECORDS] = 0, /* what it reads is counted record by record */
	[PLUMB_CALLBACK_SAMPLE] = PLUMB_SOURCE_SAMPLE,
	[PLUMB_CALLBACK_MEMORY] = PLUMB_SOURCE_MEMORY,
};

PLUMB_HOT_CODE struct plumb_thread *
plumb_enter(enum plumb_callback_kind kind)
{
	return enter(kind, false, source_of[kind]);
}

PLUMB_HOT_CODE struct plumb_thread *
plumb_enter_of(enum plumb_callback_kind kind, enum plumb_source source)
{
	return enter(kind, false, source);
}

PLUMB_HOT_CODE struct plumb_thread *
plumb_enter_paused(enum plumb_callback_kind kind)
{
	return enter(kind, true, 0);
}

PLUMB_HOT_CODE void
plumb_leave(struct plumb_thread *thread)
{
	if (plumb_unlikely(thread->callback_start)) {
		/* Between two readings lies the cost of one. */
		uint64_t took = plumb_clock_ns() - thread->callback_start;
		thread->overhead->kinds[thread->callback].timed_ns +=
			took > plumb_clock_cost ? took - plumb_clock_cost : 0;
		thread->overhead->kinds[thread->callback].timed++;
	}
	errno = thread->saved_errno;
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&thread->busy, false, memory_order_release);
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

uint32_t
plumb_epoch(const struct plumb_thread *thread)
{
	return thread->epoch;
}
