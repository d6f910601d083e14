/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lives at an address: allocations that wait for their free.
 *
 * Any thread, no lock, no heap. A key is put before its address is handed to the program and taken
 * before the address is given back, so that two threads never work on one key at once.
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
	uint32_t owner;  /* likewise */
};
struct plumb_live_level; /* private */

/* Zero it to start. */
struct plumb_live {
	_Atomic(struct plumb_live_level *) levels[PLUMB_LIVE_LEVELS];
};

enum plumb_live_result {
	PLUMB_LIVE_NEW,
	PLUMB_LIVE_REPLACED, /* something lived there whose end was not seen: *was */
	PLUMB_LIVE_FULL,     /* nothing was put */
};
/* KEY is not 0. */
enum plumb_live_result
plumb_live_put(struct plumb_live *live, uint64_t key, const struct plumb_live_object *object,
               struct plumb_live_object *was);
/* As plumb_live_take, and it lives on. For what is never taken by another thread meanwhile. */
bool plumb_live_get(const struct plumb_live *live, uint64_t key, struct plumb_live_object *object);
/* False: nothing lives there. */
bool plumb_live_take(struct plumb_live *live, uint64_t key, struct plumb_live_object *object);

/* Nothing lives any more. For a forked child, where no other thread is. */
void plumb_live_clear(struct plumb_live *live);

#endif
