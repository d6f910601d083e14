/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flame graph, as a value that is made once and then answers for any range quickly.
 *
 *	struct plumb_flame_query query = { .view = PLUMB_FLAME_UP };
 *	struct plumb_flame *flame = plumb_flame_make(&profile, &query, &error);
 *	struct plumb_flame_range range = { .x0 = 0.25, .x1 = 0.5, .px = 1000 };
 *	struct plumb_answer boxes, total;
 *	if (!flame || plumb_flame_boxes(flame, &range, &boxes, &error) < 0) …
 *	if (plumb_flame_total(flame, &range, &total, &error) < 0) …
 *	plumb_flame_free(flame);
 *
 * Nodes are numbered level by level: node 0 is the root of the whole view, its children come next.
 * Among the children of a node, those of the top-down view have the order of the profile; in all
 * other views the greatest comes first. A box is as wide as what it holds: of a metric that may be
 * negative, widths are of magnitudes, and values are exact. Nodes that hold nothing have no box.
 */
#ifndef PLUMB_VIEW_FLAME_H
#define PLUMB_VIEW_FLAME_H

#include <stdio.h>

#include "analyze/answer.h"
#include "model/profile.h"

enum plumb_flame_view {
	PLUMB_FLAME_DOWN,    /* callers above, the order of the profile */
	PLUMB_FLAME_HEAVY,   /* callers above, merged by frame, the greatest first */
	PLUMB_FLAME_UP,      /* every frame by its own part; below it who called it */
	PLUMB_FLAME_CALLERS, /* all places of one frame, and who called it */
	PLUMB_FLAME_CALLEES, /* all places of one frame, and what it called */
	PLUMB_FLAME_VIEWS
};
extern const char *const plumb_flame_view_names[PLUMB_FLAME_VIEWS];

/* Who a frame belongs to. Answers have these numbers. */
enum plumb_flame_layer {
	PLUMB_FLAME_PYTHON,
	PLUMB_FLAME_MODULE,
	PLUMB_FLAME_OPERATOR, /* operators and collective operations */
	PLUMB_FLAME_NATIVE,   /* native functions and libraries */
	PLUMB_FLAME_GPU,      /* kernels, copies, sets, graphs, and what is in a kernel */
	PLUMB_FLAME_OTHER,    /* ranges, driver calls */
	PLUMB_FLAME_LAYERS
};
extern const char *const plumb_flame_layer_names[PLUMB_FLAME_LAYERS];
enum plumb_flame_layer plumb_flame_layer_of(uint32_t frame_kind);

/* Flags of a box. */
enum {
	PLUMB_FLAME_HAS_FINDING = 1,
	PLUMB_FLAME_MATCHES = 2,           /* the search */
	PLUMB_FLAME_IS_FUSED = 4,          /* compiled code, whose origins are known */
	PLUMB_FLAME_MATCHES_BELOW = 8,     /* a box below it matches the search */
	PLUMB_FLAME_IS_AFTER = 16,         /* of two profiles: the profile has it */
	PLUMB_FLAME_IS_BEFORE = 32,        /* and so has the one that it is compared with */
	PLUMB_FLAME_IS_BACKWARD = 64,      /* top-down: work of the backward pass */
	PLUMB_FLAME_IS_ACCUMULATION = 128, /* and of gradient accumulation */
};

/* Of two profiles: what makes a box wide. */
enum plumb_flame_width {
	PLUMB_FLAME_AFTER,  /* what it holds in the profile */
	PLUMB_FLAME_BEFORE, /* what it holds in the one that it is compared with */
	PLUMB_FLAME_EITHER, /* the larger of both */
	PLUMB_FLAME_WIDTHS
};
extern const char *const plumb_flame_width_names[PLUMB_FLAME_WIDTHS];

/* What to show of a view. */
struct plumb_flame_range {
	uint32_t root;      /* node whose children are at depth 0 */
	double x0, x1;      /* part of the root's width, 0 to 1; x1 0: to the end */
	double px;          /* how wide that part is on the screen; 0: nothing is merged */
	const char *search; /* extended regular expression on names, FILE:LINE and libraries */
	const char *named;  /* instead: these names, FILE:LINEs or libraries, one on each line */
	uint32_t depth;     /* the first depth to show */
	uint32_t depths;    /* how many; 0: all */
};

struct plumb_flame_query {
	enum plumb_flame_view view;
	uint32_t of;        /* frame, of callers and callees */
	const char *metric; /* by name; NULL: the default of the profile */
	/* Bits 1 << enum plumb_flame_layer: these are hidden. What hidden frames hold goes to the
	 * nearest caller that is shown, and frames that become equal are merged. */
	unsigned hidden;
	const char *
		hide; /* extended regular expression: frames of such a file or library are hidden */
	bool collapse; /* a frame that is in its own path already is merged into that place */
	bool apart;    /* forward and backward have a tree each */
	bool one_rank; /* only what the processes of RANK did */
	int64_t rank;
	/* The profile to compare with, or NULL. Then the graph has the call paths of both, and
	 * values are of an iteration if both have iterations. Frames are matched as
	 * plumb_diff_frames does. It must outlive the result. */
	const struct plumb_profile *against;
	enum plumb_flame_width width;
	struct plumb_flame_range range; /* of plumb_view_flame only */
};

struct plumb_flame;

/* NULL with ERROR filled: PLUMB_EUSAGE (a profile has no such metric, values of the metric do not
 * add up, a broken expression, no such frame), PLUMB_ESYSTEM. PROFILE must outlive the result,
 * which copies the texts of QUERY. */
struct plumb_flame *
plumb_flame_make(const struct plumb_profile *profile, const struct plumb_flame_query *query,
                 struct plumb_error *error);
/* The same in less time and memory: AKIN, for which plumb_flame_is_akin is true, has a part of it.
 * NULL: none has. Use both in one thread, and free them in any order. */
struct plumb_flame *
plumb_flame_make_akin(struct plumb_flame *akin, const struct plumb_profile *profile,
                      const struct plumb_flame_query *query, struct plumb_error *error);
bool plumb_flame_is_akin(const struct plumb_flame *flame, const struct plumb_profile *profile,
                         const struct plumb_flame_query *query);
void plumb_flame_free(struct plumb_flame *flame);

/* Is FLAME what plumb_flame_make would make? For those who keep some. Ranges do not matter. */
bool plumb_flame_is(const struct plumb_flame *flame, const struct plumb_profile *profile,
                    const struct plumb_flame_query *query);
/* How many bytes it takes. */
size_t plumb_flame_bytes(const struct plumb_flame *flame);

/* The boxes in RANGE, by depth, then x0; and one row about the root. PLUMB_EUSAGE: no such node, a
 * broken expression. FLAME keeps what it found for the last search, so use it in one thread. */
int plumb_flame_boxes(struct plumb_flame *flame, const struct plumb_flame_range *range,
                      struct plumb_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;
int plumb_flame_total(struct plumb_flame *flame, const struct plumb_flame_range *range,
                      struct plumb_answer *answer, struct plumb_error *error) PLUMB_MUST_CHECK;

/* The node that shows CONTEXT of the profile, or the nearest caller that the view has; 0 is the
 * root: none. Of callers and callees it is always the root. */
int plumb_flame_node_of(struct plumb_flame *flame, uint32_t context, uint32_t *node,
                        struct plumb_error *error) PLUMB_MUST_CHECK;

/*
 * NODE in detail, as JSON (docs/folders/view.md). USER_CODE is the rule that tells your code, or
 * NULL. PLUMB_EUSAGE: no such node, a broken rule. The first call makes FLAME larger.
 */
int plumb_flame_frame(struct plumb_flame *flame, uint32_t node, const char *user_code, FILE *out,
                      struct plumb_error *error) PLUMB_MUST_CHECK;

#endif
