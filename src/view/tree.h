/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context trees made ready for printing: the calling context tree from the root down, or bottom-up
 * from what took the time to its callers. Nodes lie in the order of display; everything is done
 * with loops, so that no depth of recursion in a program matters here.
 */
#ifndef PLUMB_VIEW_TREE_H
#define PLUMB_VIEW_TREE_H

#include "analyze/group.h"
#include "model/profile.h"

struct plumb_tree_node {
	uint32_t context; /* the innermost context of the node */
	uint32_t length;  /* of the chain of contexts that it stands for, from `context` outwards */
	uint32_t row; /* bottom-up and grouped: the grouping's row of a top node, or PLUMB_NONE */
	uint32_t parent; /* node, PLUMB_NONE at the top */
	uint32_t depth;  /* 0 at the top */
	struct plumb_stat exclusive, inclusive;
};

struct plumb_tree {
	struct plumb_tree_node *nodes;
	uint32_t count;
	uint64_t available; /* how many nodes there are without the limit; 0: not counted */
};

struct plumb_tree_options {
	uint32_t metric;
	uint32_t limit; /* at most so many nodes, those with the most of the metric; 0: all */
	bool compact;   /* chains of single children in one node */
	const unsigned char *match; /* by frame: what the filter matches; NULL: everything */
};

/* Keeps frames that match, and everything above and below them. Without a limit, it also keeps
 * contexts without the metric. Negative: no memory. */
int plumb_tree_contexts(const struct plumb_profile *profile,
                        const struct plumb_tree_options *options, struct plumb_tree *tree);

/* Bottom-up. The top nodes are the rows of GROUPING (NULL: every frame that has the metric itself)
 * with their exclusive part. Below each are the callers that it came through. */
int plumb_tree_inverted(const struct plumb_profile *profile, const struct plumb_grouping *grouping,
                        const struct plumb_tree_options *options, struct plumb_tree *tree);

/* Puts nodes in the order of display, and sets their depth. Children come after their parent, the
 * greatest first. In the input, parents must come before their children. */
int plumb_tree_arrange(struct plumb_tree *tree, uint32_t metric);

void plumb_tree_free(struct plumb_tree *tree);

/* A bottom-up tree with more nodes than this is cut, because it can be far larger than its
 * profile. */
#define PLUMB_TREE_MOST 1000000

#endif
