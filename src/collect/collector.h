/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The collector's core: what the framework shims (monitor/) and the GPU runtimes (gpu/) build on.
 *
 * It lives in other people's programs. Rules for everything under collect/: no exit, print, abort
 * or signal handler; no lock and no heap on a hot path; no GIL; errno kept; re-entry guarded;
 * nothing exported but the entry points that a macro PLUMB_EXPORT marks; no library but libc.
 *
 * A callback looks like this:
 *
 *	struct plumb_thread *t = plumb_enter(PLUMB_CALLBACK_GPU);
 *	if (!t)
 *		return;                      // recording is off, or we came back into ourselves
 *	plumb_id context = plumb_context_current(t);
 *	…
 *	plumb_leave(t);
 */
#ifndef PLUMB_COLLECT_COLLECTOR_H
#define PLUMB_COLLECT_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "base/clock.h"
#include "base/words.h"
#include "region/writer.h"

#define PLUMB_EXPORT __attribute__((visibility("default")))
/* Variables that most events read stand together, in few cache lines. */
#define PLUMB_HOT __attribute__((section("plumb_hot")))
/* Functions that most events run stand together, in few pages. */
#define PLUMB_HOT_CODE __attribute__((hot))
#define plumb_likely(x) __builtin_expect(!!(x), 1)
#define plumb_unlikely(x) __builtin_expect(!!(x), 0)

/* `plumb run` tells the collector what to do by environment variables, which children inherit. */
#define PLUMB_ENV_FOLDER "PLUMB_FOLDER"  /* where regions go; unset: the collector stays off */
#define PLUMB_ENV_LIMIT "PLUMB_LIMIT"    /* bytes a region may take */
#define PLUMB_ENV_GPU "PLUMB_GPU"        /* enum plumb_gpu_mode, as a number */
#define PLUMB_ENV_FLUSH "PLUMB_FLUSH_MS" /* period of flushing GPU records */
#define PLUMB_ENV_KEEP_CUPTI "PLUMB_KEEP_CUPTI" /* "1": never give the CUPTI slot up */
#define PLUMB_ENV_LAYERS "PLUMB_LAYERS"         /* enum plumb_layer, as a number */
#define PLUMB_ENV_CPU "PLUMB_CPU_HZ"            /* CPU samples a second and thread; 0: none */
#define PLUMB_ENV_EVENTS "PLUMB_EVENTS"         /* perf events, separated by commas */
#define PLUMB_ENV_MEMORY "PLUMB_MEMORY"         /* "1": tensor allocations */
#define PLUMB_ENV_SHAPES "PLUMB_SHAPES"         /* "1": shapes of operators' inputs and outputs */
#define PLUMB_ENV_REPLAYS "PLUMB_REPLAYS"       /* "1": replays of graphs have one record */
#define PLUMB_ENV_STALLS "PLUMB_STALLS"         /* samples of stalls, period 2^n cycles; 0: none */
#define PLUMB_ENV_COUNTERS "PLUMB_COUNTERS"     /* names of hardware counters of kernels */
#define PLUMB_ENV_COUNTERS_KERNELS "PLUMB_COUNTERS_KERNELS" /* hashes of kernels' names */
#define PLUMB_ENV_COUNTERS_LAUNCHES "PLUMB_COUNTERS_LAUNCHES"
#define PLUMB_ENV_COUNTERS_COST "PLUMB_COUNTERS_COST"
#define PLUMB_ENV_COUNTERS_SERIES "PLUMB_COUNTERS_SERIES" /* names of counters to sample */
#define PLUMB_ENV_COUNTERS_EVERY "PLUMB_COUNTERS_EVERY"   /* one sample each so many µs */
#define PLUMB_ENV_STALLS_MODE "PLUMB_STALLS_MODE"         /* enum plumb_stalls_mode, as a number */
#define PLUMB_ENV_TRAFFIC "PLUMB_TRAFFIC" /* as plumb_traffic_parse takes it; unset: none */
#define PLUMB_ENV_TRAFFIC_KERNELS "PLUMB_TRAFFIC_KERNELS" /* an extended regular expression */
#define PLUMB_ENV_TRAFFIC_OBJECTS "PLUMB_TRAFFIC_OBJECTS" /* likewise */
#define PLUMB_ENV_TRAFFIC_OWN "PLUMB_TRAFFIC_OWN"         /* "1": also accesses to own memory */
#define PLUMB_ENV_TRACE "PLUMB_TRACE"     /* "all", "50" (iterations) or "20s": keep spans */
#define PLUMB_ENV_COMMAND "PLUMB_COMMAND" /* "0": command lines are not recorded */
#define PLUMB_ENV_FOLLOW "PLUMB_FOLLOW"   /* "none", "all" or an extended regular expression */
#define PLUMB_ENV_TOOLS "PLUMB_TOOLS"   /* libraries that are preloaded behind, separated by ":" */
#define PLUMB_ENV_PAUSED "PLUMB_PAUSED" /* "1": recording begins paused */
#define PLUMB_ENV_MEMO "PLUMB_NATIVE_MEMO"         /* "0": every native stack is walked */
#define PLUMB_ENV_TRACED "PLUMB_SAMPLE_TRACED"     /* "1": a debugger sees our signals; for tests */
#define PLUMB_ENV_CONTEXTS "PLUMB_NATIVE_CONTEXTS" /* native contexts that samples may make */
#define PLUMB_ENV_CHAIN_NVTX                                                                       \
	"PLUMB_CHAIN_NVTX_INJECTION64_PATH" /* the value that was there before */
#define PLUMB_ENV_CHAIN_CUDA                                                                       \
	"PLUMB_CHAIN_CUDA_INJECTION64_PATH" /* the value that was there before */
#define PLUMB_ENV_CHAIN_NCCL                                                                       \
	"PLUMB_CHAIN_NCCL_PROFILER_PLUGIN" /* the value that was there before */

struct plumb_thread; /* one for each thread of the program that meets us; see thread.h */

/*
 * Begins a callback on the calling thread: makes the region and the thread's arena if they are
 * missing, and sets the re-entry guard. NULL: the caller does nothing, because recording is off,
 * paused or over, this is a re-entry, or there is no memory. plumb_enter counts what is lost. It
 * measures the time from enter to leave for one callback in 64 of each kind.
 */
struct plumb_thread *plumb_enter(enum plumb_callback_kind kind);
void plumb_leave(struct plumb_thread *thread);

/* As plumb_enter. If there is no room for the thread, it counts one unit of SOURCE as lost (0:
 * none). plumb_enter uses the source that belongs to KIND. */
struct plumb_thread *plumb_enter_of(enum plumb_callback_kind kind, enum plumb_source source);

/* As plumb_enter, but it also works while recording is paused. Use it for what began before the
 * pause and for facts of the environment, never for what the program does now. */
struct plumb_thread *plumb_enter_paused(enum plumb_callback_kind kind);

/* The number of the period of recording that the callback began in. What began in another period
 * has no duration, because nobody watched all of it. */
uint32_t plumb_epoch(const struct plumb_thread *thread);

/* The thread's arena, and its track (a THREAD record). */
struct plumb_arena *plumb_thread_arena(struct plumb_thread *thread);
plumb_id plumb_thread_track(const struct plumb_thread *thread);

/* ---- context tree ---- */

/* A frame's identity, in the thread's own interned strings. */
struct plumb_key {
	uint8_t kind, flags;
	uint32_t line;
	plumb_id name, file;
};

/* The id of a string of BYTES bytes, the same for the same text in this thread; 0: no room. */
plumb_id plumb_intern(struct plumb_thread *thread, const char *text, size_t bytes);

/* As plumb_intern, for a text that usually comes again at the same address (the name of an operator
 * or a driver call). The address may hold another text by then, so plumb_name compares it. */
plumb_id plumb_name(struct plumb_thread *thread, const char *name);

/* The id of a context that found no room. Its children are lost too, and plumb counts what it
 * observes there as dropped. So callers pass it on like any other id. */
#define PLUMB_LOST UINT32_MAX

/* Where THREAD keeps the name of the GPU runtime's function NUMBER, below PLUMB_CALL_NAMES: 0 until
 * the runtime puts it there. */
#define PLUMB_CALL_NAMES 1024u
plumb_id *plumb_call_name(struct plumb_thread *thread, uint32_t number);

/* The child of PARENT with identity KEY, made if it is missing. PARENT may belong to any thread; 0
 * is the root. The child belongs to the calling thread. PLUMB_LOST: there is no room. */
plumb_id plumb_child(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key);

/* The same, but it makes nothing; 0: there is no such child yet. */
plumb_id
plumb_child_known(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key);

/* As plumb_child, for a frame that has only a name. */
plumb_id plumb_child_named(struct plumb_thread *thread, plumb_id parent, enum plumb_frame_kind kind,
                           const char *name);

/* As plumb_child_named, for a copy from the device FROM to the device TO (DEVICE records): copies
 * between other devices are other nodes of the same context. */
plumb_id plumb_child_copy(struct plumb_thread *thread, plumb_id parent, const char *name,
                          plumb_id from, plumb_id to);

/* Adds an observation X of METRIC at NODE, on TRACK (a THREAD or STREAM record). METRIC is an enum
 * plumb_metric, or the number of one of the program's own metrics. The calling thread must have
 * made NODE (0: the root). */
void plumb_observe(struct plumb_thread *thread, plumb_id node, uint32_t metric, plumb_id track,
                   int64_t x);
/* Adds the observation X, TIMES times. */
void plumb_observe_times(struct plumb_thread *thread, plumb_id node, uint32_t metric,
                         plumb_id track, int64_t x, uint64_t times);

/* Prefetches the values of NODE, for an observation that comes soon. */
void plumb_prefetch_values(struct plumb_thread *thread, plumb_id node);

/* Records that ORIGIN explains NODE. Calling it again changes nothing, and so does a call where
 * either is 0 or PLUMB_LOST. */
void plumb_origin(struct plumb_thread *thread, plumb_id node, plumb_id origin,
                  enum plumb_origin_kind kind);

/* Adds to the ledger. */
void plumb_count(struct plumb_thread *thread, enum plumb_source source, enum plumb_fate fate,
                 uint64_t count);

/* ---- where the program is now ---- */

/* The context of what the calling thread runs now: the Python frames and operators that plumb
 * knows, innermost last. 0: the root (nothing is known). */
plumb_id plumb_context_current(struct plumb_thread *thread);

/* ---- the process ---- */

struct plumb_collector_options {
	char folder[4096];
	uint64_t limit;
	unsigned flush_ms;
	enum plumb_gpu_mode gpu;
	bool keep_cupti;
	unsigned layers; /* enum plumb_layer */
	unsigned cpu_hz; /* 0: no CPU samples */
	bool replays;    /* replays of graphs have one record */
	unsigned stalls; /* the period of samples of stalls is 2^stalls cycles; 0: none */
	enum plumb_stalls_mode stalls_mode;
	enum plumb_traffic_mode traffic; /* 0: none */
	double traffic_rate;             /* of PLUMB_TRAFFIC_SAMPLED */
	bool traffic_own; /* --traffic also looks at accesses of a device to its own memory */
	bool memory, shapes;
	bool paused;
	bool no_memo; /* walk every native stack; for measuring and tests */
	bool sample_traced;
	unsigned native_contexts; /* native contexts that samples may make in a process */
	char events[256];         /* "" none */
	char trace[32];           /* "" none */
	char follow[256];         /* "" all */
	char traffic_kernels[256], traffic_objects[256]; /* "" all */
	char counters[1024];                             /* names, separated by commas; "" none */
	char counters_kernels[4608];                     /* hashes of names; "" all */
	unsigned counters_launches; /* of a kernel at a context, the last one that is counted */
	unsigned counters_cost;     /* how many times as long the run may take; 0: any */
	char counters_series[1024]; /* names, separated by commas; "" none */
	unsigned counters_every;    /* µs */
};
const struct plumb_collector_options *plumb_collector_options(void);
/* The layers of this process, for hot paths. PLUMB_LAYER_NATIVE_ALONE: it has native frames, and no
 * Python interpreter runs in it. */
extern unsigned plumb_layers;
bool plumb_recording(void); /* the region exists and is not closed; it may be paused */
struct plumb_region *plumb_region_of_process(void);

/* The real dlsym, not the one that the collector puts in front of it. */
void *plumb_real_dlsym(void *handle, const char *name);

/* The path of a loaded library with NAME in its file name, copied to PATH of SIZE bytes; NULL: none
 * is loaded. Example: plumb_find_library("libcupti.so", …). */
const char *plumb_find_library(const char *name, char *path, size_t size);

/* Writes an ENVIRONMENT record. Any thread may call it between plumb_enter and plumb_leave. */
void plumb_environment(struct plumb_thread *thread, const char *key, const char *value);

#endif
