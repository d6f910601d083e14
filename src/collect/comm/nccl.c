/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's profiler plugin. NCCL_PROFILER_PLUGIN names this library, and NCCL looks for the newest
 * version of the interface that it knows. RCCL does the same, with the same names and layouts.
 *
 * NCCL reports a kernel's operations after it has launched the kernel, on the same thread: first
 * one GROUP, then each COLLECTIVE and P2P. Version 5 also reports the calls, before that.
 *
 * Events have no memory of their own. The handle of a call is its number with a mark; all others
 * have none, so that NCCL does not come back to them. If there is another plugin, its handles go
 * through unchanged, and calls are found by them.
 */
#include <string.h>

#include "collect/comm/comm.h"
#include "collect/comm/nccl.h"
#include "collect/table.h"

#define OURS (PLUMB_NCCL_COLLECTIVE | PLUMB_NCCL_P2P)
#define OURS_5 (OURS | PLUMB_NCCL_COLLECTIVE_CALL | PLUMB_NCCL_P2P_CALL)
#define CONTEXTS 1024u
#define FOREIGN 16384u /* calls with the handle of another plugin; a power of two */

#define MARK UINT64_C(0x504c) /* no address has these upper 16 bits */
#define MARK_SHIFT 48

/* ---- contexts and handles ---- */

/* What NCCL has for a communicator. */
struct context {
	_Atomic bool used;
	bool chained; /* the other plugin has it too, and calls it THEIRS */
	struct plumb_comm *comm;
	void *theirs;
	int *mask; /* NCCL's, for all communicators */
};
static struct context contexts[CONTEXTS];
static _Atomic uint32_t newest;

static struct context *
context_new(void)
{
	for (uint32_t turn = 0; turn < CONTEXTS; turn++) {
		struct context *context = &contexts[atomic_fetch_add(&newest, 1) % CONTEXTS];
		if (!atomic_exchange(&context->used, true))
			return context;
	}
	return NULL;
}

/* NULL: there was no room, and POINTER is the other plugin's. */
static struct context *
context_of(void *pointer)
{
	uintptr_t offset = (uintptr_t)pointer - (uintptr_t)contexts;
	return offset < sizeof contexts && offset % sizeof *contexts == 0 ? pointer : NULL;
}

bool
plumb_nccl_is_own(const void *handle)
{
	return (uint64_t)(uintptr_t)handle >> MARK_SHIFT == MARK;
}

/* Calls by the handle that another plugin gave them. The newest stay. */
static struct {
	_Atomic uint64_t handle, call;
} foreign[FOREIGN];

static __typeof__(&foreign[0])
foreign_of(const void *handle)
{
	return &foreign[plumb_mix((uintptr_t)handle, FOREIGN) % FOREIGN];
}

static void
keep_call(void **handle, uint64_t call)
{
	if (!*handle) {
		*handle = call ? (void *)(uintptr_t)(MARK << MARK_SHIFT | call) : NULL;
		return;
	}
	atomic_store(&foreign_of(*handle)->handle, 0);
	atomic_store(&foreign_of(*handle)->call, call);
	atomic_store(&foreign_of(*handle)->handle, (uintptr_t)*handle);
}

static uint64_t
call_of(const void *handle)
{
	if (plumb_nccl_is_own(handle))
		return (uint64_t)(uintptr_t)handle & ((UINT64_C(1) << MARK_SHIFT) - 1);
	if (!handle || atomic_load(&foreign_of(handle)->handle) != (uintptr_t)handle)
		return 0;
	return atomic_load(&foreign_of(handle)->call);
}

/* ---- operations ---- */

static uint32_t
element_of(const char *datatype)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} sizes[] = {
		{ "ncclFloat32", 4 }, { "ncclBfloat16", 2 },   { "ncclFloat16", 2 },
		{ "ncclInt8", 1 },    { "ncclUint8", 1 },      { "ncclInt32", 4 },
		{ "ncclUint32", 4 },  { "ncclInt64", 8 },      { "ncclUint64", 8 },
		{ "ncclFloat64", 8 }, { "ncclFloat8e4m3", 1 }, { "ncclFloat8e5m2", 1 },
	};
	for (size_t i = 0; datatype && i < sizeof sizes / sizeof *sizes; i++)
		if (!strcmp(datatype, sizes[i].name))
			return sizes[i].bytes;
	return 0;
}

static bool
is_named(const char *name, const char *wanted)
{
	return name && !strcmp(name, wanted);
}

/* A root says something where an operation has one. */
static int64_t
root_of(const char *function, int root)
{
	static const char *const rooted[] = { "Broadcast", "Reduce", "Gather", "Scatter" };
	for (size_t i = 0; i < sizeof rooted / sizeof *rooted; i++)
		if (is_named(function, rooted[i]))
			return root;
	return PLUMB_COMM_UNKNOWN;
}

static void
take_collective(struct plumb_comm *comm, const struct plumb_nccl_collective *c, uint64_t call)
{
	const struct plumb_comm_operation operation = {
		.name = c->function,
		.datatype = c->datatype,
		.algorithm = c->algorithm,
		.protocol = c->protocol,
		.count = c->count,
		.element = element_of(c->datatype),
		.kind = PLUMB_ACCESS_COLLECTIVE,
		.sequence = c->sequence <= INT64_MAX ? (int64_t)c->sequence : PLUMB_COMM_UNKNOWN,
		.peer = PLUMB_COMM_UNKNOWN,
		.root = root_of(c->function, c->root),
		.channels = c->channels,
		.from = (uintptr_t)c->from,
		.to = (uintptr_t)c->to,
		.call = call,
	};
	plumb_comm_operation(comm, &operation);
}

/* CHANNELS: 0 where the version does not say. */
static void
take_p2p(struct plumb_comm *comm, const struct plumb_nccl_p2p *p, uint64_t call)
{
	bool receives = is_named(p->function, "Recv");
	const struct plumb_comm_operation operation = {
		.name = p->function,
		.datatype = p->datatype,
		.count = p->count,
		.element = element_of(p->datatype),
		.kind = receives ? PLUMB_ACCESS_RECEIVE : PLUMB_ACCESS_SEND,
		.from = receives ? 0 : (uintptr_t)p->buffer,
		.to = receives ? (uintptr_t)p->buffer : 0,
		.sequence = PLUMB_COMM_UNKNOWN,
		.peer = p->peer >= 0 ? p->peer : PLUMB_COMM_UNKNOWN,
		.root = PLUMB_COMM_UNKNOWN,
		.channels = p->channels ? p->channels : PLUMB_COMM_UNKNOWN,
		.call = call,
	};
	plumb_comm_operation(comm, &operation);
}

/* ---- what all versions share ---- */

static int64_t
number_of(int number)
{
	return number >= 0 ? number : PLUMB_COMM_UNKNOWN;
}

static plumb_nccl_result
init(const struct plumb_nccl_init *told, void **pointer, int *mask, int wanted)
{
	const struct plumb_comm_facts facts = {
		.id = told->id,
		.name = told->name,
		.nodes = number_of(told->nodes),
		.size = number_of(told->ranks),
		.rank = number_of(told->rank),
	};
	void *theirs = NULL;
	int asked = 0;
	struct context *context = pointer ? context_new() : NULL;
	bool chained = plumb_nccl_chain_init(told, &theirs, &asked);
	if (context) {
		context->chained = chained;
		context->comm = plumb_comm_new(&facts);
		context->theirs = theirs;
		context->mask = mask;
	}
	if (pointer)
		*pointer = context ? (void *)context : theirs;
	if (mask)
		*mask = wanted | asked;
	return 0;
}

static plumb_nccl_result
finalize(void *pointer)
{
	struct context *context = context_of(pointer);
	plumb_nccl_chain_finalize(context ? context->theirs : pointer);
	if (!context)
		return 0;
	plumb_comm_end(context->comm);
	context->comm = NULL;
	context->theirs = NULL;
	context->chained = false;
	atomic_store(&context->used, false);
	return 0;
}

/* Hands the event on. NULL: it is nothing to us. */
static struct plumb_comm *
begin(unsigned version, void *pointer, void **handle, void *event, int wanted)
{
	struct context *context = context_of(pointer);
	*handle = NULL;
	if (plumb_unlikely(!context || context->chained))
		plumb_nccl_chain_start(version, context ? context->theirs : pointer, handle, event);
	if (!context)
		return NULL;
	/* A plugin may ask for other events at any time. */
	int now = wanted | plumb_nccl_chain_mask();
	if (plumb_unlikely(context->mask && *context->mask != now))
		*context->mask = now;
	return context->comm;
}

static plumb_nccl_result
stop(void *handle)
{
	plumb_nccl_chain_stop(handle);
	return 0;
}

/* What versions 3 and 4 have of a collective, as version 5 has it. */
#define COLLECTIVE_OF(c)                                                                           \
	(struct plumb_nccl_collective)                                                             \
	{                                                                                          \
		.sequence = (c)->sequence, .function = (c)->function, .from = (c)->from,           \
		.to = (c)->to, .count = (c)->count, .root = (c)->root, .datatype = (c)->datatype,  \
		.channels = (c)->channels, .algorithm = (c)->algorithm, .protocol = (c)->protocol  \
	}

/* ---- version 3 ---- */

static plumb_nccl_result
init_3(void **context, int *mask)
{
	const struct plumb_nccl_init told = { .version = 3, .nodes = -1, .ranks = -1, .rank = -1 };
	return init(&told, context, mask, OURS);
}

/* Who it is comes with each operation. */
static void
describe_3(struct plumb_comm *comm, const struct plumb_nccl_event_3 *event, const char *name,
           uint64_t id)
{
	const struct plumb_comm_facts facts = {
		.id = id,
		.name = name,
		.rank = number_of(event->rank),
	};
	plumb_comm_describe(comm, &facts);
}

static plumb_nccl_result
start_3(void *context, void **handle, struct plumb_nccl_event_3 *event)
{
	struct plumb_comm *comm = begin(3, context, handle, event, OURS);
	__typeof__(&event->collective) c = &event->collective;
	__typeof__(&event->p2p) p = &event->p2p;
	switch (comm ? event->kind : 0) {
	case PLUMB_NCCL_GROUP:
		plumb_comm_launched_all();
		break;
	case PLUMB_NCCL_COLLECTIVE:
		describe_3(comm, event, c->name, c->communicator);
		take_collective(comm, &COLLECTIVE_OF(c), 0);
		break;
	case PLUMB_NCCL_P2P:
		describe_3(comm, event, p->name, p->communicator);
		take_p2p(comm,
		         &(struct plumb_nccl_p2p){
				 .function = p->function,
				 .buffer = p->buffer,
				 .datatype = p->datatype,
				 .count = p->count,
				 .peer = p->peer,
			 },
		         0);
		break;
	default:
		break;
	}
	return 0;
}

static plumb_nccl_result
state_3(void *handle, int state, union plumb_nccl_state_3 *arguments)
{
	plumb_nccl_chain_state(3, handle, state, arguments);
	return 0;
}

/* ---- version 4 ---- */

static plumb_nccl_result
init_4(void **context, int *mask, const char *name, uint64_t id, int nodes, int ranks, int rank,
       plumb_nccl_logger log)
{
	const struct plumb_nccl_init told = { 4, id, name, nodes, ranks, rank, log };
	return init(&told, context, mask, OURS);
}

static plumb_nccl_result
start_4(void *context, void **handle, struct plumb_nccl_event_4 *event)
{
	struct plumb_comm *comm = begin(4, context, handle, event, OURS);
	__typeof__(&event->collective) c = &event->collective;
	__typeof__(&event->p2p) p = &event->p2p;
	switch (comm ? event->kind : 0) {
	case PLUMB_NCCL_GROUP:
		plumb_comm_launched_all();
		break;
	case PLUMB_NCCL_COLLECTIVE:
		take_collective(comm, &COLLECTIVE_OF(c), 0);
		break;
	case PLUMB_NCCL_P2P:
		take_p2p(comm,
		         &(struct plumb_nccl_p2p){
				 .function = p->function,
				 .buffer = p->buffer,
				 .datatype = p->datatype,
				 .count = p->count,
				 .peer = p->peer,
				 .channels = p->channels,
			 },
		         0);
		break;
	default:
		break;
	}
	return 0;
}

static plumb_nccl_result
state_4(void *handle, int state, union plumb_nccl_state_4 *arguments)
{
	plumb_nccl_chain_state(4, handle, state, arguments);
	return 0;
}

/* ---- version 5 ---- */

static plumb_nccl_result
init_5(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks, int rank,
       plumb_nccl_logger log)
{
	const struct plumb_nccl_init told = { 5, id, name, nodes, ranks, rank, log };
	return init(&told, context, mask, OURS_5);
}

static plumb_nccl_result
start_5(void *context, void **handle, struct plumb_nccl_event_5 *event)
{
	struct plumb_comm *comm = begin(5, context, handle, event, OURS_5);
	switch (comm ? event->kind : 0) {
	case PLUMB_NCCL_COLLECTIVE_CALL:
		keep_call(handle, plumb_comm_called(event->collective_call.captured,
		                                    event->collective_call.datatype));
		break;
	case PLUMB_NCCL_P2P_CALL:
		keep_call(handle,
		          plumb_comm_called(event->p2p_call.captured, event->p2p_call.datatype));
		break;
	case PLUMB_NCCL_GROUP:
		plumb_comm_launched_all();
		break;
	case PLUMB_NCCL_COLLECTIVE:
		take_collective(comm, &event->collective, call_of(event->parent));
		break;
	case PLUMB_NCCL_P2P:
		take_p2p(comm, &event->p2p, call_of(event->parent));
		break;
	default:
		break;
	}
	return 0;
}

static plumb_nccl_result
state_5(void *handle, int state, union plumb_nccl_state_4 *arguments)
{
	plumb_nccl_chain_state(5, handle, state, arguments);
	return 0;
}

/* ---- what the library finds ---- */

PLUMB_EXPORT extern struct plumb_nccl_profiler_3 ncclProfiler_v3;
PLUMB_EXPORT extern struct plumb_nccl_profiler_4 ncclProfiler_v4;
PLUMB_EXPORT extern struct plumb_nccl_profiler_5 ncclProfiler_v5;

struct plumb_nccl_profiler_3 ncclProfiler_v3 = {
	"plumb", init_3, start_3, stop, state_3, finalize
};
struct plumb_nccl_profiler_4 ncclProfiler_v4 = {
	"plumb", init_4, start_4, stop, state_4, finalize
};
struct plumb_nccl_profiler_5 ncclProfiler_v5 = {
	"plumb", init_5, start_5, stop, state_5, finalize
};
