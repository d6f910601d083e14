/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's profiler: kineto.c reads the file, kineto_sync.c its synchronisation. Private to the two. */
#ifndef PLUMB_IMPORT_KINETO_H
#define PLUMB_IMPORT_KINETO_H

#include "import/chrome_event.h"

/* Is KEY, an argument's, one of theirs? Then its value is read: the event's stream, and its call. */
bool plumb_kineto_sync_key(struct plumb_pull *pull, struct plumb_slice key, int64_t *awaited,
                           int64_t *recorded);

/* EVENT is a cuda_sync with these arguments as they stand: STREAM, -1 or unknown where it is none, and
 * AWAITED, -1 where the event's is not known. */
void plumb_kineto_sync(struct plumb_trace *trace, const struct plumb_chrome_event *event,
                       const struct plumb_trace_sync *sync);

#endif
