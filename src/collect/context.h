/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread of the program is, as a context. Private to src/collect; shims use
 * monitor/framework.h, GPU runtimes collector.h.
 *
 *   context.c         the stack of operators: enter, exit, the current context
 *   python_context.c  Python frames between two operators
 *   native_context.c  native frames from there to the driver call
 *   backward.c        backward work and the engine's own frames
 *   forward.c         (thread, sequence number) → forward context
 */
#ifndef PLUMB_COLLECT_CONTEXT_H
#define PLUMB_COLLECT_CONTEXT_H

#include "collect/monitor/framework.h"
#include "collect/stack/stack.h"
#include "collect/thread.h"

/* Layers that are left out (`--layers`). Without Python, no thread seems to run any. Without
 * operators their stack is kept, because backward work is found by it, but they are no frames and
 * have no values: what happens in one stands under the Python line. Ranges are no operators. */
static inline const void *
plumb_python_mark(void)
{
	unsigned walked = PLUMB_LAYER_PYTHON | PLUMB_LAYER_MODULE;
	return plumb_likely(plumb_layers & walked) ? plumb_python_top() : NULL;
}
static inline bool
plumb_operators_are_frames(void)
{
	return plumb_likely(plumb_layers & PLUMB_LAYER_OPERATOR);
}
static inline plumb_id
plumb_operator_child(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key)
{
	return plumb_operators_are_frames() || key->kind == PLUMB_FRAME_RANGE
	               ? plumb_child(thread, parent, key)
	               : parent;
}

/* Whether FRAME is an engine's that has no place yet. */
static inline bool
plumb_frame_is_open(const struct plumb_operator_frame *frame)
{
	return !frame->node && frame->engine;
}

/*
 * The Python frames inside OUTER (NULL: all there are) as a context under BASE. *depth gets the
 * number of frames that are outside whatever comes next. TOP is the innermost frame
 * (plumb_python_top).
 */
plumb_id plumb_python_context(struct plumb_thread *thread, struct plumb_operator_frame *outer,
                              plumb_id base, uint32_t *depth, const void *top);

/* As plumb_context_current in a signal handler that was given REGISTERS (a ucontext_t). Where
 * neither Python nor an operator is known, native frames tell the place, whatever the layers
 * are. */
plumb_id plumb_context_interrupted(struct plumb_thread *thread, const void *registers);

/*
 * The native frames of the calling thread under PARENT, outermost first, from the innermost
 * operator or Python frame inwards to the call of the driver, plumb's own and the driver's left
 * out. Of the operators on the thread's stack, those count that lie on the C stack. PARENT itself
 * when there are none.
 */
plumb_id plumb_native_context(struct plumb_thread *thread, plumb_id parent);
/* PARENT will soon be asked for; of a thread with native frames. */
void plumb_native_prefetch(struct plumb_thread *thread, plumb_id parent);

/*
 * In a signal handler that was given REGISTERS: as plumb_native_context from what was interrupted.
 * With no PARENT (0) the frames begin where the thread does. The innermost is plumb's or the
 * driver's where it was there that time passed. It is an instruction, no call:
 * PLUMB_CONTEXT_INTERRUPTED.
 */
plumb_id plumb_native_interrupted(struct plumb_thread *thread, plumb_id parent, const void *top,
                                  const void *registers);
/* Outside of handlers, at the beginning and when objects were loaded: what that knows of them. */
void plumb_native_prepare(void);
/* In a forked child: nothing was written to its region yet. */
void plumb_native_forked(void);

/* As plumb_context_current, without native frames whatever the layers are. */
plumb_id plumb_context_light(struct plumb_thread *thread);

/* The context of an operator frame; an engine frame that never learnt of a forward operator gets
 * its place now. */
plumb_id plumb_frame_node(struct plumb_thread *thread, struct plumb_operator_frame *frame);

/* The context of the operator around, 0 for none, as a parent of what happens inside it now. What
 * an engine frame does before it names its forward operator is a hook on its gradients. */
plumb_id plumb_frame_inside(struct plumb_thread *thread, struct plumb_operator_frame *outer);

/* The context of a backward record, called from HERE; OUTER is the operator around it on this
 * thread. KEY gets its flags. */
plumb_id plumb_backward_node(struct plumb_thread *thread, struct plumb_operator_frame *outer,
                             plumb_id here, const struct plumb_operator *op, struct plumb_key *key);

/* Who called the backward pass that the thread runs, or 0. */
plumb_id plumb_backward_caller(struct plumb_thread *thread);

#endif
