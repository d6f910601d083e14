/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The iterations of a program on its GPUs, found in the order of its kernels: no marker is needed.
 *
 *	struct plumb_iterations found;
 *	if (plumb_iterations_find(profile, &limits, &found, &error) < 0) …
 *	found.tracks[t].levels[0].items[i].start_ns …
 *	plumb_iterations_free(&found);
 *
 * From the spans of streams; where a profile has none, from the newest GPU work that every profile
 * keeps.
 *
 * Roles: of a device's streams (of two processes that share it, of each one's), the one with most
 * kernels is its main track (of equals the one with more kernel time, then the first); of the
 * others those with more copies and sets than kernels are copy tracks, the rest assist. Each main
 * track has its loops, outermost first: level 1 is a loop within a round of level 0, and so on.
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

/* By what the first operation of an iteration was chosen; any rotation of a round is a round. */
enum plumb_iteration_phase {
	PLUMB_BY_GAP,    /* the longest wait, on average, lies before it */
	PLUMB_BY_COPY,   /* a copy from the host to the device does */
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
	int64_t interval; /* an interval of more of the time from start to start is large */
	int64_t overlap;  /* copies during more of the interval bind it */
	int64_t idle;     /* a device without work for more of the time waits for the host */
};
extern const struct plumb_iteration_limits plumb_iteration_limits;

struct plumb_iteration {
	int64_t start_ns, end_ns; /* first kernel's start, last kernel's end */
	int64_t interval_ns;  /* since the end of the one before; unknown where none is right before
	                        it */
	int64_t overlap_ns;   /* of it: copies from the host to this device */
	int64_t elsewhere_ns; /* of it: kernels on other streams of the device */
	int64_t op_time_ns;   /* of its kernels, added up */
	int64_t op_gap_ns;    /* between one kernel's end and the next one's start, on average */
	int64_t copy_bytes;   /* from the host, since the end of the one before; unknown where sizes
	                        are */
	int64_t idle_ns;      /* the device had no work since the end of the one before */
	int64_t busy_ns;      /* it had from its start to that of the next one, unknown where none
	                        is right behind it */
	uint32_t ops;         /* kernels */
	uint32_t edits;       /* kernels changed, inserted or missing against most iterations */
	bool outlier;
};

/* When an iteration begins to count: from the end of the one before, where that is known. */
static inline int64_t
plumb_iteration_from(const struct plumb_iteration *item)
{
	return item->interval_ns == PLUMB_UNKNOWN ? item->start_ns
	                                          : item->start_ns - item->interval_ns;
}

/* Over iterations; unknown where none has it. */
struct plumb_iteration_stat {
	int64_t average, most, p50, p95;
};

/* A kernel that is not where the loop has it. */
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
	double match;    /* share of kernels that have the same name as the one a period later */
	double coverage; /* share that agrees with an iteration, or a part of one at the ends */
	struct plumb_iteration *items;
	uint32_t count;
	struct plumb_odd *odd; /* by kind, then the most frequent first; of level 0 */
	uint32_t odd_count;
	uint32_t before_period; /* of a loop of its own before the first iteration, 0 none; of level
	                           0 */
	struct plumb_iteration_stat duration, interval, overlap, op_gap, op_time, copy_bytes;
	double overlap_ratio; /* DeepProf's: the mean of the intervals' ratios, however long
	                         each is; NAN: none is known */
	double overlap_share; /* of all intervals together: what the verdict is by */
	double slope_ns,
		slope_error_ns; /* of the time from end to end but for outliers', and half its
	                                    interval of 95 %; NAN under four iterations */
	double ops_slope;       /* kernels more an iteration, by the same line; NAN under four */
	uint32_t outliers;
	uint32_t verdict;                                   /* enum plumb_verdict, from: */
	double interval_share, idle_share, elsewhere_share; /* of the time from start to start */
};

struct plumb_iteration_track {
	uint32_t track, device, process;
	uint32_t role; /* enum plumb_track_role */
	uint32_t ops;  /* kernels */
	uint32_t copies;
	int64_t kernel_ns;
	double op_gap_ns;   /* between two kernels, on average; NAN under two */
	int64_t copy_bytes; /* from the host to the device, on all its tracks; of a main track */
	struct plumb_iteration_level levels[PLUMB_LEVELS_MOST];
	uint32_t level_count;
};

struct plumb_iterations {
	struct plumb_iteration_track *tracks; /* by device and process, the main one first */
	uint32_t count;
	bool newest; /* of the newest work only */
};

/* LIMITS NULL: plumb_iteration_limits. For plumb_iterations_free in any case. PLUMB_ESYSTEM: memory
 * is out. */
int
plumb_iterations_find(const struct plumb_profile *profile,
                      const struct plumb_iteration_limits *limits, struct plumb_iterations *found,
                      struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_iterations_free(struct plumb_iterations *found);

/* Do iterations take longer and longer? The slope is known to within half of itself, and adds up to
 * 1 % of an iteration. */
static inline bool
plumb_iterations_slow_down(const struct plumb_iteration_level *level)
{
	return level->slope_ns > 2 * level->slope_error_ns &&
	       level->slope_ns * (level->count - 1) > 0.01 * (double)level->duration.average;
}

/* Do intervals in which the device runs nothing else take more of the time than LIMITS allow? */
static inline bool
plumb_iterations_wait_between(const struct plumb_iteration_level *level,
                              const struct plumb_iteration_limits *limits)
{
	return (level->interval_share - level->elsewhere_share) * 1e6 > (double)limits->interval;
}

#endif
