/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an importer hands over: where things happened and what happened there, in any order.
 * plumb_trace_finish makes contexts, values, totals and spans from it:
 *
 * - On a thread, a thing hangs under the longer thing that it lies within. If it only begins
 *   there, it hangs under it too, and is counted.
 * - GPU work hangs under the driver call of its process that has its correlation. One call may
 *   have any number of works, which may run at any time. If the process has no such call and only
 *   one other process of the file has one, the work hangs under that. Without a call it hangs
 *   under the root, and is counted.
 * - Backward work hangs under the forward operator that a link names.
 * - The totals of a device are exact sums, and its busy time is an exact union.
 *
 * Times are ns of the file's clock; a file has one clock. When memory runs out, functions that
 * return an id return PLUMB_NONE, and the others return a negative code. An importer need not
 * check: plumb_trace_finish reports it.
 */
#ifndef PLUMB_IMPORT_TRACE_H
#define PLUMB_IMPORT_TRACE_H

#include "base/json_pull.h"
#include "import/binaries.h"
#include "import/spans/levels.h"
#include "model/builder.h"

struct plumb_trace;

/* ---- where ---- */

/* Each makes a row the first time that this file asks for it. */
uint32_t plumb_trace_process(struct plumb_trace *trace, int64_t pid);
uint32_t plumb_trace_thread(struct plumb_trace *trace, uint32_t process, int64_t tid);
/* PROCESS was made before its number was known: it is PID. Returns it. */
uint32_t plumb_trace_process_is(struct plumb_trace *trace, uint32_t process, int64_t pid);
/* One per process and ordinal; those with the same UUID (may be NULL, not known) are one, over
 * files too. */
uint32_t
plumb_trace_device(struct plumb_trace *trace, uint32_t process, int64_t ordinal, const char *uuid);
/* GPU_CONTEXT may be PLUMB_UNKNOWN. */
uint32_t plumb_trace_stream(struct plumb_trace *trace, uint32_t process, uint32_t device,
                            int64_t gpu_context, int64_t stream);

/* Whether the file had them; PLUMB_NONE: not. */
uint32_t plumb_trace_has_process(const struct plumb_trace *trace, int64_t pid);
uint32_t plumb_trace_has_thread(const struct plumb_trace *trace, uint32_t process, int64_t tid);
/* Each thread of the file so far, in any order; VISIT may make no other. */
void plumb_trace_each_thread(const struct plumb_trace *trace,
                             void (*visit)(void *data, int64_t tid, uint32_t track), void *data);
uint32_t plumb_trace_has_device(const struct plumb_trace *trace, uint32_t process, int64_t ordinal);

/* The builder's, for names, ranks, properties of devices and so on. A device's totals, and start
 * and end of processes and tracks that have spans, are made by plumb_trace_finish. */
struct plumb_builder *plumb_trace_builder(struct plumb_trace *trace);
/* The file's rank, for all of its processes. Of one process: the builder's row. */
void plumb_trace_rank(struct plumb_trace *trace, int64_t rank);

/* Added to all times of the file, those too that were handed over before (but of
 * plumb_trace_span's, only those that come later). */
void plumb_trace_base(struct plumb_trace *trace, int64_t ns);

/* How spans of several levels find their parents (levels.h), as the user chose. */
enum plumb_parents plumb_trace_parents(const struct plumb_trace *trace);

/* Binaries of GPU code that the user gave; NULL: none. */
struct plumb_binaries *plumb_trace_binaries(const struct plumb_trace *trace);
/* Tells the user in one line what is missing, and the remedy. */
void plumb_trace_note(const struct plumb_trace *trace, const char *format, ...) PLUMB_PRINTF(2, 3);

/* ---- what ---- */

/* A frame by slices; see model/profile.h. */
uint32_t plumb_trace_frame(struct plumb_trace *trace, uint32_t kind, struct plumb_slice name);
uint32_t plumb_trace_frame_at(struct plumb_trace *trace, uint32_t kind, struct plumb_slice name,
                              struct plumb_slice file, int64_t line);

/* A copy's frame, as plumb's own recording names it. */
uint32_t plumb_trace_copy_frame(struct plumb_trace *trace, enum plumb_memory_kind from,
                                enum plumb_memory_kind to);
uint32_t plumb_trace_set_frame(struct plumb_trace *trace, enum plumb_memory_kind to);

/* Adds something that ran on a thread. CORRELATION links a driver or runtime call to the work that
 * it started; 0 is none. If the end is before the start, it is counted and not taken. */
int plumb_trace_host(struct plumb_trace *trace, uint32_t track, uint32_t frame, int64_t start_ns,
                     int64_t end_ns, uint64_t correlation);

/* The same for files that name the CONTEXT (plumb_builder_context). What the span lies within then
 * does not matter. */
int plumb_trace_placed(struct plumb_trace *trace, uint32_t track, uint32_t context,
                       int64_t start_ns, int64_t end_ns, uint64_t correlation);

/* As plumb_trace_host, of an operator with those SHAPES (a string): they become a variant of its
 * context. */
int plumb_trace_shaped(struct plumb_trace *trace, uint32_t track, uint32_t frame, int64_t start_ns,
                       int64_t end_ns, uint32_t shapes);

/* A kernel's launch; PLUMB_UNKNOWN where the file does not say. */
struct plumb_trace_launch {
	int64_t grid[3], block[3];
	int64_t registers, static_shared, dynamic_shared;
	int64_t shared;    /* both, where the file does not tell them apart */
	int64_t occupancy; /* theoretical, parts per million */
};
extern const struct plumb_trace_launch plumb_trace_no_launch; /* all unknown */

/* What the file says of a collective operation (model/profile.h): strings or PLUMB_NONE,
 * PLUMB_UNKNOWN. */
struct plumb_trace_group {
	uint32_t name, ranks;
	int64_t size, sequence;
};
/* Its number, for a work; what it says may change until the file ends. 0: memory is out. */
uint32_t plumb_trace_group(struct plumb_trace *trace, const struct plumb_trace_group *group);
/* Valid until the next one is made; NULL for 0. */
struct plumb_trace_group *plumb_trace_get_group(struct plumb_trace *trace, uint32_t number);

/* GPU work on a stream: a frame of kind kernel, copy or set. BYTES: of a copy or set, PLUMB_UNKNOWN
 * where the file does not say; LAUNCH: of a kernel, may be NULL. PLACED: the context it hangs under
 * when that is known without a correlation (CORRELATION is then only kept), else PLUMB_NONE. */
#define PLUMB_TRACE_INNER 3
struct plumb_trace_work {
	uint32_t track, frame;
	int64_t start_ns, end_ns;
	uint64_t correlation;
	int64_t bytes;
	const struct plumb_trace_launch *launch;
	/* string: "AllReduce"; PLUMB_NONE: told by the kernel's name, if it is one */
	uint32_t collective;
	uint32_t group; /* of plumb_trace_group; 0 none */
	uint32_t placed;
	bool whole;             /* PLACED is the work's own context, its frame included */
	bool here;              /* its launch is one of the track's process, for certain */
	struct plumb_ends ends; /* of a copy between two devices */
	/* Frames between the call and the work, outermost first, where the file says what the work
	 * is part of (XLA's module and operation); 0 none. */
	uint32_t inner[PLUMB_TRACE_INNER];
};
/* The ends of a copy between two devices (plumb_trace_device); none if they are one, or unknown. */
static inline struct plumb_ends
plumb_trace_ends(uint32_t from, uint32_t to)
{
	bool two = from != to && from != PLUMB_NONE && to != PLUMB_NONE;
	return two ? (struct plumb_ends){ from + 1, to + 1 } : (struct plumb_ends){ 0, 0 };
}
int plumb_trace_work(struct plumb_trace *trace, const struct plumb_trace_work *work);

/* Bytes of several copies (or sets) of a context on a stream, each handed over as work of unknown
 * bytes. */
int plumb_trace_bytes(struct plumb_trace *trace, const struct plumb_value *bytes, bool set);

/* A synchronisation: the host waited NS within the call of PROCESS that has CORRELATION; 0 when
 * only a stream waited. Calls that wait by their name (cudaStreamSynchronize) have their own
 * duration instead. */
int plumb_trace_wait(struct plumb_trace *trace, uint32_t process, uint64_t correlation, int64_t ns);
/* Who waited for what (model/profile.h), by the file's own numbers: in the call CALL of PROCESS,
 * its thread, or where STREAM is not PLUMB_UNKNOWN that stream of the device ORDINAL, waited for
 * the stream AWAITED of its device and context; PLUMB_UNKNOWN: for all streams of ORDINAL. AFTER:
 * the call that recorded the event, 0 none. Counts nothing: plumb_trace_wait does. */
struct plumb_trace_sync {
	uint32_t process;
	int64_t ordinal, gpu_context, stream, awaited;
	int64_t awaited_ordinal, awaited_context;
	uint64_t call, after;
};
int plumb_trace_sync(struct plumb_trace *trace, const struct plumb_trace_sync *sync);
/* Bytes that DEVICE copied and set in addition to those of its works that state their bytes. */
int plumb_trace_more_bytes(struct plumb_trace *trace, uint32_t device, int64_t copied, int64_t set);

/* The innermost thing that began at FROM_NS or before and is not over then, on thread FROM, caused
 * the outermost thing that begins at or after TO_NS on thread TO: forward and backward. */
int plumb_trace_link(struct plumb_trace *trace, uint32_t from, int64_t from_ns, uint32_t to,
                     int64_t to_ns);

/* Adds a span whose context the importer has made (plumb_builder_context), for formats that name
 * parents. No values are made from it. */
int plumb_trace_span(struct plumb_trace *trace, uint32_t track, uint32_t context, int64_t start_ns,
                     int64_t end_ns, uint64_t correlation);

/* A sample of CPU time (model/profile.h) at a context that the importer made itself: at AT_NS, of
 * NS. */
int plumb_trace_cpu_sample(struct plumb_trace *trace, uint32_t track, uint32_t context,
                           int64_t at_ns, int64_t ns);

/* A metric's NUMBER, one observation, at a context that the importer made itself, for formats that
 * hold sums and no intervals. */
int plumb_trace_value(struct plumb_trace *trace, uint32_t track, uint32_t context, uint32_t metric,
                      int64_t number);
/* ---- counters, and values without events (readings.c) ---- */

/* As plumb_trace_work, for a file whose works have numbers (ID, within PROCESS). A work that was
 * handed over before is not taken again (1). But if it has no grid, one with a launch replaces
 * it. */
int plumb_trace_work_once(struct plumb_trace *trace, uint32_t process,
                          const struct plumb_trace_work *work, uint64_t id);
/* What COUNTER read during the work ID of PROCESS. COUNTER is a string and becomes a metric of the
 * program's own, in UNIT (a string or PLUMB_NONE). The work may come before, later or never:
 * without it, FRAME hangs under the root. A counter that has fractions is kept in millionths, as
 * "COUNTER [1e-6]". False if NUMBER is not a number. */
#define PLUMB_TRACE_NO_ID UINT64_MAX
bool plumb_trace_reading(struct plumb_trace *trace, uint32_t process, uint64_t id, uint32_t frame,
                         uint32_t counter, uint32_t unit, struct plumb_slice number);
/* A value of a context that the importer made (plumb_builder_context), of a file that has sums and
 * no events. */
int plumb_trace_summary(struct plumb_trace *trace, const struct plumb_value *value);

/* ---- the ledger ---- */

/* Things of the file that are no part of the above: COUNT of them met FATE; DETAIL (may be NULL)
 * says what they are. What is handed over is counted by itself. */
void plumb_trace_count(struct plumb_trace *trace, uint32_t fate, const char *detail, int64_t count);
void plumb_trace_count_slice(struct plumb_trace *trace, uint32_t fate, struct plumb_slice detail,
                             int64_t count);
/* A fact about the recording: framework, versions. The first value of a key is kept. */
void plumb_trace_environment(struct plumb_trace *trace, const char *key, struct plumb_slice value);

/* ---- by import.c ---- */

struct plumb_trace *plumb_trace_new(struct plumb_builder *builder);
void plumb_trace_free(struct plumb_trace *trace);
void plumb_trace_set_parents(struct plumb_trace *trace, enum plumb_parents rule);
void plumb_trace_set_binaries(struct plumb_trace *trace, struct plumb_binaries *binaries);
void plumb_trace_set_note(struct plumb_trace *trace, void (*note)(void *own, const char *text),
                          void *own);
/* Another file begins: pids and correlations are new ones. RANK: for processes that the file gives
 * none. */
int plumb_trace_next_file(struct plumb_trace *trace, const char *path, int64_t rank);
/* The file is read: its contexts, values, totals and spans go into the builder. */
int plumb_trace_end_file(struct plumb_trace *trace, struct plumb_error *error) PLUMB_MUST_CHECK;
/* All files are read. PLUMB_EEMPTY: nothing was in them. */
int plumb_trace_finish(struct plumb_trace *trace, struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
