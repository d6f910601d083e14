/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is seen goes into an arena of its own in the process's region: chunks are taken atomically, so
 * the program and plumb write side by side. A waiting thread is in the same context as at the look
 * before unless it ran meanwhile; the time between two looks counts when it waited at both.
 */
#include "cli/waiting.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/procstat.h"
#include "base/vec.h"
#include "region/reader.h"
#include "region/writer.h"

enum { COST_SHARE = 100 };          /* looking takes at most this part of the time: 1 % */
#define SETTLED UINT64_C(100000000) /* ns after which a folder's time stamp holds */

struct thread {
	plumb_id record;
	uint32_t tid;
	bool waited;   /* at the last look */
	uint32_t node; /* it was in then */
};

struct process {
	ino_t inode; /* of the region's file */
	struct plumb_region region;
	struct plumb_arena arena;
	size_t size;
	plumb_id newest;  /* THREAD record that `threads` goes up to */
	plumb_id nowhere; /* the node of what waits outside any context, 0: not made */
	bool over;
	PLUMB_VEC(struct thread) threads;
	struct plumb_map values; /* (node, track) → VALUE record */
};

struct plumb_waiting {
	const char *folder;
	PLUMB_VEC(struct process *) processes;
	uint64_t looked;        /* when */
	uint64_t not_before;    /* the next look, so that looking stays cheap */
	uint64_t folder_change; /* of the folder when it was read */
};

static uint64_t
now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
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
open_region(struct plumb_waiting *waiting, int folder, const char *name)
{
	struct stat status;
	int fd = openat(folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	void *map = MAP_FAILED;
	if (fstat(fd, &status) == 0 && status.st_size > PLUMB_REGION_HEADER_SIZE &&
	    !is_known(waiting, status.st_ino))
		map = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return;
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
		return;
	}
	*place = process;
	process->inode = status.st_ino;
	process->size = (size_t)status.st_size;
	process->region.header = header;
	atomic_store(&process->region.arenas, UINT32_C(1) << 24); /* apart from the program's */
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
	/* A file that comes within the same tick of the file system's clock changes no time stamp. */
	clock_gettime(CLOCK_REALTIME, &now);
	if ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec > change + SETTLED)
		waiting->folder_change = change;
	while ((entry = readdir(folder)))
		if (plumb_region_name_ends(entry->d_name, PLUMB_REGION_SUFFIX))
			open_region(waiting, dirfd(folder), entry->d_name);
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
	struct plumb_record_thread *record = plumb_region_at(&process->region, id);
	return record->head.type == PLUMB_RECORD_THREAD ? record : NULL;
}

static void
find_threads(struct process *process)
{
	plumb_id newest =
		atomic_load_explicit(&process->region.header->newest_thread, memory_order_acquire);
	for (plumb_id id = newest; id && id != process->newest;) {
		const struct plumb_record_thread *record = thread_at(process, id);
		struct thread *thread = record ? plumb_vec_add(&process->threads) : NULL;
		if (!thread)
			break;
		*thread = (struct thread){ .record = id, .tid = record->tid };
		/* A record names an older one, so that this ends whatever the region holds. */
		id = record->before < id || process->threads.count < 100000 ? record->before : 0;
	}
	process->newest = newest;
}

/* ---- a look ---- */

/* 'R', 'S', 'D', …; 0: the thread is gone. */
static char
state_of(uint32_t pid, uint32_t tid)
{
	char path[64];
	struct plumb_procstat stat;
	snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
	return plumb_procstat_read(path, &stat) ? stat.state : 0;
}

static struct plumb_record_value *
value_of(struct process *process, plumb_id node, plumb_id track)
{
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_mix(node, track);
	for (uint32_t id = plumb_map_first(&process->values, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&process->values, &at)) {
		struct plumb_record_value *value = plumb_region_at(&process->region, id);
		if (value->node == node && value->track == track)
			return value;
	}
	struct plumb_record_value *value =
		plumb_arena_append(&process->arena, PLUMB_RECORD_VALUE, sizeof(*value));
	if (!value)
		return NULL;
	value->node = node;
	value->track = track;
	value->metric = PLUMB_METRIC_WAIT_TIME;
	plumb_arena_commit(&process->arena, value);
	if (plumb_map_add(&process->values, hash, plumb_region_id(&process->region, value)))
		return NULL;
	return value;
}

/* A context for threads that wait outside any operator. */
static plumb_id
nowhere(struct process *process)
{
	static const char name[] = "[waiting]";
	if (process->nowhere)
		return process->nowhere;
	plumb_id text = plumb_arena_string(&process->arena, name, sizeof(name) - 1);
	struct plumb_record_node *node =
		text ? plumb_arena_append(&process->arena, PLUMB_RECORD_NODE, sizeof(*node)) : NULL;
	if (!node)
		return 0;
	node->kind = PLUMB_FRAME_NATIVE;
	node->name = text;
	plumb_arena_commit(&process->arena, node);
	return process->nowhere = plumb_region_id(&process->region, node);
}

static void
add(struct process *process, const struct thread *thread, uint64_t ns)
{
	if (!process->arena.region)
		plumb_arena_init(&process->arena, &process->region);
	plumb_arena_count(&process->arena, PLUMB_SOURCE_WAIT_SAMPLE, PLUMB_FATE_RECEIVED, 1);
	plumb_id node = thread->node ? thread->node : nowhere(process);
	struct plumb_record_value *value = node ? value_of(process, node, thread->record) : NULL;
	if (value)
		plumb_value_add(value, (int64_t)ns);
	plumb_arena_count(&process->arena, PLUMB_SOURCE_WAIT_SAMPLE,
	                  !value         ? process->arena.fate
	                  : thread->node ? PLUMB_FATE_ATTRIBUTED
	                                 : PLUMB_FATE_NO_STACK,
	                  1);
}

/* False: the thread has ended. */
static bool
look_at_thread(struct process *process, struct thread *thread, uint64_t passed)
{
	const struct plumb_record_thread *record = thread_at(process, thread->record);
	uint32_t node = record ? atomic_load_explicit(&record->current, memory_order_relaxed) : 0;
	char state =
		record && !record->end ? state_of(process->region.header->pid, thread->tid) : 0;
	if (!state)
		return false;
	bool waits = state == 'S' || state == 'D';
	if (waits && thread->waited && thread->node == node && node != UINT32_MAX)
		add(process, thread, passed);
	thread->waited = waits;
	thread->node = node;
	return true;
}

static void
look_at_process(struct process *process, uint64_t passed)
{
	process->over = atomic_load(&process->region.header->state) != PLUMB_REGION_RECORDING;
	if (process->over)
		return;
	find_threads(process);
	for (uint32_t i = 0; i < process->threads.count;) {
		if (look_at_thread(process, &process->threads.items[i], passed))
			i++;
		else
			process->threads.items[i] =
				process->threads.items[--process->threads.count];
	}
}

struct plumb_waiting *
plumb_waiting_new(const char *folder)
{
	struct plumb_waiting *waiting = calloc(1, sizeof(*waiting));
	if (waiting)
		waiting->folder = folder;
	return waiting;
}

void
plumb_waiting_look(struct plumb_waiting *waiting)
{
	uint64_t now = now_ns();
	if (now < waiting->not_before)
		return;
	uint64_t passed = waiting->looked ? now - waiting->looked : 0;
	waiting->looked = now;
	find_regions(waiting);
	for (uint32_t i = 0; i < waiting->processes.count; i++)
		if (!waiting->processes.items[i]->over)
			look_at_process(waiting->processes.items[i], passed);
	waiting->not_before = now + (now_ns() - now) * COST_SHARE;
}

void
plumb_waiting_free(struct plumb_waiting *waiting)
{
	if (!waiting)
		return;
	for (uint32_t i = 0; i < waiting->processes.count; i++) {
		struct process *process = waiting->processes.items[i];
		munmap(process->region.header, process->size);
		plumb_vec_free(&process->threads);
		plumb_map_free(&process->values);
		free(process);
	}
	plumb_vec_free(&waiting->processes);
	free(waiting);
}
