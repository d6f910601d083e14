/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static void
place_id(struct plumb_map *map, uint32_t hash, uint32_t id)
{
	uint32_t at = hash;
	while (map->slots[at & (map->capacity - 1)].id != PLUMB_MAP_NONE)
		at++;
	map->slots[at & (map->capacity - 1)] = (struct plumb_map_slot){ hash, id };
}

static int
grow(struct plumb_map *map)
{
	if (map->capacity > UINT32_MAX / 2)
		return PLUMB_ESYSTEM;
	struct plumb_map old = *map;
	map->capacity = old.capacity ? old.capacity * 2 : 64;
	map->slots = malloc((size_t)map->capacity * sizeof *map->slots);
	if (!map->slots) {
		*map = old;
		return PLUMB_ESYSTEM;
	}
	memset(map->slots, 0xff, (size_t)map->capacity * sizeof *map->slots);
	for (uint32_t i = 0; i < old.capacity; i++)
		if (old.slots[i].id != PLUMB_MAP_NONE)
			place_id(map, old.slots[i].hash, old.slots[i].id);
	free(old.slots);
	return PLUMB_OK;
}

int
plumb_map_add(struct plumb_map *map, uint64_t hash, uint32_t id)
{
	/* At most three quarters full: probing stays short and always meets a free slot. */
	if (map->count >= map->capacity - map->capacity / 4 && grow(map))
		return PLUMB_ESYSTEM;
	place_id(map, (uint32_t)(hash ^ hash >> 32), id);
	map->count++;
	return PLUMB_OK;
}

void
plumb_map_free(struct plumb_map *map)
{
	free(map->slots);
	*map = (struct plumb_map){ 0 };
}
