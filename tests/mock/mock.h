/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a test says to the stand-in driver: exported by its libcuda.so.1. Include it, dlopen
 * libcuda.so.1 (or link it) and call. Every function below goes through the driver functions that
 * a real program would call (cuLaunchKernel, cuMemcpyHtoDAsync_v2, …), so a tool attached by CUPTI
 * sees callbacks and records exactly as it would on a GPU. README.md lists what a scenario can say.
 * All return a CUresult (0 is success) unless said otherwise. Callable from any thread.
 */
#ifndef PLUMB_TESTS_MOCK_H
#define PLUMB_TESTS_MOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sets or reads a key of the scenario; see README.md. Reading an unknown key gives -1. */
int mock_set(const char *key, long long value);
long long mock_get(const char *key);

/* A kernel launch. Zeroed fields mean: grid and block 1, device 0, stream 0, no shared memory,
 * 32 registers. NAME must outlive the process's use of it (a literal). */
struct mock_launch {
	const char *name; /* mangled, as in a cubin */
	uint64_t duration_ns;
	uint32_t grid[3], block[3];
	uint32_t registers;
	uint32_t static_shared, dynamic_shared;
	uint32_t device;
	uint32_t stream; /* 0…63; the record carries stream + 7, as real numbering does */
};
int mock_launch(const char *name, uint64_t duration_ns);
int mock_launch_ex(const struct mock_launch *launch);

/* Copies. Direction and memory kinds come from the two places. */
enum mock_place {
	MOCK_PAGEABLE = 1,
	MOCK_PINNED = 2,
	MOCK_DEVICE = 3,
	MOCK_ARRAY = 4,
	MOCK_MANAGED = 5,
};
struct mock_copy {
	enum mock_place from, to;
	uint64_t bytes;
	uint64_t duration_ns;
	int blocking;     /* the synchronous driver function */
	uint64_t host_ns; /* how long the call sleeps on the host before it returns */
	uint32_t device, stream;
	int to_peer; /* to the device so many further on; 0: none */
};
int mock_copy(const struct mock_copy *copy);

/* Sets BYTES bytes of device memory (cuMemsetD8Async). */
int mock_memset(uint64_t bytes, uint64_t duration_ns, uint32_t stream);

/* Waits; the call sleeps HOST_NS. */
enum mock_wait { MOCK_WAIT_STREAM, MOCK_WAIT_CONTEXT, MOCK_WAIT_EVENT };
int mock_wait(enum mock_wait what, uint64_t host_ns);
/* cuStreamWaitEvent: the host does not wait. */
int mock_stream_wait_event(uint32_t stream);
/* cuEventRecord, and waits for event EVENT (1…): by STREAM, on the host. */
int mock_event_record(uint32_t event, uint32_t stream);
int mock_stream_waits(uint32_t stream, uint32_t event);
int mock_event_wait(uint32_t event, uint64_t host_ns);
/* cuStreamSynchronize of STREAM; the call sleeps HOST_NS. */
int mock_stream_wait(uint32_t stream, uint64_t host_ns);

/* What this thread calls next is on DEVICE. */
void mock_device(uint32_t device);

/* Device memory: cuMemAlloc_v2 and cuMemFree_v2 when STREAM is negative, else the Async pair. */
uint64_t mock_alloc(size_t bytes, int stream);
int mock_free(uint64_t pointer, int stream);

/* A module is loaded whose image lies at IMAGE, 8-byte aligned. */
void mock_module_load(const void *image, size_t bytes);

/* It is unloaded. */
void mock_module_unload(void);

/* Each launch of the kernel FUNCTION, of the module that was loaded last, is sampled ALL times at
 * OFFSET with REASON (long_scoreboard), of them IDLE times while no warp issued. */
void
mock_stall(const char *function, uint64_t offset, const char *reason, uint32_t all, uint32_t idle);

/* Each launch of the kernel FUNCTION counts VALUE of METRIC (dram__bytes_read.sum). */
void mock_counter(const char *function, const char *metric, uint64_t value);

/* The context of DEVICE is destroyed; the next call makes another. */
void mock_context_destroy(uint32_t device);

/* A graph: begin capturing on a stream, launch and copy into it, end, launch as often as wanted. */
int mock_capture_begin(uint32_t stream);
void *mock_capture_end(uint32_t stream);
int mock_graph_launch(void *graph, uint32_t stream);

/* Moves a stream's end by NS: a gap of idleness. */
void mock_gap(uint32_t device, uint32_t stream, uint64_t ns);

/* What the stream does next starts no earlier than NS of the stand-in GPU's clock: processes that
 * agree on times are ranks of one job. */
void mock_stream_until(uint32_t device, uint32_t stream, uint64_t ns);

/* The stand-in GPU's clock, ns. */
uint64_t mock_now(void);
int mock_is_initialised(void); /* cuInit was called, or is running on this thread */

#ifdef __cplusplus
}
#endif
#endif
