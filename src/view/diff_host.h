/* SPDX-License-Identifier: Apache-2.0 */
/*
 * If the time of an iteration changed because the GPU idles more or less, rows of GPU time explain
 * nothing. Then the rows of the host do: what its threads that give the GPU work spend more or less
 * time in.
 */
#ifndef PLUMB_VIEW_DIFF_HOST_H
#define PLUMB_VIEW_DIFF_HOST_H

#include "analyze/diff/diff.h"

#define PLUMB_DIFF_HOST_ROWS 5

struct plumb_diff_host {
	bool wanted; /* the GPU's idle time explains the change, and rows do not */
	double step_change, row_change; /* of an iteration, and of the metric of the rows; ns */
	double idle_change;             /* of all devices; NAN */
	const char *metric;             /* of the host, or NULL: none explains it */
	uint32_t by;                    /* enum plumb_group_by */
	double processes;               /* that give GPUs work: rows are of all of them */
	double explained;               /* the sum of the rows that are shown, ns */
	const struct plumb_diff_row *rows[PLUMB_DIFF_HOST_ROWS]; /* the greatest change first */
	uint32_t row_count;
	bool each; /* rows are means of iterations */
	/* private */
	struct plumb_diff *diff;
	struct plumb_diff_table table;
	struct plumb_profile *views;
	const struct plumb_profile **profiles;
	uint32_t profile_count;
};

/* MEASURES has those of DIFF; ROWS: the metric that its rows are of. PLUMB_ESYSTEM. Call
 * plumb_diff_host_free in any case. */
int plumb_diff_host_find(const struct plumb_diff *diff, const struct plumb_diff_options *options,
                         const struct plumb_diff_measure *measures, uint32_t measure_count,
                         const char *rows, struct plumb_diff_host *host,
                         struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_diff_host_free(struct plumb_diff_host *host);

#endif
