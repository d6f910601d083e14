/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/tree.h"

#include <string.h>

#include "base/hash.h"

#define ARENAS_OF_RUN (UINT32_C(1) << 24) /* no number of the program's arenas */

static struct plumb_arena *
arena_of(struct plumb_watch_tree *tree)
{
	if (!tree->arena.region) {
		atomic_store(&tree->region.arenas, ARENAS_OF_RUN);
		plumb_arena_init(&tree->arena, &tree->region);
	}
	return &tree->arena;
}

/* Is there room for BYTES more? */
static bool
take_room(struct plumb_watch_tree *tree, uint64_t bytes)
{
	if (tree->most && tree->used + bytes > tree->most)
		return false;
	tree->used += bytes;
	return true;
}

plumb_id
plumb_watch_tree_string(struct plumb_watch_tree *tree, const char *text)
{
	size_t bytes = strlen(text);
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_bytes(text, bytes);
	for (uint32_t id = plumb_map_first(&tree->strings, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&tree->strings, &at)) {
		const struct plumb_record_string *string = plumb_region_at(&tree->region, id);
		if (string->bytes == bytes && !memcmp(string + 1, text, bytes))
			return id;
	}
	if (!take_room(tree, sizeof(struct plumb_record_string) + bytes))
		return 0;
	plumb_id id = plumb_arena_string(arena_of(tree), text, bytes);
	return id && !plumb_map_add(&tree->strings, hash, id) ? id : 0;
}

plumb_id
plumb_watch_tree_node(struct plumb_watch_tree *tree, const struct plumb_record_node *key)
{
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(key->parent, key->name),
	                               plumb_hash_mix(key->file, key->line));
	for (uint32_t id = plumb_map_first(&tree->nodes, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&tree->nodes, &at)) {
		const struct plumb_record_node *node = plumb_region_at(&tree->region, id);
		if (node->parent == key->parent && node->name == key->name &&
		    node->file == key->file && node->line == key->line && node->kind == key->kind &&
		    node->flags == key->flags)
			return id;
	}
	/* With its value, so that no time is lost for want of room. */
	if (!take_room(tree, sizeof(struct plumb_record_node) + sizeof(struct plumb_record_value)))
		return 0;
	struct plumb_record_node *node =
		plumb_arena_append(arena_of(tree), PLUMB_RECORD_NODE, sizeof *node);
	if (!node)
		return 0;
	node->parent = key->parent;
	node->kind = key->kind;
	node->flags = key->flags;
	node->name = key->name;
	node->file = key->file;
	node->line = key->line;
	plumb_arena_commit(&tree->arena, node);
	plumb_id id = plumb_region_id(&tree->region, node);
	return plumb_map_add(&tree->nodes, hash, id) ? 0 : id;
}

static struct plumb_record_value *
value_of(struct plumb_watch_tree *tree, enum plumb_metric metric, plumb_id node, plumb_id track)
{
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(node, track), metric);
	for (uint32_t id = plumb_map_first(&tree->values, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&tree->values, &at)) {
		struct plumb_record_value *value = plumb_region_at(&tree->region, id);
		if (value->node == node && value->track == track && value->metric == metric)
			return value;
	}
	struct plumb_record_value *value =
		plumb_arena_append(arena_of(tree), PLUMB_RECORD_VALUE, sizeof *value);
	if (!value)
		return NULL;
	value->node = node;
	value->track = track;
	value->metric = (uint16_t)metric;
	plumb_arena_commit(&tree->arena, value);
	return plumb_map_add(&tree->values, hash, plumb_region_id(&tree->region, value)) ? NULL
	                                                                                 : value;
}

void
plumb_watch_tree_add(struct plumb_watch_tree *tree, struct plumb_watch_kind kind, plumb_id node,
                     plumb_id track, uint64_t ns, enum plumb_fate fate)
{
	if (!ns)
		return;
	struct plumb_record_value *value = value_of(tree, kind.metric, node, track);
	if (value)
		plumb_value_add(value, (int64_t)ns);
	plumb_arena_count(arena_of(tree), kind.source, PLUMB_FATE_RECEIVED, 1);
	if (!value)
		fate = tree->arena.fate ? tree->arena.fate : PLUMB_FATE_REGION_FULL;
	plumb_arena_count(&tree->arena, kind.source, fate, 1);
}

void
plumb_watch_tree_tell(struct plumb_watch_tree *tree, const char *key, const char *value)
{
	plumb_arena_environment(arena_of(tree), key, value);
}

void
plumb_watch_tree_free(struct plumb_watch_tree *tree)
{
	plumb_map_free(&tree->strings);
	plumb_map_free(&tree->nodes);
	plumb_map_free(&tree->values);
}
