/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the Chrome export share: chrome.c has spans and the file, and chrome_counters.c
 * has what is drawn as curves. */
#ifndef PLUMB_EXPORT_CHROME_PRIVATE_H
#define PLUMB_EXPORT_CHROME_PRIVATE_H

#include <stdint.h>
#include <stdio.h>

#include "base/json.h"
#include "export/groups.h"
#include "export/timeline.h"

struct chrome {
	const struct plumb_profile *profile;
	struct plumb_json *json;
	FILE *out;
	struct plumb_timeline timeline;
	int64_t base;       /* ns: where times begin */
	int64_t *tids;      /* by track */
	uint32_t *drawn;    /* by value: spans of its context and track */
	uint32_t *variants; /* of kernels, by context and track */
	uint32_t variants_count;
	struct plumb_export_groups groups;
	const char *steps; /* numbers of the profiler's steps that are still to be written */
	int64_t step;
	uint32_t steps_track;
};

/* Begins an event of PHASE, an object that the caller ends. */
void plumb_chrome_begin(struct chrome *c, const char *phase);
/* NS as microseconds. */
void plumb_chrome_time(struct chrome *c, const char *key, int64_t ns);
/* The number of a device in a process, and of what a track is in, for viewers. */
int64_t plumb_chrome_gpu(const struct chrome *c, uint32_t process, uint32_t device);
int64_t plumb_chrome_pid(const struct chrome *c, uint32_t track);

/* Memory over time, and hardware counters over time. */
void plumb_chrome_counters(struct chrome *c);

#endif
