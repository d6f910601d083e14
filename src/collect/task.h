/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that take turns on one thread: coroutines (asyncio, trio, …) and greenlets. A range that a
 * task opened is open while that task runs, but not while another task has its turn. When a task
 * gives its turn away, plumb takes its open frames off the thread's stack of operators and parks
 * them. When its turn comes again, plumb puts them back. Private to src/collect.
 *
 *	struct plumb_task_turn turn;
 *	plumb_task_begin(&turn, key);      // the task that KEY names gets its turn
 *	…                                  // it runs
 *	plumb_task_end(&turn, key, ended); // it has given it away, or ENDED
 *
 * A task may run another task (`await`), which then has a turn inside the first one's. What a task
 * leaves open at its end belongs to the task that gave it the turn.
 */
#ifndef PLUMB_COLLECT_TASK_H
#define PLUMB_COLLECT_TASK_H

#include "collect/thread.h"

#define PLUMB_TASKS_MAX 8192u /* parked on one thread */
#define PLUMB_TASK_FRAMES 16u /* ranges that one task may have open while it is parked */
#define PLUMB_TASK_PYTHON 48u /* Python frames around them, the innermost ones */

/* The depth of a ticket whose frame is parked: this bit and the index of the slot. */
#define PLUMB_TICKET_PARKED 0x80000000u

struct plumb_task_turn {
	struct plumb_thread *thread;
	uint32_t operators, ranges; /* how many were open before the turn */
};

void plumb_task_begin(struct plumb_task_turn *turn, uint64_t key);
void plumb_task_end(const struct plumb_task_turn *turn, uint64_t key, bool ended);

/* A greenlet gives its turn to another one: parks all that is open. Returns a key for
 * plumb_task_resume, for when it comes back; 0: nothing was open. */
uint64_t plumb_task_suspend(void);
void plumb_task_resume(uint64_t key);

/* Takes the parked frame of TICKET out of its slot into *frame. *parent gets the frame around it if
 * that is parked, too. False: the frame is not there any more. */
bool plumb_task_take(struct plumb_thread *thread, const struct plumb_ticket *ticket,
                     struct plumb_operator_frame *frame, struct plumb_operator_frame **parent);
/* Takes the parked range of DOMAIN with KEY out of its slot, and returns its ticket; NULL: there is
 * none. */
struct plumb_ticket *
plumb_task_take_range(struct plumb_thread *thread, const struct plumb_range_domain *domain,
                      const char *key);

/* The thread ends: nobody will give these a turn. */
void plumb_tasks_drop(struct plumb_thread *thread);

/* python_context.c: how many Python frames are on the stack. Updates the cached stack where frames
 * moved on, but not their contexts. */
uint32_t plumb_python_refresh(struct plumb_thread *thread);

#endif
