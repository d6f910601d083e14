/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into a program: at each posix_memalign(), which PyTorch calls for a tensor's memory within
 * its operators, plumb's walk is compared with libgcc's. For test_native_walk.py; built with the walk's
 * sources. INSIDE_OUT names the file for the result: stacks, differences, deepest, sites.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "collect/stack/stack.h"

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
	if (plumb_stack_prepare() && (plumb_stack_within(&bounds, here.sp) ||
	                              plumb_stack_bounds_of(here.sp, &bounds)))
		plumb_stack_walk(&here, &bounds, &walk);
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

__attribute__((visibility("default"))) int
posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "posix_memalign");
	if (!inside) {
		inside = 1;
		check();
		inside = 0;
	}
	return real(memory, alignment, bytes);
}

static __attribute__((destructor)) void
finish(void)
{
	FILE *out = fopen(getenv("INSIDE_OUT"), "w");
	if (!out)
		return;
	fprintf(out, "%lu %lu %lu %lu\n", stacks, differences, deepest, all_sites);
	fclose(out);
}
