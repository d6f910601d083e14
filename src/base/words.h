/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vocabulary that every part of plumb shares: kinds of frame, flags of a context, metrics.
 *
 * The numbers are part of the region's and the profile's format: append, never reorder or reuse.
 * Names, units and aggregation are data (plumb_frame_kinds, plumb_metrics), so that help, docs,
 * schema and JSON all come from the one table here. Needs nothing but libc headers.
 */
#ifndef PLUMB_BASE_WORDS_H
#define PLUMB_BASE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(identifier, number, name) */
#define PLUMB_FRAME_KINDS(X)                                                                       \
	X(ROOT, 0, "root")                                                                         \
	X(PYTHON, 1, "python")                                                                     \
	X(MODULE, 2, "module")                                                                     \
	X(OPERATOR, 3, "operator")                                                                 \
	X(RANGE, 4, "range")                                                                       \
	X(NATIVE, 5, "native")                                                                     \
	X(LIBRARY, 6, "library")                                                                   \
	X(GPU_API, 7, "gpu_api")                                                                   \
	X(GRAPH, 8, "graph")                                                                       \
	X(COLLECTIVE, 9, "collective")                                                             \
	X(KERNEL, 10, "kernel")                                                                    \
	X(COPY, 11, "copy")                                                                        \
	X(SET, 12, "set")                                                                          \
	X(DEVICE_FUNCTION, 13, "device_function")                                                  \
	X(INLINE, 14, "inline")                                                                    \
	X(LOOP, 15, "loop")                                                                        \
	X(LINE, 16, "line")                                                                        \
	X(INSTRUCTION, 17, "instruction")

enum plumb_frame_kind {
#define X(id, number, name) PLUMB_FRAME_##id = number,
	PLUMB_FRAME_KINDS(X)
#undef X
		PLUMB_FRAME_KIND_COUNT
};

/* Flags of a context. They are part of its identity: the forward call of an operator and the
 * backward work that the same operator caused are two contexts. */
enum {
	PLUMB_CONTEXT_BACKWARD = 1 << 0, /* work of the backward pass, under the forward operator
	                                        that caused it */
	PLUMB_CONTEXT_ACCUMULATION = 1
	                             << 1, /* backward work that no single forward operator caused:
	                                        gradient accumulation, root gradients, hooks. It
	                                        hangs under the line that called backward. */
	PLUMB_CONTEXT_TRUNCATED = 1 << 2,  /* deeper frames exist and were not kept */
	/* In regions only: the operators of a native frame's path are those that its functions say
	 * (--mode lean). With HIDDEN, nothing else of it is shown. */
	PLUMB_CONTEXT_OPERATORS = 1 << 4,
	PLUMB_CONTEXT_HIDDEN = 1 << 5,
	/* Likewise: a native frame's line is the instruction that a sample interrupted. */
	PLUMB_CONTEXT_INTERRUPTED = 1 << 7,
	/* Likewise: the node of a copy has both its devices (plumb_record_copy). */
	PLUMB_CONTEXT_ENDS = 1 << 6,
};

/* Layers of a call path that can be left out (`plumb run --layers`). */
enum plumb_layer {
	PLUMB_LAYER_PYTHON = 1 << 0,
	PLUMB_LAYER_MODULE = 1 << 1,
	PLUMB_LAYER_OPERATOR = 1 << 2,
	PLUMB_LAYER_NATIVE = 1 << 3,
	PLUMB_LAYER_NATIVE_ALONE = 1 << 4, /* native frames where no Python interpreter runs */
	PLUMB_LAYER_LEAN = 1 << 5, /* operators come from native frames, not from callbacks */
};
#define PLUMB_LAYERS_LIGHT (PLUMB_LAYER_PYTHON | PLUMB_LAYER_MODULE | PLUMB_LAYER_OPERATOR)
#define PLUMB_LAYERS_DEFAULT (PLUMB_LAYERS_LIGHT | PLUMB_LAYER_NATIVE_ALONE)
#define PLUMB_LAYERS_LEAN (PLUMB_LAYERS_DEFAULT | PLUMB_LAYER_LEAN)
#define PLUMB_LAYERS_FULL (PLUMB_LAYERS_LIGHT | PLUMB_LAYER_NATIVE)

/* How values of a metric combine. */
enum plumb_aggregation {
	PLUMB_SUM,  /* add up over calls, tracks and sub-contexts */
	PLUMB_MAX,  /* the greatest counts */
	PLUMB_CALL, /* a property of one call: min, mean and max mean something, a sum over
	               sub-contexts does not */
};

/* X(identifier, number, name, unit, aggregation, source, meaning) */
#define PLUMB_METRICS(X)                                                                           \
	X(OP_CALLS, 1, "op.calls", "count", SUM, "framework", "calls of an operator")              \
	X(OP_TIME, 2, "op.time", "ns", SUM, "framework",                                           \
	  "time in an operator on the host, without the operators that it calls")                  \
	X(OP_DURATION, 3, "op.duration", "ns", CALL, "framework",                                  \
	  "time from the entry of an operator to its exit")                                        \
	X(GPU_LAUNCHES, 4, "gpu.launches", "count", SUM, "gpu",                                    \
	  "kernels, copies and memsets that were started")                                         \
	X(GPU_REPLAYS, 5, "gpu.replays", "count", SUM, "gpu", "launches of a captured graph")      \
	X(CPU_TIME, 6, "cpu.time", "ns", SUM, "sampler",                                           \
	  "time that threads ran on the CPU, from samples")                                        \
	X(WAIT_TIME, 7, "wait.time", "ns", SUM, "sampler",                                         \
	  "time that threads waited instead of running on the CPU, from samples")                  \
	X(HOST_WAIT, 8, "host.wait", "ns", SUM, "gpu",                                             \
	  "time that the host waited for the GPU: synchronisation of events, streams and "         \
	  "contexts, and blocking copies")                                                         \
	X(GPU_TIME, 9, "gpu.time", "ns", SUM, "gpu", "time that kernels ran on the GPU")           \
	X(GPU_COPY_TIME, 10, "gpu.copy_time", "ns", SUM, "gpu",                                    \
	  "time that copies and memsets took on the GPU")                                          \
	X(GPU_COPY_BYTES, 11, "gpu.copy_bytes", "byte", SUM, "gpu", "bytes copied or set")         \
	X(GPU_BLOCKS, 12, "gpu.blocks", "count", SUM, "gpu", "thread blocks launched")             \
	X(GPU_WARPS, 13, "gpu.warps", "count", SUM, "gpu", "warps launched")                       \
	X(GPU_REGISTERS, 14, "gpu.registers", "count", CALL, "gpu", "registers per thread")        \
	X(GPU_SHARED_BYTES, 15, "gpu.shared_bytes", "byte", CALL, "gpu",                           \
	  "shared memory per block, static and dynamic")                                           \
	X(GPU_OCCUPANCY, 16, "gpu.occupancy", "ppm", CALL, "gpu",                                  \
	  "theoretical occupancy: resident warps, as a part of the most that a multiprocessor "    \
	  "can hold")                                                                              \
	X(MEM_ALLOC, 17, "mem.alloc", "byte", SUM, "memory", "bytes allocated for tensors")        \
	X(MEM_FREE, 18, "mem.free", "byte", SUM, "memory",                                         \
	  "bytes of tensors that were freed, counted at the context that allocated them")          \
	X(MEM_PEAK, 19, "mem.peak", "byte", MAX, "memory",                                         \
	  "the most bytes that the tensors of a context took at once")                             \
	X(MEM_HELD, 20, "mem.held", "byte", SUM, "memory",                                         \
	  "bytes that the tensors of a context took at the device's peak")                         \
	X(CPU_CYCLES, 21, "cpu.cycles", "count", SUM, "perf", "processor cycles")                  \
	X(CPU_INSTRUCTIONS, 22, "cpu.instructions", "count", SUM, "perf", "instructions retired")  \
	X(CPU_CACHE_REFERENCES, 23, "cpu.cache_references", "count", SUM, "perf",                  \
	  "accesses to the last-level cache")                                                      \
	X(CPU_CACHE_MISSES, 24, "cpu.cache_misses", "count", SUM, "perf",                          \
	  "last-level cache misses")                                                               \
	X(CPU_BRANCHES, 25, "cpu.branches", "count", SUM, "perf", "branches retired")              \
	X(CPU_BRANCH_MISSES, 26, "cpu.branch_misses", "count", SUM, "perf",                        \
	  "branches that were predicted wrongly")                                                  \
	X(CPU_PAGE_FAULTS, 27, "cpu.page_faults", "count", SUM, "perf", "page faults")             \
	X(CPU_CONTEXT_SWITCHES, 28, "cpu.context_switches", "count", SUM, "perf",                  \
	  "context switches")                                                                      \
	X(CPU_MIGRATIONS, 29, "cpu.migrations", "count", SUM, "perf",                              \
	  "moves of a thread to another processor")                                                \
	X(MODULE_CALLS, 30, "module.calls", "count", SUM, "framework", "calls of a module")        \
	X(RANGE_MARKS, 31, "range.marks", "count", SUM, "range",                                   \
	  "points in time that were marked")                                                       \
	X(RANGE_PAYLOAD, 32, "range.payload", "count", CALL, "range",                              \
	  "the number that a range or a mark carries")                                             \
	X(GPU_ALLOC_BYTES, 33, "gpu.alloc_bytes", "byte", SUM, "gpu",                              \
	  "bytes of device memory that driver calls allocated")                                    \
	X(GPU_FREE_BYTES, 34, "gpu.free_bytes", "byte", SUM, "gpu",                                \
	  "bytes of device memory that driver calls freed")                                        \
	X(GPU_NODES, 35, "gpu.nodes", "count", SUM, "gpu",                                         \
	  "graph nodes executed in replays that were timed as a whole")                            \
	X(HOST_TIME, 36, "host.time", "ns", SUM, "watch",                                          \
	  "time of a process's main thread by Python path, seen from outside about ten times a "   \
	  "second")                                                                                \
	X(STALL_MEMORY, 37, "stall.memory", "sample", SUM, "stalls",                               \
	  "samples of warps that waited for data from global, local or texture memory")            \
	X(STALL_SHARED, 38, "stall.shared", "sample", SUM, "stalls",                               \
	  "samples of warps that waited for data from shared memory, or for a unit with a "        \
	  "variable time")                                                                         \
	X(STALL_EXECUTION, 39, "stall.execution", "sample", SUM, "stalls",                         \
	  "samples of warps that waited for the result of arithmetic of a fixed time")             \
	X(STALL_BARRIER, 40, "stall.barrier", "sample", SUM, "stalls",                             \
	  "samples of warps that waited at a barrier for other warps")                             \
	X(STALL_THROTTLE, 41, "stall.throttle", "sample", SUM, "stalls",                           \
	  "samples of warps that waited because the queue of a unit was full")                     \
	X(STALL_FETCH, 42, "stall.fetch", "sample", SUM, "stalls",                                 \
	  "samples of warps that waited for instructions, branches or constants")                  \
	X(STALL_FLUSH, 43, "stall.flush", "sample", SUM, "stalls",                                 \
	  "samples of warps that waited for their stores: memory barriers, the program's end")     \
	X(STALL_OTHER, 44, "stall.other", "sample", SUM, "stalls",                                 \
	  "samples of warps that waited for something else, or slept")

enum plumb_metric {
#define X(id, number, name, unit, aggregation, source, meaning) PLUMB_METRIC_##id = number,
	PLUMB_METRICS(X)
#undef X
		PLUMB_METRIC_COUNT
};

/* Numbers from here on are metrics that the program itself named (plumb.metric). */
#define PLUMB_METRIC_USER 1024u

struct plumb_metric_info {
	const char *name; /* NULL where a number is unused */
	const char *unit;
	enum plumb_aggregation aggregation;
	const char *source;
	const char *meaning;
};

/* Indexed by enum plumb_frame_kind and enum plumb_metric. */
extern const char *const plumb_frame_kind_names[PLUMB_FRAME_KIND_COUNT];
extern const struct plumb_metric_info plumb_metrics[PLUMB_METRIC_COUNT];

/* The number of a metric by its dotted name; 0 if no metric has this name. */
uint32_t plumb_metric_find(const char *name);
/* The number of a frame kind by its name; -1 if no kind has this name. */
int plumb_frame_kind_find(const char *name);

/* Kinds of memory. What a copy moves, or a set fills, names its frame: "copy pinned→device",
 * "copy device→peer device", "set device". */
enum plumb_memory_kind {
	PLUMB_MEMORY_NONE = 0, /* nothing is said */
	PLUMB_MEMORY_PAGEABLE = 1,
	PLUMB_MEMORY_PINNED = 2,
	PLUMB_MEMORY_DEVICE = 3,
	PLUMB_MEMORY_ARRAY = 4,
	PLUMB_MEMORY_MANAGED = 5,
	PLUMB_MEMORY_UNKNOWN = 6,
	PLUMB_MEMORY_HOST = 7, /* pageable or pinned */
	/* A bit beside one of those: memory of another device than the copy reads from. */
	PLUMB_MEMORY_PEER = 8,
	PLUMB_MEMORY_PEER_DEVICE = PLUMB_MEMORY_DEVICE | PLUMB_MEMORY_PEER,
};
/* From where to where, as enum plumb_memory_kind. A set has no FROM; a name that does not say has
 * neither. */
struct plumb_transfer {
	uint16_t from, to;
};
/* The name of a copy's or set's frame into TEXT. Returns TEXT. */
#define PLUMB_TRANSFER_NAME 64
const char *plumb_transfer_name(char text[PLUMB_TRANSFER_NAME], struct plumb_transfer transfer);
/* What such a name says; NULL is none. */
struct plumb_transfer plumb_transfer_of(const char *name);

/*
 * Modes of GPU collection. A process has one, because the vendors' tools behind different modes do
 * not work in one process (CUPTI's activity records and the Compute Sanitizer). What can go along
 * with a mode, such as PC sampling with CUPTI's activity records, is no mode but an option. The
 * first one is what `plumb run` does by itself.
 * X(identifier, number, name, what it records)
 */
#define PLUMB_GPU_MODES(X)                                                                         \
	X(ACTIVITY, 1, "activity", "kernels, copies, sets and graphs, with their times")           \
	X(TRAFFIC, 2, "traffic",                                                                   \
	  "accesses of kernels to other GPUs (--traffic=full), without times")                     \
	X(OFF, 0, "off", "nothing")

enum plumb_gpu_mode {
#define X(id, number, name, what) PLUMB_GPU_##id = number,
	PLUMB_GPU_MODES(X)
#undef X
};
struct plumb_gpu_mode_info {
	const char *name, *what;
	enum plumb_gpu_mode mode;
};
/* The mode with this number; NULL: there is none. */
const struct plumb_gpu_mode_info *plumb_gpu_mode_of(unsigned mode);
/* Likewise by its name. */
const struct plumb_gpu_mode_info *plumb_gpu_mode_find(const char *name);

/* How program counters of the GPU are sampled (`plumb run --stalls-mode`).
 * X(identifier, number, name, what it means) */
#define PLUMB_STALLS_MODES(X)                                                                      \
	X(CONTINUOUS, 1, "continuous", "kernels run side by side; samples belong to the code")     \
	X(SERIALISED, 2, "serialised", "one kernel at a time; samples belong to launches")
enum plumb_stalls_mode {
#define X(id, number, name, what) PLUMB_STALLS_##id = number,
	PLUMB_STALLS_MODES(X)
#undef X
};
/* The period of sampling is a power of two of cycles. */
#define PLUMB_STALLS_LEAST 5
#define PLUMB_STALLS_MOST 31
#define PLUMB_STALLS_DEFAULT "14"

/* How closely traffic between devices is looked at (`plumb run --traffic`).
 * X(identifier, number, name, what it means) */
#define PLUMB_TRAFFIC_MODES(X)                                                                     \
	X(CALLS, 1, "calls", "copies and collectives, as the program calls them")                  \
	X(FULL, 2, "full", "also every access of a kernel to another device's memory")             \
	X(SAMPLED, 3, "sampled", "the same, of a part of the launches")
enum plumb_traffic_mode {
#define X(id, number, name, what) PLUMB_TRAFFIC_##id = number,
	PLUMB_TRAFFIC_MODES(X)
#undef X
		PLUMB_TRAFFIC_MODE_COUNT
};
extern const char *const plumb_traffic_mode_names[PLUMB_TRAFFIC_MODE_COUNT]; /* [0] is NULL */
/* The key of the environment that says how it was looked at: "calls", "sampled:0.1". */
#define PLUMB_TRAFFIC_MODE "traffic.mode"
/* "calls", "full" or "sampled:RATE", 0 < RATE ≤ 1 (*RATE is 1 for the others). False: TEXT is none
 * of them, and nothing is set. */
bool plumb_traffic_parse(const char *text, enum plumb_traffic_mode *mode, double *rate);

/* What moved data from one device to another. X(identifier, number, name) */
#define PLUMB_ACCESS_KINDS(X)                                                                      \
	X(LOAD, 1, "load")                                                                         \
	X(STORE, 2, "store")                                                                       \
	X(ATOMIC, 3, "atomic")                                                                     \
	X(ASYNC_COPY, 4, "async copy") /* of a thread, into shared memory */                       \
	X(BULK_LOAD, 5, "bulk load")                                                               \
	X(BULK_STORE, 6, "bulk store")                                                             \
	X(BULK_REDUCTION, 7, "bulk reduction")                                                     \
	X(COPY, 8, "copy")             /* that the host called */                                  \
	X(COLLECTIVE, 9, "collective") /* logical bytes, as the call says */                       \
	X(SEND, 10, "send")                                                                        \
	X(RECEIVE, 11, "receive")
enum plumb_access_kind {
#define X(id, number, name) PLUMB_ACCESS_##id = number,
	PLUMB_ACCESS_KINDS(X)
#undef X
		PLUMB_ACCESS_KIND_COUNT
};

/* Which way it went. X(identifier, number, name) */
#define PLUMB_ROUTES(X)                                                                            \
	X(UNKNOWN, 1, "unknown")                                                                   \
	X(PEER, 2, "peer access")       /* kernels reach the other device's memory */              \
	X(IPC, 3, "peer access by IPC") /* the same, memory of another process */                  \
	X(MULTICAST, 4, "multicast")                                                               \
	X(COPY_ENGINE, 5, "copy engine")                                                           \
	X(HOST_MEMORY, 6, "host memory") /* pinned, or mapped */                                   \
	X(MANAGED, 7, "managed memory")                                                            \
	X(NETWORK, 8, "network")
enum plumb_route {
#define X(id, number, name) PLUMB_ROUTE_##id = number,
	PLUMB_ROUTES(X)
#undef X
		PLUMB_ROUTE_COUNT
};

/* What links two GPUs, or a GPU and the host. X(identifier, number, name) */
#define PLUMB_LINK_KINDS(X)                                                                        \
	X(NVLINK, 1, "NVLink") /* from one to the other, or it is not known through what */        \
	X(NVSWITCH, 2,                                                                             \
	  "NVSwitch") /* NVLinks to switches, which each GPU shares with all others */             \
	X(PCIE, 3, "PCIe")                                                                         \
	X(C2C, 4, "C2C") /* between a GPU and the host's processor, on one board */
enum plumb_link_kind {
#define X(id, number, name) PLUMB_LINK_##id = number,
	PLUMB_LINK_KINDS(X)
#undef X
		PLUMB_LINK_KIND_COUNT
};

/* What lies between two GPUs that PCIe links. X(identifier, number, name) */
#define PLUMB_LINK_PATHS(X)                                                                        \
	X(BOARD, 1, "the same board")                                                              \
	X(SWITCH, 2, "one PCIe switch")                                                            \
	X(SWITCHES, 3, "several PCIe switches")                                                    \
	X(HOST_BRIDGE, 4, "the host bridge")                                                       \
	X(NODE, 5, "host bridges of one NUMA node")                                                \
	X(SYSTEM, 6, "the link between NUMA nodes")
enum plumb_link_path {
#define X(id, number, name) PLUMB_LINK_PATH_##id = number,
	PLUMB_LINK_PATHS(X)
#undef X
		PLUMB_LINK_PATH_COUNT
};

/* What an object is. X(identifier, number, name) */
#define PLUMB_OBJECT_KINDS(X)                                                                      \
	X(DEVICE, 1, "device memory")                                                              \
	X(POOL, 2, "memory of a pool")                                                             \
	X(MAPPED, 3, "mapped handle") /* cuMemCreate, cuMemMap */                                  \
	X(MANAGED, 4, "managed memory")                                                            \
	X(PINNED, 5, "pinned host memory")                                                         \
	X(VARIABLE, 6, "variable of a module")                                                     \
	X(WINDOW, 7, "symmetric window") /* NVSHMEM's and the like */                              \
	X(TENSOR, 8, "tensor")                                                                     \
	X(IMPORTED, 9, "memory of another process") /* whose allocation is not known */
enum plumb_object_kind {
#define X(id, number, name) PLUMB_OBJECT_##id = number,
	PLUMB_OBJECT_KINDS(X)
#undef X
		PLUMB_OBJECT_KIND_COUNT
};

/* Indexed by those; [0] is NULL. */
extern const char *const plumb_access_kind_names[PLUMB_ACCESS_KIND_COUNT];
extern const char *const plumb_route_names[PLUMB_ROUTE_COUNT];
extern const char *const plumb_object_kind_names[PLUMB_OBJECT_KIND_COUNT];
extern const char *const plumb_link_kind_names[PLUMB_LINK_KIND_COUNT];
extern const char *const plumb_link_path_names[PLUMB_LINK_PATH_COUNT];

/* The ledger: for every source, what was received, attributed, dropped, and why. A source is
 * a stream of things that plumb must not lose in silence.
 * X(identifier, number, name, what one unit is) */
#define PLUMB_SOURCES(X)                                                                           \
	X(OPERATOR, 1, "operator", "operator calls")                                               \
	X(BACKWARD, 2, "backward", "backward operator calls and hooks")                            \
	X(PYTHON, 3, "python", "walks of the Python stack")                                        \
	X(KERNEL, 4, "gpu.kernel", "kernel records")                                               \
	X(COPY, 5, "gpu.copy", "copy records")                                                     \
	X(SET, 6, "gpu.set", "set records")                                                        \
	X(SYNC, 7, "gpu.sync", "synchronisation records")                                          \
	X(LAUNCH, 8, "gpu.launch", "driver calls that start GPU work")                             \
	X(BUFFER, 9, "gpu.buffer", "buffers of GPU records")                                       \
	X(VALUE, 10, "value", "values")                                                            \
	X(REGION, 11, "region", "records of the region")                                           \
	X(PROCESS, 12, "process", "processes")                                                     \
	X(THREAD, 13, "thread", "threads")                                                         \
	X(CUPTI_SLOT, 14, "gpu.slot", "times another tool took the CUPTI slot")                    \
	X(ALLOCATION, 15, "gpu.allocation", "device allocations")                                  \
	X(NATIVE, 16, "native", "walks of the native stack")                                       \
	X(SAMPLE, 17, "cpu.sample", "samples of CPU time")                                         \
	X(WAIT_SAMPLE, 18, "wait.sample", "samples of waiting threads")                            \
	X(MEMORY, 19, "memory", "tensor allocations and frees")                                    \
	X(MODULE, 20, "module", "module calls")                                                    \
	X(SHAPE, 21, "shape", "operator calls with their shapes")                                  \
	X(RANGE, 22, "range", "NVTX and user ranges")                                              \
	X(GRAPH, 23, "gpu.graph", "replays of captured graphs")                                    \
	X(SPAN, 24, "span", "spans of the trace")                                                  \
	X(EVENT, 25, "perf.event", "perf events")                                                  \
	X(SYMBOL, 26, "symbol", "native frames that need a name")                                  \
	X(METRIC, 27, "metric", "values of the program's own metrics")                             \
	X(PROVENANCE, 28, "provenance", "places where compiled code calls a kernel")               \
	X(REPLAY, 29, "gpu.replay", "graph replays with one record each")                          \
	X(IMPORT, 30, "import", "events of a trace file")                                          \
	X(SAMPLE_TIME, 31, "cpu.sample.time", "samples of CPU time with a time stamp")             \
	X(LOOK, 32, "look", "looks of plumb run at values, for windows")                           \
	X(LOOK_MEMORY, 33, "look.memory", "bytes that plumb run took for looks")                   \
	X(HOST_SAMPLE, 34, "host.sample", "looks at a main thread")                                \
	X(STALL_SAMPLE, 35, "gpu.stall", "samples of GPU program counters")                        \
	X(STALL_FETCH, 36, "gpu.stall.fetch", "times that samples of GPU code were fetched")       \
	X(CODE, 37, "gpu.code", "modules of GPU code that were loaded")                            \
	X(CODE_FUNCTION, 38, "gpu.function", "functions of GPU code that samples met")             \
	X(OBJECT, 39, "object", "allocations of objects")                                          \
	X(ACCESS, 40, "access", "accesses to memory of other devices")                             \
	X(COLLECTIVE, 41, "collective", "collective operations that the library told")             \
	X(TRAFFIC_LAUNCH, 42, "traffic.launch",                                                    \
	  "launches of kernels that may reach other devices")                                      \
	X(COUNTER, 43, "gpu.counter", "launches that hardware counters may look at")               \
	X(COUNTER_SAMPLE, 44, "gpu.counter.sample", "samples of hardware counters of whole GPUs")

enum plumb_source {
#define X(id, number, name, unit) PLUMB_SOURCE_##id = number,
	PLUMB_SOURCES(X)
#undef X
		PLUMB_SOURCE_COUNT
};

/* What became of a unit. Received is counted on its own (PLUMB_FATE_RECEIVED); every other fate is
 * a part of it. X(identifier, number, is a drop, reason as the ledger prints it) */
#define PLUMB_FATES(X)                                                                             \
	X(RECEIVED, 0, 0, NULL)                                                                    \
	X(ATTRIBUTED, 1, 0, NULL)                                                                  \
	X(REGION_FULL, 2, 1, "the region is full (raise --limit)")                                 \
	X(NO_SPACE, 3, 1, "no space left for the region")                                          \
	X(RING_MISS, 4, 1, "too many launches were pending; plumb had forgotten its launch")       \
	X(NO_LAUNCH, 5, 1, "no launch was seen for it")                                            \
	X(BUFFERS_CAPPED, 6, 1, "all buffers for GPU records were in use")                         \
	X(CUPTI_DROPPED, 7, 1, "CUPTI dropped it")                                                 \
	X(FORKED, 8, 1, "forked while plumb worked in the parent; it cannot record")               \
	X(TORN, 9, 1, "it was being written when the process ended")                               \
	X(DAMAGED, 10, 1, "the region is damaged at this place")                                   \
	X(NO_PYTHON, 11, 0, "outside any Python line: its thread has no Python frames")            \
	X(ACCUMULATION, 12, 0, "gradient accumulation, under the line that called backward")       \
	X(HOOK, 13, 0, "gradient hook, under the line that called backward")                       \
	X(FORWARD, 14, 0, "under its forward operator")                                            \
	X(FORWARD_MISS, 15, 0,                                                                     \
	  "its forward operator was not seen; it is under the line that called backward")          \
	X(TOO_DEEP, 16, 0, "deeper than plumb keeps; the innermost frames are kept")               \
	X(SLOT_GIVEN, 17, 1, "the program's own profiler held the CUPTI slot")                     \
	X(UNKNOWN_LAYOUT, 18, 1, "in a layout that plumb does not know")                           \
	X(LATE, 19, 1, "it came after recording had ended")                                        \
	X(NOT_DELIVERED, 20, 1, "launched, but CUPTI delivered no record")                         \
	X(UNMAPPED_THREAD, 21, 1, "plumb got no memory for its thread")                            \
	X(ENDED_ELSEWHERE, 22, 0, "its end was not seen, or not in order; its time is unknown")    \
	X(DUPLICATE, 23, 1, "CUPTI delivered it twice")                                            \
	X(NO_UNWIND, 24, 0, "its walk ended at code without unwind tables")                        \
	X(OWN_TIME, 25, 0, "it was taken while plumb itself ran")                                  \
	X(NO_SYMBOL, 26, 0, "it has no known symbol; shown as file and offset")                    \
	X(NO_STACK, 27, 0, "outside any frame: nothing was known about its thread")                \
	X(OVERFLOWED, 28, 0, "more different ones than plumb keeps; counted together")             \
	X(UNKNOWN_OBJECT, 29, 0, "it frees memory that was allocated before recording")            \
	X(OVERWRITTEN, 30, 0, "too old to be kept")                                                \
	X(NO_CAPTURE, 31, 0, "its graph was captured before recording began")                      \
	X(UNBALANCED, 32, 0, "an end without its beginning, or a beginning without its end")       \
	X(PAUSED, 33, 0, "recording was paused")                                                   \
	X(NOT_FOLLOWED, 34, 0, "not followed (--follow)")                                          \
	X(NO_PROVENANCE, 35, 0, "the compiler left no record of its source")                       \
	X(UNKNOWN_NODES, 36, 0, "the nodes of its graph are unknown and not counted")              \
	X(UNMATCHED, 37, 0, "the file has no launch for it; outside any call")                     \
	X(AMBIGUOUS, 38, 0, "it could belong to several places")                                   \
	X(STRADDLES, 39, 0, "it ends after the span in which it began")                            \
	X(UNUSED, 40, 0, "plumb does not show this kind")                                          \
	X(REPEATED, 41, 0, "a second record of the same thing")                                    \
	X(BACKWARDS, 42, 1, "it ends before it begins, or has no time")                            \
	X(SIGNAL_BLOCKED, 43, 1, "its thread blocked plumb's signal")                              \
	X(TRACED, 44, 1, "a debugger traced the process")                                          \
	X(SIGNAL_TAKEN, 45, 1, "the program uses all real-time signals")                           \
	X(SMALL_STACK, 46, 1, "its thread's signal stack is too small")                            \
	X(SHORT_OF_STACK, 47, 0, "too little stack was left; its time is in the next sample")      \
	X(UNKNOWN_THREAD, 48, 1, "its thread was not made by pthread_create")                      \
	X(UNLOADABLE, 49, 0,                                                                       \
	  "plumb cannot be loaded into it: static, set-user-ID, musl or another machine")          \
	X(UNREACHABLE, 50, 1, "its user cannot use the run folder or plumb's library")             \
	X(INTERLEAVED, 51, 1,                                                                      \
	  "ranges ended out of order (tasks that plumb cannot tell apart); its time is unknown")   \
	X(MEMORY_BOUND, 52, 1, "more values than plumb run keeps; the windows are unknown")        \
	X(NO_MEMORY, 53, 1, "plumb run got no memory; the windows are unknown")                    \
	X(NOT_WRITTEN, 54, 1, "no room in the run folder; the windows are unknown")                \
	X(ALLOWED, 55, 0, "are allowed at most")                                                   \
	X(SYSTEM_KERNEL, 56, 0, "in kernels of the driver's own")                                  \
	X(HARDWARE_FULL, 57, 1, "the GPU's buffer for samples was full (raise the period)")        \
	X(UNKNOWN_MODULE, 58, 0, "the module of GPU code that it is in is not known")              \
	X(UNKNOWN_FUNCTION, 59, 0, "the module has no function of its name")                       \
	X(OUTSIDE_CODE, 60, 0, "it is not inside the machine code of its function")                \
	X(UNREADABLE_CODE, 61, 0, "the machine code of its module cannot be read")                 \
	X(CODE_BOUND, 62, 0, "without machine code and lines: a profile keeps 20 MB of them")      \
	X(CODE_NOT_WRITTEN, 63, 1, "its file could not be written into the run folder")            \
	X(NOT_DRAWN, 64, 0, "not drawn; those that were stand for it (--traffic=sampled)")         \
	X(REACHED_NOTHING, 65, 0,                                                                  \
	  "not looked at: earlier launches of its module reached no other device")                 \
	X(NOT_CHOSEN, 66, 0, "not chosen (--traffic-kernels, --traffic-objects)")                  \
	X(NOT_PATCHED, 67, 1, "its code was not patched")                                          \
	X(TABLE_FULL, 68, 1, "plumb's tables on the GPU were full")                                \
	X(NO_ALLOCATION, 69, 0, "to memory of which no allocation is known")                       \
	X(NOT_HOT, 70, 0, "not among the kernels to count (--counters-kernels)")                   \
	X(ENOUGH, 71, 0, "earlier launches of its kernel were counted at its place")               \
	X(NO_REPLAY, 72, 0,                                                                        \
	  "it cannot run again: a graph, a launch on several GPUs, or a kernel of NCCL")           \
	X(BUSY, 73, 0, "another launch was being counted, or a graph was being captured")          \
	X(NOT_COUNTED, 74, 0, "counters are off; the environment says why")                        \
	X(TOO_SLOW, 75, 0, "counting it would have slowed the program too much (--counters-cost)") \
	X(COUNTED, 76, 0, "its launch was counted, so CUPTI has no times of it (--counters)")

enum plumb_fate {
#define X(id, number, drop, reason) PLUMB_FATE_##id = number,
	PLUMB_FATES(X)
#undef X
		PLUMB_FATE_COUNT
};

extern const char *const plumb_source_names[PLUMB_SOURCE_COUNT]; /* NULL where unused */
extern const char *const plumb_source_units[PLUMB_SOURCE_COUNT];
extern const char *const plumb_fate_reasons[PLUMB_FATE_COUNT];
extern const unsigned char plumb_fate_is_drop[PLUMB_FATE_COUNT];

#endif
