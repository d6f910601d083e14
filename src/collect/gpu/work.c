/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records → contexts, metrics, ledger, on the reading thread alone.
 *
 * A record finds its launch by the correlation id; its kernel, copy or set hangs under that call. A
 * record without its launch is counted, and its time still shows: at the root, under no call.
 */
#include <string.h>

#include "collect/gpu/activity.h"
#include "collect/gpu/counters.h"
#include "collect/span.h"
#include "collect/table.h"

struct plumb_gpu_activity *
plumb_gpu_activity_new(unsigned log2_launches, const char *graph)
{
	struct plumb_launch_ring *launches = plumb_launch_ring_new(log2_launches);
	struct plumb_gpu_activity *activity = launches ? plumb_map(sizeof *activity, false) : NULL;
	if (activity) {
		activity->launches = launches;
		activity->graph_name = graph;
	}
	return activity;
}

void
plumb_gpu_activity_renew(struct plumb_gpu_activity *activity)
{
	plumb_launch_ring_clear(activity->launches);
	plumb_live_clear(&activity->allocations);
	plumb_graphs_renew(activity);
	plumb_replays_renew(activity);
	memset(&activity->readings, 0, sizeof activity->readings);
	memset(activity->kernels, 0, sizeof activity->kernels);
	memset(activity->variants, 0, sizeof activity->variants);
	memset(activity->seen, 0, sizeof activity->seen);
	activity->delivered = plumb_gpu_launched(activity);
}

void
plumb_gpu_activity_pause(struct plumb_gpu_activity *activity, bool paused)
{
	atomic_store(&activity->paused, paused);
}

bool
plumb_gpu_activity_paused(const struct plumb_gpu_activity *activity)
{
	return atomic_load_explicit(&activity->paused, memory_order_relaxed);
}

void
plumb_gpu_activity_reserve(struct plumb_thread *thread)
{
	static const enum plumb_source sources[] = { PLUMB_SOURCE_LAUNCH, PLUMB_SOURCE_KERNEL,
		                                     PLUMB_SOURCE_COPY, PLUMB_SOURCE_SET };
	static const enum plumb_fate fates[] = { PLUMB_FATE_RECEIVED,      PLUMB_FATE_ATTRIBUTED,
		                                 PLUMB_FATE_REGION_FULL,   PLUMB_FATE_NO_SPACE,
		                                 PLUMB_FATE_RING_MISS,     PLUMB_FATE_NO_LAUNCH,
		                                 PLUMB_FATE_CUPTI_DROPPED, PLUMB_FATE_DUPLICATE,
		                                 PLUMB_FATE_NOT_DELIVERED };
	for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
		for (size_t k = 0; k < sizeof fates / sizeof *fates; k++)
			plumb_count(thread, sources[i], fates[k], 0);
}

bool
plumb_gpu_activity_complete(const struct plumb_gpu_activity *activity)
{
	return activity->delivered >= plumb_gpu_launched(activity);
}

void
plumb_gpu_activity_finish(const struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                          uint64_t dropped)
{
	uint64_t launched = plumb_gpu_launched(activity), delivered = activity->delivered;
	uint64_t missing = launched > delivered ? launched - delivered : 0;
	if (dropped > missing) /* a graph's kernels are many records of one launch */
		dropped = missing;
	if (dropped)
		plumb_count(thread, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_CUPTI_DROPPED, dropped);
	if (missing > dropped)
		plumb_count(thread, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_NOT_DELIVERED,
		            missing - dropped);
}

/* ---- what all kinds of work share ---- */

static bool
seen_before(struct plumb_gpu_activity *activity, const struct plumb_gpu_record *record)
{
	uint64_t signature = plumb_mix(record->start, record->end);
	signature = plumb_mix(signature ^ record->graph_node,
	                      record->correlation << 32 ^ record->stream);
	signature = plumb_mix(signature, (uint64_t)record->device << 32 | record->context << 4 |
	                                         record->source);
	uint64_t *slot = &activity->seen[signature % PLUMB_RECORDS_SEEN];
	if (*slot == signature)
		return true;
	*slot = signature;
	return false;
}

enum plumb_fate
plumb_gpu_fate(struct plumb_thread *thread, plumb_id node)
{
	return node == PLUMB_LOST ? plumb_thread_arena(thread)->fate : PLUMB_FATE_ATTRIBUTED;
}

bool
plumb_gpu_record_begin(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                       struct plumb_gpu_record *record)
{
	struct plumb_ring_launch *launch = &record->launch;
	bool overwritten;
	plumb_count(thread, record->source, PLUMB_FATE_RECEIVED, 1);
	if (seen_before(activity, record)) {
		plumb_count(thread, record->source, PLUMB_FATE_DUPLICATE, 1);
		return false;
	}
	*launch = (struct plumb_ring_launch){ .node = 0 };
	if (!plumb_launch_take(activity->launches, record->correlation, launch, &overwritten)) {
		launch->node = 0;
		plumb_count(thread, record->source,
		            overwritten ? PLUMB_FATE_RING_MISS : PLUMB_FATE_NO_LAUNCH, 1);
	} else if (launch->node == PLUMB_LAUNCH_PAUSED) {
		plumb_count(thread, record->source, PLUMB_FATE_PAUSED, 1);
		return false;
	} else if (launch->node == PLUMB_LOST) { /* what hangs under it is lost for its reason */
		plumb_thread_arena(thread)->fate = launch->track == PLUMB_FATE_NO_SPACE
		                                           ? PLUMB_FATE_NO_SPACE
		                                           : PLUMB_FATE_REGION_FULL;
	}
	if (launch->node && !launch->taken) {
		activity->delivered++;
		plumb_count(thread, PLUMB_SOURCE_LAUNCH, plumb_gpu_fate(thread, launch->node), 1);
	}
	if (record->graph_node && launch->node && launch->node != PLUMB_LOST)
		launch->node =
			plumb_graph_place(activity, thread, launch->node, record->graph_node);
	if (!record->start || record->end < record->start) {
		if (launch->node)
			plumb_count(thread, record->source,
			            record->source == PLUMB_SOURCE_KERNEL &&
			                            plumb_gpu_counters_untimed()
			                    ? PLUMB_FATE_COUNTED
			                    : PLUMB_FATE_CUPTI_DROPPED,
			            1);
		return false;
	}
	return true;
}

plumb_id
plumb_gpu_place(struct plumb_thread *thread, const struct plumb_gpu_record *record,
                struct plumb_gpu_device *device, plumb_id node)
{
	if (record->launch.node)
		plumb_count(thread, record->source, plumb_gpu_fate(thread, node), 1);
	if (!device)
		return 0;
	plumb_id stream = plumb_gpu_stream(thread, device, record->context, record->stream);
	plumb_gpu_work(device, record->kind, node, stream, record->start, record->end,
	               record->bytes);
	if (plumb_unlikely(plumb_trace_on))
		plumb_span_work(thread, node, stream, record->start, record->end,
		                (uint32_t)record->correlation, record->bytes);
	return stream;
}

/* ---- copies and sets ---- */

plumb_id
plumb_gpu_transfer(struct plumb_thread *thread, const struct plumb_gpu_record *record,
                   struct plumb_gpu_device *device, const struct plumb_gpu_copy *copy)
{
	const struct plumb_ring_launch *launch = &record->launch;
	enum plumb_frame_kind kind =
		record->kind == PLUMB_GPU_WORK_SET ? PLUMB_FRAME_SET : PLUMB_FRAME_COPY;
	char name[PLUMB_TRANSFER_NAME];
	plumb_transfer_name(name, copy->kinds);
	plumb_id node = copy->from && copy->to
	                        ? plumb_child_copy(thread, launch->node, name,
	                                           plumb_gpu_device_id(copy->from),
	                                           plumb_gpu_device_id(copy->to))
	                        : plumb_child_named(thread, launch->node, kind, name);
	plumb_id track = plumb_gpu_place(thread, record, device, node);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_COPY_TIME, track,
	              (int64_t)(record->end - record->start));
	plumb_observe(thread, node, PLUMB_METRIC_GPU_COPY_BYTES, track, (int64_t)record->bytes);
	if (copy->blocked && launch->node && !launch->taken && launch->host_wait)
		plumb_observe(thread, node, PLUMB_METRIC_HOST_WAIT, launch->track,
		              (int64_t)launch->host_wait);
	return node;
}
