/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling context tree of one thread: interned strings, nodes, values. Each thread grows a tree
 * of its own and shares nothing, so nothing is locked; equal contexts of several threads join in
 * settle. A node's parent may be another thread's (GPU and backward work hang under it): ids hold
 * for the whole region, and another thread's node is only ever read.
 */
#include "collect/thread.h"

plumb_id
plumb_intern(struct plumb_thread *thread, const char *text, size_t bytes)
{
	struct plumb_region *region = thread->arena.region;
	if (bytes > PLUMB_STRING_MAX)
		bytes = PLUMB_STRING_MAX;
	uint32_t hash = plumb_hash_text(text, bytes), at = hash, id;
	while ((id = plumb_id_table_next(&thread->strings, hash, &at))) {
		const struct plumb_record_string *string = plumb_region_at(region, id);
		if (string->bytes == bytes && !memcmp(string + 1, text, bytes))
			return id;
	}
	id = plumb_arena_string(&thread->arena, text, bytes);
	if (id)
		plumb_id_table_add(&thread->strings, hash, id);
	return id;
}

PLUMB_HOT_CODE plumb_id
plumb_name(struct plumb_thread *thread, const char *name)
{
	struct plumb_name_entry *entry =
		&thread->names[((uintptr_t)name >> 3 ^ (uintptr_t)name >> 12) % PLUMB_NAME_CACHE];
	if (entry->pointer == name) {
		const struct plumb_record_string *string =
			plumb_region_at(thread->arena.region, entry->id);
		if (!strncmp(name, (const char *)(string + 1), entry->bytes) && !name[entry->bytes])
			return entry->id;
	}
	size_t bytes = strnlen(name, PLUMB_STRING_MAX);
	plumb_id id = plumb_intern(thread, name, bytes);
	if (id)
		*entry = (struct plumb_name_entry){ name, id, (uint32_t)bytes };
	return id;
}

plumb_id *
plumb_call_name(struct plumb_thread *thread, uint32_t number)
{
	return &thread->call_names[number];
}

static bool
has_ends(const struct plumb_record_node *node, const plumb_id *ends)
{
	const struct plumb_record_copy *copy = (const struct plumb_record_copy *)node;
	return copy->from == ends[0] && copy->to == ends[1];
}

static inline uint32_t
hash_of(plumb_id parent, const struct plumb_key *key)
{
	uint64_t mixed = plumb_mix(((uint64_t)parent << 32) | key->name,
	                           ((uint64_t)key->file << 32) | key->line);
	mixed ^= (uint64_t)(key->kind << 8 | key->flags) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(mixed ^ (mixed >> 32));
}

/* ENDS: of a copy between two devices, else NULL, which is known when this is compiled. */
static inline __attribute__((always_inline)) plumb_id
find_child(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key, uint32_t hash,
           const plumb_id *ends)
{
	uint32_t at = hash;
	plumb_id id;
	while ((id = plumb_id_table_next(&thread->nodes, hash, &at))) {
		const struct plumb_record_node *node =
			plumb_region_at(plumb_region_of_process(), id);
		if (node->parent == parent && node->name == key->name && node->line == key->line &&
		    node->file == key->file && node->kind == key->kind &&
		    node->flags == key->flags && (!ends || has_ends(node, ends)))
			return id;
	}
	return 0;
}

plumb_id
plumb_child_known(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key)
{
	return parent == PLUMB_LOST ? 0
	                            : find_child(thread, parent, key, hash_of(parent, key), NULL);
}

static inline __attribute__((always_inline)) plumb_id
find_or_make(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key,
             uint32_t hash, const plumb_id *ends)
{
	plumb_id id;
	if (parent == PLUMB_LOST)
		return PLUMB_LOST;
	/* Without room for its text a frame would pass for another one. */
	if (!key->name || (key->kind == PLUMB_FRAME_PYTHON && !key->file)) {
		plumb_count(thread, PLUMB_SOURCE_REGION, thread->arena.fate, 1);
		return PLUMB_LOST;
	}
	if ((id = find_child(thread, parent, key, hash, ends)))
		return id;
	struct plumb_record_node *node =
		plumb_arena_append(&thread->arena, PLUMB_RECORD_NODE,
	                           ends ? sizeof(struct plumb_record_copy) : sizeof *node);
	if (!node) {
		plumb_count(thread, PLUMB_SOURCE_REGION, thread->arena.fate, 1);
		return PLUMB_LOST;
	}
	node->parent = parent;
	node->kind = key->kind;
	node->flags = key->flags;
	node->name = key->name;
	node->file = key->file;
	node->line = key->line;
	if (ends) {
		((struct plumb_record_copy *)node)->from = ends[0];
		((struct plumb_record_copy *)node)->to = ends[1];
	}
	plumb_arena_commit(&thread->arena, node);
	id = plumb_region_id(thread->arena.region, node);
	/* Out of memory for the index: the node is found again by nobody, which costs room, not
	 * truth. */
	plumb_id_table_add(&thread->nodes, hash, id);
	return id;
}

PLUMB_HOT_CODE plumb_id
plumb_child(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key)
{
	return find_or_make(thread, parent, key, hash_of(parent, key), NULL);
}

plumb_id
plumb_child_copy(struct plumb_thread *thread, plumb_id parent, const char *name, plumb_id from,
                 plumb_id to)
{
	struct plumb_key key = { .kind = PLUMB_FRAME_COPY,
		                 .flags = PLUMB_CONTEXT_ENDS,
		                 .name = plumb_intern(thread, name, strlen(name)) };
	plumb_id ends[2] = { from, to };
	uint32_t hash = hash_of(parent, &key) ^ (uint32_t)plumb_mix(from, to);
	return find_or_make(thread, parent, &key, hash, ends);
}

plumb_id
plumb_child_named(struct plumb_thread *thread, plumb_id parent, enum plumb_frame_kind kind,
                  const char *name)
{
	struct plumb_key key = { .kind = (uint8_t)kind,
		                 .name = plumb_intern(thread, name, strlen(name)) };
	return plumb_child(thread, parent, &key);
}

/* MANY is known when this is compiled: one observation is added by the shorter way. */
static inline __attribute__((always_inline)) void
observe(struct plumb_thread *thread, plumb_id node_id, uint32_t metric, plumb_id track, int64_t x,
        uint64_t times, bool many)
{
	if (node_id == PLUMB_LOST) {
		enum plumb_fate fate = thread->arena.fate;
		plumb_count(thread, PLUMB_SOURCE_VALUE, fate ? fate : PLUMB_FATE_REGION_FULL,
		            times);
		return;
	}
	struct plumb_region *region = thread->arena.region;
	struct plumb_record_node *node = plumb_region_at(region, node_id);
	plumb_id *first = plumb_likely(node_id) ? &node->first_value : &thread->root_value;
	struct plumb_record_value *value;
	for (plumb_id id = *first; id; id = value->next) {
		value = plumb_region_at(region, id);
		if (value->metric == metric && value->track == track) {
			if (many)
				plumb_value_add_times(value, x, times);
			else
				plumb_value_add(value, x);
			return;
		}
	}
	value = plumb_arena_append(&thread->arena, PLUMB_RECORD_VALUE, sizeof *value);
	if (!value) {
		plumb_count(thread, PLUMB_SOURCE_VALUE, thread->arena.fate, times);
		return;
	}
	value->node = node_id;
	value->track = track;
	value->metric = (uint16_t)metric;
	value->next = *first;
	if (many)
		plumb_value_add_times(value, x, times);
	else
		plumb_value_add(value, x);
	plumb_arena_commit(&thread->arena, value);
	*first = plumb_region_id(region, value);
}

PLUMB_HOT_CODE void
plumb_observe(struct plumb_thread *thread, plumb_id node, uint32_t metric, plumb_id track,
              int64_t x)
{
	observe(thread, node, metric, track, x, 1, false);
}

void
plumb_observe_times(struct plumb_thread *thread, plumb_id node, uint32_t metric, plumb_id track,
                    int64_t x, uint64_t times)
{
	observe(thread, node, metric, track, x, times, true);
}

PLUMB_HOT_CODE void
plumb_prefetch_values(struct plumb_thread *thread, plumb_id node)
{
	if (!node || node == PLUMB_LOST)
		return;
	const struct plumb_record_node *record = plumb_region_at(thread->arena.region, node);
	const char *value = plumb_region_at(thread->arena.region, record->first_value);
	/* The newest, and the one before it if it was made right before. */
	__builtin_prefetch(value - 64, 1);
	__builtin_prefetch(value, 1);
	__builtin_prefetch(value + 64, 1);
}

PLUMB_HOT_CODE void
plumb_origin(struct plumb_thread *thread, plumb_id node, plumb_id origin,
             enum plumb_origin_kind kind)
{
	if (!node || !origin || node == PLUMB_LOST || origin == PLUMB_LOST)
		return;
	uint64_t mixed = plumb_mix(node, origin);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32), at = hash, id;
	while ((id = plumb_id_table_next(&thread->origins, hash, &at))) {
		const struct plumb_record_origin *known = plumb_region_at(thread->arena.region, id);
		if (known->node == node && known->origin == origin && known->kind == kind)
			return;
	}
	struct plumb_record_origin *record =
		plumb_arena_append(&thread->arena, PLUMB_RECORD_ORIGIN, sizeof *record);
	if (!record) {
		plumb_arena_tally(&thread->arena, PLUMB_SOURCE_REGION, thread->arena.fate, 1);
		return;
	}
	record->node = node;
	record->origin = origin;
	record->kind = (uint16_t)kind;
	plumb_arena_commit(&thread->arena, record);
	plumb_id_table_add(&thread->origins, hash, plumb_region_id(thread->arena.region, record));
}

void
plumb_count(struct plumb_thread *thread, enum plumb_source source, enum plumb_fate fate,
            uint64_t count)
{
	plumb_arena_tally(&thread->arena, source, fate, count);
}

void
plumb_environment(struct plumb_thread *thread, const char *key, const char *value)
{
	plumb_arena_environment(&thread->arena, key, value);
}
