/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph: what is asked for, the frames that are shown, and the whole. */
#include "view/flame.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "model/metric.h"
#include "view/flame_private.h"
#include "view/view.h"

const char *const plumb_flame_view_names[PLUMB_FLAME_VIEWS] = { "down", "heavy", "up", "callers",
	                                                        "callees" };
const char *const plumb_flame_layer_names[PLUMB_FLAME_LAYERS] = { "python", "module", "operator",
	                                                          "native", "gpu",    "other" };

enum plumb_flame_layer
plumb_flame_layer_of(uint32_t kind)
{
	switch (kind) {
	case PLUMB_FRAME_PYTHON:
		return PLUMB_FLAME_PYTHON;
	case PLUMB_FRAME_MODULE:
		return PLUMB_FLAME_MODULE;
	case PLUMB_FRAME_OPERATOR:
	case PLUMB_FRAME_COLLECTIVE:
		return PLUMB_FLAME_OPERATOR;
	case PLUMB_FRAME_NATIVE:
	case PLUMB_FRAME_LIBRARY:
		return PLUMB_FLAME_NATIVE;
	case PLUMB_FRAME_ROOT:
	case PLUMB_FRAME_RANGE:
	case PLUMB_FRAME_GPU_API:
		return PLUMB_FLAME_OTHER;
	default:
		return kind < PLUMB_FRAME_KIND_COUNT ? PLUMB_FLAME_GPU : PLUMB_FLAME_OTHER;
	}
}

/* ---- the query ---- */

static bool
is_about_frame(const struct plumb_flame_query *query)
{
	return query->view == PLUMB_FLAME_CALLERS || query->view == PLUMB_FLAME_CALLEES;
}

static bool
is_same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool
plumb_flame_is(const struct plumb_flame *flame, const struct plumb_profile *profile,
               const struct plumb_flame_query *query)
{
	const struct plumb_flame_query *own = &flame->query;

	return flame->profile == profile && own->view == query->view &&
	       own->hidden == query->hidden && own->collapse == query->collapse &&
	       own->apart == query->apart && is_same_text(own->metric, query->metric) &&
	       is_same_text(own->hide, query->hide) &&
	       (!is_about_frame(query) || own->of == query->of);
}

static int
check_query(const struct plumb_profile *p, const struct plumb_flame_query *query, uint32_t metric,
            struct plumb_error *error)
{
	if ((unsigned)query->view >= PLUMB_FLAME_VIEWS)
		return plumb_fail(error, PLUMB_EUSAGE, "there is no such view of a flame graph");
	if (!metric)
		return plumb_fail(error, PLUMB_EUSAGE, "the profile has no metric \"%s\"",
		                  query->metric ? query->metric : "");
	if (plumb_metric_aggregation(metric) != PLUMB_SUM)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "values of %s do not add up, so boxes cannot show them; choose "
		                  "another metric",
		                  plumb_profile_metric(p, metric).name);
	if (is_about_frame(query) && query->of >= p->frames_count)
		return plumb_fail(error, PLUMB_EUSAGE, "the profile has no frame %u", query->of);
	return 0;
}

/* By frame: 1 if it is hidden. NULL: ERROR is filled. */
static unsigned char *
find_hidden(const struct plumb_profile *p, const struct plumb_flame_query *query,
            struct plumb_error *error)
{
	unsigned char *skip;
	regex_t expression;

	if (query->hide) {
		if (plumb_flame_compile(query->hide, "hide", &expression, error))
			return NULL;
		skip = plumb_flame_of_files(p, &expression);
		regfree(&expression);
	} else {
		skip = calloc(p->frames_count + (size_t)1, 1);
	}
	for (uint32_t i = 0; skip && i < p->frames_count; i++)
		skip[i] |= query->hidden >> plumb_flame_layer_of(p->frames[i].kind) & 1;
	if (!skip)
		plumb_fail_memory(error, "for the flame graph");
	return skip;
}

/* ---- making ---- */

int
plumb_flame_make_base(const struct plumb_flame *flame, struct plumb_flame_tree *base,
                      uint32_t *owner, struct plumb_error *error)
{
	struct plumb_flame_source source = { flame->profile, &flame->query, flame->metric, NULL };
	unsigned char *skip = find_hidden(flame->profile, &flame->query, error);
	int code;

	*base = (struct plumb_flame_tree){ 0 };
	if (!skip)
		return PLUMB_ESYSTEM;
	source.skip = skip;
	code = plumb_flame_tree_new(base, flame->profile->contexts_count);
	if (!code)
		code = plumb_flame_project(&source, base, owner);
	free(skip);
	return code ? plumb_fail_memory(error, "for the flame graph") : 0;
}

/* BASE as the view has it; it may become that tree. */
static int
turn_base(const struct plumb_flame_query *query, struct plumb_flame_tree *base,
          struct plumb_flame_tree *tree)
{
	if (query->view == PLUMB_FLAME_UP)
		return plumb_flame_invert(base, tree);
	if (query->view == PLUMB_FLAME_CALLERS)
		return plumb_flame_callers(base, query->of, tree);
	if (query->view == PLUMB_FLAME_CALLEES)
		return plumb_flame_callees(base, query->of, tree);
	*tree = *base;
	*base = (struct plumb_flame_tree){ 0 };
	return 0;
}

static int
fill_flame(struct plumb_flame *flame, struct plumb_error *error)
{
	struct plumb_flame_tree base = { 0 }, tree = { 0 };
	size_t contexts = flame->profile->contexts_count + (size_t)1;
	uint32_t *owner = malloc(contexts * sizeof *owner);
	int code = owner ? plumb_flame_make_base(flame, &base, owner, error)
	                 : plumb_fail_memory(error, "for the flame graph");

	free(owner);
	if (!code) {
		code = turn_base(&flame->query, &base, &tree);
		plumb_flame_tree_free(&base);
		if (!code)
			code = plumb_flame_layout(flame, &tree);
		if (code)
			plumb_fail_memory(error, "for the flame graph");
	}
	plumb_flame_tree_free(&base);
	plumb_flame_tree_free(&tree);
	return code;
}

static bool
copy_query(struct plumb_flame *flame, const struct plumb_flame_query *query)
{
	flame->query = *query;
	flame->query.range = (struct plumb_flame_range){ 0 };
	flame->query.metric = query->metric ? strdup(query->metric) : NULL;
	flame->query.hide = query->hide ? strdup(query->hide) : NULL;
	return !flame->query.metric == !query->metric && !flame->query.hide == !query->hide;
}

struct plumb_flame *
plumb_flame_make(const struct plumb_profile *profile, const struct plumb_flame_query *query,
                 struct plumb_error *error)
{
	uint32_t metric = query->metric ? plumb_profile_metric_find(profile, query->metric)
	                                : plumb_metric_default(profile);
	struct plumb_flame *flame;

	if (check_query(profile, query, metric, error))
		return NULL;
	flame = calloc(1, sizeof *flame);
	if (flame) {
		flame->profile = profile;
		flame->metric = metric;
	}
	if (!flame || !copy_query(flame, query)) {
		plumb_fail_memory(error, "for the flame graph");
	} else if (!fill_flame(flame, error)) {
		return flame;
	}
	plumb_flame_free(flame);
	return NULL;
}

void
plumb_flame_free(struct plumb_flame *flame)
{
	if (!flame)
		return;
	free((char *)flame->query.metric);
	free((char *)flame->query.hide);
	free(flame->parent);
	free(flame->child);
	free(flame->frame);
	free(flame->context);
	free(flame->marks);
	free(flame->flags);
	free(flame->self);
	free(flame->value);
	free(flame->start);
	free(flame->width);
	plumb_flame_search_free(&flame->search);
	plumb_flame_base_free(&flame->base);
	free(flame);
}

size_t
plumb_flame_bytes(const struct plumb_flame *flame)
{
	size_t each =
		4 * sizeof *flame->parent + 2 * sizeof *flame->self + 2 * sizeof *flame->start + 2;

	if (flame->search.text)
		each += 1 + sizeof *flame->search.matched;
	return sizeof *flame + (flame->count + (size_t)1) * each +
	       flame->base.tree.room * sizeof *flame->base.tree.nodes +
	       (flame->base.owner ? 2 * sizeof *flame->base.owner : 0) *
	               flame->profile->contexts_count;
}

/* ---- for programs ---- */

int
plumb_flame_write(struct plumb_flame *flame, const struct plumb_flame_range *range,
                  enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_answer answers[2]; /* boxes, total */
	int code = plumb_flame_boxes(flame, range, &answers[0], error);

	if (code)
		return code;
	code = plumb_flame_total(flame, range, &answers[1], error);
	if (code) {
		plumb_answer_free(&answers[0]);
		return code;
	}
	code = plumb_view_answers(answers, format == PLUMB_VIEW_CSV ? 1 : 2, "flame", format, out,
	                          error);
	plumb_answer_free(&answers[0]);
	plumb_answer_free(&answers[1]);
	return code;
}

int
plumb_view_flame(const struct plumb_profile *profile, const struct plumb_flame_query *query,
                 enum plumb_view_format format, FILE *out, struct plumb_error *error)
{
	struct plumb_error unread;
	struct plumb_flame *flame;
	int code;

	error = error ? error : &unread;
	flame = plumb_flame_make(profile, query, error);
	if (!flame)
		return error->code;
	code = plumb_flame_write(flame, &query->range, format, out, error);
	plumb_flame_free(flame);
	return code;
}
