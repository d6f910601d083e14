/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays of CUDA graphs, each told by one record. Records of its nodes cost a graph of short
 * kernels a tenth of its time; one record for the whole costs nothing. What the nodes are is known
 * since the graph was made (graphs.c), so that they are counted, exactly, but not timed: the time
 * is the graph's.
 */
#include <stdio.h>
#include <string.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/table.h"

#define RING_LOG2 14u /* launches of graphs that may wait for their record */
#define PLACES 4096u  /* graphs by the place that launches them */
#define PROBES 64u    /* of the next ones are looked at */

static struct plumb_launch_ring *ring; /* node: the graph; track: the launch's node */

/* A context that a replay adds to. */
struct item {
	plumb_id node;
	enum plumb_work_kind kind;
	uint32_t times; /* in a replay */
};

static struct place {
	uint32_t graph;
	plumb_id launch, node; /* of the driver's call; of the graph as one kernel */
	struct plumb_gpu_device *device;
	plumb_id track;
	struct item *items;
	uint32_t count, captured; /* items; nodes in a replay whose capture was seen */
	uint32_t nodes;           /* in a replay */
	uint64_t pending;         /* replays that are not yet told */
} *places;

bool
plumb_replays_init(void)
{
	ring = plumb_launch_ring_new(RING_LOG2);
	places = plumb_map(PLACES * sizeof *places, false);
	return ring && places;
}

void
plumb_replays_renew(void)
{
	if (ring)
		plumb_launch_ring_clear(ring);
	if (places)
		memset(places, 0, PLACES * sizeof *places);
}

/* ---- launches, on the program's threads ---- */

void
plumb_replay_launched(CUgraphExec graph, uint32_t correlation, plumb_id node)
{
	uint32_t number;
	if (!plumb_slot_replays() || !node || node == PLUMB_LOST ||
	    plumb_cupti.GetGraphExecId(graph, &number) != CUPTI_SUCCESS || number >= INT32_MAX)
		return;
	struct plumb_launch launch = { .node = number + 1, .track = node };
	plumb_launch_put(ring, correlation, &launch);
}

/* ---- records, on the service thread ---- */

static plumb_id
node_of(struct plumb_thread *thread, plumb_id parent, const struct plumb_graph_node *node)
{
	struct plumb_key key = { .kind = PLUMB_FRAME_KERNEL, .name = node->name };
	switch (node->type) {
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return plumb_child_named(thread, parent, PLUMB_FRAME_COPY, "copy");
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return plumb_child_named(thread, parent, PLUMB_FRAME_SET, "set");
	default:
		return key.name ? plumb_child(thread, parent, &key)
		                : plumb_child_named(thread, parent, PLUMB_FRAME_KERNEL, "?");
	}
}

static void
add_item(struct place *place, plumb_id node, enum plumb_work_kind kind)
{
	/* What repeats, repeats soon; else it is told in two parts. */
	for (uint32_t i = place->count; i-- && place->count - i <= 64;)
		if (place->items[i].node == node) {
			place->items[i].times++;
			return;
		}
	place->items[place->count++] = (struct item){ node, kind, 1 };
}

static enum plumb_work_kind
kind_of(uint32_t type)
{
	return type == CU_GRAPH_NODE_TYPE_MEMCPY   ? PLUMB_WORK_COPY
	       : type == CU_GRAPH_NODE_TYPE_MEMSET ? PLUMB_WORK_SET
	                                           : PLUMB_WORK_KERNEL;
}

/* Makes the contexts of a graph's nodes at a place where it is launched. */
static void
fill(struct plumb_thread *thread, struct place *place)
{
	const struct plumb_graph_node *nodes;
	char name[64] = "CUDA graph";
	uint32_t count = plumb_graph_nodes(place->graph - 1, &nodes);
	place->items = count ? plumb_map(count * sizeof *place->items, false) : NULL;
	for (uint32_t i = 0; place->items && i < count; i++) {
		plumb_id frame = plumb_graph_frame(thread, place->launch, nodes[i].context);
		plumb_id node = node_of(thread, frame, &nodes[i]);
		place->captured += frame != place->launch;
		if (node != PLUMB_LOST)
			add_item(place, node, kind_of(nodes[i].type));
	}
	if (place->items) {
		place->nodes = count;
		snprintf(name, sizeof name, "CUDA graph of %u nodes", count);
	}
	place->node = plumb_child_named(thread, place->launch, PLUMB_FRAME_KERNEL, name);
}

static struct place *
place_of(struct plumb_thread *thread, uint32_t correlation)
{
	struct plumb_launch launch;
	bool overwritten;
	if (!places || !plumb_launch_take(ring, correlation, &launch, &overwritten))
		return NULL;
	uint64_t hash = plumb_mix(launch.node, launch.track);
	for (unsigned i = 0; i < PROBES; i++) {
		struct place *place = &places[(hash + i) % PLACES];
		if (!place->graph) {
			*place = (struct place){ .graph = launch.node, .launch = launch.track };
			fill(thread, place);
		}
		if (place->graph == launch.node && place->launch == launch.track)
			return place;
	}
	return NULL;
}

static void
tell(struct plumb_thread *thread, struct place *place)
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

plumb_id
plumb_replay_add(struct plumb_thread *thread, uint32_t correlation, plumb_id launch,
                 struct plumb_gpu_device *device, plumb_id track, bool *known)
{
	struct place *place = place_of(thread, correlation);
	*known = place && place->nodes && !plumb_graphs_changed();
	if (!place)
		return plumb_child_named(thread, launch, PLUMB_FRAME_KERNEL, "CUDA graph");
	if (place->pending && (place->track != track || place->device != device))
		tell(thread, place);
	place->device = device;
	place->track = track;
	place->pending += *known;
	return place->node;
}

void
plumb_replays_tell(struct plumb_thread *thread)
{
	for (unsigned i = 0; places && i < PLACES; i++)
		if (places[i].pending)
			tell(thread, &places[i]);
}
