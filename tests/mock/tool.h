/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in libcuda tells the stand-in libcupti. Private to tests/mock. */
#ifndef PLUMB_TESTS_MOCK_TOOL_H
#define PLUMB_TESTS_MOCK_TOOL_H

#include <stdint.h>

/* CUPTI's headers without the C++ types that need a third package. */
#define __DEVICE_TYPES_H__
#define __DRIVER_TYPES_H__
#define __SURFACE_TYPES_H__
#define __TEXTURE_TYPES_H__
#define __VECTOR_TYPES_H__
typedef unsigned int CUdeviceptr_v1;
typedef struct CUDA_MEMCPY2D_v1 CUDA_MEMCPY2D_v1;
typedef struct CUDA_MEMCPY3D_v1 CUDA_MEMCPY3D_v1;
typedef struct CUDA_ARRAY_DESCRIPTOR_v1 CUDA_ARRAY_DESCRIPTOR_v1;
typedef struct CUDA_ARRAY3D_DESCRIPTOR_v1 CUDA_ARRAY3D_DESCRIPTOR_v1;
#include <cuda.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_result.h>
#include <cupti_version.h>
#include <generated_cuda_meta.h>

#include "mock.h"

#define MOCK_EXPORT __attribute__((visibility("default")))

struct mock_call {
	uint32_t id; /* CUpti_driver_api_trace_cbid */
	const char *name, *symbol;
	const void *params;
	uint32_t correlation, context;
	uint64_t data; /* the tool's own, from enter to exit */
	CUresult result;
};

enum mock_kind {
	MOCK_KERNEL,
	MOCK_COPY,
	MOCK_PEER_COPY,
	MOCK_SET,
	MOCK_REPLAY,
	MOCK_EVENT, /* an event was recorded */
	MOCK_SYNC,
};
struct mock_work {
	enum mock_kind kind;
	const char *name;
	uint32_t correlation, device, context, stream;
	uint64_t start, end, graph_node, bytes, duration;
	uint32_t grid[3], block[3], registers, static_shared, dynamic_shared;
	uint8_t from, to, direction; /* CUpti_ActivityMemoryKind, CUpti_ActivityMemcpyKind */
	uint32_t from_device, to_device;
	uint32_t event;      /* its number, of MOCK_EVENT and MOCK_SYNC */
	uint32_t waits_type; /* CUpti_ActivitySynchronizationType */
};

struct mock_tool {
	void (*enter)(struct mock_call *call);
	void (*exit)(struct mock_call *call);
	void (*work)(const struct mock_work *work);
	/* A node of this number was made; ORIGINAL: as the clone of that one, or 0. */
	void (*graph_node)(uint64_t number, uint64_t original);
	void (*module)(const char *image, size_t bytes);
	/* The module that was loaded last is about to be unloaded. */
	void (*unload)(void);
	/* The context of DEVICE was made, or is about to be destroyed. */
	void (*context)(uint32_t device, int made);
	/* Whether replays have one record, and their nodes none. */
	int (*whole)(void);
};
/* The handle of a device's context. */
static inline CUcontext
mock_context(uint32_t device)
{
	return (CUcontext)(uintptr_t)(0x2001 + device);
}

/* What each launch of a kernel is sampled at. */
struct mock_stall {
	const char *function, *reason;
	uint64_t offset;
	uint32_t all, idle; /* samples; of them, those while no warp issued */
	uint32_t module;    /* as the setting "modules" counts */
};
MOCK_EXPORT const struct mock_stall *mock_stall_at(unsigned i); /* NULL: there is none */
/* What each launch of a kernel counts. */
struct mock_count {
	const char *function, *metric; /* as Nsight Compute's, "dram__bytes_read.sum" */
	uint64_t value;
};
MOCK_EXPORT const struct mock_count *mock_count_at(unsigned i); /* NULL: there is none */
MOCK_EXPORT void mock_attach(const struct mock_tool *tool);
MOCK_EXPORT long long *mock_value(const char *key); /* NULL: unknown key */

#endif
