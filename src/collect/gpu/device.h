/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: their exact totals, busy time, series and newest work. */
#ifndef PLUMB_COLLECT_GPU_DEVICE_H
#define PLUMB_COLLECT_GPU_DEVICE_H

#include "collect/collector.h"

/* What a device did, from the thread that reads the records. Makes and owns the device's DEVICE,
 * STREAM, WORK_RING, DEVICE_TOTAL and SERIES records. */
enum plumb_gpu_work_kind { PLUMB_GPU_WORK_KERNEL, PLUMB_GPU_WORK_COPY, PLUMB_GPU_WORK_SET };
struct plumb_gpu_device; /* opaque */
struct plumb_gpu_device *
plumb_gpu_device_new(struct plumb_thread *thread, const struct plumb_record_device *description,
                     const char *name);
plumb_id plumb_gpu_device_id(const struct plumb_gpu_device *device);
plumb_id plumb_gpu_stream(struct plumb_thread *thread, struct plumb_gpu_device *device,
                          uint32_t context, uint64_t stream);
/* Adds one piece of work: to the device's totals, and as below. */
void plumb_gpu_work(struct plumb_gpu_device *device, enum plumb_gpu_work_kind kind, plumb_id node,
                    plumb_id stream, uint64_t start, uint64_t end, uint64_t bytes);
/* The two halves of that: pieces of work in the totals, NS and BYTES in all; in the busy union,
 * series and ring. */
void plumb_gpu_count(struct plumb_gpu_device *device, enum plumb_gpu_work_kind kind, uint64_t times,
                     uint64_t ns, uint64_t bytes);
void plumb_gpu_busy(struct plumb_gpu_device *device, enum plumb_gpu_work_kind kind, plumb_id node,
                    plumb_id stream, uint64_t start, uint64_t end);
/* Merges busy time that was added since the last call. Call it when all threads' records up to a
 * moment were added: after each flush. */
void plumb_gpu_merge(struct plumb_gpu_device *device);

#endif
