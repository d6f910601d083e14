/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read Nsight Systems' export. */
#ifndef PLUMB_IMPORT_NVIDIA_NSYS_H
#define PLUMB_IMPORT_NVIDIA_NSYS_H

#include "import/sqlite.h"
#include "import/trace.h"

/* Synchronisation; PROCESS_OF a globalPid. */
void plumb_nsys_waits(struct plumb_sqlite *sqlite, struct plumb_trace *trace,
                      uint32_t (*process_of)(void *reader, int64_t global), void *reader);

/*
 * Samples of CPU time (COMPOSITE_EVENTS with SAMPLING_CALLCHAINS) of threads that PROCESSES knows:
 * it gives the track of a globalTid, or PLUMB_NONE for a process that did nothing else. Call when
 * all else is read.
 */
void plumb_nsys_samples(struct plumb_sqlite *sqlite, struct plumb_trace *trace,
                        struct plumb_sqlite_texts *texts,
                        uint32_t (*thread_of)(void *reader, int64_t global), void *reader);

#endif
