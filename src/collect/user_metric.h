/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics that the program itself names (plumb_metric, plumb.metric): a value is added at the
 * current context. At most PLUMB_USER_METRICS_MAX names a process; values of further ones are
 * counted.
 */
#ifndef PLUMB_COLLECT_USER_METRIC_H
#define PLUMB_COLLECT_USER_METRIC_H

#include "collect/collector.h"

#define PLUMB_USER_METRICS_MAX 64u
#define PLUMB_METRIC_SLOTS 32u /* a thread's cache of names */

/* Where a name was that the thread used, and its number; 0: none. */
struct plumb_metric_slot {
	const char *pointer;
	uint32_t number;
};

/* Adds VALUE of the metric NAME, which need not outlive the call. */
void plumb_user_metric(const char *name, int64_t value);

/* In a forked child: names are described in its parent's region, not in its own. */
void plumb_user_metrics_forked(void);

#endif
