/* SPDX-License-Identifier: Apache-2.0 */
/* Private to comm.h's implementation. */
#ifndef PLUMB_COLLECT_COMM_PRIVATE_H
#define PLUMB_COLLECT_COMM_PRIVATE_H

#include "collect/comm/comm.h"
#include "collect/thread.h"

/* ---- totals.c ---- */

struct plumb_comm_thread; /* what a thread keeps of communication; made when it is needed */
struct plumb_comm_thread {
	struct plumb_id_table totals; /* COMMUNICATION records */
	uint32_t ring_count, ring_next;
	plumb_id ring[65536]; /* the COLLECTIVE records, oldest first from ring_next on */
};
/* NULL: there is no memory. */
struct plumb_comm_thread *plumb_comm_thread_of(struct plumb_thread *thread);
/* Why there was no room. */
enum plumb_fate plumb_comm_fate(struct plumb_thread *thread);
/* Adds an operation to the total of those that agree with it. Returns what became of it. */
enum plumb_fate plumb_comm_add(struct plumb_thread *thread, struct plumb_comm_thread *own,
                               const struct plumb_comm_operation *operation,
                               const struct plumb_record_collective *told);

/* ---- kernel.c ---- */

struct plumb_comm_launch {
	uint64_t correlation; /* 0: no kernel is known */
	bool captured;
};
/* The launch that this thread's next operations belong to. */
struct plumb_comm_launch plumb_comm_newest(void);
/* The kernel of the launch CORRELATION ran RECORD's operation: it gets the times, now or later. */
void plumb_comm_expect(struct plumb_record_collective *record, uint64_t correlation);
void plumb_comm_kernels_forget(void);

#endif
