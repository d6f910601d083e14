/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a table: the contexts of a profile grouped by a kind of frame, or by track.
 *
 *	struct plumb_grouping *g = plumb_grouping_new(profile, PLUMB_BY_OPERATOR, NULL);
 *	struct plumb_stat *exclusive = calloc(plumb_grouping_count(g), sizeof *exclusive), …;
 *	plumb_grouping_values(g, PLUMB_METRIC_GPU_TIME, exclusive, inclusive, &outside);
 *
 * A row's exclusive part is what lies under its frame but not under a deeper frame of the same
 * kind. So the exclusive parts and `outside` add up to the whole. Its inclusive part is all that
 * lies under its frame. A frame inside another one with the same name counts once.
 */
#ifndef PLUMB_ANALYZE_GROUP_H
#define PLUMB_ANALYZE_GROUP_H

#include "model/profile.h"

enum plumb_group_by {
	PLUMB_BY_DEFAULT,  /* in a query: what suits the profile; no grouping has it */
	PLUMB_BY_KERNEL,   /* kernel by name */
	PLUMB_BY_OPERATOR, /* operator by name */
	PLUMB_BY_MODULE,   /* module by (qualified name, class) */
	PLUMB_BY_RANGE,    /* NVTX or user range by name */
	PLUMB_BY_PYTHON,   /* Python function: (file, name) */
	PLUMB_BY_LINE, /* Python line: (file, line); without Python, line of a native function */
	PLUMB_BY_USER_LINE,  /* line of the user's own code; a native function that has none */
	PLUMB_BY_COLLECTIVE, /* collective operation of a communication library */
	PLUMB_BY_NATIVE,  /* native function: (build id, name); one that was inlined by its name */
	PLUMB_BY_LIBRARY, /* program or library of native functions: its build id */
	/* These rows do not overlap, so inclusive and exclusive are the same: */
	PLUMB_BY_PHASE,   /* phase of training (phase.h) */
	PLUMB_BY_SHAPE,   /* operator by (name, shapes); of op.calls and op.time only */
	PLUMB_BY_THREAD,  /* host thread or GPU stream */
	PLUMB_BY_PROCESS, /* process, with the streams of its GPU work */
	PLUMB_BY_RANK,    /* rank of a job: its processes together; no row without ranks */
	/* Of reports only, no grouping has these: */
	PLUMB_BY_CONTEXT, /* the tree of call paths */
	PLUMB_BY_MEMORY,  /* who holds a device's memory: operator and line (memory.h) */
	PLUMB_BY_COUNT
};

/* "operator", …, as options have it; NULL for PLUMB_BY_DEFAULT and PLUMB_BY_USER_LINE. */
extern const char *const plumb_group_by_names[PLUMB_BY_COUNT];
/* By its name; PLUMB_NONE: none has that. */
uint32_t plumb_group_by_name(const char *name);

/* One of these says what the row stands for. The others are PLUMB_NONE; the rank is PLUMB_UNKNOWN
 * and the line is 0. */
struct plumb_group_row {
	uint32_t kind;    /* enum plumb_frame_kind, with a frame */
	uint32_t frame;   /* one of the row's frames */
	uint32_t track;   /* of a row by thread */
	uint32_t line;    /* of a row that has a line of its own */
	uint32_t process; /* of a row by process */
	int64_t rank;     /* of a row by rank */
	uint32_t phase;   /* enum plumb_phase, of a row by phase */
	uint32_t shapes;  /* string: of a row by shape; of a module its most frequent output */
};

struct plumb_grouping;

/* USER says for each frame whether it is the user's own code. It may be NULL, except for
 * PLUMB_BY_USER_LINE. NULL: no memory. PROFILE must outlive the grouping. */
struct plumb_grouping *plumb_grouping_new(const struct plumb_profile *profile,
                                          enum plumb_group_by by, const unsigned char *user);
/* Rows of PLUMB_BY_USER_LINE that may be more than lines: by the frames that PLACE_OF has for each
 * context, or PLUMB_NONE (divide.h). Inclusive and exclusive are the same. */
struct plumb_grouping *
plumb_grouping_places(const struct plumb_profile *profile, const uint32_t *place_of);
void plumb_grouping_free(struct plumb_grouping *grouping);

uint32_t plumb_grouping_count(const struct plumb_grouping *grouping);
const struct plumb_group_row *plumb_grouping_rows(const struct plumb_grouping *grouping);
/* The row that CONTEXT's exclusive values belong to, or PLUMB_NONE. Do not ask for groupings by
 * shape, thread, process or rank. */
uint32_t plumb_grouping_owner(const struct plumb_grouping *grouping, uint32_t context);

/*
 * Fills in METRIC of every row. Each array has a stat for each row, and may be NULL. OUTSIDE gets
 * what is under no row. For a metric of one call (PLUMB_CALL) inclusive parts mean nothing, so they
 * stay zero. Negative: no memory.
 */
int plumb_grouping_values(const struct plumb_grouping *grouping, uint32_t metric,
                          struct plumb_stat *exclusive, struct plumb_stat *inclusive,
                          struct plumb_stat *outside);

/*
 * FRAMES gets for every row the frame of the user's own code with the most of METRIC. PLUMB_NONE:
 * there is none, or most of METRIC is under no such frame. USER_OF is from plumb_user_contexts.
 */
int plumb_grouping_user(const struct plumb_grouping *grouping, uint32_t metric,
                        const uint32_t *user_of, uint32_t *frames);

/* For each context the innermost frame of the user's own code, which is its own frame or one
 * further out, or PLUMB_NONE. Compiled code (model/fused.h) and what is under it get the first line
 * that it was made from. Malloced. USER as above. NULL: no memory. */
uint32_t *plumb_user_contexts(const struct plumb_profile *profile, const unsigned char *user);

/* The one number that a stat of METRIC gives: the sum, the max (PLUMB_MAX) or the mean
 * (PLUMB_CALL). */
int64_t plumb_stat_amount(uint32_t metric, const struct plumb_stat *stat);

/* The metric that reports use by default: the first of gpu.time, op.time, cpu.time and the
 * program's own metrics that the profile has, else op.time. */
uint32_t plumb_metric_default(const struct plumb_profile *profile);

#endif
