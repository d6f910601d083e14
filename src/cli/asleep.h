/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a thread of another process is asleep, and whether it stayed so between two readings.
 */
#ifndef PLUMB_CLI_ASLEEP_H
#define PLUMB_CLI_ASLEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* It waits for something, disk included; not where it is ready to run, stopped or gone. */
bool plumb_asleep(uint32_t pid, uint32_t tid);

/* `runs` grows each time the kernel sets the thread going. A thread that is asleep now, and was
 * asleep when the number was the same, has not run in between. `awake` is how long it computed or
 * was ready to, ns; of a thread that runs it may lag behind by a tick of the kernel. */
struct plumb_asleep_counts {
	uint64_t runs, awake;
	bool timed; /* `awake` is known */
};
/* False: the thread is gone. */
bool plumb_asleep_count(uint32_t pid, uint32_t tid, struct plumb_asleep_counts *counts);

/* What these read, of files' texts: /proc/PID/task/TID/stat, …/schedstat and …/status. False: it is
 * not told there. */
bool plumb_asleep_in_stat(const char *text);
bool plumb_asleep_in_schedstat(const char *text, struct plumb_asleep_counts *counts);
bool plumb_asleep_in_status(const char *text, struct plumb_asleep_counts *counts);

#endif
