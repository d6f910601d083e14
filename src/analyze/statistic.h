/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics of numbers, each here once; and one number for the calls of a layer, a kernel or a
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

/* Of COUNT VALUES, which they sort; NAN for none. The median of an even number is the middle of
 * both. */
double plumb_median(double *values, size_t count);
/* The least that PERCENT of them do not exceed (the nearest rank). */
double plumb_percentile(double *values, size_t count, unsigned percent);
/* The median of their distances from MIDDLE, as the standard deviation that it would be of a normal
 * distribution. VALUES are the distances afterwards. */
double plumb_median_deviation(double *values, size_t count, double middle);

/* The quantile of 97.5 % of Student's distribution (half an interval of 95 %, in standard errors)
 * for FREEDOM degrees of freedom, 1 at least, which may be a fraction. */
double plumb_student(double freedom);

/* A number as one that is whole, and fits: rounded down. */
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
 * The mean of COUNT VALUES without the outermost fifth of each side, rounded to 3 decimals: the
 * plain mean of less than 3, the median of 3; of n ≥ 4 those from ⌊n/5⌋ to before min(n−1,
 * n−⌊n/5⌋), in ascending order. Sorts VALUES. NAN for none.
 */
double plumb_trimmed_mean(double *values, size_t count);

#endif
