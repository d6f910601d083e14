/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hardware counters of devices over time (plumb run --counters-series): means of the run, and of
 * stretches of it such as iterations.
 *
 *	struct plumb_counter_series series;
 *	for (at = 0; plumb_counter_series_next(profile, &at, &series);)
 *		if (series.device == track->device)
 *			mean = plumb_counter_series_mean(&series, start_ns, end_ns);
 */
#ifndef PLUMB_ANALYZE_COUNTER_SERIES_H
#define PLUMB_ANALYZE_COUNTER_SERIES_H

#include "model/counter_series.h"

struct plumb_counter_summary {
	double mean; /* by the time that samples cover */
	double min, max;
	int64_t samples, sampled_ns;
};
struct plumb_counter_summary
plumb_counter_series_summary(const struct plumb_counter_series *series);

/* Its mean from START to END; a bin that lies across either counts by its part within. NAN: that
 * is shorter than a bin, or samples cover less than half of it. */
double
plumb_counter_series_mean(const struct plumb_counter_series *series, int64_t start, int64_t end);

/* "43.0 %", "1.20 TB/s", into TEXT of PLUMB_FORMAT_SIZE bytes. */
const char *plumb_counter_series_text(char *text, const char *unit, double value);

#endif
