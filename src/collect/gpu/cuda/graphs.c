/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA graphs, as CUPTI tells of them: nodes that are made and cloned, and graphs that are made
 * executable and launched. What is done with that: collect/gpu/graph.c.
 */
#include "collect/gpu/cuda/runtime.h"
#include "collect/object.h"

static uint64_t
number_of(CUgraphNode node)
{
	uint64_t number = 0;
	if (!node || !plumb_cupti.GetGraphNodeId ||
	    plumb_cupti.GetGraphNodeId(node, &number) != CUPTI_SUCCESS)
		return 0;
	return number;
}

/* The number + 1 of an executable graph; 0: unknown, or nobody asks for it. */
static uint32_t
executable_number(CUgraphExec graph)
{
	uint32_t number;
	if (!plumb_slot_replays() || plumb_cupti.GetGraphExecId(graph, &number) != CUPTI_SUCCESS ||
	    number >= INT32_MAX)
		return 0;
	return number + 1;
}

uint64_t
plumb_cuda_graph_created(const CUpti_GraphData *data, plumb_id context)
{
	uint64_t number = data ? number_of(data->node) : 0;
	plumb_graph_captured(plumb_cuda_activity, number, context);
	return number;
}

void
plumb_cuda_graph_cloned(const CUpti_GraphData *data)
{
	uint64_t original = data ? number_of(data->originalNode) : 0;
	if (!original)
		return;
	uint64_t number = number_of(data->node);
	plumb_graph_cloned(plumb_cuda_activity, original, number);
	if (plumb_unlikely(plumb_traffic_wanted))
		plumb_cuda_copy_cloned(original, number);
	switch (data->nodeType) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		plumb_graph_add(plumb_cuda_activity, original, PLUMB_GPU_WORK_KERNEL);
		break;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		plumb_graph_add(plumb_cuda_activity, original, PLUMB_GPU_WORK_COPY);
		break;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		plumb_graph_add(plumb_cuda_activity, original, PLUMB_GPU_WORK_SET);
		break;
	case CU_GRAPH_NODE_TYPE_CONDITIONAL: /* its body runs as often as it likes */
		plumb_graph_uncountable();
		break;
	default:
		break;
	}
}

void
plumb_cuda_graph_made(CUgraphExec graph)
{
	plumb_graph_end(plumb_cuda_activity, executable_number(graph));
}

void
plumb_cuda_graph_launched(CUgraphExec graph, uint32_t correlation, plumb_id node)
{
	uint32_t number = executable_number(graph);
	if (number)
		plumb_gpu_replay_launched(plumb_cuda_activity, number, correlation, node);
}
