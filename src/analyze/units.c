/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze/units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

int
plumb_units_new(const struct plumb_study *study, struct plumb_units *units)
{
	const struct plumb_profile *p = study->profile;
	PLUMB_VEC(struct plumb_unit) made = { 0 };
	/* By context: the latest unit among its children, for lines of one function to join. */
	uint32_t *latest = calloc(p->contexts_count + 1u, sizeof *latest);
	uint32_t *of = calloc(p->contexts_count + 1u, sizeof *of);
	bool ok = latest && of;

	for (uint32_t c = 0; ok && c < p->contexts_count; c++) {
		uint32_t parent = p->contexts[c].parent, before;
		struct plumb_unit *unit;

		latest[c] = PLUMB_NONE;
		of[c] = c ? of[parent] : PLUMB_NONE;
		if (!c || !is_unit(study, c))
			continue;
		before = latest[parent];
		if (before != PLUMB_NONE && same_function(p, made.items[before].context, c)) {
			of[c] = before;
			continue;
		}
		unit = plumb_vec_add(&made);
		ok = unit != NULL;
		if (ok) {
			*unit = (struct plumb_unit){ of[parent], c };
			of[c] = latest[parent] = made.count - 1;
		}
	}
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
	uint32_t above = p->contexts[units->items[unit].context].parent;

	while (best && p->contexts[best].parent != above)
		best = p->contexts[best].parent;
	return best ? best : units->items[unit].context;
}

char *
plumb_units_title(const struct plumb_study *study, uint32_t context, char *text, size_t size)
{
	const struct plumb_profile *p = study->profile;
	uint32_t frame = p->contexts[context].frame;
	char name[420], line[420];

	plumb_study_name(study, frame, name, sizeof name);
	if (p->frames[frame].kind != PLUMB_FRAME_PYTHON)
		frame = study->user_of[context];
	if (frame == PLUMB_NONE)
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
	const char *name = plumb_text(p, frame->name), *file = plumb_text(p, frame->file);
	const char *slash = file ? strrchr(file, '/') : NULL;
	char place[PLUMB_FINDING_ID];

	plumb_finding_id(place, p, "unit", NULL, NULL, p->contexts[context].parent);
	plumb_draft_key(draft, "%s %s %s %s", place, plumb_frame_kind_names[frame->kind],
	                name ? name : "",
	                slash  ? slash + 1
	                : file ? file
	                       : "");
}
