/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract for a source of counters: perf events today (perf.c); another library of counters is
 * one file with one `const struct plumb_counter_source` and a row in counters.c.
 *
 * Counters belong to a thread and only ever grow. They are read when a sample of CPU time is taken,
 * in a signal handler, and what they grew by since the last one goes to the sampled context: the
 * same path as CPU time.
 */
#ifndef PLUMB_COLLECT_METRIC_H
#define PLUMB_COLLECT_METRIC_H

#include "collect/collector.h"

#define PLUMB_COUNTERS_MAX 8u

struct plumb_counter_source {
	const char *name; /* "perf" */
	/* The metric of the counter NAME as a person writes it ("cycles"), or 0: not of this
	 * source. */
	enum plumb_metric (*find)(const char *name, size_t length);
	/*
	 * Opens counters of METRIC for the calling thread. Returns a handle ≥ 0, or a negative
	 * errno. Not in a signal handler. */
	int (*open)(enum plumb_metric metric);
	/* What the counter stands at. False: unknown. Async-signal-safe. */
	bool (*read)(int handle, uint64_t *value);
	void (*close)(int handle);
};
extern const struct plumb_counter_source plumb_counters_perf;

struct plumb_thread_counters; /* of one thread */

/* Opens what --events asks for, on the calling thread. NULL: nothing was asked, or nothing opened;
 * what could not be opened is said once, in the environment ("events.off"). */
struct plumb_thread_counters *plumb_thread_counters_open(void);
void plumb_thread_counters_close(struct plumb_thread_counters *counters);

/* Adds what the counters grew by to NODE, which is THREAD's own. Async-signal-safe. */
void plumb_thread_counters_observe(struct plumb_thread_counters *counters,
                                   struct plumb_thread *thread, plumb_id node);

#endif
