/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trees that begin elsewhere than at the root: bottom-up, the callers of a frame, and what it
 * called. They are made of a tree of shown frames.
 *
 * A tree of callers may be far larger than the tree it is made of. It grows level by level, and
 * ends at a bound: then all levels so far are complete, and what is further out is left out.
 */
#include <stdlib.h>

#include "view/flame_private.h"

#define MOST_NODES (UINT32_C(1) << 20)
#define MOST_STEPS (UINT64_C(1) << 23)

/* Something that came through NODE, with the callers of AT still to come. */
struct path {
	uint32_t at;   /* node of the base */
	uint32_t node; /* of the new tree */
	struct plumb_flame_amount amount;
};

struct paths {
	struct path *items;
	uint32_t count;
};

static int
begin_path(struct plumb_flame_tree *tree, const struct plumb_flame_tree *base, struct paths *paths,
           uint32_t at, const struct plumb_flame_amount *amount)
{
	const struct plumb_flame_node *from = &base->nodes[at];
	uint32_t node = plumb_flame_child(tree, 0, from->frame, 0, from->context);

	if (node == PLUMB_NONE)
		return PLUMB_ESYSTEM;
	tree->nodes[node].flags |= from->flags;
	paths->items[paths->count++] = (struct path){ at, node, *amount };
	return 0;
}

/* One level: each path goes to its caller, or ends. */
static int
extend_paths(struct plumb_flame_tree *tree, const struct plumb_flame_tree *base,
             struct paths *paths)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < paths->count; i++) {
		struct path path = paths->items[i];
		uint32_t caller = base->nodes[path.at].parent;
		const struct plumb_flame_node *from = &base->nodes[caller];

		if (!caller) {
			plumb_flame_add(&tree->own[path.node], &path.amount);
			continue;
		}
		path.at = caller;
		path.node = plumb_flame_child(tree, path.node, from->frame, 0, from->context);
		if (path.node == PLUMB_NONE)
			return PLUMB_ESYSTEM;
		tree->nodes[path.node].flags |= from->flags;
		paths->items[kept++] = path;
	}
	paths->count = kept;
	return 0;
}

static int
follow_paths(struct plumb_flame_tree *tree, const struct plumb_flame_tree *base,
             struct paths *paths)
{
	uint64_t steps = 0;
	uint32_t depth = 1;
	int code = 0;

	for (; paths->count && !code; depth++) {
		steps += paths->count;
		if (steps > MOST_STEPS || tree->count > MOST_NODES)
			break;
		code = extend_paths(tree, base, paths);
	}
	if (paths->count && !code)
		tree->cut_depth = depth;
	for (uint32_t i = 0; i < paths->count && !code; i++)
		plumb_flame_add(&tree->own[paths->items[i].node], &paths->items[i].amount);
	return code;
}

int
plumb_flame_invert(const struct plumb_flame_tree *base, struct plumb_flame_tree *tree)
{
	struct paths paths = { .items = malloc(base->count * sizeof *paths.items) };
	int code = paths.items ? plumb_flame_tree_new(tree, base->count / 4, true, true) : PLUMB_ESYSTEM;

	if (!code)
		tree->own[0] = base->own[0];
	for (uint32_t n = 1; !code && n < base->count; n++)
		if (plumb_flame_is_something(&base->own[n]))
			code = begin_path(tree, base, &paths, n, &base->own[n]);
	if (!code)
		code = follow_paths(tree, base, &paths);
	free(paths.items);
	return code;
}

/* ---- one frame ---- */

int
plumb_flame_callers(const struct plumb_flame_tree *base, uint32_t frame,
                    struct plumb_flame_tree *tree)
{
	struct paths paths = { .items = malloc(base->count * sizeof *paths.items) };
	/* By node: with its children. */
	struct plumb_flame_amount *all = malloc(base->count * sizeof *all);
	unsigned char *inside = calloc(base->count, 1);
	bool ok = paths.items && all && inside;
	int code = ok ? plumb_flame_tree_new(tree, 64, true, true) : PLUMB_ESYSTEM;

	for (uint32_t n = 0; !code && n < base->count; n++)
		all[n] = base->own[n];
	for (uint32_t n = base->count; !code && n-- > 1;)
		plumb_flame_add(&all[base->nodes[n].parent], &all[n]);
	for (uint32_t n = 1; !code && n < base->count; n++) {
		const struct plumb_flame_node *node = &base->nodes[n];
		bool above = inside[node->parent];

		inside[n] = above || node->frame == frame;
		if (!above && node->frame == frame && plumb_flame_is_something(&all[n]))
			code = begin_path(tree, base, &paths, n, &all[n]);
	}
	if (!code)
		code = follow_paths(tree, base, &paths);
	free(paths.items);
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
