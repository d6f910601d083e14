/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where threads wait (`plumb run --cpu`): wall time minus CPU time between the enter and the exit
 * of an operator outside any other, or of a driver call that may block. Reading a thread's CPU
 * clock is a system call, so it is done where it cannot show: for operators that took 100 µs and
 * more so far.
 *
 * What this does not cover, `plumb run` covers from outside: it looks at the state of the threads
 * now and then, and finds in their THREAD record the context that they are in (watch/watch.c).
 */
#ifndef PLUMB_COLLECT_WAIT_H
#define PLUMB_COLLECT_WAIT_H

#include "collect/thread.h"

extern bool plumb_waits; /* waiting is recorded */

/* FRAME is the innermost one now. */
void plumb_wait_enter(struct plumb_thread *thread, struct plumb_operator_frame *frame);
/* FRAME, at NODE, was the innermost one and took DURATION ns. */
void plumb_wait_exit(struct plumb_thread *thread, const struct plumb_operator_frame *frame,
                     plumb_id node, uint64_t duration);
/* The stack of operators is another one without an exit. */
void plumb_wait_settle(struct plumb_thread *thread);

/* Tells `plumb run` where the calling thread's Python frames are; when it is met, and at every
 * sample, because a thread state may go and another one come. */
void plumb_wait_tell_where(struct plumb_thread *thread);

/* The same, now that Python was met: the thread may wait next, before another sample of it. */
void plumb_wait_met_python(void);

/* THREAD, the calling one, ends: the kernel's account of it is gone then. */
void plumb_wait_tell_end(struct plumb_thread *thread);
/* THREAD is plumb's own: that it waits is nobody's business. */
void plumb_wait_leave_out(struct plumb_thread *thread);

/* Around a call that may block: what the calling thread's CPU clock stands at, 0 when waiting is
 * not recorded; and, when it is, what to add at NODE (0: nothing) when the call took WALL ns. */
uint64_t plumb_wait_begin(struct plumb_thread *thread);
void plumb_wait_end(struct plumb_thread *thread, plumb_id node, uint64_t begin, uint64_t wall);

#endif
