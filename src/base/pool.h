/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is handed out piece by piece and freed as a whole. Pieces never move.
 */
#ifndef PLUMB_BASE_POOL_H
#define PLUMB_BASE_POOL_H

#include <stddef.h>

struct plumb_pool;

struct plumb_pool *plumb_pool_new(void);
void plumb_pool_free(struct plumb_pool *pool);

/* BYTES bytes, aligned for char only; NULL when memory is out. */
char *plumb_pool_take(struct plumb_pool *pool, size_t bytes);

#endif
