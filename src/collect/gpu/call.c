/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver calls, on the program's threads.
 *
 * When a call begins that may start work, its place in the program goes into the ring of launches:
 * the record may be there before the call returns. When the call returns it is counted, if it
 * succeeded and was not captured into a graph.
 */
#include "collect/clock.h"
#include "collect/gpu/activity.h"
#include "collect/monitor/memory.h"
#include "collect/recording.h"
#include "collect/span.h"
#include "collect/wait.h"

#define DEPTH 4
static _Thread_local struct {
	struct plumb_gpu_call calls[DEPTH]; /* several, when a call makes another one */
	uint32_t depth;
} pending;

static _Atomic uint32_t next_counter;
static _Thread_local uint32_t counter; /* 0: none yet */

static void
count_launch(struct plumb_gpu_activity *activity)
{
	if (!counter)
		counter = 1 + atomic_fetch_add_explicit(&next_counter, 1, memory_order_relaxed) %
		                      PLUMB_COUNTERS;
	atomic_fetch_add_explicit(&activity->launched[counter - 1].count, 1, memory_order_relaxed);
}

uint64_t
plumb_gpu_launched(const struct plumb_gpu_activity *activity)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < PLUMB_COUNTERS; i++)
		sum += atomic_load_explicit(&activity->launched[i].count, memory_order_relaxed);
	return sum;
}

/* ---- begin ---- */

/* Tells whoever reads the call's records, if any come, that it was made while recording was
 * paused. */
static void
put_paused(struct plumb_gpu_activity *activity, uint64_t correlation)
{
	const struct plumb_ring_launch launch = { .node = PLUMB_LAUNCH_PAUSED };
	plumb_launch_put(activity->launches, correlation, &launch);
}

PLUMB_HOT_CODE struct plumb_thread *
plumb_gpu_call_begin(struct plumb_gpu_activity *activity, unsigned kind, uint64_t correlation)
{
	enum plumb_source source = kind <= PLUMB_CALL_SET ? PLUMB_SOURCE_LAUNCH : 0;
	if (plumb_likely(source))
		plumb_launch_prefetch(activity->launches, correlation);
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, source);
	if (plumb_unlikely(!thread) && kind <= PLUMB_CALL_SET &&
	    !plumb_control_is_on(plumb_control))
		put_paused(activity, correlation);
	return thread;
}

PLUMB_HOT_CODE struct plumb_gpu_call *
plumb_gpu_call_enter(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                     unsigned kind, plumb_id name, uint64_t correlation)
{
	struct plumb_key key = { .kind = PLUMB_FRAME_GPU_API, .name = name };
	plumb_id node = plumb_child(thread, plumb_context_current(thread), &key);
	plumb_prefetch_values(thread, node); /* the call's end counts there */
	if (pending.depth == DEPTH)          /* begins without ends: forget them */
		pending.depth = 0;
	struct plumb_gpu_call *call = &pending.calls[pending.depth++];
	*call = (struct plumb_gpu_call){
		.node = node,
		.correlation = correlation,
		.epoch = plumb_epoch(thread),
	};
	if (kind > PLUMB_CALL_SET)
		return call;
	if (plumb_unlikely(plumb_gpu_activity_paused(activity))) {
		/* Recording has just begun again, and records have not. */
		put_paused(activity, correlation);
		call->captured = true;
	} else {
		struct plumb_ring_launch launch = {
			.node = node,
			.track = node == PLUMB_LOST ? plumb_thread_arena(thread)->fate
			                            : plumb_thread_track(thread)
		};
		plumb_launch_put(activity->launches, correlation, &launch);
	}
	return call;
}

void
plumb_gpu_call_clock(struct plumb_thread *thread, unsigned kind, struct plumb_gpu_call *call)
{
	if (plumb_unlikely(plumb_trace_on))
		call->ticks = plumb_ticks();
	if (kind == PLUMB_CALL_SYNC || kind == PLUMB_CALL_COPY ||
	    kind == PLUMB_CALL_COPY_BLOCKING) {
		call->cpu = plumb_wait_begin(thread);
		call->start = plumb_clock_ns();
	}
}

struct plumb_gpu_call *
plumb_gpu_call_current(void)
{
	return pending.depth ? &pending.calls[pending.depth - 1] : NULL;
}

/* ---- end ---- */

PLUMB_HOT_CODE struct plumb_thread *
plumb_gpu_call_end(void)
{
	return pending.depth ? plumb_enter_paused(PLUMB_CALLBACK_GPU) : NULL;
}

PLUMB_HOT_CODE struct plumb_gpu_call *
plumb_gpu_call_leave(uint64_t correlation)
{
	while (pending.depth && pending.calls[pending.depth - 1].correlation != correlation)
		pending.depth--;
	return pending.depth ? &pending.calls[--pending.depth] : NULL;
}

PLUMB_HOT_CODE bool
plumb_gpu_call_count(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                     unsigned kind, const struct plumb_gpu_call *call, bool succeeded)
{
	plumb_id track = plumb_thread_track(thread);
	/* Its time counts if recording was on all the while. */
	bool whole = call->epoch == plumb_epoch(thread), done = succeeded && !call->captured;
	if (call->cpu)
		plumb_wait_end(thread, whole && done ? call->node : 0, call->cpu,
		               plumb_clock_ns() - call->start);
	if (!done)
		return false;
	if (plumb_unlikely(plumb_trace_on))
		plumb_span_add(thread, call->node, track, call->ticks, plumb_ticks(),
		               kind <= PLUMB_CALL_SYNC ? call->correlation : 0);
	if (kind <= PLUMB_CALL_SET) {
		count_launch(activity);
		plumb_count(thread, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_RECEIVED, 1);
		plumb_observe(thread, call->node,
		              kind == PLUMB_CALL_GRAPH ? PLUMB_METRIC_GPU_REPLAYS
		                                       : PLUMB_METRIC_GPU_LAUNCHES,
		              track, 1);
	}
	if (kind == PLUMB_CALL_SYNC) {
		plumb_count(thread, PLUMB_SOURCE_SYNC, PLUMB_FATE_RECEIVED, 1);
		plumb_count(thread, PLUMB_SOURCE_SYNC,
		            whole ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_PAUSED, 1);
	}
	if (!whole)
		return true;
	if (kind == PLUMB_CALL_COPY)
		plumb_launch_waited(activity->launches, call->correlation,
		                    plumb_clock_ns() - call->start);
	else if (kind == PLUMB_CALL_COPY_BLOCKING || kind == PLUMB_CALL_SYNC)
		plumb_observe(thread, call->node, PLUMB_METRIC_HOST_WAIT, track,
		              (int64_t)(plumb_clock_ns() - call->start));
	return true;
}

/* ---- allocations ---- */

void
plumb_gpu_allocated(struct plumb_gpu_activity *activity, struct plumb_thread *thread, plumb_id node,
                    uint32_t context, uint64_t key, uint64_t bytes)
{
	struct plumb_live_object object = { .bytes = bytes, .record = context }, was;
	plumb_observe(thread, node, PLUMB_METRIC_GPU_ALLOC_BYTES, plumb_thread_track(thread),
	              (int64_t)bytes);
	plumb_count(thread, PLUMB_SOURCE_ALLOCATION, PLUMB_FATE_RECEIVED, 1);
	plumb_count(thread, PLUMB_SOURCE_ALLOCATION, PLUMB_FATE_ATTRIBUTED, 1);
	if (!key)
		return; /* its free could not be told */
	switch (plumb_live_put(&activity->allocations, key, &object, &was)) {
	case PLUMB_LIVE_FULL:
		return;
	case PLUMB_LIVE_REPLACED:
		plumb_memory_driver(thread, was.record, -(int64_t)was.bytes);
		break;
	case PLUMB_LIVE_NEW:
		break;
	}
	plumb_memory_driver(thread, context, (int64_t)bytes);
}

void
plumb_gpu_freed(struct plumb_gpu_activity *activity, struct plumb_thread *thread, plumb_id node,
                uint64_t key)
{
	struct plumb_live_object object;
	/* Else it was made before plumb came, or is no allocation. */
	if (!key || !plumb_live_take(&activity->allocations, key, &object))
		return;
	plumb_observe(thread, node, PLUMB_METRIC_GPU_FREE_BYTES, plumb_thread_track(thread),
	              (int64_t)object.bytes);
	plumb_memory_driver(thread, object.record, -(int64_t)object.bytes);
}
