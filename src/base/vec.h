/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A growing array of plain structs.
 *
 *	PLUMB_VEC(struct point) points = {0};
 *	struct point *p = plumb_vec_add(&points);  // zeroed; NULL: no memory, or the maximum
 *	points.items[i], points.count
 *	plumb_vec_free(&points);
 *
 * Adding may move the items: hold indexes, not pointers.
 */
#ifndef PLUMB_BASE_VEC_H
#define PLUMB_BASE_VEC_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Indexes stay below UINT32_MAX, which means "none" everywhere. */
#define PLUMB_VEC_MAX (UINT32_MAX - 1)

#define PLUMB_VEC(type)                                                                            \
	struct {                                                                                   \
		type *items;                                                                       \
		uint32_t count, capacity;                                                          \
	}

/* ITEMS with room for at least WANTED of SIZE bytes; NULL, with ITEMS as they were, when that
 * cannot be. */
static inline void *
plumb_vec_grow(void *items, uint32_t *capacity, uint64_t wanted, size_t size)
{
	if (wanted > PLUMB_VEC_MAX)
		return NULL;
	uint64_t room = (uint64_t)*capacity + *capacity / 2 + 16;
	if (room < wanted)
		room = wanted;
	if (room > PLUMB_VEC_MAX)
		room = PLUMB_VEC_MAX;
	size_t bytes;
	if (__builtin_mul_overflow((size_t)room, size, &bytes))
		return NULL;
	void *grown = realloc(items, bytes);
	if (grown)
		*capacity = (uint32_t)room;
	return grown;
}

#define plumb_vec_add(vec)                                                                         \
	({                                                                                         \
		__typeof__(vec) vec_ = (vec);                                                      \
		__typeof__(vec_->items) new_ = vec_->items;                                        \
		if (vec_->count == vec_->capacity) {                                               \
			new_ = plumb_vec_grow(vec_->items, &vec_->capacity,                        \
			                      (uint64_t)vec_->count + 1, sizeof *vec_->items);     \
			if (new_)                                                                  \
				vec_->items = new_;                                                \
		}                                                                                  \
		if (new_) {                                                                        \
			new_ = &vec_->items[vec_->count++];                                        \
			memset(new_, 0, sizeof *new_);                                             \
		}                                                                                  \
		new_;                                                                              \
	})

#define plumb_vec_free(vec)                                                                        \
	do {                                                                                       \
		free((vec)->items);                                                                \
		(vec)->items = NULL;                                                               \
		(vec)->count = (vec)->capacity = 0;                                                \
	} while (0)

#endif
