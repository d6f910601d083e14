/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows nn.Module instances as frames: a frame with the module's qualified name and class replaces
 * the Python frame that calls the module. Private to src/collect; for python_context.c and shape.c.
 *
 * The outermost module on the stack is the root; its name is its class. The name of a module that
 * the root holds is its path from the root, as in named_modules(). If the root does not hold a
 * module (somebody made it on the fly, or keeps it in a list), its name is its class, too.
 */
#ifndef PLUMB_COLLECT_MODULE_H
#define PLUMB_COLLECT_MODULE_H

#include "collect/monitor/python_object.h"
#include "collect/thread.h"

#define PLUMB_MODULE_CALLS_MAX 16u /* later calls under one call of the parent stand together */

/* The call of a module that belongs to the Python entry with the same index. */
struct plumb_module_call {
	const void *frame, *object, *type; /* the object is the module */
	uint64_t mark;                     /* see plumb_python_call */
	const void *root, *root_type;
	plumb_id node;
	uint32_t outer;  /* index + 1 of the module call around it, 0: none */
	uint32_t serial; /* of this call, on its thread */
	uint64_t start;  /* ticks; for shapes only */
};

/* Where in a walk a frame is. */
struct plumb_module_place {
	uint32_t at;     /* index of its entry */
	uint32_t inside; /* index + 1 of the module call around it; plumb_module_step updates it */
	bool moved;      /* a frame outside it is not where the last walk met it */
	plumb_id parent;
	uint8_t flags;
};

/*
 * Handles a frame with ROLE. *node gets the module's context; for a frame that only passes the call
 * on, it gets the context of PLACE's parent. False: the frame calls no module, so treat it as any
 * other Python frame.
 */
bool plumb_module_step(struct plumb_thread *thread, struct plumb_module_place *place,
                       const struct plumb_python_frame *frame, enum plumb_python_role role,
                       plumb_id *node);

/* The last walk met a call at entry AT. Does FRAME, which is at the same place in the code,
 * continue that call? */
static inline bool
plumb_module_goes_on(const struct plumb_thread *thread, uint32_t at,
                     const struct plumb_python_frame *frame)
{
	const struct plumb_module_call *call = &thread->calls[at];
	struct plumb_python_call now;

	if (at >= thread->python_seen || call->frame != frame->frame)
		return false;
	plumb_python_call(frame, &now);
	return now.object == call->object && now.type == call->type && now.mark == call->mark;
}

/* Calls from index INSIDE on have ended. Writes what plumb kept of them for shapes. */
void plumb_module_end(struct plumb_thread *thread, uint32_t inside);

#endif
