/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iterations of a loop as a graph of states, as in DeepProf: segments of kernels that always
 * run one after another, what follows what, how often, and how long it takes.
 *
 *	struct plumb_state_graph_query query = { .history = -1, .most = 100 };
 *	struct plumb_state_graph graph;
 *	if (plumb_state_graph_find(profile, track, level, &query, &graph) < 0) …
 *	plumb_state_graph_free(&graph);
 */
#ifndef PLUMB_ANALYZE_STEPS_STATE_GRAPH_H
#define PLUMB_ANALYZE_STEPS_STATE_GRAPH_H

#include "analyze/iterations.h"
#include "analyze/pattern/states.h"

struct plumb_state_graph_query {
	int history;   /* as in struct plumb_states_input */
	uint32_t most; /* states; likewise */
};

/* Times of all visits together. */
struct plumb_graph_state {
	int64_t kernel_ns;         /* of its kernels, added up */
	int64_t wait_ns;           /* between its kernels, without a kernel of the loop */
	int64_t least_ns, most_ns; /* of one visit, from its first kernel's start to its last one's
	                              end; PLUMB_UNKNOWN of joined ones, begin and end */
};

/* A kernel of a segment. */
struct plumb_graph_kernel {
	uint32_t frame;
	int64_t ns; /* of all visits */
};

/* The time between what was before and what comes next, without a kernel of the loop; of all that
 * went this way. */
struct plumb_graph_wait {
	int64_t sum_ns, most_ns;
};

struct plumb_state_graph {
	struct plumb_states states;
	struct plumb_graph_state *times;    /* by state */
	struct plumb_graph_kernel *kernels; /* by place in states.symbols */
	struct plumb_graph_wait *waits;     /* by transition */
	uint32_t iterations;
	int64_t kernel_ns; /* of all states */
	/* From the end of an iteration to the begin of the next one, where that follows it. */
	uint32_t again;
	struct plumb_graph_wait again_wait;
};

/* LEVEL is of TRACK, which was found in PROFILE. PLUMB_ESYSTEM: no memory. Call
 * plumb_state_graph_free even after an error. */
int plumb_state_graph_find(const struct plumb_profile *profile,
                           const struct plumb_iteration_track *track,
                           const struct plumb_iteration_level *level,
                           const struct plumb_state_graph_query *query,
                           struct plumb_state_graph *graph) PLUMB_MUST_CHECK;
void plumb_state_graph_free(struct plumb_state_graph *graph);

#endif
