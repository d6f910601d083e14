/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a report as one typed table: CSV and binary columns come from it. */
#include <math.h>

#include "view/report_private.h"

/* The columns of one value of a row: exclusive_… or inclusive_… */
static void
add_stat_columns(struct plumb_answer *answer, bool inclusive, const char *unit)
{
	static const char *const names[2][6] = {
		{ "exclusive_sum", "exclusive_count", "exclusive_min", "exclusive_max",
		  "exclusive_mean", "exclusive_std" },
		{ "inclusive_sum", "inclusive_count", "inclusive_min", "inclusive_max",
		  "inclusive_mean", "inclusive_std" },
	};

	for (int i = 0; i < 6; i++)
		plumb_answer_column(answer, names[inclusive][i], i == 1 ? "count" : unit,
		                    PLUMB_SOURCE_IS_MEASURED);
}

void
plumb_report_columns(const struct plumb_report *report, struct plumb_answer *answer)
{
	static const char *const tree[] = { "id", "parent", "depth", "backward" };
	static const char *const place[] = { "name", "kind",      "file",
		                             "line", "user_file", "user_line" };
	static const char *const each[] = { "exclusive_per_iteration", "inclusive_per_iteration",
		                            "std_per_iteration" };
	const char *unit = plumb_profile_metric(report->profile, report->metric).unit;
	const enum plumb_answer_source measured = PLUMB_SOURCE_IS_MEASURED;

	if (report->is_memory) {
		plumb_report_memory_columns(answer);
		return;
	}
	for (int i = 0; i < 4 && report->is_tree; i++)
		plumb_answer_column(answer, tree[i], NULL, measured);
	for (int i = 0; i < 6; i++)
		plumb_answer_column(answer, place[i], NULL, measured);
	if (report->by == PLUMB_BY_SHAPE)
		plumb_answer_column(answer, "shapes", NULL, measured);
	plumb_answer_column(answer, "metric", NULL, measured);
	plumb_answer_column(answer, "unit", NULL, measured);
	add_stat_columns(answer, false, unit);
	add_stat_columns(answer, true, unit);
	plumb_answer_column_short(answer, "share", NULL, PLUMB_SOURCE_IS_DERIVED, 6);
	plumb_answer_column(answer, "source_file", NULL, measured);
	plumb_answer_column(answer, "source_line", NULL, measured);
	plumb_answer_column(answer, "library", NULL, measured);
	plumb_answer_column(answer, "calls", "count", measured);
	plumb_answer_column(answer, "mean_ns", "ns", measured);
	for (int i = 0; i < 3 && report->iterations; i++)
		plumb_answer_column(answer, each[i], unit, PLUMB_SOURCE_IS_DERIVED);
}

/* ---- cells ---- */

static void
add_line(struct plumb_answer *answer, uint32_t line)
{
	plumb_answer_integer(answer, line ? (int64_t)line : PLUMB_UNKNOWN);
}

static void
add_place(struct plumb_answer *answer, const struct plumb_report_place *place)
{
	if (place->name == place->buffer)
		plumb_answer_copy(answer, place->name);
	else
		plumb_answer_text(answer, place->name);
	plumb_answer_text(answer, place->kind);
	plumb_answer_text(answer, place->file);
	add_line(answer, place->line);
	plumb_answer_text(answer, place->user_file);
	add_line(answer, place->user_line);
}

/* CALLS, if the report counts entries of rows: STAT is then of these. */
static void
add_stat(struct plumb_answer *answer, const struct plumb_report *report,
         const struct plumb_stat *stat, const struct plumb_calls *calls, bool inclusive)
{
	bool sum = plumb_metric_aggregation(report->metric) == PLUMB_SUM && stat->count;
	struct plumb_stat own = *stat;
	bool spread = stat->count > 0;

	if (calls && spread)
		spread = plumb_calls_apply(calls, inclusive, &own);
	plumb_answer_integer(answer, sum ? stat->sum : PLUMB_UNKNOWN);
	plumb_answer_integer(answer, own.count < INT64_MAX ? (int64_t)own.count : INT64_MAX);
	plumb_answer_integer(answer, spread ? own.min : PLUMB_UNKNOWN);
	plumb_answer_integer(answer, spread ? own.max : PLUMB_UNKNOWN);
	plumb_answer_number(answer, stat->count ? own.mean : NAN);
	plumb_answer_number(answer, spread && !isnan(own.m2) ? plumb_stat_deviation(&own) : NAN);
}

/* What comes after the place. SHARED is what the share is of; CALLS may be NULL: not known. */
static void
add_values(struct plumb_answer *answer, const struct plumb_report *report,
           const struct plumb_report_place *place, const struct plumb_stat *exclusive,
           const struct plumb_stat *inclusive, const struct plumb_calls *calls)
{
	static const struct plumb_calls unknown;
	struct plumb_metric_info metric = plumb_profile_metric(report->profile, report->metric);
	const struct plumb_calls *counted =
		plumb_report_counts_entries(report) && !report->is_tree ? calls : NULL;

	if (report->by == PLUMB_BY_SHAPE)
		plumb_answer_text(answer, place->shapes);
	plumb_answer_text(answer, metric.name);
	plumb_answer_text(answer, metric.unit);
	add_stat(answer, report, exclusive, counted, false);
	add_stat(answer, report, inclusive, counted, true);
	plumb_answer_number(answer,
	                    plumb_report_share(report, report->is_tree ? inclusive : exclusive));
	plumb_answer_text(answer, place->source_file);
	add_line(answer, place->source_line);
	plumb_answer_text(answer, place->library);
	plumb_answer_integer(answer, plumb_report_calls_count(calls ? calls : &unknown));
	plumb_answer_integer(answer, plumb_report_calls_mean(calls ? calls : &unknown));
}

/* What one iteration has; ROW may be PLUMB_NONE. */
static void
add_each(struct plumb_answer *answer, const struct plumb_report *report,
         const struct plumb_stat *exclusive, const struct plumb_stat *inclusive, uint32_t row)
{
	bool sum = plumb_metric_aggregation(report->metric) == PLUMB_SUM;
	double iterations = (double)report->iterations;

	if (!report->iterations)
		return;
	plumb_answer_number(answer,
	                    sum && exclusive->count ? (double)exclusive->sum / iterations : NAN);
	plumb_answer_number(answer,
	                    sum && inclusive->count ? (double)inclusive->sum / iterations : NAN);
	plumb_answer_number(answer, report->spreads && row != PLUMB_NONE
	                                    ? report->spreads[row].deviation
	                                    : NAN);
}

static void
add_node(const struct plumb_report *report, uint32_t index, struct plumb_answer *answer)
{
	const struct plumb_tree_node *node = &report->tree.nodes[index];
	const struct plumb_context *c = &report->profile->contexts[node->context];
	uint32_t parent = report->inverted ? node->parent : c->parent;
	struct plumb_report_place place;

	plumb_answer_integer(answer, report->inverted ? index : node->context);
	plumb_answer_integer(answer, parent == PLUMB_NONE ? PLUMB_UNKNOWN : (int64_t)parent);
	plumb_answer_integer(answer, node->depth);
	plumb_answer_integer(answer, (c->flags & PLUMB_CONTEXT_BACKWARD) != 0);
	plumb_report_node_place(report, node, &place);
	add_place(answer, &place);
	add_values(answer, report, &place, &node->exclusive, &node->inclusive,
	           report->inverted ? NULL : &report->calls[node->context]);
	add_each(answer, report, &node->exclusive, &node->inclusive, PLUMB_NONE);
}

void
plumb_report_cells(const struct plumb_report *report, uint32_t index, struct plumb_answer *answer)
{
	struct plumb_report_place place;

	if (report->is_tree) {
		add_node(report, index, answer);
		return;
	}
	uint32_t row = report->order[index];
	if (report->is_memory) {
		plumb_report_memory_cells(report, &report->memory.items[row], answer);
		return;
	}
	plumb_report_row_place(report, row, &place);
	add_place(answer, &place);
	add_values(answer, report, &place, &report->exclusive[row], &report->inclusive[row],
	           &report->row_calls[row]);
	add_each(answer, report, &report->exclusive[row], &report->inclusive[row], row);
}

uint32_t
plumb_report_count(const struct plumb_report *report)
{
	return report->is_tree ? report->tree.count : report->order_count;
}

int
plumb_report_answer(const struct plumb_report *report, struct plumb_answer *answer,
                    struct plumb_error *error)
{
	*answer =
		(struct plumb_answer){ .id = "report", .title = plumb_group_by_names[report->by] };
	plumb_report_columns(report, answer);
	for (uint32_t i = 0; i < plumb_report_count(report); i++)
		plumb_report_cells(report, i, answer);
	return plumb_answer_end(answer, error);
}
