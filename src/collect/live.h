/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Knows what lives at an address: allocations that nobody has freed yet.
 *
 * Any thread may call these functions. They take no lock and no heap memory. Put a key before the
 * program gets its address, and take it before the address is given back. Then two threads never
 * work on the same key at once.
 */
#ifndef PLUMB_COLLECT_LIVE_H
#define PLUMB_COLLECT_LIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PLUMB_LIVE_LEVELS 5u /* 19 million objects at the most */

struct plumb_live_object {
	uint64_t bytes;
	uint32_t record; /* the caller's */
	uint32_t owner;  /* the caller's */
};
struct plumb_live_level; /* private */

/* Zero it to start. */
struct plumb_live {
	_Atomic(struct plumb_live_level *) levels[PLUMB_LIVE_LEVELS];
};

enum plumb_live_result {
	PLUMB_LIVE_NEW,
	PLUMB_LIVE_REPLACED, /* something lived there, and nobody saw its end: *was */
	PLUMB_LIVE_FULL,     /* there is no room: nothing was put */
};
/* KEY is not 0. */
enum plumb_live_result
plumb_live_put(struct plumb_live *live, uint64_t key, const struct plumb_live_object *object,
               struct plumb_live_object *was);
/* As plumb_live_take, but the object stays. Only for a key that no other thread takes meanwhile. */
bool plumb_live_get(const struct plumb_live *live, uint64_t key, struct plumb_live_object *object);
/* False: nothing lives there. */
bool plumb_live_take(struct plumb_live *live, uint64_t key, struct plumb_live_object *object);

/* Forgets everything. For a forked child, which has no other threads. */
void plumb_live_clear(struct plumb_live *live);

#endif
