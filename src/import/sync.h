/* SPDX-License-Identifier: Apache-2.0 */
/* Records of synchronisation, as CUPTI makes them and PyTorch's profiler and Nsight Systems hand
 * them on. */
#ifndef PLUMB_IMPORT_SYNC_H
#define PLUMB_IMPORT_SYNC_H

#include "base/vec.h"
#include "import/trace.h"

/* The numbers are CUPTI's. */
enum plumb_sync_kind {
	PLUMB_SYNC_EVENT = 1,        /* the host waits for an event */
	PLUMB_SYNC_STREAM_WAITS = 2, /* a stream waits for an event */
	PLUMB_SYNC_STREAM = 3,       /* the host waits for a stream */
	PLUMB_SYNC_CONTEXT = 4,      /* the host waits for all streams */
};

/*
 * Hands over who waited for what. SYNC has process, call, ordinal and gpu_context; STREAM as the
 * record has it: the stream that waits, or is waited for, negative or PLUMB_UNKNOWN for none; and
 * of an event `after` and where it was recorded: awaited (negative or PLUMB_UNKNOWN where that is
 * not known), awaited_ordinal, awaited_context. False: nothing was, for the record does not tell.
 */
bool
plumb_import_sync(struct plumb_trace *trace, int64_t kind, const struct plumb_trace_sync *sync);

/* Where events were recorded; zero it to start. */
struct plumb_import_event {
	int64_t process; /* by the file's number */
	int64_t event;
	int64_t number; /* of the event and this record alone; 0: the file has no such numbers */
	int64_t ordinal, gpu_context, stream, correlation;
};
struct plumb_import_events {
	PLUMB_VEC(struct plumb_import_event) items;
	uint32_t *by_number; /* places of those that have one */
	uint32_t numbered;
};
int
plumb_import_events_add(struct plumb_import_events *events, const struct plumb_import_event *event);
/* All are there. Negative: memory is out. */
int plumb_import_events_sort(struct plumb_import_events *events);
/* Finds the record that a wait in call CORRELATION of PROCESS was for. If NUMBER is positive and
 * records have numbers, it is the record with NUMBER. Else it is the latest of EVENT before that
 * call: in GPU_CONTEXT, or if that context has none, in the only other context that has one. NULL
 * if there is none. */
const struct plumb_import_event *
plumb_import_events_find(const struct plumb_import_events *events, int64_t process, int64_t number,
                         int64_t event, int64_t gpu_context, int64_t correlation);
void plumb_import_events_free(struct plumb_import_events *events);

#endif
