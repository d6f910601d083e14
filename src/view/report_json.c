/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A report for programs. The keys are fixed by the design: add some, never change or remove one.
 */
#include <math.h>
#include <stdlib.h>

#include "view/findings.h"
#include "view/ledger.h"
#include "view/overview.h"
#include "view/part.h"
#include "view/render.h"
#include "view/report_from.h"
#include "view/report_private.h"
#include "view/windows.h"

/* Nested children end at this level: Python's json gives up not far beyond. */
#define NEST_MOST 200

/* Every metric that the profile has (by slot; see model/metric.h), of every row (of the grouping)
 * or node (of the tree). A metric that was not observed has NULL. */
struct values {
	uint32_t slots;
	struct plumb_stat **exclusive, **inclusive;
};

static void
free_values(struct values *values)
{
	for (uint32_t m = 0; m < values->slots; m++) {
		free(values->exclusive[m]);
		free(values->inclusive[m]);
	}
	free(values->exclusive);
	free(values->inclusive);
}

/* Room for so many SLOTS, all NULL. */
static bool
make_values(struct values *values, uint32_t slots)
{
	values->exclusive = calloc(slots, sizeof *values->exclusive);
	values->inclusive = calloc(slots, sizeof *values->inclusive);
	values->slots = values->exclusive && values->inclusive ? slots : 0;
	return values->slots;
}

/* Takes METRIC of the contexts that the tree shows. */
static int
load_nodes(const struct plumb_report *report, uint32_t metric, struct plumb_stat *exclusive,
           struct plumb_stat *inclusive)
{
	uint32_t contexts = report->profile->contexts_count;
	struct plumb_stat *own = calloc(contexts + 1u, sizeof *own);
	struct plumb_stat *whole = calloc(contexts + 1u, sizeof *whole);
	bool call = plumb_metric_aggregation(metric) == PLUMB_CALL;

	if (own && whole)
		plumb_inclusive(report->profile, metric, PLUMB_NONE, own, whole);
	for (uint32_t i = 0; own && whole && i < report->tree.count; i++) {
		exclusive[i] = own[report->tree.nodes[i].context];
		if (!call)
			inclusive[i] = whole[report->tree.nodes[i].context];
	}
	free(own);
	free(whole);
	return own && whole ? 0 : -1;
}

/* The metric in slot M, for all rows or nodes. */
static int
load_metric(const struct plumb_report *report, struct values *values, uint32_t m)
{
	size_t count =
		report->is_tree ? report->tree.count : plumb_grouping_count(report->grouping);
	uint32_t metric = plumb_metric_at(m);

	values->exclusive[m] = calloc(count + 1, sizeof **values->exclusive);
	values->inclusive[m] = calloc(count + 1, sizeof **values->inclusive);
	if (!values->exclusive[m] || !values->inclusive[m])
		return -1;
	if (report->is_tree)
		return load_nodes(report, metric, values->exclusive[m], values->inclusive[m]);
	return plumb_grouping_values(report->grouping, metric, values->exclusive[m],
	                             values->inclusive[m], NULL);
}

static int
load_values(const struct plumb_report *report, struct values *values)
{
	const struct plumb_profile *p = report->profile;
	uint32_t slots = plumb_metric_slots(p);
	bool *present = calloc(slots, sizeof *present);
	int result = present && make_values(values, slots) ? 0 : -1;

	/* Bottom-up, a value is what came through one caller. The tree has this for one metric
	 * only. */
	for (uint32_t i = 0; !result && !report->inverted && i < p->values_count; i++)
		present[plumb_metric_slot(p->values[i].metric)] = true;
	for (uint32_t m = 0; !result && m < slots; m++)
		if (present[m])
			result = load_metric(report, values, m);
	free(present);
	return result < 0 ? -1 : 0;
}

/* ---- pieces ---- */

/* SPREAD: minimum and maximum are known. */
static void
write_stat(struct plumb_json *json, int64_t sum, const struct plumb_stat *stat, bool spread)
{
	plumb_json_object(json);
	plumb_json_key_quantity(json, "sum", sum);
	plumb_json_key(json, "count");
	plumb_json_unsigned(json, stat->count);
	plumb_json_key_quantity(json, "min", spread ? stat->min : PLUMB_UNKNOWN);
	plumb_json_key_quantity(json, "max", spread ? stat->max : PLUMB_UNKNOWN);
	plumb_json_key_number(json, "mean", stat->mean);
	plumb_json_key_number(json, "std", spread ? plumb_stat_deviation(stat) : NAN);
	plumb_json_end(json);
}

void
plumb_report_json_stat(struct plumb_json *json, uint32_t metric, const struct plumb_stat *stat)
{
	bool sum = plumb_metric_aggregation(metric) == PLUMB_SUM;

	write_stat(json, sum ? stat->sum : PLUMB_UNKNOWN, stat, true);
}

static void
write_metric(struct plumb_json *json, const struct plumb_report *report, uint32_t metric,
             const struct plumb_stat *stat)
{
	if (!stat || !stat->count)
		return;
	plumb_json_key(json, plumb_profile_metric(report->profile, metric).name);
	plumb_report_json_stat(json, metric, stat);
}

/* The same for METRIC in a row. For time, it counts how often the row itself was entered. */
static void
write_row_metric(struct plumb_json *json, const struct plumb_report *report, uint32_t metric,
                 bool inclusive, const struct plumb_stat *stat, const struct plumb_calls *calls)
{
	if (metric == PLUMB_METRIC_OP_DURATION && calls->known)
		stat = report->by != PLUMB_BY_KERNEL ? &calls->each : NULL; /* no kernel's time */
	if (metric != PLUMB_METRIC_OP_TIME || report->by == PLUMB_BY_SHAPE) {
		write_metric(json, report, metric, stat);
	} else if (stat && stat->count) {
		struct plumb_stat own = *stat;
		bool spread = plumb_calls_apply(calls, inclusive, &own);

		plumb_json_key(json, plumb_metrics[metric].name);
		write_stat(json, stat->sum, &own, spread);
	}
}

static void
write_row_stats(struct plumb_json *json, const struct plumb_report *report,
                const struct values *values, uint32_t row)
{
	for (int inclusive = 0; inclusive < 2; inclusive++) {
		struct plumb_stat *const *stats = inclusive ? values->inclusive : values->exclusive;

		plumb_json_key_object(json, inclusive ? "inclusive" : "exclusive");
		for (uint32_t m = 0; m < plumb_metric_slots(report->profile); m++)
			if (stats[m] &&
			    (!inclusive || plumb_metric_at(m) != PLUMB_METRIC_OP_DURATION))
				write_row_metric(json, report, plumb_metric_at(m), inclusive,
				                 &stats[m][row], &report->row_calls[row]);
		plumb_json_end(json);
	}
}

static void
write_calls(struct plumb_json *json, const struct plumb_calls *calls)
{
	plumb_json_key_quantity(json, "calls", plumb_report_calls_count(calls));
	plumb_json_key_quantity(json, "mean_ns", plumb_report_calls_mean(calls));
}

/* {metric: stat} of one row or node, STATS by slot; only metrics that were observed there. */
static void
write_stats(struct plumb_json *json, const struct plumb_report *report, const char *key,
            struct plumb_stat *const *stats, uint32_t index)
{
	plumb_json_key_object(json, key);
	for (uint32_t m = 0; m < plumb_metric_slots(report->profile); m++)
		write_metric(json, report, plumb_metric_at(m), stats[m] ? &stats[m][index] : NULL);
	plumb_json_end(json);
}

/* The same for the report's metric only. */
static void
write_only(struct plumb_json *json, const struct plumb_report *report, const char *key,
           const struct plumb_stat *stat)
{
	plumb_json_key_object(json, key);
	write_metric(json, report, report->metric, stat);
	plumb_json_end(json);
}

static void
write_share(struct plumb_json *json, const struct plumb_report *report,
            const struct plumb_stat *part)
{
	plumb_json_key_number(json, "share", plumb_report_share(report, part));
}

static void
write_place(struct plumb_json *json, const struct plumb_report_place *place)
{
	plumb_json_key_text(json, "name", place->name);
	plumb_json_key_text(json, "kind", place->kind);
	plumb_json_key_text(json, "file", place->file);
	plumb_json_key_line(json, "line", place->line);
	plumb_json_key_text(json, "user_file", place->user_file);
	plumb_json_key_line(json, "user_line", place->user_line);
	if (place->user_function)
		plumb_json_key_text(json, "user_function", place->user_function);
	plumb_json_key_text(json, "source_file", place->source_file);
	plumb_json_key_line(json, "source_line", place->source_line);
	plumb_json_key_text(json, "library", place->library);
}

/* ---- rows ---- */

static void
write_rows(struct plumb_json *json, const struct plumb_report *report, const struct values *values)
{
	plumb_json_array(json);
	for (uint32_t i = 0; i < report->order_count; i++) {
		uint32_t row = report->order[i];
		struct plumb_report_place place;

		plumb_report_row_place(report, row, &place);
		plumb_json_object(json);
		write_place(json, &place);
		plumb_part_json(json, report->profile, report->division, place.part);
		if (plumb_report_is_where(report->by)) {
			plumb_json_key_quantity(json, "pid", place.pid);
			plumb_json_key_quantity(json, "rank", place.rank);
		}
		if (place.shapes || report->by == PLUMB_BY_MODULE)
			plumb_json_key_text(json, "shapes", place.shapes);
		plumb_report_from_row_json(report, json, row);
		write_calls(json, &report->row_calls[row]);
		write_row_stats(json, report, values, row);
		write_share(json, report, &report->exclusive[row]);
		plumb_report_json_each(json, report, row, &report->exclusive[row],
		                       &report->inclusive[row]);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

/* ---- trees ---- */

static void
write_context_identity(struct plumb_json *json, const struct plumb_profile *p, uint32_t context)
{
	const struct plumb_context *c = &p->contexts[context];

	plumb_json_key_quantity(json, "id", context);
	plumb_json_key_quantity(json, "parent",
	                        c->parent == PLUMB_NONE ? PLUMB_UNKNOWN : (int64_t)c->parent);
	plumb_json_key_bool(json, "backward", c->flags & PLUMB_CONTEXT_BACKWARD);
	plumb_json_key_bool(json, "accumulation", c->flags & PLUMB_CONTEXT_ACCUMULATION);
	plumb_json_key_bool(json, "truncated", c->flags & PLUMB_CONTEXT_TRUNCATED);
}

/* Writes the members of a node without its children. The object stays open. */
static void
write_node(struct plumb_json *json, const struct plumb_report *report, const struct values *values,
           uint32_t index)
{
	const struct plumb_tree_node *node = &report->tree.nodes[index];
	struct plumb_report_place place;

	plumb_report_node_place(report, node, &place);
	plumb_json_object(json);
	if (!report->inverted)
		write_context_identity(json, report->profile, node->context);
	write_place(json, &place);
	if (node->row == PLUMB_NONE)
		plumb_report_from_context_json(report, json, node->context);
	if (report->inverted) {
		write_only(json, report, "exclusive", &node->exclusive);
		write_only(json, report, "inclusive", &node->exclusive);
	} else {
		write_calls(json, &report->calls[node->context]);
		write_stats(json, report, "exclusive", values->exclusive, index);
		write_stats(json, report, "inclusive", values->inclusive, index);
	}
	write_share(json, report, &node->inclusive);
	plumb_report_json_each(json, report, PLUMB_NONE, &node->exclusive, &node->inclusive);
}

static void
write_nested(struct plumb_json *json, const struct plumb_report *report,
             const struct values *values)
{
	const struct plumb_tree *tree = &report->tree;
	uint32_t open = 0; /* objects that are open */

	plumb_json_array(json);
	for (uint32_t i = 0; i < tree->count;) {
		uint32_t depth = tree->nodes[i].depth, next = i + 1;

		for (; open > depth; open--) {
			plumb_json_end(json); /* its children */
			plumb_json_end(json); /* itself */
		}
		write_node(json, report, values, i);
		if (depth + 1 == NEST_MOST) {
			while (next < tree->count && tree->nodes[next].depth > depth)
				next++;
			plumb_json_key_quantity(json, "children_omitted", next - i - 1);
		}
		plumb_json_key_array(json, "children");
		open++;
		i = next;
	}
	for (; open; open--) {
		plumb_json_end(json);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_root(struct plumb_json *json, const struct plumb_report *report)
{
	const struct plumb_profile *p = report->profile;
	uint32_t slots = plumb_metric_slots(p);
	struct plumb_stat *own = calloc(slots, sizeof *own), *whole = calloc(slots, sizeof *whole);
	struct plumb_report_place place;
	struct values values = { 0 };

	if (own && whole && make_values(&values, slots)) {
		for (uint32_t i = 0; i < p->values_count; i++) {
			const struct plumb_value *v = &p->values[i];
			struct plumb_stat stat = {
				v->sum, v->count, v->min, v->max, v->mean, v->m2
			};
			uint32_t m = plumb_metric_slot(v->metric);

			plumb_stat_merge(&whole[m], &stat);
			if (!v->context)
				plumb_stat_merge(&own[m], &stat);
		}
		for (uint32_t m = 0; m < slots; m++) {
			bool call = plumb_metric_aggregation(plumb_metric_at(m)) == PLUMB_CALL;
			values.exclusive[m] = &own[m];
			values.inclusive[m] = call ? NULL : &whole[m];
		}
		plumb_report_context_place(report, 0, &place);
		plumb_json_object(json);
		write_context_identity(json, p, 0);
		write_place(json, &place);
		write_calls(json, &report->calls[0]);
		write_stats(json, report, "exclusive", values.exclusive, 0);
		write_stats(json, report, "inclusive", values.inclusive, 0);
		write_share(json, report, &whole[plumb_metric_slot(report->metric)]);
		plumb_json_end(json);
	}
	free(values.exclusive);
	free(values.inclusive);
	free(own);
	free(whole);
}

/* The same contexts one after the other. The root comes first, so that every parent is there. */
static void
write_flat(struct plumb_json *json, const struct plumb_report *report, const struct values *values)
{
	plumb_json_array(json);
	if (report->tree.count)
		write_root(json, report);
	for (uint32_t i = 0; i < report->tree.count; i++) {
		write_node(json, report, values, i);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

/* ---- the whole ---- */

static void
write_total(struct plumb_json *json, const char *key, const struct plumb_report *report,
            const struct plumb_stat *stat)
{
	plumb_json_key(json, key);
	if (stat->count)
		plumb_report_json_stat(json, report->metric, stat);
	else
		plumb_json_null(json);
}

static void
write_report(struct plumb_json *json, const struct plumb_report *report,
             const struct values *values)
{
	const char *estimate = plumb_profile_metric_estimate(report->profile, report->metric);

	plumb_overview_json_run(report->profile, json);
	plumb_window_json(report->profile, json);
	plumb_windows_json(report->profile, json);
	plumb_json_key_text(json, "metric",
	                    plumb_profile_metric(report->profile, report->metric).name);
	plumb_json_key_text(json, "unit",
	                    plumb_profile_metric(report->profile, report->metric).unit);
	plumb_json_key_text(json, "by", plumb_group_by_names[report->by]);
	if (report->why[0])
		plumb_json_key_text(json, "by_reason", report->why);
	if (estimate)
		plumb_json_key_text(json, "estimate", estimate);
	plumb_json_key_bool(json, "inverted", report->inverted);
	write_total(json, "total", report, &report->total);
	write_total(json, "outside", report, &report->outside);
	plumb_overview_json_parts(report->profile, json);
	plumb_json_key(json, "rows_available");
	if (report->available || !(report->tree.count || report->order_count))
		plumb_json_unsigned(json, report->available);
	else
		plumb_json_null(json);
	plumb_json_key(json, "rows");
	if (report->is_memory)
		plumb_report_memory_json_rows(report, json);
	else if (report->is_tree)
		write_nested(json, report, values);
	else
		write_rows(json, report, values);
	if (report->is_tree && !report->inverted) {
		plumb_json_key(json, "contexts");
		write_flat(json, report, values);
	}
	plumb_json_key(json, "overlap");
	plumb_report_json_overlap(report->profile, json);
	if (report->compat) {
		plumb_json_key(json, "compat");
		plumb_report_json_compat(report->profile, json);
	}
	plumb_json_key(json, "findings");
	plumb_findings_json(report->profile, 0, json);
	plumb_json_key(json, "ledger");
	plumb_ledger_json(report->profile, json);
	plumb_json_end(json);
}

int
plumb_report_json(const struct plumb_report *report, FILE *out)
{
	struct values values = { 0 };
	struct plumb_json *json = NULL;
	int result = report->is_memory ? 0 : load_values(report, &values);

	if (!result)
		json = plumb_view_json_new(out, "report");
	if (json)
		write_report(json, report, &values);
	free_values(&values);
	return plumb_json_finish(json);
}
