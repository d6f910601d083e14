/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collector that needs no framework: in every process it is loaded into it records one call of
 * the operator "stub::loaded". With STUB_GPU set it serves flushes, as a process with a GPU would,
 * recording "stub::flushed" at each. Built by test_run.py together with the region's writer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collect/collector.h"

static struct plumb_region region;
static struct plumb_arena arena;
static plumb_id thread_id;

/* As a launcher set it, whichever it was. */
static int
rank(void)
{
	static const char *const names[] = { "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID",
		                             "PMI_RANK" };
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (getenv(names[i]))
			return atoi(getenv(names[i]));
	return -1;
}

static void
record(const char *name)
{
	plumb_id text = plumb_arena_string(&arena, name, strlen(name));
	struct plumb_record_node *node =
		plumb_arena_append(&arena, PLUMB_RECORD_NODE, sizeof *node);
	node->kind = PLUMB_FRAME_OPERATOR;
	node->name = text;
	plumb_arena_commit(&arena, node);
	struct plumb_record_value *value =
		plumb_arena_append(&arena, PLUMB_RECORD_VALUE, sizeof *value);
	value->node = plumb_region_id(&region, node);
	value->track = thread_id;
	value->metric = PLUMB_METRIC_OP_CALLS;
	plumb_value_add(value, 1);
	node->first_value = plumb_region_id(&region, value);
	plumb_arena_commit(&arena, value);
}

static void *
serve(void *data)
{
	(void)data;
	for (;;) {
		uint32_t wanted = atomic_load(&region.header->flush_wanted);
		if (wanted != atomic_load(&region.header->flush_done)) {
			record("stub::flushed");
			atomic_store(&region.header->flush_done, wanted);
		}
		usleep(2000);
	}
}

static __attribute__((constructor)) void
load(void)
{
	const char *folder = getenv(PLUMB_ENV_FOLDER), *gpu = getenv("STUB_GPU");
	char path[4200];
	if (!folder)
		return;
	snprintf(path, sizeof path, "%s/%d" PLUMB_REGION_SUFFIX, folder, (int)getpid());
	/* After execve the process has its number still. */
	if (access(path, F_OK) == 0 || plumb_region_create(&region, path, 1 << 20, NULL))
		return;
	plumb_arena_init(&arena, &region);
	struct plumb_record_process *process =
		plumb_arena_append(&arena, PLUMB_RECORD_PROCESS, sizeof *process);
	process->pid = (uint32_t)getpid();
	process->ppid = (uint32_t)getppid();
	process->rank = rank();
	process->local_rank = -1;
	process->start_monotonic = region.header->start_monotonic;
	plumb_arena_commit(&arena, process);
	struct plumb_record_thread *thread =
		plumb_arena_append(&arena, PLUMB_RECORD_THREAD, sizeof *thread);
	thread->tid = (uint32_t)getpid();
	plumb_arena_commit(&arena, thread);
	thread_id = plumb_region_id(&region, thread);
	record("stub::loaded");
	pthread_t server;
	if (gpu && !pthread_create(&server, NULL, serve, NULL))
		atomic_store(&region.header->flush_served, 1);
}

static __attribute__((destructor)) void
unload(void)
{
	if (region.header && (pid_t)region.header->pid == getpid())
		atomic_store(&region.header->state, PLUMB_REGION_ENDED);
}
