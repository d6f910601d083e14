/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single spans, kept when asked (--trace): each thread has a ring of pieces in the region, which
 * grows until all threads together have their share of --limit and then goes over its oldest piece.
 *
 *	if (plumb_unlikely(plumb_trace_on))
 *		plumb_span_add(thread, node, plumb_thread_track(thread), start, plumb_ticks(), 0);
 */
#ifndef PLUMB_COLLECT_SPAN_H
#define PLUMB_COLLECT_SPAN_H

#include "collect/collector.h"

extern bool plumb_trace_on; /* set before the first callback, then constant */

/* Reads the options, for a region that was just made; ARENA takes a first reading of the clocks.
 * Call after plumb_clock_calibrate, before anybody records. */
void plumb_trace_begin(struct plumb_arena *arena);
/* A last reading of the clocks. */
void plumb_trace_end(struct plumb_arena *arena);

/* Keeps a span at NODE (PLUMB_LOST: counted as dropped) on TRACK, a thread's, from a callback of
 * THREAD. Times are plumb_ticks(). CORRELATION: what a driver call and the work that it starts
 * share; 0 none. */
void plumb_span_add(struct plumb_thread *thread, plumb_id node, plumb_id track, uint64_t start,
                    uint64_t end, uint64_t correlation);

/* Likewise a range that was started and ended: other spans may cross it. */
void plumb_span_started(struct plumb_thread *thread, plumb_id node, plumb_id track, uint64_t start,
                        uint64_t end);
/* Likewise work on STREAM. Times are of the GPU runtime's clock; BYTES are of a copy or set. */
void plumb_span_work(struct plumb_thread *thread, plumb_id node, plumb_id stream, uint64_t start,
                     uint64_t end, uint32_t correlation, uint64_t bytes);

/* Keeps when a sample of CPU time was taken: THREAD's own, at NODE, at AT (plumb_ticks()), which
 * stands for NS of CPU time. From a callback of THREAD, which may be a signal's handler. */
void plumb_span_sample(struct plumb_thread *thread, plumb_id node, uint64_t at, uint64_t ns);

/* Keeps a note (PLUMB_ENTRY_EVENT, WAIT or SYNC), from a callback of THREAD. */
void plumb_span_note(struct plumb_thread *thread, enum plumb_entry_kind kind, uint64_t where,
                     uint64_t event, uint64_t correlation);

#endif
