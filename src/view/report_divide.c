/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a report whose line of your code is divided, and rows that are folded. */
#include <stdlib.h>

#include "view/report_private.h"

/* Rows that are modules say themselves where they are, and a phase is in many places. */
static bool
has_parts(const struct plumb_report *report)
{
	return report->by != PLUMB_BY_MODULE && report->by != PLUMB_BY_PHASE &&
	       !plumb_report_is_where(report->by);
}

int
plumb_report_places_make(struct plumb_report *report)
{
	return plumb_grouping_user(report->grouping, report->metric,
	                           has_parts(report) ? report->division->place_of : report->user_of,
	                           report->row_place);
}

bool
plumb_report_is_divided(const struct plumb_report *report)
{
	return report->division && report->division->share > 0 && has_parts(report);
}

/* ---- folding ---- */

static void
add_calls(struct plumb_calls *sum, const struct plumb_calls *calls)
{
	sum->known |= calls->known;
	sum->count += calls->count;
	plumb_stat_merge(&sum->each, &calls->each);
	plumb_stat_merge(&sum->own, &calls->own);
}

int
plumb_report_fold(struct plumb_report *report, struct plumb_sort_item *rows, uint32_t *count)
{
	const struct plumb_profile *p = report->profile;
	uint32_t all = plumb_grouping_count(report->grouping), kept = 0;
	struct plumb_fold_item *items = calloc(all + (size_t)1, sizeof *items);
	int64_t total = plumb_stat_amount(report->metric, &report->total);
	int code = items ? 0 : -1;

	for (uint32_t i = 0; !code && i < *count; i++) {
		uint32_t row = rows[i].index;
		const struct plumb_frame *frame =
			&p->frames[plumb_grouping_rows(report->grouping)[row].frame];

		items[row] = (struct plumb_fold_item){
			plumb_text(p, frame->name), plumb_text(p, frame->file),
			plumb_stat_amount(report->metric, &report->inclusive[row])
		};
	}
	if (!code)
		code = plumb_folds_make(items, all, total, &report->folds);
	for (uint32_t i = 0; !code && i < *count; i++) {
		uint32_t row = rows[i].index, first = report->folds.first[row];

		if (first == row) {
			rows[kept++].index = row;
			continue;
		}
		plumb_stat_merge(&report->exclusive[first], &report->exclusive[row]);
		plumb_stat_merge(&report->inclusive[first], &report->inclusive[row]);
		add_calls(&report->row_calls[first], &report->row_calls[row]);
	}
	if (!code)
		*count = kept;
	free(items);
	return code;
}
