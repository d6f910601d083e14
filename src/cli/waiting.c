/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a thread was asleep between two looks the kernel tells exactly; where, the looks sample.
 * Time before the thread was seen awake belongs to where it was asleep at the look before, the rest
 * to where it is asleep now. Looks come at random distances, so that a program of a steady beat
 * does not fall in step with them.
 *
 * What operators and driver calls measure themselves is in the kernel's time, too: the collector
 * tells how much that was so far, and it is taken off. While a thread is in one, nothing is added:
 * what it waits there is told at the end.
 *
 * Each look takes a bounded time. Where there are too many threads for it, they take turns.
 *
 * A thread that did not run between two readings of what stands in its memory did not change it.
 * That it did not is known from how often the kernel has set it going (asleep.h); as long as that
 * stays, it is where it was at the look before, and nothing needs to be read.
 */
#include "cli/waiting.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/vec.h"
#include "cli/asleep.h"
#include "cli/waiting_python.h"
#include "region/reader.h"

enum {
	COST_SHARE = 160,      /* looking takes at most this part of one processor, 0.6 % */
	LOOK_NS = 500000,      /* CPU time of one look, … */
	THREADS_AT_ONCE = 2,   /* … which is read after so many threads */
	TRIES = 3,             /* to find a thread that stays asleep meanwhile */
	THREADS_MAX = 1000000, /* in a process */
	FIRST_MS = 5,          /* between two looks: from this … */
	MORE_MS = 10,          /* … to so much more; 10 on average */
};
#define SETTLED UINT64_C(100000000) /* ns after which a folder's time stamp holds */
#define MEASURED UINT32_MAX         /* THREAD.current: its waiting is measured where it is */

/* Where a thread is asleep. */
struct place {
	plumb_id node;        /* 0: unknown. MEASURED: nothing is to be added */
	enum plumb_fate fate; /* of what is added there */
};

struct thread {
	plumb_id record;
	uint32_t tid;
	uint64_t looked;                   /* when; 0: not yet */
	struct plumb_asleep_counts counts; /* then; no runs: it was not proved to be asleep */
	uint64_t told;                     /* THREAD.waited then */
	bool asleep;                       /* then */
	struct place place;                /* then, when it was asleep */
	int64_t pending;                   /* ns asleep that are to be added */
	struct place last;                 /* where they were added last */
	bool woken;                        /* it was seen awake since … */
	int64_t head;                      /* … and so many of `pending` were before */
};

struct process {
	ino_t inode; /* of the region's file */
	struct plumb_waiting_tree tree;
	size_t size;
	plumb_id newest; /* THREAD record that `threads` goes up to */
	bool over;
	PLUMB_VEC(struct thread) threads;
	struct plumb_waiting_python python;
};

struct plumb_waiting {
	const char *folder;
	PLUMB_VEC(struct process *) processes;
	uint32_t process, thread; /* whose turn it is */
	uint64_t not_before;      /* the next look */
	uint64_t since;           /* when recording began or went on */
	uint64_t folder_change;   /* of the folder when it was read */
	uint64_t random;
	struct plumb_waiting_reader reader;
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
	return process->tree.region.header;
}

/* ---- regions ---- */

static bool
is_known(const struct plumb_waiting *waiting, ino_t inode)
{
	for (uint32_t i = 0; i < waiting->processes.count; i++)
		if (waiting->processes.items[i]->inode == inode)
			return true;
	return false;
}

static void
end_region(struct process *process)
{
	process->over = true;
	process->threads.count = 0;
}

/* A process that called exec has a region of each program that it was: the newest counts. */
static void
end_same_process(struct plumb_waiting *waiting, struct process *newer)
{
	for (uint32_t i = 0; i < waiting->processes.count; i++) {
		struct process *process = waiting->processes.items[i];
		const struct plumb_region_header *a = header_of(process), *b = header_of(newer);
		if (process != newer && a->pid == b->pid)
			end_region(a->start_monotonic < b->start_monotonic ? process : newer);
	}
}

/* False: the file is there, and the region in it is not yet. */
static bool
open_region(struct plumb_waiting *waiting, int folder, const char *name)
{
	struct stat status = { 0 };
	int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return true;
	void *map = MAP_FAILED;
	bool known = fstat(fd, &status) == 0 && is_known(waiting, status.st_ino);
	if (!known && S_ISREG(status.st_mode) && status.st_size > PLUMB_REGION_HEADER_SIZE)
		map = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return known;
	struct plumb_region_header *header = map;
	struct process *process = NULL, **place = NULL;
	if (!memcmp(header->magic, PLUMB_REGION_MAGIC, sizeof(header->magic)) &&
	    header->size == (uint64_t)status.st_size && header->pid)
		process = calloc(1, sizeof(*process));
	if (process)
		place = plumb_vec_add(&waiting->processes);
	if (!place) {
		free(process);
		munmap(map, (size_t)status.st_size);
		return false;
	}
	*place = process;
	process->inode = status.st_ino;
	process->size = (size_t)status.st_size;
	process->tree.size = process->size;
	process->tree.region.header = header;
	end_same_process(waiting, process);
	return true;
}

static void
find_regions(struct plumb_waiting *waiting)
{
	struct timespec now;
	struct stat status;
	struct dirent *entry;
	if (stat(waiting->folder, &status) != 0)
		return;
	uint64_t change =
		(uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
	DIR *folder = change == waiting->folder_change ? NULL : opendir(waiting->folder);
	if (!folder)
		return;
	/* A file that comes within the same tick of the file system's clock changes no time
	 * stamp. */
	clock_gettime(CLOCK_REALTIME, &now);
	if ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec > change + SETTLED)
		waiting->folder_change = change;
	while ((entry = readdir(folder)))
		if (plumb_region_name_ends(entry->d_name, PLUMB_REGION_SUFFIX) &&
		    !open_region(waiting, dirfd(folder), entry->d_name))
			waiting->folder_change = 0; /* making it may take long on a slow disk */
	closedir(folder);
}

/* The record ID of the program's region if it can lie there, or NULL. */
static struct plumb_record_thread *
thread_at(const struct process *process, plumb_id id)
{
	uint64_t offset = (uint64_t)id << 3;
	if (offset < PLUMB_REGION_HEADER_SIZE ||
	    offset + sizeof(struct plumb_record_thread) > process->size)
		return NULL;
	struct plumb_record_thread *record = plumb_region_at(&process->tree.region, id);
	return record->head.type == PLUMB_RECORD_THREAD ? record : NULL;
}

static void
find_threads(struct process *process)
{
	plumb_id newest =
		atomic_load_explicit(&header_of(process)->newest_thread, memory_order_acquire);
	for (plumb_id id = newest; id && id != process->newest;) {
		const struct plumb_record_thread *record = thread_at(process, id);
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

/* A context for threads of which nothing is known. */
static plumb_id
nowhere(struct process *process)
{
	struct plumb_record_node key = {
		.kind = PLUMB_FRAME_NATIVE,
		.name = plumb_waiting_string(&process->tree, "[waiting]"),
	};
	return key.name ? plumb_waiting_node(&process->tree, &key) : 0;
}

/* Where the thread is, which is asleep. */
static struct place
find_place(struct plumb_waiting *waiting, struct process *process,
           const struct plumb_record_thread *record)
{
	struct plumb_waiting_at at = {
		.thread = record,
		.under = atomic_load_explicit(&record->current, memory_order_relaxed),
	};
	if (at.under == MEASURED)
		return (struct place){ MEASURED, PLUMB_FATE_ATTRIBUTED };
	plumb_waiting_find(&waiting->reader, &process->python, &process->tree, &at);
	return (struct place){ at.node, at.truncated ? PLUMB_FATE_TOO_DEEP
		                        : at.node    ? PLUMB_FATE_ATTRIBUTED
		                                     : PLUMB_FATE_NO_STACK };
}

/* Whether the thread is asleep, and if so, where. Fills in its counts as of then. False: it is
 * gone. */
static bool
examine(struct plumb_waiting *waiting, struct process *process, struct thread *thread,
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
		thread->place = find_place(waiting, process, record);
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

static void
add(struct process *process, const struct thread *thread, struct place place, int64_t ns)
{
	if (ns > 0)
		plumb_waiting_add(&process->tree, place.node ? place.node : nowhere(process),
		                  thread->record, (uint64_t)ns, place.fate);
}

/* Adds what is pending to where the thread was before and to where it is now. */
static void
settle(struct process *process, struct thread *thread)
{
	int64_t pending = thread->pending > 0 ? thread->pending : 0, head = 0;
	if (thread->last.fate && thread->last.node != thread->place.node)
		head = !thread->woken           ? pending / 2
		       : thread->head < pending ? thread->head
		                                : pending;
	add(process, thread, thread->last, head);
	add(process, thread, thread->place, pending - head);
	thread->last = thread->place;
	thread->pending = 0;
	thread->woken = false;
}

/* How long the thread slept since the look before, of which COUNTS and TOLD are; recording is on
 * since SINCE. */
static int64_t
slept(const struct thread *thread, const struct plumb_record_thread *record, uint64_t now,
      uint64_t since, const struct plumb_asleep_counts *counts, uint64_t told)
{
	bool first = !thread->looked;
	uint64_t met = atomic_load_explicit(&record->awake_at, memory_order_acquire);
	uint64_t from = !first ? thread->looked : met ? met : record->start;
	uint64_t awake = thread->counts.awake - (!first ? counts->awake : met ? record->awake : 0);
	if (from < since) { /* it was paused */
		bool all_the_while = thread->asleep && !first && counts->runs &&
		                     counts->runs == thread->counts.runs;
		return all_the_while && now > since ? (int64_t)(now - since) : 0;
	}
	if (!thread->counts.timed)
		return thread->asleep && now > from ? (int64_t)(now - from) : 0;
	int64_t ns = (int64_t)(now - from - awake - (thread->told - told));
	return first && ns < 0 ? 0 : ns; /* it may have computed before it was known */
}

/* The thread ended since it was looked at: what it slept meanwhile goes to where it was then. */
static void
finish(struct process *process, const struct thread *thread,
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
	if (!place.fate) /* it was not seen */
		place.fate = PLUMB_FATE_NO_STACK;
	add(process, thread, place,
	    thread->pending + (int64_t)(record->end - from - (record->awake_end - awake) -
	                                (record->waited - thread->told)));
}

/* False: the thread has ended. */
static bool
look_at_thread(struct plumb_waiting *waiting, struct process *process, struct thread *thread)
{
	const struct plumb_record_thread *record = thread_at(process, thread->record);
	const struct plumb_asleep_counts counts = thread->counts;
	uint64_t told = thread->told, since = waiting->since;
	if (!record || record->head.flags & PLUMB_THREAD_OWN)
		return false;
	if (record->end || !examine(waiting, process, thread, record)) {
		finish(process, thread, record, since);
		return false;
	}
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	thread->told = atomic_load_explicit(&record->waited, memory_order_relaxed);
	if (thread->looked < since || !thread->counts.timed) {
		thread->last = (struct place){ 0 };
		thread->pending = 0;
	}
	thread->pending += slept(thread, record, now, since, &counts, told);
	thread->looked = now;
	if (thread->asleep && thread->place.node != MEASURED) {
		settle(process, thread);
	} else if (!thread->asleep && !thread->woken) {
		thread->woken = true;
		thread->head = thread->pending;
	}
	return true;
}

/* ---- a look ---- */

/* The process records no more. */
static void
finish_process(struct plumb_waiting *waiting, struct process *process)
{
	if (!process->over)
		find_threads(process);
	process->over = true;
	for (uint32_t i = 0; i < process->threads.count; i++) {
		const struct thread *thread = &process->threads.items[i];
		const struct plumb_record_thread *record = thread_at(process, thread->record);
		if (record)
			finish(process, thread, record, waiting->since);
	}
	process->threads.count = 0;
}

/* How many threads there are. */
static uint64_t
find_all(struct plumb_waiting *waiting)
{
	uint64_t threads = 0;
	find_regions(waiting);
	for (uint32_t i = 0; i < waiting->processes.count; i++) {
		struct process *process = waiting->processes.items[i];
		if (atomic_load(&header_of(process)->state) != PLUMB_REGION_RECORDING)
			finish_process(waiting, process);
		if (!process->over)
			find_threads(process);
		threads += process->threads.count;
	}
	return threads;
}

/* Looks at the thread whose turn it is; there is one. */
static void
look_at_next(struct plumb_waiting *waiting)
{
	struct process *process;
	for (;; waiting->process++, waiting->thread = 0) {
		if (waiting->process >= waiting->processes.count)
			waiting->process = 0;
		process = waiting->processes.items[waiting->process];
		if (waiting->thread < process->threads.count)
			break;
	}
	struct thread *thread = &process->threads.items[waiting->thread];
	if (look_at_thread(waiting, process, thread))
		waiting->thread++;
	else
		*thread = process->threads.items[--process->threads.count];
}

/* Random enough to keep out of a program's step. */
static uint64_t
distance_ns(struct plumb_waiting *waiting)
{
	waiting->random = plumb_hash_mix(waiting->random, 1);
	return (FIRST_MS * 1000 + waiting->random % (MORE_MS * 1000 + 1)) * 1000;
}

struct plumb_waiting *
plumb_waiting_new(const char *folder)
{
	struct plumb_waiting *waiting = calloc(1, sizeof(*waiting));
	if (waiting) {
		waiting->folder = folder;
		waiting->random = clock_ns(CLOCK_MONOTONIC);
	}
	return waiting;
}

static void
look(struct plumb_waiting *waiting, uint64_t now)
{
	uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID), spent = 0, left = find_all(waiting),
		 distance = distance_ns(waiting);
	for (uint64_t i = 1; left && spent < LOOK_NS; left--, i++) {
		look_at_next(waiting);
		if (i % THREADS_AT_ONCE == 0)
			spent = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	}
	spent = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
	/* More than a look may take was spent on something else, such as a new piece of a
	 * region. */
	spent = spent < LOOK_NS ? spent * COST_SHARE : (uint64_t)LOOK_NS * COST_SHARE;
	waiting->not_before = now + (spent > distance ? spent : distance);
}

int
plumb_waiting_look(struct plumb_waiting *waiting, const struct plumb_control *control)
{
	uint64_t since = control ? plumb_control_since(control) : 1;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);
	if (!since)
		return FIRST_MS + MORE_MS;
	if (now >= waiting->not_before) {
		waiting->since = since;
		look(waiting, now);
		now = clock_ns(CLOCK_MONOTONIC);
	}
	return now < waiting->not_before ? (int)((waiting->not_before - now) / 1000000) + 1 : 1;
}

void
plumb_waiting_free(struct plumb_waiting *waiting)
{
	if (!waiting)
		return;
	for (uint32_t i = 0; i < waiting->processes.count; i++) {
		struct process *process = waiting->processes.items[i];
		finish_process(waiting, process);
		munmap(header_of(process), process->size);
		plumb_waiting_tree_free(&process->tree);
		plumb_vec_free(&process->threads);
		plumb_waiting_python_free(&process->python);
		free(process);
	}
	plumb_vec_free(&waiting->processes);
	free(waiting);
}
