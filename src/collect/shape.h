/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the shapes of operators' inputs and outputs (`plumb run --shapes`) as text. Each different
 * text at a context has a record with count and time. The framework writes the text. Private to
 * src/collect.
 *
 * The inputs exist when an operator begins, the outputs when it ends. What the framework writes at
 * the beginning waits on a stack beside the stack of operators.
 */
#ifndef PLUMB_COLLECT_SHAPE_H
#define PLUMB_COLLECT_SHAPE_H

#include "collect/thread.h"

#define PLUMB_SHAPE_TEXT 4096u   /* bytes of one operator's text; the rest is cut off */
#define PLUMB_SHAPE_VARIANTS 32u /* distinct texts at one context; the rest is counted together */
#define PLUMB_SHAPE_OTHERS "(others)"
#define PLUMB_SHAPE_STACK (1u << 20)

struct plumb_shapes {
	size_t (*outputs)(const void *record, char *text, size_t size); /* NULL: not known */
	uint64_t ended;     /* ticks: when the last operator ended */
	const void *record; /* of the operator that ends now, for `outputs` */
	uint32_t used;      /* of `stack` */
	uint32_t output;    /* where in `text` the outputs of the last operator begin … */
	uint32_t bytes;     /* … and where they end; equal: there were none */
	char text[2 * PLUMB_SHAPE_TEXT + 8];
	char stack[PLUMB_SHAPE_STACK];
};

/* Makes thread->shapes when there is none; NULL: no memory. OUTPUTS writes "float32[64]" or
 * "(…)". */
struct plumb_shapes *plumb_shape_of(struct plumb_thread *thread,
                                    size_t (*outputs)(const void *record, char *text, size_t size));

/* Room for the inputs of the operator that begins; NULL: operators are nested too deep. */
static inline char *
plumb_shape_room(struct plumb_shapes *shapes)
{
	return shapes->used + PLUMB_SHAPE_TEXT <= PLUMB_SHAPE_STACK ? shapes->stack + shapes->used
	                                                            : NULL;
}

/* FRAME has begun; BYTES of inputs were written into the room (0: none are known). */
void
plumb_shape_enter(struct plumb_thread *thread, struct plumb_operator_frame *frame, uint32_t bytes);
/* FRAME, at NODE, has ended after SELF ns of its own. */
void plumb_shape_exit(struct plumb_thread *thread, const struct plumb_operator_frame *frame,
                      plumb_id node, uint64_t self);

/* A call of the module at NODE, begun at START (ticks), has ended with the operator that ended
 * last. */
void plumb_shape_module(struct plumb_thread *thread, plumb_id node, uint64_t start);

#endif
