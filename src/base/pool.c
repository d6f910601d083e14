/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pool.h"

#include <stdint.h>
#include <stdlib.h>

#define BLOCK_BYTES ((size_t)256 * 1024)

struct block {
	struct block *next;
	char bytes[];
};

struct plumb_pool {
	struct block *blocks;
	char *free;
	size_t left;
};

struct plumb_pool *
plumb_pool_new(void)
{
	return calloc(1, sizeof(struct plumb_pool));
}

void
plumb_pool_free(struct plumb_pool *pool)
{
	if (!pool)
		return;
	for (struct block *block = pool->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	free(pool);
}

char *
plumb_pool_take(struct plumb_pool *pool, size_t bytes)
{
	if (bytes > pool->left) {
		/* A large piece gets a block of its own, so that little is wasted. */
		size_t size = bytes > BLOCK_BYTES / 4 ? bytes : BLOCK_BYTES;
		if (size > SIZE_MAX - sizeof(struct block))
			return NULL;
		struct block *block = malloc(sizeof *block + size);
		if (!block)
			return NULL;
		block->next = pool->blocks;
		pool->blocks = block;
		if (size == bytes)
			return block->bytes;
		pool->free = block->bytes;
		pool->left = size;
	}
	char *piece = pool->free;
	pool->free += bytes;
	pool->left -= bytes;
	return piece;
}
