/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash map from a key to an id. The map keeps (hash, id) only; the keys lie where the ids point
 * to, and the caller compares them:
 *
 *	struct plumb_map_cursor at;
 *	for (uint32_t id = plumb_map_first(&map, hash, &at); id != PLUMB_MAP_NONE;
 *	     id = plumb_map_next(&map, &at))
 *		if (things[id] is the key)
 *			return id;
 *	plumb_map_add(&map, hash, new_id);
 */
#ifndef PLUMB_BASE_MAP_H
#define PLUMB_BASE_MAP_H

#include <stdint.h>

#define PLUMB_MAP_NONE UINT32_MAX

struct plumb_map_slot {
	uint32_t hash;
	uint32_t id; /* PLUMB_MAP_NONE: free */
};

/* Zero it to start. */
struct plumb_map {
	struct plumb_map_slot *slots;
	uint32_t capacity; /* a power of two, or 0 */
	uint32_t count;
};

struct plumb_map_cursor {
	uint32_t hash;
	uint32_t at;
};

/* 0, or PLUMB_ESYSTEM when memory is out. ID may be anything but PLUMB_MAP_NONE. */
int plumb_map_add(struct plumb_map *map, uint64_t hash, uint32_t id);
void plumb_map_free(struct plumb_map *map);

static inline uint32_t
plumb_map_scan(const struct plumb_map *map, struct plumb_map_cursor *cursor)
{
	for (;; cursor->at++) {
		const struct plumb_map_slot *slot = &map->slots[cursor->at & (map->capacity - 1)];
		if (slot->id == PLUMB_MAP_NONE || slot->hash == cursor->hash)
			return slot->id;
	}
}

/* The first id that was added with HASH (or one that looks like it), or PLUMB_MAP_NONE. */
static inline uint32_t
plumb_map_first(const struct plumb_map *map, uint64_t hash, struct plumb_map_cursor *cursor)
{
	cursor->hash = cursor->at = (uint32_t)(hash ^ hash >> 32);
	return map->capacity ? plumb_map_scan(map, cursor) : PLUMB_MAP_NONE;
}

static inline uint32_t
plumb_map_next(const struct plumb_map *map, struct plumb_map_cursor *cursor)
{
	cursor->at++;
	return plumb_map_scan(map, cursor);
}

#endif
