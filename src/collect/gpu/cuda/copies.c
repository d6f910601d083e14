/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies → transfers. CUPTI's record has the bytes, the time and the device, and of copies between
 * devices which two. It has no addresses: these are in the parameters of the call. So the call
 * notes what lies at both ends, under its correlation id, and the record takes that note. A batch
 * has a note for each copy, and a record takes the first of them that has its bytes. Nodes of
 * graphs keep the note of the call that made them.
 *
 * Where two devices cannot reach each other, CUPTI has a record of each of them for one copy. The
 * first one tells the transfer.
 *
 * Notes are in a ring: a copy whose record comes too late has no objects.
 */
#include <string.h>
#include <sys/mman.h>

#include "collect/gpu/cuda/runtime.h"
#include "collect/live.h"
#include "collect/object.h"
#include "collect/table.h"

#define CALLS 16384u /* whose record has not come */
#define NOTES 65536u /* of them all */
#define BATCH 4096u  /* copies of one call that have notes */

/* One copy: what is at its ends. */
struct note {
	plumb_id from, to; /* objects */
	uint32_t from_ordinal, to_ordinal;
	uint64_t bytes;          /* 0: not known */
	_Atomic uint64_t number; /* of the note, from 1; 0: it is being written */
	bool taken;              /* the service thread's */
};
struct call {
	_Atomic uint64_t correlation; /* + 1; 0: it is being written */
	uint64_t first;
	uint32_t count;
	_Atomic uint64_t context; /* of its first record, + 1; 0: none came */
};
static struct ring {
	_Atomic uint64_t next;
	struct call calls[CALLS];
	struct note notes[NOTES];
} *_Atomic ring;

static struct plumb_live nodes; /* of graphs; bytes: both ordinals; record, owner: objects */
static _Atomic bool changed;    /* nodes may copy something else by now */

/* ---- the forms of calls ---- */

enum form {
	NONE,
	LINEAR,     /* (to, from, bytes), whatever is where */
	PEER,       /* (to, context, from, context, bytes) */
	TO_ARRAY,   /* (array, offset, from, bytes) */
	FROM_ARRAY, /* (to, array, offset, bytes) */
	FLAT,       /* a CUDA_MEMCPY2D */
	DEEP,       /* a CUDA_MEMCPY3D */
	DEEP_PEER,  /* a CUDA_MEMCPY3D_PEER */
	ADDED,      /* the CUDA_MEMCPY3D of a node */
	MANY,
	MANY_DEEP,
};
#define ROW(name, form) [CUPTI_DRIVER_TRACE_CBID_##name] = form
#define BOTH(name, tail, form)                                                                     \
	[CUPTI_DRIVER_TRACE_CBID_##name] = form, [CUPTI_DRIVER_TRACE_CBID_##name##tail] = form
static const uint8_t forms[PLUMB_CALLS_MAX] = {
	BOTH(cuMemcpyHtoD_v2, _ptds, LINEAR),
	BOTH(cuMemcpyDtoH_v2, _ptds, LINEAR),
	BOTH(cuMemcpyDtoD_v2, _ptds, LINEAR),
	BOTH(cuMemcpyHtoDAsync_v2, _ptsz, LINEAR),
	BOTH(cuMemcpyDtoHAsync_v2, _ptsz, LINEAR),
	BOTH(cuMemcpyDtoDAsync_v2, _ptsz, LINEAR),
	BOTH(cuMemcpy, _ptds, LINEAR),
	BOTH(cuMemcpyAsync, _ptsz, LINEAR),
	BOTH(cuMemcpyPeer, _ptds, PEER),
	BOTH(cuMemcpyPeerAsync, _ptsz, PEER),
	BOTH(cuMemcpyDtoA_v2, _ptds, TO_ARRAY),
	BOTH(cuMemcpyHtoA_v2, _ptds, TO_ARRAY),
	BOTH(cuMemcpyHtoAAsync_v2, _ptsz, TO_ARRAY),
	BOTH(cuMemcpyAtoD_v2, _ptds, FROM_ARRAY),
	BOTH(cuMemcpyAtoH_v2, _ptds, FROM_ARRAY),
	BOTH(cuMemcpyAtoHAsync_v2, _ptsz, FROM_ARRAY),
	BOTH(cuMemcpy2D_v2, _ptds, FLAT),
	BOTH(cuMemcpy2DUnaligned_v2, _ptds, FLAT),
	BOTH(cuMemcpy2DAsync_v2, _ptsz, FLAT),
	BOTH(cuMemcpy3D_v2, _ptds, DEEP),
	BOTH(cuMemcpy3DAsync_v2, _ptsz, DEEP),
	BOTH(cuMemcpy3DPeer, _ptds, DEEP_PEER),
	BOTH(cuMemcpy3DPeerAsync, _ptsz, DEEP_PEER),
	BOTH(cuMemcpyBatchAsync, _ptsz, MANY),
	BOTH(cuMemcpyBatchAsync_v2, _ptsz, MANY),
	BOTH(cuMemcpy3DBatchAsync, _ptsz, MANY_DEEP),
	BOTH(cuMemcpy3DBatchAsync_v2, _ptsz, MANY_DEEP),
	ROW(cuGraphAddMemcpyNode, ADDED),
};

/* One copy as the program asked for it: 0 where an end has no address. */
struct ends {
	uint64_t from, to, bytes;
};

/* Where a 2D or 3D copy begins at one end. */
#define START(copy, end, Host, Device, offset)                                                     \
	((copy)->end##MemoryType == CU_MEMORYTYPE_ARRAY  ? 0                                       \
	 : (copy)->end##MemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)(copy)->end##Host + (offset) \
	                                                 : (copy)->end##Device + (offset))
#define FLAT_START(copy, end)                                                                      \
	START(copy, end, Host, Device, (copy)->end##Y *(copy)->end##Pitch + (copy)->end##XInBytes)
#define DEEP_START(copy, end)                                                                      \
	START(copy, end, Host, Device,                                                             \
	      ((copy)->end##Z * (copy)->end##Height + (copy)->end##Y) * (copy)->end##Pitch +       \
	              (copy)->end##XInBytes)

static struct ends
flat_ends(const CUDA_MEMCPY2D *c)
{
	return c ? (struct ends){ FLAT_START(c, src), FLAT_START(c, dst),
		                  c->WidthInBytes * c->Height }
	         : (struct ends){ 0 };
}

static struct ends
deep_ends(const CUDA_MEMCPY3D *c)
{
	return c ? (struct ends){ DEEP_START(c, src), DEEP_START(c, dst),
		                  c->WidthInBytes * c->Height * c->Depth }
	         : (struct ends){ 0 };
}

static struct ends
deep_peer_ends(const CUDA_MEMCPY3D_PEER *c)
{
	return c ? (struct ends){ DEEP_START(c, src), DEEP_START(c, dst),
		                  c->WidthInBytes * c->Height * c->Depth }
	         : (struct ends){ 0 };
}

/* The start of an operand of a 3D batch: its bytes follow from the other end's array alone. */
static uint64_t
operand_start(const CUmemcpy3DOperand *operand)
{
	return operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER ? operand->op.ptr.ptr : 0;
}

/* How many copies the call with PARAMS makes. */
static size_t
count_of(enum form form, const void *params)
{
	const cuMemcpyBatchAsync_v2_ptsz_params *many = params;
	const cuMemcpy3DBatchAsync_v2_ptsz_params *deep = params;
	switch (form) {
	case NONE:
		return 0;
	case MANY:
		return many->dsts && many->srcs && many->sizes ? many->count : 0;
	case MANY_DEEP:
		return deep->opList ? deep->numOps : 0;
	default:
		return 1;
	}
}

/* Copy number I of them. */
static struct ends
ends_of(enum form form, const void *params, size_t i)
{
	const cuMemcpyAsync_ptsz_params *linear = params;
	const cuMemcpyPeer_ptds_params *peer = params;
	const cuMemcpyHtoA_v2_params *to_array = params;
	const cuMemcpyAtoH_v2_params *from_array = params;
	const cuMemcpy2D_v2_params *flat = params;
	const cuMemcpy3D_v2_params *deep = params;
	const cuMemcpy3DPeer_ptds_params *deep_peer = params;
	const cuGraphAddMemcpyNode_params *added = params;
	const cuMemcpyBatchAsync_v2_ptsz_params *many = params;
	const cuMemcpy3DBatchAsync_v2_ptsz_params *many_deep = params;
	switch (form) {
	case LINEAR:
		return (struct ends){ linear->src, linear->dst, linear->ByteCount };
	case PEER:
		return (struct ends){ peer->srcDevice, peer->dstDevice, peer->ByteCount };
	case TO_ARRAY:
		return (struct ends){ (uintptr_t)to_array->srcHost, 0, to_array->ByteCount };
	case FROM_ARRAY:
		return (struct ends){ 0, (uintptr_t)from_array->dstHost, from_array->ByteCount };
	case FLAT:
		return flat_ends(flat->pCopy);
	case DEEP:
		return deep_ends(deep->pCopy);
	case DEEP_PEER:
		return deep_peer_ends(deep_peer->pCopy);
	case ADDED:
		return deep_ends(added->copyParams);
	case MANY:
		return (struct ends){ many->srcs[i], many->dsts[i], many->sizes[i] };
	case MANY_DEEP:
		return (struct ends){ operand_start(&many_deep->opList[i].src),
			              operand_start(&many_deep->opList[i].dst), 0 };
	default:
		return (struct ends){ 0 };
	}
}
#define SAME_LINEAR(name, to, from)                                                                \
	(!offsetof(name##_params, to) &&                                                           \
	 offsetof(name##_params, from) == offsetof(cuMemcpyAsync_ptsz_params, src) &&              \
	 offsetof(name##_params, ByteCount) == offsetof(cuMemcpyAsync_ptsz_params, ByteCount))
_Static_assert(SAME_LINEAR(cuMemcpyHtoD_v2, dstDevice, srcHost) &&
                       SAME_LINEAR(cuMemcpyDtoH_v2, dstHost, srcDevice) &&
                       SAME_LINEAR(cuMemcpyDtoD_v2, dstDevice, srcDevice) &&
                       SAME_LINEAR(cuMemcpyHtoDAsync_v2, dstDevice, srcHost) &&
                       SAME_LINEAR(cuMemcpyDtoHAsync_v2, dstHost, srcDevice) &&
                       SAME_LINEAR(cuMemcpyDtoDAsync_v2, dstDevice, srcDevice) &&
                       offsetof(cuMemcpyPeerAsync_ptsz_params, ByteCount) ==
                               offsetof(cuMemcpyPeer_ptds_params, ByteCount) &&
                       offsetof(cuMemcpyDtoA_v2_params, srcDevice) ==
                               offsetof(cuMemcpyHtoA_v2_params, srcHost) &&
                       !offsetof(cuMemcpyAtoD_v2_params, dstDevice),
               "parameters of copies");

/* ---- what is at the ends ---- */

static void
look_up(uint64_t address, plumb_id *object, uint32_t *ordinal)
{
	struct plumb_object_place place = { .ordinal = PLUMB_HOST_ORDINAL };
	*object = address ? plumb_object_at(address, &place) : 0;
	*ordinal = place.ordinal;
}

static void
fill_note(struct note *note, const struct ends *ends)
{
	look_up(ends->from, &note->from, &note->from_ordinal);
	look_up(ends->to, &note->to, &note->to_ordinal);
	note->bytes = ends->bytes;
	note->taken = false;
}

static struct ring *
get_ring(void)
{
	struct ring *now = atomic_load_explicit(&ring, memory_order_acquire), *made;
	if (plumb_likely(now))
		return now;
	made = plumb_map(sizeof *made, true);
	if (!made || atomic_compare_exchange_strong(&ring, &now, made))
		return made;
	munmap(made, sizeof *made);
	return now;
}

void
plumb_cuda_copy_enter(CUpti_CallbackId id, const CUpti_CallbackData *info)
{
	size_t count = count_of(forms[id], info->functionParams);
	struct ring *to = count ? get_ring() : NULL;
	if (!to)
		return;
	count = count > BATCH ? BATCH : count;
	uint64_t first = atomic_fetch_add_explicit(&to->next, count, memory_order_relaxed);
	for (size_t i = 0; i < count; i++) {
		struct ends ends = ends_of(forms[id], info->functionParams, i);
		struct note *note = &to->notes[(first + i) % NOTES];
		atomic_store_explicit(&note->number, 0, memory_order_relaxed);
		atomic_thread_fence(memory_order_release);
		fill_note(note, &ends);
		atomic_store_explicit(&note->number, first + i + 1, memory_order_release);
	}
	struct call *call = &to->calls[info->correlationId % CALLS];
	atomic_store_explicit(&call->correlation, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	call->first = first;
	call->count = (uint32_t)count;
	atomic_store_explicit(&call->context, 0, memory_order_relaxed);
	atomic_store_explicit(&call->correlation, info->correlationId + 1ull, memory_order_release);
}

/* ---- nodes of graphs ---- */

void
plumb_cuda_copy_captured(CUpti_CallbackId id, const CUpti_CallbackData *info, uint64_t number)
{
	struct plumb_live_object was;
	struct note note;
	if (!info->functionParams || count_of(forms[id], info->functionParams) != 1)
		return; /* of a batch, nothing tells which node is which copy */
	struct ends ends = ends_of(forms[id], info->functionParams, 0);
	fill_note(&note, &ends);
	const struct plumb_live_object node = {
		.bytes = (uint64_t)note.from_ordinal << 32 | note.to_ordinal,
		.record = note.from,
		.owner = note.to,
	};
	plumb_live_put(&nodes, number, &node, &was);
}

void
plumb_cuda_copy_cloned(uint64_t original, uint64_t number)
{
	struct plumb_live_object node, was;
	if (number && plumb_live_get(&nodes, original, &node))
		plumb_live_put(&nodes, number, &node, &was);
}

void
plumb_cuda_copies_changed(void)
{
	atomic_store_explicit(&changed, true, memory_order_relaxed);
}

/* ---- records ---- */

static struct call *
call_of(const struct plumb_gpu_record *record)
{
	struct ring *from = atomic_load_explicit(&ring, memory_order_acquire);
	struct call *call = from ? &from->calls[record->correlation % CALLS] : NULL;
	bool held = call && atomic_load_explicit(&call->correlation, memory_order_acquire) ==
	                            record->correlation + 1;
	return held ? call : NULL;
}

/* Is it the other device's record of copies that were told? */
static bool
is_second(const struct plumb_gpu_record *record)
{
	struct call *call = record->graph_node ? NULL : call_of(record);
	uint64_t none = 0, own = record->context + 1ull;
	return call && !atomic_compare_exchange_strong(&call->context, &none, own) && none != own;
}

/* The note that the record takes: of BYTES, or the only one of its call. */
static bool
take_note(const struct plumb_gpu_record *record, struct note *taken)
{
	struct ring *from = atomic_load_explicit(&ring, memory_order_acquire);
	struct call *call = call_of(record);
	if (!call)
		return false;
	uint64_t first = call->first;
	uint32_t count = call->count;
	atomic_thread_fence(memory_order_acquire);
	if (atomic_load_explicit(&call->correlation, memory_order_relaxed) !=
	    record->correlation + 1)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		struct note *note = &from->notes[(first + i) % NOTES];
		if (atomic_load_explicit(&note->number, memory_order_acquire) != first + i + 1)
			continue;
		*taken = (struct note){ .from = note->from,
			                .to = note->to,
			                .from_ordinal = note->from_ordinal,
			                .to_ordinal = note->to_ordinal,
			                .bytes = note->bytes,
			                .taken = note->taken };
		atomic_thread_fence(memory_order_acquire);
		if (atomic_load_explicit(&note->number, memory_order_relaxed) != first + i + 1)
			continue;
		if (count > 1 && (taken->taken || (taken->bytes && taken->bytes != record->bytes)))
			continue;
		note->taken = true;
		return true;
	}
	return false;
}

static bool
take_node(uint64_t number, struct note *taken)
{
	struct plumb_live_object node;
	if (atomic_load_explicit(&changed, memory_order_relaxed) ||
	    !plumb_live_get(&nodes, number, &node))
		return false;
	*taken = (struct note){ .from = node.record,
		                .to = node.owner,
		                .from_ordinal = (uint32_t)(node.bytes >> 32),
		                .to_ordinal = (uint32_t)node.bytes };
	return true;
}

/* The device at one end, whose memory is of KIND. TOLD: by the record; FOUND: where the address is;
 * OWN: the device that the copy ran on. */
static uint32_t
device_at(uint16_t kind, uint32_t told, uint32_t found, uint32_t own)
{
	switch (kind & (PLUMB_MEMORY_PEER - 1u)) {
	case PLUMB_MEMORY_DEVICE:
	case PLUMB_MEMORY_ARRAY:
		return told != PLUMB_HOST_ORDINAL    ? told
		       : found != PLUMB_HOST_ORDINAL ? found
		                                     : own;
	case PLUMB_MEMORY_UNKNOWN:
		return told != PLUMB_HOST_ORDINAL ? told : found;
	default: /* the host's, or wherever it is used */
		return PLUMB_HOST_ORDINAL;
	}
}

static bool
is_managed(uint16_t kind)
{
	return (kind & (PLUMB_MEMORY_PEER - 1u)) == PLUMB_MEMORY_MANAGED;
}

void
plumb_cuda_copy_finished(struct plumb_thread *thread, plumb_id node,
                         const struct plumb_gpu_record *record, struct plumb_transfer kinds,
                         uint32_t from, uint32_t to)
{
	struct note note = { .from_ordinal = PLUMB_HOST_ORDINAL, .to_ordinal = PLUMB_HOST_ORDINAL };
	struct plumb_transfer_facts facts = {
		.node = node,
		.kind = PLUMB_ACCESS_COPY,
		.initiator = record->device,
		.accesses = 1,
		.bytes = record->bytes,
	};
	if (from != to && is_second(record))
		return;
	if (record->graph_node)
		take_node(record->graph_node, &note);
	else
		take_note(record, &note);
	bool managed = is_managed(kinds.from) || is_managed(kinds.to);
	facts.from = device_at(kinds.from, from, note.from_ordinal, record->device);
	facts.to = device_at(kinds.to, to, note.to_ordinal, record->device);
	facts.from_object = note.from;
	facts.to_object = note.to;
	facts.route = managed ? PLUMB_ROUTE_MANAGED : PLUMB_ROUTE_COPY_ENGINE;
	if (facts.from == facts.to && !managed)
		return; /* it stays where it is */
	if (!plumb_transfer_add(thread, &facts))
		plumb_count(thread, PLUMB_SOURCE_REGION, plumb_thread_arena(thread)->fate, 1);
}

void
plumb_cuda_copies_renew(bool forked)
{
	struct ring *was = atomic_exchange(&ring, NULL);
	if (!forked && was)
		munmap(was, sizeof *was);
	if (forked) /* a callback that goes on in the child may be in it */
		memset((void *)&nodes, 0, sizeof nodes);
	else
		plumb_live_clear(&nodes);
	atomic_store(&changed, false);
}
