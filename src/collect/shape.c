/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/shape.h"

#include "collect/clock.h"
#include "collect/module.h"

struct plumb_shapes *
plumb_shape_of(struct plumb_thread *thread,
               size_t (*outputs)(const void *record, char *text, size_t size))
{
	if (plumb_likely(thread->shapes != NULL))
		return thread->shapes;
	thread->shapes = plumb_map(sizeof *thread->shapes, true);
	if (thread->shapes)
		thread->shapes->outputs = outputs;
	return thread->shapes;
}

void
plumb_shape_enter(struct plumb_thread *thread, struct plumb_operator_frame *frame, uint32_t bytes)
{
	struct plumb_shapes *shapes = thread->shapes;

	frame->shape_at = shapes->used;
	frame->shape_bytes = bytes;
	shapes->used += bytes;
}

/* ---- records ---- */

static bool
has_text(struct plumb_region *region, const struct plumb_record_shape *shape, const char *text,
         size_t bytes)
{
	const struct plumb_record_string *string = plumb_region_at(region, shape->text);
	return string->bytes == bytes && !memcmp(string + 1, text, bytes);
}

/* The record of TEXT at the node, made when missing; the one of all others when there are too many.
 * NULL: no room. */
static struct plumb_record_shape *
shape_find(struct plumb_thread *thread, plumb_id node_id, const char *text, size_t bytes)
{
	struct plumb_arena *arena = &thread->arena;
	struct plumb_record_node *node = plumb_region_at(arena->region, node_id);
	uint32_t hash = plumb_hash_text(text, bytes), distinct = 0;
	struct plumb_record_shape *shape;

	for (plumb_id id = node->first_variant; id; id = shape->next) {
		shape = plumb_region_at(arena->region, id);
		if (shape->hash == hash && shape->track == thread->track &&
		    has_text(arena->region, shape, text, bytes))
			return shape;
		distinct++;
	}
	if (distinct >= PLUMB_SHAPE_VARIANTS && strcmp(text, PLUMB_SHAPE_OTHERS)) {
		plumb_arena_tally(arena, PLUMB_SOURCE_SHAPE, PLUMB_FATE_OVERFLOWED, 1);
		return shape_find(thread, node_id, PLUMB_SHAPE_OTHERS, strlen(PLUMB_SHAPE_OTHERS));
	}
	plumb_id string = plumb_intern(thread, text, bytes);
	if (!string)
		return NULL;
	shape = plumb_arena_append(arena, PLUMB_RECORD_SHAPE, sizeof *shape);
	if (!shape)
		return NULL;
	shape->node = node_id;
	shape->track = thread->track;
	shape->next = node->first_variant;
	shape->text = string;
	shape->hash = hash;
	plumb_arena_commit(arena, shape);
	node->first_variant = plumb_region_id(arena->region, shape);
	return shape;
}

static void
shape_add(struct plumb_record_shape *shape, int64_t time)
{
	plumb_sequence_begin(&shape->sequence);
	shape->time += time;
	shape->count++;
	if (time < shape->min || shape->count == 1)
		shape->min = time;
	if (time > shape->max || shape->count == 1)
		shape->max = time;
	plumb_sequence_end(&shape->sequence);
}

static void
observe_shape(struct plumb_thread *thread, plumb_id node, const char *text, size_t bytes,
              uint64_t time)
{
	struct plumb_arena *arena = &thread->arena;
	struct plumb_record_shape *shape =
		node != PLUMB_LOST ? shape_find(thread, node, text, bytes) : NULL;

	if (!shape) {
		plumb_arena_tally(arena, PLUMB_SOURCE_SHAPE,
		                  arena->fate ? arena->fate : PLUMB_FATE_REGION_FULL, 1);
		return;
	}
	shape_add(shape, (int64_t)time);
	plumb_arena_tally(arena, PLUMB_SOURCE_SHAPE, PLUMB_FATE_ATTRIBUTED, 1);
}

/* ---- operators and modules ---- */

void
plumb_shape_exit(struct plumb_thread *thread, const struct plumb_operator_frame *frame,
                 plumb_id node, uint64_t self)
{
	struct plumb_shapes *shapes = thread->shapes;
	uint32_t bytes = frame->shape_bytes, outputs = 0;

	/* Modules that were called inside the operator ended with what ended before it. */
	if (!frame->range && thread->module_open > frame->module)
		plumb_module_end(thread, frame->module);
	shapes->used = frame->shape_at;
	if (frame->range || frame->engine)
		return;
	memcpy(shapes->text, shapes->stack + frame->shape_at, bytes);
	if (shapes->outputs && shapes->record) {
		memcpy(shapes->text + bytes, " -> ", 4);
		outputs = (uint32_t)shapes->outputs(shapes->record, shapes->text + bytes + 4,
		                                    PLUMB_SHAPE_TEXT);
	}
	shapes->ended = plumb_ticks();
	shapes->output = bytes + 4;
	shapes->bytes = bytes + 4 + outputs;
	if (!bytes && !outputs)
		return;
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SHAPE, PLUMB_FATE_RECEIVED, 1);
	if (bytes)
		observe_shape(thread, node, shapes->text, outputs ? shapes->bytes : bytes, self);
	else
		observe_shape(thread, node, shapes->text + 1, shapes->bytes - 1, self);
}

void
plumb_shape_module(struct plumb_thread *thread, plumb_id node, uint64_t start)
{
	struct plumb_shapes *shapes = thread->shapes;

	if (!shapes || shapes->bytes == shapes->output)
		return;
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_SHAPE, PLUMB_FATE_RECEIVED, 1);
	/* "-> float32[64]": an operator's text begins with its inputs. */
	observe_shape(thread, node, shapes->text + shapes->output - 3,
	              shapes->bytes - shapes->output + 3,
	              plumb_ticks_between(start, shapes->ended));
}
