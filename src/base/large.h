/* SPDX-License-Identifier: Apache-2.0 */
/* Room for arrays of many megabytes that are read and written in random order. */
#ifndef PLUMB_BASE_LARGE_H
#define PLUMB_BASE_LARGE_H

#include <stdlib.h>
#include <sys/mman.h>

/* BYTES for free(), in large pages where the system has some: each of a processor's few hundred
 * entries for pages then holds 2 MiB instead of 4 KiB. NULL: memory is out. */
static inline void *
plumb_large(size_t bytes)
{
	const size_t page = 2 << 20;
	void *room = NULL;

	if (bytes < 2 * page)
		return malloc(bytes);
	if (posix_memalign(&room, page, bytes))
		return NULL;
	madvise(room, bytes, MADV_HUGEPAGE); /* a wish */
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
