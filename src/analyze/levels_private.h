/* SPDX-License-Identifier: Apache-2.0 */
/* For the files levels*.c. */
#ifndef PLUMB_ANALYZE_LEVELS_PRIVATE_H
#define PLUMB_ANALYZE_LEVELS_PRIVATE_H

#include "analyze/levels.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/vec.h"

/* Metrics that are corrected. The first belongs to M/L, the others to M/L/G. */
enum {
	PLUMB_CORRECTED_HOST,
	PLUMB_CORRECTED_KERNELS,
	PLUMB_CORRECTED_COPIES,
	PLUMB_CORRECTED_METRICS
};
extern const uint32_t plumb_levels_metrics[PLUMB_CORRECTED_METRICS];
static inline uint32_t
plumb_levels_level_of(int metric)
{
	return metric == PLUMB_CORRECTED_HOST ? PLUMB_LEVEL_ML : PLUMB_LEVEL_MLG;
}

/* A path without what is looked at in M/L/G alone; node 0 is the root. */
struct plumb_levels_node {
	uint32_t parent, context; /* the first context of it */
};

struct plumb_levels_sums {
	double *ns, *count; /* by node, of the window */
	double *calls;      /* by node, of the whole run */
};

struct plumb_levels_run {
	struct plumb_level_run run; /* profile and why are not used */
	bool kept;
	bool has_no_loop; /* its time counts, its paths do not */
	char why[PLUMB_LEVELS_WHY];
	struct plumb_levels_sums sums[PLUMB_CORRECTED_METRICS];
	/* A path that the first run does not have, and how often it was called; "": none. */
	char extra[100];
	double extra_calls;
};

struct plumb_levels {
	const struct plumb_profile *profile;
	struct plumb_cost_loop loop;
	uint32_t bounds;
	double steps; /* in the first run's loop; 1 without a loop */
	PLUMB_VEC(struct plumb_levels_node) nodes;
	struct plumb_map map;
	uint32_t *node_of;             /* by context of the first run */
	struct plumb_levels_run first; /* in no mean */
	PLUMB_VEC(struct plumb_levels_run) runs;
	/* By node: other runs called it more or less often, so it is left out. */
	bool *unlike[PLUMB_CORRECTED_METRICS];
	char unlike_why[PLUMB_CORRECTED_METRICS][PLUMB_LEVELS_WHY]; /* of the one that takes most */
	uint32_t unlike_count[PLUMB_CORRECTED_METRICS];
	/* What the run at M/L/G/C counted, at contexts of the first run, and what it did not. */
	PLUMB_VEC(struct plumb_profile_count) counts;
	struct plumb_pool *texts; /* of `counts` */
	char counts_why[1000];
};

/* Is the run kept, at LEVEL, and recorded? */
static inline bool
plumb_levels_has(const struct plumb_levels_run *run, uint32_t level)
{
	return run->kept && run->run.level == level && run->sums[0].ns;
}

/* A string of P, "" if it has none. */
static inline const char *
plumb_levels_name(const struct plumb_profile *p, uint32_t string)
{
	const char *text = plumb_text(p, string);

	return text ? text : "";
}

/* The metric of NODE in RUN, in as many calls as the first run has in its loop. NAN: unknown. */
double plumb_levels_value(const struct plumb_levels *levels, const struct plumb_levels_run *run,
                          int metric, uint32_t node);

/* Finds the paths and runs that did other work. */
void plumb_levels_find_unlike(struct plumb_levels *levels);

/* The times of LEVEL, of the runs that are kept; *COUNT of them. TIMES has room for all runs. */
struct plumb_level_estimate
plumb_levels_times(const struct plumb_levels *levels, uint32_t level, double *times);

/* The corrected tree: *VALUES, malloced. 0, or PLUMB_ESYSTEM. */
int plumb_levels_correct(const struct plumb_levels *levels, struct plumb_level_value **values,
                         uint32_t *count);

#endif
