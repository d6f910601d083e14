/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA through CUPTI. Private to gpu/cuda.
 *
 *   cuda.c         start, stop; the service thread
 *   library.c      CUPTI and the driver as the process has them
 *   slot.c         CUPTI's one subscriber: taking it, giving it to the program, taking it back
 *   interpose.c    the CUPTI functions of the program that slot.c has to notice
 *   callbacks.c    driver calls, on the program's threads
 *   calls.c        which driver function does what
 *   memory.c       what driver calls allocate, map and share, as objects
 *   copies.c       what they copy: objects at both ends
 *   graphs.c       what CUPTI tells of graphs
 *   modules.c      loaded modules → the line information of their kernels
 *   stalls.c       samples of program counters
 *   counters.c     hardware counters, by running launches again
 *   series.c       hardware counters of whole GPUs over time, by PM sampling
 *   host.c         the host's side of both
 *   buffers.c      buffers of records, between CUPTI and the service thread
 *   records.c      CUPTI's records
 *   layout.c       which layouts of records are known
 *   occupancy.c    theoretical occupancy
 *   facts.c        devices and versions
 *   inject.c       the driver's injection hook
 *
 * Threads: callbacks.c runs on the program's threads and buffers.c on theirs and CUPTI's;
 * everything that reads records or writes what is not a thread's own runs on the one service
 * thread.
 */
#ifndef PLUMB_COLLECT_GPU_CUDA_RUNTIME_H
#define PLUMB_COLLECT_GPU_CUDA_RUNTIME_H

#include "collect/gpu/cuda/cuda.h"
#include "collect/gpu/cuda/headers.h"
#include "collect/gpu/work.h"

/* ---- library.c ---- */

/* X(name after "cupti", needed) */
#define PLUMB_CUPTI_FUNCTIONS(X)                                                                   \
	X(GetVersion, 1)                                                                           \
	X(GetResultString, 1)                                                                      \
	X(Subscribe, 1)                                                                            \
	X(Subscribe_v2, 0)                                                                         \
	X(Unsubscribe, 1)                                                                          \
	X(EnableCallback, 1)                                                                       \
	X(EnableDomain, 0)                                                                         \
	X(ActivityRegisterCallbacks, 1)                                                            \
	X(ActivityEnable, 1)                                                                       \
	X(ActivityDisable, 1)                                                                      \
	X(ActivityFlushAll, 1)                                                                     \
	X(ActivityFlushPeriod, 0)                                                                  \
	X(ActivityGetNextRecord, 1)                                                                \
	X(ActivityGetNumDroppedRecords, 1)                                                         \
	X(ActivitySetAttribute, 1)                                                                 \
	X(ActivityRegisterTimestampCallback, 0)                                                    \
	X(ActivityEnableHWTrace, 0)                                                                \
	X(GetTimestamp, 1)                                                                         \
	X(GetGraphNodeId, 0)                                                                       \
	X(GetGraphExecId, 0)                                                                       \
	X(GetDeviceId, 0)                                                                          \
	X(PCSamplingEnable, 0)                                                                     \
	X(PCSamplingDisable, 0)                                                                    \
	X(PCSamplingGetData, 0)                                                                    \
	X(PCSamplingGetNumStallReasons, 0)                                                         \
	X(PCSamplingGetStallReasons, 0)                                                            \
	X(PCSamplingSetConfigurationAttribute, 0)                                                  \
	X(RegisterComputeCrcCallback, 0)

struct plumb_cupti {
#define X(name, needed) __typeof__(&cupti##name) name;
	PLUMB_CUPTI_FUNCTIONS(X)
#undef X
	uint32_t version;
	char path[4096];
	void *library;
};
extern struct plumb_cupti plumb_cupti;
/* A function that older releases lack; NULL: so does this one. */
void *plumb_cupti_function(const char *name);

/* X(name, needed) */
#define PLUMB_DRIVER_FUNCTIONS(X)                                                                  \
	X(cuDriverGetVersion)                                                                      \
	X(cuDeviceGet)                                                                             \
	X(cuDeviceGetName)                                                                         \
	X(cuDeviceGetAttribute)                                                                    \
	X(cuDeviceGetUuid)                                                                         \
	X(cuDeviceTotalMem)                                                                        \
	X(cuPointerGetAttribute)                                                                   \
	X(cuMemGetAllocationPropertiesFromHandle)

struct plumb_driver {
#define X(name) __typeof__(&name) name;
	PLUMB_DRIVER_FUNCTIONS(X)
#undef X
};
extern struct plumb_driver plumb_driver;

/* The driver as the process has it loaded. */
int plumb_driver_find(struct plumb_error *error);
/* Did the program initialise the driver? */
bool plumb_driver_is_up(void);
/* CUPTI: the one that is loaded, else one of the program's own CUDA. Negative: ERROR says what was
 * tried. */
int plumb_cupti_find(struct plumb_error *error);
const char *plumb_cupti_message(CUptiResult result);

/* ---- layout.c ---- */

/* Bytes of a record that its version of CUPTI surely has. */
struct plumb_cupti_layout {
	uint32_t kernel, copy, peer_copy, set, graph, event, synchronization;
};
/* False: VERSION is newer (or older) than what was checked. */
bool plumb_cupti_layout(uint32_t version, struct plumb_cupti_layout *layout);

/* ---- calls.c ---- */

/* CUDA's own kinds of call, beside enum plumb_call. */
enum {
	PLUMB_CALL_ALLOC = PLUMB_CALL_MEMORY,
	PLUMB_CALL_ALLOC_MANAGED,
	PLUMB_CALL_ALLOC_ASYNC, /* from the stream's pool */
	PLUMB_CALL_ALLOC_POOL,  /* from a pool that it names */
	PLUMB_CALL_ALLOC_PITCH,
	PLUMB_CALL_CREATE,
	PLUMB_CALL_FREE,
	PLUMB_CALL_RELEASE,
	/* From here on they are of interest with --traffic alone. */
	PLUMB_CALL_HOST_ALLOC,
	PLUMB_CALL_HOST_REGISTER,
	PLUMB_CALL_HOST_FREE,
	PLUMB_CALL_MAP,
	PLUMB_CALL_UNMAP,
	PLUMB_CALL_RETAIN,
	PLUMB_CALL_EXPORT,
	PLUMB_CALL_IMPORT,
	PLUMB_CALL_IPC_GET,
	PLUMB_CALL_IPC_OPEN,
	PLUMB_CALL_IPC_CLOSE,
	PLUMB_CALL_POOL_EXPORT,
	PLUMB_CALL_POOL_IMPORT,
	PLUMB_CALL_ADD_COPY,    /* makes a node of a graph */
	PLUMB_CALL_CHANGE_COPY, /* may change what nodes of graphs copy */
	/* From here on they have no context. */
	PLUMB_CALL_INSTANTIATE,
	PLUMB_CALL_CHANGE, /* switches nodes of an executable graph on or off */
	PLUMB_CALL_LOAD,   /* of code that lies in memory */
	/* From here on they are of interest with --counters and --counters-series alone. */
	PLUMB_CALL_CAPTURE,
	PLUMB_CALL_CAPTURE_END,
};
#define PLUMB_CALLS_MAX 1024u
extern const uint8_t plumb_calls[PLUMB_CALLS_MAX]; /* kind by CUpti_driver_api_trace_cbid */
static inline bool
plumb_call_is_of_traffic(unsigned kind)
{
	return kind >= PLUMB_CALL_HOST_ALLOC && kind < PLUMB_CALL_INSTANTIATE;
}

/* ---- memory.c: with --traffic, within plumb_enter ---- */

/* The ordinal of the device that CONTEXT, number UID, is on; PLUMB_HOST_ORDINAL: not known. */
uint32_t plumb_cuda_ordinal(CUcontext context, uint32_t uid);
/* A call of memory begins, and has succeeded at the context NODE. */
void
plumb_cuda_memory_enter(struct plumb_thread *thread, unsigned kind, const CUpti_CallbackData *info);
void plumb_cuda_memory_exit(struct plumb_thread *thread, unsigned kind, plumb_id node,
                            const CUpti_CallbackData *info);

/* ---- copies.c: with --traffic ---- */

/* The copying call ID begins: notes what is at both ends. */
void plumb_cuda_copy_enter(CUpti_CallbackId id, const CUpti_CallbackData *info);
/* It has become the graph's node NUMBER instead; a node was cloned from ORIGINAL; what nodes copy
 * may have changed, so that objects of their copies are unknown from now on. */
void plumb_cuda_copy_captured(CUpti_CallbackId id, const CUpti_CallbackData *info, uint64_t number);
void plumb_cuda_copy_cloned(uint64_t original, uint64_t number);
void plumb_cuda_copies_changed(void);
/* The service thread: a copy has finished, at the context NODE. FROM, TO: ordinals where the record
 * tells them, else PLUMB_HOST_ORDINAL. */
void plumb_cuda_copy_finished(struct plumb_thread *thread, plumb_id node,
                              const struct plumb_gpu_record *record, struct plumb_transfer kinds,
                              uint32_t from, uint32_t to);
/* Another recording; or a FORKED child. */
void plumb_cuda_copies_renew(bool forked);

/* ---- callbacks.c ---- */

void CUPTIAPI plumb_cuda_callback(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                  const void *info);

/* ---- graphs.c ---- */

/* A graph's node was made by a driver call at CONTEXT that is being captured; returns its number,
 * or 0. */
uint64_t plumb_cuda_graph_created(const CUpti_GraphData *data, plumb_id context);
/* On the thread that makes a graph executable: a node was cloned for it; it is made. */
void plumb_cuda_graph_cloned(const CUpti_GraphData *data);
void plumb_cuda_graph_made(CUgraphExec graph);
/* The call at NODE launches GRAPH. */
void plumb_cuda_graph_launched(CUgraphExec graph, uint32_t correlation, plumb_id node);

/* ---- modules.c ---- */

/* As CUPTI tells of a module: SIZE bytes. */
void plumb_cuda_module_loaded(const void *image, size_t size);
/* As the program gave it to a driver call that succeeded: its own header tells how long it is. */
void plumb_cuda_image_loaded(const void *image);
/* Does CUPTI tell of every module, so that the calls need not? */
bool plumb_slot_has_modules(void);

/* ---- stalls.c ---- */

extern bool plumb_cuda_stalls_wanted; /* --stalls */
/* Once CUPTI is known. */
void plumb_cuda_stalls_begin(void);
/* A context was made, or is about to run a launch: samples it from now on, if it may. */
void plumb_cuda_stalls_prepare(CUcontext context);
/* A context is about to be destroyed. */
void plumb_cuda_stalls_destroyed(CUcontext context);
/* A module was loaded, or is about to be unloaded: fetches what was sampled before. */
void plumb_cuda_stalls_modules(void);
/* If kernels run one at a time: the call at NODE launches one; it has returned. */
void plumb_cuda_stalls_launch(uint32_t correlation, plumb_id node);
void plumb_cuda_stalls_launched(CUcontext context, uint32_t correlation);
/* On the service thread. */
void plumb_cuda_stalls_fetch(void);
void plumb_cuda_stalls_tell(struct plumb_thread *thread);
void plumb_cuda_stalls_pause(bool pause);
/* CUPTI's slot is ours, or will not be: then sampling has stopped when it returns. */
void plumb_cuda_stalls_slot(bool ours);
void plumb_cuda_stalls_renew(void);
void plumb_cuda_stalls_forked(void);

/* ---- counters.c ---- */

extern bool plumb_cuda_counters_wanted; /* --counters */
/* Once CUPTI is known. */
void plumb_cuda_counters_begin(void);
/* A context was made, or (LAUNCHING) is about to run a launch. */
void plumb_cuda_counters_prepare(CUcontext context, bool launching);
void plumb_cuda_counters_destroyed(CUcontext context);
/* A stream is being captured, or no longer; is one? With --counters or --counters-series. */
void plumb_cuda_counters_captured(bool begins);
bool plumb_cuda_counters_capturing(void);
/* The call ID at NODE launches a kernel or graph: will it be counted? */
void plumb_cuda_counters_launch(struct plumb_thread *thread, CUpti_CallbackId id,
                                const CUpti_CallbackData *info, plumb_id node);
/* The last thing when it begins, and the first when it ends. */
void plumb_cuda_counters_start(void);
void plumb_cuda_counters_stop(uint32_t correlation);
/* On the service thread. */
void plumb_cuda_counters_fetch(void);
/* CUPTI's slot is ours, or will not be: then counting has stopped when it returns. */
void plumb_cuda_counters_slot(bool ours);
void plumb_cuda_counters_renew(void);
void plumb_cuda_counters_forked(void);

/* ---- series.c ---- */

extern bool plumb_cuda_series_wanted; /* --counters-series */
/* Once CUPTI is known. */
void plumb_cuda_series_begin(void);
/* A context was made, or (LAUNCHING) is about to run a launch: its device is sampled from now
 * on. */
void plumb_cuda_series_prepare(CUcontext context, bool launching);
void plumb_cuda_series_destroyed(CUcontext context);
/* On the service thread. FORCE: though the last time was just now. */
void plumb_cuda_series_fetch(bool force);
void plumb_cuda_series_pause(bool pause);
/* CUPTI's slot is ours, or no longer: then sampling has stopped when it returns. */
void plumb_cuda_series_slot(bool ours);
void plumb_cuda_series_renew(void);
void plumb_cuda_series_forked(void);

/* ---- buffers.c ---- */

struct plumb_buffer {
	struct plumb_buffer *next;
	uint32_t index;
	size_t valid;
	uint8_t *data;
};
/* SIZE bytes a buffer, at most COUNT of them, ZEROED when CUPTI expects so. */
bool plumb_buffers_init(size_t size, unsigned count, bool zeroed);
void CUPTIAPI plumb_buffer_requested(uint8_t **buffer, size_t *size, size_t *records);
void CUPTIAPI plumb_buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                     size_t size, size_t valid);
/* The buffers that came back, oldest first; the caller gives each to plumb_buffer_recycle. */
struct plumb_buffer *plumb_buffers_take(void);
void plumb_buffer_recycle(struct plumb_buffer *buffer);
void plumb_buffers_prepare(void); /* makes one ready when none is */
/* Numbers since the last call. */
struct plumb_buffer_news {
	uint64_t requested, refused, dropped_records;
};
void plumb_buffers_news(struct plumb_buffer_news *news);
/* From now on completed buffers are counted as late and not kept, until plumb_buffers_init. */
void plumb_buffers_close(void);

/* ---- records.c ---- */

void plumb_records_init(const struct plumb_cupti_layout *layout);
/* THREAD NULL: counts its records as lost. */
void plumb_records_read(struct plumb_thread *thread, const struct plumb_buffer *buffer);
/* All threads' records up to now were read. */
void plumb_records_merge(struct plumb_thread *thread);
/* The DEVICE record of device ORDINAL, which is made at the first call; 0: there is no room. */
plumb_id plumb_records_device(struct plumb_thread *thread, uint32_t ordinal);
/* Another recording: forgets devices. */
void plumb_records_renew(void);

/* ---- occupancy.c ---- */

struct plumb_occupancy_limits {
	uint32_t major, minor;
	uint32_t warp;              /* threads */
	uint32_t threads, blocks;   /* of a multiprocessor */
	uint32_t registers, shared; /* likewise; shared in bytes */
	uint32_t shared_reserved;   /* bytes of each block that the system takes */
};
/* Resident warps over the most there can be, parts per million; UINT32_MAX: unknown. */
uint32_t plumb_occupancy(const struct plumb_occupancy_limits *limits, uint32_t block_threads,
                         uint32_t registers, uint32_t shared_bytes);

/* ---- facts.c ---- */

/* Describes device ORDINAL; what cannot be read stays unknown. */
void plumb_cuda_describe(uint32_t ordinal, struct plumb_record_device *device, char name[256],
                         struct plumb_occupancy_limits *limits);
/* Writes the environment rows that are known by now, each once. Calls the driver. */
void plumb_cuda_facts(struct plumb_thread *thread);
/* Another recording: all rows are written again. */
void plumb_cuda_facts_renew(void);
/* How many libraries were ever loaded; cheap. */
unsigned long long plumb_libraries_added(void);

/* ---- slot.c ---- */

/* What can be tuned, by environment variables PLUMB_CUPTI_… that only benchmarks set. -1 leaves a
 * setting as CUPTI has it. */
#define PLUMB_CUDA_COUNTING_BUFFERS 4096u
struct plumb_cuda_knobs {
	size_t buffer_bytes; /* BUFFER_BYTES (1 MiB; with --counters 16 KiB): of one of records */
	unsigned buffers;   /* BUFFERS (32; with --counters 4096): at most so many; each thread that
	                       launches fills one, and each counted launch takes one */
	unsigned ring_log2; /* RING_LOG2 (18): launches that may wait for their record */
	unsigned kinds;     /* KINDS (63): 1 kernels, 2 copies, 4 peer copies, 8 sets; of traces
	                       16 synchronisations, 32 events */
	bool callbacks;     /* CALLBACKS (1): 0 leaves driver calls unseen */
	bool zeroed;        /* ZEROED (1): the service thread zeroes buffers, CUPTI need not */
	int per_thread;     /* PER_THREAD (1): a buffer for each thread, since 12.3 */
	int host_pinned;    /* HOST_PINNED (-1): CUPTI's device buffers lie in pinned host memory */
	int hw_trace;       /* HW_TRACE (-1): the hardware's own event trace, since 12.8 */
	long device_buffer_bytes; /* DEVICE_BUFFER_BYTES (640000): of a device buffer of CUPTI's */
	long device_buffers;      /* DEVICE_BUFFERS (-1): at most so many a context */
	long preallocate;         /* PREALLOCATE (-1): made with the context */
	long stall_buffer_bytes;  /* STALL_BUFFER_BYTES (-1): device memory for samples */
	long period_ms; /* PERIOD_MS (-1): CUPTI flushes by itself, and plumb only when asked */
};
extern struct plumb_cuda_knobs plumb_cuda_knobs;

/* Takes CUPTI's slot and starts recording. Negative: ERROR says why, and who has it. */
int plumb_slot_take(struct plumb_error *error);
/* On the service thread: flushes when the slot is ours. */
void plumb_slot_flush(bool force);
/* On any thread: gets every record, and buffers of which CUPTI still waits for some. Does nothing
 * if another thread stays at the slot for 0.1 s. */
void plumb_slot_deliver(void);
/* On the service thread: takes the slot back when the program is done with it. */
void plumb_slot_tend(void);
/* On the service thread: counts what happened to the slot since the last call. */
void plumb_slot_tell(struct plumb_thread *thread, bool end);
/* Stops recording and leaves the slot for good. */
void plumb_slot_leave(void);
/* Another recording: nothing has happened to the slot yet. */
void plumb_slot_renew(void);
/* Switches records off, or on again; callbacks stay. Any thread; cheap when it is so already. */
void plumb_slot_pause(bool pause);
/*
 * Replays have one record, and their nodes none. A graph that was made executable while this was
 * off crashes in CUPTI 13.0 when it is launched with it on (measured: a segmentation fault); the
 * other way round is fine, but leaves the graph slower for good. So it is on from the driver's
 * start or never, and once off it stays off.
 */
bool plumb_slot_replays(void);

/*
 * The program's own use of CUPTI, as interpose.c sees it. Each of its calls that matters goes
 *
 *	if (!plumb_slot_watched())  return real(…);         // ours, or nobody records
 *	if (plumb_slot_program())   return refusal;         // kept; else it is the program's now
 *	plumb_slot_enter(); result = real(…); plumb_slot_leave_call();
 *	plumb_slot_…(what it did);
 *
 * No lock is held while the real function runs.
 */
bool plumb_slot_watched(void);
bool plumb_slot_inside(void); /* plumb or CUPTI itself calls */
bool plumb_slot_program(void);
void plumb_slot_enter(void); /* what CUPTI calls in turn is not the program's */
void plumb_slot_leave_call(void);
void plumb_slot_subscribed(CUpti_SubscriberHandle handle, CUpti_CallbackFunc callback, void *data);
void plumb_slot_unsubscribed(void);
/* ID UINT32_MAX: the whole domain. */
void plumb_slot_callbacks(bool enabled, uint32_t domain, uint32_t id);
void plumb_slot_kind(bool enabled, CUpti_ActivityKind kind);
void plumb_slot_flushed(void);
void plumb_slot_clock(CUpti_TimestampCallbackFunc clock);
/* plumb has the slot, so the program has nothing enabled. */
bool plumb_slot_ours(void);
/* The program's subscription is one that only plumb remembers: forgets it, true. */
bool plumb_slot_forget(CUpti_SubscriberHandle handle);
/* The program's handle as CUPTI knows it now: it was subscribed anew when the slot came back. */
CUpti_SubscriberHandle plumb_slot_handle(CUpti_SubscriberHandle handle);

/* ---- cuda.c ---- */

extern struct plumb_gpu_activity *plumb_cuda_activity;
extern _Atomic bool plumb_cuda_live; /* false before the start and in a forked child */
bool plumb_cuda_own_process(void);   /* false in a forked child */
void plumb_cuda_wake(void);          /* the service thread has something to do */

#endif
