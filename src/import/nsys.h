/* SPDX-License-Identifier: Apache-2.0 */
/* Nsight Systems' SQLite: nsys.c reads it, nsys_waits.c its synchronisation. Private to the two. */
#ifndef PLUMB_IMPORT_NSYS_H
#define PLUMB_IMPORT_NSYS_H

#include "import/sqlite.h"
#include "import/trace.h"

/* PROCESS_OF a globalPid. */
void plumb_nsys_waits(struct plumb_sqlite *sqlite, struct plumb_trace *trace,
                      uint32_t (*process_of)(void *own, int64_t global), void *own);

#endif
