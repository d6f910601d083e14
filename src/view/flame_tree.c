/* SPDX-License-Identifier: Apache-2.0 */
/* The tree while it is made, and the contexts of a profile as such a tree. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/vec.h"
#include "view/flame_private.h"

#define MARKS (PLUMB_CONTEXT_BACKWARD | PLUMB_CONTEXT_ACCUMULATION)

/* ---- nodes ---- */

int
plumb_flame_tree_new(struct plumb_flame_tree *tree, uint32_t room)
{
	uint32_t slots = 64;

	*tree = (struct plumb_flame_tree){ 0 };
	room = room < 16 ? 16 : room;
	while (slots / 2 < room && slots < UINT32_C(1) << 31)
		slots *= 2;
	tree->nodes = malloc((size_t)room * sizeof *tree->nodes);
	tree->slots = calloc(slots, sizeof *tree->slots);
	if (!tree->nodes || !tree->slots)
		return PLUMB_ESYSTEM;
	tree->room = room;
	tree->slot_count = slots;
	tree->nodes[tree->count++] =
		(struct plumb_flame_node){ .parent = PLUMB_NONE, .frame = PLUMB_FLAME_ROOT_FRAME };
	return 0;
}

void
plumb_flame_tree_free(struct plumb_flame_tree *tree)
{
	free(tree->nodes);
	free(tree->slots);
	*tree = (struct plumb_flame_tree){ 0 };
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
	if (tree->count == tree->room) {
		void *grown = plumb_vec_grow(tree->nodes, &tree->room, tree->count + 1ul,
		                             sizeof *tree->nodes);
		if (!grown)
			return PLUMB_NONE;
		tree->nodes = grown;
	}
	at = tree->count++;
	tree->nodes[at] = (struct plumb_flame_node){
		.parent = parent, .frame = frame, .context = context, .marks = marks
	};
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

/* Puts every context below TOP, where it is shown. */
static int
project_below(const struct plumb_flame_source *s, struct plumb_flame_tree *tree, uint32_t top,
              uint32_t *owner)
{
	const struct plumb_profile *p = s->side->profile;
	bool marked = s->query->view != PLUMB_FLAME_HEAVY;

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		const struct plumb_context *context = &p->contexts[c];
		uint32_t parent = c ? owner[context->parent] : top;
		uint32_t frame = plumb_flame_context_frame(s, c);

		owner[c] = parent;
		if (!c || s->skip[frame])
			continue;
		owner[c] = plumb_flame_child(tree, parent, frame,
		                             marked ? context->flags & MARKS : 0, c);
		if (owner[c] == PLUMB_NONE)
			return PLUMB_ESYSTEM;
	}
	return 0;
}

static int
place_contexts(const struct plumb_flame_source *s, struct plumb_flame_tree *tree, uint32_t top,
               uint32_t *owner)
{
	if (s->query->collapse)
		return plumb_flame_collapse(s, tree, top, owner);
	return project_below(s, tree, top, owner);
}

/* Forward and backward below a node each. A context with values of both phases is below both. What
 * backward work does is backward, too: kernels have no flag of their own. */
static int
place_apart(const struct plumb_flame_source *s, struct plumb_flame_tree *tree, uint32_t *owner)
{
	const struct plumb_profile *p = s->side->profile;
	uint32_t *backward = calloc(p->contexts_count + (size_t)1, sizeof *backward);
	unsigned char *is_backward = calloc(p->contexts_count + (size_t)1, 1);
	uint32_t tops[2] = {
		plumb_flame_child(tree, 0, PLUMB_FLAME_FORWARD_FRAME, 0, 0),
		plumb_flame_child(tree, 0, PLUMB_FLAME_BACKWARD_FRAME, 0, 0),
	};
	int code = PLUMB_ESYSTEM;

	if (backward && is_backward && tops[0] != PLUMB_NONE && tops[1] != PLUMB_NONE)
		code = place_contexts(s, tree, tops[0], owner);
	if (!code)
		code = place_contexts(s, tree, tops[1], backward);
	for (uint32_t c = 0; !code && c < p->contexts_count; c++) {
		is_backward[c] =
			(p->contexts[c].flags & MARKS) || (c && is_backward[p->contexts[c].parent]);
		if (is_backward[c])
			owner[c] = backward[c];
	}
	free(backward);
	free(is_backward);
	return code;
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

int
plumb_flame_project(const struct plumb_flame_source *s, struct plumb_flame_tree *tree,
                    uint32_t *owner)
{
	const struct plumb_profile *p = s->side->profile;
	int code =
		s->query->apart ? place_apart(s, tree, owner) : place_contexts(s, tree, 0, owner);

	if (code)
		return code;
	for (uint32_t i = 0; i < p->values_count; i++) {
		const struct plumb_value *v = &p->values[i];

		if (v->metric == s->side->metric && v->count && v->sum != PLUMB_UNKNOWN &&
		    plumb_flame_wants(p, s->query, v->track))
			plumb_flame_add(&tree->nodes[owner[v->context]].own,
			                &(struct plumb_flame_amount){
						.self = s->before ? 0 : v->sum,
						.before = s->before ? v->sum : 0,
					});
	}
	mark_contexts(p, tree, owner);
	for (uint32_t c = 0; s->flag && c < p->contexts_count; c++)
		tree->nodes[owner[c]].flags |= s->flag;
	return 0;
}
