/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a thread of the program is, as a context. Private to src/collect; shims use
 * monitor/framework.h, GPU runtimes collector.h.
 *
 *   context.c         the stack of operators: enter, exit, the current context
 *   python_context.c  Python frames between two operators
 *   backward.c        backward work and the engine's own frames
 *   forward.c         (thread, sequence number) → forward context
 */
#ifndef PLUMB_COLLECT_CONTEXT_H
#define PLUMB_COLLECT_CONTEXT_H

#include "collect/monitor/framework.h"
#include "collect/thread.h"

/*
 * The Python frames inside OUTER (NULL: all there are) as a context under BASE. *depth gets the number
 * of frames that are outside whatever comes next. TOP is the innermost frame (plumb_python_top).
 */
plumb_id plumb_python_context(struct plumb_thread *thread, struct plumb_operator_frame *outer,
                              plumb_id base, uint32_t *depth, const void *top);

/* As plumb_context_current in a signal handler that was given REGISTERS (a ucontext_t). */
plumb_id plumb_context_interrupted(struct plumb_thread *thread, const void *registers);

/* The context of an operator frame; an engine frame that never learnt of a forward operator gets its
 * place now. */
plumb_id plumb_frame_node(struct plumb_thread *thread, struct plumb_operator_frame *frame);

/* The context of the operator around, 0 for none, as a parent of what happens inside it now. What an
 * engine frame does before it names its forward operator is a hook on its gradients. */
plumb_id plumb_frame_inside(struct plumb_thread *thread, struct plumb_operator_frame *outer);

/* The context of a backward record, called from HERE; OUTER is the operator around it on this thread.
 * KEY gets its flags. */
plumb_id plumb_backward_node(struct plumb_thread *thread, struct plumb_operator_frame *outer,
                             plumb_id here, const struct plumb_operator *op, struct plumb_key *key);

/* Who called the backward pass that the thread runs, or 0. */
plumb_id plumb_backward_caller(struct plumb_thread *thread);

#endif
