/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to work.h's implementation.
 *
 *   call.c     driver calls, on the program's threads
 *   work.c     records of work → contexts, metrics, ledger
 *   kernel.c   the same for kernels: names and configurations
 *   graph.c    nodes of captured graphs → where they were captured
 *   replay.c   replays of graphs → the work of their nodes
 *   clocks.c   readings of the clocks
 */
#ifndef PLUMB_COLLECT_GPU_ACTIVITY_H
#define PLUMB_COLLECT_GPU_ACTIVITY_H

#include "collect/gpu/work.h"
#include "collect/live.h"

#define PLUMB_COUNTERS 16u        /* of launches */
#define PLUMB_KERNEL_NAMES 4096u  /* kernels by call and name */
#define PLUMB_KERNEL_SHAPES 8192u /* configurations by kernel context */
#define PLUMB_RECORDS_SEEN 16384u /* signatures of the newest records */

struct plumb_graph_place;  /* graph.c */
struct plumb_replay_place; /* replay.c */

/* Caches are direct-mapped. Their entries are checked: a clash costs a search and never truth. */
struct plumb_gpu_activity {
	/* Any thread. One counter has a cache line, so that threads that launch do not share. */
	struct {
		_Atomic uint64_t count;
		char pad[56];
	} launched[PLUMB_COUNTERS];
	struct plumb_launch_ring *launches;
	_Atomic bool paused;
	struct plumb_live allocations; /* sizes, so that a free can tell what it frees */
	struct plumb_live captures;    /* by node; record: its context; owner: the kernel's name */
	struct plumb_live executables; /* by graph; bytes: the nodes; record: how many */
	_Atomic uint32_t nodes_kept;   /* of all executable graphs */
	_Atomic bool graphs_changed;   /* nodes of some graph were switched on or off */
	struct plumb_launch_ring *replays; /* node: the graph; track: the launch's node */

	const char *graph_name; /* what frames of replays are called */

	/* The reading thread. */
	struct plumb_graph_place *graph_places;
	struct plumb_replay_place *replay_places;
	uint64_t delivered; /* launches of which a record came */
	struct {            /* eight readings of the clocks, eight at twice the distance, … */
		uint64_t next, distance;
		unsigned since;
	} readings;
	struct {
		plumb_id parent, node;
		const char *name;
	} kernels[PLUMB_KERNEL_NAMES];
	struct {
		plumb_id node, track, variant;
	} variants[PLUMB_KERNEL_SHAPES];
	uint64_t seen[PLUMB_RECORDS_SEEN];
};

/* Launches so far. */
uint64_t plumb_gpu_launched(const struct plumb_gpu_activity *activity);
/* What becomes of work at the context NODE. */
enum plumb_fate plumb_gpu_fate(struct plumb_thread *thread, plumb_id node);
/* Counts the work at NODE and adds it to DEVICE. Returns the stream's track. */
plumb_id plumb_gpu_place(struct plumb_thread *thread, const struct plumb_gpu_record *record,
                         struct plumb_gpu_device *device, plumb_id node);

/* The kernels, copies and sets of the executable graph NUMBER; returns how many, 0: unknown. */
struct plumb_graph_node {
	plumb_id context, name; /* where it was captured, the kernel's name; 0: unknown */
	enum plumb_gpu_work_kind kind;
};
uint32_t plumb_graph_nodes(const struct plumb_gpu_activity *activity, uint64_t number,
                           const struct plumb_graph_node **nodes);
/* The GRAPH frame under the launch PARENT for what was captured at CAPTURE; PARENT if that is not
 * known. */
plumb_id plumb_graph_frame(struct plumb_thread *thread, plumb_id parent, plumb_id capture);
/* The same for the work of node NUMBER, counted in the ledger. */
plumb_id plumb_graph_place(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                           plumb_id parent, uint64_t number);
void plumb_graphs_renew(struct plumb_gpu_activity *activity);
void plumb_replays_renew(struct plumb_gpu_activity *activity);

#endif
