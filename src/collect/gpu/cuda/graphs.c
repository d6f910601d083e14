/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured graphs: which context each node was captured in, and which nodes an executable graph
 * has.
 *
 * A node is made within the driver call that is captured, and CUPTI has a number for it;
 * instantiating a graph clones its nodes under new numbers. A kernel of a replay names its node.
 * Its work stays at the launch of the graph, under a GRAPH frame that says what was captured where
 * (operator, innermost Python line), with the capture's context as origin: nodes of different
 * places stay apart.
 */
#include <string.h>
#include <sys/mman.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/live.h"
#include "collect/table.h"

#define PLACES 8192u /* GRAPH frames by launch and node */

static struct plumb_live captures; /* by number of the node */
static struct place {
	uint64_t number;
	plumb_id parent, frame;
} *places; /* the service thread's */

static uint64_t
number_of(CUgraphNode node)
{
	uint64_t number = 0;
	if (!node || !plumb_cupti.GetGraphNodeId ||
	    plumb_cupti.GetGraphNodeId(node, &number) != CUPTI_SUCCESS)
		return 0;
	return number;
}

/* OBJECT: record, the context; owner, the kernel's name; bytes, the node's type. */
static void
remember(uint64_t number, const struct plumb_live_object *object)
{
	struct plumb_live_object was;
	if (number && object->record && object->record != PLUMB_LOST)
		(void)plumb_live_put(&captures, number, object, &was);
}

uint64_t
plumb_graph_created(const CUpti_GraphData *data, plumb_id context)
{
	uint64_t number = data ? number_of(data->node) : 0;
	struct plumb_live_object object = { .record = context };
	if (number) {
		object.bytes = (uint64_t)data->nodeType;
		remember(number, &object);
	}
	return number;
}

void
plumb_graph_named(uint64_t number, plumb_id name)
{
	struct plumb_live_object object;
	if (number && plumb_live_get(&captures, number, &object)) {
		object.owner = name;
		remember(number, &object);
	}
}

/* ---- executable graphs ---- */

#define NODES_MAX (1u << 20) /* of all graphs together */

static struct plumb_live executables; /* by number + 1; bytes: the nodes; record: how many */
static _Atomic uint32_t kept;
static _Atomic bool changed;
static _Thread_local struct {
	struct plumb_graph_node *nodes;
	uint32_t count, room;
	bool active, unknown; /* unknown: its nodes cannot be counted */
} making;

static bool
making_grow(void)
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
plumb_graph_begin(void)
{
	making.active = plumb_slot_replays();
	making.count = 0;
	making.unknown = false;
}

void
plumb_graph_cloned(const CUpti_GraphData *data)
{
	struct plumb_live_object object = { 0 };
	uint64_t original = data ? number_of(data->originalNode) : 0;
	if (!original)
		return;
	bool known = plumb_live_get(&captures, original, &object);
	if (known)
		remember(number_of(data->node), &object);
	CUgraphNodeType type = data->nodeType;
	if (!making.active)
		return;
	if (type == CU_GRAPH_NODE_TYPE_CONDITIONAL) /* its body runs as often as it likes */
		making.unknown = true;
	if (type != CU_GRAPH_NODE_TYPE_KERNEL && type != CU_GRAPH_NODE_TYPE_MEMCPY &&
	    type != CU_GRAPH_NODE_TYPE_MEMSET)
		return;
	if (making.count == NODES_MAX || (making.count == making.room && !making_grow())) {
		making.unknown = true;
		return;
	}
	making.nodes[making.count++] = (struct plumb_graph_node){
		.context = known ? object.record : 0,
		.name = known ? object.owner : 0,
		.type = (uint32_t)type,
	};
}

void
plumb_graph_end(CUgraphExec graph)
{
	uint32_t number, count = making.count;
	struct plumb_live_object was, object = { .record = count };
	bool kept_now = false;
	making.active = false;
	if (count && !making.unknown && plumb_cupti.GetGraphExecId &&
	    plumb_cupti.GetGraphExecId(graph, &number) == CUPTI_SUCCESS) {
		kept_now = atomic_fetch_add(&kept, count) <= NODES_MAX;
		if (!kept_now)
			atomic_fetch_sub(&kept, count);
	}
	object.bytes = (uint64_t)(uintptr_t)making.nodes;
	if (kept_now)
		(void)plumb_live_put(&executables, (uint64_t)number + 1, &object, &was);
	else if (making.room)
		munmap(making.nodes, making.room * sizeof *making.nodes);
	making.nodes = NULL; /* they are the graph's now */
	making.count = making.room = 0;
}

void
plumb_graphs_renew(void)
{
	plumb_live_clear(&captures);
	plumb_live_clear(&executables); /* their nodes stay mapped: some MB at the most */
	atomic_store(&kept, 0);
	if (places)
		memset(places, 0, PLACES * sizeof *places);
}

uint32_t
plumb_graph_nodes(uint32_t number, const struct plumb_graph_node **nodes)
{
	struct plumb_live_object object;
	if (!plumb_live_get(&executables, (uint64_t)number + 1, &object))
		return 0;
	*nodes = (const struct plumb_graph_node *)(uintptr_t)object.bytes;
	return object.record;
}

void
plumb_graph_changed(void)
{
	atomic_store_explicit(&changed, true, memory_order_relaxed);
}

bool
plumb_graphs_changed(void)
{
	return atomic_load_explicit(&changed, memory_order_relaxed);
}

/* ---- frames ---- */

/* The GRAPH frame's identity: what was captured, and the line it was called from. */
static bool
key_of(struct plumb_thread *thread, plumb_id capture, struct plumb_key *key)
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
	if (!capture || !key_of(thread, capture, &key))
		return parent;
	plumb_id frame = plumb_child(thread, parent, &key);
	plumb_origin(thread, frame, capture, PLUMB_ORIGIN_GRAPH_CAPTURE);
	return frame;
}

plumb_id
plumb_graph_place(struct plumb_thread *thread, plumb_id parent, uint64_t number)
{
	struct plumb_live_object object;
	if (!places)
		places = plumb_map(PLACES * sizeof *places, false);
	struct place *place = places ? &places[plumb_mix(number, parent) % PLACES] : NULL;
	plumb_count(thread, PLUMB_SOURCE_GRAPH, PLUMB_FATE_RECEIVED, 1);
	if (place && place->number == number && place->parent == parent) {
		plumb_count(thread, PLUMB_SOURCE_GRAPH,
		            place->frame == parent ? PLUMB_FATE_NO_CAPTURE : PLUMB_FATE_ATTRIBUTED,
		            1);
		return place->frame;
	}
	plumb_id frame = parent;
	if (parent && parent != PLUMB_LOST && plumb_live_get(&captures, number, &object))
		frame = plumb_graph_frame(thread, parent, object.record);
	plumb_count(thread, PLUMB_SOURCE_GRAPH,
	            frame == parent ? PLUMB_FATE_NO_CAPTURE : PLUMB_FATE_ATTRIBUTED, 1);
	if (place)
		*place = (struct place){ number, parent, frame };
	return frame;
}
