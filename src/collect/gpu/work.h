/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a runtime of the mode "activity" (gpu.h) records work: from the driver call that starts it to
 * the record that says when it ran. Everything here is the same for all vendors. A runtime has one
 * struct plumb_gpu_activity, which it makes in start() and keeps for good.
 *
 * On the program's threads, when a driver call begins:
 *
 *	thread = plumb_gpu_call_begin(activity, kind, correlation);
 *	if (!thread)
 *		return;
 *	call = plumb_gpu_call_enter(activity, thread, kind, plumb_name(thread, "hipMalloc"),
 *	                            correlation);
 *	…                                       what only this runtime does; then, last:
 *	plumb_gpu_call_clock(thread, kind, call);
 *	plumb_leave(thread);
 *
 * and when it returns:
 *
 *	thread = plumb_gpu_call_end();
 *	if (!thread)
 *		return;
 *	call = plumb_gpu_call_leave(correlation);
 *	if (call && plumb_gpu_call_count(activity, thread, kind, call, succeeded) && allocates)
 *		plumb_gpu_allocated(activity, thread, call->node, context, address, bytes);
 *	plumb_leave(thread);
 *
 * On one thread of the runtime's own, between plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS) and
 * plumb_leave, for each record of finished work:
 *
 *	struct plumb_gpu_record record = { .source = PLUMB_SOURCE_KERNEL, … };
 *	if (plumb_gpu_record_begin(activity, thread, &record))
 *		plumb_gpu_kernel(activity, thread, &record, device, name, &configuration, warp);
 *
 * and after each flush plumb_gpu_merge (device.h) for each device, plumb_gpu_replays_tell and
 * plumb_gpu_clocks. That thread also (gpu/cuda/cuda.c shows how)
 *
 *   - flushes every plumb_collector_options()->flush_ms, and at once, forced, when the region
 *     header's flush_wanted changes; when the records are read, it stores that number in
 *     flush_done. It sets flush_served as soon as it can do so;
 *   - follows plumb_control: when recording is paused, it switches the vendor's records off as soon
 *     as plumb_gpu_activity_complete, and calls plumb_gpu_activity_pause;
 *   - at the end of a recording, reads what is left and calls plumb_gpu_activity_finish.
 *
 * Units: times are ns of the clock that plumb_gpu_clocks reads; sizes are bytes. A correlation id
 * is what a call and the records of its work share. Ids ascend (ids of 32 bits may wrap), and no
 * two calls of the runtime have the same one at the same time.
 */
#ifndef PLUMB_COLLECT_GPU_WORK_H
#define PLUMB_COLLECT_GPU_WORK_H

#include "collect/gpu/device.h"
#include "collect/gpu/launch.h"

struct plumb_gpu_activity; /* opaque */
/* LOG2_LAUNCHES: so many may wait for their record, as a power of two from 2 to 28. GRAPH: what
 * frames of replays are called, such as "CUDA graph". NULL: no memory. */
struct plumb_gpu_activity *plumb_gpu_activity_new(unsigned log2_launches, const char *graph);
/* Another recording: forgets all launches, allocations, graphs and contexts. The thread that reads
 * records has ended. */
void plumb_gpu_activity_renew(struct plumb_gpu_activity *activity);
/* While this is on, calls have no records that count. Set it before the runtime switches its
 * records off, and clear it when they are on again. Any thread. */
void plumb_gpu_activity_pause(struct plumb_gpu_activity *activity, bool paused);
bool plumb_gpu_activity_paused(const struct plumb_gpu_activity *activity);
/* Makes the ledger's tallies while the region has room for them: the reading thread's first
 * call. */
void plumb_gpu_activity_reserve(struct plumb_thread *thread);
/* A record came of each launch so far. Reading thread. */
bool plumb_gpu_activity_complete(const struct plumb_gpu_activity *activity);
/* Counts the launches that have no record; the runtime itself lost DROPPED records. Reading
 * thread. */
void plumb_gpu_activity_finish(const struct plumb_gpu_activity *activity,
                               struct plumb_thread *thread, uint64_t dropped);

/* ---- driver calls: the program's threads ---- */

/* What a call does. Up to SET it starts work, and its records have its correlation id. */
enum plumb_call {
	PLUMB_CALL_NONE,
	PLUMB_CALL_LAUNCH, /* of a kernel */
	PLUMB_CALL_GRAPH,  /* of a captured graph */
	PLUMB_CALL_COPY,   /* may block if host memory is pageable; the record tells */
	PLUMB_CALL_COPY_BLOCKING,
	PLUMB_CALL_COPY_DEVICE, /* never blocks */
	PLUMB_CALL_SET,
	PLUMB_CALL_SYNC, /* waits for the GPU */
	/* Starts nothing and waits for nothing. The runtime may use this number and all higher ones
	 * to tell its own kinds apart. */
	PLUMB_CALL_MEMORY,
};

/* A call that the thread is in. The runtime may set what is marked so. */
struct plumb_gpu_call {
	uint64_t start, cpu; /* ns, of calls that may wait; else 0 */
	uint64_t ticks;      /* the start in a trace */
	uint64_t correlation;
	const char *kernel; /* the runtime's: name of the kernel that is launched */
	uint64_t made;      /* the runtime's: the graph's node that the call became, or 0 */
	plumb_id node;      /* the call's context */
	uint32_t epoch;
	/* The runtime's: the call was captured into a graph. Also set on a launch while records are
	 * off. It starts nothing that counts. */
	bool captured;
};

/* Begins a callback (as plumb_enter). NULL: do nothing. KIND is at most PLUMB_CALL_MEMORY, or a
 * higher number of the runtime's, as in all functions here. */
struct plumb_thread *
plumb_gpu_call_begin(struct plumb_gpu_activity *activity, unsigned kind, uint64_t correlation);
/* Puts the call on this thread's stack of calls, under the context where the program is, and its
 * launch where the reading thread finds it. NAME: the function's, a STRING record. */
struct plumb_gpu_call *
plumb_gpu_call_enter(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                     unsigned kind, plumb_id name, uint64_t correlation);
/* Reads the clocks that the call's duration and wait begin with. */
void plumb_gpu_call_clock(struct plumb_thread *thread, unsigned kind, struct plumb_gpu_call *call);
/* The innermost call that this thread is in; NULL: none. */
struct plumb_gpu_call *plumb_gpu_call_current(void);
/* Begins the callback for a call's return. NULL: do nothing. */
struct plumb_thread *plumb_gpu_call_end(void);
/* Takes the call off the thread's stack. It stays valid until the thread's next call. NULL: its
 * begin was not seen. */
struct plumb_gpu_call *plumb_gpu_call_leave(uint64_t correlation);
/* Counts the call and how long the host waited. False: it did nothing that counts. */
bool plumb_gpu_call_count(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                          unsigned kind, const struct plumb_gpu_call *call, bool succeeded);
/* The call at NODE made an allocation of device memory in CONTEXT (0: unknown), or freed one. KEY:
 * its address or handle, different for all that live; 0: unknown. */
void plumb_gpu_allocated(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                         plumb_id node, uint32_t context, uint64_t key, uint64_t bytes);
void plumb_gpu_freed(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                     plumb_id node, uint64_t key);

/* ---- records: the reading thread ---- */

/* A piece of finished work, as its record says. */
struct plumb_gpu_record {
	enum plumb_source source; /* KERNEL, COPY, SET or REPLAY: where it is counted */
	enum plumb_gpu_work_kind kind;
	uint64_t start, end; /* start 0, or end before start: the runtime does not know the times */
	uint64_t bytes;      /* of copies and sets */
	uint64_t correlation;
	uint64_t graph_node; /* the node of a captured graph that ran; 0: none */
	uint64_t stream;
	uint32_t device, context;        /* the runtime's own numbers */
	struct plumb_ring_launch launch; /* set by plumb_gpu_record_begin; node 0: unknown call */
};
/* Counts a record and finds its call. False: it tells nothing more. */
bool plumb_gpu_record_begin(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                            struct plumb_gpu_record *record);
/*
 * Then one of these puts the work under its call, with its metrics, and adds it to DEVICE (NULL:
 * unknown). NAME is the frame's. The fields of CONFIGURATION that are used are grid (blocks),
 * block (threads), registers (of a thread), static_shared and dynamic_shared (bytes of a block) and
 * occupancy (parts per million; UINT32_MAX: unknown). WARP: threads.
 */
void
plumb_gpu_kernel(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                 const struct plumb_gpu_record *record, struct plumb_gpu_device *device,
                 const char *name, const struct plumb_record_variant *configuration, uint32_t warp);
struct plumb_gpu_copy {
	struct plumb_transfer kinds; /* its frame */
	/* Of a copy between two devices: which; else NULL. */
	const struct plumb_gpu_device *from, *to;
	/* The call returned only when the driver had read or written all of the host's memory. */
	bool blocked;
};
/* Returns the context of the copy or set. */
plumb_id plumb_gpu_transfer(struct plumb_thread *thread, const struct plumb_gpu_record *record,
                            struct plumb_gpu_device *device, const struct plumb_gpu_copy *copy);
void plumb_gpu_replay(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                      const struct plumb_gpu_record *record, struct plumb_gpu_device *device);

/* Records (monotonic, realtime, GPU) now, unless FORCE thinned out as the run goes on. READ: the
 * GPU's clock in ns; false: it cannot be read. Reading thread. */
void plumb_gpu_clocks(struct plumb_gpu_activity *activity, struct plumb_thread *thread, bool force,
                      bool (*read)(uint64_t *gpu));

/* ---- captured graphs; only for runtimes that have them ---- */

/*
 * A node's NUMBER is unique in the process and not 0. The driver call at CONTEXT was captured and
 * became a node; the kernel of that node is called NAME (a STRING record); a node was cloned from
 * ORIGINAL. Any thread.
 */
void plumb_graph_captured(struct plumb_gpu_activity *activity, uint64_t number, plumb_id context);
void plumb_graph_named(struct plumb_gpu_activity *activity, uint64_t number, plumb_id name);
void plumb_graph_cloned(struct plumb_gpu_activity *activity, uint64_t original, uint64_t number);

/*
 * What an executable graph is made of, so that each replay needs only one record. On the thread
 * that makes it executable: it begins (COUNTED: replays have one record); it has a node of KIND
 * that was cloned from ORIGINAL; its nodes cannot be counted; it is made, and has this NUMBER (0:
 * unknown).
 */
void plumb_graph_begin(bool counted);
void plumb_graph_add(struct plumb_gpu_activity *activity, uint64_t original,
                     enum plumb_gpu_work_kind kind);
void plumb_graph_uncountable(void);
void plumb_graph_end(struct plumb_gpu_activity *activity, uint64_t number);
/* The program switched nodes of some executable graph on or off. */
void plumb_graph_changed(struct plumb_gpu_activity *activity);

/* Replays have one record from now on. False: no memory. */
bool plumb_gpu_replays_init(struct plumb_gpu_activity *activity);
/* The executable graph NUMBER is launched by the call at NODE. Any thread. */
void plumb_gpu_replay_launched(struct plumb_gpu_activity *activity, uint32_t number,
                               uint64_t correlation, plumb_id node);
/* Counts the nodes of the replays since the last call. Reading thread. */
void plumb_gpu_replays_tell(struct plumb_gpu_activity *activity, struct plumb_thread *thread);

#endif
