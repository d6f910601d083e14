/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics that the program itself names (plumb_metric, plumb.metric). A call adds a value at the
 * current context. A process has at most PLUMB_USER_METRICS_MAX names; the ledger counts the values
 * of further names.
 */
#ifndef PLUMB_COLLECT_USER_METRIC_H
#define PLUMB_COLLECT_USER_METRIC_H

#include "collect/collector.h"

#define PLUMB_USER_METRICS_MAX 64u
#define PLUMB_METRIC_SLOTS 32u /* a thread's cache of names */

/* The address of a name that the thread used, and its number; 0: none. */
struct plumb_metric_slot {
	const char *pointer;
	uint32_t number;
};

/* Adds VALUE of the metric NAME, which need not outlive the call. */
void plumb_user_metric(const char *name, int64_t value);

/* The same at NODE on TRACK, inside a callback: a counter that the collector reads. UNIT: NULL if
 * it is not known. False: there is no room for it. */
bool plumb_user_metric_at(struct plumb_thread *thread, plumb_id node, plumb_id track,
                          const char *name, const char *unit, int64_t value);

/* For a forked child: its parent's region describes the names, but its own does not yet. */
void plumb_user_metrics_forked(void);

#endif
