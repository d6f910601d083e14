/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations as the sanitizer tells them → objects; copies that the host calls → transfers.
 *
 * Memory that a peer can reach is told once for each such peer, with the flag PEER and the device
 * whose memory it is. That is no allocation, but says that kernels may reach it from now on. Only
 * where nothing is known at the address it is one: memory of another process.
 */
#include <string.h>

#include "collect/gpu/sanitizer/runtime.h"
#include "collect/table.h"

/* A handle that processes pass on, as a key. */
static uint64_t
key_of(const void *handle, size_t bytes)
{
	uint64_t key = bytes, word;
	const char *at = handle;
	for (; bytes >= 8; at += 8, bytes -= 8) {
		memcpy(&word, at, 8);
		key = plumb_mix(key, word);
	}
	return key ? key : 1;
}

/* Is it known already? Managed and pinned memory may be told once for each context. */
static bool
is_known(const struct sanitizer_memory_data *data, enum plumb_object_kind kind)
{
	struct plumb_object_place known = { .kind = 0 };
	plumb_allocation_at(data->address, &known);
	return known.kind == kind && known.address == data->address && known.bytes == data->size &&
	       (kind == PLUMB_OBJECT_MANAGED || kind == PLUMB_OBJECT_PINNED ||
	        known.ordinal == (uint32_t)data->device);
}

static void
add(const struct sanitizer_memory_data *data, uint32_t ordinal, enum plumb_object_kind kind)
{
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	if (!thread)
		return;
	struct plumb_sanitizer_shared shared = { .key = 0 };
	if (plumb_sanitizer_shared_at(data->address, &shared) && shared.imported)
		kind = PLUMB_OBJECT_IMPORTED;
	if (!is_known(data, kind))
		plumb_object_allocated(thread, ordinal, kind, data->address, data->size,
		                       shared.key);
	plumb_leave(thread);
}

/*
 * Memory that a peer can reach and that is not known: of another process, or its own event comes
 * later. What is still not known when something else happens is of another process.
 */
static struct plumb_allocation strangers[64];
static uint32_t strangers_count; /* with the lock of the state */
static _Atomic bool any_strangers;

static void
note_stranger(const struct sanitizer_memory_data *data)
{
	struct plumb_object_place known = { .kind = 0 };
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	if (!thread)
		return;
	plumb_allocation_at(data->address, &known);
	pthread_mutex_lock(&plumb_sanitizer_lock);
	uint32_t i = 0;
	while (i < strangers_count && strangers[i].address != data->address)
		i++;
	/* An import of which nobody said whose it is is one, too. */
	bool strange = !known.kind ||
	               (known.kind == PLUMB_OBJECT_IMPORTED && known.ordinal == PLUMB_HOST_ORDINAL);
	if (strange && i == strangers_count &&
	    strangers_count < sizeof strangers / sizeof *strangers) {
		strangers[strangers_count++] = (struct plumb_allocation){
			.node = plumb_context_current(thread),
			.ordinal = (uint32_t)data->source,
			.kind = PLUMB_OBJECT_IMPORTED,
			.address = data->address,
			.bytes = data->size,
			.key = known.kind ? known.key : 0,
		};
		atomic_store(&any_strangers, true);
	}
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	plumb_leave(thread);
}

static void
forget_stranger(uint64_t address)
{
	if (!atomic_load_explicit(&any_strangers, memory_order_relaxed))
		return;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	for (uint32_t i = 0; i < strangers_count; i++)
		if (strangers[i].address == address)
			strangers[i--] = strangers[--strangers_count];
	pthread_mutex_unlock(&plumb_sanitizer_lock);
}

void
plumb_sanitizer_settle_memory(void)
{
	struct plumb_allocation found[sizeof strangers / sizeof *strangers];
	if (plumb_likely(!atomic_load_explicit(&any_strangers, memory_order_relaxed)))
		return;
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	if (!thread)
		return;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	uint32_t count = strangers_count;
	memcpy(found, strangers, count * sizeof *found);
	strangers_count = 0;
	atomic_store(&any_strangers, false);
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	for (uint32_t i = 0; i < count; i++) {
		struct plumb_object_place known = { .kind = 0 };
		plumb_allocation_at(found[i].address, &known);
		/* Unless somebody else told meanwhile whose it is. */
		if (!known.kind || known.ordinal == PLUMB_HOST_ORDINAL)
			plumb_object_add(thread, &found[i]);
	}
	plumb_leave(thread);
}

static enum plumb_object_kind
kind_of(const struct sanitizer_memory_data *data, bool pool)
{
	return data->flags & SANITIZER_MANAGED     ? PLUMB_OBJECT_MANAGED
	       : data->flags & SANITIZER_OF_MODULE ? PLUMB_OBJECT_VARIABLE
	       : data->flags & SANITIZER_HOST_PINNED || data->flags & SANITIZER_HOST_MAPPED
	               ? PLUMB_OBJECT_PINNED
	       : pool || data->pool ? PLUMB_OBJECT_POOL
	                            : PLUMB_OBJECT_DEVICE;
}

void
plumb_sanitizer_allocated(const struct sanitizer_memory_data *data, bool host, bool pool)
{
	bool peer = data->flags & SANITIZER_PEER;
	if (!data->address || !data->size)
		return;
	if (!host && !peer) {
		pthread_mutex_lock(&plumb_sanitizer_lock);
		plumb_sanitizer_context_of(data->context, (uint32_t)data->device);
		pthread_mutex_unlock(&plumb_sanitizer_lock);
	}
	if (peer) {
		note_stranger(data);
		plumb_sanitizer_reaches(data->context);
		return;
	}
	forget_stranger(data->address);
	if (host) {
		add(data, PLUMB_HOST_ORDINAL, PLUMB_OBJECT_PINNED);
	} else {
		enum plumb_object_kind kind = kind_of(data, pool);
		add(data, kind == PLUMB_OBJECT_PINNED ? PLUMB_HOST_ORDINAL : (uint32_t)data->device,
		    kind);
	}
}

void
plumb_sanitizer_freed(const struct sanitizer_memory_data *data, bool host)
{
	struct plumb_object_place known = { .kind = 0 };
	(void)host;
	plumb_sanitizer_settle_memory();
	if (data->flags & SANITIZER_PEER) { /* no peer reaches it any more; or it is closed */
		plumb_allocation_at(data->address, &known);
		if (known.kind != PLUMB_OBJECT_IMPORTED)
			return;
	}
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU);
	if (!thread)
		return;
	plumb_object_freed(thread, data->address);
	plumb_leave(thread);
}

/* Contexts of the device may reach memory of another one: those that are there, and later ones. */
static _Atomic uint64_t reachers; /* bits of ordinals */

static void
device_reaches(uint32_t ordinal)
{
	if (ordinal < 64)
		atomic_fetch_or(&reachers, 1ull << ordinal);
	for (uint32_t i = 0; i < PLUMB_CONTEXTS; i++)
		if (plumb_sanitizer_contexts[i].live &&
		    (plumb_sanitizer_contexts[i].ordinal == ordinal ||
		     plumb_sanitizer_contexts[i].ordinal == UINT32_MAX)) /* not known yet */
			plumb_sanitizer_reaches(plumb_sanitizer_contexts[i].handle);
}

bool
plumb_sanitizer_device_reaches(uint32_t ordinal)
{
	return ordinal < 64 && atomic_load_explicit(&reachers, memory_order_relaxed) >> ordinal & 1;
}

void
plumb_sanitizer_pool_reached(const struct sanitizer_pool_data *data)
{
	device_reaches((uint32_t)data->peer);
}

/* ---- copies ---- */

/* One end of a copy. KIND is one of PLUMB_MEMORY. */
struct end {
	uint32_t ordinal;
	uint16_t kind;
	plumb_id object;
};

static uint16_t
memory_of(enum plumb_object_kind kind)
{
	return kind == PLUMB_OBJECT_MANAGED  ? PLUMB_MEMORY_MANAGED
	       : kind == PLUMB_OBJECT_PINNED ? PLUMB_MEMORY_PINNED
	                                     : PLUMB_MEMORY_DEVICE;
}

static struct end
end_of(uint64_t address, sanitizer_context context, bool is_host)
{
	struct plumb_object_place place = { .kind = 0 };
	struct end end = { .ordinal = PLUMB_HOST_ORDINAL, .kind = PLUMB_MEMORY_HOST };
	end.object = plumb_object_at(address, &place);
	if (place.kind) {
		end.kind = memory_of(place.kind);
		if (end.kind != PLUMB_MEMORY_MANAGED)
			end.ordinal = place.ordinal;
		return end;
	}
	if (is_host)
		return end;
	const struct plumb_sanitizer_context *its = plumb_sanitizer_live_context(context);
	end.kind = its ? PLUMB_MEMORY_DEVICE : PLUMB_MEMORY_UNKNOWN;
	if (its)
		end.ordinal = its->ordinal;
	return end;
}

/* CALL is the context of the call that copies. */
static void
tell_copy(struct plumb_thread *thread, plumb_id call, const struct sanitizer_memcpy_data *data)
{
	bool from_host = data->direction == 1 || data->direction == 2,
	     to_host = data->direction == 1 || data->direction == 3;
	struct end from = end_of(data->from, data->from_context, from_host),
		   to = end_of(data->to, data->to_context, to_host);
	const struct plumb_sanitizer_context *api = plumb_sanitizer_live_context(data->api_context);
	char name[PLUMB_TRANSFER_NAME];
	plumb_transfer_name(name, (struct plumb_transfer){ from.kind, to.kind });
	struct plumb_transfer_facts facts = {
		.node = plumb_child_named(thread, call, PLUMB_FRAME_COPY, name),
		.kind = PLUMB_ACCESS_COPY,
		.route = PLUMB_ROUTE_COPY_ENGINE,
		.accesses = 1,
		.bytes = data->size,
		.from = from.ordinal,
		.from_object = from.object,
		.to = to.ordinal,
		.to_object = to.object,
		.initiator = api ? api->ordinal : PLUMB_HOST_ORDINAL,
	};
	bool moves = facts.bytes && facts.from != facts.to; /* from one device to another */
	bool told = moves && plumb_transfer_add(thread, &facts);
	plumb_count(thread, PLUMB_SOURCE_COPY, PLUMB_FATE_RECEIVED, 1);
	plumb_count(thread, PLUMB_SOURCE_COPY,
	            told || !moves ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_REGION_FULL, 1);
}

static plumb_id
copy_node(struct plumb_thread *thread, const char *call)
{
	plumb_id node =
		plumb_child_named(thread, plumb_context_current(thread), PLUMB_FRAME_GPU_API, call);
	plumb_observe(thread, node, PLUMB_METRIC_GPU_LAUNCHES, plumb_thread_track(thread), 1);
	return node;
}

void
plumb_sanitizer_copied(const struct sanitizer_memcpy_data *data)
{
	plumb_sanitizer_settle_memory();
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_COPY);
	if (!thread)
		return;
	tell_copy(thread, copy_node(thread, "cuMemcpy"), data);
	plumb_leave(thread);
}

/* ---- driver calls ---- */

/* Parameters of cuMemcpyBatchAsync in all its versions: these come first. */
struct batch {
	const uint64_t *to, *from;
	const size_t *bytes;
	size_t count;
};
struct set_access {
	uint64_t address;
	size_t bytes;
	const struct {
		int type, device, flags; /* a CUmemAccessDesc; type 1: a device */
	} *each;
	size_t count;
};
struct ipc_get {
	const void *handle;
	uint64_t address;
};
struct ipc_open {
	const uint64_t *address;
	unsigned char handle[64];
};

static void
copied_batch(const struct batch *batch, sanitizer_context context)
{
	struct plumb_thread *thread = plumb_enter_of(PLUMB_CALLBACK_GPU, PLUMB_SOURCE_COPY);
	if (!thread)
		return;
	plumb_id node = copy_node(thread, "cuMemcpyBatchAsync");
	for (size_t i = 0; batch->to && batch->from && batch->bytes && i < batch->count; i++) {
		const struct sanitizer_memcpy_data data = {
			.from = batch->from[i],
			.to = batch->to[i],
			.size = batch->bytes[i],
			.from_context = NULL,
			.api_context = context,
		};
		tell_copy(thread, node, &data);
	}
	plumb_leave(thread);
}

/* Mapped memory is told as allocated on its own device only: cuMemSetAccess says who reaches it. */
static void
set_access(const struct set_access *call)
{
	struct plumb_object_place place = { .kind = 0 };
	plumb_allocation_at(call->address, &place);
	for (size_t i = 0; call->each && i < call->count; i++)
		if (call->each[i].type == 1 && call->each[i].flags &&
		    (!place.kind || place.ordinal != (uint32_t)call->each[i].device))
			device_reaches((uint32_t)call->each[i].device);
}

void
plumb_sanitizer_call(uint32_t id, const struct sanitizer_call_data *data)
{
	const int *result = data->result;
	const struct ipc_get *get = data->parameters;
	const struct ipc_open *open = data->parameters;
	if (data->site != 1 || !data->parameters || (result && *result))
		return;
	plumb_sanitizer_settle_memory();
	switch (id) {
	case SANITIZER_CU_PEER_ACCESS:
		plumb_sanitizer_reaches(data->context);
		break;
	case SANITIZER_CU_SET_ACCESS:
		set_access(data->parameters);
		break;
	case SANITIZER_CU_IPC_GET:
		if (get->handle)
			plumb_object_shared(get->address, key_of(get->handle, 64));
		break;
	case SANITIZER_CU_IPC_OPEN:
		/* The mapping itself was told before, from within this call. */
		if (open->address)
			plumb_object_shared(*open->address, key_of(open->handle, 64));
		plumb_sanitizer_reaches(data->context);
		break;
	case SANITIZER_CU_MULTICAST_CREATE:
		plumb_sanitizer_unseen(PLUMB_UNSEEN_MULTICAST, 1);
		break;
	case SANITIZER_CU_CREATE:
	case SANITIZER_CU_MAP:
	case SANITIZER_CU_EXPORT:
	case SANITIZER_CU_IMPORT:
		plumb_sanitizer_share(id, data);
		break;
	default:
		copied_batch(data->parameters, data->context);
	}
}
