/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernel says exactly how long a thread slept between two looks. Where it slept is sampled: by
 * the looks. Time before the thread was seen awake belongs to the place of the look before, and the
 * rest to the place of this look. Looks come at random distances. So a program with a steady beat
 * does not fall in step with them.
 *
 * The kernel's time includes what operators and driver calls measure themselves. The collector says
 * how much that was so far, and plumb subtracts it. While a thread is in such a call, plumb adds
 * nothing: the collector counts that wait when the call ends.
 *
 * A look takes a bounded time. If there are too many threads for it, they take turns.
 *
 * A thread that did not run between two reads of its memory did not change that memory. The count
 * of how often the kernel set it going proves that it did not run (asleep.h). While that count
 * stays, the thread is where it was at the look before, and plumb reads nothing.
 */
#include "watch/watch.h"

#include <stdlib.h>
#include <time.h>

#include "base/hash.h"
#include "watch/asleep.h"
#include "watch/place.h"

enum {
	COST_SHARE = 160,      /* looking takes at most this part of one processor, 0.6 % */
	LOOK_NS = 500000,      /* CPU time of one look, … */
	THREADS_AT_ONCE = 2,   /* … checked after this many threads */
	TRIES = 3,             /* to catch a thread that sleeps while its place is read */
	THREADS_MAX = 1000000, /* in a process */
	FIRST_MS = 5,          /* between two looks: at least this … */
	MORE_MS = 10,          /* … and up to this much more */
};
#define MEASURED UINT32_MAX /* THREAD.current: the collector measures this wait */

/* Where a thread is asleep. */
struct place {
	plumb_id node;        /* 0: unknown. MEASURED: add nothing */
	enum plumb_fate fate; /* of the time added there */
};

struct thread {
	plumb_id record;
	uint32_t tid;
	uint64_t looked;                   /* when; 0: not yet */
	struct plumb_asleep_counts counts; /* then; runs 0: not proved to be asleep */
	uint64_t told;                     /* THREAD.waited then */
	bool asleep;                       /* then */
	struct place place;                /* then, when it was asleep */
	int64_t pending;                   /* ns asleep that are not yet added */
	struct place last;                 /* where plumb added time last */
	bool woken;                        /* it was seen awake since … */
	int64_t head;                      /* … and this much of `pending` was before */
};

struct process {
	struct plumb_watch_region *region;
	struct plumb_watch_tree *tree; /* the region's */
	plumb_id newest;               /* the last THREAD record in `threads` */
	bool over;
	PLUMB_VEC(struct thread) threads;
	struct plumb_watch_python python;
};

struct plumb_watch {
	struct plumb_watch_regions *regions;
	PLUMB_VEC(struct process *) processes;
	uint32_t process, thread; /* whose turn it is */
	uint64_t not_before;      /* the next look */
	uint64_t since;           /* when recording began or went on */
	uint64_t random;
	struct plumb_watch_reader reader;
};

static uint64_t
clock_ns(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static struct plumb_region_header *
header_of(const struct process *process)
{
	return plumb_watch_region_header(process->region);
}

/* ---- regions ---- */

/* What is new: a process for each region, in the same order. */
static void
find_processes(struct plumb_watch *watch)
{
	plumb_watch_regions_find(watch->regions);
	while (watch->processes.count < watch->regions->regions.count) {
		struct process *process = calloc(1, sizeof(*process));
		struct process **place = process ? plumb_vec_add(&watch->processes) : NULL;
		if (!place) {
			free(process);
			return;
		}
		process->region = watch->regions->regions.items[watch->processes.count - 1];
		process->tree = &process->region->tree;
		*place = process;
	}
}

static void
find_threads(struct process *process)
{
	plumb_id newest =
		atomic_load_explicit(&header_of(process)->newest_thread, memory_order_acquire);
	for (plumb_id id = newest; id && id != process->newest;) {
		const struct plumb_record_thread *record =
			plumb_watch_region_thread(process->region, id);
		struct thread *thread = record ? plumb_vec_add(&process->threads) : NULL;
		if (!thread)
			break;
		*thread = (struct thread){ .record = id, .tid = record->tid };
		/* A damaged chain may go round. */
		id = process->threads.count < THREADS_MAX ? record->before : 0;
	}
	process->newest = newest;
}

/* ---- where a thread waits ---- */

/* Where the sleeping thread is. */
static struct place
find_place(struct plumb_watch *watch, struct process *process,
           const struct plumb_record_thread *record)
{
	struct plumb_watch_at at = {
		.thread = record,
		.under = atomic_load_explicit(&record->current, memory_order_relaxed),
	};
	if (at.under == MEASURED)
		return (struct place){ MEASURED, PLUMB_FATE_ATTRIBUTED };
	plumb_watch_place_find(&watch->reader, &process->python, process->tree, &at);
	return (struct place){ at.node, at.truncated ? PLUMB_FATE_TOO_DEEP
		                        : at.node    ? PLUMB_FATE_ATTRIBUTED
		                                     : PLUMB_FATE_NO_STACK };
}

/* Finds whether the thread is asleep, and where. Fills in its counts as of then. False: it is
 * gone. */
static bool
examine_thread(struct plumb_watch *watch, struct process *process, struct thread *thread,
               const struct plumb_record_thread *record)
{
	uint32_t pid = header_of(process)->pid;
	struct plumb_asleep_counts counts;
	if (!plumb_asleep_count(pid, thread->tid, &counts))
		return false;
	if (thread->asleep && thread->counts.runs && thread->counts.runs == counts.runs)
		return true;
	for (int i = 0; i < TRIES; i++) {
		thread->counts = counts;
		thread->asleep = plumb_asleep(pid, thread->tid);
		if (!thread->asleep)
			return true;
		thread->place = find_place(watch, process, record);
		if (!plumb_asleep_count(pid, thread->tid, &counts))
			return false;
		if (counts.runs == thread->counts.runs && plumb_asleep(pid, thread->tid)) {
			thread->counts = counts;
			return true;
		}
	}
	thread->place = (struct place){ 0, PLUMB_FATE_NO_STACK };
	thread->counts = counts;
	thread->counts.runs = 0;
	return true;
}

/* ---- how long ---- */

/* The context for threads whose place is unknown. */
static plumb_id
unknown_place(struct process *process)
{
	struct plumb_record_node key = {
		.kind = PLUMB_FRAME_NATIVE,
		.name = plumb_watch_tree_string(process->tree, "[waiting]"),
	};
	return key.name ? plumb_watch_tree_node(process->tree, &key) : 0;
}

static const struct plumb_watch_kind waits = { PLUMB_METRIC_WAIT_TIME, PLUMB_SOURCE_WAIT_SAMPLE };

static void
add_wait(struct process *process, const struct thread *thread, struct place place, int64_t ns)
{
	if (ns > 0)
		plumb_watch_tree_add(process->tree, waits,
		                     place.node ? place.node : unknown_place(process),
		                     thread->record, (uint64_t)ns, place.fate);
}

/* Divides what is pending between where the thread was before and where it is now. */
static void
divide_pending(struct process *process, struct thread *thread)
{
	int64_t pending = thread->pending > 0 ? thread->pending : 0, head = 0;
	if (thread->last.fate && thread->last.node != thread->place.node)
		head = !thread->woken           ? pending / 2
		       : thread->head < pending ? thread->head
		                                : pending;
	add_wait(process, thread, thread->last, head);
	add_wait(process, thread, thread->place, pending - head);
	thread->last = thread->place;
	thread->pending = 0;
	thread->woken = false;
}

/* How long the thread slept since the look before. COUNTS and TOLD are of that look; recording is
 * on since SINCE. */
static int64_t
count_slept(const struct thread *thread, const struct plumb_record_thread *record, uint64_t now,
            uint64_t since, const struct plumb_asleep_counts *counts, uint64_t told)
{
	bool first = !thread->looked;
	uint64_t met = atomic_load_explicit(&record->awake_at, memory_order_acquire);
	uint64_t from = !first ? thread->looked : met ? met : record->start;
	uint64_t awake = thread->counts.awake - (!first ? counts->awake : met ? record->awake : 0);
	if (from < since) { /* recording was paused */
		bool all_the_while = thread->asleep && !first && counts->runs &&
		                     counts->runs == thread->counts.runs;
		return all_the_while && now > since ? (int64_t)(now - since) : 0;
	}
	if (!thread->counts.timed)
		return thread->asleep && now > from ? (int64_t)(now - from) : 0;
	int64_t ns = (int64_t)(now - from - awake - (thread->told - told));
	return first && ns < 0 ? 0 : ns; /* it may have computed before plumb knew it */
}

/* The thread ended after the last look. What it slept since then goes to where it was then. */
static void
finish_thread(struct process *process, const struct thread *thread,
              const struct plumb_record_thread *record, uint64_t since)
{
	uint64_t met = atomic_load_explicit(&record->awake_at, memory_order_acquire);
	uint64_t from = thread->looked ? thread->looked : met;
	uint64_t awake = thread->looked ? thread->counts.awake : record->awake;
	struct place place =
		thread->asleep && thread->place.node != MEASURED ? thread->place : thread->last;
	if (!record->end || !record->awake_end || !met || from < since ||
	    record->head.flags & PLUMB_THREAD_OWN)
		return;
	if (!place.fate) /* no look saw it */
		place.fate = PLUMB_FATE_NO_STACK;
	add_wait(process, thread, place,
	         thread->pending + (int64_t)(record->end - from - (record->awake_end - awake) -
	                                     (record->waited - thread->told)));
}

/* False: the thread has ended. */
static bool
look_at_thread(struct plumb_watch *watch, struct process *process, struct thread *thread)
{
	const struct plumb_record_thread *record =
		plumb_watch_region_thread(process->region, thread->record);
	const struct plumb_asleep_counts counts = thread->counts;
	uint64_t told = thread->told, since = watch->since;
	if (!record || record->head.flags & PLUMB_THREAD_OWN)
		return false;
	if (record->end || !examine_thread(watch, process, thread, record)) {
		finish_thread(process, thread, record, since);
		return false;
	}
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	thread->told = atomic_load_explicit(&record->waited, memory_order_relaxed);
	if (thread->looked < since || !thread->counts.timed) {
		thread->last = (struct place){ 0 };
		thread->pending = 0;
	}
	thread->pending += count_slept(thread, record, now, since, &counts, told);
	thread->looked = now;
	if (thread->asleep && thread->place.node != MEASURED) {
		divide_pending(process, thread);
	} else if (!thread->asleep && !thread->woken) {
		thread->woken = true;
		thread->head = thread->pending;
	}
	return true;
}

/* ---- a look ---- */

/* The process no longer records. */
static void
finish_process(struct plumb_watch *watch, struct process *process)
{
	if (!process->over)
		find_threads(process);
	process->over = true;
	for (uint32_t i = 0; i < process->threads.count; i++) {
		const struct thread *thread = &process->threads.items[i];
		const struct plumb_record_thread *record =
			plumb_watch_region_thread(process->region, thread->record);
		if (record)
			finish_thread(process, thread, record, watch->since);
	}
	process->threads.count = 0;
}

/* Finds what is new. Returns how many threads there are. */
static uint64_t
find_all(struct plumb_watch *watch)
{
	uint64_t threads = 0;
	find_processes(watch);
	for (uint32_t i = 0; i < watch->processes.count; i++) {
		struct process *process = watch->processes.items[i];
		if (process->region->over && !process->over) {
			process->over = true;
			process->threads.count = 0;
		}
		if (atomic_load(&header_of(process)->state) != PLUMB_REGION_RECORDING)
			finish_process(watch, process);
		if (!process->over)
			find_threads(process);
		threads += process->threads.count;
	}
	return threads;
}

/* Looks at the thread whose turn it is; there is one. */
static void
look_at_next(struct plumb_watch *watch)
{
	struct process *process;
	for (;; watch->process++, watch->thread = 0) {
		if (watch->process >= watch->processes.count)
			watch->process = 0;
		process = watch->processes.items[watch->process];
		if (watch->thread < process->threads.count)
			break;
	}
	struct thread *thread = &process->threads.items[watch->thread];
	if (look_at_thread(watch, process, thread))
		watch->thread++;
	else
		*thread = process->threads.items[--process->threads.count];
}

/* Random enough not to fall in step with a program. */
static uint64_t
distance_ns(struct plumb_watch *watch)
{
	watch->random = plumb_hash_mix(watch->random, 1);
	return (FIRST_MS * 1000 + watch->random % (MORE_MS * 1000 + 1)) * 1000;
}

struct plumb_watch *
plumb_watch_new(struct plumb_watch_regions *regions)
{
	struct plumb_watch *watch = calloc(1, sizeof(*watch));
	if (watch) {
		watch->regions = regions;
		watch->random = clock_ns(CLOCK_MONOTONIC);
	}
	return watch;
}

static void
look_at_all(struct plumb_watch *watch, uint64_t now)
{
	uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID), spent = 0, left = find_all(watch),
		 distance = distance_ns(watch);
	for (uint64_t i = 1; left && spent < LOOK_NS; left--, i++) {
		look_at_next(watch);
		if (i % THREADS_AT_ONCE == 0)
			spent = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	}
	spent = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	/* Time above LOOK_NS went into something else, such as a new chunk of a region. */
	spent = spent < LOOK_NS ? spent * COST_SHARE : (uint64_t)LOOK_NS * COST_SHARE;
	watch->not_before = now + (spent > distance ? spent : distance);
}

int
plumb_watch_look(struct plumb_watch *watch, const struct plumb_control *control)
{
	uint64_t since = control ? plumb_control_since(control) : 1;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	if (!since)
		return FIRST_MS + MORE_MS;
	if (now >= watch->not_before) {
		watch->since = since;
		look_at_all(watch, now);
		now = clock_ns(CLOCK_MONOTONIC);
	}
	return now < watch->not_before ? (int)((watch->not_before - now) / 1000000) + 1 : 1;
}

void
plumb_watch_free(struct plumb_watch *watch)
{
	if (!watch)
		return;
	for (uint32_t i = 0; i < watch->processes.count; i++) {
		struct process *process = watch->processes.items[i];
		finish_process(watch, process);
		plumb_vec_free(&process->threads);
		plumb_watch_python_free(&process->python);
		free(process);
	}
	plumb_vec_free(&watch->processes);
	free(watch);
}
