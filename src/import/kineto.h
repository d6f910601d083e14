/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch's profiler: kineto.c reads the file, kineto_devices.c what it says of GPUs, kineto_sync.c its
 * synchronisation. Private to the three. */
#ifndef PLUMB_IMPORT_KINETO_H
#define PLUMB_IMPORT_KINETO_H

#include "import/chrome_event.h"

#define PLUMB_KINETO_DEVICES_MAX 64

struct plumb_kineto_device {
	int64_t id, process, memory, major, minor, multiprocessors, threads;
	char name[128], uuid[64]; /* the UUID and process in plumb's own exports */
};

/* "deviceProperties". */
struct plumb_kineto_devices {
	struct plumb_kineto_device items[PLUMB_KINETO_DEVICES_MAX];
	uint32_t count;
	uint32_t first; /* of the builder's devices: the file's */
	bool has_uuids;
};

void plumb_kineto_devices_read(struct plumb_kineto_devices *devices, struct plumb_pull *pull);
/* Of device ORDINAL in the process with the number PID; NULL: not said. */
const char *
plumb_kineto_devices_uuid(const struct plumb_kineto_devices *devices, int64_t pid, int64_t ordinal);
/* All is read: says so of TRACE's devices. */
void plumb_kineto_devices_describe(const struct plumb_kineto_devices *devices,
                                   struct plumb_trace *trace);

/* Is KEY, an argument's, one of theirs? Then its value is read: the event's stream, and its call. */
bool plumb_kineto_sync_key(struct plumb_pull *pull, struct plumb_slice key, int64_t *awaited,
                           int64_t *recorded);

/* EVENT is a cuda_sync with these arguments as they stand: STREAM, -1 or unknown where it is none, and
 * AWAITED, -1 where the event's is not known. */
void plumb_kineto_sync(struct plumb_trace *trace, const struct plumb_chrome_event *event,
                       const struct plumb_trace_sync *sync);

#endif
