/* SPDX-License-Identifier: Apache-2.0 */
#include "view/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"

void
plumb_tree_free(struct plumb_tree *tree)
{
	free(tree->nodes);
	*tree = (struct plumb_tree){ 0 };
}

/* ---- order of display ---- */

/* A key that puts the greater amount first. */
static uint64_t
greater_first(uint32_t metric, const struct plumb_stat *stat)
{
	return ~plumb_sort_signed(plumb_stat_amount(metric, stat));
}

/* Sorts nodes by parent, then the greatest first, then as they were. The children of node p begin
 * at FIRST[p + 1], and the top nodes at FIRST[0]. One more entry ends the last. */
static void
sort_children(const struct plumb_tree *tree, uint32_t metric, struct plumb_sort_item *items,
              struct plumb_sort_item *spare, uint32_t *first)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < tree->count; i++)
		items[i] =
			(struct plumb_sort_item){ greater_first(metric, &tree->nodes[i].inclusive),
			                          i };
	plumb_sort(items, spare, tree->count);
	for (uint32_t i = 0; i < tree->count; i++)
		items[i].key = (tree->nodes[items[i].index].parent + 1) & UINT32_MAX;
	plumb_sort(items, spare, tree->count);
	for (uint32_t p = 0; p <= tree->count; p++) {
		while (at < tree->count && items[at].key < p)
			at++;
		first[p] = at;
	}
	first[tree->count + 1] = tree->count;
}

int
plumb_tree_arrange(struct plumb_tree *tree, uint32_t metric)
{
	uint32_t n = tree->count, placed = 0, waiting = 0;
	struct plumb_sort_item *items = calloc(n + 1u, sizeof *items);
	struct plumb_sort_item *spare = calloc(n + 1u, sizeof *spare);
	struct plumb_tree_node *nodes = calloc(n + 1u, sizeof *nodes);
	uint32_t *first = calloc(n + 2u, sizeof *first);
	uint32_t *stack = calloc(n + 1u, sizeof *stack);
	uint32_t *place = calloc(n + 1u, sizeof *place);
	int result = PLUMB_ESYSTEM;

	if (!items || !spare || !nodes || !first || !stack || !place)
		goto out;
	sort_children(tree, metric, items, spare, first);
	for (uint32_t i = first[1]; i-- > first[0];)
		stack[waiting++] = items[i].index;
	while (waiting) {
		uint32_t old = stack[--waiting];
		struct plumb_tree_node *node = &nodes[placed];

		*node = tree->nodes[old];
		place[old] = placed++;
		node->depth = 0;
		if (node->parent != PLUMB_NONE) {
			node->parent = place[node->parent];
			node->depth = nodes[node->parent].depth + 1;
		}
		for (uint32_t i = first[old + 2]; i-- > first[old + 1];)
			stack[waiting++] = items[i].index;
	}
	free(tree->nodes);
	tree->nodes = nodes;
	tree->count = placed;
	nodes = NULL;
	result = 0;
out:
	free(items);
	free(spare);
	free(nodes);
	free(first);
	free(stack);
	free(place);
	return result;
}

/* ---- the calling context tree ---- */

struct selection {
	const struct plumb_profile *profile;
	const struct plumb_tree_options *options;
	struct plumb_stat *exclusive, *inclusive;
	unsigned char *keep;  /* by context: may be shown */
	unsigned char *live;  /* by context: something was observed there or below */
	unsigned char *joins; /* by context: is shown in one node with its only child */
	uint32_t *outermost;  /* by context: the first of the chain that it is in */
	uint32_t *node;       /* by context: its node + 1, 0 none */
};

/* Keeps what matches, and all above and below it. */
static void
filter_contexts(struct selection *s)
{
	const struct plumb_profile *p = s->profile;
	const unsigned char *match = s->options->match;
	enum { ABOVE = 1, BELOW = 2 };

	for (uint32_t c = 0; c < p->contexts_count; c++) {
		bool parent = c && s->keep[p->contexts[c].parent] & BELOW;
		bool own = !match || (c && match[p->contexts[c].frame]);
		s->keep[c] = parent || own ? BELOW : 0;
	}
	for (uint32_t c = p->contexts_count; c-- > 1;)
		if (s->keep[c])
			s->keep[p->contexts[c].parent] |= ABOVE;
	for (uint32_t c = 0; c < p->contexts_count; c++)
		if ((s->options->limit && !s->inclusive[c].count) || !s->live[c])
			s->keep[c] = 0;
}

/* Marks contexts that have a value of any metric, themselves or below. The others only explain them
 * (an origin). */
static void
find_live(struct selection *s)
{
	const struct plumb_profile *p = s->profile;

	for (uint32_t i = 0; i < p->values_count; i++)
		s->live[p->values[i].context] = 1;
	for (uint32_t c = p->contexts_count; c-- > 1;)
		if (s->live[c])
			s->live[p->contexts[c].parent] = 1;
}

/* Finds chains: a context joins its child if it has only this child and no exclusive part. */
static int
find_chains(struct selection *s)
{
	const struct plumb_profile *p = s->profile;
	uint32_t *children = calloc(p->contexts_count + 1u, sizeof *children);

	if (!children)
		return PLUMB_ESYSTEM;
	for (uint32_t c = 1; c < p->contexts_count; c++)
		if (s->keep[c])
			children[p->contexts[c].parent]++;
	for (uint32_t c = 1; c < p->contexts_count; c++) {
		uint32_t parent = p->contexts[c].parent;

		s->outermost[c] = c;
		if (!s->keep[c] || !s->options->compact || !parent || children[parent] != 1 ||
		    s->exclusive[parent].count || p->contexts[c].flags != p->contexts[parent].flags)
			continue;
		s->joins[parent] = 1;
		s->outermost[c] = s->outermost[parent];
	}
	free(children);
	return 0;
}

/* Marks CONTEXT and the chains above it, up to the first that is marked. */
static void
mark_chain(struct selection *s, uint32_t context, uint32_t *count)
{
	while (context && !s->node[context]) {
		s->node[context] = 1;
		++*count;
		context = s->profile->contexts[s->outermost[context]].parent;
	}
}

static int
choose_greatest(struct selection *s, struct plumb_tree *tree)
{
	const struct plumb_profile *p = s->profile;
	struct plumb_sort_item *items = calloc(p->contexts_count + 1u, sizeof *items);
	struct plumb_sort_item *spare = calloc(p->contexts_count + 1u, sizeof *spare);
	uint32_t count = 0;
	bool ok = items && spare;

	for (uint32_t c = 1; ok && c < p->contexts_count; c++)
		if (s->keep[c] && !s->joins[c])
			items[count++] = (struct plumb_sort_item){
				greater_first(s->options->metric, &s->inclusive[c]), c
			};
	tree->available = count;
	tree->count = 0;
	if (ok)
		plumb_sort(items, spare, count);
	for (uint32_t i = 0; ok && i < count; i++)
		if (!s->options->limit || tree->count < s->options->limit)
			mark_chain(s, items[i].index, &tree->count);
	free(items);
	free(spare);
	return ok ? 0 : PLUMB_ESYSTEM;
}

static int
make_nodes(struct selection *s, struct plumb_tree *tree)
{
	const struct plumb_profile *p = s->profile;
	uint32_t count = 0;

	tree->nodes = calloc(tree->count + 1u, sizeof *tree->nodes);
	if (!tree->nodes)
		return PLUMB_ESYSTEM;
	for (uint32_t c = 1; c < p->contexts_count; c++) {
		uint32_t outer = s->outermost[c];
		struct plumb_tree_node *node = &tree->nodes[count];

		if (!s->node[c])
			continue;
		s->node[c] = ++count;
		node->context = c;
		node->length = p->contexts[c].depth - p->contexts[outer].depth + 1;
		node->row = PLUMB_NONE;
		node->parent = s->node[p->contexts[outer].parent] - 1; /* 0 - 1 is PLUMB_NONE */
		node->exclusive = s->exclusive[c];
		node->inclusive = s->inclusive[c];
	}
	return plumb_tree_arrange(tree, s->options->metric);
}

int
plumb_tree_contexts(const struct plumb_profile *profile, const struct plumb_tree_options *options,
                    struct plumb_tree *tree)
{
	size_t n = profile->contexts_count + (size_t)1;
	struct selection s = {
		.profile = profile,
		.options = options,
		.exclusive = calloc(n, sizeof *s.exclusive),
		.inclusive = calloc(n, sizeof *s.inclusive),
		.keep = calloc(n, sizeof *s.keep),
		.live = calloc(n, sizeof *s.live),
		.joins = calloc(n, sizeof *s.joins),
		.outermost = calloc(n, sizeof *s.outermost),
		.node = calloc(n, sizeof *s.node),
	};
	int result = PLUMB_ESYSTEM;

	*tree = (struct plumb_tree){ 0 };
	if (s.exclusive && s.inclusive && s.keep && s.live && s.joins && s.outermost && s.node) {
		plumb_inclusive(profile, options->metric, PLUMB_NONE, s.exclusive, s.inclusive);
		find_live(&s);
		filter_contexts(&s);
		result = find_chains(&s);
	}
	if (!result)
		result = choose_greatest(&s, tree);
	if (!result)
		result = make_nodes(&s, tree);
	if (result)
		plumb_tree_free(tree);
	free(s.exclusive);
	free(s.inclusive);
	free(s.keep);
	free(s.live);
	free(s.joins);
	free(s.outermost);
	free(s.node);
	return result;
}
