/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract for a GPU runtime: CUDA through CUPTI today. HIP, Level Zero or the Compute
 * Sanitizer would be one more folder beside gpu/cuda and one more row in gpu/runtimes.c.
 *
 * A runtime observes driver calls on the program's threads, and reads records on a thread of its
 * own; the program never waits for it. For the mode "activity", gpu/work.h has what it does with
 * both.
 *
 * A process collects in one mode (enum plumb_gpu_mode), which the options choose. Only runtimes
 * that serve this mode start, so a runtime never meets one that its vendor's tools exclude.
 */
#ifndef PLUMB_COLLECT_GPU_GPU_H
#define PLUMB_COLLECT_GPU_GPU_H

#include <stdbool.h>

#include "collect/collector.h"

struct plumb_gpu_runtime {
	const char *name;   /* "cuda"; no other runtime has it */
	const char *driver; /* "cuda"; runtimes of different modes may share it */
	unsigned modes;     /* what it serves: PLUMB_GPU_MODE(ACTIVITY), … added up */
	/* For a recording of a program that is already running: did the program initialise the
	 * driver? If not, the driver's hook starts the runtime later. */
	bool (*ready)(void);
	/*
	 * Starts collecting, in the mode plumb_collector_options()->gpu. Called once, on the
	 * program's thread that initialises the driver. Not 0: it stays off, the CPU side goes on,
	 * and the error's line goes into the environment as "gpu.<name>.off".
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
	/* In a forked child of a process that had started this or another runtime: nothing of the
	 * runtime may be called any more, and no driver call recorded. */
	void (*forked)(void);
};

#define PLUMB_GPU_MODE(mode) (1u << PLUMB_GPU_##mode)

/* All runtimes, NULL at the end (runtimes.c). */
#define PLUMB_GPU_RUNTIMES_MAX 8
extern const struct plumb_gpu_runtime *const plumb_gpu_runtimes[PLUMB_GPU_RUNTIMES_MAX + 1];

/*
 * Starts the runtimes of the chosen mode, if this process may record. DRIVER: those of this driver,
 * whose hook calls; NULL: those that are ready. Idempotent, any thread. Does nothing in a child
 * that was forked when its parent had started one: a GPU's driver does not work there.
 */
void plumb_gpu_start(const char *driver);
void plumb_gpu_stop(void);
void plumb_gpu_pause(bool paused);
/* After plumb_gpu_stop: the next plumb_gpu_start starts runtimes anew. False: one of them still
 * runs. */
bool plumb_gpu_renew(void);
void plumb_gpu_forked(void);
bool plumb_gpu_inherited(void); /* this is such a child */

#endif
