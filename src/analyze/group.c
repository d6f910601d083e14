/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/group.h"
#include "analyze/phase.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"
#include "model/fused.h"
#include "model/metric.h"

struct plumb_grouping {
	const struct plumb_profile *profile;
	enum plumb_group_by by;
	PLUMB_VEC(struct plumb_group_row) rows;
	uint32_t *owner; /* by context: the row of the innermost frame of the kind */
	uint32_t *entry; /* by context: its row, where no frame further out has the same row */
	uint32_t *place; /* by track: its row, where rows are where it happened; else NULL */
	uint32_t *row_of_variant;
	bool native_lines; /* no Python: lines are those of the user's native functions */
	bool places;       /* rows of plumb_grouping_places */
};

static const struct plumb_group_row blank_row = { .kind = PLUMB_NONE,
	                                          .frame = PLUMB_NONE,
	                                          .track = PLUMB_NONE,
	                                          .process = PLUMB_NONE,
	                                          .rank = PLUMB_UNKNOWN,
	                                          .phase = PLUMB_NONE,
	                                          .shapes = PLUMB_NONE };

/* Nothing of a row lies in another: inclusive and exclusive are the same. */
static bool
is_flat(const struct plumb_grouping *g)
{
	return g->place || g->places || g->by == PLUMB_BY_PHASE || g->by == PLUMB_BY_SHAPE;
}

int64_t
plumb_stat_amount(uint32_t metric, const struct plumb_stat *stat)
{
	if (!stat->count)
		return 0;
	switch (plumb_metric_aggregation(metric)) {
	case PLUMB_MAX:
		return stat->max;
	case PLUMB_CALL:
		return isfinite(stat->mean) && fabs(stat->mean) < 9e18 ? llround(stat->mean) : 0;
	case PLUMB_SUM:
		break;
	}
	return stat->sum;
}

uint32_t
plumb_metric_default(const struct plumb_profile *profile)
{
	static const uint32_t wanted[] = { PLUMB_METRIC_GPU_TIME, PLUMB_METRIC_OP_TIME,
		                           PLUMB_METRIC_CPU_TIME };
	uint32_t best = (uint32_t)(sizeof wanted / sizeof *wanted), first = 0;
	for (uint32_t i = 0; i < profile->values_count; i++) {
		const struct plumb_value *value = &profile->values[i];
		for (uint32_t w = 0; w < best; w++)
			if (value->metric == wanted[w] && value->count)
				best = w;
		/* Another tool's sums may be of its own metrics alone. */
		if (value->metric >= PLUMB_METRIC_USER && (!first || value->metric < first))
			first = value->metric;
	}
	if (best < sizeof wanted / sizeof *wanted)
		return wanted[best];
	return first ? first : PLUMB_METRIC_OP_TIME;
}

/* ---- rows ---- */

static bool
is_native(uint32_t kind)
{
	return kind == PLUMB_FRAME_NATIVE || kind == PLUMB_FRAME_INLINE;
}

static bool
has_python(const struct plumb_profile *p)
{
	for (uint32_t f = 0; f < p->frames_count; f++)
		if (p->frames[f].kind == PLUMB_FRAME_PYTHON)
			return true;
	return false;
}

static bool
makes_row(const struct plumb_grouping *g, uint32_t frame, const unsigned char *user)
{
	uint32_t kind = g->profile->frames[frame].kind;

	switch (g->by) {
	case PLUMB_BY_KERNEL:
		return kind == PLUMB_FRAME_KERNEL;
	case PLUMB_BY_OPERATOR:
		return kind == PLUMB_FRAME_OPERATOR;
	case PLUMB_BY_RANGE:
		return kind == PLUMB_FRAME_RANGE;
	case PLUMB_BY_PYTHON:
		return kind == PLUMB_FRAME_PYTHON;
	case PLUMB_BY_LINE: /* a built-in function has none: the line that calls it counts */
		if (is_native(kind))
			return g->native_lines && g->profile->frames[frame].source_line &&
			       (!user || user[frame]);
		return kind == PLUMB_FRAME_PYTHON &&
		       (g->profile->frames[frame].file != PLUMB_NONE ||
		        g->profile->frames[frame].line);
	case PLUMB_BY_USER_LINE:
		return user && user[frame];
	case PLUMB_BY_COLLECTIVE:
		return kind == PLUMB_FRAME_COLLECTIVE;
	case PLUMB_BY_MODULE:
		return kind == PLUMB_FRAME_MODULE;
	case PLUMB_BY_NATIVE:
		return is_native(kind);
	case PLUMB_BY_LIBRARY:
		return kind == PLUMB_FRAME_NATIVE;
	case PLUMB_BY_THREAD:
	case PLUMB_BY_PROCESS:
	case PLUMB_BY_RANK:
	case PLUMB_BY_PHASE:
	case PLUMB_BY_SHAPE:
	default:
		break;
	}
	return false;
}

/* What of a frame's identity makes its row. */
static struct plumb_frame
row_key(enum plumb_group_by by, const struct plumb_frame *frame)
{
	struct plumb_frame key = *frame;

	key.display = PLUMB_NONE;
	if (by == PLUMB_BY_PYTHON || by == PLUMB_BY_MODULE)
		key.line = 0;
	if (by == PLUMB_BY_LINE || by == PLUMB_BY_USER_LINE) {
		bool native = is_native(key.kind);
		if (native) { /* its file and line are those of its object */
			key.kind = PLUMB_FRAME_NATIVE;
			key.line = key.source_line;
			key.file = key.line ? key.source_file : key.file;
		}
		if (frame->kind == PLUMB_FRAME_PYTHON || (native && key.line))
			key.name = PLUMB_NONE;
	}
	if (by == PLUMB_BY_NATIVE || by == PLUMB_BY_LIBRARY)
		key.line = 0;
	if (by == PLUMB_BY_NATIVE && frame->kind == PLUMB_FRAME_INLINE)
		key.file =
			PLUMB_NONE; /* of its source, which its calls' lines may name differently */
	if (by == PLUMB_BY_LIBRARY)
		key.name = PLUMB_NONE;
	return key;
}

static bool
same_key(const struct plumb_frame *a, const struct plumb_frame *b)
{
	return a->kind == b->kind && a->name == b->name && a->file == b->file && a->line == b->line;
}

static uint32_t
row_of(struct plumb_grouping *g, struct plumb_map *map, uint32_t frame)
{
	struct plumb_frame key = row_key(g->by, &g->profile->frames[frame]);
	uint64_t hash = plumb_hash_mix(plumb_hash_mix(key.name, key.file), key.line);
	struct plumb_map_cursor at;
	struct plumb_group_row *row;

	for (uint32_t r = plumb_map_first(map, hash, &at); r != PLUMB_MAP_NONE;
	     r = plumb_map_next(map, &at)) {
		struct plumb_frame other;

		other = row_key(g->by, &g->profile->frames[g->rows.items[r].frame]);
		if (same_key(&key, &other))
			return r;
	}
	row = plumb_vec_add(&g->rows);
	if (!row || plumb_map_add(map, hash, g->rows.count - 1) < 0)
		return PLUMB_NONE;
	*row = blank_row;
	row->kind = key.kind;
	row->frame = frame;
	row->line = key.line;
	return g->rows.count - 1;
}

static bool
make_rows(struct plumb_grouping *g, const unsigned char *user, uint32_t *row_of_frame)
{
	struct plumb_map map = { 0 };
	bool ok = true;

	for (uint32_t f = 0; ok && f < g->profile->frames_count; f++) {
		row_of_frame[f] = PLUMB_NONE;
		if (!makes_row(g, f, user))
			continue;
		row_of_frame[f] = row_of(g, &map, f);
		ok = row_of_frame[f] != PLUMB_NONE;
	}
	plumb_map_free(&map);
	return ok;
}

/* ---- rows of where it happened ---- */

static uint32_t
add_place(struct plumb_grouping *g, uint32_t track, uint32_t process, int64_t rank)
{
	struct plumb_group_row *row = plumb_vec_add(&g->rows);

	if (!row)
		return PLUMB_NONE;
	*row = blank_row;
	row->track = track;
	row->process = process;
	row->rank = rank;
	return g->rows.count - 1;
}

static uint32_t
row_of_rank(const struct plumb_grouping *g, int64_t rank)
{
	for (uint32_t r = 0; r < g->rows.count; r++)
		if (g->rows.items[r].rank == rank)
			return r;
	return PLUMB_NONE;
}

/* Rows for all processes, or all ranks. */
static bool
make_process_rows(struct plumb_grouping *g)
{
	const struct plumb_profile *p = g->profile;

	for (uint32_t i = 0; i < p->processes_count; i++) {
		int64_t rank = p->processes[i].rank;
		if (g->by == PLUMB_BY_PROCESS &&
		    add_place(g, PLUMB_NONE, i, PLUMB_UNKNOWN) == PLUMB_NONE)
			return false;
		if (g->by == PLUMB_BY_RANK && rank != PLUMB_UNKNOWN &&
		    row_of_rank(g, rank) == PLUMB_NONE &&
		    add_place(g, PLUMB_NONE, PLUMB_NONE, rank) == PLUMB_NONE)
			return false;
	}
	return true;
}

static uint32_t
place_of(const struct plumb_grouping *g, uint32_t track)
{
	const struct plumb_profile *p = g->profile;
	uint32_t process = p->tracks[track].process;

	if (g->by == PLUMB_BY_THREAD)
		return track;
	if (process >= p->processes_count)
		return PLUMB_NONE;
	if (g->by == PLUMB_BY_PROCESS)
		return process;
	return p->processes[process].rank == PLUMB_UNKNOWN
	               ? PLUMB_NONE
	               : row_of_rank(g, p->processes[process].rank);
}

static bool
make_places(struct plumb_grouping *g)
{
	uint32_t count = g->profile->tracks_count;

	g->place = calloc(count + 1u, sizeof *g->place);
	if (!g->place || (g->by != PLUMB_BY_THREAD && !make_process_rows(g)))
		return false;
	for (uint32_t t = 0; t < count; t++) {
		if (g->by == PLUMB_BY_THREAD &&
		    add_place(g, t, PLUMB_NONE, PLUMB_UNKNOWN) == PLUMB_NONE)
			return false;
		g->place[t] = place_of(g, t);
	}
	return true;
}

/* The row of a value where rows are where it happened, or PLUMB_NONE. */
static uint32_t
place_of_value(const struct plumb_grouping *g, const struct plumb_value *value)
{
	return value->track < g->profile->tracks_count ? g->place[value->track] : PLUMB_NONE;
}

/* ---- phases and shapes ---- */

/* Every phase is a row, so that rows have the same order everywhere; those without values say
 * so. */
static bool
make_phase_rows(struct plumb_grouping *g)
{
	unsigned char *phases = plumb_phases(g->profile);

	for (uint32_t i = 0; phases && i < PLUMB_PHASES; i++) {
		struct plumb_group_row *row = plumb_vec_add(&g->rows);

		if (!row) {
			free(phases);
			return false;
		}
		*row = blank_row;
		row->phase = i;
	}
	for (uint32_t c = 0; phases && c < g->profile->contexts_count; c++)
		g->owner[c] = phases[c];
	free(phases);
	return phases != NULL;
}

/* A row for each (name of an operator, shapes). */
static bool
make_shape_rows(struct plumb_grouping *g)
{
	const struct plumb_profile *p = g->profile;
	struct plumb_map map = { 0 };
	bool ok = true;

	g->row_of_variant = calloc(p->variants_count + 1u, sizeof *g->row_of_variant);
	ok = g->row_of_variant != NULL;
	for (uint32_t i = 0; ok && i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];
		uint32_t frame = p->contexts[v->context].frame, name = p->frames[frame].name;
		uint64_t hash = plumb_hash_mix(name, v->shapes);
		struct plumb_map_cursor at;
		uint32_t r;

		g->row_of_variant[i] = PLUMB_NONE;
		if (v->shapes == PLUMB_NONE || p->frames[frame].kind != PLUMB_FRAME_OPERATOR)
			continue;
		for (r = plumb_map_first(&map, hash, &at); r != PLUMB_MAP_NONE;
		     r = plumb_map_next(&map, &at))
			if (g->rows.items[r].shapes == v->shapes &&
			    p->frames[g->rows.items[r].frame].name == name)
				break;
		if (r == PLUMB_MAP_NONE) {
			struct plumb_group_row *row = plumb_vec_add(&g->rows);

			r = g->rows.count - 1;
			ok = row && plumb_map_add(&map, hash, r) >= 0;
			if (ok) {
				*row = blank_row;
				row->kind = PLUMB_FRAME_OPERATOR;
				row->frame = frame;
				row->shapes = v->shapes;
			}
		}
		g->row_of_variant[i] = r;
	}
	plumb_map_free(&map);
	return ok;
}

/* Gives each module the shapes that its calls have most often. */
static bool
find_outputs(struct plumb_grouping *g)
{
	const struct plumb_profile *p = g->profile;
	uint64_t *most = calloc(g->rows.count + 1u, sizeof *most);

	for (uint32_t i = 0; most && i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];
		uint32_t row = g->owner[v->context];

		if (v->shapes == PLUMB_NONE || row >= g->rows.count || v->count <= most[row] ||
		    plumb_context_frame(p, v->context)->kind != PLUMB_FRAME_MODULE)
			continue;
		most[row] = v->count;
		g->rows.items[row].shapes = v->shapes;
	}
	free(most);
	return most != NULL;
}

/* FUSED: by context the line that compiled code was made from, which counts instead of where it
 * lies. */
static uint32_t
row_of_context(const struct plumb_profile *p, const uint32_t *row_of_frame, const uint32_t *fused,
               uint32_t context)
{
	return row_of_frame[fused && fused[context] != PLUMB_NONE ? fused[context]
	                                                          : p->contexts[context].frame];
}

/* Walks the contexts in preorder with the rows that are open above each. */
static bool
assign_rows(struct plumb_grouping *g, const uint32_t *row_of_frame, const uint32_t *fused)
{
	const struct plumb_profile *p = g->profile;
	uint32_t *open = calloc(g->rows.count + 1u, sizeof *open); /* by row: how many times */
	PLUMB_VEC(uint32_t) path = { 0 };                          /* open contexts with a row */
	bool ok = open != NULL;

	for (uint32_t c = 0; ok && c < p->contexts_count; c++) {
		uint32_t row = row_of_context(p, row_of_frame, fused, c);

		while (path.count && p->contexts[path.items[path.count - 1]].last < c) {
			uint32_t closed = path.items[--path.count];
			open[row_of_context(p, row_of_frame, fused, closed)]--;
		}
		g->entry[c] = PLUMB_NONE;
		g->owner[c] = row;
		if (row == PLUMB_NONE) {
			if (c)
				g->owner[c] = g->owner[p->contexts[c].parent];
			continue;
		}
		if (!open[row]++)
			g->entry[c] = row;
		uint32_t *top = plumb_vec_add(&path);
		ok = top != NULL;
		if (ok)
			*top = c;
	}
	plumb_vec_free(&path);
	free(open);
	return ok;
}

struct plumb_grouping *
plumb_grouping_new(const struct plumb_profile *profile, enum plumb_group_by by,
                   const unsigned char *user)
{
	struct plumb_grouping *g = calloc(1, sizeof *g);
	uint32_t *row_of_frame, *fused = NULL;
	bool ok;

	if (!g)
		return NULL;
	g->profile = profile;
	g->by = by;
	g->native_lines = by == PLUMB_BY_LINE && !has_python(profile);
	if (by == PLUMB_BY_THREAD || by == PLUMB_BY_PROCESS || by == PLUMB_BY_RANK ||
	    by == PLUMB_BY_SHAPE) {
		if (by == PLUMB_BY_SHAPE ? make_shape_rows(g) : make_places(g))
			return g;
		plumb_grouping_free(g);
		return NULL;
	}
	row_of_frame = calloc(profile->frames_count + 1u, sizeof *row_of_frame);
	g->owner = calloc(profile->contexts_count + 1u, sizeof *g->owner);
	g->entry = calloc(profile->contexts_count + 1u, sizeof *g->entry);
	ok = row_of_frame && g->owner && g->entry;
	if (by == PLUMB_BY_LINE || by == PLUMB_BY_USER_LINE) {
		fused = plumb_fused_lines(profile, by == PLUMB_BY_USER_LINE ? user : NULL);
		ok = ok && fused;
	}
	if (ok && by == PLUMB_BY_PHASE)
		ok = make_phase_rows(g);
	else if (ok)
		ok = make_rows(g, user, row_of_frame) && assign_rows(g, row_of_frame, fused);
	if (ok && by == PLUMB_BY_MODULE)
		ok = find_outputs(g);
	free(row_of_frame);
	free(fused);
	if (ok)
		return g;
	plumb_grouping_free(g);
	return NULL;
}

struct plumb_grouping *
plumb_grouping_places(const struct plumb_profile *profile, const uint32_t *place_of)
{
	struct plumb_grouping *g = calloc(1, sizeof *g);
	struct plumb_map map = { 0 };
	bool ok;

	if (!g)
		return NULL;
	*g = (struct plumb_grouping){ .profile = profile,
		                      .by = PLUMB_BY_USER_LINE,
		                      .places = true,
		                      .owner = calloc(profile->contexts_count + 1u,
		                                      sizeof *g->owner) };
	ok = g->owner != NULL;
	for (uint32_t c = 0; ok && c < profile->contexts_count; c++) {
		g->owner[c] = place_of[c] == PLUMB_NONE ? PLUMB_NONE : row_of(g, &map, place_of[c]);
		ok = place_of[c] == PLUMB_NONE || g->owner[c] != PLUMB_NONE;
	}
	plumb_map_free(&map);
	if (ok)
		return g;
	plumb_grouping_free(g);
	return NULL;
}

void
plumb_grouping_free(struct plumb_grouping *grouping)
{
	if (!grouping)
		return;
	plumb_vec_free(&grouping->rows);
	free(grouping->owner);
	free(grouping->entry);
	free(grouping->place);
	free(grouping->row_of_variant);
	free(grouping);
}

uint32_t
plumb_grouping_count(const struct plumb_grouping *grouping)
{
	return grouping->rows.count;
}

const struct plumb_group_row *
plumb_grouping_rows(const struct plumb_grouping *grouping)
{
	return grouping->rows.items;
}

uint32_t
plumb_grouping_owner(const struct plumb_grouping *grouping, uint32_t context)
{
	return grouping->owner[context];
}

/* ---- values ---- */

static void
merge_value(struct plumb_stat *stat, const struct plumb_value *value)
{
	struct plumb_stat other = plumb_value_stat(value);

	if (stat)
		plumb_stat_merge(stat, &other);
}

static void
clear_stats(struct plumb_stat *stats, uint32_t count)
{
	if (stats && count)
		memset(stats, 0, count * sizeof *stats);
}

/* What a variant says of METRIC. Its deviation is not known. */
static struct plumb_stat
variant_stat(const struct plumb_variant *v, uint32_t metric)
{
	struct plumb_stat stat = { 0 };

	if (metric == PLUMB_METRIC_OP_CALLS)
		stat = (struct plumb_stat){ (int64_t)v->count, v->count, 1, 1, 1, 0 };
	else if (metric == PLUMB_METRIC_OP_TIME && v->count)
		stat = (struct plumb_stat){
			v->time, v->count, v->min, v->max, (double)v->time / (double)v->count, NAN
		};
	return stat;
}

/* A context with shapes has all of its time and calls in them; the rest is outside. */
static bool
shape_values(const struct plumb_grouping *g, uint32_t metric, struct plumb_stat *exclusive,
             struct plumb_stat *inclusive, struct plumb_stat *outside)
{
	bool known = metric == PLUMB_METRIC_OP_TIME || metric == PLUMB_METRIC_OP_CALLS;
	unsigned char *shaped = calloc(g->profile->contexts_count + 1u, 1);

	if (!shaped)
		return false;
	for (uint32_t i = 0; i < g->profile->variants_count; i++) {
		struct plumb_stat stat = variant_stat(&g->profile->variants[i], metric);

		if (g->row_of_variant[i] == PLUMB_NONE)
			continue;
		shaped[g->profile->variants[i].context] = known;
		if (exclusive)
			plumb_stat_merge(&exclusive[g->row_of_variant[i]], &stat);
		if (inclusive)
			plumb_stat_merge(&inclusive[g->row_of_variant[i]], &stat);
	}
	for (uint32_t i = 0; i < g->profile->values_count; i++)
		if (g->profile->values[i].metric == metric &&
		    !shaped[g->profile->values[i].context])
			merge_value(outside, &g->profile->values[i]);
	free(shaped);
	return true;
}

int
plumb_grouping_values(const struct plumb_grouping *g, uint32_t metric, struct plumb_stat *exclusive,
                      struct plumb_stat *inclusive, struct plumb_stat *outside)
{
	const struct plumb_profile *p = g->profile;
	bool call = plumb_metric_aggregation(metric) == PLUMB_CALL;
	struct plumb_stat *whole;

	if (g->by == PLUMB_BY_SHAPE) {
		clear_stats(exclusive, g->rows.count);
		clear_stats(inclusive, g->rows.count);
		clear_stats(outside, 1);
		return shape_values(g, metric, exclusive, inclusive, outside) ? 0 : PLUMB_ESYSTEM;
	}
	clear_stats(exclusive, g->rows.count);
	clear_stats(inclusive, g->rows.count);
	clear_stats(outside, 1);
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t row;

		if (v->metric != metric)
			continue;
		row = g->place ? place_of_value(g, v) : g->owner[v->context];
		if (row >= g->rows.count) {
			merge_value(outside, v);
			continue;
		}
		merge_value(exclusive ? &exclusive[row] : NULL, v);
		if (is_flat(g) && !call)
			merge_value(inclusive ? &inclusive[row] : NULL, v);
	}
	if (is_flat(g) || !inclusive || call)
		return 0;
	whole = calloc(p->contexts_count + 1u, sizeof *whole);
	if (!whole)
		return PLUMB_ESYSTEM;
	plumb_inclusive(p, metric, PLUMB_NONE, NULL, whole);
	for (uint32_t c = 0; c < p->contexts_count; c++)
		if (g->entry[c] != PLUMB_NONE)
			plumb_stat_merge(&inclusive[g->entry[c]], &whole[c]);
	free(whole);
	return 0;
}

/* ---- the person's own code ---- */

uint32_t *
plumb_user_contexts(const struct plumb_profile *profile, const unsigned char *user)
{
	uint32_t *user_of = plumb_fused_lines(profile, user);

	for (uint32_t c = 0; user_of && c < profile->contexts_count; c++) {
		uint32_t frame = profile->contexts[c].frame;

		if (user_of[c] != PLUMB_NONE)
			continue; /* the line that it was compiled from */
		if (user[frame])
			user_of[c] = frame;
		else
			user_of[c] = c ? user_of[profile->contexts[c].parent] : PLUMB_NONE;
	}
	return user_of;
}

struct vote {
	uint32_t row, frame;
	uint32_t order; /* the first context that gave it */
	int64_t weight;
};

typedef PLUMB_VEC(struct vote) votes;

static bool
cast_vote(votes *list, uint32_t row, uint32_t frame, uint32_t order, int64_t weight)
{
	struct vote *vote = plumb_vec_add(list);

	if (vote)
		*vote = (struct vote){ row, frame, order, weight };
	return vote != NULL;
}

static int
by_row_and_frame(const void *left, const void *right)
{
	const struct vote *a = left, *b = right;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->frame != b->frame)
		return a->frame < b->frame ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static bool
outweighs(const struct vote *a, const struct vote *b)
{
	if (a->weight != b->weight)
		return a->weight > b->weight;
	if ((a->frame == PLUMB_NONE) != (b->frame == PLUMB_NONE))
		return b->frame == PLUMB_NONE;
	return a->order < b->order;
}

/* Adds up the votes of each (row, frame) and gives each row its best. */
static void
count_votes(votes *list, uint32_t *frames)
{
	struct vote best = { .row = PLUMB_NONE };

	if (list->count)
		qsort(list->items, list->count, sizeof *list->items, by_row_and_frame);
	for (uint32_t i = 0; i < list->count;) {
		struct vote sum = list->items[i++];

		while (i < list->count && list->items[i].row == sum.row &&
		       list->items[i].frame == sum.frame)
			if (__builtin_add_overflow(sum.weight, list->items[i++].weight,
			                           &sum.weight))
				sum.weight = INT64_MAX;
		if (best.row == sum.row && !outweighs(&sum, &best))
			continue;
		best = sum;
		frames[best.row] = best.frame;
	}
}

static bool
collect_votes(const struct plumb_grouping *g, uint32_t metric, const uint32_t *user_of, votes *list)
{
	const struct plumb_profile *p = g->profile;
	struct plumb_stat *whole;
	bool ok = true;

	if (g->place) {
		for (uint32_t i = 0; ok && i < p->values_count; i++) {
			const struct plumb_value *v = &p->values[i];
			uint32_t row = v->metric == metric ? place_of_value(g, v) : PLUMB_NONE;

			if (row != PLUMB_NONE)
				ok = cast_vote(list, row, user_of[v->context], v->context, v->sum);
		}
		return ok;
	}
	for (uint32_t i = 0; ok && g->by == PLUMB_BY_SHAPE && i < p->variants_count; i++) {
		const struct plumb_variant *v = &p->variants[i];

		if (g->row_of_variant[i] != PLUMB_NONE)
			ok = cast_vote(list, g->row_of_variant[i], user_of[v->context], v->context,
			               v->time);
	}
	for (uint32_t i = 0; ok && (g->by == PLUMB_BY_PHASE || g->places) && i < p->values_count;
	     i++) {
		const struct plumb_value *v = &p->values[i];
		uint32_t row = g->owner[v->context];

		if (v->metric == metric && row < g->rows.count)
			ok = cast_vote(list, row, user_of[v->context], v->context, v->sum);
	}
	if (is_flat(g))
		return ok;
	whole = calloc(p->contexts_count + 1u, sizeof *whole);
	if (!whole)
		return false;
	plumb_inclusive(p, metric, PLUMB_NONE, NULL, whole);
	for (uint32_t c = 0; ok && c < p->contexts_count; c++)
		if (g->entry[c] != PLUMB_NONE)
			ok = cast_vote(list, g->entry[c], user_of[c], c,
			               plumb_stat_amount(metric, &whole[c]));
	free(whole);
	return ok;
}

int
plumb_grouping_user(const struct plumb_grouping *g, uint32_t metric, const uint32_t *user_of,
                    uint32_t *frames)
{
	votes list = { 0 };
	bool ok;

	for (uint32_t r = 0; r < g->rows.count; r++)
		frames[r] = PLUMB_NONE;
	ok = collect_votes(g, metric, user_of, &list);
	if (ok)
		count_votes(&list, frames);
	plumb_vec_free(&list);
	return ok ? 0 : PLUMB_ESYSTEM;
}

const char *const plumb_group_by_names[PLUMB_BY_COUNT] = {
	[PLUMB_BY_KERNEL] = "kernel",   [PLUMB_BY_OPERATOR] = "operator",
	[PLUMB_BY_MODULE] = "module",   [PLUMB_BY_RANGE] = "range",
	[PLUMB_BY_PYTHON] = "python",   [PLUMB_BY_LINE] = "line",
	[PLUMB_BY_NATIVE] = "native",   [PLUMB_BY_COLLECTIVE] = "collective",
	[PLUMB_BY_LIBRARY] = "library", [PLUMB_BY_PHASE] = "phase",
	[PLUMB_BY_SHAPE] = "shape",     [PLUMB_BY_THREAD] = "thread",
	[PLUMB_BY_PROCESS] = "process", [PLUMB_BY_RANK] = "rank",
	[PLUMB_BY_CONTEXT] = "context", [PLUMB_BY_MEMORY] = "memory",
};

uint32_t
plumb_group_by_name(const char *name)
{
	for (uint32_t by = 0; by < PLUMB_BY_COUNT; by++)
		if (plumb_group_by_names[by] && !strcmp(plumb_group_by_names[by], name))
			return by;
	return PLUMB_NONE;
}
