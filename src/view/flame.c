/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph: what is asked for, the frames that are shown, and the whole. */
#include "view/flame.h"

#include <math.h>
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
const char *const plumb_flame_width_names[PLUMB_FLAME_WIDTHS] = { "after", "before", "either" };

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
	       own->apart == query->apart && own->one_rank == query->one_rank &&
	       own->rank == query->rank && own->against == query->against &&
	       (!query->against || own->width == query->width) &&
	       is_same_text(own->metric, query->metric) && is_same_text(own->hide, query->hide) &&
	       (!is_about_frame(query) || own->of == query->of);
}

static bool
has_rank(const struct plumb_profile *p, int64_t rank)
{
	for (uint32_t i = 0; i < p->processes_count; i++)
		if (p->processes[i].rank == rank)
			return true;
	return false;
}

static int
check_query(const struct plumb_flame *flame, struct plumb_error *error)
{
	const struct plumb_flame_query *query = &flame->query;
	const struct plumb_profile *p = flame->profile;
	uint32_t metric = flame->sides[0].metric;

	if ((unsigned)query->view >= PLUMB_FLAME_VIEWS ||
	    (unsigned)query->width >= PLUMB_FLAME_WIDTHS)
		return plumb_fail(error, PLUMB_EUSAGE, "there is no such view of a flame graph");
	if (!metric)
		return plumb_fail(error, PLUMB_EUSAGE, "the profile has no metric \"%s\"",
		                  query->metric ? query->metric : "");
	if (plumb_metric_aggregation(metric) != PLUMB_SUM)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "values of %s do not add up, so boxes cannot show them; choose "
		                  "another metric",
		                  plumb_profile_metric(p, metric).name);
	if (query->one_rank && !has_rank(p, query->rank))
		return plumb_fail(error, PLUMB_EUSAGE, "the profile has no rank %lld",
		                  (long long)query->rank);
	if (is_about_frame(query) && query->of >= plumb_flame_frames(flame))
		return plumb_fail(error, PLUMB_EUSAGE, "the profile has no frame %u", query->of);
	return 0;
}

uint32_t
plumb_flame_frames(const struct plumb_flame *flame)
{
	return flame->profile->frames_count +
	       (flame->query.against ? flame->query.against->frames_count : 0);
}

const struct plumb_profile *
plumb_flame_frame_owner(const struct plumb_flame *flame, uint32_t *frame)
{
	uint32_t own = flame->profile->frames_count;

	if (*frame < own)
		return flame->profile;
	if (*frame >= plumb_flame_frames(flame))
		return NULL;
	*frame -= own;
	return flame->query.against;
}

/* By frame of P: 1 if it is hidden. NULL: ERROR is filled. */
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

/* By frame of the graph: 1 if it is hidden in a profile that has it. NULL: ERROR is filled. */
static unsigned char *
find_all_hidden(const struct plumb_flame *flame, struct plumb_error *error)
{
	unsigned char *all = calloc(plumb_flame_frames(flame) + (size_t)1, 1);

	if (!all)
		plumb_fail_memory(error, "for the flame graph");
	for (uint32_t s = 0; all && s < flame->side_count; s++) {
		const struct plumb_flame_side *side = &flame->sides[s];
		unsigned char *skip = find_hidden(side->profile, &flame->query, error);

		for (uint32_t i = 0; skip && i < side->profile->frames_count; i++)
			all[side->frame_of ? side->frame_of[i] : i] |= skip[i];
		if (!skip) {
			free(all);
			all = NULL;
		}
		free(skip);
	}
	return all;
}

/* What is called in a profile has its callers there, in its own phase, too. */
static void
spread_flags(struct plumb_flame_tree *tree)
{
	for (uint32_t n = tree->count; n-- > 1;)
		tree->nodes[tree->nodes[n].parent].flags |=
			tree->nodes[n].flags & (PLUMB_FLAME_IS_AFTER | PLUMB_FLAME_IS_BEFORE);
}

/* How wide the parts of nodes are that they hold themselves. */
static void
set_masses(const struct plumb_flame *flame, struct plumb_flame_tree *tree)
{
	enum plumb_flame_width width =
		flame->query.against ? flame->query.width : PLUMB_FLAME_AFTER;

	for (uint32_t n = 0; n < tree->count; n++) {
		struct plumb_flame_amount *own = &tree->nodes[n].own;
		double after = fabs((double)own->self / flame->sides[0].per);
		double before = fabs((double)own->before / flame->sides[1].per);

		own->mass = width == PLUMB_FLAME_AFTER    ? after
		            : width == PLUMB_FLAME_BEFORE ? before
		                                          : fmax(after, before);
	}
}

int
plumb_flame_make_base(const struct plumb_flame *flame, struct plumb_flame_tree *base,
                      uint32_t *owner[PLUMB_FLAME_SIDES], struct plumb_error *error)
{
	static const uint8_t flags[] = { PLUMB_FLAME_IS_AFTER, PLUMB_FLAME_IS_BEFORE };
	unsigned char *skip = find_all_hidden(flame, error);
	int code = 0;

	*base = (struct plumb_flame_tree){ 0 };
	memset(owner, 0, PLUMB_FLAME_SIDES * sizeof *owner);
	if (!skip)
		return error->code;
	code = plumb_flame_tree_new(base, flame->profile->contexts_count);
	for (uint32_t s = 0; !code && s < flame->side_count; s++) {
		const struct plumb_flame_source source = {
			.side = &flame->sides[s],
			.query = &flame->query,
			.skip = skip,
			.frames = plumb_flame_frames(flame),
			.flag = flame->side_count > 1 ? flags[s] : 0,
			.before = s > 0,
		};

		owner[s] =
			malloc((source.side->profile->contexts_count + (size_t)1) * sizeof **owner);
		code = owner[s] ? plumb_flame_project(&source, base, owner[s]) : PLUMB_ESYSTEM;
	}
	free(skip);
	if (code)
		return plumb_fail_memory(error, "for the flame graph");
	set_masses(flame, base);
	spread_flags(base);
	return 0;
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
	uint32_t *owner[PLUMB_FLAME_SIDES];
	int code = plumb_flame_make_base(flame, &base, owner, error);

	for (uint32_t s = 0; s < PLUMB_FLAME_SIDES; s++)
		free(owner[s]);
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

static int
make_flame(struct plumb_flame *flame, const struct plumb_flame_query *query,
           struct plumb_error *error)
{
	const struct plumb_profile *p = flame->profile;
	int code;

	if (!copy_query(flame, query))
		return plumb_fail_memory(error, "for the flame graph");
	for (uint32_t s = 0; s < PLUMB_FLAME_SIDES; s++) {
		flame->sides[s].per = 1;
		flame->iterations[s] = (double)NAN;
	}
	flame->side_count = 1;
	flame->sides[0].profile = p;
	if (query->against) {
		code = plumb_flame_compare(flame, error);
		if (code)
			return code;
	} else {
		flame->sides[0].metric = query->metric ? plumb_profile_metric_find(p, query->metric)
		                                       : plumb_metric_default(p);
	}
	code = check_query(flame, error);
	return code ? code : fill_flame(flame, error);
}

struct plumb_flame *
plumb_flame_make(const struct plumb_profile *profile, const struct plumb_flame_query *query,
                 struct plumb_error *error)
{
	struct plumb_flame *flame = calloc(1, sizeof *flame);

	if (!flame) {
		plumb_fail_memory(error, "for the flame graph");
		return NULL;
	}
	flame->profile = profile;
	if (!make_flame(flame, query, error))
		return flame;
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
	free(flame->before_self);
	free(flame->before);
	for (uint32_t s = 0; s < PLUMB_FLAME_SIDES; s++)
		free(flame->sides[s].frame_of);
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
	size_t bytes = sizeof *flame + flame->base.tree.room * sizeof *flame->base.tree.nodes;

	if (flame->before)
		each += 2 * sizeof *flame->before;
	if (flame->search.text)
		each += 1 + (flame->before ? 2 : 1) * sizeof *flame->search.matched;
	for (uint32_t s = 0; s < flame->side_count; s++) {
		const struct plumb_profile *p = flame->sides[s].profile;

		bytes += flame->sides[s].frame_of ? sizeof(uint32_t) * p->frames_count : 0;
		bytes += flame->base.owner[s] ? 2 * sizeof(uint32_t) * p->contexts_count : 0;
	}
	return bytes + (flame->count + (size_t)1) * each;
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
