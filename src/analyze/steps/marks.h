/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges that a program marks on its threads (ProfilerStep#N, NVTX, plumb.span), in groups, and
 * which group marks the steps.
 *
 * Ranges with the same name are a group. So are ranges whose names differ only by their last number
 * ("step 12", "step 13"), if that number rises from each range to the next. Then it is the number
 * of the step. PyTorch's importer cuts off the number of ProfilerStep#N; there the process has the
 * fact profiler.steps.
 *
 *	const struct plumb_marks *marks = plumb_track_index_marks(&index, process);    // tracks.h
 *	uint32_t g = plumb_marks_choose(marks, &loop, PLUMB_MARKS_ANY);
 *	marks->items[marks->groups.items[g].first].start_ns …
 */
#ifndef PLUMB_ANALYZE_STEPS_MARKS_H
#define PLUMB_ANALYZE_STEPS_MARKS_H

#include "base/vec.h"
#include "model/profile.h"

struct plumb_mark {
	uint32_t frame;
	int64_t start_ns, end_ns;
	int64_t number; /* of the step, PLUMB_UNKNOWN where the group is not numbered */
};
struct plumb_mark_group {
	uint32_t first, count; /* in items */
	uint32_t frame;        /* of one of them */
	/* of that frame's name: without the number, and what stands before it */
	uint32_t name_bytes;
	int64_t total_ns;                  /* of its marks together */
	uint32_t number_begin, number_end; /* the number in that name, where NAME_BYTES is 0 */
	bool numbered;
	bool steps;          /* ProfilerStep */
	bool ends;           /* PyTorch marks an optimizer's work so, which ends a step */
	bool optimizer_step; /* of those, the one that really does */
	bool nested;         /* one begins before another is over: they are no steps */
};
struct plumb_marks {
	struct plumb_mark *items; /* by group, then start */
	uint32_t count, capacity;
	PLUMB_VEC(struct plumb_mark_group) groups;
};

/* Adds those of PROFILE's spans from FIRST until END, in no group yet. PLUMB_ESYSTEM: memory is
 * out. */
int plumb_marks_add(const struct plumb_profile *profile, uint32_t first, uint32_t end,
                    struct plumb_marks *marks) PLUMB_MUST_CHECK;
/* Groups what was added, which is all of PROCESS: another rank marks its own steps. PLUMB_ESYSTEM:
 * memory is out. */
int plumb_marks_group(const struct plumb_profile *profile, uint32_t process,
                      struct plumb_marks *marks) PLUMB_MUST_CHECK;
void plumb_marks_free(struct plumb_marks *marks);
/* What its marks are called, one and all: "step", or "pre_forward (blocks.N)" where their number is
 * in the middle. */
void plumb_mark_group_name(const struct plumb_profile *profile,
                           const struct plumb_mark_group *group, char *text, size_t bytes);

enum plumb_marks_wanted {
	/* ProfilerStep, even if it does not come once an iteration; else as ONCE. */
	PLUMB_MARKS_ANY,
	PLUMB_MARKS_ONCE, /* what comes once an iteration */
};
/* A loop: how many iterations it has, and when its first and its last kernel were launched. */
struct plumb_marks_loop {
	uint32_t iterations;
	int64_t from_ns, until_ns;
	uint32_t stretches; /* each may have a mark more or less than iterations; 0 is 1 */
};
/*
 * The group that marks the steps of LOOP, or PLUMB_NONE. Marks outside of the loop, such as those
 * of warm-up, do not count. If several groups fit, ProfilerStep comes first. Then comes the longest
 * range around most of an iteration, then the first part of an iteration, such as "forward", and
 * last the optimizer's step.
 */
uint32_t plumb_marks_choose(const struct plumb_marks *marks, const struct plumb_marks_loop *loop,
                            enum plumb_marks_wanted wanted);

#endif
