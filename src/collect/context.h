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

/* `--layers` may leave out layers. Without the Python layer, no thread seems to run any Python.
 * Without the operator layer, plumb keeps the stack of operators, because it needs it to place
 * backward work. But operators are then no frames and have no values: what happens in one stands
 * under the Python line. Ranges do not count as operators here. */
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
/* Lean: most operators are not seen, so the time of the others would have theirs in it. */
static inline bool
plumb_operators_have_times(void)
{
	return plumb_likely((plumb_layers & (PLUMB_LAYER_OPERATOR | PLUMB_LAYER_LEAN)) ==
	                    PLUMB_LAYER_OPERATOR);
}
static inline plumb_id
plumb_operator_child(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key)
{
	return plumb_operators_are_frames() || key->kind == PLUMB_FRAME_RANGE
	               ? plumb_child(thread, parent, key)
	               : parent;
}

/* Does FRAME belong to the engine and have no place yet? */
static inline bool
plumb_frame_is_open(const struct plumb_operator_frame *frame)
{
	return !frame->node && frame->engine;
}

/*
 * A context under BASE with the Python frames inside OUTER (NULL: all frames). *depth gets the
 * number of Python frames that lie outside what comes next. TOP is the innermost frame
 * (plumb_python_top).
 */
plumb_id plumb_python_context(struct plumb_thread *thread, struct plumb_operator_frame *outer,
                              plumb_id base, uint32_t *depth, const void *top);

/* As plumb_context_current, in a signal handler whose third argument is REGISTERS (a ucontext_t).
 * If neither Python nor an operator is known, native frames say where the program is, whatever the
 * layers are. */
plumb_id plumb_context_interrupted(struct plumb_thread *thread, const void *registers);

/*
 * Puts the native frames of the calling thread under PARENT, outermost first. They reach from the
 * innermost operator or Python frame to the call of the driver, without plumb's own frames and the
 * driver's. Only operators that lie on the C stack count. Returns PARENT if there are no such
 * frames.
 */
plumb_id plumb_native_context(struct plumb_thread *thread, plumb_id parent);
/* The same, for an operator that begins: also without the innermost frames of PyTorch's libraries,
 * which only lead from the call to the operator. */
plumb_id plumb_native_caller(struct plumb_thread *thread, plumb_id parent);
/* Prefetches what plumb_native_context will soon need for PARENT. THREAD must have native
 * frames. */
void plumb_native_prefetch(struct plumb_thread *thread, plumb_id parent);

/*
 * As plumb_native_context, in a signal handler whose third argument is REGISTERS: it begins at what
 * the signal interrupted. With no PARENT (0) the frames begin where the thread does. If the program
 * was in plumb or in the driver, the innermost frame says so. It stands for an instruction, not for
 * a call: PLUMB_CONTEXT_INTERRUPTED.
 */
plumb_id plumb_native_interrupted(struct plumb_thread *thread, plumb_id parent, const void *top,
                                  const void *registers);
/* Prepares what plumb_native_interrupted needs to know about loaded objects. Call it outside of
 * handlers, at the beginning and after objects were loaded. */
void plumb_native_prepare(void);
/* For a forked child, whose region is still empty. */
void plumb_native_forked(void);

/* As plumb_context_current, but without native frames, whatever the layers are. */
plumb_id plumb_context_light(struct plumb_thread *thread);

/* The context of an operator frame. An engine frame that never met a forward operator gets its
 * place now. */
plumb_id plumb_frame_node(struct plumb_thread *thread, struct plumb_operator_frame *frame);

/* The context of OUTER, the operator around, as the parent of what happens inside it now; 0: there
 * is none. An engine frame may do something before it names its forward operator: that is a hook on
 * its gradients. */
plumb_id plumb_frame_inside(struct plumb_thread *thread, struct plumb_operator_frame *outer);

/* The context of backward work that was called from HERE. OUTER is the operator around it on this
 * thread. Sets the flags of KEY. */
plumb_id plumb_backward_node(struct plumb_thread *thread, struct plumb_operator_frame *outer,
                             plumb_id here, const struct plumb_operator *op, struct plumb_key *key);

/* The context that called the backward pass which the thread runs, or 0. */
plumb_id plumb_backward_caller(struct plumb_thread *thread);

#endif
