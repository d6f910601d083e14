/* SPDX-License-Identifier: Apache-2.0 */
/* Room for arrays of many megabytes that are read and written in random order. */
#ifndef PLUMB_BASE_LARGE_H
#define PLUMB_BASE_LARGE_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLUMB_LARGE_PAGE ((size_t)2 << 20)
#define PLUMB_SMALL_PAGE ((size_t)sysconf(_SC_PAGESIZE))

/* Large pages for BYTES at ROOM, which malloc or realloc gave, if these are some megabytes. All of
 * the mapping is asked for: one that is half of the one and half of the other kind cannot grow
 * without a copy. */
static inline void
plumb_large_wish(void *room, size_t bytes)
{
	size_t before = (uintptr_t)room % PLUMB_SMALL_PAGE;

	if (bytes >= 2 * PLUMB_LARGE_PAGE)
		madvise((char *)room - before, before + bytes, MADV_HUGEPAGE);
}

/* BYTES for free(), in large pages where the system has some: each of a processor's few hundred
 * entries for pages then holds 2 MiB instead of 4 KiB. NULL: memory is out. */
static inline void *
plumb_large(size_t bytes)
{
	void *room = NULL;

	if (bytes < 2 * PLUMB_LARGE_PAGE)
		return malloc(bytes);
	if (posix_memalign(&room, PLUMB_LARGE_PAGE, bytes))
		return NULL;
	plumb_large_wish(room, bytes);
	return room;
}

/* Gives an empty plumb_vec room for MOST items: one that grows to millions moves them many times.
 * False: memory is out. */
#define plumb_large_vec(vec, most)                                                                 \
	({                                                                                         \
		__typeof__(vec) vec_ = (vec);                                                      \
		vec_->items = plumb_large(((size_t)(most) + 1) * sizeof *vec_->items);             \
		vec_->capacity = vec_->items ? (most) : 0;                                         \
		vec_->items != NULL;                                                               \
	})

#endif
