/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nn.Module instances as frames: the Python frame that calls a module gives way to a frame of the
 * module's qualified name and class. Private to src/collect; for python_context.c and shape.c.
 *
 * The outermost module on the stack is the root, called by its class; what it holds is called by
 * its path from there, as named_modules() has it. A module that its root does not hold (made on the
 * fly, kept in a list) is called by its class, too.
 */
#ifndef PLUMB_COLLECT_MODULE_H
#define PLUMB_COLLECT_MODULE_H

#include "collect/monitor/python_object.h"
#include "collect/thread.h"

#define PLUMB_MODULE_CALLS_MAX 16u /* later calls under one call of the parent stand together */

/* The call of a module that the Python entry of the same index stands for. */
struct plumb_module_call {
	const void *frame, *type;
	uint64_t mark; /* see plumb_python_call */
	const void *root, *root_type;
	plumb_id node;
	uint32_t outer;  /* index + 1 of the module's call around, 0 none */
	uint32_t serial; /* of this call, on its thread */
	uint64_t start;  /* ticks; for shapes only */
};

/* Where in a walk a frame is. */
struct plumb_module_place {
	uint32_t at;     /* index of its entry */
	uint32_t inside; /* index + 1 of the module's call around; the step moves it on */
	bool moved;      /* a frame outside it is elsewhere than the last walk met it */
	plumb_id parent;
	uint8_t flags;
};

/*
 * A frame that has ROLE: *node gets the module's context, or that of PLACE's parent for a frame
 * that only passes the call on. False: it is no module's call; take it for any Python frame.
 */
bool plumb_module_step(struct plumb_thread *thread, struct plumb_module_place *place,
                       const struct plumb_python_frame *frame, enum plumb_python_role role,
                       plumb_id *node);

/* Whether the entry's call, seen by the last walk, goes on in FRAME, which is at the same place in
 * the code. */
static inline bool
plumb_module_goes_on(const struct plumb_thread *thread, uint32_t at,
                     const struct plumb_python_frame *frame)
{
	const struct plumb_module_call *call = &thread->calls[at];
	struct plumb_python_call now;

	if (at >= thread->python_seen || call->frame != frame->frame)
		return false;
	plumb_python_call(frame, &now);
	return now.object == thread->python[at].object && now.type == call->type &&
	       now.mark == call->mark;
}

/* Calls from index INSIDE on have ended: what was kept of them for shapes is written. */
void plumb_module_end(struct plumb_thread *thread, uint32_t inside);

#endif
