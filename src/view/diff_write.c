/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as JSON, and its rows as one table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "base/json.h"
#include "view/render.h"
#include "view/view.h"
#include "view/windows.h"

const char *
plumb_diff_statistic(const struct plumb_compared *c)
{
	if (c->by == PLUMB_DIFF_ITERATION)
		return "iteration";
	if (c->table.each)
		return "mean of iterations";
	return plumb_diff_is_normal(c->diff) ? "sum of an iteration" : "sum";
}

/* The keys of a change, into an object that is open. */
static void
write_change(struct plumb_json *json, const struct plumb_change *c)
{
	plumb_json_key_number(json, "before", c->before);
	plumb_json_key_number(json, "after", c->after);
	plumb_json_key_number(json, "change", c->change);
	plumb_json_key_number(json, "ratio", c->ratio);
	plumb_json_key_number(json, "low", c->low);
	plumb_json_key_number(json, "high", c->high);
	plumb_json_key_text(json, "spread", plumb_spread_names[c->basis]);
}

static void
write_environment(struct plumb_json *json, const struct plumb_diff_environment *environment)
{
	plumb_json_key_array(json, "environment");
	for (uint32_t i = 0; i < environment->count; i++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "key", environment->facts[i].key);
		plumb_json_key_text(json, "before", environment->facts[i].before);
		plumb_json_key_text(json, "after", environment->facts[i].after);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_runs(struct plumb_json *json, const struct plumb_compared *c, const char *const *names,
           bool after)
{
	uint32_t count, before;
	const struct plumb_diff_run *runs = plumb_diff_runs(c->diff, &count, &before);

	plumb_json_key_array(json, after ? "after" : "before");
	for (uint32_t r = after ? before : 0; r < (after ? count : before); r++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "file", names[r]);
		plumb_window_json(c->profiles[r], json);
		plumb_json_key_number(json, "count", runs[r].iterations);
		plumb_json_key_quantity(json, "measured", runs[r].measured);
		plumb_json_key_quantity(json, "left_out", runs[r].left_out);
		plumb_json_key_bool(json, "newest", runs[r].newest);
		plumb_json_key_quantity(json, "level", runs[r].level);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

static void
write_iterations(struct plumb_json *json, const struct plumb_compared *c, const char *const *names)
{
	plumb_json_key_object(json, "iterations");
	plumb_json_key_text(json, "from", plumb_steps_names[plumb_diff_from(c->diff)]);
	plumb_json_key_bool(json, "alike", plumb_diff_is_alike(c->diff));
	write_runs(json, c, names, false);
	write_runs(json, c, names, true);
	plumb_json_end(json);
}

static void
write_measures(struct plumb_json *json, const struct plumb_compared *c)
{
	plumb_json_key_array(json, "measures");
	for (uint32_t i = 0; i < c->measure_count; i++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "name", c->measures[i].name);
		plumb_json_key_text(json, "unit", c->measures[i].unit);
		plumb_json_key_text(json, "statistic", c->measures[i].statistic);
		write_change(json, &c->measures[i].amount);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

/* Writes NAMES, "a, b", as an array; null if there are none. */
static void
key_names(struct plumb_json *json, const char *key, const char *names)
{
	char *copy = names ? strdup(names) : NULL, *rest = copy, *end;

	plumb_json_key(json, key);
	if (!copy) {
		plumb_json_null(json);
		return;
	}
	plumb_json_array(json);
	for (; (end = strstr(rest, ", ")); rest = end + 2) {
		*end = '\0';
		plumb_json_text(json, rest);
	}
	plumb_json_text(json, rest);
	plumb_json_end(json);
	free(copy);
}

/* What tells which row it is. */
static void
write_place(struct plumb_json *json, const struct plumb_diff_row *row)
{
	plumb_json_key_text(json, "name", row->name);
	plumb_json_key_text(json, "kind", row->kind);
	plumb_json_key_text(json, "file", row->file);
	plumb_json_key_line(json, "line", row->line);
	plumb_json_key_line(json, "after_line", row->after_line);
}

static void
write_row(struct plumb_json *json, const struct plumb_compared *c, uint32_t number)
{
	const struct plumb_diff_row *row = &c->table.rows[number];
	bool context = c->by == PLUMB_DIFF_CONTEXT;

	plumb_json_object(json);
	if (context) {
		plumb_json_key_quantity(json, "id", number);
		plumb_json_key_quantity(json, "parent",
		                        row->parent == PLUMB_NONE ? INT64_MIN
		                                                  : (int64_t)row->parent);
		plumb_json_key_bool(json, "backward", row->backward);
	}
	write_place(json, row);
	write_change(json, &row->amount);
	if (context) {
		plumb_json_key_object(json, "exclusive");
		write_change(json, &row->own);
		plumb_json_end(json);
	}
	if (c->by == PLUMB_BY_OPERATOR || c->by == PLUMB_BY_KERNEL) {
		plumb_json_key_text(json, "family", row->family);
		key_names(json, "before_names", row->before_names);
		key_names(json, "after_names", row->after_names);
		key_names(json, "fused_in", row->fused_in);
		plumb_json_key_number(json, "fused_amount",
		                      row->fused_in ? row->fused_amount : NAN);
	}
	plumb_json_end(json);
}

static void
write_rows(struct plumb_json *json, const struct plumb_compared *c)
{
	plumb_json_key_array(json, "rows");
	for (uint32_t i = 0; i < c->table.count; i++)
		if (c->shown[i])
			write_row(json, c, i);
	plumb_json_end(json);
	plumb_json_key_object(json, "outside");
	write_change(json, &c->table.outside);
	plumb_json_end(json);
	plumb_json_key_array(json, "families");
	for (uint32_t i = 0; i < c->table.family_count; i++) {
		plumb_json_object(json);
		plumb_json_key_text(json, "name", c->table.families[i].name);
		write_change(json, &c->table.families[i].amount);
		plumb_json_end(json);
	}
	plumb_json_end(json);
}

/* The host's rows if they are what explains the change; else null. */
static void
write_host(struct plumb_json *json, const struct plumb_compared *c)
{
	const struct plumb_diff_host *h = &c->host;

	plumb_json_key(json, "host");
	if (!h->wanted) {
		plumb_json_null(json);
		return;
	}
	plumb_json_object(json);
	plumb_json_key_number(json, "step_change", h->step_change);
	plumb_json_key_number(json, "gpu_idle_change", h->idle_change);
	plumb_json_key_number(json, "row_change", h->row_change);
	plumb_json_key_text(json, "metric", h->metric);
	plumb_json_key_text(json, "by", h->metric ? plumb_diff_by_name(h->by) : NULL);
	plumb_json_key_text(json, "statistic",
	                    !h->metric ? NULL
	                    : h->each  ? "mean of iterations"
	                               : "sum of an iteration");
	plumb_json_key_number(json, "explained", h->metric ? h->explained : NAN);
	plumb_json_key_array(json, "rows");
	for (uint32_t i = 0; i < h->row_count; i++) {
		plumb_json_object(json);
		write_place(json, h->rows[i]);
		write_change(json, &h->rows[i]->amount);
		plumb_json_end(json);
	}
	plumb_json_end(json);
	plumb_json_end(json);
}

static void
write_gate(struct plumb_json *json, const struct plumb_compared *c, uint32_t gate)
{
	const struct plumb_gate_result *r = &c->results[gate];

	plumb_json_object(json);
	plumb_json_key_text(json, "expression", c->gates[gate].text);
	plumb_json_key_bool(json, "holds", r->holds);
	plumb_json_key(json, "certain");
	if (r->certain < 0)
		plumb_json_null(json);
	else
		plumb_json_bool(json, r->certain);
	plumb_json_key_text(json, "why", r->why);
	plumb_json_key_text(json, "unit", r->unit);
	plumb_json_key_text(json, "statistic", r->statistic);
	write_change(json, &r->amount);
	plumb_json_end(json);
}

/* All gates as one: "a and b". */
static void
write_gates(struct plumb_json *json, const struct plumb_compared *c)
{
	size_t bytes = 1;
	char *text;

	for (uint32_t i = 0; i < c->gate_count; i++)
		bytes += strlen(c->gates[i].text) + 5;
	text = calloc(bytes, 1);
	for (uint32_t i = 0; text && i < c->gate_count; i++) {
		strcat(text, i ? " and " : "");
		strcat(text, c->gates[i].text);
	}
	plumb_json_key(json, "gate");
	if (c->gate_count) {
		plumb_json_object(json);
		plumb_json_key_text(json, "expression", text);
		plumb_json_key_bool(json, "holds", c->holds);
		plumb_json_end(json);
	} else {
		plumb_json_null(json);
	}
	free(text);
	plumb_json_key_array(json, "gates");
	for (uint32_t i = 0; i < c->gate_count; i++)
		write_gate(json, c, i);
	plumb_json_end(json);
}

static int
write_json(const struct plumb_compared *c, const char *const *names, FILE *out)
{
	struct plumb_json *json = plumb_view_json_new(out, "diff");

	plumb_window_json(c->profiles[0], json);
	plumb_json_key_text(json, "by", plumb_diff_by_name(c->by));
	plumb_json_key_text(json, "metric", c->metric);
	plumb_json_key_text(json, "unit", c->unit);
	plumb_json_key_text(json, "per", plumb_diff_is_normal(c->diff) ? "iteration" : NULL);
	plumb_json_key_text(json, "statistic", plumb_diff_statistic(c));
	write_environment(json, &c->environment);
	write_iterations(json, c, names);
	write_measures(json, c);
	write_rows(json, c);
	write_host(json, c);
	write_gates(json, c);
	plumb_json_end(json);
	return plumb_json_finish(json);
}

/* ---- rows ---- */

static int
make_answer(const struct plumb_compared *c, struct plumb_answer *answer, struct plumb_error *error)
{
	static const char *const columns[] = { "name",         "kind",        "file",    "line",
		                               "after_line",   "before",      "after",   "change",
		                               "ratio",        "low",         "high",    "spread",
		                               "before_names", "after_names", "fused_in" };

	*answer = (struct plumb_answer){ .id = "diff", .title = plumb_diff_by_name(c->by) };
	for (int i = 0; i < 15; i++)
		plumb_answer_column(answer, columns[i],
		                    i < 5 || i > 10 ? NULL
		                    : i == 8        ? "ratio"
		                                    : c->unit,
		                    i < 5 ? PLUMB_SOURCE_IS_MEASURED : PLUMB_SOURCE_IS_DERIVED);
	for (uint32_t i = 0; i < c->table.count; i++) {
		const struct plumb_diff_row *row = &c->table.rows[i];

		if (!c->shown[i])
			continue;
		plumb_answer_text(answer, row->name);
		plumb_answer_text(answer, row->kind);
		plumb_answer_text(answer, row->file);
		plumb_answer_integer(answer, row->line ? (int64_t)row->line : PLUMB_UNKNOWN);
		plumb_answer_integer(answer,
		                     row->after_line ? (int64_t)row->after_line : PLUMB_UNKNOWN);
		plumb_answer_number(answer, row->amount.before);
		plumb_answer_number(answer, row->amount.after);
		plumb_answer_number(answer, row->amount.change);
		plumb_answer_number(answer, row->amount.ratio);
		plumb_answer_number(answer, row->amount.low);
		plumb_answer_number(answer, row->amount.high);
		plumb_answer_text(answer, plumb_spread_names[row->amount.basis]);
		plumb_answer_text(answer, row->before_names);
		plumb_answer_text(answer, row->after_names);
		plumb_answer_text(answer, row->fused_in);
	}
	return plumb_answer_end(answer, error);
}

int
plumb_compared_write(const struct plumb_compared *c, const char *const *names,
                     enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answer;
	int code;

	if (format == PLUMB_VIEW_JSON)
		return write_json(c, names, out) < 0 ? plumb_fail_memory(error, NULL) : 0;
	code = make_answer(c, &answer, error);
	if (!code)
		code = plumb_view_answer(&answer, format, out, error);
	plumb_answer_free(&answer);
	return code;
}

int
plumb_view_diff(const struct plumb_profile *const *profiles, const char *const *names,
                uint32_t before, uint32_t count, const struct plumb_diff_query *query,
                enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_compared compared;
	int code = plumb_compared_make(profiles, before, count, query, &compared, error);

	if (!code)
		code = plumb_compared_write(&compared, names, format, out, error);
	plumb_compared_free(&compared);
	return code;
}
