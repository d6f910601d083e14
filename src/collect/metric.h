/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract for a source of counters. Today there is one: perf events (perf.c). To add another,
 * write a file with a `const struct plumb_counter_source` and add a row to counters.c.
 *
 * Counters belong to a thread and only grow. The signal handler that takes a sample of CPU time
 * reads them. What they grew by since the last sample goes to the sampled context, as CPU time
 * does.
 */
#ifndef PLUMB_COLLECT_METRIC_H
#define PLUMB_COLLECT_METRIC_H

#include "collect/collector.h"

#define PLUMB_COUNTERS_MAX 8u

struct plumb_counter_source {
	const char *name; /* "perf" */
	/* The metric of the counter that users call NAME ("cycles"); 0: this source has no such
	 * counter. */
	enum plumb_metric (*find)(const char *name, size_t length);
	/*
	 * Opens counters of METRIC for the calling thread. Returns a handle ≥ 0, or a negative
	 * errno. Not in a signal handler. */
	int (*open)(enum plumb_metric metric);
	/* Reads the counter. False: unknown. Async-signal-safe. */
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
