/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory with a handle that processes share: cuMemExportToShareableHandle on one side,
 * cuMemImportFromShareableHandle on the other. Where it lies is told as an allocation, before or
 * after the call that maps it: both put what is known of the handle there. Only handles that were
 * shared change anything.
 */
#include "collect/gpu/share.h"
#include "base/hash.h"
#include "collect/gpu/sanitizer/runtime.h"

#define HANDLES 4096u                     /* the newest ones are known */
enum { FILE_DESCRIPTOR = 1, FABRIC = 8 }; /* CUmemAllocationHandleType */

struct created {
	const uint64_t *handle;
};
struct exported {
	const void *share;
	uint64_t handle;
	int type;
};
struct imported {
	const uint64_t *handle;
	const void *share;
	int type;
};
struct mapped {
	uint64_t address;
	size_t bytes, offset;
	uint64_t handle;
};

/* A ring; with the lock of the state. */
static struct plumb_sanitizer_shared handles[HANDLES];
static uint32_t next;
static _Atomic bool any; /* handle was shared */

static uint64_t
key_of(const void *share, int type, bool import)
{
	if (type == FABRIC && share)
		return plumb_hash_bytes(share, 64) | 1;
	if (type != FILE_DESCRIPTOR || (!import && !share))
		return 0;
	return plumb_share_file_key(import ? (int)(intptr_t)share : *(const int *)share);
}

/* With the lock. */
static struct plumb_sanitizer_shared *
entry_of(uint64_t handle)
{
	for (uint32_t i = 0; i < HANDLES; i++)
		if (handles[i].handle == handle)
			return &handles[i];
	handles[next % HANDLES] = (struct plumb_sanitizer_shared){ .handle = handle };
	return &handles[next++ % HANDLES];
}

bool
plumb_sanitizer_shared_at(uint64_t address, struct plumb_sanitizer_shared *found)
{
	bool is = false;
	if (plumb_likely(!atomic_load_explicit(&any, memory_order_relaxed)))
		return false;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	for (uint32_t i = 0; !is && i < HANDLES; i++) {
		is = handles[i].key && handles[i].address == address;
		if (is)
			*found = handles[i];
	}
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	return is;
}

/* What is known of the handle goes to the memory where it is mapped. */
static void
tell(const struct plumb_sanitizer_shared *shared)
{
	struct plumb_object_place place = { .kind = 0 };
	if (!shared->key || !shared->address)
		return;
	plumb_allocation_at(shared->address, &place);
	if (!shared->imported || place.kind == PLUMB_OBJECT_IMPORTED) {
		plumb_object_shared(shared->address, shared->key);
		return;
	}
	struct plumb_thread *thread = plumb_enter(PLUMB_CALLBACK_GPU);
	if (!thread)
		return;
	plumb_object_allocated(thread, place.kind ? place.ordinal : PLUMB_HOST_ORDINAL,
	                       PLUMB_OBJECT_IMPORTED, shared->address, shared->bytes, shared->key);
	plumb_leave(thread);
}

void
plumb_sanitizer_share(uint32_t id, const struct sanitizer_call_data *data)
{
	const struct created *created = data->parameters;
	const struct exported *exported = data->parameters;
	const struct imported *imported = data->parameters;
	const struct mapped *mapped = data->parameters;
	struct plumb_sanitizer_shared *entry = NULL, now = { 0 };
	pthread_mutex_lock(&plumb_sanitizer_lock);
	switch (id) {
	case SANITIZER_CU_CREATE: /* a handle's number may come again */
	case SANITIZER_CU_IMPORT:
		if (!created->handle)
			break;
		entry = entry_of(*created->handle);
		*entry = (struct plumb_sanitizer_shared){ .handle = *created->handle };
		if (id == SANITIZER_CU_IMPORT) {
			entry->imported = true;
			entry->key = key_of(imported->share, imported->type, true);
		}
		break;
	case SANITIZER_CU_EXPORT:
		entry = entry_of(exported->handle);
		entry->key = key_of(exported->share, exported->type, false);
		break;
	default:
		entry = entry_of(mapped->handle);
		entry->address = mapped->address;
		entry->bytes = mapped->bytes;
	}
	if (entry)
		now = *entry;
	if (now.key)
		atomic_store(&any, true);
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	tell(&now);
	if (id == SANITIZER_CU_IMPORT)
		plumb_sanitizer_reaches(data->context);
}
