/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program: at each posix_memalign(), which PyTorch calls for a tensor's memory
 * within its operators, plumb's walk is compared with libgcc's. With INSIDE_SAMPLE, a signal comes
 * every millisecond of CPU time instead, and its handler walks. For test_native_walk.py; built with
 * the walk's sources. INSIDE_OUT names the file for the result: stacks, differences, deepest,
 * sites, paths that the memo knew, and how many of those were wrong; or samples, how many of them
 * reached the outermost frame, how many ended at code that no table tells of.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unwind.h>

#include "collect/stack/stack.h"
#include "memoed.h"

enum { MOST = 2048 };

struct sites {
	uintptr_t at[MOST];
	size_t count;
};

static _Thread_local int inside;
static _Atomic unsigned long stacks, differences, deepest, all_sites;
static int (*real)(void **, size_t, size_t);

void *
plumb_real_dlsym(void *handle, const char *name)
{
	return dlsym(handle, name);
}

static _Unwind_Reason_Code
take(struct _Unwind_Context *context, void *data)
{
	struct sites *sites = data;
	int exact = 0;
	uintptr_t ip = _Unwind_GetIPInfo(context, &exact);
	if (!ip || sites->count == MOST)
		return _URC_END_OF_STACK;
	sites->at[sites->count++] = exact ? ip : ip - 1;
	return _URC_NO_REASON;
}

static void
show(const struct sites *ours, const struct sites *theirs, int end)
{
	fprintf(stderr, "the walk ended with %d after %zu, libgcc's after %zu\n", end, ours->count,
	        theirs->count);
	for (size_t i = 0; i < theirs->count; i++) {
		const struct plumb_stack_object *object = plumb_stack_object_of(theirs->at[i]);
		fprintf(stderr, "  %lx %lx %s+%lx\n", i < ours->count ? ours->at[i] : 0,
		        theirs->at[i], object ? object->path : "?",
		        theirs->at[i] - (object ? object->bias : 0));
	}
}

static __attribute__((noinline)) void
check(void)
{
	static _Thread_local struct sites *ours, *theirs;
	struct plumb_stack_walk walk = { .max = MOST };
	struct plumb_stack_registers here;
	static _Thread_local struct plumb_stack_bounds bounds;
	if (!ours) {
		ours = malloc(sizeof *ours);
		theirs = malloc(sizeof *theirs);
	}
	walk.sites = ours->at;
	theirs->count = 0;
	_Unwind_Backtrace(take, theirs);
	plumb_stack_here(&here);
	if (plumb_stack_prepare() &&
	    (plumb_stack_within(&bounds, here.sp) || plumb_stack_bounds_of(here.sp, &bounds)))
		plumb_stack_walk(&here, &bounds, &walk);
	if (plumb_stack_within(&bounds, here.sp))
		memoed_check(&here, &bounds);
	ours->count = walk.count;
	if (ours->count && theirs->count)
		ours->at[0] = theirs->at[0] = 0; /* this very function's */
	stacks++;
	all_sites += theirs->count;
	if (theirs->count > deepest)
		deepest = theirs->count;
	if (ours->count != theirs->count ||
	    memcmp(ours->at, theirs->at, ours->count * sizeof ours->at[0])) {
		if (!differences++)
			show(ours, theirs, walk.end);
	}
}

/* ---- samples ---- */

static _Atomic unsigned long samples, whole, without_table;
static _Atomic int sampling;

static void
sample(int signal, siginfo_t *info, void *context)
{
	static _Thread_local struct plumb_stack_bounds bounds;
	static _Thread_local uintptr_t sites[MOST];
	struct plumb_stack_walk walk = { .sites = sites, .max = MOST, .in_handler = true };
	struct plumb_stack_registers there;
	(void)signal, (void)info;
	plumb_stack_interrupted(context, &there);
	if (!plumb_stack_within(&bounds, there.sp))
		plumb_stack_bounds_of(there.sp, &bounds);
	plumb_stack_walk(&there, &bounds, &walk);
	samples++;
	whole += walk.end == PLUMB_STACK_OUTERMOST;
	without_table += walk.end == PLUMB_STACK_NO_TABLE || walk.end == PLUMB_STACK_GENERATED ||
	                 walk.end == PLUMB_STACK_UNKNOWN;
}

static void
sample_now(void)
{
	static const struct itimerval every = { { 0, 1000 }, { 0, 1000 } };
	struct sigaction action = { .sa_sigaction = sample, .sa_flags = SA_SIGINFO | SA_RESTART };
	if (atomic_load(&plumb_stack_stale))
		plumb_stack_refresh();
	if (atomic_exchange(&sampling, 1) || !plumb_stack_prepare())
		return;
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &every, NULL);
}

__attribute__((visibility("default"))) int
posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "posix_memalign");
	if (!inside) {
		inside = 1;
		if (getenv("INSIDE_SAMPLE"))
			sample_now();
		else
			check();
		inside = 0;
	}
	return real(memory, alignment, bytes);
}

static __attribute__((destructor)) void
finish(void)
{
	static const struct itimerval never;
	setitimer(ITIMER_PROF, &never, NULL);
	FILE *out = fopen(getenv("INSIDE_OUT"), "w");
	if (!out)
		return;
	if (sampling)
		fprintf(out, "%lu %lu %lu\n", samples, whole, without_table);
	else
		fprintf(out, "%lu %lu %lu %lu %lu %lu\n", stacks, differences, deepest, all_sites,
		        memoed_known, memoed_wrong);
	fclose(out);
}
