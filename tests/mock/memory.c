/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in libcuda.so.1: memory in all its forms, and copies by address. See README.md. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

/* Under their exported names, which cuda.h's macros hide. */
#undef cuMemAlloc
#undef cuMemFree
#undef cuMemAllocPitch
#undef cuMemAllocHost
#undef cuMemHostRegister
#undef cuIpcOpenMemHandle
#undef cuMemcpy2D
#undef cuMemcpy2DAsync
#undef cuMemcpy3D
#undef cuMemcpy3DAsync
#undef cuMemcpyBatchAsync
#undef cuMemcpy3DBatchAsync

/* ---- what is where ---- */

#define MOST 4096
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mock_memory memories[MOST]; /* bytes 0: free */
static uint64_t freed, freed_bytes;       /* the newest, for the setting `reuse` */

static uint64_t
new_address(uint64_t bytes)
{
	static uint64_t next = 0x700000000000;
	if (mock_get("reuse") && freed && bytes <= freed_bytes) {
		uint64_t again = freed;
		freed = 0;
		return again;
	}
	return __atomic_fetch_add(&next, (bytes + 511) / 512 * 512, __ATOMIC_SEQ_CST);
}

static void
put(uint64_t address, uint64_t bytes, uint32_t device, uint8_t kind)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; bytes && i < MOST; i++) {
		if (memories[i].bytes)
			continue;
		memories[i] = (struct mock_memory){ address, bytes, device, kind };
		break;
	}
	pthread_mutex_unlock(&lock);
}

static void
take(uint64_t address)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < MOST; i++) {
		if (!memories[i].bytes || memories[i].address != address)
			continue;
		freed = address;
		freed_bytes = memories[i].bytes;
		memories[i].bytes = 0;
		break;
	}
	pthread_mutex_unlock(&lock);
}

struct mock_memory
mock_memory_at(uint64_t address)
{
	struct mock_memory found = { .kind = CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE };
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < MOST; i++)
		if (address - memories[i].address < memories[i].bytes)
			found = memories[i];
	pthread_mutex_unlock(&lock);
	return found;
}

/* Attributes that plumb asks for. */
CUresult CUDAAPI
cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct mock_memory memory = mock_memory_at(pointer);
	if (!memory.bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
		*(int *)data = (int)memory.device;
	else if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
		*(size_t *)data = memory.bytes;
	else
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* ---- allocations ---- */

#define DEVICE CUPTI_ACTIVITY_MEMORY_KIND_DEVICE
#define PINNED CUPTI_ACTIVITY_MEMORY_KIND_PINNED

static CUdeviceptr
allocate(uint64_t bytes, uint8_t kind)
{
	uint64_t address = new_address(bytes);
	put(address, bytes, mock_current_device(), kind);
	return address;
}

CUresult CUDAAPI
cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
	CALL(cuMemAlloc_v2, pointer, bytes);
	mock_begin(&call);
	*pointer = allocate(bytes, DEVICE);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemFree_v2(CUdeviceptr pointer)
{
	CALL(cuMemFree_v2, pointer);
	mock_begin(&call);
	take(pointer);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width, size_t height, unsigned unit)
{
	CALL(cuMemAllocPitch_v2, pointer, pitch, width, height, unit);
	mock_begin(&call);
	*pitch = (width + 511) / 512 * 512;
	*pointer = allocate(*pitch * height, DEVICE);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned flags)
{
	CALL(cuMemAllocManaged, pointer, bytes, flags);
	mock_begin(&call);
	*pointer = allocate(bytes, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	CALL(cuMemAllocAsync, pointer, bytes, stream);
	mock_begin(&call);
	*pointer = allocate(bytes, DEVICE);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	CALL(cuMemFreeAsync, pointer, stream);
	mock_begin(&call);
	take(pointer);
	return mock_finish(&call, CUDA_SUCCESS);
}

/* A pool's handle is its device + 1. */
CUresult CUDAAPI
cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool, CUstream stream)
{
	CALL(cuMemAllocFromPoolAsync, pointer, bytes, pool, stream);
	mock_begin(&call);
	*pointer = new_address(bytes);
	put(*pointer, bytes, (uint32_t)(uintptr_t)pool - 1, DEVICE);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemHostAlloc(void **pointer, size_t bytes, unsigned flags)
{
	CALL(cuMemHostAlloc, pointer, bytes, flags);
	mock_begin(&call);
	*pointer = malloc(bytes);
	put((uintptr_t)*pointer, bytes, 0, PINNED);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemAllocHost_v2(void **pointer, size_t bytes)
{
	CALL(cuMemAllocHost_v2, pointer, bytes);
	mock_begin(&call);
	*pointer = malloc(bytes);
	put((uintptr_t)*pointer, bytes, 0, PINNED);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemFreeHost(void *pointer)
{
	CALL(cuMemFreeHost, pointer);
	mock_begin(&call);
	take((uintptr_t)pointer);
	free(pointer);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned flags)
{
	CALL(cuMemHostRegister_v2, pointer, bytes, flags);
	mock_begin(&call);
	put((uintptr_t)pointer, bytes, 0, PINNED);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemHostUnregister(void *pointer)
{
	CALL(cuMemHostUnregister, pointer);
	mock_begin(&call);
	take((uintptr_t)pointer);
	return mock_finish(&call, CUDA_SUCCESS);
}

MOCK_EXPORT uint64_t
mock_alloc(size_t bytes, int stream)
{
	CUdeviceptr pointer = 0;
	if (stream < 0)
		cuMemAlloc_v2(&pointer, bytes);
	else
		cuMemAllocAsync(&pointer, bytes,
		                (CUstream)(uintptr_t)(stream ? 0x1000 + stream : 0));
	return pointer;
}

MOCK_EXPORT int
mock_free(uint64_t pointer, int stream)
{
	return stream < 0 ? cuMemFree_v2(pointer)
	                  : cuMemFreeAsync(pointer,
	                                   (CUstream)(uintptr_t)(stream ? 0x1000 + stream : 0));
}

/* ---- memory that is mapped: a handle is a pointer to what it is ---- */

struct handle {
	uint64_t bytes;
	uint32_t device, references;
};

CUresult CUDAAPI
cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *prop,
            unsigned long long flags)
{
	CALL(cuMemCreate, handle, bytes, prop, flags);
	mock_begin(&call);
	struct handle *made = calloc(1, sizeof *made);
	*made = (struct handle){ bytes, (uint32_t)prop->location.id, 1 };
	*handle = (uintptr_t)made;
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CALL(cuMemRelease, handle);
	mock_begin(&call);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
         unsigned long long flags)
{
	CALL(cuMemMap, pointer, bytes, offset, handle, flags);
	mock_begin(&call);
	put(pointer, bytes, ((struct handle *)(uintptr_t)handle)->device, DEVICE);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
	CALL(cuMemUnmap, pointer, bytes);
	mock_begin(&call);
	for (uint64_t at = pointer; at < pointer + bytes;) {
		struct mock_memory memory = mock_memory_at(at);
		take(at);
		at += memory.bytes ? memory.bytes : bytes;
	}
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	CALL(cuMemRetainAllocationHandle, handle, address);
	mock_begin(&call);
	return mock_finish(&call, CUDA_SUCCESS); /* the test says which handle it is */
}

/* Handles that processes pass on have all that is to know. */
struct shared {
	char mark[16];
	uint64_t address, bytes, device, pad[3];
};
_Static_assert(sizeof(struct shared) == 64, "as the driver's handles");

CUresult CUDAAPI
cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                             CUmemAllocationHandleType type, unsigned long long flags)
{
	CALL(cuMemExportToShareableHandle, out, handle, type, flags);
	const struct handle *h = (const struct handle *)(uintptr_t)handle;
	struct shared shared = { "fabric", handle, h->bytes, h->device, { 0 } };
	mock_begin(&call);
	memcpy(out, &shared, type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ? 4 : sizeof shared);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *in,
                               CUmemAllocationHandleType type)
{
	CALL(cuMemImportFromShareableHandle, handle, in, type);
	const struct shared *shared = in;
	struct handle *made = calloc(1, sizeof *made);
	mock_begin(&call);
	*made = (struct handle){ shared->bytes, (uint32_t)shared->device, 1 };
	*handle = (uintptr_t)made;
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                       CUmemGenericAllocationHandle handle)
{
	prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop->location.id = (int)((const struct handle *)(uintptr_t)handle)->device;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
	CALL(cuIpcGetMemHandle, handle, pointer);
	struct mock_memory memory = mock_memory_at(pointer);
	struct shared shared = { "ipc", memory.address, memory.bytes, memory.device, { 0 } };
	mock_begin(&call);
	memcpy(handle, &shared, sizeof shared);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)
{
	CALL(cuIpcOpenMemHandle_v2, pointer, handle, flags);
	struct shared shared;
	mock_begin(&call);
	memcpy(&shared, &handle, sizeof shared);
	/* The same one again is at the same address. */
	uint64_t there = shared.address + 0x100000000000;
	if (!mock_memory_at(there).bytes)
		put(there, shared.bytes, (uint32_t)shared.device, DEVICE);
	*pointer = there;
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	CALL(cuIpcCloseMemHandle, pointer);
	mock_begin(&call);
	return mock_finish(&call, CUDA_SUCCESS);
}

/* ---- copies by address ---- */

#define MOVE(from, to, bytes, stream)                                                              \
	mock_begin(&call);                                                                         \
	mock_move(&call, from, to, bytes, stream);                                                 \
	return mock_finish(&call, CUDA_SUCCESS)

CUresult CUDAAPI
cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
	CALL(cuMemcpy, to, from, bytes);
	MOVE(from, to, bytes, NULL);
}

CUresult CUDAAPI
cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	CALL(cuMemcpyAsync, to, from, bytes, stream);
	MOVE(from, to, bytes, stream);
}

CUresult CUDAAPI
cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
             size_t bytes)
{
	CALL(cuMemcpyPeer, to, to_context, from, from_context, bytes);
	MOVE(from, to, bytes, NULL);
}

#define FLAT(c, end)                                                                               \
	((c)->end##MemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)(c)->end##Host : (c)->end##Device)
#define FLAT_BYTES(c) ((c)->WidthInBytes * (c)->Height)
#define DEEP_BYTES(c) (FLAT_BYTES(c) * (c)->Depth)

CUresult CUDAAPI
cuMemcpy2D_v2(const CUDA_MEMCPY2D *copy)
{
	CALL(cuMemcpy2D_v2, copy);
	MOVE(FLAT(copy, src), FLAT(copy, dst), FLAT_BYTES(copy), NULL);
}

CUresult CUDAAPI
cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy, CUstream stream)
{
	CALL(cuMemcpy2DAsync_v2, copy, stream);
	MOVE(FLAT(copy, src), FLAT(copy, dst), FLAT_BYTES(copy), stream);
}

CUresult CUDAAPI
cuMemcpy3D_v2(const CUDA_MEMCPY3D *copy)
{
	CALL(cuMemcpy3D_v2, copy);
	MOVE(FLAT(copy, src), FLAT(copy, dst), DEEP_BYTES(copy), NULL);
}

CUresult CUDAAPI
cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy, CUstream stream)
{
	CALL(cuMemcpy3DPeerAsync, copy, stream);
	MOVE(FLAT(copy, src), FLAT(copy, dst), DEEP_BYTES(copy), stream);
}

#if CUDA_VERSION >= 13000
CUresult CUDAAPI
cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *bytes, size_t count,
                      CUmemcpyAttributes *attributes, size_t *indexes, size_t attribute_count,
                      CUstream stream)
{
	cuMemcpyBatchAsync_v2_ptsz_params params = { to,         from,    bytes,           count,
		                                     attributes, indexes, attribute_count, stream };
	struct mock_call call = {
		.id = CUPTI_DRIVER_TRACE_CBID_cuMemcpyBatchAsync_v2,
		.name = "cuMemcpyBatchAsync_v2",
		.params = &params,
	};
	mock_begin(&call);
	for (size_t i = 0; i < count; i++)
		mock_move(&call, from[i], to[i], bytes[i], stream);
	return mock_finish(&call, CUDA_SUCCESS);
}

CUresult CUDAAPI
cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *copies, unsigned long long flags,
                        CUstream stream)
{
	cuMemcpy3DBatchAsync_v2_ptsz_params params = { count, copies, flags, stream };
	struct mock_call call = {
		.id = CUPTI_DRIVER_TRACE_CBID_cuMemcpy3DBatchAsync_v2,
		.name = "cuMemcpy3DBatchAsync_v2",
		.params = &params,
	};
	mock_begin(&call);
	for (size_t i = 0; i < count; i++)
		mock_move(&call, copies[i].src.op.ptr.ptr, copies[i].dst.op.ptr.ptr,
		          copies[i].extent.width * copies[i].extent.height * copies[i].extent.depth,
		          stream);
	return mock_finish(&call, CUDA_SUCCESS);
}
#endif

/* A node of the graph that the current device's stream 0 is captured into. */
CUresult CUDAAPI
cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before, size_t count,
                     const CUDA_MEMCPY3D *copy, CUcontext context)
{
	CALL(cuGraphAddMemcpyNode, node, graph, before, count, copy, context);
	MOVE(FLAT(copy, src), FLAT(copy, dst), DEEP_BYTES(copy), NULL);
}
