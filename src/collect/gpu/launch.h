/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches by correlation id, between the thread that calls and the one that reads records. A slot
 * holds the whole id: if another launch took the slot since, a look-up misses, and never finds the
 * other launch's context. Put is wait-free from any thread. Take is for one thread.
 */
#ifndef PLUMB_COLLECT_GPU_LAUNCH_H
#define PLUMB_COLLECT_GPU_LAUNCH_H

#include <stdbool.h>

#include "collect/collector.h"

#define PLUMB_LAUNCH_PAUSED (UINT32_MAX - 1) /* as a node: launched while recording was paused */
struct plumb_ring_launch {
	plumb_id node;  /* the gpu_api node */
	plumb_id track; /* of the thread that called; its arena's fate if node is PLUMB_LOST */
	/* Set by take: */
	uint64_t host_wait; /* ns the call took on the host, for copies; 0: not told; saturates */
	bool taken;         /* before */
};
struct plumb_launch_ring; /* opaque; made once, mapped and populated */
struct plumb_launch_ring *plumb_launch_ring_new(unsigned log2_slots);
/* Forgets all launches. Nobody may put or take meanwhile. */
void plumb_launch_ring_clear(struct plumb_launch_ring *ring);
void plumb_launch_put(struct plumb_launch_ring *ring, uint64_t correlation,
                      const struct plumb_ring_launch *launch);
/* Brings in what a put with this id will write to: the ring is larger than caches. */
void plumb_launch_prefetch(struct plumb_launch_ring *ring, uint64_t correlation);
/* Sets host_wait, once, of a launch that was put before. */
void plumb_launch_waited(struct plumb_launch_ring *ring, uint64_t correlation, uint64_t ns);
/* False: none was put, or it was overwritten (*overwritten tells). */
bool plumb_launch_take(struct plumb_launch_ring *ring, uint64_t correlation,
                       struct plumb_ring_launch *launch, bool *overwritten);

#endif
