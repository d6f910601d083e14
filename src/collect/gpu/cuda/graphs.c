/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured graphs: which context each node was captured in.
 *
 * A node is made within the driver call that is captured, and CUPTI has a number for it; instantiating a
 * graph clones its nodes under new numbers. A kernel of a replay names its node. Its work stays at the
 * launch of the graph, under a GRAPH frame that says what was captured where (operator, innermost Python
 * line), with the capture's context as origin: nodes of different places stay apart.
 */
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

static void
remember(uint64_t number, plumb_id context)
{
	struct plumb_live_object was, object = { .record = context };
	if (number && context && context != PLUMB_LOST)
		(void)plumb_live_put(&captures, number, &object, &was);
}

void
plumb_graph_created(const CUpti_GraphData *data, plumb_id context)
{
	if (data)
		remember(number_of(data->node), context);
}

void
plumb_graph_cloned(const CUpti_GraphData *data)
{
	struct plumb_live_object object;
	uint64_t original = data ? number_of(data->originalNode) : 0;
	if (original && plumb_live_get(&captures, original, &object))
		remember(number_of(data->node), object.record);
}

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
plumb_graph_place(struct plumb_thread *thread, plumb_id parent, uint64_t number)
{
	struct plumb_live_object object;
	struct plumb_key key;
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
	if (parent && parent != PLUMB_LOST && plumb_live_get(&captures, number, &object) &&
	    key_of(thread, object.record, &key)) {
		frame = plumb_child(thread, parent, &key);
		plumb_origin(thread, frame, object.record, PLUMB_ORIGIN_GRAPH_CAPTURE);
	}
	plumb_count(thread, PLUMB_SOURCE_GRAPH,
	            frame == parent ? PLUMB_FATE_NO_CAPTURE : PLUMB_FATE_ATTRIBUTED, 1);
	if (place)
		*place = (struct place){ number, parent, frame };
	return frame;
}
