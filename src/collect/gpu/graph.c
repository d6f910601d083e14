/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured graphs: in which context each node was captured, and which nodes an executable graph
 * has.
 *
 * A node is made within the driver call that is captured. When a graph is made executable, its
 * nodes are cloned under new numbers. A record of a replay names its node. Its work stays at the
 * launch of the graph, under a GRAPH frame that says what was captured where (operator, innermost
 * Python line), with the capture's context as origin: nodes of different places stay apart.
 */
#include <string.h>
#include <sys/mman.h>

#include "collect/gpu/activity.h"
#include "collect/table.h"

#define PLACES 8192u         /* GRAPH frames by launch and node */
#define NODES_MAX (1u << 20) /* of all executable graphs together */

struct plumb_graph_place {
	uint64_t number;
	plumb_id parent, frame;
};

void
plumb_graphs_renew(struct plumb_gpu_activity *activity)
{
	plumb_live_clear(&activity->captures);
	plumb_live_clear(&activity->executables); /* their nodes stay mapped: some MB at most */
	atomic_store(&activity->nodes_kept, 0);
	if (activity->graph_places)
		memset(activity->graph_places, 0, PLACES * sizeof *activity->graph_places);
}

/* ---- nodes ---- */

static void
remember_capture(struct plumb_gpu_activity *activity, uint64_t number,
                 const struct plumb_live_object *object)
{
	struct plumb_live_object was;
	if (number && object->record && object->record != PLUMB_LOST)
		(void)plumb_live_put(&activity->captures, number, object, &was);
}

void
plumb_graph_captured(struct plumb_gpu_activity *activity, uint64_t number, plumb_id context)
{
	remember_capture(activity, number, &(struct plumb_live_object){ .record = context });
}

void
plumb_graph_named(struct plumb_gpu_activity *activity, uint64_t number, plumb_id name)
{
	struct plumb_live_object object;
	if (number && plumb_live_get(&activity->captures, number, &object)) {
		object.owner = name;
		remember_capture(activity, number, &object);
	}
}

void
plumb_graph_cloned(struct plumb_gpu_activity *activity, uint64_t original, uint64_t number)
{
	struct plumb_live_object object;
	if (plumb_live_get(&activity->captures, original, &object))
		remember_capture(activity, number, &object);
}

/* ---- executable graphs ---- */

static _Thread_local struct {
	struct plumb_graph_node *nodes;
	uint32_t count, room;
	bool active, uncountable;
} making;

static bool
grow_nodes(void)
{
	uint32_t room = making.room ? 2 * making.room : 256;
	struct plumb_graph_node *nodes = plumb_map(room * sizeof *nodes, false);
	if (!nodes)
		return false;
	if (making.room) {
		memcpy(nodes, making.nodes, making.count * sizeof *nodes);
		munmap(making.nodes, making.room * sizeof *nodes);
	}
	making.nodes = nodes;
	making.room = room;
	return true;
}

void
plumb_graph_begin(bool counted)
{
	making.active = counted;
	making.count = 0;
	making.uncountable = false;
}

void
plumb_graph_add(struct plumb_gpu_activity *activity, uint64_t original,
                enum plumb_gpu_work_kind kind)
{
	struct plumb_live_object object = { 0 };
	if (!making.active)
		return;
	if (making.count == NODES_MAX || (making.count == making.room && !grow_nodes())) {
		making.uncountable = true;
		return;
	}
	(void)plumb_live_get(&activity->captures, original, &object);
	making.nodes[making.count++] = (struct plumb_graph_node){
		.context = object.record,
		.name = object.owner,
		.kind = kind,
	};
}

void
plumb_graph_uncountable(void)
{
	making.uncountable = true;
}

void
plumb_graph_end(struct plumb_gpu_activity *activity, uint64_t number)
{
	struct plumb_live_object was, object = {
		.bytes = (uint64_t)(uintptr_t)making.nodes,
		.record = making.count,
	};
	bool kept = false;
	if (making.count && !making.uncountable && number) {
		kept = atomic_fetch_add(&activity->nodes_kept, making.count) <= NODES_MAX;
		if (!kept)
			atomic_fetch_sub(&activity->nodes_kept, making.count);
	}
	if (kept)
		(void)plumb_live_put(&activity->executables, number, &object, &was);
	else if (making.room)
		munmap(making.nodes, making.room * sizeof *making.nodes);
	making.active = false;
	making.nodes = NULL; /* they are the graph's now */
	making.count = making.room = 0;
}

uint32_t
plumb_graph_nodes(const struct plumb_gpu_activity *activity, uint64_t number,
                  const struct plumb_graph_node **nodes)
{
	struct plumb_live_object object;
	if (!plumb_live_get(&activity->executables, number, &object))
		return 0;
	*nodes = (const struct plumb_graph_node *)(uintptr_t)object.bytes;
	return object.record;
}

void
plumb_graph_changed(struct plumb_gpu_activity *activity)
{
	atomic_store_explicit(&activity->graphs_changed, true, memory_order_relaxed);
}

/* ---- frames ---- */

/* The GRAPH frame's identity: what was captured, and the line it was called from. */
static bool
read_key(struct plumb_thread *thread, plumb_id capture, struct plumb_key *key)
{
	struct plumb_region *region = plumb_thread_arena(thread)->region;
	*key = (struct plumb_key){ .kind = PLUMB_FRAME_GRAPH };
	for (plumb_id id = capture; id;) {
		const struct plumb_record_node *node = plumb_region_at(region, id);
		if (!key->name && (node->kind == PLUMB_FRAME_OPERATOR || !node->parent))
			key->name = node->name;
		if (node->kind == PLUMB_FRAME_PYTHON) {
			key->file = node->file;
			key->line = node->line;
			if (!key->name) { /* no operator: the driver's function */
				const struct plumb_record_node *call =
					plumb_region_at(region, capture);
				key->name = call->name;
			}
			return true;
		}
		id = node->parent;
	}
	return key->name != 0;
}

plumb_id
plumb_graph_frame(struct plumb_thread *thread, plumb_id parent, plumb_id capture)
{
	struct plumb_key key;
	if (!capture || !read_key(thread, capture, &key))
		return parent;
	plumb_id frame = plumb_child(thread, parent, &key);
	plumb_origin(thread, frame, capture, PLUMB_ORIGIN_GRAPH_CAPTURE);
	return frame;
}

static plumb_id
find_frame(struct plumb_gpu_activity *activity, struct plumb_thread *thread, plumb_id parent,
           uint64_t number)
{
	struct plumb_live_object object;
	struct plumb_graph_place *places = activity->graph_places;
	if (!places)
		places = activity->graph_places = plumb_map(PLACES * sizeof *places, false);
	struct plumb_graph_place *place =
		places ? &places[plumb_mix(number, parent) % PLACES] : NULL;
	if (place && place->number == number && place->parent == parent)
		return place->frame;
	plumb_id frame = parent;
	if (plumb_live_get(&activity->captures, number, &object))
		frame = plumb_graph_frame(thread, parent, object.record);
	if (place)
		*place = (struct plumb_graph_place){ number, parent, frame };
	return frame;
}

plumb_id
plumb_graph_place(struct plumb_gpu_activity *activity, struct plumb_thread *thread, plumb_id parent,
                  uint64_t number)
{
	plumb_id frame = find_frame(activity, thread, parent, number);
	plumb_count(thread, PLUMB_SOURCE_GRAPH, PLUMB_FATE_RECEIVED, 1);
	plumb_count(thread, PLUMB_SOURCE_GRAPH,
	            frame == parent ? PLUMB_FATE_NO_CAPTURE : PLUMB_FATE_ATTRIBUTED, 1);
	return frame;
}
