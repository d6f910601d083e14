/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/group_private.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/phase.h"
#include "base/hash.h"
#include "base/map.h"
#include "model/fused.h"

static const struct plumb_group_row blank_row = { .kind = PLUMB_NONE,
	                                          .frame = PLUMB_NONE,
	                                          .track = PLUMB_NONE,
	                                          .process = PLUMB_NONE,
	                                          .rank = PLUMB_UNKNOWN,
	                                          .phase = PLUMB_NONE,
	                                          .shapes = PLUMB_NONE };

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

/* Frames of contexts below kernels, by frame; NULL: none, or no memory. */
static unsigned char *
find_below_kernels(const struct plumb_profile *p)
{
	unsigned char *found = calloc(p->frames_count + 1u, 1);
	uint32_t last = 0;

	for (uint32_t c = 1; found && c < p->contexts_count; c++) {
		const struct plumb_context *context = &p->contexts[c];
		if (c <= last)
			found[context->frame] = 1;
		else if (p->frames[context->frame].kind == PLUMB_FRAME_KERNEL)
			last = context->last;
	}
	return found;
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
	case PLUMB_BY_LINE: /* a built-in function has no line: the line that calls it counts */
		if (is_native(kind))
			return g->native_lines && g->profile->frames[frame].source_line &&
			       (!user || user[frame]);
		if (kind == PLUMB_FRAME_LINE) /* of GPU code, where stalls were sampled */
			return g->below_kernels && g->below_kernels[frame];
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

/* The part of a frame's identity that makes its row. */
static struct plumb_frame
row_key(enum plumb_group_by by, const struct plumb_frame *frame)
{
	struct plumb_frame key = *frame;

	key.display = PLUMB_NONE;
	if (by == PLUMB_BY_PYTHON || by == PLUMB_BY_MODULE)
		key.line = 0;
	if (by == PLUMB_BY_LINE || by == PLUMB_BY_USER_LINE) {
		bool native = is_native(key.kind);
		if (native) { /* its own file and line say where it is in its object */
			key.kind = PLUMB_FRAME_NATIVE;
			key.line = key.source_line;
			key.file = key.line ? key.source_file : key.file;
		}
		if (frame->kind == PLUMB_FRAME_PYTHON || (native && key.line))
			key.name = PLUMB_NONE;
	}
	if (by == PLUMB_BY_NATIVE || by == PLUMB_BY_LIBRARY)
		key.line = 0;
	/* The file is that of the source. The lines of its calls may name it differently. */
	if (by == PLUMB_BY_NATIVE && frame->kind == PLUMB_FRAME_INLINE)
		key.file = PLUMB_NONE;
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

/* ---- phases and shapes ---- */

/* Every phase gets a row, so the order of rows is the same everywhere. A phase without values says
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

/* FUSED: by context, the line that compiled code was made from. This line counts, and not the place
 * of the compiled code. */
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
	PLUMB_VEC(uint32_t) path = { 0 }; /* contexts around this one that have a row */
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

/* A grouping without rows; NULL: no memory. */
static struct plumb_grouping *
make_grouping(const struct plumb_profile *profile, enum plumb_group_by by)
{
	struct plumb_grouping *g = calloc(1, sizeof *g);

	if (!g || !(g->whole = calloc(1, sizeof *g->whole))) {
		free(g);
		return NULL;
	}
	g->profile = profile;
	g->by = by;
	return g;
}

struct plumb_grouping *
plumb_grouping_new(const struct plumb_profile *profile, enum plumb_group_by by,
                   const unsigned char *user)
{
	struct plumb_grouping *g = make_grouping(profile, by);
	uint32_t *row_of_frame, *fused = NULL;
	bool ok;

	if (!g)
		return NULL;
	g->native_lines = by == PLUMB_BY_LINE && !has_python(profile);
	g->below_kernels = by == PLUMB_BY_LINE ? find_below_kernels(profile) : NULL;
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
	struct plumb_grouping *g = make_grouping(profile, PLUMB_BY_USER_LINE);
	struct plumb_map map = { 0 };
	bool ok;

	if (!g)
		return NULL;
	g->places = true;
	g->owner = calloc(profile->contexts_count + 1u, sizeof *g->owner);
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
	free(grouping->below_kernels);
	free(grouping->whole->stats);
	free(grouping->whole);
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
