/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb diff` shows, as a value: two profiles, or several runs of two programs, side by side.
 *
 *	struct plumb_diff_query query = { .top = 20 };
 *	struct plumb_compared compared;
 *	if (plumb_compared_make(profiles, before, count, &query, &compared, &error) < 0) …
 *	… compared.table.rows[i], if compared.shown[i] …
 *	plumb_compared_free(&compared);
 */
#ifndef PLUMB_VIEW_DIFF_H
#define PLUMB_VIEW_DIFF_H

#include <stdio.h>

#include "analyze/answer.h"
#include "analyze/diff/diff.h"
#include "view/diff_host.h"

#define PLUMB_DIFF_MEASURES 8 /* at most so many */

struct plumb_diff_query {
	uint32_t by;          /* enum plumb_diff_by or plumb_group_by; 0: operators, or kernels */
	const char *metric;   /* NULL: the first that all profiles have */
	uint32_t top;         /* rows with the greatest changes; 0: all */
	bool total;           /* sums of whole recordings, not of an iteration */
	double iterations[2]; /* how many each run of a side had; 0: find them */
	const struct plumb_gate *gates;
	uint32_t gate_count;
};

struct plumb_compared {
	struct plumb_diff *diff;
	uint32_t by; /* never 0 */
	const char *metric, *unit;
	struct plumb_diff_environment environment;
	struct plumb_diff_measure measures[PLUMB_DIFF_MEASURES]; /* those that a side knows */
	uint32_t measure_count;
	struct plumb_diff_table table;
	struct plumb_diff_host host; /* rows of the host, if GPU time explains nothing */
	unsigned char *shown;        /* by row */
	uint32_t shown_count;
	const struct plumb_gate *gates;
	struct plumb_gate_result *results; /* by gate */
	uint32_t gate_count;
	bool holds; /* all gates */
	const struct plumb_profile **profiles;
};

/* The first BEFORE of the COUNT profiles are one side, the others the other side; each side has at
 * least one. Errors: PLUMB_EUSAGE (no such metric or row of a gate, …), PLUMB_ESYSTEM. Always call
 * plumb_compared_free. */
int
plumb_compared_make(const struct plumb_profile *const *profiles, uint32_t before, uint32_t count,
                    const struct plumb_diff_query *query, struct plumb_compared *compared,
                    struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_compared_free(struct plumb_compared *compared);

/* The name of BY ("context", "iteration", "operator", …), and BY for a name; PLUMB_NONE: it is not
 * one of them. */
const char *plumb_diff_by_name(uint32_t by);
uint32_t plumb_diff_by_named(const char *name);

/* The metric by which COUNT profiles are compared if nobody says. */
const char *
plumb_diff_default_metric(const struct plumb_profile *const *profiles, uint32_t count, uint32_t by);

/* What rows are: "mean of iterations", … */
const char *plumb_diff_statistic(const struct plumb_compared *compared);

#endif
