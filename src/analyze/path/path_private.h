/* SPDX-License-Identifier: Apache-2.0 */
/* The graph behind path.h. Private to analyze/path/. */
#ifndef PLUMB_ANALYZE_PATH_PATH_PRIVATE_H
#define PLUMB_ANALYZE_PATH_PATH_PRIVATE_H

#include "analyze/path/part.h"
#include "analyze/path/path.h"
#include "base/vec.h"
#include "model/launches.h"

#define PLUMB_PATH_ROUNDING_NS 1000 /* traces in µs round begin and end apart */

/* Node 2i is the begin of span i, 2i + 1 its end; behind those the gates of collectives. */
static inline uint32_t
plumb_path_begin(uint32_t span)
{
	return 2 * span;
}

static inline uint32_t
plumb_path_end(uint32_t span)
{
	return 2 * span + 1;
}

enum plumb_path_flag {
	PLUMB_PATH_WAITS = 1 << 0,    /* the time since the node before is no work */
	PLUMB_PATH_WORK = 1 << 1,     /* of a stream */
	PLUMB_PATH_LEFT_OUT = 1 << 2, /* its times are none */
};

struct plumb_path_node {
	int64_t at;
	uint32_t before; /* the node that always comes before; PLUMB_NONE */
	uint32_t owner;  /* the span whose time lies between the two; PLUMB_NONE: of no span */
	uint32_t edge;   /* the first of what else comes before; PLUMB_NONE */
	uint32_t flags;  /* enum plumb_path_flag */
};

enum plumb_path_edge_kind {
	PLUMB_PATH_BY_LAUNCH,
	PLUMB_PATH_BY_EVENT,
	PLUMB_PATH_BY_SYNC,
	PLUMB_PATH_BY_THREAD, /* the time is of the thread it comes from */
	PLUMB_PATH_BY_RETURN, /* of the one it goes to */
	PLUMB_PATH_BY_PEER,
};

struct plumb_path_edge {
	int64_t length; /* of what lies between at least */
	uint32_t from, next;
	uint32_t owner;             /* of the length; PLUMB_NONE: of no span */
	uint32_t kind : 3, to : 29; /* enum plumb_path_edge_kind; a node */
};

/* Numbers of nodes and edges leave bits for marks (struct plumb_path_edge, window.c). */
#define PLUMB_PATH_NODES_MOST (UINT32_C(1) << 29)
#define PLUMB_PATH_EDGES_MOST (UINT32_C(1) << 29)

/* Ends of the works of one process on one device, ascending. */
struct plumb_path_done {
	int64_t at;
	uint32_t span;
};
struct plumb_path_place {
	uint32_t process, device;
	struct plumb_path_done *done;
	uint32_t count;
	uint32_t streams; /* how many have work */
};

struct plumb_path {
	const struct plumb_profile *profile; /* with the spans that the graph is made of */
	struct plumb_path_part part;
	struct plumb_profile cut; /* of a part: the profile with these spans: */
	struct plumb_span *spans;
	struct plumb_path_facts facts;
	struct plumb_path_node *nodes;
	uint32_t count; /* of nodes, gates included */
	PLUMB_VEC(struct plumb_path_edge) edges;
	uint32_t *first_span;               /* by track, and one more: where its spans begin */
	uint32_t *first_track, *next_track; /* by process, by track: its tracks; PLUMB_NONE */
	uint32_t *busiest;   /* by process: its thread with most spans, or PLUMB_NONE */
	uint32_t *last_node; /* by track, of threads: PLUMB_NONE where there is none */
	uint32_t *launch;    /* by span, of works: the driver call, or PLUMB_NONE */
	/* by span, of works: when the latest call up to it on its stream began */
	int64_t *submitted;
	unsigned char *kinds; /* by context: enum plumb_path_kind of its spans */
	struct plumb_launches calls;
	PLUMB_VEC(struct plumb_path_place) places;
	PLUMB_VEC(struct plumb_path_node) gates; /* until they are behind the other nodes */
	uint32_t *position;                      /* by node: in the window's order, or PLUMB_NONE */
};

/* A gate is where the last rank of a collective has come. */
static inline bool
plumb_path_is_gate(const struct plumb_path *path, uint32_t node)
{
	return node >= 2 * path->profile->spans_count;
}

/* How long NODE comes after the one that always comes before it, which it has. */
static inline int64_t
plumb_path_length_before(const struct plumb_path *path, uint32_t node)
{
	const struct plumb_path_node *n = &path->nodes[node];
	bool begins = n->flags & PLUMB_PATH_WORK && node % 2 == 0;

	return begins || n->flags & PLUMB_PATH_WAITS ? 0 : n->at - path->nodes[n->before].at;
}

/* Before NODE, which has NUMBER, comes what EDGE says. False: memory is out. */
bool plumb_path_add_edge(struct plumb_path *path, struct plumb_path_node *node, uint32_t number,
                         struct plumb_path_edge edge);

/* Before node TO comes FROM. False: memory is out. */
bool plumb_path_edge(struct plumb_path *path, uint32_t from, uint32_t to, uint32_t kind,
                     int64_t length, uint32_t owner);

/* The call of PROCESS with CORRELATION, as plumb_launch_of; PLUMB_NONE: none, or its times are
 * none. */
uint32_t plumb_path_call(struct plumb_path *path, uint32_t process, uint64_t correlation);
uint32_t plumb_path_process(const struct plumb_path *path, uint32_t span);
/* The work of PROCESS on DEVICE (PLUMB_NONE: any) that was over last by AT, or PLUMB_NONE. NOT_ON:
 * a track to leave out, or PLUMB_NONE. */
uint32_t plumb_path_last_done(const struct plumb_path *path, uint32_t process, uint32_t device,
                              uint32_t not_on, int64_t at);

/* Each a part of the graph; false: memory is out. In this order. */
bool
plumb_path_threads(struct plumb_path *path); /* threads.c: what threads did, one after another */
bool
plumb_path_streams(struct plumb_path *path); /* streams.c: works, their order and their calls */
bool plumb_path_collectives(struct plumb_path *path); /* collectives.c */
bool plumb_path_waits(struct plumb_path *path);       /* waits.c: synchronisation and events */
bool plumb_path_engine(struct plumb_path *path);      /* engine.c: autograd's threads */

#endif
