/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one allocation of the program fail: include it in one file of a test.
 *
 *	for (long n = 0; …; n++) { failing_malloc_at = n; …; failed = failing_malloc_stop(); }
 *
 * A sanitizer brings its own malloc: then FAILING_MALLOC is 0 and nothing fails.
 */
#ifndef PLUMB_TESTS_FAILING_MALLOC_H
#define PLUMB_TESTS_FAILING_MALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

static long failing_malloc_at = -1; /* allocations until one fails; negative: none does */

/* Ends it; true when the allocation that should fail was reached. */
static inline bool
failing_malloc_stop(void)
{
	bool reached = failing_malloc_at < 0;
	failing_malloc_at = -1;
	return reached;
}

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define FAILING_MALLOC 0
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define FAILING_MALLOC 0
#endif

#ifndef FAILING_MALLOC
#define FAILING_MALLOC 1

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

static bool
fails_now(void)
{
	return failing_malloc_at >= 0 && failing_malloc_at-- == 0;
}

void *
malloc(size_t bytes)
{
	return fails_now() ? NULL : __libc_malloc(bytes);
}

void *
calloc(size_t count, size_t bytes)
{
	return fails_now() ? NULL : __libc_calloc(count, bytes);
}

void *
realloc(void *old, size_t bytes)
{
	return fails_now() ? NULL : __libc_realloc(old, bytes);
}
#endif

#endif
