/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of program counters of a GPU's warps → SAMPLE records of the region. Samples that agree
 * in module, function, offset, reason, device and launch are one record, so that what is kept is
 * bounded by the program's code. A runtime that can sample hands them over:
 *
 *	plumb_stalls_lock();
 *	for each sample	plumb_stalls_add(thread, &sample);
 *	plumb_stalls_unlock();
 *
 * on any thread. The lock is held over no call of the program's or of the vendor's.
 */
#ifndef PLUMB_COLLECT_GPU_STALLS_H
#define PLUMB_COLLECT_GPU_STALLS_H

#include "collect/collector.h"

/* Samples with this end in the vendor's word were taken while no warp issued. */
#define PLUMB_STALL_MARK "_not_issued"

struct plumb_stall_sample {
	uint64_t module;      /* plumb_code_keep's */
	const char *function; /* mangled */
	const char *reason;   /* the vendor's word, complete */
	uint64_t offset;
	uint32_t function_number, reason_number; /* which tell functions and reasons apart */
	uint32_t device;
	plumb_id call;   /* NODE of the call that launched the kernel; 0: not known */
	uint64_t launch; /* when it began, ns; 0: not known */
	uint64_t count;
};

/* What the vendor's interface told of one fetch. */
struct plumb_stall_fetch {
	uint64_t told, dropped, system;
	bool full; /* the GPU's buffer was full */
};

void plumb_stalls_lock(void);
void plumb_stalls_unlock(void);
/* With the lock. Without THREAD, the region's header counts what is lost. */
void plumb_stalls_add(struct plumb_thread *thread, const struct plumb_stall_sample *sample);
void plumb_stalls_fetched(struct plumb_thread *thread, const struct plumb_stall_fetch *fetch);
/* Samples that are not wanted: recording was paused. */
void plumb_stalls_leave_out(struct plumb_thread *thread, enum plumb_fate fate, uint64_t count);
/* Another recording, or a forked child: nothing is known, and nobody holds the lock. */
void plumb_stalls_renew(void);

#endif
