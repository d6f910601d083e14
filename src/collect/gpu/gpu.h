/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract for a GPU runtime: CUDA today; HIP or Level Zero would be one more folder beside
 * gpu/cuda and one more row in gpu/gpu.c.
 *
 * A runtime observes driver calls on the program's threads and records on its own. At a call that
 * starts work it asks plumb_context_current() where the program is, hangs a gpu_api frame under it
 * and keeps that node under the call's correlation id in a plumb_launch_ring; when the record
 * arrives it hangs kernel, copy or set under that node and observes its metrics on the stream's
 * track. The program never waits for it.
 */
#ifndef PLUMB_COLLECT_GPU_GPU_H
#define PLUMB_COLLECT_GPU_GPU_H

#include <stdbool.h>

#include "collect/collector.h"

struct plumb_gpu_runtime {
	const char *name; /* "cuda" */
	/*
	 * Starts collecting. Called once, from the runtime's injection hook. Not 0: it stays off;
	 * the CPU side goes on and its one line goes into the environment as "gpu.<name>.off".
	 */
	int (*start)(struct plumb_error *error);
	/* Flushes, detaches, and takes a last reading of the clocks. Nothing is recorded after
	 * it. */
	void (*stop)(void);
	/* Recording was paused, or goes on, by the calling process itself: it is on when this
	 * returns. Other processes' turns the runtime has to notice by plumb_control. NULL: nothing
	 * to do. */
	void (*pause)(bool paused);
	/* After stop: another recording begins in this process, and start will be called again.
	 * What belonged to the last one is forgotten. False: something of it still runs. */
	bool (*renew)(void);
	/* In a forked child of a process that had started it: nothing of the runtime may be called
	 * any more, and no driver call recorded. */
	void (*forked)(void);
};

extern const struct plumb_gpu_runtime plumb_gpu_cuda;

/* Starts every runtime, when options allow it and this process may record. Idempotent, any thread.
 * Does nothing in a child that was forked when its parent had started one: a GPU's driver does not
 * work there. */
void plumb_gpu_start(void);
void plumb_gpu_stop(void);
void plumb_gpu_pause(bool paused);
/* After plumb_gpu_stop: the next plumb_gpu_start starts runtimes anew. False: one of them still
 * runs. */
bool plumb_gpu_renew(void);
void plumb_gpu_forked(void);
bool plumb_gpu_inherited(void); /* this is such a child */

/* ---- shared by runtimes ---- */

/* Launches by correlation id. Slots hold the full id; a slot that another launch took since is a
 * miss, never another launch's context. Put is wait-free from any thread; take is for one
 * thread. */
#define PLUMB_LAUNCH_PAUSED (UINT32_MAX - 1) /* as a node: launched while recording was paused */
struct plumb_launch {
	plumb_id node;  /* the gpu_api node */
	plumb_id track; /* of the thread that called; its arena's fate where node is PLUMB_LOST */
	/* Set by take: */
	uint64_t host_wait; /* ns the call took on the host, for copies; 0: not told; saturates */
	bool taken;         /* before */
};
struct plumb_launch_ring; /* opaque; made once, mapped and populated */
struct plumb_launch_ring *plumb_launch_ring_new(unsigned log2_slots);
/* Forgets all launches; nobody puts or takes meanwhile. */
void plumb_launch_ring_clear(struct plumb_launch_ring *ring);
void plumb_launch_put(struct plumb_launch_ring *ring, uint64_t correlation,
                      const struct plumb_launch *launch);
/* Tells host_wait, once, of a launch that was put before. */
void plumb_launch_waited(struct plumb_launch_ring *ring, uint64_t correlation, uint64_t ns);
/* False: none was put, or it was overwritten (*overwritten tells). */
bool plumb_launch_take(struct plumb_launch_ring *ring, uint64_t correlation,
                       struct plumb_launch *launch, bool *overwritten);

/* What a device did, from the thread that reads the records. Makes and owns the device's DEVICE,
 * STREAM, WORK_RING, DEVICE_TOTAL and SERIES records. */
enum plumb_work_kind { PLUMB_WORK_KERNEL, PLUMB_WORK_COPY, PLUMB_WORK_SET };
struct plumb_gpu_device; /* opaque */
struct plumb_gpu_device *
plumb_gpu_device_new(struct plumb_thread *thread, const struct plumb_record_device *description,
                     const char *name);
plumb_id plumb_gpu_device_id(const struct plumb_gpu_device *device);
plumb_id plumb_gpu_stream(struct plumb_thread *thread, struct plumb_gpu_device *device,
                          uint32_t context, uint64_t stream);
/* Adds one piece of work: to the device's totals, and as below. */
void plumb_gpu_work(struct plumb_gpu_device *device, enum plumb_work_kind kind, plumb_id node,
                    plumb_id stream, uint64_t start, uint64_t end, uint64_t bytes);
/* The two halves of that: pieces of work in the totals, NS and BYTES in all; in the busy union,
 * series and ring. */
void plumb_gpu_count(struct plumb_gpu_device *device, enum plumb_work_kind kind, uint64_t times,
                     uint64_t ns, uint64_t bytes);
void plumb_gpu_busy(struct plumb_gpu_device *device, enum plumb_work_kind kind, plumb_id node,
                    plumb_id stream, uint64_t start, uint64_t end);
/* Merges busy time that was added since the last call. Call it when all threads' records up to a
 * moment were added: after each flush. */
void plumb_gpu_merge(struct plumb_gpu_device *device);

#endif
