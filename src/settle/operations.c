/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators from native frames (`plumb run --mode lean`). The collector had no callback for them;
 * it kept the native path of each call of the driver. A function on the path that runs an operator
 * becomes the operator's frame.
 */
#include "settle/settle_private.h"

#include <string.h>

#include "base/hash.h"

/* Only libraries of PyTorch have such functions. To look at no others saves most questions. */
static bool
may_run_operators(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, "libtorch", 8);
}

static void
look_up(struct plumb_settler *settler, struct plumb_settle_operation *operation)
{
	const struct plumb_settle_code *code = &settler->codes.items[operation->code];
	struct plumb_builder *builder = settler->builder;
	struct plumb_code_place place;

	operation->frame = PLUMB_NONE;
	if (code->object == PLUMB_NONE ||
	    !may_run_operators(plumb_builder_get_text(builder, code->path)))
		return;
	plumb_symbolizer_operator(settler->symbolizer, code->object, operation->offset, &place);
	if (!place.operation)
		return;
	operation->redispatch = place.redispatch;
	operation->frame =
		plumb_builder_frame(builder, PLUMB_FRAME_OPERATOR,
	                            plumb_builder_text(builder, place.operation), PLUMB_NONE, 0);
}

static const struct plumb_settle_operation *
find_operation(struct plumb_settler *settler, uint32_t code, uint32_t offset)
{
	uint64_t hash = plumb_hash_mix(code, offset);
	struct plumb_map_cursor at;
	struct plumb_settle_operation *operation;

	for (uint32_t i = plumb_map_first(&settler->operation_map, hash, &at); i != PLUMB_MAP_NONE;
	     i = plumb_map_next(&settler->operation_map, &at))
		if (settler->operations.items[i].code == code &&
		    settler->operations.items[i].offset == offset)
			return &settler->operations.items[i];
	operation = plumb_vec_add(&settler->operations);
	if (!operation ||
	    plumb_map_add(&settler->operation_map, hash, settler->operations.count - 1)) {
		settler->no_memory = true;
		return NULL;
	}
	operation->code = code;
	operation->offset = offset;
	look_up(settler, operation);
	return operation;
}

/* Is FRAME the innermost operator of the native path that ends at CONTEXT? */
static bool
is_running(const struct plumb_settler *settler, uint32_t context, uint32_t frame)
{
	const struct plumb_settle_context *c = &settler->contexts.items[context];

	while (c->kind == PLUMB_FRAME_NATIVE || c->kind == PLUMB_FRAME_INLINE)
		c = &settler->contexts.items[c->parent];
	return c->kind == PLUMB_FRAME_OPERATOR && c->frame == frame;
}

uint32_t
plumb_settle_operation(struct plumb_settle_region *region, const struct plumb_record_node *node,
                       uint32_t above)
{
	struct plumb_settler *settler = region->settler;
	uint32_t code = plumb_settle_native_code(region, node);
	const struct plumb_settle_operation *operation =
		code == PLUMB_NONE ? NULL : find_operation(settler, code, node->line);

	if (!operation || operation->frame == PLUMB_NONE ||
	    (operation->redispatch && is_running(settler, above, operation->frame)))
		return PLUMB_NONE;
	return operation->frame;
}

void
plumb_settle_operations_free(struct plumb_settler *settler)
{
	plumb_vec_free(&settler->operations);
	plumb_map_free(&settler->operation_map);
}
