/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replays of CUDA graphs. A record for each node of each replay costs a graph of short kernels a tenth
 * of its time, one record for the replay nothing. So the nodes of one replay in N have records, of
 * every graph at every place it is launched from, and every other replay has one. Its nodes are those
 * of the measured ones: so often each, and as long as they took there, in proportion to how long the
 * whole replay took.
 *
 * Which of the two a replay has, the program's thread decides at the launch (slot.c switches). What it
 * said stands under the call's correlation id, so that records may come in any order. Nodes that are
 * added to the totals later than their replay ended are counted by plumb_replays_settle.
 */
#include <string.h>
#include <sys/mman.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/process.h"
#include "collect/table.h"

#define RING_LOG2 14u /* launches of graphs that may wait for their record */
#define DECIDED 1024u /* graphs by place, that a decision is remembered of */
#define PLACES 1024u  /* the same, that records are remembered of */
#define QUIET 2u      /* rounds without a measured node, after which a replay's were all read */

/* ---- on the program's threads ---- */

static struct plumb_launch_ring *ring; /* node: the graph's number here; track: the launch's node */
static uint32_t every;                 /* N */
static _Atomic uint32_t generation;    /* of nodes, which a program may change */
static struct {
	_Atomic uint64_t key;
	_Atomic uint32_t replays;
} decided[DECIDED];

/* ---- on the service thread ---- */

/* The work of one context and configuration in the measured replays. */
struct item {
	struct plumb_replay_work once; /* ns, bytes: of all */
	uint64_t count;
};

static struct place {
	uint32_t graph;
	plumb_id launch;
	struct item *items;
	uint32_t count, room, next; /* next: the likeliest item, as nodes come in their order */
	uint32_t quiet;             /* rounds since the last of them came */
	/* Measured replays that are over, and the one that is not known to be. */
	uint64_t replays, ns;
	uint32_t correlation;
	uint64_t start, end;
	/* Replays that had one record, and are not yet told. */
	uint64_t pending, pending_ns;
} *places;

bool
plumb_replays_init(unsigned one_in)
{
	every = one_in;
	if (every <= 1)
		return false;
	ring = plumb_launch_ring_new(RING_LOG2);
	places = plumb_map(PLACES * sizeof *places, false);
	return ring && places;
}

/* ---- launches ---- */

bool
plumb_replay_enter(CUgraphExec graph, uint32_t correlation, plumb_id node)
{
	uint32_t number;
	if (!plumb_slot_replays() || node == PLUMB_LOST ||
	    plumb_cupti.GetGraphExecId(graph, &number) != CUPTI_SUCCESS)
		return false;
	uint64_t mixed = plumb_mix(number, atomic_load_explicit(&generation, memory_order_acquire));
	struct plumb_launch launch = { .node = (uint32_t)mixed >> 1 | 1, .track = node };
	plumb_launch_put(ring, correlation, &launch);
	uint64_t key = (uint64_t)launch.node << 32 | node;
	uint64_t at = plumb_mix(key, 0) % DECIDED;
	if (atomic_load_explicit(&decided[at].key, memory_order_relaxed) != key) {
		atomic_store_explicit(&decided[at].key, key, memory_order_relaxed);
		atomic_store_explicit(&decided[at].replays, 0, memory_order_relaxed);
	}
	uint32_t replay = atomic_fetch_add_explicit(&decided[at].replays, 1, memory_order_relaxed);
	return replay % every == 0 && plumb_slot_nodes_begin();
}

void
plumb_replay_exit(void)
{
	plumb_slot_nodes_end();
}

void
plumb_replay_changed(void)
{
	atomic_fetch_add_explicit(&generation, 1, memory_order_release);
}

/* ---- records ---- */

static struct place *
place_of(uint32_t correlation)
{
	struct plumb_launch launch;
	bool overwritten;
	if (!places || !plumb_launch_take(ring, correlation, &launch, &overwritten))
		return NULL;
	uint64_t hash = plumb_mix(launch.node, launch.track);
	for (unsigned i = 0; i < PLACES; i++) {
		struct place *place = &places[(hash + i) % PLACES];
		if (!place->graph)
			*place = (struct place){ .graph = launch.node, .launch = launch.track };
		if (place->graph == launch.node && place->launch == launch.track)
			return place;
	}
	return NULL;
}

static bool
grow(struct place *place)
{
	uint32_t room = place->room ? 2 * place->room : 64;
	struct item *items = plumb_map(room * sizeof *items, false);
	if (!items)
		return false;
	if (place->room) {
		memcpy(items, place->items, place->count * sizeof *items);
		munmap(place->items, place->room * sizeof *items);
	}
	place->items = items;
	place->room = room;
	return true;
}

static struct item *
item_of(struct place *place, const struct plumb_replay_work *work)
{
	for (uint32_t i = 0; i < place->count; i++) {
		uint32_t at = (place->next + i) % place->count;
		const struct plumb_replay_work *known = &place->items[at].once;
		if (known->node == work->node && known->track == work->track &&
		    known->variant == work->variant) {
			place->next = at + 1;
			return &place->items[at];
		}
	}
	if (place->count == place->room && !grow(place))
		return NULL;
	struct item *item = &place->items[place->count++];
	*item = (struct item){ .once = *work };
	item->once.ns = item->once.bytes = 0;
	place->next = place->count;
	return item;
}

/* The replay at hand is over. */
static void
close_replay(struct place *place)
{
	if (!place->end)
		return;
	place->replays++;
	place->ns += place->end - place->start;
	place->start = place->end = 0;
}

void
plumb_replay_measured(uint32_t correlation, const struct plumb_replay_work *work, uint64_t start,
                      uint64_t end)
{
	struct place *place = work->node && work->node != PLUMB_LOST ? place_of(correlation) : NULL;
	struct item *item = place ? item_of(place, work) : NULL;
	if (!item)
		return;
	if (place->correlation != correlation)
		close_replay(place);
	if (!place->end || start < place->start)
		place->start = start;
	if (end > place->end)
		place->end = end;
	place->correlation = correlation;
	place->quiet = 0;
	item->once.ns += work->ns;
	item->once.bytes += work->bytes;
	item->count++;
}

bool
plumb_replay_whole(uint32_t correlation, uint64_t ns)
{
	struct place *place = place_of(correlation);
	if (!place)
		return false;
	place->pending++;
	place->pending_ns += ns;
	return true;
}

/* ---- the nodes of replays that had one record ---- */

/* Every node was measured equally often: no measured replay is known in part only. */
static bool
is_whole(const struct place *place)
{
	for (uint32_t i = 0; i < place->count; i++)
		if (place->items[i].count % place->replays)
			return false;
	return true;
}

static void
tell(struct plumb_thread *thread, struct place *place)
{
	/* How long a replay took, against the measured ones. */
	double pace = place->ns ? (double)place->pending_ns / (double)place->pending *
	                                  (double)place->replays / (double)place->ns
	                        : 1.0;
	for (uint32_t i = 0; i < place->count; i++) {
		const struct item *item = &place->items[i];
		struct plumb_replay_work each = item->once;
		uint64_t times = place->pending * item->count / place->replays;
		each.ns = (uint64_t)((double)item->once.ns / (double)item->count * pace + 0.5);
		each.bytes = item->once.bytes / item->count;
		if (!times)
			continue;
		plumb_count(thread, PLUMB_SOURCE_GRAPH, PLUMB_FATE_RECEIVED, times);
		plumb_count(thread, PLUMB_SOURCE_GRAPH, PLUMB_FATE_ESTIMATED, times);
		plumb_records_add(thread, &each, times);
	}
	place->pending = place->pending_ns = 0;
}

void
plumb_replays_settle(struct plumb_thread *thread, bool end)
{
	for (unsigned i = 0; places && i < PLACES; i++) {
		struct place *place = &places[i];
		if (!place->graph || !place->pending)
			continue;
		if (place->quiet < QUIET)
			place->quiet++;
		if (place->quiet == QUIET || end)
			close_replay(place);
		if (place->replays && !place->end && (end || is_whole(place))) {
			tell(thread, place);
		} else if (end) {
			plumb_count(thread, PLUMB_SOURCE_REPLAY, PLUMB_FATE_RECEIVED,
			            place->pending);
			plumb_count(thread, PLUMB_SOURCE_REPLAY, PLUMB_FATE_UNKNOWN_NODES,
			            place->pending);
		}
	}
}
