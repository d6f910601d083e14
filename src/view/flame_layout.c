/* SPDX-License-Identifier: Apache-2.0 */
/* A tree in the order of display: level by level, each from left to right. */
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "view/flame_private.h"

struct layout {
	const struct plumb_flame_tree *tree;
	/* By node of the tree: with its children. */
	double *mass;
	int64_t *value, *before; /* before: NULL without another profile */
	uint32_t *first; /* the children of node n are list[first[n]] … list[first[n + 1] - 1] */
	uint32_t *list;
	uint32_t shown; /* nodes that hold something, and the root */
};

static void
add_up(struct layout *l)
{
	const struct plumb_flame_node *nodes = l->tree->nodes;

	for (uint32_t n = 0; n < l->tree->count; n++) {
		l->mass[n] = nodes[n].own.mass;
		l->value[n] = nodes[n].own.self;
		if (l->before)
			l->before[n] = nodes[n].own.before;
	}
	for (uint32_t n = l->tree->count; n-- > 1;) {
		uint32_t parent = nodes[n].parent;

		l->mass[parent] += l->mass[n];
		l->value[parent] = plumb_flame_sum(l->value[parent], l->value[n]);
		if (l->before)
			l->before[parent] = plumb_flame_sum(l->before[parent], l->before[n]);
	}
}

/* What is on one side only has no width if the width is of the other. */
static int64_t
add_unseen(const struct layout *l, enum plumb_flame_width width)
{
	const struct plumb_flame_node *nodes = l->tree->nodes;
	int64_t sum = 0;

	for (uint32_t n = 1; n < l->tree->count; n++)
		if (!(l->mass[n] > 0) && (!nodes[n].parent || l->mass[nodes[n].parent] > 0))
			sum = plumb_flame_sum(sum, width == PLUMB_FLAME_BEFORE ? l->value[n]
			                                                       : l->before[n]);
	return sum;
}

/* Puts nodes that hold something into ORDER, the greatest first if GREATEST. */
static bool
order_nodes(struct layout *l, bool greatest, uint32_t *order)
{
	uint32_t count = 0;
	struct plumb_sort_item *items = NULL, *spare = NULL;

	l->shown = 1;
	for (uint32_t n = 1; n < l->tree->count; n++)
		if (l->mass[n] > 0)
			order[count++] = n;
	l->shown = count + 1;
	if (!greatest)
		return true;
	items = malloc((count + (size_t)1) * sizeof *items);
	spare = malloc((count + (size_t)1) * sizeof *spare);
	for (uint32_t i = 0; items && spare && i < count; i++) {
		uint64_t bits;

		/* Of numbers that are not negative, the bits have the same order. */
		memcpy(&bits, &l->mass[order[i]], sizeof bits);
		items[i] = (struct plumb_sort_item){ ~bits, order[i] };
	}
	if (items && spare)
		plumb_sort(items, spare, count);
	for (uint32_t i = 0; items && spare && i < count; i++)
		order[i] = items[i].index;
	greatest = items && spare;
	free(items);
	free(spare);
	return greatest;
}

/* Lists the children of each node, in the order of ORDER. */
static void
list_children(struct layout *l, const uint32_t *order)
{
	const struct plumb_flame_node *nodes = l->tree->nodes;
	uint32_t count = l->tree->count;

	memset(l->first, 0, (count + (size_t)2) * sizeof *l->first);
	/* Two places further, so that filling the list moves each to where it belongs. */
	for (uint32_t i = 0; i + 1 < l->shown; i++)
		l->first[nodes[order[i]].parent + 2]++;
	for (uint32_t n = 0; n < count; n++)
		l->first[n + 2] += l->first[n + 1];
	for (uint32_t i = 0; i + 1 < l->shown; i++)
		l->list[l->first[nodes[order[i]].parent + 1]++] = order[i];
}

static bool
make_arrays(struct plumb_flame *f, uint32_t count)
{
	size_t n = count + (size_t)1;

	f->parent = malloc(n * sizeof *f->parent);
	f->child = malloc(n * sizeof *f->child);
	f->frame = malloc(n * sizeof *f->frame);
	f->context = malloc(n * sizeof *f->context);
	f->marks = malloc(n);
	f->flags = malloc(n);
	f->self = malloc(n * sizeof *f->self);
	f->value = malloc(n * sizeof *f->value);
	f->start = malloc(n * sizeof *f->start);
	f->width = malloc(n * sizeof *f->width);
	if (f->query.against) {
		f->before_self = malloc(n * sizeof *f->before_self);
		f->before = malloc(n * sizeof *f->before);
		if (!f->before_self || !f->before)
			return false;
	}
	return f->parent && f->child && f->frame && f->context && f->marks && f->flags && f->self &&
	       f->value && f->start && f->width;
}

static void
copy_node(struct plumb_flame *f, const struct layout *l, uint32_t old, uint32_t parent,
          double start)
{
	const struct plumb_flame_node *node = &l->tree->nodes[old];
	uint32_t at = f->count++;

	f->parent[at] = parent;
	f->frame[at] = node->frame;
	f->context[at] = node->context;
	f->marks[at] = node->marks;
	f->flags[at] = node->flags;
	f->self[at] = node->own.self;
	f->value[at] = l->value[old];
	if (f->before) {
		f->before_self[at] = node->own.before;
		f->before[at] = l->before[old];
	}
	f->start[at] = start;
	f->width[at] = l->mass[old];
}

/* OLD gets for each node its number in the tree. */
static void
place_nodes(struct plumb_flame *f, const struct layout *l, uint32_t *old)
{
	uint32_t level_end = 1;

	copy_node(f, l, 0, PLUMB_NONE, 0);
	old[0] = 0;
	for (uint32_t at = 0; at < f->count; at++) {
		double start = f->start[at];

		if (at == level_end) {
			f->depths++;
			level_end = f->count;
		}
		f->child[at] = f->count;
		for (uint32_t i = l->first[old[at]]; i < l->first[old[at] + 1]; i++) {
			uint32_t node = l->list[i];

			old[f->count] = node;
			copy_node(f, l, node, at, start);
			start += l->mass[node];
		}
	}
	f->child[f->count] = f->count;
}

int
plumb_flame_layout(struct plumb_flame *f, const struct plumb_flame_tree *tree)
{
	size_t n = tree->count;
	struct layout l = {
		.tree = tree,
		.mass = malloc(n * sizeof *l.mass),
		.value = malloc(n * sizeof *l.value),
		.before = f->query.against ? malloc(n * sizeof *l.before) : NULL,
		.first = malloc((n + 2) * sizeof *l.first),
		.list = malloc(n * sizeof *l.list),
	};
	uint32_t *order = malloc(n * sizeof *order);
	bool ok =
		l.mass && l.value && (l.before || !f->query.against) && l.first && l.list && order;

	if (ok) {
		add_up(&l);
		f->unseen = f->query.against ? add_unseen(&l, f->query.width) : 0;
		ok = order_nodes(&l, f->query.view != PLUMB_FLAME_DOWN, order);
	}
	if (ok) {
		list_children(&l, order);
		ok = make_arrays(f, l.shown);
	}
	if (ok)
		place_nodes(f, &l, order); /* the order is not needed any more */
	f->cut_depth = tree->cut_depth;
	free(l.mass);
	free(l.value);
	free(l.before);
	free(l.first);
	free(l.list);
	free(order);
	return ok ? 0 : PLUMB_ESYSTEM;
}
