/* SPDX-License-Identifier: Apache-2.0 */
/* What the files flame*.c of this folder share. Private to them. */
#ifndef PLUMB_VIEW_FLAME_PRIVATE_H
#define PLUMB_VIEW_FLAME_PRIVATE_H

#include <regex.h>

#include "view/flame.h"

/* Frames that no profile has: the root, and the two trees of phases apart. */
#define PLUMB_FLAME_ROOT_FRAME PLUMB_NONE
#define PLUMB_FLAME_FORWARD_FRAME (PLUMB_NONE - 1)
#define PLUMB_FLAME_BACKWARD_FRAME (PLUMB_NONE - 2)

/* ---- a tree while it is made ---- */

/* What a node holds, without its children. */
struct plumb_flame_amount {
	int64_t self;
	int64_t before; /* in the profile that it is compared with */
	double mass;    /* what makes it wide */
};

struct plumb_flame_node {
	uint32_t parent; /* comes before it; PLUMB_NONE: it is node 0, the root */
	uint32_t frame;
	uint32_t context; /* the first of those that are merged here */
	uint8_t marks;    /* PLUMB_CONTEXT_BACKWARD, PLUMB_CONTEXT_ACCUMULATION */
	uint8_t flags;    /* PLUMB_FLAME_HAS_FINDING, PLUMB_FLAME_IS_FUSED */
};

struct plumb_flame_tree {
	struct plumb_flame_node *nodes;
	struct plumb_flame_amount *own; /* by node; NULL: the tree has no amounts */
	uint32_t count, room;
	uint32_t *slots; /* a hash table of nodes by (parent, frame, marks); 0: empty */
	uint32_t slot_count;
	uint32_t cut_depth; /* from this depth on callers are left out; 0: none are */
};

/* Makes the root, with room for ROOM nodes at first. HASHED: it can look for children. Negative: no
 * memory. Free it in any case. */
int plumb_flame_tree_new(struct plumb_flame_tree *tree, uint32_t room, bool hashed, bool amounts);
void plumb_flame_tree_free(struct plumb_flame_tree *tree);
/* The child of PARENT with FRAME and MARKS, made if it is missing. The tree is hashed. PLUMB_NONE:
 * no memory. */
uint32_t plumb_flame_child(struct plumb_flame_tree *tree, uint32_t parent, uint32_t frame,
                           uint8_t marks, uint32_t context);
/* A new child of PARENT, which has none like it. The tree is not hashed. PLUMB_NONE: no memory. */
uint32_t plumb_flame_new_child(struct plumb_flame_tree *tree, uint32_t parent, uint32_t frame,
                               uint8_t marks, uint32_t context);
/* Adds MORE to AMOUNT. */
void plumb_flame_add(struct plumb_flame_amount *amount, const struct plumb_flame_amount *more);
static inline bool
plumb_flame_is_something(const struct plumb_flame_amount *amount)
{
	return amount->mass > 0 || amount->self || amount->before;
}
/* A + B, the greatest or the least number if that is too much. */
static inline int64_t
plumb_flame_sum(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return b < 0 ? INT64_MIN + 1 : INT64_MAX;
}

/* One of the profiles of a flame graph. */
struct plumb_flame_side {
	const struct plumb_profile *profile;
	uint32_t metric;
	uint32_t *frame_of; /* by frame: its number in the graph; NULL: its own */
	double per;         /* what its values are divided by: iterations, or 1 */
};
/* Does the query want values of TRACK? */
static inline bool
plumb_flame_wants(const struct plumb_profile *p, const struct plumb_flame_query *query,
                  uint32_t track)
{
	uint32_t process = track < p->tracks_count ? p->tracks[track].process : PLUMB_NONE;

	return !query->one_rank ||
	       (process < p->processes_count && p->processes[process].rank == query->rank);
}

#define PLUMB_FLAME_SIDES 2

/* A profile whose contexts become a tree. SKIP has 1 for frames of the graph that are hidden. */
struct plumb_flame_source {
	const struct plumb_flame_side *side;
	const unsigned char *skip;
	uint32_t frames; /* of the graph */
};
/* The number that the graph has for the frame of CONTEXT. */
static inline uint32_t
plumb_flame_context_frame(const struct plumb_flame_side *side, uint32_t context)
{
	uint32_t frame = side->profile->contexts[context].frame;

	return side->frame_of ? side->frame_of[frame] : frame;
}
/* The contexts of the profiles of FLAME as a tree of frames that are shown, without amounts. OWNER
 * has room for each context of a side, and gets the node that holds its values (with phases apart,
 * that of its own phase). Negative: no memory. */
int plumb_flame_project(const struct plumb_flame *flame, const unsigned char *skip,
                        struct plumb_flame_tree *tree, uint32_t *owner[PLUMB_FLAME_SIDES]);
/* The same of one profile with PLUMB_FLAME_…'s `collapse`, below TOP; the tree is hashed. */
int plumb_flame_collapse(const struct plumb_flame_source *source, struct plumb_flame_tree *tree,
                         uint32_t top, uint32_t *owner);

/* Trees made of BASE, with amounts. Negative: no memory. */
int plumb_flame_invert(const struct plumb_flame_tree *base, struct plumb_flame_tree *tree);
int plumb_flame_callers(const struct plumb_flame_tree *base, uint32_t frame,
                        struct plumb_flame_tree *tree);
int plumb_flame_callees(const struct plumb_flame_tree *base, uint32_t frame,
                        struct plumb_flame_tree *tree);

/* ---- a tree that is ready ---- */

struct plumb_flame_search {
	char *text;           /* what was searched; NULL: nothing yet */
	unsigned char *flags; /* by node: PLUMB_FLAME_MATCHES, PLUMB_FLAME_MATCHES_BELOW */
	bool named;           /* it is of names, not an expression */
	/* By node: the value of what matches in it, counted once; and that of the other profile,
	 * or NULL. */
	int64_t *matched, *before;
};

/* What flame graphs of the same frames and call paths have in common, and details of nodes need. */
struct plumb_flame_base {
	uint32_t references;
	bool marked;                  /* nodes have marks */
	struct plumb_flame_tree tree; /* of the contexts, without amounts and slots */
	/* By side. */
	uint32_t *owner[PLUMB_FLAME_SIDES];     /* by context: its node in that */
	char *user_code;                        /* the rule by which these two were made, or NULL */
	unsigned char *user[PLUMB_FLAME_SIDES]; /* by frame: your code */
	uint32_t *user_of[PLUMB_FLAME_SIDES];   /* by context: the frame of your code */
};

struct plumb_flame {
	const struct plumb_profile *profile;
	struct plumb_flame_query query; /* with texts of its own; without a range */
	/* The profile, and the one that it is compared with. Frames of the graph are those of the
	 * first one, then those of the second. */
	struct plumb_flame_side sides[PLUMB_FLAME_SIDES];
	uint32_t side_count;
	double iterations[PLUMB_FLAME_SIDES]; /* that values are of one of; NAN: of all there is */
	int64_t unseen;     /* what boxes without a width hold on the other side */
	uint32_t count;     /* of nodes, the root included */
	uint32_t depths;    /* how many levels of nodes there are below the root */
	uint32_t cut_depth; /* as in the tree */
	/* By node. The children of a node are [child[node], child[node + 1]). */
	uint32_t *parent, *child, *frame, *context;
	unsigned char *marks, *flags;
	int64_t *self, *value;
	int64_t *before_self, *before; /* NULL: there is one profile */
	double *start, *width;         /* as masses */
	struct plumb_flame_search search;
	struct plumb_flame_base *base;
};

/* How many frames the graph has numbers for. */
uint32_t plumb_flame_frames(const struct plumb_flame *flame);
/* The profile that has FRAME, which becomes its number there; NULL: none, such as the root. */
const struct plumb_profile *
plumb_flame_frame_owner(const struct plumb_flame *flame, uint32_t *frame);

/* flame_against.c: fills the second side, and what both have in common. AKIN, or NULL, has that
 * already. PLUMB_EUSAGE, PLUMB_ESYSTEM. */
int plumb_flame_compare(struct plumb_flame *flame, const struct plumb_flame *akin,
                        struct plumb_error *error);

/* Frees BASE if nobody else has it. */
void plumb_flame_base_drop(struct plumb_flame_base *base);

/* Puts TREE, which has amounts, in order. Negative: no memory. */
int plumb_flame_layout(struct plumb_flame *flame, const struct plumb_flame_tree *tree);

/* Makes `search` that of TEXT: an expression, or names if NAMED. PLUMB_EUSAGE, PLUMB_ESYSTEM. */
int plumb_flame_find(struct plumb_flame *flame, const char *text, bool named,
                     struct plumb_error *error);
void plumb_flame_search_free(struct plumb_flame_search *search);
/* WHAT names the expression in the message. Free it with regfree if the result is 0. */
int plumb_flame_compile(const char *text, const char *what, regex_t *expression,
                        struct plumb_error *error);
/* By frame: 1 if its file or its library matches. Malloced; NULL: no memory. */
unsigned char *plumb_flame_of_files(const struct plumb_profile *profile, const regex_t *expression);

/* The label of a node: the name of its frame, where a Python function is, and its marks. The result
 * is TEXT or the profile's. */
#define PLUMB_FLAME_LABEL_SIZE 1024
const char *plumb_flame_label(const struct plumb_flame *flame, uint32_t node,
                              char text[PLUMB_FLAME_LABEL_SIZE]);

#endif
