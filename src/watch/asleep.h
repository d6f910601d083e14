/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a thread of another process is asleep, and whether it stayed so between two readings.
 */
#ifndef PLUMB_WATCH_ASLEEP_H
#define PLUMB_WATCH_ASLEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether it waits for something, which may be the disk. False if it is ready to run, stopped or
 * gone. */
bool plumb_asleep(uint32_t pid, uint32_t tid);

/* `runs` grows each time the kernel sets the thread going. If a thread is asleep now, and was
 * asleep when `runs` was the same, it did not run in between. `awake` is how long it computed or
 * was ready to compute, in ns. For a running thread it may lag behind by a tick of the kernel. */
struct plumb_asleep_counts {
	uint64_t runs, awake;
	bool timed; /* `awake` is known */
};
/* False: the thread is gone. */
bool plumb_asleep_count(uint32_t pid, uint32_t tid, struct plumb_asleep_counts *counts);

/* These read the texts of /proc/PID/task/TID/stat, …/schedstat and …/status. False: the text does
 * not say. */
bool plumb_asleep_in_stat(const char *text);
bool plumb_asleep_in_schedstat(const char *text, struct plumb_asleep_counts *counts);
bool plumb_asleep_in_status(const char *text, struct plumb_asleep_counts *counts);

#endif
