/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes on one device: how long it was busy, and how long more than one had work on
 * it. */
#ifndef PLUMB_SETTLE_CONTENTION_H
#define PLUMB_SETTLE_CONTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A piece of work of a process; several processes' times must be of one clock. */
struct plumb_use {
	int64_t start, end;
	uint32_t process;
};

struct plumb_contention {
	int64_t busy;      /* ns: at least one process had work */
	int64_t contended; /* ns: at least two had */
};

/* Finds RESULT for COUNT pieces of work. They may have any order, which changes. False: no memory.
 * A piece that ends before it starts does not count. */
bool plumb_contention_find(struct plumb_use *uses, size_t count, struct plumb_contention *result);

#endif
