/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communicators, calls and operations. What is added up exactly: totals.c. How an operation finds
 * its kernel: kernel.c.
 *
 * All pools are fixed. A communicator's place is used again only after its end, and as late as
 * possible, because some libraries report an operation after its communicator has gone.
 */
#include <string.h>

#include "collect/clock.h"
#include "collect/comm/private.h"
#include "collect/process.h"
#include "collect/table.h"

#define COMMUNICATORS 1024u
#define CALLS 16384u     /* that wait for their operation; a power of two */
#define PEERS 65536      /* ranks of a communicator whose sends and receives are numbered */
#define NAME_BYTES 96u   /* of a communicator; longer ones are cut */
#define RING_MOST 65536u /* operations of a thread that are kept; a power of two */
#define RING_LEAST 64u
#define LIMIT_PART 16u /* of the region's limit, for operations of all threads */

enum { FREE, TAKEN, ALIVE };
struct plumb_comm {
	_Atomic int state;
	_Atomic uint64_t record; /* the generation, and below that the COMMUNICATOR's id */
	uint64_t id;
	int64_t nodes, size, rank;
	char name[NAME_BYTES];
	_Atomic uint32_t *sent; /* how often to each peer, then how often from each; or NULL */
	int64_t sent_size;
};

static struct plumb_comm comms[COMMUNICATORS];
static _Atomic uint32_t newest;

static struct {
	_Atomic uint64_t number; /* 0: free, or being written */
	_Atomic uint64_t called;
	_Atomic uint32_t node;
	_Atomic bool captured;
	_Atomic(const char *) datatype;
} calls[CALLS];
static _Atomic uint64_t newest_call;

static _Atomic uint64_t kept_bytes; /* of COLLECTIVE records */

/* ---- communicators ---- */

static void
take_name(struct plumb_comm *comm, const char *name)
{
	size_t bytes = name ? strnlen(name, NAME_BYTES - 1) : 0;
	memcpy(comm->name, name ? name : "", bytes);
	comm->name[bytes] = '\0';
}

struct plumb_comm *
plumb_comm_new(const struct plumb_comm_facts *facts)
{
	for (uint32_t turn = 0; turn < COMMUNICATORS; turn++) {
		struct plumb_comm *comm = &comms[atomic_fetch_add(&newest, 1) % COMMUNICATORS];
		int state = FREE;
		if (!atomic_compare_exchange_strong(&comm->state, &state, TAKEN))
			continue;
		comm->id = facts->id;
		comm->nodes = facts->nodes;
		comm->size = facts->size;
		comm->rank = facts->rank;
		take_name(comm, facts->name);
		if (facts->size > comm->sent_size && facts->size <= PEERS) {
			comm->sent = plumb_map(2 * (size_t)facts->size * sizeof *comm->sent, true);
			comm->sent_size = comm->sent ? facts->size : 0;
		}
		for (int64_t i = 0; i < 2 * comm->sent_size; i++)
			if (atomic_load_explicit(&comm->sent[i], memory_order_relaxed))
				atomic_store(&comm->sent[i], 0);
		atomic_store(&comm->record, 0);
		atomic_store(&comm->state, ALIVE);
		plumb_comm_wanted = true;
		return comm;
	}
	return NULL;
}

void
plumb_comm_describe(struct plumb_comm *comm, const struct plumb_comm_facts *facts)
{
	if (!comm || atomic_load(&comm->record))
		return;
	if (!comm->id)
		comm->id = facts->id;
	if (!comm->name[0])
		take_name(comm, facts->name);
	if (comm->rank == PLUMB_COMM_UNKNOWN)
		comm->rank = facts->rank;
}

void
plumb_comm_end(struct plumb_comm *comm)
{
	if (comm)
		atomic_store(&comm->state, FREE);
}

/* The communicator's record; 0: there is no room for it. Two threads may both make one; then the
 * second stays unused. */
static plumb_id
record_of(struct plumb_thread *thread, struct plumb_comm *comm)
{
	uint64_t known = atomic_load_explicit(&comm->record, memory_order_acquire), made;
	if (plumb_likely(known >> 32 == plumb_generation + 1u))
		return (plumb_id)known;
	struct plumb_arena *arena = plumb_thread_arena(thread);
	plumb_id name = comm->name[0] ? plumb_intern(thread, comm->name, strlen(comm->name)) : 0;
	struct plumb_record_communicator *record =
		plumb_arena_append(arena, PLUMB_RECORD_COMMUNICATOR, sizeof *record);
	if (!record)
		return 0;
	record->id = comm->id;
	record->name = name;
	record->nodes = comm->nodes;
	record->size = comm->size;
	record->rank = comm->rank;
	plumb_arena_commit(arena, record);
	made = (uint64_t)(plumb_generation + 1u) << 32 | plumb_region_id(arena->region, record);
	return atomic_compare_exchange_strong(&comm->record, &known, made) ? (plumb_id)made
	                                                                   : (plumb_id)known;
}

/* How many operations of KIND with PEER there were: both sides count the same, because a
 * library keeps the order of what one rank sends another. */
static int64_t
next_number(struct plumb_comm *comm, enum plumb_access_kind kind, int64_t peer)
{
	if (peer < 0 || peer >= comm->sent_size)
		return PLUMB_COMM_UNKNOWN;
	return atomic_fetch_add_explicit(
		&comm->sent[(kind == PLUMB_ACCESS_RECEIVE ? comm->sent_size : 0) + peer], 1,
		memory_order_relaxed);
}

/* ---- calls ---- */

uint64_t
plumb_comm_called(bool captured, const char *datatype)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	if (!thread)
		return 0;
	uint64_t number = 1 + atomic_fetch_add_explicit(&newest_call, 1, memory_order_relaxed);
	__typeof__(&calls[0]) call = &calls[number % CALLS];
	atomic_store_explicit(&call->number, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	atomic_store_explicit(&call->called, plumb_clock_ns(), memory_order_relaxed);
	atomic_store_explicit(&call->node, plumb_context_current(thread), memory_order_relaxed);
	atomic_store_explicit(&call->captured, captured, memory_order_relaxed);
	atomic_store_explicit(&call->datatype, datatype, memory_order_relaxed);
	atomic_store_explicit(&call->number, number, memory_order_release);
	plumb_leave(thread);
	return number;
}

struct known_call {
	bool known, captured;
	uint64_t called;
	plumb_id node;
	const char *datatype;
};

static struct known_call
find_call(uint64_t number)
{
	__typeof__(&calls[0]) call = &calls[number % CALLS];
	struct known_call found = { .known = number && number == atomic_load(&call->number) };
	if (!found.known)
		return found;
	found.captured = atomic_load_explicit(&call->captured, memory_order_relaxed);
	found.called = atomic_load_explicit(&call->called, memory_order_relaxed);
	found.node = atomic_load_explicit(&call->node, memory_order_relaxed);
	found.datatype = atomic_load_explicit(&call->datatype, memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	found.known = number == atomic_load_explicit(&call->number, memory_order_relaxed);
	return found;
}

/* ---- operations ---- */

/* A record for the thread's next operation: a new one, or the oldest one again. NULL: no room. */
static struct plumb_record_collective *
next_record(struct plumb_thread *thread, struct plumb_comm_thread *own, bool *again)
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	uint64_t most = plumb_collector_options()->limit / LIMIT_PART;
	struct plumb_record_collective *record = NULL;
	bool full = own->ring_count == RING_MOST ||
	            (own->ring_count >= RING_LEAST && atomic_load(&kept_bytes) >= most);
	if (!full)
		record = plumb_arena_append(arena, PLUMB_RECORD_COLLECTIVE, sizeof *record);
	*again = !record;
	if (record) {
		plumb_arena_commit(arena, record);
		own->ring[own->ring_count++] = plumb_region_id(arena->region, record);
		atomic_fetch_add(&kept_bytes, sizeof *record);
		return record;
	}
	if (!own->ring_count)
		return NULL;
	own->ring_next %= own->ring_count;
	return plumb_region_at(arena->region, own->ring[own->ring_next++]);
}

static plumb_id
text_of(struct plumb_thread *thread, const char *text)
{
	return text && *text ? plumb_name(thread, text) : 0;
}

static int64_t
bytes_of(const struct plumb_comm_operation *operation)
{
	uint64_t bytes;
	return !operation->element ||
	                       __builtin_mul_overflow(operation->count, operation->element,
	                                              &bytes) ||
	                       bytes > INT64_MAX
	               ? PLUMB_COMM_UNKNOWN
	               : (int64_t)bytes;
}

static void
keep(struct plumb_thread *thread, struct plumb_comm_thread *own,
     const struct plumb_comm_operation *operation, const struct plumb_record_collective *told,
     const struct plumb_comm_launch *launch)
{
	bool again;
	struct plumb_record_collective *record = next_record(thread, own, &again);
	if (!record) {
		plumb_count(thread, PLUMB_SOURCE_COLLECTIVE, PLUMB_FATE_OVERWRITTEN, 1);
		return;
	}
	if (again)
		plumb_count(thread, PLUMB_SOURCE_COLLECTIVE, PLUMB_FATE_OVERWRITTEN, 1);
	plumb_sequence_begin(&record->writes);
	atomic_store(&record->correlation, 0); /* the times of its last kernel are not wanted now */
	record->node = told->node;
	record->communicator = told->communicator;
	record->operation = told->operation;
	record->datatype = told->datatype;
	record->algorithm = text_of(thread, operation->algorithm);
	record->protocol = text_of(thread, operation->protocol);
	record->called = told->called;
	record->bytes = told->bytes;
	record->sequence = told->sequence;
	record->peer = operation->peer;
	record->root = operation->root;
	record->channels = operation->channels;
	atomic_store_explicit(&record->stream, 0, memory_order_relaxed);
	atomic_store_explicit(&record->start, 0, memory_order_relaxed);
	atomic_store_explicit(&record->end, 0, memory_order_relaxed);
	plumb_sequence_end(&record->writes);
	plumb_comm_expect(record, launch->correlation);
}

static void
tell(struct plumb_thread *thread, struct plumb_comm *comm,
     const struct plumb_comm_operation *operation, int64_t sequence,
     const struct plumb_comm_launch *launch)
{
	struct known_call call = find_call(operation->call);
	struct plumb_comm_thread *own = plumb_comm_thread_of(thread);
	plumb_count(thread, PLUMB_SOURCE_COLLECTIVE, PLUMB_FATE_RECEIVED, 1);
	if (launch->captured || (call.known && call.captured)) {
		/* It runs when the graph runs, and the library does not report that. */
		plumb_count(thread, PLUMB_SOURCE_COLLECTIVE, PLUMB_FATE_UNKNOWN_NODES, 1);
		return;
	}
	struct plumb_record_collective told = {
		.node = call.known ? call.node : plumb_context_current(thread),
		.called = call.known ? call.called : plumb_clock_ns(),
		.communicator = own ? record_of(thread, comm) : 0,
		.bytes = bytes_of(operation),
		.sequence = sequence,
	};
	if (!told.communicator || told.node == PLUMB_LOST) {
		plumb_count(thread, PLUMB_SOURCE_COLLECTIVE, plumb_comm_fate(thread), 1);
		return;
	}
	told.operation = text_of(thread, operation->name);
	told.datatype =
		text_of(thread, call.known && call.datatype ? call.datatype : operation->datatype);
	plumb_count(thread, PLUMB_SOURCE_COLLECTIVE, plumb_comm_add(thread, own, operation, &told),
	            1);
	keep(thread, own, operation, &told, launch);
}

void
plumb_comm_operation(struct plumb_comm *comm, const struct plumb_comm_operation *operation)
{
	struct plumb_comm_launch launch;
	if (!comm || atomic_load_explicit(&comm->state, memory_order_acquire) != ALIVE)
		return;
	launch = plumb_comm_newest();
	/* Counted also while recording is paused: the other side may count it. */
	int64_t sequence = operation->kind == PLUMB_ACCESS_COLLECTIVE
	                           ? operation->sequence
	                           : next_number(comm, operation->kind, operation->peer);
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_COLLECTIVE);
	if (!thread)
		return;
	tell(thread, comm, operation, sequence, &launch);
	plumb_leave(thread);
}

/* ---- beginnings ---- */

void
plumb_comm_forget(void)
{
	/* Records of communicators tell their generation. */
	for (uint32_t i = 0; plumb_comm_wanted && i < CALLS; i++)
		atomic_store_explicit(&calls[i].number, 0, memory_order_relaxed);
	atomic_store(&kept_bytes, 0);
	plumb_comm_kernels_forget();
}

void
plumb_comm_forked(void)
{
	for (uint32_t i = 0; plumb_comm_wanted && i < COMMUNICATORS; i++)
		atomic_store(&comms[i].state, FREE);
	plumb_comm_wanted = false;
}
