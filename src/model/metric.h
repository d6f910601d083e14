/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Metrics of a profile: those of base/words.h, and those that the program itself named, whose
 * numbers are PLUMB_METRIC_USER and up. Whatever has a metric's number asks here, not the table.
 *
 * Arrays with a place for each metric are indexed by slot: slots are numbered without a gap from 0.
 */
#ifndef PLUMB_MODEL_METRIC_H
#define PLUMB_MODEL_METRIC_H

#include "model/profile.h"

/* More than so many a profile does not hold. */
#define PLUMB_USER_METRICS_MOST 4096u

/* What a metric is. `name` is NULL where the profile has no metric of that number. */
struct plumb_metric_info plumb_profile_metric(const struct plumb_profile *profile, uint32_t number);

/* The number of a metric by its name; 0 if no metric has this name. */
uint32_t plumb_profile_metric_find(const struct plumb_profile *profile, const char *name);

/* Why values of a metric at single contexts are estimates, though their sum is exact. NULL: they
 * are none. */
const char *plumb_profile_metric_estimate(const struct plumb_profile *profile, uint32_t number);

/* How values of a metric combine; the program's own add up. */
static inline enum plumb_aggregation
plumb_metric_aggregation(uint32_t number)
{
	return number < PLUMB_METRIC_COUNT ? plumb_metrics[number].aggregation : PLUMB_SUM;
}

static inline uint32_t
plumb_metric_slots(const struct plumb_profile *profile)
{
	return PLUMB_METRIC_COUNT + profile->user_metrics_count;
}

/* Of a number that the profile has. */
static inline uint32_t
plumb_metric_slot(uint32_t number)
{
	return number < PLUMB_METRIC_USER ? number
	                                  : number - PLUMB_METRIC_USER + PLUMB_METRIC_COUNT;
}

static inline uint32_t
plumb_metric_at(uint32_t slot)
{
	return slot < PLUMB_METRIC_COUNT ? slot : slot - PLUMB_METRIC_COUNT + PLUMB_METRIC_USER;
}

#endif
