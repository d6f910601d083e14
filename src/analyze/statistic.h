/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One number for the calls of a layer, a kernel or a model: XSP's trimmed mean, or what --stat chooses.
 *
 *	struct plumb_statistic statistic; // zeroed: XSP's
 *	if (!plumb_statistic_read("p95", &statistic)) …
 *	double us = plumb_statistic_of(&statistic, values, count);
 */
#ifndef PLUMB_ANALYZE_STATISTIC_H
#define PLUMB_ANALYZE_STATISTIC_H

#include <stdbool.h>
#include <stddef.h>

struct plumb_statistic {
	enum {
		PLUMB_STATISTIC_IS_XSP,     /* plumb_trimmed_mean */
		PLUMB_STATISTIC_IS_TRIMMED, /* the mean without PERCENT of either side; 0: the mean */
		PLUMB_STATISTIC_IS_PERCENTILE, /* the nearest rank; of 50 the middle of both */
	} kind;
	unsigned percent;
};

/* "trimmed" (XSP's), "trimmed:10", "mean", "median", "min", "max", "p95"; false: none of these. */
bool plumb_statistic_read(const char *text, struct plumb_statistic *statistic);

/* Sorts VALUES. NAN for none. */
double plumb_statistic_of(const struct plumb_statistic *statistic, double *values, size_t count);

/*
 * The mean of COUNT VALUES without the outermost fifth of each side, rounded to 3 decimals: the plain mean of
 * less than 3, the median of 3; of n ≥ 4 those from ⌊n/5⌋ to before min(n−1, n−⌊n/5⌋), in ascending
 * order. Sorts VALUES. NAN for none.
 */
double plumb_trimmed_mean(double *values, size_t count);

#endif
