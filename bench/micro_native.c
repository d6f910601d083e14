/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a walk of the native stack, beside libgcc's _Unwind_Backtrace on the same stack; loaded by
 * bench/micro_native.py, which builds it with src/collect/stack/. Preloaded, it measures at each
 * posix_memalign(), which PyTorch calls within its operators, as long as NATIVE_OUT names a file.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unwind.h>

#include "collect/collector.h"
#include "collect/stack/stack.h"

enum { MOST = 512, TIMES = 20, KINDS = 2 };

struct sites {
	uintptr_t at[MOST];
	size_t count, most;
};
struct result {
	double ns[KINDS], cold, sites, differences, stacks;
};

static int inside;
static struct result sum;

void *
plumb_real_dlsym(void *handle, const char *name)
{
	return dlsym(handle, name);
}

static _Unwind_Reason_Code
take(struct _Unwind_Context *context, void *data)
{
	struct sites *sites = data;
	uintptr_t ip = _Unwind_GetIP(context);
	if (!ip || sites->count == sites->most)
		return _URC_END_OF_STACK;
	sites->at[sites->count++] = ip - 1;
	return _URC_NO_REASON;
}

static double
once(struct sites *sites, const struct plumb_stack_registers *here,
     const struct plumb_stack_bounds *bounds, int kind)
{
	struct plumb_stack_walk walk = { .sites = sites->at, .max = sites->most };
	uint64_t start = plumb_now();
	if (kind) {
		sites->count = 0;
		_Unwind_Backtrace(take, sites);
	} else {
		plumb_stack_walk(here, bounds, &walk);
		sites->count = walk.count;
	}
	return (double)(plumb_now() - start);
}

/* Both walks of the stack from here, at most DEPTH sites: the first of plumb's, then the least of TIMES
 * each. */
static __attribute__((noinline)) void
measure(size_t depth, struct result *result)
{
	static struct plumb_stack_bounds bounds;
	static struct sites sites[KINDS];
	struct plumb_stack_registers here;
	plumb_stack_here(&here);
	if (!plumb_stack_prepare() || (!plumb_stack_within(&bounds, here.sp) &&
	                               !plumb_stack_bounds_of(here.sp, &bounds)))
		return;
	sites[0].most = depth < MOST ? depth : MOST - 1;
	sites[1].most = sites[0].most + 1; /* it sees the function that asks, too */
	result->cold += once(&sites[0], &here, &bounds, 0);
	for (int kind = 0; kind < KINDS; kind++) {
		double least = 1e18;
		for (int i = 0; i < TIMES; i++) {
			double ns = once(&sites[kind], &here, &bounds, kind);
			least = ns < least ? ns : least;
		}
		result->ns[kind] += least;
	}
	result->sites += (double)sites[0].count;
	result->stacks++;
	result->differences += sites[0].count + 1 != sites[1].count;
	for (size_t i = 1; i < sites[0].count && i + 1 < sites[1].count; i++)
		result->differences += sites[0].at[i] != sites[1].at[i + 1];
}

PLUMB_EXPORT __attribute__((noinline)) int
bench_native(int below, int depth, struct result *result)
{
	volatile char room[64] = { 0 };
	if (below)
		return bench_native(below - 1, depth, result) + room[below & 63];
	*result = (struct result){ 0 };
	measure((size_t)depth, result);
	return room[1];
}

PLUMB_EXPORT int
posix_memalign(void **memory, size_t alignment, size_t bytes)
{
	static int (*real)(void **, size_t, size_t);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "posix_memalign");
	if (!inside && getenv("NATIVE_OUT")) {
		inside = 1;
		measure(MOST, &sum); /* one thread computes */
		inside = 0;
	}
	return real(memory, alignment, bytes);
}

static __attribute__((destructor)) void
finish(void)
{
	const char *path = getenv("NATIVE_OUT");
	FILE *out = path ? fopen(path, "w") : NULL;
	if (!out)
		return;
	fprintf(out, "%f %f %f %f %f %f\n", sum.ns[0], sum.ns[1], sum.cold, sum.sites,
	        sum.differences, sum.stacks);
	fclose(out);
}
