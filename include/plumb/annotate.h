/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names for parts of a program, and numbers of its own, in plumb's profiles. Header only: nothing
 * is linked, and a program that runs without plumb pays about a nanosecond a call.
 *
 *	#include <plumb/annotate.h>
 *
 *	plumb_range_push("load batch");
 *	…
 *	plumb_metric("tokens", 512);
 *	plumb_range_pop();
 *
 * and in C++
 *
 *	plumb::range range("load batch");     (until the end of the block)
 *
 * A range is a frame on the call paths of what the calling thread does inside it. Names need not
 * outlive the call. Every function may be called from any thread, also before main().
 *
 * How it finds plumb: `plumb run` preloads libplumb.so, and the first call in each source file
 * looks its entry point up by dlsym, once. dlsym is in libc from glibc 2.34 on; before that, link
 * -ldl, or the calls do nothing. In a static program they do nothing. Include it in any number of
 * files and libraries. Define PLUMB_ANNOTATE_OFF to compile the calls away.
 */
#ifndef PLUMB_ANNOTATE_H
#define PLUMB_ANNOTATE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What plumb_annotate_v1() of libplumb.so returns. It may be longer than this. */
struct plumb_annotate {
	uint32_t size;    /* bytes of this structure */
	uint32_t version; /* 1 */
	void (*push)(const char *name);
	void (*pop)(void);
	void (*mark)(const char *name);
	void (*metric)(const char *name, int64_t value);
	/* Ends the newest open range that was pushed with this very pointer. */
	void (*pop_named)(const char *name);
	/* 1: something is known to lie there. Only if SIZE says that it is there. */
	int (*name)(const void *pointer, uint64_t bytes, const char *name);
};

#if defined(__linux__) && defined(__GNUC__) && !defined(PLUMB_ANNOTATE_OFF)

/* A weak reference: it is no reason to link with the library that has it. */
static void *
plumb_annotate_dlsym(void *library, const char *name) __attribute__((weakref("dlsym")));

/* The table, or the address of PLACE itself where there is no plumb. */
__attribute__((noinline, cold, unused)) static const struct plumb_annotate *
plumb_annotate_find(const struct plumb_annotate **place)
{
	const struct plumb_annotate *found = (const struct plumb_annotate *)(const void *)place;
	const struct plumb_annotate *table = 0;
	const struct plumb_annotate *(*plumb)(void) = 0;
	if (plumb_annotate_dlsym)
		*(void **)(&plumb) = plumb_annotate_dlsym((void *)0, "plumb_annotate_v1");
	if (plumb)
		table = plumb();
	if (table && table->size >= offsetof(struct plumb_annotate, name))
		found = table;
	__atomic_store_n(place, found, __ATOMIC_RELEASE);
	return found;
}

/* NULL: no plumb. */
__attribute__((unused)) static inline const struct plumb_annotate *
plumb_annotate_table(void)
{
	static const struct plumb_annotate *table;
	const struct plumb_annotate *now = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
	if (__builtin_expect(!now, 0))
		now = plumb_annotate_find(&table);
	return __builtin_expect((const void *)now == (const void *)&table, 1) ? 0 : now;
}

#else
static inline const struct plumb_annotate *
plumb_annotate_table(void)
{
	return 0;
}
#endif

/* Opens a range on the calling thread. */
static inline void
plumb_range_push(const char *name)
{
	const struct plumb_annotate *plumb = plumb_annotate_table();
	if (plumb)
		plumb->push(name);
}

/* Closes the newest range that plumb_range_push opened on the calling thread. */
static inline void
plumb_range_pop(void)
{
	const struct plumb_annotate *plumb = plumb_annotate_table();
	if (plumb)
		plumb->pop();
}

/* Marks a point in time: counted under the current context as range.marks. */
static inline void
plumb_mark(const char *name)
{
	const struct plumb_annotate *plumb = plumb_annotate_table();
	if (plumb)
		plumb->mark(name);
}

/* Adds VALUE to the metric NAME at the current context. At most 64 names a process. */
static inline void
plumb_metric(const char *name, int64_t value)
{
	const struct plumb_annotate *plumb = plumb_annotate_table();
	if (plumb)
		plumb->metric(name, value);
}

/*
 * With `plumb run --traffic`: what lies at POINTER is called NAME in the profile. POINTER may be
 * any address in the memory of a GPU or in pinned memory: it names the allocation that it is in.
 */
static inline void
plumb_name(const void *pointer, const char *name)
{
	const struct plumb_annotate *plumb = plumb_annotate_table();
	if (plumb && plumb->size >= sizeof *plumb)
		plumb->name(pointer, 0, name);
}

/* The same of BYTES at POINTER, for a part of a larger allocation: of a memory pool of your own. */
static inline void
plumb_name_part(const void *pointer, size_t bytes, const char *name)
{
	const struct plumb_annotate *plumb = plumb_annotate_table();
	if (plumb && plumb->size >= sizeof *plumb)
		plumb->name(pointer, bytes, name);
}

#ifdef __cplusplus
}

namespace plumb
{
class range
{
      public:
	explicit range(const char *name)
	{
		plumb_range_push(name);
	}
	~range()
	{
		plumb_range_pop();
	}
	range(const range &) = delete;
	range &operator=(const range &) = delete;
};
} /* namespace plumb */
#endif
#endif
