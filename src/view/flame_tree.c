/* SPDX-License-Identifier: Apache-2.0 */
/* The tree while it is made, and the contexts of a profile as such a tree. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/large.h"
#include "base/vec.h"
#include "view/flame_private.h"

#define MARKS (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION)

/* ---- nodes ---- */

int
plumb_flame_tree_new(struct plumb_flame_tree *tree, uint32_t room, bool hashed, bool amounts)
{
	uint32_t slots = 64;

	*tree = (struct plumb_flame_tree){ 0 };
	room = room < 16 ? 16 : room;
	while (slots / 2 < room && slots < UINT32_C(1) << 31)
		slots *= 2;
	tree->nodes = plumb_large((size_t)room * sizeof *tree->nodes);
	tree->own = amounts ? calloc(room, sizeof *tree->own) : NULL;
	tree->slots = hashed ? calloc(slots, sizeof *tree->slots) : NULL;
	if (!tree->nodes || !tree->own == amounts || !tree->slots == hashed)
		return PLUMB_ESYSTEM;
	tree->room = room;
	tree->slot_count = hashed ? slots : 0;
	tree->nodes[tree->count++] =
		(struct plumb_flame_node){ .parent = PLUMB_NONE, .frame = PLUMB_FLAME_ROOT_FRAME };
	return 0;
}

void
plumb_flame_tree_free(struct plumb_flame_tree *tree)
{
	free(tree->nodes);
	free(tree->own);
	free(tree->slots);
	*tree = (struct plumb_flame_tree){ 0 };
}

static bool
grow_nodes(struct plumb_flame_tree *tree)
{
	uint32_t room = tree->room;
	void *grown = plumb_vec_grow(tree->nodes, &room, tree->count + 1ul, sizeof *tree->nodes);

	if (!grown)
		return false;
	tree->nodes = grown;
	if (tree->own) {
		grown = realloc(tree->own, room * sizeof *tree->own);
		if (!grown)
			return false;
		tree->own = grown;
		memset(tree->own + tree->room, 0, (room - tree->room) * sizeof *tree->own);
	}
	tree->room = room;
	return true;
}

uint32_t
plumb_flame_new_child(struct plumb_flame_tree *tree, uint32_t parent, uint32_t frame, uint8_t marks,
                      uint32_t context)
{
	if (tree->count == tree->room && !grow_nodes(tree))
		return PLUMB_NONE;
	tree->nodes[tree->count] = (struct plumb_flame_node){
		.parent = parent, .frame = frame, .context = context, .marks = marks
	};
	return tree->count++;
}

static uint32_t
slot_of(const struct plumb_flame_tree *tree, uint32_t parent, uint32_t frame, uint8_t marks)
{
	uint64_t hash = plumb_hash_mix((uint64_t)parent << 32 | frame, marks);

	return (uint32_t)hash & (tree->slot_count - 1);
}

static bool
grow_slots(struct plumb_flame_tree *tree)
{
	uint32_t wanted = tree->slot_count * 2;
	uint32_t *slots = wanted ? calloc(wanted, sizeof *slots) : NULL;

	if (!slots)
		return false;
	free(tree->slots);
	tree->slots = slots;
	tree->slot_count = wanted;
	for (uint32_t n = 1; n < tree->count; n++) {
		const struct plumb_flame_node *node = &tree->nodes[n];
		uint32_t slot = slot_of(tree, node->parent, node->frame, node->marks);

		while (slots[slot])
			slot = (slot + 1) & (wanted - 1);
		slots[slot] = n;
	}
	return true;
}

uint32_t
plumb_flame_child(struct plumb_flame_tree *tree, uint32_t parent, uint32_t frame, uint8_t marks,
                  uint32_t context)
{
	uint32_t slot = slot_of(tree, parent, frame, marks), at;

	for (; (at = tree->slots[slot]); slot = (slot + 1) & (tree->slot_count - 1)) {
		const struct plumb_flame_node *node = &tree->nodes[at];

		if (node->parent == parent && node->frame == frame && node->marks == marks)
			return at;
	}
	at = plumb_flame_new_child(tree, parent, frame, marks, context);
	if (at == PLUMB_NONE)
		return PLUMB_NONE;
	tree->slots[slot] = at;
	if (tree->count > tree->slot_count / 4 * 3 && !grow_slots(tree))
		return PLUMB_NONE;
	return at;
}

void
plumb_flame_add(struct plumb_flame_amount *amount, const struct plumb_flame_amount *more)
{
	amount->self = plumb_flame_sum(amount->self, more->self);
	amount->before = plumb_flame_sum(amount->before, more->before);
	amount->mass += more->mass;
}

/* ---- contexts ---- */

/*
 * The walk goes over the nodes in the order in which they are made, which is level by level. Each
 * has a list of the contexts that are shown as it. All of them are known when the walk comes to the
 * node, and then all its children are made: so the newest node of a frame tells if the node has a
 * child with that frame, and nothing has to be looked for.
 */
struct walk {
	const struct plumb_flame *flame;
	const unsigned char *skip;
	struct plumb_flame_tree *tree;
	uint32_t **owner;
	/* Contexts of the sides are numbered one after another: those of side s from first[s] on.
	 */
	uint32_t first[PLUMB_FLAME_SIDES];
	uint32_t *next;   /* by context: the next one in its list; the last one has the first */
	uint32_t *last;   /* by node: the last of its list */
	uint32_t *newest; /* by marks, then by frame: the node that was made last */
	uint32_t frames, nodes;
};

static bool
open_walk(struct walk *w)
{
	const struct plumb_flame *f = w->flame;
	size_t contexts = 0;

	for (uint32_t s = 0; s < f->side_count; s++) {
		w->first[s] = (uint32_t)contexts;
		contexts += f->sides[s].profile->contexts_count;
	}
	w->frames = plumb_flame_frames(f);
	/* With phases apart there are the two tops, and all may be there twice. */
	if (2 * contexts + 3 >= PLUMB_NONE)
		return false;
	w->nodes = (uint32_t)(f->query.apart ? 2 * contexts + 3 : contexts + 1);
	w->next = plumb_large((contexts + 1) * sizeof *w->next);
	w->last = plumb_large(w->nodes * sizeof *w->last);
	w->newest = calloc((MARKS + 1) * ((size_t)w->frames + 1), sizeof *w->newest);
	return w->next && w->last && w->newest;
}

static void
close_walk(struct walk *w)
{
	free(w->next);
	free(w->last);
	free(w->newest);
}

static void
append_context(struct walk *w, uint32_t node, uint32_t number, bool is_new)
{
	w->next[number] = number;
	if (!is_new) {
		w->next[number] = w->next[w->last[node]];
		w->next[w->last[node]] = number;
	}
	w->last[node] = number;
}

/* The children of CONTEXT of a side are shown below NODE; below hidden ones, theirs are. */
static bool
show_below(struct walk *w, uint32_t side, uint32_t context, uint32_t node)
{
	const struct plumb_flame_side *s = &w->flame->sides[side];
	const struct plumb_context *contexts = s->profile->contexts;
	uint32_t *owner = w->owner[side],
		 marks = w->flame->query.view == PLUMB_FLAME_HEAVY ? 0 : MARKS;

	for (uint32_t c = context + 1, end = contexts[context].last; c <= end;) {
		uint32_t frame = plumb_flame_context_frame(s, c), mark = contexts[c].flags & marks;
		uint32_t *newest = &w->newest[(size_t)mark * w->frames + frame], child = *newest;
		bool is_new = !child || w->tree->nodes[child].parent != node;

		if (w->skip[frame]) {
			owner[c++] = node;
			continue;
		}
		if (is_new)
			child = plumb_flame_new_child(w->tree, node, frame, (uint8_t)mark, c);
		if (child >= w->nodes)
			return false;
		append_context(w, child, w->first[side] + c, is_new);
		*newest = owner[c] = child;
		c = contexts[c].last + 1;
	}
	return true;
}

static bool
show_children(struct walk *w, uint32_t node)
{
	uint32_t number = w->last[node];

	do {
		uint32_t side;

		number = w->next[number];
		side = w->flame->side_count > 1 && number >= w->first[1];
		if (!show_below(w, side, number - w->first[side], node))
			return false;
	} while (number != w->last[node]);
	return true;
}

static int
project_below(const struct plumb_flame *f, const unsigned char *skip, struct plumb_flame_tree *tree,
              uint32_t top, uint32_t *owner[PLUMB_FLAME_SIDES])
{
	struct walk w = { .flame = f, .skip = skip, .tree = tree, .owner = owner };
	bool ok = open_walk(&w), is_new = true;

	for (uint32_t s = 0; ok && s < f->side_count; s++) {
		if (!f->sides[s].profile->contexts_count)
			continue;
		owner[s][0] = top;
		append_context(&w, top, w.first[s], is_new);
		is_new = false;
	}
	if (!is_new) {
		uint32_t first = tree->count;

		ok = show_children(&w, top);
		for (uint32_t n = first; ok && n < tree->count; n++)
			ok = show_children(&w, n);
	}
	close_walk(&w);
	return ok ? 0 : PLUMB_ESYSTEM;
}

static int
place_contexts(const struct plumb_flame *f, const unsigned char *skip,
               struct plumb_flame_tree *tree, uint32_t top, uint32_t *owner[PLUMB_FLAME_SIDES])
{
	int code = 0;

	if (!f->query.collapse)
		return project_below(f, skip, tree, top, owner);
	for (uint32_t s = 0; !code && s < f->side_count; s++) {
		const struct plumb_flame_source source = { &f->sides[s], skip,
			                                   plumb_flame_frames(f) };

		code = plumb_flame_collapse(&source, tree, top, owner[s]);
	}
	return code;
}

/* What backward work does is backward, too: kernels have no flag of their own. */
static bool
choose_phase(const struct plumb_profile *p, const uint32_t *backward, uint32_t *owner)
{
	unsigned char *is_backward = calloc(p->contexts_count + (size_t)1, 1);

	for (uint32_t c = 0; is_backward && c < p->contexts_count; c++) {
		is_backward[c] =
			(p->contexts[c].flags & MARKS) || (c && is_backward[p->contexts[c].parent]);
		if (is_backward[c])
			owner[c] = backward[c];
	}
	free(is_backward);
	return is_backward;
}

/* Forward and backward below a node each. A context with values of both phases is below both. */
static int
place_apart(const struct plumb_flame *f, const unsigned char *skip, struct plumb_flame_tree *tree,
            uint32_t *owner[PLUMB_FLAME_SIDES])
{
	uint32_t *backward[PLUMB_FLAME_SIDES] = { 0 };
	uint32_t (*child)(struct plumb_flame_tree *, uint32_t, uint32_t, uint8_t, uint32_t) =
		tree->slots ? plumb_flame_child : plumb_flame_new_child;
	uint32_t tops[2] = {
		child(tree, 0, PLUMB_FLAME_FORWARD_FRAME, 0, 0),
		child(tree, 0, PLUMB_FLAME_BACKWARD_FRAME, 0, 0),
	};
	bool ok = tops[0] != PLUMB_NONE && tops[1] != PLUMB_NONE;

	for (uint32_t s = 0; ok && s < f->side_count; s++) {
		size_t contexts = f->sides[s].profile->contexts_count + (size_t)1;

		backward[s] = malloc(contexts * sizeof **backward);
		ok = backward[s];
	}
	ok = ok && !place_contexts(f, skip, tree, tops[0], owner) &&
	     !place_contexts(f, skip, tree, tops[1], backward);
	for (uint32_t s = 0; ok && s < f->side_count; s++)
		ok = choose_phase(f->sides[s].profile, backward[s], owner[s]);
	for (uint32_t s = 0; s < f->side_count; s++)
		free(backward[s]);
	return ok ? 0 : PLUMB_ESYSTEM;
}

static void
mark_contexts(const struct plumb_profile *p, struct plumb_flame_tree *tree, const uint32_t *owner)
{
	for (uint32_t i = 0; i < p->findings_count; i++)
		if (p->findings[i].context < p->contexts_count)
			tree->nodes[owner[p->findings[i].context]].flags |= PLUMB_FLAME_HAS_FINDING;
	for (uint32_t i = 0; i < p->origins_count; i++)
		if (p->origins[i].reason == PLUMB_ORIGIN_OF_FUSED)
			tree->nodes[owner[p->origins[i].context]].flags |= PLUMB_FLAME_IS_FUSED;
}

/* Of two profiles: which of them has a node. What is called in a profile has its callers there, in
 * its own phase, too. */
static void
mark_sides(const struct plumb_flame *f, struct plumb_flame_tree *tree,
           uint32_t *const owner[PLUMB_FLAME_SIDES])
{
	static const uint8_t flags[] = { PLUMB_FLAME_IS_AFTER, PLUMB_FLAME_IS_BEFORE };

	for (uint32_t s = 0; s < f->side_count; s++)
		for (uint32_t c = 0; c < f->sides[s].profile->contexts_count; c++)
			tree->nodes[owner[s][c]].flags |= flags[s];
	for (uint32_t n = tree->count; n-- > 1;)
		tree->nodes[tree->nodes[n].parent].flags |=
			tree->nodes[n].flags & (PLUMB_FLAME_IS_AFTER | PLUMB_FLAME_IS_BEFORE);
}

int
plumb_flame_project(const struct plumb_flame *f, const unsigned char *skip,
                    struct plumb_flame_tree *tree, uint32_t *owner[PLUMB_FLAME_SIDES])
{
	int code = f->query.apart ? place_apart(f, skip, tree, owner)
	                          : place_contexts(f, skip, tree, 0, owner);

	if (code)
		return code;
	for (uint32_t s = 0; s < f->side_count; s++)
		mark_contexts(f->sides[s].profile, tree, owner[s]);
	if (f->side_count > 1)
		mark_sides(f, tree, owner);
	return 0;
}
