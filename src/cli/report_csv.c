/* SPDX-License-Identifier: Apache-2.0 */
/* A report as CSV (RFC 4180, but lines end with a line feed): one row a line, unknown is empty. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/csv.h"
#include "cli/report.h"

void
plumb_report_csv_text(FILE *out, const char *value)
{
	plumb_csv_put(out, value);
	fputc(',', out);
}

void
plumb_report_csv_line(FILE *out, uint32_t value)
{
	if (value)
		fprintf(out, "%" PRIu32, value);
	fputc(',', out);
}

static void
place(FILE *out, const struct plumb_report_place *p)
{
	plumb_report_csv_text(out, p->name);
	plumb_report_csv_text(out, p->kind);
	plumb_report_csv_text(out, p->file);
	plumb_report_csv_line(out, p->line);
	plumb_report_csv_text(out, p->user_file);
	plumb_report_csv_line(out, p->user_line);
}

/* CALLS, if the report counts entries of rows: S is then of these. */
static void
stat(FILE *out, const struct plumb_report *report, const struct plumb_stat *s,
     const struct plumb_calls *calls, bool inclusive)
{
	bool sum = plumb_metric_aggregation(report->metric) == PLUMB_SUM;
	bool spread = true;
	struct plumb_stat own = *s;

	if (!s->count) {
		fputs(",0,,,,,", out);
		return;
	}
	if (calls)
		spread = plumb_calls_apply(calls, inclusive, &own);
	if (sum)
		fprintf(out, "%" PRId64, s->sum);
	fprintf(out, ",%" PRIu64 ",", own.count);
	if (spread)
		fprintf(out, "%" PRId64 ",%" PRId64 ",", own.min, own.max);
	else
		fputs(",,", out);
	fprintf(out, "%.17g,", own.mean);
	if (spread && !isnan(own.m2))
		fprintf(out, "%.17g", plumb_stat_deviation(&own));
	fputc(',', out);
}

/* Of a number that is a quantity; an unknown one is empty. */
static void
quantity(FILE *out, int64_t value)
{
	fputc(',', out);
	if (value != PLUMB_UNKNOWN)
		fprintf(out, "%" PRId64, value);
}

static void
row(FILE *out, const struct plumb_report *report, const struct plumb_report_place *p,
    const struct plumb_stat *exclusive, const struct plumb_stat *inclusive,
    const struct plumb_stat *shared, const struct plumb_calls *calls)
{
	static const struct plumb_calls unknown;
	const struct plumb_calls *counted =
		plumb_report_counts_entries(report) && !report->is_tree ? calls : NULL;
	double share = plumb_report_share(report, shared);

	place(out, p);
	if (!strcmp(report->by, "shape"))
		plumb_report_csv_text(out, p->shapes);
	plumb_report_csv_text(out, plumb_profile_metric(report->profile, report->metric).name);
	plumb_report_csv_text(out, plumb_profile_metric(report->profile, report->metric).unit);
	stat(out, report, exclusive, counted, false);
	stat(out, report, inclusive, counted, true);
	if (isfinite(share))
		fprintf(out, "%.6g", share);
	fputc(',', out);
	plumb_report_csv_text(out, p->source_file);
	plumb_report_csv_line(out, p->source_line);
	plumb_csv_put(out, p->library);
	if (!calls)
		calls = &unknown;
	quantity(out, plumb_report_calls_count(calls));
	quantity(out, plumb_report_calls_mean(calls));
	fputc('\n', out);
}

static void
context_columns(FILE *out, const struct plumb_report *report, uint32_t index)
{
	const struct plumb_tree_node *node = &report->tree.nodes[index];
	const struct plumb_context *c = &report->profile->contexts[node->context];

	if (report->inverted) {
		fprintf(out, "%" PRIu32 ",", index);
		if (node->parent != PLUMB_NONE)
			fprintf(out, "%" PRIu32, node->parent);
	} else {
		fprintf(out, "%" PRIu32 ",%" PRIu32, node->context, c->parent);
	}
	fprintf(out, ",%" PRIu32 ",%d,", node->depth, (c->flags & PLUMB_CONTEXT_BACKWARD) != 0);
}

int
plumb_report_csv(const struct plumb_report *report, FILE *out)
{
	static const char *const parts[] = { "exclusive", "inclusive" };
	struct plumb_report_place p;

	if (report->is_memory)
		return plumb_report_memory_csv(report, out);
	if (report->is_tree)
		fputs("id,parent,depth,backward,", out);
	fputs("name,kind,file,line,user_file,user_line,", out);
	fputs(strcmp(report->by, "shape") ? "metric,unit," : "shapes,metric,unit,", out);
	for (int i = 0; i < 2; i++)
		fprintf(out, "%s_sum,%s_count,%s_min,%s_max,%s_mean,%s_std,", parts[i], parts[i],
		        parts[i], parts[i], parts[i], parts[i]);
	fputs("share,source_file,source_line,library,calls,mean_ns\n", out);
	for (uint32_t i = 0; i < report->tree.count; i++) {
		const struct plumb_tree_node *node = &report->tree.nodes[i];

		context_columns(out, report, i);
		plumb_report_node_place(report, node, &p);
		row(out, report, &p, &node->exclusive, &node->inclusive, &node->inclusive,
		    report->inverted ? NULL : &report->calls[node->context]);
	}
	for (uint32_t i = 0; i < report->order_count; i++) {
		uint32_t r = report->order[i];

		plumb_report_row_place(report, r, &p);
		row(out, report, &p, &report->exclusive[r], &report->inclusive[r],
		    &report->exclusive[r], &report->row_calls[r]);
	}
	return ferror(out) ? -1 : 0;
}
