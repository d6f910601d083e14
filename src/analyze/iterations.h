/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iterations of a program on its GPUs, found in the order of its kernels: no marker is needed.
 *
 *	struct plumb_iterations found;
 *	if (plumb_iterations_find(profile, &limits, &found, &error) < 0) …
 *	found.tracks[t].levels[0].items[i].start_ns …
 *	plumb_iterations_free(&found);
 *
 * The search uses the spans of streams. If a profile has none, it uses the newest GPU work, which
 * every profile keeps.
 *
 * A track may have several loops, in order of the time of their first iterations: training, then
 * evaluation. Its kernels are cut into stretches, one after another, without holes: each is of one
 * loop, or outside of loops (start-up, what lies between loops, the rest). A loop has several
 * stretches if another loop, or something else, lies between its iterations: epochs of training and
 * evaluation take turns.
 *
 *	for (s = 0; s < track->stretch_count; s++)
 *		track->stretches[s].loop, .start_ns, .end_ns …     PLUMB_NONE: outside
 *	track->loops[l].levels[0].items[i], .start_ns, .end_ns …
 *	track->levels                         those of track->loops[track->main_loop], the main loop
 *
 * Each stream of a device has a role. The one with the most kernels is the main track; ties go to
 * the one with more kernel time, then to the first. Of the others, those with more copies and sets
 * than kernels are copy tracks, and the rest assist. If two processes share a device, each has its
 * own main track. A loop has levels, outermost first: level 1 is a loop within a round of level 0,
 * and so on.
 */
#ifndef PLUMB_ANALYZE_ITERATIONS_H
#define PLUMB_ANALYZE_ITERATIONS_H

#include "model/profile.h"

#define PLUMB_LEVELS_MOST 4

enum plumb_track_role {
	PLUMB_ROLE_MAIN,
	PLUMB_ROLE_COPY,
	PLUMB_ROLE_ASSIST,
};

/* A loop could begin at any of its operations. This says why plumb chose the first one. */
enum plumb_iteration_phase {
	PLUMB_BY_GAP,    /* the wait before it has the largest mean */
	PLUMB_BY_COPY,   /* a copy from the host to the device comes before it */
	PLUMB_BY_MARKER, /* a range of the host begins there */
};

enum plumb_verdict {
	PLUMB_UNDECIDED, /* a single iteration */
	PLUMB_HOST_BOUND,
	PLUMB_COPY_BOUND,
	PLUMB_GPU_BOUND,
};

/* In parts per million. */
struct plumb_iteration_limits {
	int64_t interval; /* a larger share of the time from start to start is a large interval */
	int64_t overlap;  /* copies in a larger share of the interval make it copy-bound */
	int64_t idle;     /* a device that idles for a larger share waits for the host */
};
extern const struct plumb_iteration_limits plumb_iteration_limits;

struct plumb_iteration {
	int64_t start_ns, end_ns; /* first kernel's start, last kernel's end */
	int64_t interval_ns;  /* since the previous iteration's end; unknown if that is not right
	                         before it */
	int64_t overlap_ns;   /* of it: copies from the host to this device */
	int64_t elsewhere_ns; /* of it: kernels on other streams of the device */
	int64_t op_time_ns;   /* of its kernels, added up */
	int64_t op_gap_ns;    /* mean from one kernel's end to the next one's start */
	int64_t copy_bytes;   /* from the host, since the previous iteration's end; unknown if a
	                         size is */
	int64_t idle_ns;      /* without work on the device, since the previous iteration's end */
	int64_t busy_ns;      /* with work on the device, until the next iteration's start; unknown
	                         if that is not right after it */
	uint32_t ops;         /* kernels */
	uint32_t first;       /* the number of its first kernel; the others follow
	                         (plumb_iterations_kernels) */
	uint32_t edits;       /* kernels that differ from most iterations, are extra or missing */
	bool outlier;
};

/* The previous iteration's end if it is known, else the iteration's own start. */
static inline int64_t
plumb_iteration_from(const struct plumb_iteration *item)
{
	return item->interval_ns == PLUMB_UNKNOWN ? item->start_ns
	                                          : item->start_ns - item->interval_ns;
}

/* How long it took, with the interval before it. */
static inline int64_t
plumb_iteration_time(const struct plumb_iteration *item)
{
	return item->end_ns - plumb_iteration_from(item);
}

/* Over all iterations where the number is known; unknown if there are none. */
struct plumb_iteration_stat {
	int64_t average, most, p50, p95;
};

/* Kernels that do not fit the loop. */
enum plumb_odd_kind {
	PLUMB_ODD_BEFORE,   /* the first iteration */
	PLUMB_ODD_BETWEEN,  /* two iterations */
	PLUMB_ODD_AFTER,    /* the last iteration */
	PLUMB_ODD_INSERTED, /* in one */
	PLUMB_ODD_MISSING,  /* in one */
	PLUMB_ODD_KINDS,
};
struct plumb_odd {
	uint32_t kind; /* enum plumb_odd_kind */
	uint32_t frame;
	uint32_t count;
};

struct plumb_iteration_level {
	uint32_t period_ops;
	uint32_t first_frame; /* the kernel that an iteration begins with */
	uint32_t phase;       /* enum plumb_iteration_phase */
	bool growing;    /* each iteration has more kernels; period_ops is the shortest one's */
	double match;    /* share of kernels with the same name as the kernel one period later */
	double coverage; /* share that fits an iteration, or a part of one at the ends */
	struct plumb_iteration *items;
	uint32_t count;
	struct plumb_odd *odd; /* by kind, then the most frequent first; of level 0 */
	uint32_t odd_count;
	uint32_t before_period; /* of another loop before the first iteration, 0: none; level 0 */
	struct plumb_iteration_stat duration, interval, overlap, op_gap, op_time, copy_bytes;
	double overlap_ratio; /* DeepProf's: the mean of the intervals' ratios, not weighted; NAN:
	                         unknown */
	double overlap_share; /* of all intervals together; the verdict uses it */
	double slope_ns,
		slope_error_ns; /* of the time from end to end but for outliers', and half its
	                                    interval of 95 %; NAN under four iterations */
	double ops_slope;       /* extra kernels in each iteration, from the same line; NAN under
	                           four */
	uint32_t outliers;
	uint32_t verdict;                                   /* enum plumb_verdict, from: */
	double interval_share, idle_share, elsewhere_share; /* of the time from start to start */
};

/* A part of a track without holes: kernels [first, end) of it, by their starts. */
struct plumb_iteration_stretch {
	uint32_t loop; /* its place in the track's loops; PLUMB_NONE: outside of loops */
	uint32_t first, end;
	int64_t start_ns, end_ns; /* first kernel's start, last kernel's end */
	int64_t kernel_ns;        /* of its kernels, added up */
	/* Of a loop: iterations [item, item + items) of its level 0. */
	uint32_t item, items;
	/* Outside: the kernel name that takes most of its time, and how much. */
	uint32_t frame;
	int64_t frame_ns;
	uint32_t period; /* outside: most of it repeats, at this distance; 0: it does not */
};

struct plumb_iteration_loop {
	struct plumb_iteration_level levels[PLUMB_LEVELS_MOST];
	uint32_t level_count;     /* at least 1 */
	uint32_t kernels;         /* in its stretches */
	int64_t start_ns, end_ns; /* of its first and last iteration; others may lie between */
	int64_t time_ns;          /* of its stretches, from start to end, added up */
	uint32_t stretches;       /* how many it has */
	/* Of a thread's: the ranges that mark its iterations; empty: their order shows them. */
	char marker[80];
	bool ends; /* they mark where an iteration ends */
};

struct plumb_iteration_track {
	uint32_t track, device, process;
	uint32_t role; /* enum plumb_track_role */
	uint32_t ops;  /* kernels */
	uint32_t copies;
	int64_t kernel_ns;
	double op_gap_ns;   /* mean between two kernels; NAN under two */
	int64_t copy_bytes; /* from the host to the device, on all its tracks; of a main track */
	/* Of a main track: */
	struct plumb_iteration_loop *loops; /* in order of the starts of their first iterations */
	uint32_t loop_count;
	uint32_t main_loop; /* the one that takes most time; a repetition of a few kernels that is
	                       over before another loop begins is tuning, and comes last */
	struct plumb_iteration_stretch *stretches; /* in order of time, all kernels of the track */
	uint32_t stretch_count;
	uint32_t cycles; /* how often stretches of several loops come in the same order, as epochs
	                    do; 0: they do not */
	const struct plumb_iteration_level *levels; /* of the main loop */
	uint32_t level_count;                       /* 0: the track has no loop */
	uint32_t *order; /* of a thread's: spans of the profile, `ops` of them; else NULL */
};

struct plumb_iterations {
	struct plumb_iteration_track *tracks; /* by device and process, the main one first */
	uint32_t count;
	bool newest; /* of the newest work only */
};

/* LIMITS NULL: plumb_iteration_limits. Call plumb_iterations_free even after an error.
 * PLUMB_ESYSTEM: out of memory. */
int
plumb_iterations_find(const struct plumb_profile *profile,
                      const struct plumb_iteration_limits *limits, struct plumb_iterations *found,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
/*
 * Those of processes without GPU work, one main track each: the thread that does most. Its
 * outermost operators and ranges take the place of kernels, and what is said of devices and copies
 * is unknown.
 */
int plumb_iterations_find_host(const struct plumb_profile *profile, struct plumb_iterations *found,
                               struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_iterations_free(struct plumb_iterations *found);

/* The kernels of a main track by their numbers; of a thread's its operators and ranges. */
struct plumb_iteration_kernel {
	int64_t start_ns, end_ns;
	uint32_t context;
};
struct plumb_iteration_kernels {
	struct plumb_iteration_kernel *items;
	uint32_t count;
};
/* TRACK was found in PROFILE. PLUMB_ESYSTEM: no memory. Free the items. */
int plumb_iterations_kernels(const struct plumb_profile *profile,
                             const struct plumb_iteration_track *track,
                             struct plumb_iteration_kernels *kernels) PLUMB_MUST_CHECK;

/* Do iterations take longer and longer? Yes, if the slope's error is less than half of the slope,
 * and the slope adds up to more than 1 % of an iteration. */
static inline bool
plumb_iterations_slow_down(const struct plumb_iteration_level *level)
{
	return level->slope_ns > 2 * level->slope_error_ns &&
	       level->slope_ns * (level->count - 1) > 0.01 * (double)level->duration.average;
}

/* Is the share of intervals in which the device runs nothing else larger than LIMITS allow? */
static inline bool
plumb_iterations_wait_between(const struct plumb_iteration_level *level,
                              const struct plumb_iteration_limits *limits)
{
	return (level->interval_share - level->elsewhere_share) * 1e6 > (double)limits->interval;
}

#endif
