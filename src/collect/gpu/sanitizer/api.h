/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plumb uses of NVIDIA's Compute Sanitizer API: declarations of our own, so that nothing of it
 * is needed to build plumb. The library is opened at run time (library.c).
 *
 * It does not say its version. Compared were the headers of CUDA 12.6, 12.8, 12.9 and 13.0 to 13.5:
 * the members below have the same places in all of them. Later versions add members at the end of
 * structures (a green context to SynchronizeData in 13.1, a split launch to LaunchData in 13.4). In
 * ContextData the device moved (13.1), so it is not read. Ids of patches since 12.9: BULK_STORE and
 * BULK_REDUCTION; an older library refuses them.
 */
#ifndef PLUMB_COLLECT_GPU_SANITIZER_API_H
#define PLUMB_COLLECT_GPU_SANITIZER_API_H

#include <stddef.h>
#include <stdint.h>

typedef int sanitizer_result; /* 0: success */
enum {
	SANITIZER_INVALID_DEVICE = 2,
	SANITIZER_MAX_LIMIT = 10,
	SANITIZER_NOT_COMPATIBLE = 12,
	SANITIZER_NOT_SUPPORTED = 14,
};

/* Handles of the driver and of the sanitizer. */
typedef struct sanitizer_context *sanitizer_context;   /* CUcontext */
typedef struct sanitizer_module *sanitizer_module;     /* CUmodule */
typedef struct sanitizer_function *sanitizer_function; /* CUfunction */
typedef struct sanitizer_stream *sanitizer_stream;     /* Sanitizer_StreamHandle */
typedef struct sanitizer_launch *sanitizer_launch;     /* Sanitizer_LaunchHandle */
typedef struct sanitizer_subscriber *sanitizer_subscriber;

enum sanitizer_domain {
	SANITIZER_DRIVER = 1,
	SANITIZER_RESOURCE = 3,
	SANITIZER_SYNCHRONIZE = 4,
	SANITIZER_LAUNCH = 5,
	SANITIZER_MEMCPY = 6,
	SANITIZER_GRAPHS = 10,
};
enum { /* in RESOURCE */
       SANITIZER_CONTEXT_CREATED = 3,
       SANITIZER_CONTEXT_DESTROYING = 4,
       SANITIZER_MODULE_LOADED = 9,
       SANITIZER_MODULE_UNLOADING = 10,
       SANITIZER_MEMORY_ALLOCATED = 11,
       SANITIZER_MEMORY_FREED = 12,
       SANITIZER_HOST_ALLOCATED = 13,
       SANITIZER_HOST_FREED = 14,
       SANITIZER_ASYNC_ALLOCATED = 15,
       SANITIZER_ASYNC_FREED = 16,
       SANITIZER_POOL_PEER = 20, /* a peer may use a pool from now on */
       SANITIZER_POOL_IMPORTED = 28,
};
enum { /* in SYNCHRONIZE */
       SANITIZER_STREAM_DONE = 1,
       SANITIZER_CONTEXT_DONE = 2,
};
enum { /* in LAUNCH */
       SANITIZER_LAUNCH_BEGIN = 1,
       SANITIZER_LAUNCH_END = 3,
};
enum { SANITIZER_MEMCPY_STARTING = 1 };
enum { /* in GRAPHS */
       SANITIZER_GRAPH_CREATED = 2,
       SANITIZER_NODE_BEGIN = 4,
       SANITIZER_GRAPH_BEGIN = 6,
       SANITIZER_GRAPH_END = 7,
};
enum { /* in DRIVER: as CUPTI's numbers */
       SANITIZER_CU_PEER_ACCESS = 313,
       SANITIZER_CU_IPC_GET = 328,
       SANITIZER_CU_SET_ACCESS = 553,
       SANITIZER_CU_IPC_OPEN = 567,
       SANITIZER_CU_MULTICAST_CREATE = 706,
       SANITIZER_CU_COPY_BATCH = 776, /* cuMemcpyBatchAsync, and _ptsz, then _v2 */
       SANITIZER_CU_COPY_BATCH_PTSZ = 777,
       SANITIZER_CU_COPY_BATCH_V2 = 796,
       SANITIZER_CU_COPY_BATCH_V2_PTSZ = 797,
};

enum { /* likewise, of handles */
       SANITIZER_CU_CREATE = 549,
       SANITIZER_CU_MAP = 551,
       SANITIZER_CU_EXPORT = 554,
       SANITIZER_CU_IMPORT = 555,
};

enum sanitizer_patch {
	SANITIZER_GLOBAL = 3,
	SANITIZER_ASYNC_COPY = 14,
	SANITIZER_BULK_LOAD = 30,
	SANITIZER_BULK_STORE = 35,
	SANITIZER_BULK_REDUCTION = 37,
};

enum sanitizer_memory_flags {
	SANITIZER_OF_MODULE = 1,
	SANITIZER_MANAGED = 2,
	SANITIZER_HOST_MAPPED = 4,
	SANITIZER_HOST_PINNED = 8,
	SANITIZER_PEER = 16,
};

struct sanitizer_context_data {
	sanitizer_context context;
};
struct sanitizer_module_data {
	sanitizer_context context;
	sanitizer_module module;
	size_t cubin_size;
	const char *cubin;
};
struct sanitizer_memory_data {
	uint64_t address, size;
	sanitizer_context context;
	int device;
	void *stream;
	sanitizer_stream stream_handle;
	void *pool;
	uint32_t flags, permissions;
	int visibility;
	int source; /* the device whose memory it is */
};
struct sanitizer_pool_data {
	void *pool;
	int device, peer;
};
struct sanitizer_synchronize_data {
	sanitizer_context context;
	void *stream;
	sanitizer_stream stream_handle;
};
struct sanitizer_launch_data {
	sanitizer_context context;
	void *stream;
	sanitizer_stream stream_handle;
	sanitizer_module module;
	sanitizer_function function;
	const char *name;
	uint32_t grid[3], block[3], cluster[3];
	uint64_t grid_id;
	sanitizer_launch launch;
	int device;
};
struct sanitizer_memcpy_data {
	sanitizer_context from_context, to_context;
	void *from_stream;
	sanitizer_stream from_stream_handle;
	void *to_stream;
	sanitizer_stream to_stream_handle;
	uint64_t from, to, size, width, height, depth, from_pitch, to_pitch;
	uint32_t is_async;
	int direction;
	sanitizer_context api_context;
};
enum { SANITIZER_NODE_KERNEL = 0, SANITIZER_NODE_MEMCPY = 1 }; /* CUgraphNodeType */
struct sanitizer_node_data {
	void *executable;
	uint32_t launch_id;
	void *node;
	int type;
	union {
		struct sanitizer_launch_data launch;
		struct sanitizer_memcpy_data copy;
		uint64_t whole[18];
	};
	uint32_t is_upload;
};
struct sanitizer_graph_data {
	sanitizer_context context;
	void *stream;
	sanitizer_stream stream_handle;
	void *executable;
	uint32_t is_upload;
};
struct sanitizer_executable_data {
	void *graph, *executable;
	uint32_t is_device_launch, launches_from_device;
};
struct sanitizer_call_data {
	int site; /* 0: entry; 1: exit */
	const char *name;
	const void *parameters;
	const void *result;
	const char *symbol;
	sanitizer_context context;
};

#define SANITIZER_AT(type, member, offset)                                                         \
	_Static_assert(offsetof(struct sanitizer_##type, member) == (offset), #type "." #member)
SANITIZER_AT(module_data, module, 8);
SANITIZER_AT(module_data, cubin_size, 16);
SANITIZER_AT(module_data, cubin, 24);
SANITIZER_AT(memory_data, size, 8);
SANITIZER_AT(memory_data, context, 16);
SANITIZER_AT(memory_data, device, 24);
SANITIZER_AT(memory_data, pool, 48);
SANITIZER_AT(memory_data, flags, 56);
SANITIZER_AT(memory_data, source, 68);
SANITIZER_AT(pool_data, device, 8);
SANITIZER_AT(pool_data, peer, 12);
SANITIZER_AT(synchronize_data, stream, 8);
SANITIZER_AT(synchronize_data, stream_handle, 16);
SANITIZER_AT(launch_data, stream_handle, 16);
SANITIZER_AT(launch_data, module, 24);
SANITIZER_AT(launch_data, function, 32);
SANITIZER_AT(launch_data, name, 40);
SANITIZER_AT(launch_data, grid, 48);
SANITIZER_AT(launch_data, block, 60);
SANITIZER_AT(launch_data, cluster, 72);
SANITIZER_AT(launch_data, grid_id, 88);
SANITIZER_AT(launch_data, launch, 96);
SANITIZER_AT(launch_data, device, 104);
SANITIZER_AT(memcpy_data, to_context, 8);
SANITIZER_AT(memcpy_data, from, 48);
SANITIZER_AT(memcpy_data, to, 56);
SANITIZER_AT(memcpy_data, size, 64);
SANITIZER_AT(memcpy_data, width, 72);
SANITIZER_AT(memcpy_data, height, 80);
SANITIZER_AT(memcpy_data, depth, 88);
SANITIZER_AT(memcpy_data, direction, 116);
SANITIZER_AT(memcpy_data, api_context, 120);
SANITIZER_AT(node_data, launch_id, 8);
SANITIZER_AT(node_data, node, 16);
SANITIZER_AT(node_data, type, 24);
SANITIZER_AT(node_data, launch, 32);
SANITIZER_AT(node_data, is_upload, 176);
SANITIZER_AT(graph_data, stream_handle, 16);
SANITIZER_AT(graph_data, executable, 24);
SANITIZER_AT(graph_data, is_upload, 32);
SANITIZER_AT(executable_data, executable, 8);
SANITIZER_AT(executable_data, launches_from_device, 20);
SANITIZER_AT(call_data, parameters, 16);
SANITIZER_AT(call_data, result, 24);
SANITIZER_AT(call_data, context, 40);

typedef void (*sanitizer_callback)(void *user, int domain, uint32_t id, const void *data);

/* X(name after "sanitizer", parameters, needed) */
#define SANITIZER_FUNCTIONS(X)                                                                     \
	X(Subscribe, (sanitizer_subscriber *, sanitizer_callback, void *), 1)                      \
	X(Unsubscribe, (sanitizer_subscriber), 1)                                                  \
	X(EnableDomain, (uint32_t, sanitizer_subscriber, int), 1)                                  \
	X(EnableCallback, (uint32_t, sanitizer_subscriber, int, uint32_t), 1)                      \
	X(AddPatches, (const void *, sanitizer_context), 1)                                        \
	X(PatchInstructions, (int, sanitizer_module, const char *), 1)                             \
	X(PatchModule, (sanitizer_module), 1)                                                      \
	X(UnpatchModule, (sanitizer_module), 1)                                                    \
	X(SetCallbackData, (sanitizer_function, const void *), 1)                                  \
	X(SetLaunchCallbackData,                                                                   \
	  (sanitizer_launch, sanitizer_function, sanitizer_stream, const void *), 0)               \
	X(GetFunctionPcAndSize, (sanitizer_module, const char *, uint64_t *, uint64_t *), 1)       \
	X(GetStreamHandle, (sanitizer_context, void *, sanitizer_stream *), 0)                     \
	X(Alloc, (sanitizer_context, void **, size_t), 1)                                          \
	X(Free, (sanitizer_context, void *), 1)                                                    \
	X(MemcpyHostToDeviceAsync, (void *, void *, size_t, sanitizer_stream), 1)                  \
	X(MemcpyDeviceToHost, (void *, void *, size_t, sanitizer_stream), 1)                       \
	X(Memset, (void *, int, size_t, sanitizer_stream), 1)                                      \
	X(GetResultString, (sanitizer_result, const char **), 0)

struct plumb_sanitizer_api {
#define X(name, parameters, needed) sanitizer_result(*name) parameters;
	SANITIZER_FUNCTIONS(X)
#undef X
	char path[4096];
};

#endif
