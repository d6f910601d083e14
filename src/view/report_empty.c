/* SPDX-License-Identifier: Apache-2.0 */
/* Why a report has no rows: nothing of the kind was recorded, or none of it has the metric. */
#include <stdio.h>

#include "view/report.h"

/* What rows are, and what records them. */
static const struct kind {
	enum plumb_group_by by;
	uint32_t frames[2]; /* kinds of frames; 0: none */
	const char *absent;
} kinds[] = {
	{ PLUMB_BY_OPERATOR, { PLUMB_FRAME_OPERATOR }, "no operators were recorded" },
	{ PLUMB_BY_KERNEL, { PLUMB_FRAME_KERNEL }, "no GPU kernels were recorded" },
	{ PLUMB_BY_MODULE, { PLUMB_FRAME_MODULE }, "no modules were recorded" },
	{ PLUMB_BY_RANGE,
	  { PLUMB_FRAME_RANGE },
	  "no ranges were recorded; mark them with plumb.span, record_function or NVTX" },
	{ PLUMB_BY_PYTHON, { PLUMB_FRAME_PYTHON }, "no Python frames were recorded" },
	{ PLUMB_BY_LINE, { PLUMB_FRAME_PYTHON }, "no Python frames were recorded" },
	{ PLUMB_BY_NATIVE,
	  { PLUMB_FRAME_NATIVE, PLUMB_FRAME_INLINE },
	  "no native frames were recorded; record with --mode full" },
	{ PLUMB_BY_LIBRARY,
	  { PLUMB_FRAME_NATIVE },
	  "no native frames were recorded; record with --mode full" },
	{ PLUMB_BY_COLLECTIVE,
	  { PLUMB_FRAME_COLLECTIVE },
	  "no operations of NCCL or RCCL were recorded" },
};

static bool
has_frames(const struct plumb_profile *p, const struct kind *kind)
{
	for (uint32_t i = 0; i < p->frames_count; i++)
		for (int k = 0; k < 2; k++)
			if (kind->frames[k] && p->frames[i].kind == kind->frames[k])
				return true;
	return false;
}

static bool
has_ranks(const struct plumb_profile *p)
{
	for (uint32_t i = 0; i < p->processes_count; i++)
		if (p->processes[i].rank != PLUMB_UNKNOWN)
			return true;
	return false;
}

const char *
plumb_report_why_empty(const struct plumb_report *report, char text[PLUMB_REPORT_WHY_SIZE])
{
	const struct plumb_profile *p = report->profile;

	if (report->is_memory && !p->memory_count)
		return "no allocations were recorded; record them with plumb run --memory";
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].by == report->by && !has_frames(p, &kinds[i]))
			return kinds[i].absent;
	if (report->by == PLUMB_BY_SHAPE && !p->variants_count)
		return "no shapes were recorded; record them with plumb run --shapes";
	if (report->by == PLUMB_BY_RANK && !has_ranks(p))
		return "no ranks were recorded";
	if (plumb_profile_is_lean(p) && (!report->total.count || report->by == PLUMB_BY_OPERATOR) &&
	    (report->metric == PLUMB_METRIC_OP_TIME || report->metric == PLUMB_METRIC_OP_CALLS ||
	     report->metric == PLUMB_METRIC_OP_DURATION))
		return "the time and calls of operators on the host are unknown with --mode lean; "
		       "record with --mode light";
	if (report->filtered && report->total.count)
		return "nothing that has the metric matches the filter";
	if (report->total.count)
		snprintf(text, PLUMB_REPORT_WHY_SIZE,
		         "no %s has a %s; try another --metric or --by",
		         plumb_group_by_names[report->by],
		         plumb_profile_metric(p, report->metric).name);
	else
		snprintf(text, PLUMB_REPORT_WHY_SIZE, "no %s was recorded; try another --metric",
		         plumb_profile_metric(p, report->metric).name);
	return text;
}
