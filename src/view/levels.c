/* SPDX-License-Identifier: Apache-2.0 */
#include "view/levels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "model/metric.h"

/* ---- which rows ---- */

/* For each context the layer that it is in, or is; PLUMB_NONE: none. Malloced. */
static uint32_t *
find_layers(const struct plumb_profile *p)
{
	uint32_t *layers = malloc(((size_t)p->contexts_count + 1) * sizeof *layers);

	for (uint32_t i = 0; layers && i < p->contexts_count; i++) {
		uint32_t parent = p->contexts[i].parent;

		layers[i] = parent == PLUMB_NONE ? PLUMB_NONE : layers[parent];
		if (layers[i] == PLUMB_NONE && plumb_level_begins_layer(p, i))
			layers[i] = i;
	}
	return layers;
}

/* The layer that CONTEXT is in, or else the nearest module or range; PLUMB_NONE. */
static uint32_t
find_around(const struct plumb_profile *p, const uint32_t *layers, uint32_t context)
{
	uint32_t k = p->contexts[context].parent;

	if (k != PLUMB_NONE && layers[k] != PLUMB_NONE)
		return layers[k];
	for (; k != PLUMB_NONE; k = p->contexts[k].parent) {
		uint32_t kind = plumb_context_frame(p, k)->kind;

		if (kind == PLUMB_FRAME_MODULE || kind == PLUMB_FRAME_RANGE)
			break;
	}
	return k;
}

static bool
is_wanted(const struct plumb_level_value *v, enum plumb_levels_rows which, const uint32_t *layers)
{
	bool known = v->corrected_ns != PLUMB_UNKNOWN;
	bool host = v->metric == PLUMB_METRIC_OP_TIME;

	if (v->level == PLUMB_LEVEL_SERIALISED)
		return which == PLUMB_LEVELS_ALL;
	switch (which) {
	case PLUMB_LEVELS_TREE:
		return host && known;
	case PLUMB_LEVELS_LAYERS:
		return host && known && layers[v->context] == v->context;
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

/* Two lists, one after the other. */
static uint32_t *
select_shown(const struct plumb_profile *p, uint32_t top, uint32_t *count)
{
	uint32_t layers = 0, kernels = 0;
	uint32_t *first = plumb_levels_select(p, PLUMB_LEVELS_LAYERS, top, &layers);
	uint32_t *second = plumb_levels_select(p, PLUMB_LEVELS_KERNELS, top, &kernels);
	uint32_t *all = malloc(((size_t)layers + kernels + 1) * sizeof *all);

	if (first && second && all) {
		memcpy(all, first, layers * sizeof *all);
		memcpy(all + layers, second, kernels * sizeof *all);
	} else {
		free(all);
		all = NULL;
	}
	free(first);
	free(second);
	*count = layers + kernels;
	return all;
}

uint32_t *
plumb_levels_select(const struct plumb_profile *p, enum plumb_levels_rows which, uint32_t top,
                    uint32_t *count)
{
	if (which == PLUMB_LEVELS_SHOWN)
		return select_shown(p, top, count);

	struct plumb_sort_item *items =
		malloc((2 * (size_t)p->level_values_count + 1) * sizeof *items);
	uint32_t *rows = malloc(((size_t)p->level_values_count + 1) * sizeof *rows);
	uint32_t *layers = find_layers(p), found = 0;

	if (!items || !rows || !layers) {
		free(items);
		free(rows);
		free(layers);
		return NULL;
	}
	for (uint32_t i = 0; i < p->level_values_count; i++)
		if (is_wanted(&p->level_values[i], which, layers))
			items[found++] =
				(struct plumb_sort_item){ rank_of(&p->level_values[i], which), i };
	plumb_sort(items, items + found, found);
	*count = top && top < found ? top : found;
	for (uint32_t i = 0; i < *count; i++)
		rows[i] = items[i].index;
	if (!is_ranked(which))
		qsort(rows, *count, sizeof *rows, by_number);
	free(items);
	free(layers);
	return rows;
}

static uint32_t
count_rows(const struct plumb_profile *p, enum plumb_levels_rows which, const uint32_t *layers)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < p->level_values_count; i++) {
		const struct plumb_level_value *v = &p->level_values[i];

		if (which == PLUMB_LEVELS_SHOWN)
			count += is_wanted(v, PLUMB_LEVELS_LAYERS, layers) ||
			         is_wanted(v, PLUMB_LEVELS_KERNELS, layers);
		else
			count += is_wanted(v, which, layers);
	}
	return count;
}

/* ---- rows ---- */

/* What rows say beside their values. */
struct row_words {
	char *label, *within; /* malloced, or NULL */
	char *passes;         /* the same: what it passes, as a sentence */
	double share;         /* NAN: not known */
};

/* What is the same for all rows. */
struct basis {
	const struct plumb_profile *p;
	uint32_t *layers;
	double host, gpu; /* what shares are of */
};

static int
basis_make(struct basis *basis, const struct plumb_profile *p, struct plumb_error *error)
{
	*basis = (struct basis){ p, find_layers(p), plumb_levels_whole(p, true),
		                 plumb_levels_whole(p, false) };
	return basis->layers ? 0 : plumb_fail_memory(error, "for the levels");
}

static struct row_words
words_of(const struct basis *basis, const struct plumb_level_value *v)
{
	const struct plumb_profile *p = basis->p;
	uint32_t around = find_around(p, basis->layers, v->context);
	double whole = v->metric == PLUMB_METRIC_OP_TIME ? basis->host : basis->gpu;
	int64_t ns = plumb_levels_time_of(v);
	bool known = ns != PLUMB_UNKNOWN && whole > 0 && v->level != PLUMB_LEVEL_SERIALISED;

	return (struct row_words){ plumb_levels_name(p, v->context),
		                   around == PLUMB_NONE ? NULL : plumb_levels_name(p, around),
		                   v->passed == PLUMB_NONE ? NULL : plumb_levels_passes(p, v),
		                   known ? (double)ns / whole : NAN };
}

static void
free_words(struct row_words *words)
{
	free(words->label);
	free(words->within);
	free(words->passes);
}

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
	plumb_answer_column(a, "label", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "within", NULL, PLUMB_SOURCE_IS_MEASURED);
	plumb_answer_column(a, "share", NULL, PLUMB_SOURCE_IS_DERIVED);
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
	struct basis basis;

	*a = (struct plumb_answer){ .id = "levels", .title = "measured and corrected" };
	if (basis_make(&basis, p, error) < 0 || !rows) {
		free(rows);
		free(basis.layers);
		return plumb_fail_memory(error, "for the levels");
	}
	add_columns(a);
	for (uint32_t i = 0; i < count; i++) {
		const struct plumb_level_value *v = &p->level_values[rows[i]];
		const struct plumb_frame *frame = plumb_context_frame(p, v->context);
		struct row_words words = words_of(&basis, v);

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
		plumb_answer_copy(a, words.label);
		plumb_answer_copy(a, words.within);
		plumb_answer_number(a, words.share);
		free_words(&words);
	}
	free(rows);
	free(basis.layers);
	return plumb_answer_end(a, error);
}

/* ---- levels ---- */

static const char *
scope_name(const struct plumb_level_row *row)
{
	static const char *const scopes[] = { NULL, "run", "step" };

	return scopes[row->scope];
}

static const char *
bounds_name(const struct plumb_level_row *row)
{
	static const char *const bounds[] = { NULL, "launches", "loop", "run" };

	return bounds[row->bounds];
}

int
plumb_levels_measured(const struct plumb_profile *p, struct plumb_answer *a,
                      struct plumb_error *error)
{
	static const struct {
		const char *name, *unit;
	} columns[] = { { "level", NULL }, { "runs", NULL },      { "kept", NULL },
		        { "scope", NULL }, { "bounds", NULL },    { "steps", NULL },
		        { "time", "ns" },  { "low", "ns" },       { "high", "ns" },
		        { "added", "ns" }, { "added_low", "ns" }, { "added_high", "ns" },
		        { "sees", NULL },  { "why", NULL } };

	*a = (struct plumb_answer){ .id = "levels.measured", .title = "the levels side by side" };
	for (size_t c = 0; c < sizeof columns / sizeof *columns; c++)
		plumb_answer_column(a, columns[c].name, columns[c].unit, PLUMB_SOURCE_IS_MEASURED);
	for (uint32_t i = 0; i < p->levels_count; i++) {
		const struct plumb_level_row *row = &p->levels[i];

		plumb_answer_text(a, plumb_level_name(row->level));
		plumb_answer_integer(a, row->runs);
		plumb_answer_integer(a, row->kept);
		plumb_answer_text(a, scope_name(row));
		plumb_answer_text(a, bounds_name(row));
		plumb_answer_integer(a, row->steps);
		plumb_answer_integer(a, row->time_ns);
		plumb_answer_integer(a, row->low_ns);
		plumb_answer_integer(a, row->high_ns);
		plumb_answer_integer(a, row->added_ns);
		plumb_answer_integer(a, row->added_low_ns);
		plumb_answer_integer(a, row->added_high_ns);
		plumb_answer_text(a, plumb_levels_sees(row));
		plumb_answer_text(a, plumb_text(p, row->why));
	}
	return plumb_answer_end(a, error);
}

/* ---- JSON ---- */

static void
json_level(const struct plumb_profile *p, const struct plumb_level_row *row,
           struct plumb_json *json)
{
	plumb_json_object(json);
	plumb_json_key_text(json, "level", plumb_level_name(row->level));
	plumb_json_key_text(json, "sees", plumb_levels_sees(row));
	plumb_json_key_quantity(json, "runs", row->runs);
	plumb_json_key_quantity(json, "kept", row->kept);
	plumb_json_key_text(json, "scope", scope_name(row));
	plumb_json_key_text(json, "bounds", bounds_name(row));
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

/* TEXT is freed. */
static void
json_said(struct plumb_json *json, const char *of, char *text)
{
	if (text) {
		plumb_json_object(json);
		plumb_json_key_text(json, "of", of);
		plumb_json_key_text(json, "text", text);
		plumb_json_end(json);
	}
	free(text);
}

static void
json_sentences(const struct plumb_profile *p, struct plumb_json *json)
{
	const struct plumb_level_row *layers = plumb_levels_row(p, PLUMB_LEVEL_ML);
	const struct plumb_level_row *kernels = plumb_levels_row(p, PLUMB_LEVEL_MLG);
	const char *note = plumb_levels_note(p);

	plumb_json_key_array(json, "said");
	json_said(json, "program", plumb_levels_program(p));
	json_said(json, "note", note ? strdup(note) : NULL);
	json_said(json, "layers", layers ? plumb_levels_added(p, layers) : NULL);
	json_said(json, "kernels", kernels ? plumb_levels_added(p, kernels) : NULL);
	plumb_json_end(json);
}

static void
json_row(const struct basis *basis, const struct plumb_level_value *v, struct plumb_json *json)
{
	const struct plumb_profile *p = basis->p;
	const struct plumb_frame *frame = plumb_context_frame(p, v->context);
	struct row_words words = words_of(basis, v);

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
	plumb_json_key_text(json, "passes", words.passes);
	plumb_json_key_text(json, "label", words.label);
	plumb_json_key_text(json, "within", words.within);
	plumb_json_key_number(json, "share", words.share);
	plumb_json_end(json);
	free_words(&words);
}

static int
json_rows(const struct basis *basis, const char *key, enum plumb_levels_rows which, uint32_t top,
          struct plumb_json *json, struct plumb_error *error)
{
	uint32_t count = 0;
	uint32_t *rows = plumb_levels_select(basis->p, which, top, &count);

	if (!rows)
		return plumb_fail_memory(error, "for the levels");
	plumb_json_key_array(json, key);
	for (uint32_t i = 0; i < count; i++)
		json_row(basis, &basis->p->level_values[rows[i]], json);
	plumb_json_end(json);
	free(rows);
	return 0;
}

int
plumb_levels_json(const struct plumb_profile *p, enum plumb_levels_rows which, uint32_t top,
                  struct plumb_json *json, struct plumb_error *error)
{
	struct basis basis;
	int code = basis_make(&basis, p, error);

	if (code)
		return code;
	plumb_json_key_text(json, "command", plumb_text(p, p->run.command));
	json_sentences(p, json);
	plumb_json_key_array(json, "measured");
	for (uint32_t i = 0; i < p->levels_count; i++)
		json_level(p, &p->levels[i], json);
	plumb_json_end(json);
	code = json_rows(&basis, "rows", which, top, json, error);
	plumb_json_key_quantity(json, "rows_available", count_rows(p, which, basis.layers));
	if (!code)
		code = json_rows(&basis, "order", PLUMB_LEVELS_ORDER, 0, json, error);
	if (!code)
		code = json_rows(&basis, "left_out", PLUMB_LEVELS_UNLIKE, 0, json, error);
	free(basis.layers);
	return code;
}

int
plumb_view_levels(const struct plumb_profile *p, const struct plumb_levels_query *query,
                  enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answer;
	int code;

	if (!plumb_levels_are_known(p))
		return plumb_fail(error, PLUMB_EEMPTY,
		                  "the profile has no levels; measure them with plumb levels");
	if (format != PLUMB_VIEW_JSON) {
		code = query->measured
		               ? plumb_levels_measured(p, &answer, error)
		               : plumb_levels_answer(p, query->which, query->top, &answer, error);
		if (!code)
			code = plumb_view_answer(&answer, format, out, error);
		plumb_answer_free(&answer);
		return code;
	}
	struct plumb_json *json = plumb_view_json_new(out, query->verb);
	code = plumb_levels_json(p, query->which, query->top, json, error);
	plumb_json_end(json);
	if (plumb_json_finish(json) < 0 && !code)
		code = plumb_fail(error, PLUMB_ESYSTEM, "cannot write the answer");
	return code;
}
