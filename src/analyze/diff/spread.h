/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How sure a number is: an estimate with its standard error, and the change from one estimate to
 * another with its interval of 95 %.
 *
 * Samples are in the order of time. Neighbours that are alike (a clock that drifts, a noisy minute)
 * count as fewer: the error is of n (1 - r) / (1 + r) samples, r being how much one is like the
 * next.
 */
#ifndef PLUMB_ANALYZE_DIFF_SPREAD_H
#define PLUMB_ANALYZE_DIFF_SPREAD_H

#include <stdint.h>

/* Where a spread comes from; of the two sides of a change the one that knows less. */
enum plumb_spread_basis {
	PLUMB_SPREAD_NONE,
	PLUMB_SPREAD_SERIES,     /* the bins of the activity series */
	PLUMB_SPREAD_CALLS,      /* single calls */
	PLUMB_SPREAD_ITERATIONS, /* iterations */
	PLUMB_SPREAD_RUNS,       /* several runs of a side */
};
extern const char *const plumb_spread_names[]; /* NULL for none */

struct plumb_estimate {
	double value;   /* NAN: unknown */
	double error;   /* standard error of the value; NAN: unknown */
	double freedom; /* degrees of freedom of the error */
	uint32_t basis; /* enum plumb_spread_basis */
};

/* What is known of nothing. */
struct plumb_estimate plumb_estimate_unknown(void);

/* The median of COUNT samples, with an error from their median deviation; no error under three. 0,
 * or PLUMB_ESYSTEM. */
int plumb_estimate_median(const double *samples, uint32_t count, struct plumb_estimate *estimate);
/* Likewise their mean, with an error from their standard deviation. */
struct plumb_estimate plumb_estimate_mean(const double *samples, uint32_t count);
/* Of COUNT runs, each with its own estimate: their mean, and the error from how much they differ;
 * of one run its own. */
struct plumb_estimate plumb_estimate_runs(const struct plumb_estimate *runs, uint32_t count);

/* Unknown is NAN. */
struct plumb_change {
	double before, after;
	double change;    /* after - before */
	double ratio;     /* after / before */
	double low, high; /* of (after - before) / before, 95 % */
	uint32_t basis;   /* enum plumb_spread_basis */
};
struct plumb_change
plumb_change(const struct plumb_estimate *before, const struct plumb_estimate *after);

/* Does the interval lie on one side of zero? */
int plumb_change_is_clear(const struct plumb_change *change);

#endif
