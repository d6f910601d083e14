/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the real function behind a symbol that we replace. The caller decides which one it is,
 * because a process may have several copies of a library, each with its own function.
 *
 *	static struct plumb_real real = { .symbol = "f", .library = "libf.so", .ours = (void *)f };
 *	…
 *	void *function = plumb_real_function(&real, __builtin_return_address(0));
 */
#ifndef PLUMB_COLLECT_REAL_H
#define PLUMB_COLLECT_REAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "collect/collector.h"

#define PLUMB_REAL_CALLERS 8u

/* A test that is built with a sanitizer has the sanitizer's functions in front of the C library's,
 * not ours. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PLUMB_OF_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLUMB_OF_SANITIZER
#endif

/* A library that calls us, and the function that it means. */
struct plumb_real_caller {
	uintptr_t low;
	size_t bytes; /* mapped from LOW on */
	_Atomic(void *) function;
};
struct plumb_real {
	const char *symbol;
	const char *library; /* the beginning of the file name of the library that has it */
	const void *ours;
	struct plumb_real_caller callers[PLUMB_REAL_CALLERS];
	_Atomic uint32_t claimed;
};

/* Looks up the function that CALLER's library means. NULL: there is only ours. */
void *plumb_real_find(struct plumb_real *real, const void *caller);

/* Is FUNCTION, the real one, in the very library that CALLER is in? */
bool
plumb_real_is_neighbour(const struct plumb_real *real, const void *caller, const void *function);

static inline void *
plumb_real_function(struct plumb_real *real, const void *caller)
{
	struct plumb_real_caller *first = &real->callers[0];
	void *function = atomic_load_explicit(&first->function, memory_order_acquire);
	if (plumb_likely(function && (uintptr_t)caller - first->low < first->bytes))
		return function;
	return plumb_real_find(real, caller);
}

#endif
