/* SPDX-License-Identifier: Apache-2.0 */
/* A flame graph: what is asked for, the frames that are shown, and the whole. */
#include "view/flame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/group.h"
#include "base/large.h"
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

/* Of the same frames and call paths? In all views but one, backward work is apart. */
bool
plumb_flame_is_akin(const struct plumb_flame *flame, const struct plumb_profile *profile,
                    const struct plumb_flame_query *query)
{
	const struct plumb_flame_query *own = &flame->query;

	return flame->profile == profile && own->hidden == query->hidden &&
	       own->collapse == query->collapse && own->apart == query->apart &&
	       own->against == query->against && is_same_text(own->hide, query->hide) &&
	       ((own->view == PLUMB_FLAME_HEAVY) == (query->view == PLUMB_FLAME_HEAVY) ||
	        (own->view != PLUMB_FLAME_HEAVY && !flame->base->marked));
}

bool
plumb_flame_is(const struct plumb_flame *flame, const struct plumb_profile *profile,
               const struct plumb_flame_query *query)
{
	const struct plumb_flame_query *own = &flame->query;

	return plumb_flame_is_akin(flame, profile, query) && own->view == query->view &&
	       own->one_rank == query->one_rank && own->rank == query->rank &&
	       (!query->against || own->width == query->width) &&
	       is_same_text(own->metric, query->metric) &&
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

/* The parts of nodes that they hold themselves, from the values; malloced. NULL: no memory. */
static struct plumb_flame_amount *
add_values(const struct plumb_flame *flame)
{
	const struct plumb_flame_base *base = flame->base;
	size_t bytes = base->tree.count * sizeof(struct plumb_flame_amount);
	struct plumb_flame_amount *own = plumb_large(bytes);

	if (own)
		memset(own, 0, bytes);
	for (uint32_t s = 0; own && s < flame->side_count; s++) {
		const struct plumb_flame_side *side = &flame->sides[s];
		const struct plumb_profile *p = side->profile;

		for (uint32_t i = 0; i < p->values_count; i++) {
			const struct plumb_value *v = &p->values[i];
			int64_t *sum;

			if (v->metric != side->metric || !v->count || v->sum == PLUMB_UNKNOWN ||
			    !plumb_flame_wants(p, &flame->query, v->track))
				continue;
			sum = s ? &own[base->owner[s][v->context]].before
			        : &own[base->owner[s][v->context]].self;
			*sum = plumb_flame_sum(*sum, v->sum);
		}
	}
	return own;
}

/* How wide the parts of nodes are that they hold themselves. */
static void
set_masses(const struct plumb_flame *flame, struct plumb_flame_amount *own)
{
	enum plumb_flame_width width =
		flame->query.against ? flame->query.width : PLUMB_FLAME_AFTER;

	for (uint32_t n = 0; n < flame->base->tree.count; n++) {
		double after = fabs((double)own[n].self / flame->sides[0].per);
		double before = fabs((double)own[n].before / flame->sides[1].per);

		own[n].mass = width == PLUMB_FLAME_AFTER    ? after
		              : width == PLUMB_FLAME_BEFORE ? before
		                                            : fmax(after, before);
	}
}

void
plumb_flame_base_drop(struct plumb_flame_base *base)
{
	if (!base || --base->references)
		return;
	plumb_flame_tree_free(&base->tree);
	for (uint32_t s = 0; s < PLUMB_FLAME_SIDES; s++) {
		free(base->owner[s]);
		free(base->user[s]);
		free(base->user_of[s]);
	}
	free(base->user_code);
	free(base);
}

/* Makes the tree of the contexts that FLAME is made of. */
static int
make_base(struct plumb_flame *flame, struct plumb_error *error)
{
	unsigned char *skip = find_all_hidden(flame, error);
	struct plumb_flame_base *base = calloc(1, sizeof *base);
	bool ok = base && skip;

	flame->base = base;
	if (base)
		base->references = 1;
	if (!skip)
		return error->code;
	ok = ok && !plumb_flame_tree_new(&base->tree, flame->profile->contexts_count + 1u,
	                                 flame->query.collapse, false);
	for (uint32_t s = 0; ok && s < flame->side_count; s++) {
		size_t contexts = flame->sides[s].profile->contexts_count + (size_t)1;

		base->owner[s] = plumb_large(contexts * sizeof **base->owner);
		ok = base->owner[s];
	}
	ok = ok && !plumb_flame_project(flame, skip, &base->tree, base->owner);
	free(skip);
	if (!ok)
		return plumb_fail_memory(error, "for the flame graph");
	free(base->tree.slots);
	base->tree.slots = NULL;
	for (uint32_t n = 1; !base->marked && n < base->tree.count; n++)
		base->marked = base->tree.nodes[n].marks;
	return 0;
}

/* BASE as the view has it. */
static int
turn_base(const struct plumb_flame_query *query, const struct plumb_flame_tree *base,
          struct plumb_flame_tree *tree)
{
	if (query->view == PLUMB_FLAME_UP)
		return plumb_flame_invert(base, tree);
	if (query->view == PLUMB_FLAME_CALLERS)
		return plumb_flame_callers(base, query->of, tree);
	return plumb_flame_callees(base, query->of, tree);
}

static int
fill_flame(struct plumb_flame *flame, struct plumb_error *error)
{
	struct plumb_flame_tree base, tree = { 0 };
	int code = flame->base ? 0 : make_base(flame, error);

	if (code)
		return code;
	base = flame->base->tree;
	base.own = add_values(flame);
	code = base.own ? 0 : PLUMB_ESYSTEM;
	if (!code)
		set_masses(flame, base.own);
	if (!code && flame->query.view > PLUMB_FLAME_HEAVY)
		code = turn_base(&flame->query, &base, &tree);
	if (!code)
		code = plumb_flame_layout(flame, tree.nodes ? &tree : &base);
	free(base.own);
	plumb_flame_tree_free(&tree);
	return code ? plumb_fail_memory(error, "for the flame graph") : 0;
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
make_flame(struct plumb_flame *flame, const struct plumb_flame *akin,
           const struct plumb_flame_query *query, struct plumb_error *error)
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
		code = plumb_flame_compare(flame, akin, error);
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
plumb_flame_make_akin(struct plumb_flame *akin, const struct plumb_profile *profile,
                      const struct plumb_flame_query *query, struct plumb_error *error)
{
	struct plumb_flame *flame = calloc(1, sizeof *flame);

	if (!flame) {
		plumb_fail_memory(error, "for the flame graph");
		return NULL;
	}
	flame->profile = profile;
	if (akin) {
		flame->base = akin->base;
		flame->base->references++;
	}
	if (!make_flame(flame, akin, query, error))
		return flame;
	plumb_flame_free(flame);
	return NULL;
}

struct plumb_flame *
plumb_flame_make(const struct plumb_profile *profile, const struct plumb_flame_query *query,
                 struct plumb_error *error)
{
	return plumb_flame_make_akin(NULL, profile, query, error);
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
	plumb_flame_base_drop(flame->base);
	free(flame);
}

/* The part of what several flame graphs have in common. */
static size_t
base_bytes(const struct plumb_flame *flame)
{
	const struct plumb_flame_base *base = flame->base;
	size_t bytes = base->tree.room * sizeof *base->tree.nodes;

	for (uint32_t s = 0; s < flame->side_count; s++)
		bytes += (base->user[s] ? 2 : 1) * sizeof(uint32_t) *
		         flame->sides[s].profile->contexts_count;
	return bytes / base->references;
}

size_t
plumb_flame_bytes(const struct plumb_flame *flame)
{
	size_t each =
		4 * sizeof *flame->parent + 2 * sizeof *flame->self + 2 * sizeof *flame->start + 2;
	size_t bytes = sizeof *flame + base_bytes(flame);

	if (flame->before)
		each += 2 * sizeof *flame->before;
	if (flame->search.text)
		each += 1 + (flame->before ? 2 : 1) * sizeof *flame->search.matched;
	for (uint32_t s = 0; s < flame->side_count; s++)
		bytes += flame->sides[s].frame_of
		                 ? sizeof(uint32_t) * flame->sides[s].profile->frames_count
		                 : 0;
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
