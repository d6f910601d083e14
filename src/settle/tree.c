/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree and what was measured on it. Nodes name their parents by id, in any order and in any
 * arena; a damaged region may name a parent that is not there, or go round in circles.
 */
#include "settle/settle_private.h"

#include <math.h>

#include "model/collective.h"

#define VISITING UINT32_MAX /* in `known`: on the way to the root */
#define KNOWN_FLAGS (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION | PLUMB_CONTEXT_TRUNCATED)

uint32_t
plumb_settle_string(struct plumb_settle_region *region, plumb_id id)
{
	size_t bytes = 0;
	const char *text = plumb_region_string(region->reader, id, &bytes);

	if (!text) {
		if (id)
			plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
			                   "strings", 1);
		return PLUMB_NONE;
	}
	if (!region->known[id]) {
		uint32_t string = plumb_builder_string(region->settler->builder, text, bytes);
		region->known[id] = string == PLUMB_NONE ? PLUMB_SETTLE_NOTHING : string + 1;
	}
	return region->known[id] == PLUMB_SETTLE_NOTHING ? PLUMB_NONE : region->known[id] - 1;
}

/* ---- nodes ---- */

/* Keeps what is needed of CONTEXT, a child of PARENT, later. */
static bool
remember_context(struct plumb_settler *settler, uint32_t context, uint32_t parent, uint32_t frame,
                 unsigned flags)
{
	unsigned kind = plumb_builder_get_frame(settler->builder, frame)->kind;
	struct plumb_settle_context above = settler->contexts.items[parent];
	struct plumb_settle_context *own;

	while (settler->contexts.count <= context)
		if (!plumb_vec_add(&settler->contexts))
			return false;
	own = &settler->contexts.items[context];
	own->kind = (uint8_t)kind;
	own->flags = (uint8_t)(above.flags | flags);
	own->python = above.python || kind == PLUMB_FRAME_PYTHON;
	own->parent = parent;
	own->depth = above.depth + 1;
	own->frame = frame;
	return true;
}

/* The context with FRAME under PARENT; PARENT: no memory. */
static uint32_t
add_context(struct plumb_settle_region *region, uint32_t parent, uint32_t frame, unsigned flags)
{
	uint32_t context = plumb_builder_context(region->settler->builder, parent, frame, flags);

	if (context != PLUMB_NONE &&
	    remember_context(region->settler, context, parent, frame, flags))
		return context;
	region->settler->no_memory = true;
	return parent;
}

/* Under PARENT, the operation of a communication library that KERNEL runs; PARENT for other
 * kernels. */
static uint32_t
make_collective(struct plumb_settle_region *region, uint32_t parent, const char *kernel)
{
	struct plumb_builder *builder = region->settler->builder;
	const char *name = kernel ? plumb_collective_name(kernel) : NULL;
	uint32_t frame;

	if (!name || region->settler->contexts.items[parent].kind == PLUMB_FRAME_COLLECTIVE)
		return parent;
	frame = plumb_builder_frame(builder, PLUMB_FRAME_COLLECTIVE,
	                            plumb_builder_text(builder, name), PLUMB_NONE, 0);
	return add_context(region, parent, frame, 0);
}

/* The context of NODE under PARENT. */
static uint32_t
make_context(struct plumb_settle_region *region, const struct plumb_record_node *node,
             uint32_t parent)
{
	struct plumb_builder *builder = region->settler->builder;
	unsigned flags = node->flags & KNOWN_FLAGS;
	uint32_t frame = PLUMB_NONE, count = 1, name;
	const uint32_t *frames = &frame;

	if (node->kind == PLUMB_FRAME_ROOT || node->kind >= PLUMB_FRAME_KIND_COUNT) {
		/* A kind of a newer collector: what hangs under it belongs to its parent. */
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_UNKNOWN_LAYOUT,
		                   "kinds of frame", 1);
		return parent;
	}
	name = plumb_settle_string(region, node->name);
	if (node->kind == PLUMB_FRAME_KERNEL)
		parent = make_collective(region, parent, plumb_builder_get_text(builder, name));
	if (node->flags & PLUMB_CONTEXT_OPERATORS && node->kind == PLUMB_FRAME_NATIVE) {
		frame = plumb_settle_operation(region, node, parent);
		if (frame != PLUMB_NONE)
			parent = add_context(region, parent, frame, 0);
		if (node->flags & PLUMB_CONTEXT_HIDDEN)
			return parent;
	}
	if (node->kind == PLUMB_FRAME_NATIVE)
		count = plumb_settle_native(region, node, &frames);
	else
		frame = plumb_builder_frame(builder, node->kind, name,
		                            plumb_settle_string(region, node->file), node->line);
	for (uint32_t i = 0; i < count; i++)
		parent = add_context(region, parent, frames[i], flags);
	return parent;
}

uint32_t
plumb_settle_node(struct plumb_settle_region *region, plumb_id id)
{
	const struct plumb_record_node *node;
	uint32_t context = 0;
	plumb_id at = id;

	region->stack.count = 0;
	/* Up, until an ancestor that is known … */
	for (; at; at = node->parent) {
		node = plumb_region_get(region->reader, at, PLUMB_RECORD_NODE, sizeof *node);
		if (!node && at == id)
			return PLUMB_NONE;
		if (!node || region->known[at] == VISITING) {
			/* No path leads up to the root, so the node becomes a child of the root. */
			plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
			                   "parents of contexts", 1);
			break;
		}
		if (region->known[at]) {
			context = region->known[at] - 1;
			break;
		}
		plumb_id *top = plumb_vec_add(&region->stack);
		if (!top) {
			region->settler->no_memory = true;
			return PLUMB_NONE;
		}
		*top = at;
		region->known[at] = VISITING;
	}
	/* … and down again. */
	while (region->stack.count) {
		at = region->stack.items[--region->stack.count];
		node = plumb_region_get(region->reader, at, PLUMB_RECORD_NODE, sizeof *node);
		context = make_context(region, node, context);
		region->known[at] = context + 1;
	}
	return context;
}

struct plumb_ends
plumb_settle_ends(struct plumb_settle_region *region, plumb_id node)
{
	const struct plumb_record_copy *copy =
		plumb_region_get(region->reader, node, PLUMB_RECORD_NODE, sizeof copy->node);

	if (!copy || !(copy->node.flags & PLUMB_CONTEXT_ENDS) ||
	    copy->node.kind != PLUMB_FRAME_COPY || copy->node.head.length < sizeof *copy)
		return (struct plumb_ends){ 0, 0 };
	/* PLUMB_NONE + 1 is 0. */
	return (struct plumb_ends){ plumb_settle_device(region, copy->from) + 1,
		                    plumb_settle_device(region, copy->to) + 1 };
}

/* ---- values ---- */

/* Being written when the process ended? Only then is the word odd. */
static bool
is_torn(const _Atomic uint32_t *sequence)
{
	return atomic_load_explicit(sequence, memory_order_relaxed) & 1;
}

static void
drop_value(struct plumb_settle_region *region, enum plumb_fate fate)
{
	plumb_settle_count(region, PLUMB_SOURCE_VALUE, fate, NULL, 1);
}

/* Can these numbers be the sum of observations? */
static bool
is_plausible(const struct plumb_value *value)
{
	return value->count <= INT64_MAX && value->min <= value->max &&
	       value->min != PLUMB_UNKNOWN && value->sum != PLUMB_UNKNOWN &&
	       isfinite(value->mean) && isfinite(value->m2) && value->m2 >= 0;
}

/* Every call of an operator has a duration, so the calls need not be recorded as well. */
static void
add_calls(struct plumb_settle_region *region, const struct plumb_value *duration)
{
	struct plumb_value calls = *duration;

	calls.metric = PLUMB_METRIC_OP_CALLS;
	calls.sum = (int64_t)duration->count;
	calls.min = calls.max = 1;
	calls.mean = 1;
	calls.m2 = 0;
	plumb_builder_value(region->settler->builder, &calls);
}

/* Where kernels lie: under a Python line, in the backward pass. */
static void
count_kernels(struct plumb_settle_region *region, const struct plumb_value *value)
{
	const struct plumb_settle_context *c = &region->settler->contexts.items[value->context];

	if (value->metric != PLUMB_METRIC_GPU_TIME || c->kind != PLUMB_FRAME_KERNEL)
		return;
	if (!c->python)
		plumb_settle_count(region, PLUMB_SOURCE_KERNEL, PLUMB_FATE_NO_PYTHON, NULL,
		                   value->count);
	if (c->flags & PLUMB_CONTEXT_ACCUMULATION)
		plumb_settle_count(region, PLUMB_SOURCE_KERNEL, PLUMB_FATE_ACCUMULATION, NULL,
		                   value->count);
	else if (c->flags & PLUMB_CONTEXT_BACKWARD)
		plumb_settle_count(region, PLUMB_SOURCE_KERNEL, PLUMB_FATE_FORWARD, NULL,
		                   value->count);
}

/* Samples of stalls are divided by it. */
static void
keep_time(struct plumb_settle_region *region, const struct plumb_value *value)
{
	struct plumb_settler *settler = region->settler;
	const struct plumb_settle_context *context = &settler->contexts.items[value->context];
	struct plumb_settle_kernel_time *time;

	if (value->metric != PLUMB_METRIC_GPU_TIME || value->sum <= 0 ||
	    context->kind != PLUMB_FRAME_KERNEL)
		return;
	time = plumb_vec_add(&settler->stalls.times);
	if (time)
		*time = (struct plumb_settle_kernel_time){
			.context = value->context,
			.track = value->track,
			.name = plumb_builder_get_frame(settler->builder, context->frame)->name,
			.ns = value->sum,
		};
	else
		settler->no_memory = true;
}

void
plumb_settle_metric(struct plumb_settle_region *region, const struct plumb_record_metric *record)
{
	uint32_t at = record->number - PLUMB_METRIC_USER;

	if (record->number < PLUMB_METRIC_USER || at >= PLUMB_SETTLE_METRICS)
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_UNKNOWN_LAYOUT,
		                   "numbers of metrics", 1);
	else
		region->metrics[at] = plumb_builder_metric(
			region->settler->builder, plumb_settle_string(region, record->name),
			plumb_settle_string(region, record->unit));
}

uint32_t
plumb_settle_metric_of(const struct plumb_settle_region *region, uint32_t number)
{
	if (number < PLUMB_METRIC_USER)
		return number < PLUMB_METRIC_COUNT ? number : 0;
	number -= PLUMB_METRIC_USER;
	return number < PLUMB_SETTLE_METRICS ? region->metrics[number] : 0;
}

void
plumb_settle_value(struct plumb_settle_region *region, const struct plumb_record_value *record)
{
	struct plumb_value value = {
		.metric = plumb_settle_metric_of(region, record->metric),
		.sum = record->sum,
		.count = record->count,
		.min = record->min,
		.max = record->max,
		.mean = record->mean,
		.m2 = record->m2,
	};

	if (is_torn(&record->sequence)) {
		drop_value(region, PLUMB_FATE_TORN);
		return;
	}
	if (!value.count)
		return; /* made, and not yet added to */
	if (!value.metric) {
		drop_value(region, PLUMB_FATE_UNKNOWN_LAYOUT);
		return;
	}
	value.context = plumb_settle_node(region, record->node);
	value.track = plumb_settle_track(region, record->track);
	if (value.context == PLUMB_NONE || value.track == PLUMB_NONE || !is_plausible(&value)) {
		drop_value(region, PLUMB_FATE_DAMAGED);
		return;
	}
	value.ends = plumb_settle_ends(region, record->node);
	plumb_builder_value(region->settler->builder, &value);
	plumb_settle_count(region, PLUMB_SOURCE_VALUE, PLUMB_FATE_ATTRIBUTED, NULL, 1);
	region->settler->captured += value.metric != PLUMB_METRIC_HOST_TIME;
	if (value.metric == PLUMB_METRIC_OP_DURATION)
		add_calls(region, &value);
	if (value.metric == PLUMB_METRIC_GPU_REPLAYS)
		region->replays += value.count;
	plumb_settle_tally(region, &value);
	count_kernels(region, &value);
	keep_time(region, &value);
}

/* Takes VARIANT, which has no place yet: its place is NODE on TRACK, with the shapes TEXT if there
 * are any. */
static void
add_variant(struct plumb_settle_region *region, struct plumb_variant *variant, plumb_id node,
            plumb_id track, const plumb_id *text)
{
	variant->context = plumb_settle_node(region, node);
	variant->track = plumb_settle_track(region, track);
	variant->shapes = text ? plumb_settle_string(region, *text) : PLUMB_NONE;
	if (variant->context == PLUMB_NONE || variant->track == PLUMB_NONE ||
	    (text && variant->shapes == PLUMB_NONE) || variant->count > INT64_MAX ||
	    variant->min > variant->max || variant->min < 0 || variant->time < 0) {
		drop_value(region, PLUMB_FATE_DAMAGED);
		return;
	}
	plumb_builder_variant(region->settler->builder, variant);
	plumb_settle_count(region, PLUMB_SOURCE_VALUE, PLUMB_FATE_ATTRIBUTED, NULL, 1);
}

struct plumb_variant
plumb_settle_kernel_shape(const struct plumb_record_variant *record)
{
	struct plumb_variant variant = {
		.shapes = PLUMB_NONE,
		.registers = record->registers,
		.static_shared = record->static_shared,
		.dynamic_shared = record->dynamic_shared,
		.occupancy = plumb_settle_number32(record->occupancy),
	};

	for (int i = 0; i < 3; i++) {
		variant.grid[i] = record->grid[i];
		variant.block[i] = record->block[i];
	}
	return variant;
}

struct plumb_variant
plumb_settle_operator_shape(uint32_t shapes)
{
	return (struct plumb_variant){
		.shapes = shapes,
		.grid = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
		.block = { PLUMB_UNKNOWN, PLUMB_UNKNOWN, PLUMB_UNKNOWN },
		.registers = PLUMB_UNKNOWN,
		.static_shared = PLUMB_UNKNOWN,
		.dynamic_shared = PLUMB_UNKNOWN,
		.occupancy = PLUMB_UNKNOWN,
	};
}

void
plumb_settle_variant(struct plumb_settle_region *region, const struct plumb_record_variant *record)
{
	struct plumb_variant variant = plumb_settle_kernel_shape(record);

	variant.count = record->count;
	variant.time = record->time;
	variant.min = record->min;
	variant.max = record->max;
	if (is_torn(&record->sequence))
		drop_value(region, PLUMB_FATE_TORN);
	else if (variant.count)
		add_variant(region, &variant, record->node, record->track, NULL);
}

void
plumb_settle_shape(struct plumb_settle_region *region, const struct plumb_record_shape *record)
{
	struct plumb_variant variant = plumb_settle_operator_shape(PLUMB_NONE);

	variant.count = record->count;
	variant.time = record->time;
	variant.min = record->min;
	variant.max = record->max;
	if (is_torn(&record->sequence))
		drop_value(region, PLUMB_FATE_TORN);
	else if (variant.count)
		add_variant(region, &variant, record->node, record->track, &record->text);
}

static void
add_origin(struct plumb_settler *settler, const struct plumb_origin *origin)
{
	struct plumb_origin *capture;

	plumb_builder_origin(settler->builder, origin);
	if (origin->reason != PLUMB_ORIGIN_OF_GRAPH_CAPTURE)
		return;
	capture = plumb_vec_add(&settler->captures);
	if (capture)
		*capture = *origin;
	else
		settler->no_memory = true;
}

void
plumb_settle_origin(struct plumb_settle_region *region, const struct plumb_record_origin *record)
{
	/* The region's and the profile's numbers are the same. */
	_Static_assert((int)PLUMB_ORIGIN_BACKWARD_CALL == (int)PLUMB_ORIGIN_OF_BACKWARD_CALL &&
	                       (int)PLUMB_ORIGIN_INLINED == (int)PLUMB_ORIGIN_OF_INLINED,
	               "same numbers");
	struct plumb_origin origin = {
		.context = plumb_settle_node(region, record->node),
		.origin = plumb_settle_node(region, record->origin),
		.reason = record->kind,
	};

	if (!origin.reason || origin.reason > PLUMB_ORIGIN_OF_INLINED)
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_UNKNOWN_LAYOUT,
		                   "kinds of origin", 1);
	else if (origin.context == PLUMB_NONE || origin.origin == PLUMB_NONE)
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED, "origins", 1);
	else
		add_origin(region->settler, &origin);
}
