/* SPDX-License-Identifier: Apache-2.0 */
/* How often rows and nodes were entered, and how long each time took. */
#include <math.h>
#include <stdlib.h>

#include "view/report_private.h"

/* Shapes are known of whole calls. */
static int
take_shapes(struct plumb_report *report, uint32_t rows)
{
	struct plumb_stat *calls = calloc(rows + 1u, sizeof *calls);
	int result = -1;

	if (calls)
		result = plumb_grouping_values(report->grouping, PLUMB_METRIC_OP_CALLS, calls, NULL,
		                               NULL);
	for (uint32_t r = 0; !result && r < rows; r++) {
		report->row_calls[r].known = calls[r].count > 0;
		report->row_calls[r].count = calls[r].count;
	}
	free(calls);
	return result;
}

int
plumb_report_calls_make(struct plumb_report *report)
{
	const struct plumb_profile *p = report->profile;
	uint32_t rows = report->grouping ? plumb_grouping_count(report->grouping) : 0;

	report->row_calls = calloc(rows + 1u, sizeof *report->row_calls);
	if (!report->row_calls)
		return -1;
	if (report->is_tree) {
		report->calls = calloc(p->contexts_count + 1u, sizeof *report->calls);
		if (!report->calls)
			return -1;
		plumb_calls_of_contexts(p, report->calls);
	}
	if (!report->grouping)
		return 0;
	if (report->by != PLUMB_BY_LIBRARY) /* its rows have frames of several kinds */
		plumb_calls_of_rows(report->grouping, p, report->row_calls);
	return report->by != PLUMB_BY_SHAPE ? 0 : take_shapes(report, rows);
}

const struct plumb_calls *
plumb_report_node_calls(const struct plumb_report *report, const struct plumb_tree_node *node)
{
	return node->row != PLUMB_NONE ? &report->row_calls[node->row]
	                               : &report->calls[node->context];
}

int64_t
plumb_report_calls_count(const struct plumb_calls *calls)
{
	if (!calls->known)
		return PLUMB_UNKNOWN;
	return calls->count < INT64_MAX ? (int64_t)calls->count : INT64_MAX;
}

int64_t
plumb_report_calls_mean(const struct plumb_calls *calls)
{
	if (!calls->known || !calls->each.count || !(fabs(calls->each.mean) < 9e18))
		return PLUMB_UNKNOWN;
	return llround(calls->each.mean);
}

bool
plumb_report_counts_entries(const struct plumb_report *report)
{
	return report->metric == PLUMB_METRIC_OP_TIME && report->by != PLUMB_BY_SHAPE;
}
