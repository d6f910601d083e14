/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the latency analysis share. Private to latency*.c. */
#ifndef PLUMB_ANALYZE_LATENCY_H
#define PLUMB_ANALYZE_LATENCY_H

#include "analyze/units.h"
#include "model/framework/framework.h"

enum {
	PLUMB_IN_PROGRAM,
	PLUMB_IN_LOADER, /* under a framework's loader, in the process that trains */
	PLUMB_IN_WORKER, /* in one of its worker processes */
};

struct latency {
	struct plumb_study *study;
	const struct plumb_framework_names *framework; /* whose loader it is; NULL: there is none */
	unsigned char *place;                          /* by context: PLUMB_IN_* */
	int64_t *host;    /* by context, exclusive: CPU time, or operators' time that repeats */
	int64_t *waiting; /* by context, exclusive: time off the CPU; 0 where nothing samples it */
	bool sampled;     /* host is cpu.time */
	bool idles;       /* the devices idle enough to be worth a finding */
	bool loading;     /* a finding says that loading dominates */
	int64_t idle_ns;  /* or PLUMB_UNKNOWN */
	int64_t cores;    /* or PLUMB_UNKNOWN */
	uint32_t found;   /* findings */
};

/* Where the main threads of processes that use a GPU were for most of the loop. */
struct plumb_latency_looks {
	uint32_t line;  /* your line; PLUMB_NONE: no line stands out, or nobody looked */
	uint64_t at;    /* looks that found them there, … */
	uint64_t count; /* … of so many */
	int64_t ns;     /* the time that those stand for */
	bool launches;  /* the line's function gives the GPU most of its work */
};
/* PLUMB_ESYSTEM: no memory. */
int plumb_latency_looks_find(const struct latency *latency, struct plumb_latency_looks *looks);

/* Cores and the devices' idle share into the evidence. */
void plumb_latency_evidence(const struct latency *latency, struct plumb_json *json);
/* NS, or the idle time where that is less. */
int64_t plumb_latency_bound(const struct latency *latency, int64_t ns);

int plumb_latency_workers(struct latency *latency);
/* What filled the intervals between iterations, where the devices idle and what was found does not
 * account for it. */
int plumb_latency_intervals(struct latency *latency);
int plumb_latency_loading(struct latency *latency);

#endif
