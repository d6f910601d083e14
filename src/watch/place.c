/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If a thread is in an operator, the frames that called the operator are still on its stack. They
 * are part of the operator's context, and the frames after them stand inside it. A range is opened
 * by a call that returns. So all frames from the first one that moved on are inside the range; the
 * collector does the same (python_context.c). Contexts with another kind of history (backward work,
 * modules) do not lie on the thread's stack. There the operator itself is the place.
 */
#include "watch/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

enum { LOCATIONS_MAX = 65536 };

/* The kernel does not let plumb read the memory: plumb says it once with WHAT is lost, and does not
 * try again. */
static void
refuse_memory(struct plumb_watch_python *python, struct plumb_watch_tree *tree, int error,
              const char *key, const char *what)
{
	char text[256];
	if (error != EPERM && error != EACCES && error != ENOSYS)
		return;
	snprintf(text, sizeof text,
	         "plumb may not read the program's memory (%s), so %s; allow plumb to trace its "
	         "own children to see lines",
	         strerror(error), what);
	plumb_watch_tree_tell(tree, key, text);
	python->refused = true;
}

/* Forgets all texts if a code object may have taken another's place. */
static void
check_locations(struct plumb_watch_reader *reader, struct plumb_watch_python *python,
                uint64_t count_at)
{
	uint32_t freed = 0;
	if (plumb_foreign_read(&reader->memory, count_at, &freed, sizeof freed) && freed &&
	    freed == python->codes_freed && python->locations.count < LOCATIONS_MAX)
		return;
	python->codes_freed = freed;
	python->locations.count = 0;
	plumb_map_free(&python->map);
	python->map = (struct plumb_map){ 0 };
}

/* The text of FRAME. False: it cannot be read, or there is no room. */
static bool
locate_frame(struct plumb_watch_reader *reader, struct plumb_watch_python *python,
             struct plumb_watch_tree *tree, const struct plumb_foreign_frame *frame,
             struct plumb_watch_location *location)
{
	struct plumb_map_cursor at;
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(1, frame->code), (uint32_t)frame->lasti);
	for (uint32_t id = plumb_map_first(&python->map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&python->map, &at)) {
		const struct plumb_watch_location *known = &python->locations.items[id];
		if (known->frame.code == frame->code && known->frame.lasti == frame->lasti) {
			*location = *known;
			return true;
		}
	}
	struct plumb_foreign_symbol *symbol = &reader->symbol;
	if (!plumb_foreign_python_symbol(&reader->memory, &reader->shape, frame, symbol))
		return false;
	*location = (struct plumb_watch_location){
		.frame = *frame,
		.name = plumb_watch_tree_string(tree, symbol->function),
		.file = plumb_watch_tree_string(tree, symbol->file),
		.line = symbol->line,
	};
	struct plumb_watch_location *own = plumb_vec_add(&python->locations);
	if (!own || !location->name || !location->file)
		return false;
	*own = *location;
	(void)plumb_map_add(&python->map, hash, python->locations.count - 1);
	return true;
}

/* ---- what is outside ---- */

/* The record ID, which the program wrote; NULL if none of TYPE and SIZE can lie there. */
static const void *
record_at(const struct plumb_watch_tree *tree, plumb_id id, enum plumb_record_type type,
          size_t size)
{
	uint64_t offset = (uint64_t)id << 3, end = tree->size;
	if (offset < PLUMB_REGION_HEADER_SIZE || end < size || offset > end - size)
		return NULL;
	const struct plumb_record *record = plumb_region_at(&tree->region, id);
	return record->type == type ? record : NULL;
}

static bool
same_text(const struct plumb_watch_tree *tree, plumb_id own, plumb_id other)
{
	const struct plumb_record_string *a = plumb_region_at(&tree->region, own), *b;
	return (b = record_at(tree, other, PLUMB_RECORD_STRING, sizeof *b)) &&
	       b->bytes == a->bytes &&
	       record_at(tree, other, PLUMB_RECORD_STRING, sizeof *b + a->bytes) &&
	       !memcmp(a + 1, b + 1, a->bytes);
}

/* Finds the context ID and those around it, innermost first. Returns how many; 0: they cannot be
 * compared. */
static uint32_t
find_around(struct plumb_watch_reader *reader, const struct plumb_watch_tree *tree, plumb_id id)
{
	uint32_t count = 0;
	while (id) {
		const struct plumb_record_node *node =
			record_at(tree, id, PLUMB_RECORD_NODE, sizeof *node);
		if (!node || count == PLUMB_WATCH_DEPTH || node->flags ||
		    (node->kind != PLUMB_FRAME_PYTHON && node->kind != PLUMB_FRAME_OPERATOR &&
		     node->kind != PLUMB_FRAME_RANGE))
			return 0;
		reader->around[count++] = node;
		id = node->parent;
	}
	return count;
}

/* How many of the walk's frames, counted from the innermost, are inside the COUNT contexts
 * AROUND. */
static uint32_t
count_inside(struct plumb_watch_reader *reader, struct plumb_watch_python *python,
             struct plumb_watch_tree *tree, uint32_t count)
{
	uint32_t left = reader->walk.count;
	while (count--) {
		const struct plumb_record_node *node = reader->around[count];
		struct plumb_watch_location location;
		if (node->kind != PLUMB_FRAME_PYTHON)
			continue;
		if (left &&
		    locate_frame(reader, python, tree, &reader->walk.frames[left - 1], &location) &&
		    location.line == node->line && same_text(tree, location.name, node->name) &&
		    same_text(tree, location.file, node->file)) {
			left--;
			continue;
		}
		/* The frame moved on or returned, which only what is around a range may. */
		while (count && reader->around[count]->kind == PLUMB_FRAME_PYTHON)
			count--;
		if (reader->around[count]->kind != PLUMB_FRAME_RANGE)
			return 0;
	}
	return left;
}

/* ---- the place ---- */

/* The innermost COUNT frames of the walk as contexts under PARENT; 0: no room. */
static plumb_id
make_nodes(struct plumb_watch_reader *reader, struct plumb_watch_python *python,
           struct plumb_watch_tree *tree, uint32_t count, plumb_id parent)
{
	while (count--) {
		struct plumb_watch_location location;
		if (!locate_frame(reader, python, tree, &reader->walk.frames[count], &location))
			return 0;
		struct plumb_record_node key = { .parent = parent,
			                         .kind = PLUMB_FRAME_PYTHON,
			                         .name = location.name,
			                         .file = location.file,
			                         .line = location.line };
		if (reader->walk.truncated && !parent)
			key.flags = PLUMB_CONTEXT_TRUNCATED;
		parent = plumb_watch_tree_node(tree, &key);
		if (!parent)
			return 0;
	}
	return parent;
}

void
plumb_watch_place_find(struct plumb_watch_reader *reader, struct plumb_watch_python *python,
                       struct plumb_watch_tree *tree, struct plumb_watch_at *at)
{
	const struct plumb_region_python *told = &tree->region.header->python;
	const struct plumb_region_python *shape = &reader->shape;
	struct plumb_foreign_walk *walk = &reader->walk;
	uint64_t state = atomic_load_explicit(&at->thread->python, memory_order_acquire);
	uint32_t around = at->under ? find_around(reader, tree, at->under) : 0;
	at->node = at->under;
	at->truncated = false;
	if (python->refused || !state || (at->under && !around) ||
	    atomic_load_explicit(&told->state, memory_order_acquire) != PLUMB_REGION_PYTHON_READY)
		return;
	/* The program can still write there: use what is checked. */
	memcpy(&reader->shape, told, sizeof(*told));
	plumb_foreign_open(&reader->memory, tree->region.header->pid);
	if (!plumb_foreign_python_walk(&reader->memory, shape, state, at->thread->self, walk)) {
		refuse_memory(python, tree, reader->memory.error, "waiting.off",
		              "waits outside any operator are shown as [waiting]");
		return;
	}
	check_locations(reader, python, told->codes_freed);
	if (at->under && walk->truncated)
		return;
	uint32_t inside = around ? count_inside(reader, python, tree, around) : walk->count;
	plumb_id node = make_nodes(reader, python, tree, inside, at->under);
	at->node = node ? node : at->under;
	at->truncated = walk->truncated;
}

/* ---- a thread that may run ---- */

/* Where the frames of the glimpse are, outermost first. Returns how many; the rest is not known. */
static uint32_t
locate_seen(struct plumb_watch_glimpser *glimpser, struct plumb_watch_python *python,
            struct plumb_watch_tree *tree, const struct plumb_foreign_glimpse *glimpse)
{
	struct plumb_watch_reader *reader = &glimpser->reader;
	uint32_t count = 0;
	for (uint32_t i = 0; i < glimpse->count && count < PLUMB_WATCH_SEEN; i++) {
		struct plumb_foreign_frame frame;
		enum plumb_foreign_place place = plumb_foreign_python_place(
			&reader->memory, &reader->shape, &glimpse->frames[i], &frame);
		if (place == PLUMB_FOREIGN_INTERNAL)
			continue;
		if (place == PLUMB_FOREIGN_NONE ||
		    !locate_frame(reader, python, tree, &frame, &glimpser->seen[count].location))
			break;
		glimpser->seen[count++].frame = i;
	}
	return count;
}

/* Were code objects freed since check_locations? What was read of them may be of others then. */
static bool
were_codes_freed(struct plumb_watch_reader *reader, const struct plumb_watch_python *python,
                 uint64_t count_at)
{
	uint32_t freed;
	plumb_foreign_open(&reader->memory, reader->memory.pid);
	return !plumb_foreign_read(&reader->memory, count_at, &freed, sizeof freed) || !freed ||
	       freed != python->codes_freed;
}

plumb_id
plumb_watch_place_glimpse(struct plumb_watch_glimpser *glimpser, struct plumb_watch_python *python,
                          struct plumb_watch_tree *tree, const struct plumb_record_thread *thread)
{
	const struct plumb_region_python *told = &tree->region.header->python;
	struct plumb_watch_reader *reader = &glimpser->reader;
	struct plumb_foreign_glimpse *glimpse = &glimpser->glimpse;
	uint64_t state = atomic_load_explicit(&thread->python, memory_order_acquire);
	uint32_t count;
	plumb_id node = 0;
	if (python->refused || !state)
		return 0;
	memcpy(&reader->shape, told, sizeof(*told));
	plumb_foreign_open(&reader->memory, tree->region.header->pid);
	plumb_foreign_open(&glimpser->stack, tree->region.header->pid);
	/* Code that is freed after this was not yet when its frame is seen. */
	check_locations(reader, python, told->codes_freed);
	if (!plumb_foreign_python_glimpse(&glimpser->stack, &reader->shape, state, thread->self,
	                                  glimpse)) {
		refuse_memory(python, tree, glimpser->stack.error, "host.unread",
		              "where its main thread is stays unknown");
		return 0;
	}
	count = locate_seen(glimpser, python, tree, glimpse);
	/* A frame that is still there kept its code. */
	if (were_codes_freed(reader, python, told->codes_freed))
		plumb_foreign_python_confirm(&glimpser->stack, &reader->shape, state, thread->self,
		                             glimpse);
	for (uint32_t i = 0; i < count && glimpser->seen[i].frame < glimpse->count; i++) {
		const struct plumb_watch_location *location = &glimpser->seen[i].location;
		struct plumb_record_node key = { .parent = node,
			                         .kind = PLUMB_FRAME_PYTHON,
			                         .name = location->name,
			                         .file = location->file,
			                         .line = location->line };
		plumb_id inner = plumb_watch_tree_node(tree, &key);
		if (!inner)
			break;
		node = inner;
	}
	return node;
}

void
plumb_watch_python_free(struct plumb_watch_python *python)
{
	plumb_vec_free(&python->locations);
	plumb_map_free(&python->map);
}
