/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bottom-up tree. Each context that has the metric is one entry, with a cursor that walks
 * outwards. A node owns a slice of the entries: those with cursors that came the same way. To find
 * a node's callers, its slice is sorted by the cursor's next frame; each caller then owns a slice
 * of the slice. Only nodes that will be shown are expanded, always the one with the most of the
 * metric next.
 */
#include <stdlib.h>

#include "base/vec.h"
#include "view/tree.h"

struct entry {
	uint32_t start;  /* whose exclusive part this is */
	uint32_t cursor; /* where the walk outwards is now */
	uint32_t key;    /* what the slice is sorted by */
};

struct slice {
	uint32_t begin, end;
};

struct inversion {
	const struct plumb_profile *profile;
	const struct plumb_tree_options *options;
	struct plumb_stat *exclusive; /* by context */
	struct entry *entries;
	uint32_t entry_count;
	PLUMB_VEC(struct plumb_tree_node) nodes;
	PLUMB_VEC(struct slice) slices; /* by node */
	PLUMB_VEC(uint32_t) heap;       /* nodes to take next; the greatest at the top */
	PLUMB_VEC(struct plumb_tree_node) taken;
};

static int
by_key(const void *left, const void *right)
{
	const struct entry *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->start < b->start ? -1 : a->start > b->start;
}

/* ---- the heap ---- */

static bool
goes_before(const struct inversion *v, uint32_t a, uint32_t b)
{
	int64_t left = plumb_stat_amount(v->options->metric, &v->nodes.items[a].inclusive);
	int64_t right = plumb_stat_amount(v->options->metric, &v->nodes.items[b].inclusive);

	return left != right ? left > right : a < b;
}

static bool
heap_push(struct inversion *v, uint32_t node)
{
	uint32_t *slot = plumb_vec_add(&v->heap);
	uint32_t at = v->heap.count - 1;

	if (!slot)
		return false;
	while (at && goes_before(v, node, v->heap.items[(at - 1) / 2])) {
		v->heap.items[at] = v->heap.items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	v->heap.items[at] = node;
	return true;
}

static uint32_t
heap_pop(struct inversion *v)
{
	uint32_t top = v->heap.items[0];
	uint32_t last = v->heap.items[--v->heap.count];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child >= v->heap.count)
			break;
		if (child + 1 < v->heap.count &&
		    goes_before(v, v->heap.items[child + 1], v->heap.items[child]))
			child++;
		if (!goes_before(v, v->heap.items[child], last))
			break;
		v->heap.items[at] = v->heap.items[child];
		at = child;
	}
	v->heap.items[at] = last;
	return top;
}

/* ---- nodes ---- */

/* Makes nodes of the runs of equal keys in [BEGIN, END), below PARENT. */
static bool
add_nodes(struct inversion *v, uint32_t begin, uint32_t end, uint32_t parent, bool rows)
{
	while (begin < end) {
		struct plumb_tree_node *node = plumb_vec_add(&v->nodes);
		struct slice *slice = plumb_vec_add(&v->slices);
		uint32_t at = begin;

		if (!node || !slice)
			return false;
		node->context = v->entries[begin].cursor;
		node->length = 1;
		node->row = rows ? v->entries[begin].key : PLUMB_NONE;
		node->parent = parent;
		for (; at < end && v->entries[at].key == v->entries[begin].key; at++)
			plumb_stat_merge(&node->inclusive, &v->exclusive[v->entries[at].start]);
		node->exclusive = node->inclusive;
		*slice = (struct slice){ begin, at };
		begin = at;
		if (!heap_push(v, v->nodes.count - 1))
			return false;
	}
	return true;
}

/* Moves every cursor of SLICE one context outwards, and sorts by its frame. It drops those that
 * reach the root, and returns where the others end. */
static uint32_t
walk_outwards(struct inversion *v, struct slice slice)
{
	const struct plumb_profile *p = v->profile;
	uint32_t end = slice.begin;

	for (uint32_t i = slice.begin; i < slice.end; i++) {
		struct entry entry = v->entries[i];

		entry.cursor = p->contexts[entry.cursor].parent;
		if (entry.cursor == PLUMB_NONE || !entry.cursor)
			continue;
		entry.key = p->contexts[entry.cursor].frame;
		v->entries[end++] = entry;
	}
	if (end > slice.begin)
		qsort(&v->entries[slice.begin], end - slice.begin, sizeof *v->entries, by_key);
	return end;
}

static bool
expand_node(struct inversion *v, uint32_t node)
{
	struct slice slice = v->slices.items[node];
	uint32_t taken = v->taken.count;
	struct plumb_tree_node *copy = plumb_vec_add(&v->taken);
	bool chain = v->options->compact && v->nodes.items[node].parent != PLUMB_NONE;

	if (!copy)
		return false;
	*copy = v->nodes.items[node];
	for (;;) {
		uint32_t end = walk_outwards(v, slice);
		bool single = end == slice.end && end > slice.begin &&
		              v->entries[slice.begin].key == v->entries[end - 1].key;

		if (!chain || !single)
			return add_nodes(v, slice.begin, end, taken, false);
		v->taken.items[taken].length++;
	}
}

/* ---- entries ---- */

/* For each context the innermost one of KIND, itself or outwards; itself for PLUMB_NONE. */
static uint32_t *
find_nearest(const struct plumb_profile *p, uint32_t kind)
{
	uint32_t *nearest = calloc(p->contexts_count + 1u, sizeof *nearest);

	for (uint32_t c = 0; nearest && c < p->contexts_count; c++) {
		bool own = kind == PLUMB_NONE || p->frames[p->contexts[c].frame].kind == kind;

		nearest[c] = own ? c : c ? nearest[p->contexts[c].parent] : PLUMB_NONE;
	}
	return nearest;
}

static bool
make_entries(struct inversion *v, const struct plumb_grouping *grouping)
{
	const struct plumb_profile *p = v->profile;
	bool rows = grouping && plumb_grouping_count(grouping);
	uint32_t *nearest =
		find_nearest(p, rows ? plumb_grouping_rows(grouping)[0].kind : PLUMB_NONE);

	v->entries = calloc(p->contexts_count + 1u, sizeof *v->entries);
	for (uint32_t c = 1; nearest && v->entries && c < p->contexts_count; c++) {
		uint32_t start = nearest[c], key;

		if (!v->exclusive[c].count || start == PLUMB_NONE ||
		    (v->options->match && !v->options->match[p->contexts[start].frame]))
			continue;
		key = grouping ? plumb_grouping_owner(grouping, c) : p->contexts[start].frame;
		if (key != PLUMB_NONE)
			v->entries[v->entry_count++] = (struct entry){ c, start, key };
	}
	free(nearest);
	if (!v->entries || !nearest)
		return false;
	if (v->entry_count)
		qsort(v->entries, v->entry_count, sizeof *v->entries, by_key);
	return true;
}

int
plumb_tree_inverted(const struct plumb_profile *profile, const struct plumb_grouping *grouping,
                    const struct plumb_tree_options *options, struct plumb_tree *tree)
{
	struct inversion v = { .profile = profile, .options = options };
	uint32_t limit = options->limit ? options->limit : PLUMB_TREE_MOST;
	bool ok;
	int result = PLUMB_ESYSTEM;

	*tree = (struct plumb_tree){ 0 };
	v.exclusive = calloc(profile->contexts_count + 1u, sizeof *v.exclusive);
	ok = v.exclusive != NULL;
	if (ok) {
		plumb_inclusive(profile, options->metric, PLUMB_NONE, v.exclusive, NULL);
		ok = make_entries(&v, grouping);
	}
	ok = ok && add_nodes(&v, 0, v.entry_count, PLUMB_NONE, grouping != NULL);
	while (ok && v.heap.count && v.taken.count < limit)
		ok = expand_node(&v, heap_pop(&v));
	if (ok) {
		tree->nodes = v.taken.items;
		tree->count = v.taken.count;
		v.taken.items = NULL;
		/* Not known without expanding the rest, unless there is no rest. */
		tree->available = v.heap.count ? 0 : tree->count;
		result = plumb_tree_arrange(tree, options->metric);
	}
	if (result)
		plumb_tree_free(tree);
	free(v.exclusive);
	free(v.entries);
	plumb_vec_free(&v.nodes);
	plumb_vec_free(&v.slices);
	plumb_vec_free(&v.heap);
	plumb_vec_free(&v.taken);
	return result;
}
