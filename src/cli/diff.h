/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways to write a comparison share. */
#ifndef PLUMB_CLI_DIFF_H
#define PLUMB_CLI_DIFF_H

#include <stdio.h>

#include "analyze/diff/diff.h"

struct plumb_diff_gate {
	struct plumb_gate gate;
	struct plumb_gate_result result;
};

struct plumb_compared {
	const struct plumb_diff *diff;
	char **paths; /* by run */
	const char *by, *metric, *unit;
	const struct plumb_diff_environment *environment;
	const struct plumb_diff_measure *measures; /* those that are known of a side */
	uint32_t measure_count;
	const struct plumb_diff_table *table;
	const unsigned char *shown; /* by row */
	uint32_t shown_count;
	const struct plumb_diff_gate *gates;
	uint32_t gate_count;
	bool holds; /* all gates */
};

/* What rows are: "mean of iterations", … */
const char *plumb_diff_statistic(const struct plumb_compared *compared);

/* Negative: it could not be written, or memory was out. */
int plumb_diff_json(const struct plumb_compared *compared, FILE *out);
int plumb_diff_csv(const struct plumb_compared *compared, FILE *out);
int plumb_diff_text(const struct plumb_compared *compared, FILE *out, int width);
/* A line for each gate. */
void plumb_diff_gates(const struct plumb_compared *compared, FILE *out);

#endif
