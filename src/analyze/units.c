/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/vec.h"

static bool
is_unit(const struct plumb_study *study, uint32_t context)
{
	const struct plumb_context *c = &study->profile->contexts[context];

	switch (study->profile->frames[c->frame].kind) {
	case PLUMB_FRAME_PYTHON:
		return study->user[c->frame];
	case PLUMB_FRAME_MODULE:
	case PLUMB_FRAME_RANGE:
		return true;
	case PLUMB_FRAME_OPERATOR:
		return study->user_of[context] == PLUMB_NONE;
	default:
		return false;
	}
}

static bool
same_function(const struct plumb_profile *p, uint32_t a, uint32_t b)
{
	const struct plumb_frame *x = plumb_context_frame(p, a), *y = plumb_context_frame(p, b);

	return x->kind == PLUMB_FRAME_PYTHON && y->kind == PLUMB_FRAME_PYTHON &&
	       x->name == y->name && x->file == y->file &&
	       p->contexts[a].flags == p->contexts[b].flags;
}

/* The number of the module that stands for that of CONTEXT, or PLUMB_NONE. */
static uint32_t
folded_module(const struct plumb_study *study, uint32_t context)
{
	const struct plumb_division *d = study->division;
	uint32_t module = d->module_of[study->profile->contexts[context].frame];

	return module == PLUMB_NONE || d->folds.count[d->folds.first[module]] < 2
	               ? PLUMB_NONE
	               : d->folds.first[module];
}

/* The unit in PARENT that CONTEXT's module is folded with, or PLUMB_NONE. */
static uint32_t
find_folded(const struct plumb_study *study, const struct plumb_map *map,
            const struct plumb_unit *items, uint32_t parent, uint32_t context)
{
	uint32_t module = folded_module(study, context), flags;
	struct plumb_map_cursor at;

	flags = study->profile->contexts[context].flags;
	for (uint32_t u = plumb_map_first(map, plumb_hash_mix(parent, module), &at);
	     u != PLUMB_MAP_NONE; u = plumb_map_next(map, &at))
		if (items[u].parent == parent && module == folded_module(study, items[u].context) &&
		    study->profile->contexts[items[u].context].flags == flags)
			return u;
	return PLUMB_NONE;
}

int
plumb_units_new(const struct plumb_study *study, struct plumb_units *units)
{
	const struct plumb_profile *p = study->profile;
	PLUMB_VEC(struct plumb_unit) made = { 0 };
	/* By context: the latest unit among its children, for lines of one function to join. */
	uint32_t *latest = calloc(p->contexts_count + 1u, sizeof *latest);
	uint32_t *of = calloc(p->contexts_count + 1u, sizeof *of);
	struct plumb_map folded = { 0 };
	bool ok = latest && of;

	for (uint32_t c = 0; ok && c < p->contexts_count; c++) {
		uint32_t parent = p->contexts[c].parent, before;
		struct plumb_unit *unit;

		latest[c] = PLUMB_NONE;
		of[c] = c ? of[parent] : PLUMB_NONE;
		if (!c || !is_unit(study, c))
			continue;
		if (folded_module(study, c) != PLUMB_NONE) {
			of[c] = find_folded(study, &folded, made.items, of[parent], c);
			if (of[c] != PLUMB_NONE)
				continue;
			ok = plumb_map_add(&folded,
			                   plumb_hash_mix(of[parent], folded_module(study, c)),
			                   made.count) >= 0;
		}
		before = latest[parent];
		if (before != PLUMB_NONE && same_function(p, made.items[before].context, c)) {
			of[c] = before;
			continue;
		}
		unit = ok ? plumb_vec_add(&made) : NULL;
		ok = unit != NULL;
		if (ok) {
			*unit = (struct plumb_unit){ of[parent], c };
			of[c] = latest[parent] = made.count - 1;
		}
	}
	plumb_map_free(&folded);
	free(latest);
	*units = (struct plumb_units){ of, made.items, made.count };
	if (ok)
		return 0;
	plumb_units_free(units);
	return PLUMB_ESYSTEM;
}

void
plumb_units_free(struct plumb_units *units)
{
	free(units->of);
	free(units->items);
	*units = (struct plumb_units){ 0 };
}

uint32_t
plumb_units_member(const struct plumb_study *study, const struct plumb_units *units, uint32_t unit,
                   uint32_t best)
{
	const struct plumb_profile *p = study->profile;
	uint32_t member = PLUMB_NONE;

	for (uint32_t c = best; c; c = p->contexts[c].parent)
		if (units->of[c] == unit)
			member = c;
	return member == PLUMB_NONE ? units->items[unit].context : member;
}

char *
plumb_units_title(const struct plumb_study *study, uint32_t context, char *text, size_t size)
{
	const struct plumb_profile *p = study->profile;
	uint32_t frame = p->contexts[context].frame;
	char name[420], line[420];

	if (p->frames[frame].kind == PLUMB_FRAME_MODULE)
		plumb_study_line(study, frame, name, sizeof name);
	else
		plumb_study_name(study, frame, name, sizeof name);
	if (p->frames[frame].kind != PLUMB_FRAME_PYTHON)
		frame = study->place_of[context];
	/* A module that divides a line says more than the line. */
	if (frame == PLUMB_NONE || p->frames[frame].kind == PLUMB_FRAME_MODULE)
		snprintf(text, size, "%s", name);
	else
		snprintf(text, size, "%s (%s)", name,
		         plumb_study_line(study, frame, line, sizeof line));
	return text;
}

void
plumb_units_key(const struct plumb_study *study, const struct plumb_units *units, uint32_t unit,
                struct plumb_draft *draft)
{
	const struct plumb_profile *p = study->profile;
	uint32_t context = units->items[unit].context;
	const struct plumb_frame *frame = plumb_context_frame(p, context);
	const char *name = folded_module(study, context) == PLUMB_NONE
	                           ? plumb_text(p, frame->name)
	                           : study->division->folds.label[folded_module(study, context)];
	const char *file = plumb_text(p, frame->file);
	const char *slash = file ? strrchr(file, '/') : NULL;
	char place[PLUMB_FINDING_ID];

	plumb_finding_id(place, p, "unit", NULL, NULL, p->contexts[context].parent);
	plumb_draft_key(draft, "%s %s %s %s", place, plumb_frame_kind_names[frame->kind],
	                name ? name : "",
	                slash  ? slash + 1
	                : file ? file
	                       : "");
}
