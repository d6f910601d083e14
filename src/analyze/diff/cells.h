/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of each run with what they amount to, from which table.c makes those of both sides. */
#ifndef PLUMB_ANALYZE_DIFF_CELLS_H
#define PLUMB_ANALYZE_DIFF_CELLS_H

#include "analyze/diff/rows.h"

/* A row in one run. */
struct diff_cell {
	struct plumb_estimate amount, own;
	bool there;
};

struct diff_making {
	const struct plumb_diff *diff;
	const char *metric;
	struct diff_keys keys;
	struct diff_rows *rows;  /* by run */
	struct diff_cell *cells; /* of key K in run R: cells[R * keys + K] */
	bool *known;             /* by run: it recorded the metric */
	struct plumb_estimate *outside;
	bool each; /* what iterations take is known one by one: rows are its mean */
	struct plumb_diff_table *table;
};

/* Fills the cells of run R. Errors: PLUMB_ESYSTEM. */
int diff_cells_fill(struct diff_making *m, uint32_t r);

/* What STAT of METRIC amounts to in an iteration. The error comes from the SUMS of WINDOWS
 * iterations, else from VARIANCE, that of the sum as its single calls tell it (NAN: unknown). */
struct plumb_estimate
diff_estimate(const struct diff_run *run, uint32_t metric, const struct plumb_stat *stat,
              double variance, const double *sums, uint32_t windows);
double diff_variance(const struct plumb_value *v);
/* Did RUN record METRIC? Where it did, a row without any of it has 0; else nobody knows. */
bool diff_is_recorded(const struct diff_run *run, uint32_t metric);

#endif
