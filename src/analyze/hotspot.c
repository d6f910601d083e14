/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hotspots: kernels, operators and lines of the user's code that take much of the GPU time; first
 * those with a cause that has a cure (hotspot_kernels.c, hotspot_pageable.c). A profile without GPU
 * time is judged by the operators' time on the CPU, or by CPU samples where it has no operators.
 *
 * What a kernel's finding explains is left out when operators are looked at, and what both explain
 * when lines are: an operator with one hot kernel is one finding, an operator of many lukewarm ones
 * another.
 */
#include "analyze/hotspot.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/advice.h"
#include "analyze/communication.h"
#include "analyze/group.h"
#include "base/format.h"
#include "model/metric.h"

#define LISTED 5       /* lines, operators and kernels in the evidence */
#define STANDS_OUT 0.4 /* of a line's time: an operator that is worth a name */

static const struct plumb_threshold thresholds[] = {
	{ "hotspot.share", 0.10, "share",
	  "minimum share of the GPU time for a kernel, operator or line; without GPU time, of the "
	  "operators' time on the CPU, or of the CPU time" },
	{ "hotspot.layout_share", 0.02, "share",
	  "minimum share of the GPU time for all layout conversions together" },
	{ "hotspot.copy_share", 0.10, "share",
	  "minimum share of the GPU time for the copying and converting kernels of a line" },
	{ "hotspot.pageable_share", 0.01, "share",
	  "minimum share of the devices' time from first to last work that pageable copies of a "
	  "line cost" },
	{ "hotspot.pageable_bytes", 65536, "byte",
	  "minimum mean size of a pageable copy; smaller ones wait for other reasons" },
	{ 0 },
};

struct level {
	enum plumb_group_by by;
	const char *cause, *what;
};

struct hotspots {
	struct plumb_study *study;
	uint32_t metric;
	const struct plumb_stat *own; /* by context */
	int64_t total;
	unsigned char *explained; /* by context */
	double share;
};

/* The context of the row that CONTEXT's own work belongs to: the nearest of its kind outwards. */
static uint32_t
row_context(const struct plumb_study *study, const struct plumb_grouping *grouping,
            enum plumb_group_by by, uint32_t context)
{
	const struct plumb_profile *p = study->profile;
	uint32_t row = plumb_grouping_owner(grouping, context);

	while (context && plumb_grouping_owner(grouping, p->contexts[context].parent) == row) {
		const struct plumb_frame *frame = plumb_context_frame(p, context);

		if ((by == PLUMB_BY_KERNEL && frame->kind == PLUMB_FRAME_KERNEL) ||
		    (by == PLUMB_BY_OPERATOR && frame->kind == PLUMB_FRAME_OPERATOR) ||
		    (by == PLUMB_BY_USER_LINE && study->user[p->contexts[context].frame]))
			break;
		context = p->contexts[context].parent;
	}
	return context;
}

/* What the metric's time is of. */
static void
write_whole(const struct hotspots *h, char *text, size_t size)
{
	if (h->metric == PLUMB_METRIC_GPU_TIME)
		snprintf(text, size, "the GPU time");
	else if (h->metric == PLUMB_METRIC_OP_TIME)
		snprintf(text, size, "the operators' time on the CPU");
	else if (h->metric == PLUMB_METRIC_CPU_TIME)
		snprintf(text, size, "the CPU time");
	else
		snprintf(text, size, "all %s",
		         plumb_profile_metric(h->study->profile, h->metric).name);
}

static void
write_title(const struct hotspots *h, const struct level *level, const struct plumb_group_row *row,
            uint32_t user, double part, struct plumb_draft *draft)
{
	char share[PLUMB_FORMAT_SIZE], name[420], line[420], whole[120];

	plumb_format_share(share, part, 1);
	write_whole(h, whole, sizeof whole);
	plumb_study_under(h->study, ", mostly under ", user, line, sizeof line);
	if (level->by == PLUMB_BY_USER_LINE)
		plumb_draft_title(draft, "%s takes %s of %s",
		                  plumb_study_line(h->study, row->frame, name, sizeof name), share,
		                  whole);
	else
		plumb_draft_title(draft, "%s %s takes %s of %s%s", level->what,
		                  plumb_study_short(h->study, row->frame, name, sizeof name), share,
		                  whole, line);
}

/* ---- advice ---- */

struct named {
	char name[420];
	uint32_t frame;
	int64_t ns;
};

static int
by_text(const void *x, const void *y)
{
	const struct named *a = x, *b = y;

	return strcmp(a->name, b->name);
}

/* What takes most by the names that are shown, and how much of all: "reduce_kernel" is one,
 * whatever its template arguments are. A frame of PLUMB_NONE: nothing has a name. False: memory is
 * out. */
static bool
find_top(const struct hotspots *h, const struct plumb_tally *tally, struct named *top,
         double *share)
{
	struct named *items;
	int64_t whole = tally->ns[tally->frames];
	uint32_t count = 0, n = 0;

	*top = (struct named){ .frame = PLUMB_NONE };
	*share = 0;
	for (uint32_t f = 0; f < tally->frames; f++)
		count += tally->count[f] != 0;
	items = calloc((size_t)count + 1, sizeof *items);
	for (uint32_t f = 0; items && f < tally->frames; f++)
		if (tally->count[f]) {
			plumb_study_name(h->study, f, items[n].name, sizeof items[n].name);
			items[n].frame = f;
			items[n++].ns = tally->ns[f];
			whole = plumb_add(whole, tally->ns[f]);
		}
	if (n)
		qsort(items, n, sizeof *items, by_text);
	for (uint32_t i = 0; i < n; i++) {
		if (i && !by_text(&items[i - 1], &items[i]))
			items[i].ns = plumb_add(items[i].ns, items[i - 1].ns);
		if (items[i].ns > top->ns || top->frame == PLUMB_NONE)
			*top = items[i];
	}
	if (whole > 0)
		*share = (double)top->ns / (double)whole;
	free(items);
	return items;
}

/* Of a line: its parts are what to change, unless one of them is most of it. */
static void
advise_line(const struct named *op, double share, const char *advice, struct plumb_draft *draft)
{
	char part[PLUMB_FORMAT_SIZE];

	if (op->frame == PLUMB_NONE)
		plumb_draft_advice(draft,
		                   "plumb report --by context shows the parts of this line.");
	else if (share >= STANDS_OUT)
		plumb_draft_advice(draft, "%s of this line's time is %s. %s",
		                   plumb_format_share(part, share, 1), op->name, advice);
	else
		plumb_draft_advice(
			draft,
			"The time is spread over several operators; the largest part, %s of this "
			"line's time, is %s. plumb report --by context shows all parts of "
			"this line.",
			plumb_format_share(part, share, 1), op->name);
}

static bool
write_advice(const struct hotspots *h, const struct level *level, const struct plumb_group_row *row,
             const struct plumb_tally *operators, const struct plumb_tally *kernels,
             struct plumb_draft *draft)
{
	const struct plumb_profile *p = h->study->profile;
	bool gpu = h->metric == PLUMB_METRIC_GPU_TIME;
	const struct plumb_framework_names *framework = plumb_framework_of_operators(p);
	const char *name = plumb_text(p, p->frames[row->frame].name), *advice;
	struct named op, kernel;
	double op_share, kernel_share;

	if (!find_top(h, operators, &op, &op_share) ||
	    !find_top(h, kernels, &kernel, &kernel_share))
		return false;
	const char *op_name =
		op.frame == PLUMB_NONE ? NULL : plumb_text(p, p->frames[op.frame].name);
	const char *kernel_name = !gpu || kernel.frame == PLUMB_NONE
	                                  ? NULL
	                                  : plumb_text(p, p->frames[kernel.frame].name);
	bool line = level->by == PLUMB_BY_USER_LINE;
	if (gpu &&
	    plumb_advice_kind(level->by == PLUMB_BY_OPERATOR ? name : op_name,
	                      level->by == PLUMB_BY_KERNEL ? name : kernel_name) ==
	            PLUMB_WORK_COMMUNICATION &&
	    (!line || kernel_share >= STANDS_OUT)) {
		return plumb_communication_advice(
			h->study, level->by == PLUMB_BY_KERNEL ? name : kernel_name, draft);
	}
	if (line) {
		advice = plumb_advice_for(op_name, kernel_name, gpu, framework);
		advise_line(&op, op_share, advice, draft);
	} else if (level->by == PLUMB_BY_KERNEL) {
		plumb_draft_advice(draft, "%s", plumb_advice_for(op_name, name, gpu, framework));
	} else {
		plumb_draft_advice(draft, "%s",
		                   plumb_advice_for(name, kernel_name, gpu, framework));
	}
	return true;
}

static uint32_t
tally_row(const struct hotspots *h, const struct plumb_grouping *grouping, uint32_t row,
          struct plumb_tally *lines, struct plumb_tally *operators, struct plumb_tally *kernels)
{
	const struct plumb_study *s = h->study;
	const struct plumb_profile *p = s->profile;
	uint32_t best = PLUMB_NONE;

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		const struct plumb_stat *own = &h->own[c];
		uint32_t op = s->operator_of[c];

		if (!own->count || plumb_grouping_owner(grouping, c) != row)
			continue;
		plumb_tally_add(lines, s->place_of[c], own->sum, own->count);
		plumb_tally_add(operators, op == PLUMB_NONE ? PLUMB_NONE : p->contexts[op].frame,
		                own->sum, own->count);
		plumb_tally_add(kernels, p->contexts[c].frame, own->sum, own->count);
		if (best == PLUMB_NONE || own->sum > h->own[best].sum)
			best = c;
	}
	return best;
}

static void
tell_row(const struct hotspots *h, const struct plumb_grouping *grouping, uint32_t row,
         struct plumb_draft *draft)
{
	unsigned char *about = plumb_draft_about(h->study, draft);

	for (uint32_t c = 0; about && c < h->study->profile->contexts_count; c++)
		about[c] = h->own[c].count && plumb_grouping_owner(grouping, c) == row;
}

static int
report_row(const struct hotspots *h, const struct level *level,
           const struct plumb_grouping *grouping, uint32_t r, const struct plumb_stat *stat)
{
	const struct plumb_group_row *row = &plumb_grouping_rows(grouping)[r];
	bool gpu = h->metric == PLUMB_METRIC_GPU_TIME;
	struct plumb_tally lines = { 0 }, operators = { 0 }, kernels = { 0 };
	double part = (double)stat->sum / (double)h->total;
	struct plumb_draft draft;
	uint32_t user, context;
	char text[420];
	int code = PLUMB_ESYSTEM;

	if (plumb_tally_new(h->study, &lines) < 0 || plumb_tally_new(h->study, &operators) < 0 ||
	    plumb_tally_new(h->study, &kernels) < 0)
		goto out;
	context = tally_row(h, grouping, r, &lines, &operators, &kernels);
	user = plumb_tally_top(&lines);
	plumb_draft_begin(&draft, level->cause,
	                  row_context(h->study, grouping, level->by, context));
	if (level->by == PLUMB_BY_USER_LINE)
		plumb_draft_key(&draft, "%s",
		                plumb_study_key(h->study, row->frame, text, sizeof text));
	else
		plumb_draft_key(
			&draft, "%s",
			plumb_text(h->study->profile, h->study->profile->frames[row->frame].name));
	tell_row(h, grouping, r, &draft);
	write_title(h, level, row, user, part, &draft);
	if (!write_advice(h, level, row, &operators, &kernels, &draft))
		draft.failed = true;
	plumb_json_key_text(draft.evidence, "metric",
	                    plumb_profile_metric(h->study->profile, h->metric).name);
	plumb_json_key_text(draft.evidence, "name",
	                    plumb_frame_label(h->study->profile, row->frame));
	plumb_json_key_quantity(draft.evidence, "time_ns", stat->sum);
	plumb_json_key(draft.evidence, "share");
	plumb_json_number(draft.evidence, part);
	plumb_json_key(draft.evidence, "count");
	plumb_json_unsigned(draft.evidence, stat->count);
	plumb_study_line_json(h->study, draft.evidence, user);
	plumb_tally_json(h->study, &lines, draft.evidence, "lines", LISTED);
	if (level->by != PLUMB_BY_OPERATOR)
		plumb_tally_json(h->study, &operators, draft.evidence, "operators", LISTED);
	if (gpu && level->by != PLUMB_BY_KERNEL)
		plumb_tally_json(h->study, &kernels, draft.evidence, "kernels", LISTED);
	draft.confidence = 1; /* it is what was measured */
	code = plumb_draft_end(h->study, &draft);
out:
	plumb_tally_free(&lines);
	plumb_tally_free(&operators);
	plumb_tally_free(&kernels);
	return code;
}

/* The hot row with the most that is not DONE, or PLUMB_NONE. */
static uint32_t
find_hottest(const int64_t *left, const struct plumb_stat *all, const unsigned char *done,
             uint32_t count)
{
	uint32_t best = PLUMB_NONE;

	for (uint32_t r = 0; r < count; r++)
		if (left[r] && !done[r] && (best == PLUMB_NONE || all[r].sum > all[best].sum))
			best = r;
	return best;
}

/* The rows of one grouping that are hot by what nothing before has explained. */
static int
find_rows(const struct hotspots *h, const struct level *level)
{
	const struct plumb_profile *p = h->study->profile;
	struct plumb_grouping *g = level->by == PLUMB_BY_USER_LINE
	                                   ? plumb_grouping_places(p, h->study->place_of)
	                                   : plumb_grouping_new(p, level->by, h->study->user);
	uint32_t count = g ? plumb_grouping_count(g) : 0;
	struct plumb_stat *all = calloc(count + 1u, sizeof *all);
	int64_t *left = calloc(count + 1u, sizeof *left);
	unsigned char *done = calloc(count + 1u, 1);
	double least = h->share * (double)h->total;
	int code = g && all && left && done ? 0 : PLUMB_ESYSTEM;

	for (uint32_t c = 0; !code && c < p->contexts_count; c++) {
		uint32_t r = plumb_grouping_owner(g, c);

		if (!h->own[c].count || r == PLUMB_NONE)
			continue;
		plumb_stat_merge(&all[r], &h->own[c]);
		if (!h->explained[c])
			left[r] = plumb_add(left[r], h->own[c].sum);
	}
	for (uint32_t r = 0; !code && r < count; r++)
		if (left[r] <= 0 || (double)left[r] < least)
			left[r] = 0;
	for (uint32_t r; !code && (r = find_hottest(left, all, done, count)) != PLUMB_NONE;) {
		done[r] = 1;
		code = report_row(h, level, g, r, &all[r]);
	}
	for (uint32_t c = 0; !code && c < p->contexts_count; c++) {
		uint32_t r = plumb_grouping_owner(g, c);

		if (r != PLUMB_NONE && left[r])
			h->explained[c] = 1;
	}
	plumb_grouping_free(g);
	free(all);
	free(left);
	free(done);
	return code;
}

static int
find_all(struct hotspots *h)
{
	static const struct level levels[] = {
		{ PLUMB_BY_KERNEL, "kernel", "kernel" },
		{ PLUMB_BY_OPERATOR, "operator", "operator" },
		{ PLUMB_BY_USER_LINE, "line", "line" },
	};
	int code = 0;

	for (size_t i = 0; !code && i < sizeof levels / sizeof *levels; i++)
		if (levels[i].by != PLUMB_BY_KERNEL || h->metric == PLUMB_METRIC_GPU_TIME)
			code = find_rows(h, &levels[i]);
	return code;
}

static int
find_hotspots(struct plumb_study *study)
{
	const struct plumb_profile *p = study->profile;
	struct hotspots h = { .study = study,
		              .metric = plumb_metric_default(p),
		              .own = study->kernels,
		              .total = study->gpu_ns,
		              .share = plumb_study_threshold(study, "hotspot.share") };
	struct plumb_stat *host = NULL;
	int code = 0;

	h.explained = calloc(p->contexts_count + 1u, 1);
	/* Shares of what is no time, such as another tool's events, say nothing about where time
	 * goes. */
	if (strcmp(plumb_profile_metric(p, h.metric).unit, "ns") != 0)
		h.total = 0;
	else if (h.metric != PLUMB_METRIC_GPU_TIME) {
		h.own = host = calloc(p->contexts_count + 1u, sizeof *host);
		if (host)
			plumb_study_load(p, h.metric, host);
		h.total = 0;
		for (uint32_t c = 0; host && c < p->contexts_count; c++)
			h.total = plumb_add(h.total, host[c].sum);
		/* Operators that are a small part of the run are no hotspot, whatever their
		 * shares. */
		if (p->run.wall_ns > 0 && (double)h.total < h.share * (double)p->run.wall_ns)
			h.total = 0;
	}
	if (!h.explained || !h.own)
		code = PLUMB_ESYSTEM;
	if (!code)
		code = plumb_hotspot_pageable(study);
	if (!code)
		code = plumb_hotspot_layout(study, h.explained);
	if (!code)
		code = plumb_hotspot_conversions(study, h.explained);
	if (!code && h.total > 0)
		code = find_all(&h);
	free(h.explained);
	free(host);
	return code;
}

const struct plumb_analysis plumb_analysis_hotspot = {
	.name = "hotspot",
	.summary = "kernels, operators and lines that take much of the time, layout conversions, "
		   "kernels that only copy, and copies of pageable memory",
	.thresholds = thresholds,
	.run = find_hotspots,
};
