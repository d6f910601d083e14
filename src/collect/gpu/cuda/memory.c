/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What driver calls allocate, map and share, as objects (collect/object.h).
 *
 * Frees end a range when the call begins: once it returns, another thread may have been given the
 * same address. A mapping belongs to the device of its handle, whatever device is current. Memory
 * of another process has the device that the driver names.
 */
#include <string.h>

#include "base/hash.h"
#include "collect/gpu/cuda/runtime.h"
#include "collect/gpu/share.h"
#include "collect/object.h"

#define CONTEXTS 256u /* whose device is remembered */

/* ---- whose memory ---- */

uint32_t
plumb_cuda_ordinal(CUcontext context, uint32_t uid)
{
	static _Atomic uint64_t known[CONTEXTS]; /* uid << 32 | ordinal + 1 */
	uint64_t seen = atomic_load_explicit(&known[uid % CONTEXTS], memory_order_relaxed);
	uint32_t ordinal;
	if (seen && seen >> 32 == uid)
		return (uint32_t)seen - 1;
	if (!context || !plumb_cupti.GetDeviceId ||
	    plumb_cupti.GetDeviceId(context, &ordinal) != CUPTI_SUCCESS || ordinal > INT32_MAX)
		return PLUMB_HOST_ORDINAL;
	if (uid)
		atomic_store_explicit(&known[uid % CONTEXTS], (uint64_t)uid << 32 | (ordinal + 1),
		                      memory_order_relaxed);
	return ordinal;
}

/* The device of the memory at ADDRESS, as the driver knows it; else OTHERWISE. */
static uint32_t
owner_of(CUdeviceptr address, uint32_t otherwise)
{
	int ordinal = -1;
	return plumb_driver.cuPointerGetAttribute &&
	                       plumb_driver.cuPointerGetAttribute(
				       &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) ==
	                               CUDA_SUCCESS &&
	                       ordinal >= 0
	               ? (uint32_t)ordinal
	               : otherwise;
}

/* Bytes of the allocation that ADDRESS lies in; 0: not known. */
static uint64_t
size_of(CUdeviceptr address)
{
	size_t bytes = 0;
	return plumb_driver.cuPointerGetAttribute &&
	                       plumb_driver.cuPointerGetAttribute(&bytes,
	                                                          CU_POINTER_ATTRIBUTE_RANGE_SIZE,
	                                                          address) == CUDA_SUCCESS
	               ? bytes
	               : 0;
}

static uint32_t
ordinal_of(const CUmemAllocationProp *properties)
{
	return properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
	                       properties->location.id >= 0
	               ? (uint32_t)properties->location.id
	               : PLUMB_HOST_ORDINAL;
}

static enum plumb_object_kind
kind_of(const CUmemAllocationProp *properties)
{
	return ordinal_of(properties) == PLUMB_HOST_ORDINAL ? PLUMB_OBJECT_PINNED
	                                                    : PLUMB_OBJECT_MAPPED;
}

/* ---- keys ---- */

/* The same in each process that has the handle; never 0. */
static uint64_t
key_of(const void *handle, size_t bytes)
{
	uint64_t key = plumb_hash_bytes(handle, bytes);
	return key ? key : 1;
}

/* HANDLE: what an export wrote, and FD the file that it may be. */
static uint64_t
share_key(const void *handle, int fd, CUmemAllocationHandleType type)
{
	return type == CU_MEM_HANDLE_TYPE_FABRIC && handle
	               ? key_of(handle, sizeof(CUmemFabricHandle))
	       : type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? plumb_share_file_key(fd)
	                                                          : 0;
}

/* Memory that was imported by its KEY is counted like that of a handle. Handles of the driver are
 * pointers, so that these are not among them. */
static uint64_t
import_handle(uint64_t key)
{
	return key | 1ull << 63;
}

/* ---- calls ---- */

static void
add(struct plumb_thread *thread, plumb_id node, uint32_t ordinal, enum plumb_object_kind kind,
    uint64_t address, uint64_t bytes)
{
	const struct plumb_allocation allocation = {
		.node = node,
		.ordinal = ordinal,
		.kind = kind,
		.address = address,
		.bytes = bytes,
	};
	plumb_object_add(thread, &allocation);
}

static void
add_device_memory(struct plumb_thread *thread, unsigned kind, plumb_id node,
                  const CUpti_CallbackData *info)
{
	const cuMemAlloc_v2_params *alloc = info->functionParams;
	const cuMemAllocPitch_v2_params *pitch = info->functionParams;
	uint32_t ordinal = plumb_cuda_ordinal(info->context, info->contextUid);
	if (!alloc->dptr)
		return;
	switch (kind) {
	case PLUMB_CALL_ALLOC_MANAGED: /* wherever it is used */
		add(thread, node, PLUMB_HOST_ORDINAL, PLUMB_OBJECT_MANAGED, *alloc->dptr,
		    alloc->bytesize);
		break;
	case PLUMB_CALL_ALLOC_POOL:
		ordinal = owner_of(*alloc->dptr, ordinal);
		/* fall through */
	case PLUMB_CALL_ALLOC_ASYNC:
		add(thread, node, ordinal, PLUMB_OBJECT_POOL, *alloc->dptr, alloc->bytesize);
		break;
	case PLUMB_CALL_ALLOC_PITCH:
		if (pitch->pPitch)
			add(thread, node, ordinal, PLUMB_OBJECT_DEVICE, *pitch->dptr,
			    *pitch->pPitch * pitch->Height);
		break;
	default:
		add(thread, node, ordinal, PLUMB_OBJECT_DEVICE, *alloc->dptr, alloc->bytesize);
		break;
	}
}

/* Memory of another process, by its KEY (0: it has none), is at ADDRESS. */
static void
open_import(struct plumb_thread *thread, plumb_id node, uint64_t key, CUdeviceptr address)
{
	const struct plumb_allocation allocation = {
		.node = node,
		.ordinal = owner_of(address, PLUMB_HOST_ORDINAL),
		.kind = PLUMB_OBJECT_IMPORTED,
		.bytes = size_of(address),
		.key = key,
	};
	uint64_t handle = import_handle(key);
	if (plumb_memory_retained(handle)) /* it is there already */
		return;
	plumb_memory_made(thread, &allocation, handle);
	plumb_memory_mapped(thread, handle, address, allocation.bytes);
}

static void
close_import(struct plumb_thread *thread, CUdeviceptr address)
{
	struct plumb_object_place place;
	if (!plumb_allocation_at(address, &place) || place.kind != PLUMB_OBJECT_IMPORTED)
		return;
	if (plumb_memory_released(import_handle(place.key)))
		plumb_object_freed(thread, place.address);
}

static void
import_handle_of(struct plumb_thread *thread, plumb_id node,
                 const cuMemImportFromShareableHandle_params *import)
{
	CUmemAllocationProp properties = { 0 };
	bool known = import->handle && plumb_driver.cuMemGetAllocationPropertiesFromHandle &&
	             plumb_driver.cuMemGetAllocationPropertiesFromHandle(
			     &properties, *import->handle) == CUDA_SUCCESS;
	const struct plumb_allocation allocation = {
		.node = node,
		.ordinal = known ? ordinal_of(&properties) : PLUMB_HOST_ORDINAL,
		.kind = PLUMB_OBJECT_IMPORTED,
		.key = share_key(import->osHandle, (int)(intptr_t)import->osHandle,
		                 import->shHandleType),
	};
	if (import->handle && !plumb_memory_retained(*import->handle))
		plumb_memory_made(thread, &allocation, *import->handle);
}

static void
create(struct plumb_thread *thread, plumb_id node, const cuMemCreate_params *made)
{
	if (!made->handle || !made->prop)
		return;
	const struct plumb_allocation allocation = {
		.node = node,
		.ordinal = ordinal_of(made->prop),
		.kind = kind_of(made->prop),
		.bytes = made->size,
	};
	plumb_memory_made(thread, &allocation, *made->handle);
}

void
plumb_cuda_memory_enter(struct plumb_thread *thread, unsigned kind, const CUpti_CallbackData *info)
{
	const cuMemFree_v2_params *freed = info->functionParams;
	const cuMemUnmap_params *unmap = info->functionParams;
	switch (kind) {
	case PLUMB_CALL_FREE:
	case PLUMB_CALL_HOST_FREE:
		plumb_object_freed(thread, freed->dptr);
		break;
	case PLUMB_CALL_UNMAP:
		plumb_objects_freed(thread, unmap->ptr, unmap->size);
		break;
	case PLUMB_CALL_RELEASE:
		plumb_memory_released(freed->dptr);
		break;
	case PLUMB_CALL_IPC_CLOSE:
		close_import(thread, freed->dptr);
		break;
	case PLUMB_CALL_CHANGE_COPY:
		plumb_cuda_copies_changed();
		break;
	default:
		break;
	}
}
_Static_assert(sizeof(((cuMemFreeHost_params *)0)->p) == sizeof(CUdeviceptr) &&
                       !offsetof(cuMemFreeHost_params, p) &&
                       !offsetof(cuMemHostUnregister_params, p) &&
                       !offsetof(cuMemRelease_params, handle) &&
                       !offsetof(cuIpcCloseMemHandle_params, dptr),
               "what is freed comes first");

void
plumb_cuda_memory_exit(struct plumb_thread *thread, unsigned kind, plumb_id node,
                       const CUpti_CallbackData *info)
{
	const void *params = info->functionParams;
	const cuMemHostAlloc_params *host = params;
	const cuMemHostRegister_v2_params *registered = params;
	const cuMemMap_params *map = params;
	const cuMemRetainAllocationHandle_params *retain = params;
	const cuMemExportToShareableHandle_params *export = params;
	const cuIpcGetMemHandle_params *get = params;
	const cuIpcOpenMemHandle_v2_params *open = params;
	const cuMemPoolExportPointer_params *pool_export = params;
	const cuMemPoolImportPointer_params *pool_import = params;
	uint64_t key;
	switch (kind) {
	case PLUMB_CALL_CREATE:
		create(thread, node, params);
		break;
	case PLUMB_CALL_HOST_ALLOC:
		if (host->pp)
			add(thread, node, PLUMB_HOST_ORDINAL, PLUMB_OBJECT_PINNED,
			    (uintptr_t)*host->pp, host->bytesize);
		break;
	case PLUMB_CALL_HOST_REGISTER:
		add(thread, node, PLUMB_HOST_ORDINAL, PLUMB_OBJECT_PINNED, (uintptr_t)registered->p,
		    registered->bytesize);
		break;
	case PLUMB_CALL_MAP:
		plumb_memory_mapped(thread, map->handle, map->ptr, map->size);
		break;
	case PLUMB_CALL_RETAIN:
		if (retain->handle)
			plumb_memory_retained(*retain->handle);
		break;
	case PLUMB_CALL_EXPORT:
		key = export->shareableHandle
		              ? share_key(export->shareableHandle, *(int *)export->shareableHandle,
		                          export->handleType)
		              : 0;
		if (key)
			plumb_memory_shared(export->handle, key);
		break;
	case PLUMB_CALL_IMPORT:
		import_handle_of(thread, node, params);
		break;
	case PLUMB_CALL_IPC_GET:
		if (get->pHandle)
			plumb_object_shared(get->dptr, key_of(get->pHandle, sizeof *get->pHandle));
		break;
	case PLUMB_CALL_IPC_OPEN:
		if (open->pdptr)
			open_import(thread, node, key_of(&open->handle, sizeof open->handle),
			            *open->pdptr);
		break;
	case PLUMB_CALL_POOL_EXPORT:
		if (pool_export->shareData_out)
			plumb_object_shared(pool_export->ptr,
			                    key_of(pool_export->shareData_out,
			                           sizeof *pool_export->shareData_out));
		break;
	case PLUMB_CALL_POOL_IMPORT:
		if (pool_import->ptr_out && pool_import->shareData)
			open_import(thread, node,
			            key_of(pool_import->shareData, sizeof *pool_import->shareData),
			            *pool_import->ptr_out);
		break;
	default:
		if (kind <= PLUMB_CALL_ALLOC_PITCH)
			add_device_memory(thread, kind, node, info);
		break;
	}
}
_Static_assert(offsetof(cuMemAllocHost_v2_params, bytesize) ==
                               offsetof(cuMemHostAlloc_params, bytesize) &&
                       offsetof(cuMemHostRegister_params, bytesize) ==
                               offsetof(cuMemHostRegister_v2_params, bytesize) &&
                       offsetof(cuIpcOpenMemHandle_params, handle) ==
                               offsetof(cuIpcOpenMemHandle_v2_params, handle),
               "parameters of functions of memory");
