/* SPDX-License-Identifier: Apache-2.0 */
/* A tree in the order of display: level by level, each from left to right. */
#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "base/sort.h"
#include "view/flame_private.h"

#define FEW 64 /* children that are sorted without counting digits */

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
	const struct plumb_flame_amount *own = l->tree->own;

	for (uint32_t n = 0; n < l->tree->count; n++) {
		l->mass[n] = own[n].mass;
		l->value[n] = own[n].self;
		if (l->before)
			l->before[n] = own[n].before;
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

/* Lists the children of each node that hold something, in the order of the tree. */
static void
list_children(struct layout *l)
{
	const struct plumb_flame_node *nodes = l->tree->nodes;
	uint32_t count = l->tree->count;

	memset(l->first, 0, (count + (size_t)2) * sizeof *l->first);
	l->shown = 1;
	/* Two places further, so that filling the list moves each to where it belongs. */
	for (uint32_t n = 1; n < count; n++)
		if (l->mass[n] > 0) {
			l->first[nodes[n].parent + 2]++;
			l->shown++;
		}
	for (uint32_t n = 0; n < count; n++)
		l->first[n + 2] += l->first[n + 1];
	for (uint32_t n = 1; n < count; n++)
		if (l->mass[n] > 0)
			l->list[l->first[nodes[n].parent + 1]++] = n;
}

/* Puts the COUNT nodes at LIST into order, the greatest first. Most nodes have few children. */
static void
insert_greatest(const struct layout *l, uint32_t *list, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		uint32_t node = list[i], at = i;

		for (; at && l->mass[list[at - 1]] < l->mass[node]; at--)
			list[at] = list[at - 1];
		list[at] = node;
	}
}

static bool
sort_greatest(const struct layout *l, uint32_t *list, uint32_t count)
{
	struct plumb_sort_item *items = plumb_large(2 * (size_t)count * sizeof *items);

	for (uint32_t i = 0; items && i < count; i++) {
		uint64_t bits;

		/* Of numbers that are not negative, the bits have the same order. */
		memcpy(&bits, &l->mass[list[i]], sizeof bits);
		items[i] = (struct plumb_sort_item){ ~bits, list[i] };
	}
	if (items)
		plumb_sort(items, items + count, count);
	for (uint32_t i = 0; items && i < count; i++)
		list[i] = items[i].index;
	free(items);
	return items;
}

/* Puts the children of each node into order, the greatest first. */
static bool
sort_children(struct layout *l)
{
	bool ok = true;

	for (uint32_t n = 0; ok && n < l->tree->count; n++) {
		uint32_t *list = &l->list[l->first[n]], count = l->first[n + 1] - l->first[n];

		if (count <= FEW)
			insert_greatest(l, list, count);
		else
			ok = sort_greatest(l, list, count);
	}
	return ok;
}

static bool
make_arrays(struct plumb_flame *f, uint32_t count)
{
	size_t n = count + (size_t)1;

	f->parent = plumb_large(n * sizeof *f->parent);
	f->child = plumb_large(n * sizeof *f->child);
	f->frame = plumb_large(n * sizeof *f->frame);
	f->context = plumb_large(n * sizeof *f->context);
	f->marks = plumb_large(n);
	f->flags = plumb_large(n);
	f->self = plumb_large(n * sizeof *f->self);
	f->value = plumb_large(n * sizeof *f->value);
	f->start = plumb_large(n * sizeof *f->start);
	f->width = plumb_large(n * sizeof *f->width);
	if (f->query.against) {
		f->before_self = plumb_large(n * sizeof *f->before_self);
		f->before = plumb_large(n * sizeof *f->before);
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
	f->self[at] = l->tree->own[old].self;
	f->value[at] = l->value[old];
	if (f->before) {
		f->before_self[at] = l->tree->own[old].before;
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
		.mass = plumb_large(n * sizeof *l.mass),
		.value = plumb_large(n * sizeof *l.value),
		.before = f->query.against ? plumb_large(n * sizeof *l.before) : NULL,
		.first = plumb_large((n + 2) * sizeof *l.first),
		.list = plumb_large(n * sizeof *l.list),
	};
	uint32_t *old = plumb_large(n * sizeof *old);
	bool ok = l.mass && l.value && (l.before || !f->query.against) && l.first && l.list && old;

	if (ok) {
		add_up(&l);
		f->unseen = f->query.against ? add_unseen(&l, f->query.width) : 0;
		list_children(&l);
		ok = f->query.view == PLUMB_FLAME_DOWN || sort_children(&l);
	}
	ok = ok && make_arrays(f, l.shown);
	if (ok)
		place_nodes(f, &l, old);
	f->cut_depth = tree->cut_depth;
	free(l.mass);
	free(l.value);
	free(l.before);
	free(l.first);
	free(l.list);
	free(old);
	return ok ? 0 : PLUMB_ESYSTEM;
}
