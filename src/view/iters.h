/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `plumb iters` shows, as a value: the iterations of each device, what filled the time between
 * them, marks of the program, ranks side by side, and critical paths.
 *
 *	struct plumb_iters_query query = { 0 };
 *	struct plumb_iters iters;
 *	if (plumb_iters_make(&profile, &query, &iters, &error) < 0) …
 *	for (t = 0; t < iters.found.count; t++)
 *		if (plumb_iters_shown(&iters, &iters.found.tracks[t])) …
 *	plumb_iters_free(&iters);
 *
 * The profile needs all its spans, because marks are on threads.
 */
#ifndef PLUMB_VIEW_ITERS_H
#define PLUMB_VIEW_ITERS_H

#include <stdio.h>

#include "analyze/counter_series.h"
#include "analyze/host_steps.h"
#include "analyze/iterations.h"
#include "analyze/steps/explain.h"
#include "analyze/steps/filled.h"
#include "analyze/steps/marked.h"
#include "analyze/steps/ranks.h"
#include "base/json.h"

/* Which critical paths are wanted. */
enum plumb_iters_paths {
	PLUMB_ITERS_ALL_PATHS,   /* what JSON has */
	PLUMB_ITERS_SHORT_PATHS, /* PLUMB_ITERS_PATH_ROWS rows, as the text shows */
	PLUMB_ITERS_NO_PATHS,
	PLUMB_ITERS_ONE_PATH, /* of `track` alone, or of all if it has no loop */
};
#define PLUMB_ITERS_PATH_ROWS 8

struct plumb_iters_query {
	const struct plumb_iteration_limits *limits; /* NULL: plumb_iteration_limits */
	bool one;                                    /* only TRACK */
	int64_t track;
	int64_t loop;  /* counted from 1, takes the place of the main loop; 0: none does */
	bool explains; /* plumb_iters_explain will be called */
	enum plumb_iters_paths paths;
	bool path_one; /* of PLUMB_ITERS_ONE_PATH: of this iteration, not of the median one: */
	uint32_t path_iteration;
	int64_t path_spans; /* paths of at most so many spans; 0: PLUMB_PATH_SPANS_MOST */
	/* The profile, if nobody needs its spans afterwards: then paths of a part of it take them.
	 * Not with `explains`. NULL: it keeps them. */
	struct plumb_profile *last;
};

/* Filled for main tracks with iterations; all zeros for other tracks. */
struct plumb_iters_track {
	struct plumb_moments moments;
	/* of level 0: */
	struct plumb_filled filled;
	int64_t *contended; /* by iteration, or NULL */
	bool others;        /* another process has work on the device */
};

struct plumb_iters_steps {
	unsigned char *user;             /* by frame: is it your own code? */
	uint32_t *user_of;               /* by context: your line */
	struct plumb_division *division; /* where work is; by its place_of rows are made */
	struct plumb_moments_shared shared;
	struct plumb_iters_track *tracks; /* by place in found.tracks */
	struct plumb_moments **moments;   /* by the same: those of `tracks`, or NULL */
	struct plumb_marked *marked;      /* by the same, of level 0 */
	uint32_t count;
	struct plumb_rank_match match;
};

struct plumb_iters {
	const struct plumb_profile *profile;
	bool has_spans; /* the profile had some, before the paths took them */
	int64_t track;  /* the one to show, -1 all */
	int64_t loop;   /* as the query says */
	struct plumb_iterations found;
	struct plumb_iters_steps steps;
	struct plumb_iters_path *paths; /* NULL: none; iters_path.h */
	struct plumb_host_steps host;
};

/* The value must not move in memory. Always call plumb_iters_free. Errors: PLUMB_ESYSTEM and
 * PLUMB_EINPUT. */
int plumb_iters_make(const struct plumb_profile *profile, const struct plumb_iters_query *query,
                     struct plumb_iters *iters, struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_iters_free(struct plumb_iters *iters);

bool plumb_iters_shown(const struct plumb_iters *iters, const struct plumb_iteration_track *track);

/* Why nothing is shown, and what to do about it; NULL: something is. EXPLAINS: one iteration is to
 * be explained, which needs GPU work. */
const char *plumb_iters_why_empty(const struct plumb_iters *iters, bool explains);

/* Where an outside stretch of TRACK lies: PLUMB_ODD_BEFORE, PLUMB_ODD_BETWEEN or
 * PLUMB_ODD_AFTER the loops. */
enum plumb_odd_kind plumb_iters_where(const struct plumb_iteration_track *track, uint32_t stretch);

/* Words by the numbers of analyze/iterations.h; NULL is none. */
extern const char *const plumb_iters_roles[], *const plumb_iters_phases[];
extern const char *const plumb_iters_verdicts[], *const plumb_iters_odd[];

/* The program's own number for iteration I of level 0 of found.tracks[T]; PLUMB_UNKNOWN. */
int64_t plumb_iters_step(const struct plumb_iters *iters, uint32_t t, uint32_t i);
/* Does the program number any of them in another way than plumb counts them? */
bool plumb_iters_steps_differ(const struct plumb_iters *iters, uint32_t t);

/* ---- hardware counters over time ---- */

/* The next series of the device of found.tracks[T], from row *AT on. */
bool plumb_iters_counter_next(const struct plumb_iters *iters, uint32_t t, uint32_t *at,
                              struct plumb_counter_series *series);
/* Its mean in ITEM, with the interval before it; NAN: not known. */
double
plumb_iters_counter(const struct plumb_counter_series *series, const struct plumb_iteration *item);
/* Its mean over all iterations of LEVEL of which it is known, and the least and greatest mean of
 * one. */
struct plumb_iters_counter {
	uint32_t known;
	double mean, min, max;
};
struct plumb_iters_counter plumb_iters_counter_of(const struct plumb_counter_series *series,
                                                  const struct plumb_iteration_level *level);

/* ---- without GPU work, the steps that the program marks ---- */

/* Are they shown? The other functions are for this case. */
bool plumb_iters_host_shown(const struct plumb_iters *iters);
/* The time from the start of step I to the start of the next one; PLUMB_UNKNOWN for the last
 * one. */
int64_t plumb_iters_host_duration(const struct plumb_host_steps *host, uint32_t i);
/* Fills STAT from all durations. Negative: no memory. */
int
plumb_iters_host_measure(const struct plumb_host_steps *host, struct plumb_iteration_stat *stat);

/* ---- one iteration against the others ---- */

struct plumb_iters_explained {
	uint32_t place; /* in found.tracks */
	uint32_t depth; /* the level */
	int64_t step;   /* the program's own number, or PLUMB_UNKNOWN */
	struct plumb_explained told;
};
/* Explains iteration NUMBER of level DEPTH. It is of the track that the query names, else of the
 * first main track with this level. Errors: PLUMB_EEMPTY (there is none), PLUMB_ESYSTEM. */
int plumb_iters_explain(const struct plumb_iters *iters, uint32_t depth, int64_t number,
                        struct plumb_iters_explained *explained,
                        struct plumb_error *error) PLUMB_MUST_CHECK;
void plumb_iters_explained_free(struct plumb_iters_explained *explained);
/* Writes one JSON object. Negative: the write failed. */
int plumb_iters_explained_json(const struct plumb_iters *iters,
                               const struct plumb_iters_explained *explained, FILE *out);

#endif
