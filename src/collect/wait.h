/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures where threads wait (`plumb run --cpu`): wall time minus CPU time, from enter to exit of
 * an outermost operator or of a driver call that may block. To read a thread's CPU clock is a
 * system call, so plumb reads it only where the cost does not show: for operators that took 100 µs
 * and more so far.
 *
 * `plumb run` covers the rest from outside. From time to time it looks at the state of the threads,
 * and it finds the context of a thread in its THREAD record (watch/watch.c).
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
/* The stack of operators changed without an exit. */
void plumb_wait_settle(struct plumb_thread *thread);

/* Tells `plumb run` where the calling thread's Python frames are. Call it at the thread's first
 * callback and at every sample, because the thread may get another thread state. */
void plumb_wait_tell_where(struct plumb_thread *thread);

/* The same without --cpu, for the calling THREAD if it is a main one. */
void plumb_wait_tell_main(struct plumb_thread *thread);

/* plumb has just met Python. A thread that is recorded may wait before its next sample. A main
 * thread may import for long before its first operator, so its recording begins here. */
void plumb_wait_met_python(void);

/* The calling thread THREAD ends, and the kernel forgets its times. */
void plumb_wait_tell_end(struct plumb_thread *thread);
/* THREAD is plumb's own: leaves its waiting out. */
void plumb_wait_leave_out(struct plumb_thread *thread);

/* Put these around a call that may block. The first returns the calling thread's CPU clock, or 0 if
 * plumb does not record waiting. The second adds the waiting of a call of WALL ns at NODE (0: it
 * adds nothing). */
uint64_t plumb_wait_begin(struct plumb_thread *thread);
void plumb_wait_end(struct plumb_thread *thread, plumb_id node, uint64_t begin, uint64_t wall);

#endif
