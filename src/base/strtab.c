/* SPDX-License-Identifier: Apache-2.0 */
#include "base/strtab.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

struct plumb_strtab {
	struct plumb_pool *pool;
	struct plumb_map map;
	PLUMB_VEC(const char *) texts;
	PLUMB_VEC(uint32_t) lengths;
};

struct plumb_strtab *
plumb_strtab_new(void)
{
	struct plumb_strtab *table = calloc(1, sizeof *table);
	if (!table)
		return NULL;
	table->pool = plumb_pool_new();
	if (!table->pool) {
		free(table);
		return NULL;
	}
	return table;
}

void
plumb_strtab_free(struct plumb_strtab *table)
{
	if (!table)
		return;
	plumb_pool_free(table->pool);
	plumb_map_free(&table->map);
	plumb_vec_free(&table->texts);
	plumb_vec_free(&table->lengths);
	free(table);
}

uint32_t
plumb_strtab_add(struct plumb_strtab *table, const char *text, size_t bytes)
{
	if (bytes >= UINT32_MAX || !table->pool)
		return PLUMB_STRTAB_NONE;
	uint64_t hash = plumb_hash_bytes(text, bytes);
	struct plumb_map_cursor at;
	for (uint32_t id = plumb_map_first(&table->map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&table->map, &at))
		if (table->lengths.items[id] == bytes &&
		    !memcmp(table->texts.items[id], text, bytes))
			return id;

	char *copy = plumb_pool_take(table->pool, bytes + 1);
	uint32_t *length = copy ? plumb_vec_add(&table->lengths) : NULL;
	const char **slot = length ? plumb_vec_add(&table->texts) : NULL;
	if (!slot || plumb_map_add(&table->map, hash, table->texts.count - 1)) {
		table->texts.count -= slot != NULL;
		table->lengths.count -= length != NULL;
		return PLUMB_STRTAB_NONE;
	}
	memcpy(copy, text, bytes);
	copy[bytes] = 0;
	*slot = copy;
	*length = (uint32_t)bytes;
	return table->texts.count - 1;
}

const char *
plumb_strtab_text(const struct plumb_strtab *table, uint32_t id)
{
	return id < table->texts.count ? table->texts.items[id] : NULL;
}

uint32_t
plumb_strtab_count(const struct plumb_strtab *table)
{
	return table->texts.count;
}

char *
plumb_strtab_room(struct plumb_strtab *table, size_t bytes)
{
	return table->pool ? plumb_pool_take(table->pool, bytes) : NULL;
}

void
plumb_strtab_release(struct plumb_strtab *table, const char ***texts, uint32_t *count,
                     struct plumb_pool **pool)
{
	*texts = table->texts.items;
	*count = table->texts.count;
	*pool = table->pool;
	table->texts.items = NULL;
	table->texts.count = table->texts.capacity = 0;
	table->pool = NULL;
}
