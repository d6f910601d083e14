/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which calls of a context's variants lie in which window. Spans do not say which shapes they had.
 * But if all calls of a context, or a variant's first and last one, are in one window, all of the
 * variant is. What is left is that of the only other variant.
 */
#include <stdlib.h>

#include "analyze/windows_take.h"
#include "model/rows.h"

/* The window in which all calls of VARIANT are, or PLUMB_NONE. */
static uint32_t
window_of_all(const struct plumb_taking *t, const struct plumb_take_group *group,
              const struct plumb_variant *variant)
{
	const struct plumb_track *track =
		variant->track == PLUMB_NONE ? NULL : &t->profile->tracks[variant->track];
	bool host = track && track->kind == PLUMB_TRACK_THREAD;
	uint32_t window = PLUMB_NONE, windows = 0, first = 0, last = 0;

	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		windows += t->cells.items[i].length.count > 0;
		if (t->cells.items[i].length.count)
			window = t->cells.items[i].window;
	}
	if (windows == 1 || !track || (!variant->first_ns && !variant->last_ns) ||
	    (!host && t->cuts->processes[track->process].lead != variant->track))
		return windows == 1 ? window : PLUMB_NONE;
	window = plumb_windows_at(t->cuts, track->process, host, variant->first_ns, &first);
	plumb_windows_at(t->cuts, track->process, host, variant->last_ns, &last);
	return first == last ? window : PLUMB_NONE;
}

static bool
add_variant_row(struct plumb_taking *t, const struct plumb_variant *variant, uint32_t window,
                uint64_t count, int64_t time)
{
	struct plumb_window_variant *row =
		plumb_row_add(t->profile, &plumb_row_tables[PLUMB_TABLE_WINDOW_VARIANTS]);

	if (!row)
		return false;
	*row = (struct plumb_window_variant){ window, *variant };
	row->variant.count = count;
	row->variant.time = time;
	row->variant.min = row->variant.max = PLUMB_UNKNOWN;
	return true;
}

/* What CELL has of the variants [FIRST, END) that were not yet put into a window: of one. */
static struct plumb_stat
rest_of(const struct plumb_taking *t, const struct plumb_take_cell *cell, uint32_t first,
        uint32_t end)
{
	const struct plumb_profile *p = t->profile;
	bool host = p->variants[first].shapes != PLUMB_NONE;
	struct plumb_stat rest = host ? cell->other : cell->length;

	for (uint32_t i = first; i < end; i++) {
		if (t->variant_windows[i] != cell->window)
			continue;
		rest.count -= p->variants[i].count;
		rest.sum -= p->variants[i].time;
	}
	return rest;
}

/* The only variant of those [FIRST, END) that is in several windows has what the others do not
 * have. */
static bool
add_rest(struct plumb_taking *t, const struct plumb_take_group *group, uint32_t first, uint32_t end)
{
	const struct plumb_variant *variant = NULL;
	struct plumb_stat sum = { 0 };

	for (uint32_t i = first; i < end; i++) {
		if (t->variant_windows[i] != PLUMB_NONE)
			continue;
		if (variant)
			return true;
		variant = &t->profile->variants[i];
	}
	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		struct plumb_stat rest = rest_of(t, &t->cells.items[i], first, end);
		sum.count += rest.count;
		sum.sum += rest.sum;
	}
	if (!variant || sum.count != variant->count || sum.sum != variant->time)
		return true;
	for (uint32_t i = group->cells; i != PLUMB_NONE; i = t->cells.items[i].next) {
		const struct plumb_take_cell *cell = &t->cells.items[i];
		struct plumb_stat rest = rest_of(t, cell, first, end);
		if (rest.count && !add_variant_row(t, variant, cell->window, rest.count, rest.sum))
			return false;
	}
	return true;
}

/* Variants [FIRST, END) of one context and track. */
static bool
add_variants_of(struct plumb_taking *t, uint32_t first, uint32_t end)
{
	const struct plumb_variant *v = &t->profile->variants[first];
	const struct plumb_take_group *group =
		plumb_take_find(t, v->context, v->track, (struct plumb_ends){ 0, 0 });

	for (uint32_t i = first; i < end; i++) {
		v = &t->profile->variants[i];
		t->variant_windows[i] = window_of_all(t, group, v);
		if (t->variant_windows[i] != PLUMB_NONE &&
		    !add_variant_row(t, v, t->variant_windows[i], v->count, v->time))
			return false;
	}
	return add_rest(t, group, first, end);
}

bool
plumb_take_variants(struct plumb_taking *t)
{
	const struct plumb_profile *p = t->profile;
	bool ok;

	t->variant_windows = malloc(((size_t)p->variants_count + 1) * sizeof *t->variant_windows);
	ok = t->variant_windows;
	for (uint32_t first = 0, end; ok && first < p->variants_count; first = end) {
		for (end = first + 1; end < p->variants_count; end++)
			if (p->variants[end].context != p->variants[first].context ||
			    p->variants[end].track != p->variants[first].track)
				break;
		ok = add_variants_of(t, first, end);
	}
	free(t->variant_windows);
	return ok &&
	       plumb_row_order(t->profile, &plumb_row_tables[PLUMB_TABLE_WINDOW_VARIANTS]) == 0;
}
