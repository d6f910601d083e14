/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All statistics of numbers are here. One of them stands for the calls of a layer, a kernel or a
 * model: XSP's trimmed mean, or what --stat chooses.
 *
 *	struct plumb_statistic statistic; // zeroed: XSP's
 *	if (!plumb_statistic_read("p95", &statistic)) …
 *	double us = plumb_statistic_of(&statistic, values, count);
 */
#ifndef PLUMB_ANALYZE_STATISTIC_H
#define PLUMB_ANALYZE_STATISTIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The median of COUNT VALUES, which it sorts; NAN for none. With an even count it is the mean of
 * the middle two. */
double plumb_median(double *values, size_t count);
/* The smallest value that PERCENT of the VALUES do not exceed (nearest rank). Sorts VALUES; NAN for
 * none. */
double plumb_percentile(double *values, size_t count, unsigned percent);
/* The standard deviation of a normal distribution with the same median distance from MIDDLE as
 * VALUES. VALUES become these distances. */
double plumb_median_deviation(double *values, size_t count, double middle);

/* The 97.5 % quantile of Student's distribution: half of a 95 % interval, in standard errors.
 * FREEDOM, the degrees of freedom, is at least 1 and may be a fraction. */
double plumb_student(double freedom);

/* NUMBER rounded down to a whole one that fits. */
int64_t plumb_whole(double number);

struct plumb_statistic {
	enum {
		PLUMB_STATISTIC_IS_XSP,        /* plumb_trimmed_mean */
		PLUMB_STATISTIC_IS_TRIMMED,    /* without PERCENT of each side; 0: mean */
		PLUMB_STATISTIC_IS_PERCENTILE, /* the nearest rank; of 50 the middle of both */
	} kind;
	unsigned percent;
};

/* "trimmed" (XSP's), "trimmed:10", "mean", "median", "min", "max", "p95"; false: none of these. */
bool plumb_statistic_read(const char *text, struct plumb_statistic *statistic);

/* Sorts VALUES. NAN for none. */
double plumb_statistic_of(const struct plumb_statistic *statistic, double *values, size_t count);

/*
 * The mean of COUNT VALUES without the outermost fifth on each side, rounded to 3 decimals. For
 * less than 3 values it is the plain mean, for 3 the median. For n ≥ 4 it uses, in ascending order,
 * the values from ⌊n/5⌋ to before min(n−1, n−⌊n/5⌋). Sorts VALUES. NAN for none.
 */
double plumb_trimmed_mean(double *values, size_t count);

#endif
