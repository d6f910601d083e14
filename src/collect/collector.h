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

#include "base/words.h"
#include "region/writer.h"

#define PLUMB_EXPORT __attribute__((visibility("default")))
#define plumb_likely(x) __builtin_expect(!!(x), 1)
#define plumb_unlikely(x) __builtin_expect(!!(x), 0)

/* How `plumb run` speaks to the collector: environment variables, so that children inherit them. */
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
#define PLUMB_ENV_TRACE "PLUMB_TRACE"           /* "all", "50" (iterations) or "20s": keep spans */
#define PLUMB_ENV_COMMAND "PLUMB_COMMAND"       /* "0": command lines are not recorded */
#define PLUMB_ENV_FOLLOW "PLUMB_FOLLOW" /* "none", "all" or an extended regular expression */
#define PLUMB_ENV_TOOLS "PLUMB_TOOLS"   /* libraries that are preloaded behind, separated by ":" */
#define PLUMB_ENV_PAUSED "PLUMB_PAUSED" /* "1": recording begins paused */
#define PLUMB_ENV_MEMO "PLUMB_NATIVE_MEMO"         /* "0": every native stack is walked */
#define PLUMB_ENV_TRACED "PLUMB_SAMPLE_TRACED"     /* "1": a debugger sees our signals; for tests */
#define PLUMB_ENV_CONTEXTS "PLUMB_NATIVE_CONTEXTS" /* native contexts that samples may make */
#define PLUMB_ENV_CHAIN_NVTX                                                                       \
	"PLUMB_CHAIN_NVTX_INJECTION64_PATH" /* the value that was there before */
#define PLUMB_ENV_CHAIN_CUDA                                                                       \
	"PLUMB_CHAIN_CUDA_INJECTION64_PATH" /* the value that was there before */

struct plumb_thread; /* one for each thread of the program that meets us; see thread.h */

static inline uint64_t
plumb_now(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/*
 * Begins a callback on the calling thread: makes the region and the thread's arena when needed,
 * sets the re-entry guard. NULL: do nothing (recording off, paused or over, re-entry, no memory);
 * what was lost is counted. One callback in 64 of each kind is timed between enter and leave.
 */
struct plumb_thread *plumb_enter(enum plumb_callback_kind kind);
void plumb_leave(struct plumb_thread *thread);

/* As plumb_enter; where there is no room for the thread, one unit of SOURCE is counted as lost (0:
 * none). plumb_enter takes the source that KIND stands for. */
struct plumb_thread *plumb_enter_of(enum plumb_callback_kind kind, enum plumb_source source);

/* As plumb_enter, and also while recording is paused: for what was begun before and for facts of
 * the environment, never for what the program does now. */
struct plumb_thread *plumb_enter_paused(enum plumb_callback_kind kind);

/* The period of recording that the callback began in. What another one saw the beginning of was not
 * seen as a whole: it has no duration. */
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

/* As plumb_intern for a text that usually comes by the same pointer again (an operator's or a
 * driver call's name); it may be another text then, so it is compared. */
plumb_id plumb_name(struct plumb_thread *thread, const char *name);

/* What stands for a context that found no room. Its children are lost too, and what is observed
 * there is counted as dropped, so callers pass it on like any other. */
#define PLUMB_LOST UINT32_MAX

/* The child of PARENT (of any thread; 0: the root) with identity KEY, made when missing; PLUMB_LOST
 * when there is no room. The child is the calling thread's own. */
plumb_id plumb_child(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key);

/* The same where it was made already, or 0. */
plumb_id
plumb_child_known(struct plumb_thread *thread, plumb_id parent, const struct plumb_key *key);

/* As plumb_child for a frame that has a name only. */
plumb_id plumb_child_named(struct plumb_thread *thread, plumb_id parent, enum plumb_frame_kind kind,
                           const char *name);

/* As plumb_child_named, for a copy from the device FROM to the device TO (DEVICE records): copies
 * between other devices are other nodes of the same context. */
plumb_id plumb_child_copy(struct plumb_thread *thread, plumb_id parent, const char *name,
                          plumb_id from, plumb_id to);

/* Adds an observation X of METRIC (enum plumb_metric, or a number of the program's own) at NODE,
 * which the calling thread must have made (0: the root), on TRACK (a THREAD or STREAM record). */
void plumb_observe(struct plumb_thread *thread, plumb_id node, uint32_t metric, plumb_id track,
                   int64_t x);
/* Adds so many TIMES observations X. */
void plumb_observe_times(struct plumb_thread *thread, plumb_id node, uint32_t metric,
                         plumb_id track, int64_t x, uint64_t times);

/* Says that ORIGIN explains NODE, once however often it is said. Either may be 0 or PLUMB_LOST:
 * then nothing is said. */
void plumb_origin(struct plumb_thread *thread, plumb_id node, plumb_id origin,
                  enum plumb_origin_kind kind);

/* Adds to the ledger. */
void plumb_count(struct plumb_thread *thread, enum plumb_source source, enum plumb_fate fate,
                 uint64_t count);

/* ---- where the program is now ---- */

/* The context of what the calling thread runs now: Python frames and operators as far as they are
 * known, innermost last. 0: the root (nothing known). */
plumb_id plumb_context_current(struct plumb_thread *thread);

/* ---- the process ---- */

struct plumb_options {
	char folder[4096];
	uint64_t limit;
	unsigned flush_ms;
	enum plumb_gpu_mode gpu;
	bool keep_cupti;
	unsigned layers; /* enum plumb_layer */
	unsigned cpu_hz; /* 0: no CPU samples */
	bool replays;    /* replays of graphs have one record */
	bool memory, shapes;
	bool paused;
	bool no_memo; /* walk every native stack; for measuring and tests */
	bool sample_traced;
	unsigned native_contexts; /* native contexts that samples may make in a process */
	char events[256];         /* "" none */
	char trace[32];           /* "" none */
	char follow[256];         /* "" all */
};
const struct plumb_options *plumb_options(void);
extern unsigned plumb_layers; /* options.layers, for hot paths */
bool plumb_recording(void);   /* the region exists and is not closed; it may be paused */
struct plumb_region *plumb_region_of_process(void);

/* dlsym past our own interposition. */
void *plumb_real_dlsym(void *handle, const char *name);

/* The path that a loaded library with NAME in its file name was loaded from, or NULL. Copies into
 * PATH of SIZE bytes. Example: plumb_find_library("libcupti.so", …). */
const char *plumb_find_library(const char *name, char *path, size_t size);

/* Writes an ENVIRONMENT record. Callable from any thread between plumb_enter and plumb_leave. */
void plumb_environment(struct plumb_thread *thread, const char *key, const char *value);

#endif
