/* SPDX-License-Identifier: Apache-2.0 */
/* What /proc/PID/stat and /proc/PID/task/TID/stat say of a process or thread. No heap. */
#ifndef PLUMB_BASE_PROCSTAT_H
#define PLUMB_BASE_PROCSTAT_H

#include <stdbool.h>
#include <stdint.h>

struct plumb_procstat {
	char name[64];   /* as far as it fits */
	char state;      /* 'R', 'S', 'D', …; 'Z' and 'X': dead */
	uint64_t parent; /* its parent's pid; 0: none */
	uint64_t start;  /* ticks since the machine's start; 0: unknown */
};

/* Reads PATH. False: there is no such process or thread, or it cannot be read. */
bool plumb_procstat_read(const char *path, struct plumb_procstat *stat);

#endif
