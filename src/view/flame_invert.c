/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees that begin elsewhere than at the root: bottom-up, the callers of a frame, and what it
 * called. They are made of a tree of shown frames.
 *
 * A tree of callers may be far larger than the tree it is made of. It grows level by level, and
 * ends at a bound: then all levels so far are complete, and what is further out is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "base/large.h"
#include "view/flame_private.h"

#define MOST_NODES (UINT32_C(1) << 20)
#define MOST_STEPS (UINT64_C(1) << 23)

/* What base node FROM holds, on its way out: it came through NODE, and AT is the next one. */
struct path {
	uint32_t from, at; /* nodes of the base */
	uint32_t node;     /* of the new tree */
};

/* Paths are in groups by `node`, in the order of the nodes. */
struct paths {
	const struct plumb_flame_tree *base;
	const struct plumb_flame_amount *amounts; /* by node of the base: what a path brings */
	struct path *items, *spare;
	uint32_t *begins; /* scratch: where the paths of each new node begin */
	uint32_t *newest; /* by number of frame: the node that was made last */
	uint32_t count;
};

static void
close_paths(struct paths *paths)
{
	free(paths->items);
	free(paths->spare);
	free(paths->begins);
	free(paths->newest);
}

static bool
open_paths(struct paths *paths, const struct plumb_flame_tree *base)
{
	size_t most = 0, room = base->count + (size_t)1;

	for (uint32_t n = 1; n < base->count; n++)
		if (base->nodes[n].frame < PLUMB_FLAME_BACKWARD_FRAME &&
		    base->nodes[n].frame >= most)
			most = base->nodes[n].frame + (size_t)1;
	paths->base = base;
	paths->items = plumb_large(room * sizeof *paths->items);
	paths->spare = plumb_large(room * sizeof *paths->spare);
	paths->begins = plumb_large((room + 1) * sizeof *paths->begins);
	paths->newest = calloc(most + 2, sizeof *paths->newest);
	return paths->items && paths->spare && paths->begins && paths->newest;
}

static void
begin_path(struct paths *paths, uint32_t from)
{
	paths->items[paths->count++] = (struct path){ from, from, 0 };
}

/* The frames of phases apart come first. */
static uint32_t
number_of(uint32_t frame)
{
	return frame == PLUMB_FLAME_FORWARD_FRAME    ? 0
	       : frame == PLUMB_FLAME_BACKWARD_FRAME ? 1
	                                             : frame + 2;
}

/* One level: each path goes to its next node, or ends. All children of a node are made one after
 * another, so the newest node of a frame is a child of this node, or there is none with it. */
static int
extend_paths(struct plumb_flame_tree *tree, struct paths *paths)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < paths->count; i++) {
		struct path path = paths->items[i];
		const struct plumb_flame_node *from = &paths->base->nodes[path.at];
		uint32_t *newest = path.at ? &paths->newest[number_of(from->frame)] : NULL;

		if (!newest) {
			plumb_flame_add(&tree->own[path.node], &paths->amounts[path.from]);
			continue;
		}
		if (!*newest || tree->nodes[*newest].parent != path.node)
			*newest = plumb_flame_new_child(tree, path.node, from->frame, 0,
			                                from->context);
		if (*newest == PLUMB_NONE)
			return PLUMB_ESYSTEM;
		tree->nodes[*newest].flags |= from->flags;
		paths->items[kept++] = (struct path){ path.from, from->parent, *newest };
	}
	paths->count = kept;
	return 0;
}

/* Puts paths of nodes [FIRST, END) into groups. */
static void
group_paths(struct paths *paths, uint32_t first, uint32_t end)
{
	struct path *grouped = paths->spare;

	memset(paths->begins, 0, (end - first + (size_t)1) * sizeof *paths->begins);
	for (uint32_t i = 0; i < paths->count; i++)
		paths->begins[paths->items[i].node - first + 1]++;
	for (uint32_t n = first; n < end; n++)
		paths->begins[n - first + 1] += paths->begins[n - first];
	for (uint32_t i = 0; i < paths->count; i++)
		grouped[paths->begins[paths->items[i].node - first]++] = paths->items[i];
	paths->spare = paths->items;
	paths->items = grouped;
}

static int
follow_paths(struct plumb_flame_tree *tree, struct paths *paths)
{
	uint64_t steps = 0;
	uint32_t depth = 0;
	int code = 0;

	for (; paths->count && !code; depth++) {
		uint32_t first = tree->count;

		steps += depth ? paths->count : 0;
		if (depth && (steps > MOST_STEPS || tree->count > MOST_NODES))
			break;
		code = extend_paths(tree, paths);
		if (!code)
			group_paths(paths, first, tree->count);
	}
	if (paths->count && !code)
		tree->cut_depth = depth;
	for (uint32_t i = 0; i < paths->count && !code; i++)
		plumb_flame_add(&tree->own[paths->items[i].node],
		                &paths->amounts[paths->items[i].from]);
	return code;
}

int
plumb_flame_invert(const struct plumb_flame_tree *base, struct plumb_flame_tree *tree)
{
	struct paths paths = { .amounts = base->own };
	int code = open_paths(&paths, base) ? plumb_flame_tree_new(tree, base->count, false, true)
	                                    : PLUMB_ESYSTEM;

	if (!code)
		tree->own[0] = base->own[0];
	for (uint32_t n = 1; !code && n < base->count; n++)
		if (plumb_flame_is_something(&base->own[n]))
			begin_path(&paths, n);
	if (!code)
		code = follow_paths(tree, &paths);
	close_paths(&paths);
	return code;
}

/* ---- one frame ---- */

int
plumb_flame_callers(const struct plumb_flame_tree *base, uint32_t frame,
                    struct plumb_flame_tree *tree)
{
	/* By node: with its children. */
	struct plumb_flame_amount *all = plumb_large(base->count * sizeof *all);
	struct paths paths = { .amounts = all };
	unsigned char *inside = calloc(base->count, 1);
	bool ok = open_paths(&paths, base) && all && inside;
	int code = ok ? plumb_flame_tree_new(tree, 64, false, true) : PLUMB_ESYSTEM;

	for (uint32_t n = 0; !code && n < base->count; n++)
		all[n] = base->own[n];
	for (uint32_t n = base->count; !code && n-- > 1;)
		plumb_flame_add(&all[base->nodes[n].parent], &all[n]);
	for (uint32_t n = 1; !code && n < base->count; n++) {
		const struct plumb_flame_node *node = &base->nodes[n];
		bool above = inside[node->parent];

		inside[n] = above || node->frame == frame;
		if (!above && node->frame == frame && plumb_flame_is_something(&all[n]))
			begin_path(&paths, n);
	}
	if (!code)
		code = follow_paths(tree, &paths);
	close_paths(&paths);
	free(all);
	free(inside);
	return code;
}

int
plumb_flame_callees(const struct plumb_flame_tree *base, uint32_t frame,
                    struct plumb_flame_tree *tree)
{
	/* By node of the base: its node; 0: it is in none of the frame's places. */
	uint32_t *map = calloc(base->count, sizeof *map);
	int code = map ? plumb_flame_tree_new(tree, 64, true, true) : PLUMB_ESYSTEM;

	for (uint32_t n = 1; !code && n < base->count; n++) {
		const struct plumb_flame_node *node = &base->nodes[n];

		if (!map[node->parent] && node->frame != frame)
			continue;
		map[n] = plumb_flame_child(tree, map[node->parent], node->frame, 0, node->context);
		if (map[n] == PLUMB_NONE)
			code = PLUMB_ESYSTEM;
		else
			plumb_flame_add(&tree->own[map[n]], &base->own[n]);
		if (!code)
			tree->nodes[map[n]].flags |= node->flags;
	}
	free(map);
	return code;
}
