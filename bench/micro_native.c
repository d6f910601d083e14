/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a walk of the native stack, beside libgcc's _Unwind_Backtrace on the same stack;
 * loaded by bench/micro_native.py, which builds it with src/collect/stack/. Preloaded, it measures
 * at each posix_memalign(), which PyTorch calls within its operators, as long as NATIVE_OUT names a
 * file. With NATIVE_BETWEEN it measures a path of 30 calls instead, as native_context.c finds one:
 * by a walk and a look-up a site, or by the memo, each after so many KiB of other memory were
 * written.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "collect/collector.h"
#include "collect/native_memo.h"
#include "collect/stack/stack.h"
#include "collect/table.h"

enum { MOST = 512, TIMES = 20, KINDS = 2, CALLS = 30, NODES = 4096, LINE = 64 };

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

/* A frame of its own, which libgcc sees, too. */
static __attribute__((noinline)) double
once(struct sites *sites, const struct plumb_stack_registers *here,
     const struct plumb_stack_bounds *bounds, int kind)
{
	struct plumb_stack_walk walk = { .sites = sites->at, .max = sites->most };
	uint64_t start = plumb_clock_ns();
	if (kind) {
		sites->count = 0;
		_Unwind_Backtrace(take, sites);
	} else {
		plumb_stack_walk(here, bounds, &walk);
		sites->count = walk.count;
	}
	return (double)(plumb_clock_ns() - start);
}

/* Both walks of the stack from here, at most DEPTH sites: the first of plumb's, then the least of
 * TIMES each. */
static __attribute__((noinline)) void
measure(size_t depth, struct result *result)
{
	static struct plumb_stack_bounds bounds;
	static struct sites sites[KINDS];
	struct plumb_stack_registers here;
	plumb_stack_here(&here);
	if (!plumb_stack_prepare() ||
	    (!plumb_stack_within(&bounds, here.sp) && !plumb_stack_bounds_of(here.sp, &bounds)))
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

/* ---- a path in the midst of a program ---- */

/* As the thread's in native_context.c; and ids that hashes stand for. */
static struct plumb_native_memo memo;
static struct {
	uintptr_t site;
	plumb_id parent, node;
} nodes[NODES];
static struct plumb_stack_trail trail;
static struct {
	double ns[KINDS], walks, known, wrong;
} paths;

/* Other memory is written, and the stack is what the program has just used. */
static void
go_on(size_t kib, uintptr_t sp, uintptr_t stop)
{
	static char *other;
	static unsigned turn;
	if (!other)
		other = malloc(kib * 1024 + 1);
	for (size_t i = 0; i < kib * 1024; i += LINE)
		other[i] = (char)turn;
	turn++;
	for (uintptr_t at = sp; at < stop; at += LINE)
		(void)*(volatile char *)at;
	(void)plumb_clock_ns();
}

static plumb_id
by_walk(const struct plumb_memo_place *at, uintptr_t *sites, struct plumb_stack_trail *wanted)
{
	struct plumb_stack_walk walk = {
		.sites = sites,
		.max = MOST,
		.stop = at->stop,
		.trail = wanted,
	};
	plumb_id parent = at->parent;
	plumb_stack_walk(at->from, at->bounds, &walk);
	while (walk.count) {
		uintptr_t site = sites[--walk.count];
		uint64_t hash = (site ^ (uint64_t)parent << 32) * UINT64_C(0x9e3779b97f4a7c15);
		size_t slot = hash >> 32 & (NODES - 1);
		if (plumb_unlikely(nodes[slot].site != site || nodes[slot].parent != parent)) {
			nodes[slot].site = site;
			nodes[slot].parent = parent;
			nodes[slot].node = (plumb_id)hash | 1;
		}
		parent = nodes[slot].node;
	}
	return parent;
}

/* The path of the innermost CALLS calls, under a parent that stands for those further out. */
static __attribute__((noinline)) void
measure_path(size_t kib)
{
	static struct plumb_stack_bounds bounds;
	static uintptr_t sites[MOST];
	struct plumb_stack_registers here;
	struct plumb_memo_place at = { .from = &here, .bounds = &bounds };
	plumb_stack_here(&here);
	if (!plumb_stack_prepare() ||
	    (!plumb_stack_within(&bounds, here.sp) && !plumb_stack_bounds_of(here.sp, &bounds)))
		return;
	struct plumb_stack_walk whole = { .sites = sites, .max = MOST, .trail = &trail };
	plumb_stack_walk(&here, &bounds, &whole);
	if (trail.calls <= CALLS || whole.count <= CALLS)
		return;
	at.stop = here.sp + (trail.at[CALLS - 1] + (size_t)1) * sizeof(uintptr_t);
	at.parent = plumb_hash_text((const char *)(sites + CALLS),
	                            (whole.count - CALLS) * sizeof *sites);
	plumb_id expected = by_walk(&at, sites, &trail), found;
	paths.walks++;
	if (!plumb_native_memo_find(&memo, &at, &found)) {
		plumb_native_memo_put(&memo, &at, &trail, expected);
		return;
	}
	for (int i = 0; i < KINDS; i++) {
		int kind = (i + (int)paths.known) % KINDS;
		bool known = true;
		go_on(kib, here.sp, at.stop);
		uint64_t start = plumb_clock_ns();
		if (kind)
			known = plumb_native_memo_find(&memo, &at, &found);
		else
			found = by_walk(&at, sites, NULL);
		paths.ns[kind] += (double)(plumb_clock_ns() - start);
		paths.wrong += !known || found != expected;
	}
	paths.known++;
}

/* ---- */

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
		const char *between = getenv("NATIVE_BETWEEN");
		inside = 1; /* one thread computes */
		if (between)
			measure_path((size_t)atol(between));
		else
			measure(MOST, &sum);
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
	if (paths.walks)
		fprintf(out, "%f %f %f %f %f\n", paths.ns[0], paths.ns[1], paths.walks, paths.known,
		        paths.wrong);
	else
		fprintf(out, "%f %f %f %f %f %f\n", sum.ns[0], sum.ns[1], sum.cold, sum.sites,
		        sum.differences, sum.stacks);
	fclose(out);
}
