/* SPDX-License-Identifier: Apache-2.0 */
#include "view/levels.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "model/metric.h"

/* ---- which rows ---- */

static bool
is_layer(const struct plumb_profile *p, uint32_t context)
{
	if (!plumb_level_begins_layer(p, context))
		return false;
	for (uint32_t k = p->contexts[context].parent; k != PLUMB_NONE; k = p->contexts[k].parent)
		if (plumb_level_begins_layer(p, k))
			return false;
	return true;
}

static bool
is_wanted(const struct plumb_profile *p, const struct plumb_level_value *v,
          enum plumb_levels_rows which)
{
	bool known = v->corrected_ns != PLUMB_UNKNOWN;
	bool host = v->metric == PLUMB_METRIC_OP_TIME;

	if (v->level == PLUMB_LEVEL_SERIALISED)
		return which == PLUMB_LEVELS_ALL;
	switch (which) {
	case PLUMB_LEVELS_TREE:
		return host && known;
	case PLUMB_LEVELS_LAYERS:
		return host && known && is_layer(p, v->context);
	case PLUMB_LEVELS_KERNELS:
		return !host && known && v->own_ns > 0;
	case PLUMB_LEVELS_ORDER:
		return known && v->passed != PLUMB_NONE;
	case PLUMB_LEVELS_UNLIKE:
		return v->own_ns == PLUMB_UNKNOWN;
	default:
		return true;
	}
}

static bool
is_ranked(enum plumb_levels_rows which)
{
	return which == PLUMB_LEVELS_LAYERS || which == PLUMB_LEVELS_KERNELS ||
	       which == PLUMB_LEVELS_ORDER || which == PLUMB_LEVELS_UNLIKE;
}

/* The greatest first. */
static uint64_t
rank_of(const struct plumb_level_value *v, enum plumb_levels_rows which)
{
	int64_t ns = which == PLUMB_LEVELS_UNLIKE ? v->own_recorded_ns : v->corrected_ns;

	return UINT64_MAX - plumb_sort_signed(ns);
}

static int
by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

uint32_t *
plumb_levels_select(const struct plumb_profile *p, enum plumb_levels_rows which, uint32_t top,
                    uint32_t *count)
{
	struct plumb_sort_item *items =
		malloc((2 * (size_t)p->level_values_count + 1) * sizeof *items);
	uint32_t *rows = malloc(((size_t)p->level_values_count + 1) * sizeof *rows);
	uint32_t found = 0;

	if (!items || !rows) {
		free(items);
		free(rows);
		return NULL;
	}
	for (uint32_t i = 0; i < p->level_values_count; i++)
		if (is_wanted(p, &p->level_values[i], which))
			items[found++] =
				(struct plumb_sort_item){ rank_of(&p->level_values[i], which), i };
	plumb_sort(items, items + found, found);
	*count = top && top < found ? top : found;
	for (uint32_t i = 0; i < *count; i++)
		rows[i] = items[i].index;
	if (!is_ranked(which))
		qsort(rows, *count, sizeof *rows, by_number);
	free(items);
	return rows;
}

/* ---- rows ---- */

static const char *
frame_label(const struct plumb_profile *p, uint32_t context)
{
	return context == PLUMB_NONE ? NULL : plumb_frame_label(p, p->contexts[context].frame);
}

static void
add_columns(struct plumb_answer *a)
{
	plumb_answer_column(a, "context", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "parent", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "kind", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "name", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "file", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "line", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "metric", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "level", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "measured", "ns", PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "corrected", "ns", PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "low", "ns", PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "high", "ns", PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "own", "ns", PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "passed", NULL, PLUMB_SOURCE_IS_DERIVED);
	plumb_answer_column(a, "passed_name", NULL, PLUMB_SOURCE_IS_DERIVED);
}

static int64_t
id_or_unknown(uint32_t id)
{
	return id == PLUMB_NONE ? PLUMB_UNKNOWN : id;
}

int
plumb_levels_answer(const struct plumb_profile *p, enum plumb_levels_rows which, uint32_t top,
                    struct plumb_answer *a, struct plumb_error *error)
{
	uint32_t count = 0;
	uint32_t *rows = plumb_levels_select(p, which, top, &count);

	*a = (struct plumb_answer){ .id = "levels", .title = "measured and corrected" };
	if (!rows)
		return plumb_fail_memory(error, "for the levels");
	add_columns(a);
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_level_value *v = &p->level_values[rows[i]];
		const struct plumb_frame *frame = plumb_context_frame(p, v->context);

		plumb_answer_integer(a, v->context);
		plumb_answer_integer(a, id_or_unknown(p->contexts[v->context].parent));
		plumb_answer_text(a, plumb_frame_kind_names[frame->kind]);
		plumb_answer_text(a, frame_label(p, v->context));
		plumb_answer_text(a, plumb_text(p, frame->file));
		plumb_answer_integer(a, frame->line ? frame->line : PLUMB_UNKNOWN);
		plumb_answer_text(a, plumb_profile_metric(p, v->metric).name);
		plumb_answer_text(a, plumb_level_name(v->level));
		plumb_answer_integer(a, v->measured_ns);
		plumb_answer_integer(a, v->corrected_ns);
		plumb_answer_integer(a, v->low_ns);
		plumb_answer_integer(a, v->high_ns);
		plumb_answer_integer(a, v->own_ns);
		plumb_answer_integer(a, id_or_unknown(v->passed));
		plumb_answer_text(a, frame_label(p, v->passed));
	}
	free(rows);
	return plumb_answer_end(a, error);
}

/* ---- JSON ---- */

static void
json_level(const struct plumb_profile *p, const struct plumb_level_row *row,
           struct plumb_json *json)
{
	static const char *const scopes[] = { NULL, "run", "step" };
	static const char *const bounds[] = { NULL, "launches", "loop", "run" };

	plumb_json_object(json);
	plumb_json_key_text(json, "level", plumb_level_name(row->level));
	plumb_json_key_quantity(json, "runs", row->runs);
	plumb_json_key_quantity(json, "kept", row->kept);
	plumb_json_key_text(json, "scope", scopes[row->scope]);
	plumb_json_key_text(json, "bounds", bounds[row->bounds]);
	plumb_json_key_quantity(json, "steps", row->steps);
	plumb_json_key_object(json, "wall_ns");
	plumb_json_key_quantity(json, "mean", row->time_ns);
	plumb_json_key_quantity(json, "low", row->low_ns);
	plumb_json_key_quantity(json, "high", row->high_ns);
	plumb_json_end(json);
	plumb_json_key_quantity(json, "overhead_ns", row->added_ns);
	plumb_json_key_quantity(json, "overhead_low_ns", row->added_low_ns);
	plumb_json_key_quantity(json, "overhead_high_ns", row->added_high_ns);
	plumb_json_key_text(json, "why", plumb_text(p, row->why));
	plumb_json_end(json);
}

static void
json_row(const struct plumb_profile *p, const struct plumb_level_value *v, struct plumb_json *json)
{
	const struct plumb_frame *frame = plumb_context_frame(p, v->context);

	plumb_json_object(json);
	plumb_json_key_quantity(json, "context", v->context);
	plumb_json_key_quantity(json, "parent", id_or_unknown(p->contexts[v->context].parent));
	plumb_json_key_text(json, "kind", plumb_frame_kind_names[frame->kind]);
	plumb_json_key_text(json, "name", frame_label(p, v->context));
	plumb_json_key_text(json, "file", plumb_text(p, frame->file));
	plumb_json_key_line(json, "line", frame->line);
	plumb_json_key_text(json, "metric", plumb_profile_metric(p, v->metric).name);
	plumb_json_key_text(json, "level", plumb_level_name(v->level));
	plumb_json_key_quantity(json, "measured_ns", v->measured_ns);
	plumb_json_key_quantity(json, "corrected_ns", v->corrected_ns);
	plumb_json_key_quantity(json, "low_ns", v->low_ns);
	plumb_json_key_quantity(json, "high_ns", v->high_ns);
	plumb_json_key_quantity(json, "own_ns", v->own_ns);
	plumb_json_key_quantity(json, "passed", id_or_unknown(v->passed));
	plumb_json_key_text(json, "passed_name", frame_label(p, v->passed));
	plumb_json_end(json);
}

static int
json_rows(const struct plumb_profile *p, const char *key, enum plumb_levels_rows which,
          uint32_t top, struct plumb_json *json, struct plumb_error *error)
{
	uint32_t count = 0;
	uint32_t *rows = plumb_levels_select(p, which, top, &count);

	if (!rows)
		return plumb_fail_memory(error, "for the levels");
	plumb_json_key_array(json, key);
	for (uint32_t i = 0; i < count; i++)
		json_row(p, &p->level_values[rows[i]], json);
	plumb_json_end(json);
	free(rows);
	return 0;
}

int
plumb_levels_json(const struct plumb_profile *p, uint32_t top, struct plumb_json *json,
                  struct plumb_error *error)
{
	int code;

	plumb_json_key_text(json, "command", plumb_text(p, p->run.command));
	plumb_json_key_array(json, "measured");
	for (uint32_t i = 0; i < p->levels_count; i++)
		json_level(p, &p->levels[i], json);
	plumb_json_end(json);
	code = json_rows(p, "rows", PLUMB_LEVELS_ALL, top, json, error);
	if (!code)
		code = json_rows(p, "order", PLUMB_LEVELS_ORDER, 0, json, error);
	if (!code)
		code = json_rows(p, "left_out", PLUMB_LEVELS_UNLIKE, 0, json, error);
	return code;
}

int
plumb_view_levels(const struct plumb_profile *p, const char *verb, uint32_t top,
                  enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answer;
	int code;

	if (!plumb_levels_are_known(p))
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "the profile has no levels; measure them with plumb levels");
	if (format != PLUMB_VIEW_JSON) {
		code = plumb_levels_answer(p, PLUMB_LEVELS_ALL, top, &answer, error);
		if (!code)
			code = plumb_view_answer(&answer, format, out, error);
		plumb_answer_free(&answer);
		return code;
	}
	struct plumb_json *json = plumb_view_json_new(out, verb);
	code = plumb_levels_json(p, top, json, error);
	plumb_json_end(json);
	if (plumb_json_finish(json) < 0 && !code)
		code = plumb_fail(error, PLUMB_ESYSTEM, "cannot write the answer");
	return code;
}
