/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/host.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "watch/place.h"

enum {
	THREADS_MAX = 1000000, /* in a process: a damaged chain may go round */
	LAST_MS = 300,   /* a process that ended so long after the last look: nobody knows where */
	TREE_SHARE = 16, /* contexts take at most this part of a region */
};

struct process {
	plumb_id thread,
		newest;  /* the main one's THREAD record; the newest when it was looked for */
	uint64_t looked; /* when; 0: not yet */
	plumb_id node;   /* where it was then */
	bool over;
	struct plumb_watch_python python;
};

struct plumb_host {
	struct plumb_watch_regions *regions;
	const struct plumb_control *control;
	PLUMB_VEC(struct process) processes; /* one for each of REGIONS */
	struct plumb_watch_glimpser glimpser;
};

static const struct plumb_watch_kind host_time = { PLUMB_METRIC_HOST_TIME,
	                                           PLUMB_SOURCE_HOST_SAMPLE };

static uint64_t
now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* The main thread's record; NULL: it is not known yet. */
static const struct plumb_record_thread *
find_thread(const struct plumb_watch_region *region, struct process *process)
{
	const struct plumb_region_header *header = plumb_watch_region_header(region);
	plumb_id newest = atomic_load_explicit(&header->newest_thread, memory_order_acquire);
	uint32_t hops = 0;
	for (plumb_id id = newest; !process->thread && id && id != process->newest;) {
		const struct plumb_record_thread *record = plumb_watch_region_thread(region, id);
		if (!record || hops++ == THREADS_MAX)
			break;
		if (record->tid == header->pid)
			process->thread = id;
		id = record->before;
	}
	process->newest = newest;
	return process->thread ? plumb_watch_region_thread(region, process->thread) : NULL;
}

/* Adds the time until NOW, of which recording was on since SINCE, to where the thread is. */
static void
add_time(struct plumb_watch_region *region, struct process *process,
         const struct plumb_record_thread *record, uint64_t now, uint64_t since)
{
	struct plumb_watch_tree *tree = &region->tree;
	uint64_t from = process->looked ? process->looked : record->start;
	if (from < since)
		from = since;
	enum plumb_fate fate = process->node ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_NO_STACK;
	process->looked = now;
	if (now > from)
		plumb_watch_tree_add(tree, host_time, process->node, process->thread, now - from,
		                     fate);
}

static void
look_at_process(struct plumb_host *host, struct plumb_watch_region *region, struct process *process,
                uint64_t since)
{
	struct plumb_region_header *header = plumb_watch_region_header(region);
	const struct plumb_record_thread *record = find_thread(region, process);
	uint64_t end = atomic_load(&header->end_monotonic);
	/* A process without Python is not looked at. */
	if (!record || atomic_load_explicit(&header->python.state, memory_order_acquire) !=
	                       PLUMB_REGION_PYTHON_READY)
		return;
	region->tree.most = region->tree.size / TREE_SHARE;
	if (atomic_load(&header->state) != PLUMB_REGION_RECORDING) {
		process->over = true;
		if (process->looked && end > process->looked + LAST_MS * UINT64_C(1000000))
			process->node = 0;
		if (process->looked && end > process->looked)
			add_time(region, process, record, end, since);
		return;
	}
	uint64_t now = now_ns();
	host->glimpser.stack.error = 0;
	process->node =
		plumb_watch_place_glimpse(&host->glimpser, &process->python, &region->tree, record);
	/* A process that was killed has no end. */
	if (host->glimpser.stack.error == ESRCH)
		process->over = true;
	else
		add_time(region, process, record, now, since);
}

struct plumb_host *
plumb_host_new(struct plumb_watch_regions *regions, const struct plumb_control *control)
{
	struct plumb_host *host = calloc(1, sizeof(*host));
	if (host) {
		host->regions = regions;
		host->control = control;
		host->glimpser.glimpse.random = now_ns();
	}
	return host;
}

void
plumb_host_look(struct plumb_host *host)
{
	uint64_t since = host->control ? plumb_control_since(host->control) : 1;
	if (!since) /* recording is paused: its begin counts then */
		return;
	for (uint32_t i = 0; i < host->regions->regions.count; i++) {
		struct plumb_watch_region *region = host->regions->regions.items[i];
		struct process *process = i < host->processes.count
		                                  ? &host->processes.items[i]
		                                  : plumb_vec_add(&host->processes);
		if (!process)
			return;
		if (!process->over && !region->over)
			look_at_process(host, region, process, since);
	}
}

void
plumb_host_free(struct plumb_host *host)
{
	if (!host)
		return;
	for (uint32_t i = 0; i < host->processes.count; i++)
		plumb_watch_python_free(&host->processes.items[i].python);
	plumb_vec_free(&host->processes);
	free(host);
}
