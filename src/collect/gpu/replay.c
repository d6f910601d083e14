/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays of graphs that have one record each. On CUDA, records of its nodes cost a graph of short
 * kernels a tenth of its time, and one record for the whole costs nothing. What the nodes are is
 * known since the graph was made executable (graph.c). So they are counted exactly, but not timed:
 * the time is the graph's.
 */
#include <stdio.h>
#include <string.h>

#include "collect/gpu/activity.h"
#include "collect/span.h"
#include "collect/table.h"

#define RING_LOG2 14u /* launches of graphs that may wait for their record */
#define PLACES 4096u  /* graphs by the place that launches them */
#define PROBES 64u    /* of the next ones are looked at */

/* A context that a replay adds to. */
struct item {
	plumb_id node;
	enum plumb_gpu_work_kind kind;
	uint32_t times; /* in a replay */
};

struct plumb_replay_place {
	uint32_t graph;
	plumb_id launch, node; /* of the driver's call; of the graph as one kernel */
	struct plumb_gpu_device *device;
	plumb_id track;
	struct item *items;
	uint32_t count, captured; /* items; nodes in a replay whose capture was seen */
	uint32_t nodes;           /* in a replay */
	uint64_t pending;         /* replays that are not yet told */
};

bool
plumb_gpu_replays_init(struct plumb_gpu_activity *activity)
{
	activity->replays = plumb_launch_ring_new(RING_LOG2);
	activity->replay_places = plumb_map(PLACES * sizeof *activity->replay_places, false);
	return activity->replays && activity->replay_places;
}

void
plumb_replays_renew(struct plumb_gpu_activity *activity)
{
	if (activity->replays)
		plumb_launch_ring_clear(activity->replays);
	if (activity->replay_places)
		memset(activity->replay_places, 0, PLACES * sizeof *activity->replay_places);
}

void
plumb_gpu_replay_launched(struct plumb_gpu_activity *activity, uint32_t number,
                          uint64_t correlation, plumb_id node)
{
	struct plumb_ring_launch launch = { .node = number, .track = node };
	if (node && node != PLUMB_LOST)
		plumb_launch_put(activity->replays, correlation, &launch);
}

/* ---- records ---- */

static plumb_id
make_node(struct plumb_thread *thread, plumb_id parent, const struct plumb_graph_node *node)
{
	struct plumb_key key = { .kind = PLUMB_FRAME_KERNEL, .name = node->name };
	if (node->kind == PLUMB_GPU_WORK_COPY)
		return plumb_child_named(thread, parent, PLUMB_FRAME_COPY, "copy");
	if (node->kind == PLUMB_GPU_WORK_SET)
		return plumb_child_named(thread, parent, PLUMB_FRAME_SET, "set");
	return key.name ? plumb_child(thread, parent, &key)
	                : plumb_child_named(thread, parent, PLUMB_FRAME_KERNEL, "?");
}

static void
add_item(struct plumb_replay_place *place, plumb_id node, enum plumb_gpu_work_kind kind)
{
	/* What repeats, repeats soon; else it is told in two parts. */
	for (uint32_t i = place->count; i-- && place->count - i <= 64;)
		if (place->items[i].node == node) {
			place->items[i].times++;
			return;
		}
	place->items[place->count++] = (struct item){ node, kind, 1 };
}

/* Makes the contexts of a graph's nodes at a place where it is launched. */
static void
fill_place(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
           struct plumb_replay_place *place)
{
	const struct plumb_graph_node *nodes;
	char name[64];
	uint32_t count = plumb_graph_nodes(activity, place->graph, &nodes);
	place->items = count ? plumb_map(count * sizeof *place->items, false) : NULL;
	for (uint32_t i = 0; place->items && i < count; i++) {
		plumb_id frame = plumb_graph_frame(thread, place->launch, nodes[i].context);
		plumb_id node = make_node(thread, frame, &nodes[i]);
		place->captured += frame != place->launch;
		if (node != PLUMB_LOST)
			add_item(place, node, nodes[i].kind);
	}
	snprintf(name, sizeof name, "%s", activity->graph_name);
	if (place->items) {
		place->nodes = count;
		snprintf(name, sizeof name, "%s of %u nodes", activity->graph_name, count);
	}
	place->node = plumb_child_named(thread, place->launch, PLUMB_FRAME_KERNEL, name);
}

static struct plumb_replay_place *
find_place(struct plumb_gpu_activity *activity, struct plumb_thread *thread, uint64_t correlation)
{
	struct plumb_ring_launch launch;
	bool overwritten;
	if (!activity->replay_places ||
	    !plumb_launch_take(activity->replays, correlation, &launch, &overwritten))
		return NULL;
	uint64_t hash = plumb_mix(launch.node, launch.track);
	for (unsigned i = 0; i < PROBES; i++) {
		struct plumb_replay_place *place = &activity->replay_places[(hash + i) % PLACES];
		if (!place->graph) {
			*place = (struct plumb_replay_place){ .graph = launch.node,
				                              .launch = launch.track };
			fill_place(activity, thread, place);
		}
		if (place->graph == launch.node && place->launch == launch.track)
			return place;
	}
	return NULL;
}

/* Counts the nodes of the replays that wait. */
static void
tell_place(struct plumb_thread *thread, struct plumb_replay_place *place)
{
	uint64_t executed = place->pending * place->nodes;
	uint64_t captured = place->pending * place->captured;
	for (uint32_t i = 0; i < place->count; i++) {
		const struct item *item = &place->items[i];
		uint64_t times = place->pending * item->times;
		plumb_observe_times(thread, item->node, PLUMB_METRIC_GPU_NODES, place->track, 1,
		                    times);
		if (place->device)
			plumb_gpu_count(place->device, item->kind, times, 0, 0);
	}
	plumb_count(thread, PLUMB_SOURCE_GRAPH, PLUMB_FATE_RECEIVED, executed);
	plumb_count(thread, PLUMB_SOURCE_GRAPH, PLUMB_FATE_ATTRIBUTED, captured);
	if (executed > captured)
		plumb_count(thread, PLUMB_SOURCE_GRAPH, PLUMB_FATE_NO_CAPTURE, executed - captured);
	place->pending = 0;
}

void
plumb_gpu_replays_tell(struct plumb_gpu_activity *activity, struct plumb_thread *thread)
{
	struct plumb_replay_place *places = activity->replay_places;
	for (unsigned i = 0; places && i < PLACES; i++)
		if (places[i].pending)
			tell_place(thread, &places[i]);
}

/* The context for a replay's time. *KNOWN: its nodes will be counted. */
static plumb_id
add_replay(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
           const struct plumb_gpu_record *record, struct plumb_gpu_device *device, plumb_id track,
           bool *known)
{
	struct plumb_replay_place *place = find_place(activity, thread, record->correlation);
	*known = place && place->nodes &&
	         !atomic_load_explicit(&activity->graphs_changed, memory_order_relaxed);
	if (!place)
		return plumb_child_named(thread, record->launch.node, PLUMB_FRAME_KERNEL,
		                         activity->graph_name);
	if (place->pending && (place->track != track || place->device != device))
		tell_place(thread, place);
	place->device = device;
	place->track = track;
	place->pending += *known;
	return place->node;
}

void
plumb_gpu_replay(struct plumb_gpu_activity *activity, struct plumb_thread *thread,
                 const struct plumb_gpu_record *record, struct plumb_gpu_device *device)
{
	bool known;
	uint64_t ns = record->end - record->start;
	plumb_id track =
		device ? plumb_gpu_stream(thread, device, record->context, record->stream) : 0;
	plumb_id node = add_replay(activity, thread, record, device, track, &known);
	if (record->launch.node)
		plumb_count(thread, record->source,
		            known ? plumb_gpu_fate(thread, node) : PLUMB_FATE_UNKNOWN_NODES, 1);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_TIME, track, (int64_t)ns);
	if (!device)
		return;
	/* As one kernel if it is not known what the graph is made of, else its time alone. */
	plumb_gpu_count(device, record->kind, known ? 0 : 1, ns, 0);
	plumb_gpu_busy(device, record->kind, node, track, record->start, record->end);
	if (plumb_unlikely(plumb_trace_on))
		plumb_span_work(thread, node, track, record->start, record->end,
		                (uint32_t)record->correlation, 0);
}
