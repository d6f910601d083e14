/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recursion collapsed: a context whose frame is in the path already is merged into that node, and
 * what it calls is below that node, too.
 *
 * The walk goes over the nodes of the result. Each has a list of contexts that wait for it. Taking
 * one from the list puts its children into the lists of the nodes where they belong: a child of
 * this node, or a node further up. A node is left when nothing waits at it and below it; it may be
 * entered again. So every context is taken once, however deep it is.
 */
#include <stdlib.h>
#include <string.h>

#include "view/flame_private.h"

struct collapse {
	const struct plumb_flame_source *source;
	struct plumb_flame_tree *tree;
	uint32_t *owner;
	/* Lists end with PLUMB_NONE. */
	uint32_t *next_context; /* by context: the next one that waits in the same list */
	uint32_t *waiting;      /* by node: its contexts */
	uint32_t *next_node;    /* by node: the next child of its parent where contexts wait */
	uint32_t *below;        /* by node: its children where contexts wait */
	uint32_t *on_path;      /* by frame: the node of the path that has it */
	uint32_t room;          /* for so many nodes */
};

static bool
open_collapse(struct collapse *w)
{
	size_t contexts = w->source->side->profile->contexts_count + (size_t)1;
	size_t frames = w->source->frames + (size_t)1;
	size_t nodes = contexts + w->tree->count;

	w->room = nodes < PLUMB_NONE ? (uint32_t)nodes : PLUMB_NONE;
	w->next_context = malloc(contexts * sizeof *w->next_context);
	w->waiting = malloc(nodes * sizeof *w->waiting);
	w->next_node = malloc(nodes * sizeof *w->next_node);
	w->below = malloc(nodes * sizeof *w->below);
	w->on_path = malloc(frames * sizeof *w->on_path);
	if (!w->next_context || !w->waiting || !w->next_node || !w->below || !w->on_path)
		return false;
	memset(w->waiting, 0xff, nodes * sizeof *w->waiting);
	memset(w->below, 0xff, nodes * sizeof *w->below);
	memset(w->on_path, 0xff, frames * sizeof *w->on_path);
	return true;
}

static void
close_collapse(struct collapse *w)
{
	free(w->next_context);
	free(w->waiting);
	free(w->next_node);
	free(w->below);
	free(w->on_path);
}

static void
put_context(struct collapse *w, uint32_t node, uint32_t context)
{
	w->owner[context] = node;
	w->next_context[context] = w->waiting[node];
	w->waiting[node] = context;
}

/* CONTEXT is a child of one that is at NODE. False: no memory. */
static bool
place_context(struct collapse *w, uint32_t node, uint32_t context)
{
	uint32_t frame = plumb_flame_context_frame(w->source->side, context), child;

	if (w->source->skip[frame]) {
		put_context(w, node, context);
		return true;
	}
	if (w->on_path[frame] != PLUMB_NONE) {
		put_context(w, w->on_path[frame], context);
		return true;
	}
	child = plumb_flame_child(w->tree, node, frame, 0, context);
	if (child == PLUMB_NONE || child >= w->room)
		return false;
	if (w->waiting[child] == PLUMB_NONE) {
		w->next_node[child] = w->below[node];
		w->below[node] = child;
	}
	put_context(w, child, context);
	return true;
}

/* Looks at all that waits at NODE. */
static bool
look_at(struct collapse *w, uint32_t node)
{
	const struct plumb_context *contexts = w->source->side->profile->contexts;

	while (w->waiting[node] != PLUMB_NONE) {
		uint32_t parent = w->waiting[node];

		w->waiting[node] = w->next_context[parent];
		for (uint32_t c = parent + 1; c <= contexts[parent].last; c = contexts[c].last + 1)
			if (!place_context(w, node, c))
				return false;
	}
	return true;
}

static bool
walk_nodes(struct collapse *w, uint32_t top)
{
	const struct plumb_flame_tree *tree = w->tree;
	uint32_t node = top;

	put_context(w, top, 0);
	for (;;) {
		uint32_t child;

		if (!look_at(w, node))
			return false;
		child = w->below[node];
		if (child != PLUMB_NONE) {
			w->below[node] = w->next_node[child];
			w->on_path[tree->nodes[child].frame] = child;
			node = child;
			continue;
		}
		if (node == top)
			return true;
		w->on_path[tree->nodes[node].frame] = PLUMB_NONE;
		node = tree->nodes[node].parent;
	}
}

int
plumb_flame_collapse(const struct plumb_flame_source *source, struct plumb_flame_tree *tree,
                     uint32_t top, uint32_t *owner)
{
	struct collapse w = { .source = source, .tree = tree, .owner = owner };
	bool ok;

	if (!source->side->profile->contexts_count)
		return 0;
	ok = open_collapse(&w) && walk_nodes(&w, top);
	close_collapse(&w);
	return ok ? 0 : PLUMB_ESYSTEM;
}
