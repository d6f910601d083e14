/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boxes in a range. Levels come one after another: below each box that is wide enough to see
 * what is in it, its children. Of those, the first in the range is found by binary search. Boxes
 * that are narrower than a pixel are put together until they fill one.
 */
#include <math.h>
#include <stdlib.h>

#include "base/search.h"
#include "base/vec.h"
#include "model/metric.h"
#include "view/flame_private.h"
#include "view/report.h"

struct walk {
	struct plumb_flame *flame;
	struct plumb_answer *answer;
	bool searched;
	double from, to, pixel; /* as masses */
	double start, width;    /* of the root */
	uint32_t root, depth;
	bool shows;                       /* this depth */
	PLUMB_VEC(uint32_t) open, opened; /* nodes of this depth's parents, and of this depth */
	bool failed;
};

/* ---- labels ---- */

static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

const char *
plumb_flame_label(const struct plumb_flame *f, uint32_t node, char text[PLUMB_FLAME_LABEL_SIZE])
{
	uint32_t frame = f->frame[node];
	const struct plumb_profile *p;
	unsigned marks = f->marks[node];
	const char *mark = marks & PLUMB_CONTEXT_ACCUMULATION ? " [gradient accumulation]"
	                   : marks & PLUMB_CONTEXT_BACKWARD   ? " [backward]"
	                                                      : "";
	const char *name, *file = NULL;
	char where[300] = "";

	if (frame == PLUMB_FLAME_FORWARD_FRAME)
		return "forward";
	if (frame == PLUMB_FLAME_BACKWARD_FRAME)
		return "backward";
	p = plumb_flame_frame_owner(f, &frame);
	if (!p)
		return "all";
	/* Only where it begins, as exports have it. */
	if (f->parent[node] != PLUMB_NONE && f->marks[f->parent[node]] & marks)
		mark = "";
	name = plumb_frame_label(p, frame);
	if (p->frames[frame].kind == PLUMB_FRAME_PYTHON)
		file = plumb_text(p, p->frames[frame].file);
	if (file && *file && p->frames[frame].line)
		snprintf(where, sizeof where, " (%.250s:%u)", base_name(file),
		         p->frames[frame].line);
	if (!*where && !*mark)
		return name;
	snprintf(text, PLUMB_FLAME_LABEL_SIZE, "%.600s%s%s", name, where, mark);
	return text;
}

/* ---- one box ---- */

static unsigned
flags_of(const struct walk *w, uint32_t node)
{
	const struct plumb_flame *f = w->flame;

	return f->flags[node] | (w->searched ? f->search.flags[node] : 0u) |
	       (f->marks[node] & PLUMB_CONTEXT_BACKWARD ? PLUMB_FLAME_IS_BACKWARD : 0u) |
	       (f->marks[node] & PLUMB_CONTEXT_ACCUMULATION ? PLUMB_FLAME_IS_ACCUMULATION : 0u);
}

static double
part_of_root(const struct walk *w, double at)
{
	double part = (at - w->start) / w->width;

	return part < 0 ? 0 : part > 1 ? 1 : part;
}

static enum plumb_flame_layer
layer_of(const struct plumb_flame *f, uint32_t node)
{
	uint32_t frame = f->frame[node];
	const struct plumb_profile *p = plumb_flame_frame_owner(f, &frame);

	return p ? plumb_flame_layer_of(p->frames[frame].kind) : PLUMB_FLAME_OTHER;
}

/* Nodes [FIRST, END), which have the same parent or are in one box. */
static void
add_box(struct walk *w, uint32_t first, uint32_t end, uint32_t parent)
{
	const struct plumb_flame *f = w->flame;
	struct plumb_answer *a = w->answer;
	char text[PLUMB_FLAME_LABEL_SIZE];
	const char *label;
	uint32_t greatest = first;
	unsigned flags = 0;
	int64_t value = 0, before = 0;

	for (uint32_t n = first; n < end; n++) {
		if (f->width[n] > f->width[greatest])
			greatest = n;
		value = plumb_flame_sum(value, f->value[n]);
		if (f->before)
			before = plumb_flame_sum(before, f->before[n]);
		flags |= flags_of(w, n);
	}
	label = plumb_flame_label(f, greatest, text);
	plumb_answer_integer(a, greatest);
	plumb_answer_integer(a, parent == w->root ? PLUMB_UNKNOWN : (int64_t)parent);
	plumb_answer_integer(a, w->depth);
	plumb_answer_number(a, part_of_root(w, f->start[first]));
	plumb_answer_number(a, part_of_root(w, f->start[end - 1] + f->width[end - 1]));
	if (label == text)
		plumb_answer_copy(a, label);
	else
		plumb_answer_text(a, label);
	plumb_answer_integer(a, layer_of(f, greatest));
	plumb_answer_number(a, (double)value / f->sides[0].per);
	plumb_answer_number(a, (double)f->self[greatest] / f->sides[0].per);
	plumb_answer_integer(a, end - first);
	plumb_answer_integer(a, flags);
	plumb_answer_integer(a, f->frame[greatest] < plumb_flame_frames(f)
	                                ? (int64_t)f->frame[greatest]
	                                : PLUMB_UNKNOWN);
	if (!f->before)
		return;
	plumb_answer_number(a, (double)before / f->sides[1].per);
	plumb_answer_number(a, (double)f->before_self[greatest] / f->sides[1].per);
	plumb_answer_number(a, (double)value / f->sides[0].per - (double)before / f->sides[1].per);
}

/* ---- levels ---- */

static void
open_node(struct walk *w, uint32_t node)
{
	uint32_t *opened = plumb_vec_add(&w->opened);

	if (opened)
		*opened = node;
	w->failed |= !opened;
}

static double
end_of(const struct plumb_flame *f, uint32_t node)
{
	return f->start[node] + f->width[node];
}

/* The children of NODE that are in the range. */
static void
show_children(struct walk *w, uint32_t node)
{
	const struct plumb_flame *f = w->flame;
	uint32_t first = f->child[node], count = f->child[node + 1] - first, end;
	uint32_t at = first + plumb_search(i, count, end_of(f, first + i) <= w->from);

	for (; at < first + count && f->start[at] < w->to; at = end) {
		double until = f->start[at] + w->pixel;

		end = at + 1;
		if (f->width[at] >= w->pixel)
			open_node(w, at);
		else
			while (end < first + count && end_of(f, end) <= until)
				end++;
		if (w->shows)
			add_box(w, at, end, node);
	}
}

static void
show_levels(struct walk *w, const struct plumb_flame_range *range)
{
	open_node(w, w->root);
	for (w->depth = 0; w->opened.count && !w->failed; w->depth++) {
		uint32_t *spare = w->open.items, room = w->open.capacity;

		if (range->depths && w->depth >= range->depth &&
		    w->depth - range->depth >= range->depths)
			break;
		w->open.items = w->opened.items;
		w->open.count = w->opened.count;
		w->open.capacity = w->opened.capacity;
		w->opened.items = spare;
		w->opened.count = 0;
		w->opened.capacity = room;
		w->shows = w->depth >= range->depth;
		for (uint32_t i = 0; i < w->open.count; i++)
			show_children(w, w->open.items[i]);
	}
}

/* ---- answers ---- */

static bool
is_searched(const struct plumb_flame_range *range)
{
	return (range->search && *range->search) || (range->named && *range->named);
}

static int
check_range(struct plumb_flame *f, const struct plumb_flame_range *range, struct plumb_error *error)
{
	if (range->root >= f->count)
		return plumb_fail(error, PLUMB_EUSAGE, "the flame graph has no node %u",
		                  range->root);
	if (isnan(range->x0) || isnan(range->x1) || isnan(range->px) || range->px < 0)
		return plumb_fail(error, PLUMB_EUSAGE,
		                  "x0, x1 and px of a flame graph are numbers from 0");
	if (range->named && *range->named)
		return plumb_flame_find(f, range->named, true, error);
	return is_searched(range) ? plumb_flame_find(f, range->search, false, error) : 0;
}

static void
add_columns(const struct plumb_flame *f, struct plumb_answer *a)
{
	const enum plumb_answer_source measured = PLUMB_SOURCE_IS_MEASURED;
	const char *unit = plumb_profile_metric(f->profile, f->sides[0].metric).unit;

	plumb_answer_column(a, "node", NULL, measured);
	plumb_answer_column(a, "parent", NULL, measured);
	plumb_answer_column(a, "depth", NULL, measured);
	plumb_answer_column(a, "x0", NULL, measured);
	plumb_answer_column(a, "x1", NULL, measured);
	plumb_answer_column(a, "name", NULL, measured);
	plumb_answer_column(a, "layer", NULL, measured);
	plumb_answer_column(a, "value", unit, measured);
	plumb_answer_column(a, "self", unit, measured);
	plumb_answer_column(a, "many", NULL, measured);
	plumb_answer_column(a, "flags", NULL, measured);
	plumb_answer_column(a, "frame", NULL, measured);
	if (!f->before)
		return;
	plumb_answer_column(a, "before", unit, measured);
	plumb_answer_column(a, "before_self", unit, measured);
	plumb_answer_column(a, "change", unit, measured);
}

int
plumb_flame_boxes(struct plumb_flame *f, const struct plumb_flame_range *range,
                  struct plumb_answer *answer, struct plumb_error *error)
{
	struct walk w = { .flame = f, .answer = answer, .root = range->root };
	double x0 = range->x0 > 0 ? range->x0 : 0, x1 = range->x1 > 0 ? range->x1 : 1;
	int code = check_range(f, range, error);

	*answer = (struct plumb_answer){ .id = "flame",
		                         .title = plumb_flame_view_names[f->query.view] };
	if (code)
		return code;
	add_columns(f, answer);
	w.searched = is_searched(range);
	w.start = f->start[w.root];
	w.width = f->width[w.root];
	w.from = w.start + w.width * (x0 < 1 ? x0 : 1);
	w.to = w.start + w.width * (x1 < 1 ? x1 : 1);
	w.pixel = range->px > 0 && w.to > w.from ? (w.to - w.from) / range->px : 0;
	if (w.width > 0)
		show_levels(&w, range);
	plumb_vec_free(&w.open);
	plumb_vec_free(&w.opened);
	if (w.failed) {
		plumb_answer_free(answer);
		return plumb_fail_memory(error, "for the flame graph");
	}
	return plumb_answer_end(answer, error);
}

/* How many levels of nodes there are below NODE. */
static uint32_t
depth_below(const struct plumb_flame *f, uint32_t node)
{
	uint32_t first = node, end = node + 1, depth = 0;

	if (!node)
		return f->depths;
	for (; f->child[first] < f->child[end]; depth++) {
		first = f->child[first];
		end = f->child[end];
	}
	return depth;
}

/* The cells about the profile that it is compared with. */
static void
add_before(const struct plumb_flame *f, uint32_t root, bool searched, struct plumb_answer *a)
{
	double per = f->sides[1].per;
	bool is_before = f->query.width == PLUMB_FLAME_BEFORE;

	plumb_answer_number(a, (double)f->before[root] / per);
	plumb_answer_number(a, (double)f->before_self[root] / per);
	plumb_answer_number(a, searched ? (double)f->search.before[root] / per : (double)NAN);
	plumb_answer_number(a, (double)f->unseen / f->sides[is_before ? 0 : 1].per);
	plumb_answer_number(a, f->iterations[0]);
	plumb_answer_number(a, f->iterations[1]);
	plumb_answer_text(a, plumb_flame_width_names[f->query.width]);
}

int
plumb_flame_total(struct plumb_flame *f, const struct plumb_flame_range *range,
                  struct plumb_answer *a, struct plumb_error *error)
{
	const enum plumb_answer_source measured = PLUMB_SOURCE_IS_MEASURED;
	struct plumb_metric_info metric = plumb_profile_metric(f->profile, f->sides[0].metric);
	bool searched = is_searched(range);
	int code = check_range(f, range, error);

	*a = (struct plumb_answer){ .id = "flame.total", .title = "the root" };
	if (code)
		return code;
	plumb_answer_column(a, "value", metric.unit, measured);
	plumb_answer_column(a, "self", metric.unit, measured);
	plumb_answer_column(a, "unit", NULL, measured);
	plumb_answer_column(a, "metric", NULL, measured);
	plumb_answer_column(a, "matched", metric.unit, measured);
	plumb_answer_column(a, "depth", NULL, measured);
	plumb_answer_column(a, "nodes", NULL, measured);
	plumb_answer_column(a, "cut", NULL, measured);
	if (f->before) {
		plumb_answer_column(a, "before", metric.unit, measured);
		plumb_answer_column(a, "before_self", metric.unit, measured);
		plumb_answer_column(a, "before_matched", metric.unit, measured);
		plumb_answer_column(a, "unseen", metric.unit, measured);
		plumb_answer_column(a, "iterations", NULL, measured);
		plumb_answer_column(a, "before_iterations", NULL, measured);
		plumb_answer_column(a, "width", NULL, measured);
	}
	plumb_answer_number(a, (double)f->value[range->root] / f->sides[0].per);
	plumb_answer_number(a, (double)f->self[range->root] / f->sides[0].per);
	plumb_answer_text(a, metric.unit);
	plumb_answer_text(a, metric.name);
	plumb_answer_number(a, searched ? (double)f->search.matched[range->root] / f->sides[0].per
	                                : (double)NAN);
	plumb_answer_integer(a, depth_below(f, range->root));
	plumb_answer_integer(a, f->count - 1);
	plumb_answer_integer(a, f->cut_depth ? (int64_t)f->cut_depth : PLUMB_UNKNOWN);
	if (f->before)
		add_before(f, range->root, searched, a);
	return plumb_answer_end(a, error);
}
