/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a trace. GPU events do not name theirs: it is the first that did anything. Where
 * several ranks were merged into one file, events say their rank ("rank" among the arguments): each
 * rank then has processes of its own, even if their numbers are equal, and its GPU events belong to
 * its first one.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "import/kineto/kineto.h"

/* The number under which the trace knows it. */
static int64_t
key_of(int64_t rank, int64_t pid)
{
	if (rank == PLUMB_UNKNOWN)
		return pid;
	return (int64_t)(plumb_hash_mix(plumb_hash_mix((uint64_t)rank, 0x72616e6b),
	                                (uint64_t)pid) >>
	                 1);
}

static uint32_t
find_process(const struct plumb_kineto_processes *processes, int64_t rank, int64_t pid)
{
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_mix((uint64_t)pid, (uint64_t)rank);

	for (uint32_t i = plumb_map_first(&processes->map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&processes->map, &at))
		if (processes->items.items[i].rank == rank && processes->items.items[i].pid == pid)
			return i;
	return PLUMB_MAP_NONE;
}

static struct plumb_kineto_process *
add_process(struct plumb_trace *trace, struct plumb_kineto_processes *processes, int64_t rank,
            int64_t pid, uint32_t process)
{
	struct plumb_kineto_process *added = plumb_vec_add(&processes->items);

	if (!added || process == PLUMB_NONE ||
	    plumb_map_add(&processes->map, plumb_hash_mix((uint64_t)pid, (uint64_t)rank),
	                  processes->items.count - 1) < 0)
		return NULL;
	*added = (struct plumb_kineto_process){ .rank = rank, .pid = pid, .process = process };
	if (rank != PLUMB_UNKNOWN)
		plumb_builder_get_process(plumb_trace_builder(trace), process)->rank = rank;
	return added;
}

/* The process that RANK's GPU events belong to. */
static struct plumb_kineto_process *
first_of(struct plumb_trace *trace, struct plumb_kineto_processes *processes, int64_t rank)
{
	uint32_t at = find_process(processes, rank, PLUMB_UNKNOWN);
	uint32_t process;

	if (at != PLUMB_MAP_NONE)
		return &processes->items.items[at];
	process = plumb_trace_process(trace, key_of(rank, PLUMB_UNKNOWN));
	if (process != PLUMB_NONE)
		plumb_builder_get_process(plumb_trace_builder(trace), process)->pid = PLUMB_UNKNOWN;
	return add_process(trace, processes, rank, PLUMB_UNKNOWN, process);
}

struct plumb_kineto_process *
plumb_kineto_process(struct plumb_trace *trace, struct plumb_kineto_processes *processes,
                     int64_t rank, int64_t pid, int64_t raw)
{
	uint32_t at = find_process(processes, rank, pid), process;
	struct plumb_kineto_process *first;

	if (at != PLUMB_MAP_NONE)
		return &processes->items.items[at];
	first = first_of(trace, processes, rank);
	if (!first || pid == PLUMB_UNKNOWN)
		return first;
	process = first->named ? plumb_trace_process(trace, key_of(rank, pid))
	                       : plumb_trace_process_is(trace, first->process, key_of(rank, pid));
	first->named = true;
	if (process != PLUMB_NONE)
		plumb_builder_get_process(plumb_trace_builder(trace), process)->pid =
			raw == PLUMB_UNKNOWN ? pid : raw;
	return add_process(trace, processes, rank, pid, process);
}

/* "RANK 2 - CPU", "[rank3] python": the number, or PLUMB_UNKNOWN. */
static int64_t
rank_in(const char *name)
{
	int64_t rank = 0;
	int digits = 0;

	if (!name)
		return PLUMB_UNKNOWN;
	name += *name == '[';
	if (strncasecmp(name, "rank", 4) != 0)
		return PLUMB_UNKNOWN;
	name += 4;
	name += strspn(name, " _:#=");
	for (; isdigit((unsigned char)*name) && digits < 9; name++, digits++)
		rank = rank * 10 + (*name - '0');
	return digits && !isalnum((unsigned char)*name) ? rank : PLUMB_UNKNOWN;
}

int64_t
plumb_kineto_rank_named(struct plumb_kineto_processes *processes, const struct plumb_chrome *chrome,
                        int64_t pid)
{
	struct plumb_kineto_naming *last = &processes->last;

	if (!chrome->names.count || pid == PLUMB_UNKNOWN)
		return PLUMB_UNKNOWN;
	if (last->named != chrome->named || last->pid != pid)
		*last = (struct plumb_kineto_naming){
			.pid = pid,
			.rank = rank_in(plumb_chrome_name_of(chrome, pid, PLUMB_UNKNOWN)),
			.named = chrome->named,
		};
	return last->rank;
}

/* The first with PID, in BY_PID, or NULL. */
static struct plumb_kineto_process *
first_with(const struct plumb_kineto_processes *processes, const struct plumb_map *by_pid,
           int64_t pid)
{
	struct plumb_map_cursor at;

	for (uint32_t i = plumb_map_first(by_pid, plumb_hash_mix((uint64_t)pid, 0), &at);
	     i != PLUMB_MAP_NONE; i = plumb_map_next(by_pid, &at))
		if (processes->items.items[i].pid == pid)
			return &processes->items.items[i];
	return NULL;
}

/* What a process is called says nothing where several have its number. Without memory some have no
 * names. */
static void
find_shared(struct plumb_kineto_processes *processes, struct plumb_map *by_pid)
{
	for (uint32_t i = 0; i < processes->items.count; i++) {
		int64_t pid = processes->items.items[i].pid;
		struct plumb_kineto_process *other = first_with(processes, by_pid, pid);
		if (other)
			other->shared = true;
		else if (plumb_map_add(by_pid, plumb_hash_mix((uint64_t)pid, 0), i) < 0)
			return;
	}
}

/* Steps on a GPU were counted for the process without a number, which may be one of the others. */
static struct plumb_kineto_process *
named_one(struct plumb_kineto_processes *processes, const struct plumb_kineto_process *first)
{
	for (uint32_t i = 0; first->named && i < processes->items.count; i++) {
		struct plumb_kineto_process *p = &processes->items.items[i];
		if (p != first && p->process == first->process)
			return p;
	}
	return NULL;
}

/* What the analyses want to know of the file: the steps, and the base of its times, for HTA's
 * arithmetic. */
static void
tell_steps(struct plumb_kineto_processes *processes, struct plumb_trace *trace)
{
	for (uint32_t i = 0; i < processes->items.count; i++) {
		struct plumb_kineto_process *p = &processes->items.items[i];
		struct plumb_kineto_process *same = named_one(processes, p);
		struct plumb_kineto_steps *steps = same ? &same->steps : NULL;
		if (!steps || steps->gpu.count)
			continue;
		steps->gpu = p->steps.gpu;
		steps->gpu_start = p->steps.gpu_start;
		steps->gpu_end = p->steps.gpu_end;
		memset(&p->steps.gpu, 0, sizeof p->steps.gpu);
	}
	for (uint32_t i = 0; i < processes->items.count; i++) {
		struct plumb_kineto_process *p = &processes->items.items[i];
		char text[32];
		plumb_kineto_steps_tell(trace, &p->steps, p->process);
		snprintf(text, sizeof text, "%" PRId64, processes->base_ns);
		if (processes->base_ns && !named_one(processes, p))
			plumb_builder_environment(plumb_trace_builder(trace), p->process,
			                          PLUMB_TRACE_BASE, text);
	}
}

void
plumb_kineto_processes_end(struct plumb_kineto_processes *processes,
                           const struct plumb_chrome *chrome)
{
	struct plumb_builder *builder = plumb_trace_builder(chrome->trace);
	struct plumb_map by_pid = { 0 };

	find_shared(processes, &by_pid);
	for (uint32_t i = 0; i < chrome->names.count; i++) {
		const struct plumb_chrome_name *named = &chrome->names.items[i];
		const struct plumb_kineto_process *p = first_with(processes, &by_pid, named->pid);
		if (!p || p->shared)
			continue;
		if (named->tid == PLUMB_UNKNOWN) {
			const char *text = plumb_builder_get_text(builder, named->name);
			struct plumb_process *row = plumb_builder_get_process(builder, p->process);
			row->command = named->name;
			if (row->rank == PLUMB_UNKNOWN)
				row->rank = rank_in(text);
			continue;
		}
		uint32_t track = plumb_trace_has_thread(chrome->trace, p->process, named->tid);
		if (track != PLUMB_NONE)
			plumb_builder_get_track(builder, track)->name = named->name;
	}
	plumb_map_free(&by_pid);
	for (uint32_t i = 0; i < processes->items.count; i++) {
		struct plumb_kineto_process *p = &processes->items.items[i];
		/* What the file says of itself is of one of its ranks. */
		if (p->rank != PLUMB_UNKNOWN)
			plumb_builder_get_process(builder, p->process)->rank = p->rank;
	}
	tell_steps(processes, chrome->trace);
}

void
plumb_kineto_processes_free(struct plumb_kineto_processes *processes)
{
	for (uint32_t i = 0; i < processes->items.count; i++)
		plumb_kineto_steps_free(&processes->items.items[i].steps);
	plumb_vec_free(&processes->items);
	plumb_map_free(&processes->map);
}
