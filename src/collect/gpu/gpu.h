/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract for a GPU runtime: CUDA today; HIP or Level Zero would be one more folder beside
 * gpu/cuda and one more row in gpu/gpu.c.
 *
 * A runtime observes driver calls on the program's threads, and reads records on a thread of its
 * own; the program never waits for it. What it does with both is in gpu/work.h.
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

#endif
