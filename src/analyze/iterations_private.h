/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this analysis share: iterations.c finds tracks and their work, _loops.c the
 * loops of a track and their levels, _host.c those of threads, _marked.c where a thread marks
 * them, _within.c tells steps from their layers, _stretches.c says
 * what lies where, _start.c finds where an iteration begins, _metrics.c measures them. */
#ifndef PLUMB_ANALYZE_ITERATIONS_PRIVATE_H
#define PLUMB_ANALYZE_ITERATIONS_PRIVATE_H

#include "analyze/iterations.h"
#include "analyze/pattern/period.h"
#include "analyze/steps/tracks.h"
#include "base/vec.h"
#include "model/intervals.h"

/* Adds NS, which may be negative. The sum stops at the largest number, because the kernels of a
 * file may last longer together than a number can hold. */
static inline void
plumb_iteration_add(int64_t *sum, int64_t ns)
{
	if (__builtin_add_overflow(*sum, ns, sum))
		*sum = ns < 0 ? -INT64_MAX : INT64_MAX;
}

struct plumb_iteration_copy {
	int64_t start_ns, end_ns;
	int64_t bytes; /* or PLUMB_UNKNOWN */
};

struct plumb_iteration_times {
	struct plumb_interval_ns *items;
	uint32_t count, capacity;
};

/* A device's work. */
struct plumb_iteration_work {
	const struct plumb_profile *profile;
	struct plumb_track_index *tracks;
	const struct plumb_span *spans;
	bool host; /* it is a thread's: operators and ranges take the place of kernels */
	PLUMB_VEC(uint32_t) kernels;                   /* of the main track, by start: spans */
	PLUMB_VEC(struct plumb_iteration_copy) copies; /* from the host, by start */
	/* Merged: any work of the device, copies from the host, kernels on other streams. */
	struct plumb_iteration_times busy, copying, elsewhere;
};

static inline const struct plumb_span *
plumb_iteration_kernel(const struct plumb_iteration_work *work, uint32_t i)
{
	return &work->spans[work->kernels.items[i]];
}

/* The names of a main track's kernels as symbols; frames[symbol] is a frame of that name. */
struct plumb_iteration_names {
	int32_t *text; /* below 0 for a while: of loops that are not looked at */
	int32_t count, alphabet;
	const uint32_t *frames;
};

/* Finds the outermost loops of a track, in order of time. Rounds begin where iterations do. */
int plumb_iterations_loops(const struct plumb_iteration_work *work,
                           const struct plumb_iteration_names *names, struct plumb_loops *loops);
/* Orders LOOPS by where their first round begins. */
void plumb_iterations_order(struct plumb_loops *loops);
/* Frees what plumb_iterations_levels and plumb_iterations_cut gave TRACK. */
void plumb_iteration_track_free_loops(struct plumb_iteration_track *track);
/* Puts loops within the rounds of another in its place, if the program says that these are its
 * steps: epochs. */
int plumb_iterations_split(const struct plumb_iteration_work *work,
                           const struct plumb_iteration_names *names, struct plumb_loops *loops);
/* Sets `layers` of loops whose rounds are like a part of an iteration of another one: they are of
 * an iteration that differs from all others. */
int
plumb_iterations_mark_layers(const struct plumb_iteration_names *names, struct plumb_loops *loops);
/* Whether a round has so few different kernels that it may be tuning, or part of a start-up. */
bool plumb_iterations_few_names(const struct plumb_loop *loop);

/* Fills TRACK's loops, with their levels, from LOOPS. Times of the device's work are
 * known. */
int plumb_iterations_levels(const struct plumb_iteration_work *work,
                            const struct plumb_iteration_names *names, struct plumb_loops *loops,
                            const struct plumb_iteration_limits *limits,
                            struct plumb_iteration_track *track);

/* Cuts the track's kernels into stretches, chooses its main loop, and looks for cycles. LOOPS are
 * those of TRACK. */
int plumb_iterations_cut(const struct plumb_iteration_work *work,
                         const struct plumb_iteration_names *names, const struct plumb_loops *loops,
                         struct plumb_iteration_track *track);

/* Rotates LOOP so that its rounds begin where iterations do. PHASE gets the reason (enum
 * plumb_iteration_phase). PLACES is scratch room, one for each kernel. */
int plumb_iterations_turn(const struct plumb_iteration_work *work, const int32_t *text,
                          struct plumb_loop *loop, int32_t *places, uint32_t *phase);

enum plumb_marked_rounds {
	PLUMB_ROUNDS_UNMARKED,
	PLUMB_ROUNDS_STEPS, /* by a framework's profiler */
	PLUMB_ROUNDS_EVEN,  /* by ranges that come evenly */
};
/* Are there several of an optimizer's steps in each of the marks of GROUP, as in epochs? */
bool
plumb_iterations_hold_steps(const struct plumb_marks *marks, const struct plumb_mark_group *group);
/* Finds the loops whose rounds the thread of WORK marks; `phase` of each is its group of marks, and
 * `match` is NAN. The marks of the thread are those of the index. */
int plumb_iterations_marked(const struct plumb_iteration_work *work,
                            const struct plumb_iteration_names *names,
                            enum plumb_marked_rounds rounds, struct plumb_loops *loops);

/* Measures LEVEL's items, whose rounds are known, and fills in what follows from them. */
int plumb_iterations_measure(const struct plumb_iteration_work *work, const struct plumb_loop *loop,
                             const struct plumb_iteration_limits *limits,
                             struct plumb_iteration_level *level);

#endif
