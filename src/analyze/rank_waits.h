/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each rank's GPU does: it computes, it is in collectives, or it idles; and how long it waits
 * in collectives for the rank that comes last. A rank is a device of a process.
 *
 *	struct plumb_rank_waits waits;
 *	if (plumb_rank_waits_find(profile, &waits) < 0) …
 *	struct plumb_rank_sums sums = plumb_rank_waits_sum(&waits, r, from_ns, to_ns);
 *	waits.sets.items[i].last …
 *	plumb_rank_waits_free(&waits);
 *
 * A rank waits in a collective from where it begins until the last rank begins; what
 * analyze/collectives.h knows says which rank that is. Only time in which the rank's GPU computes
 * nothing counts as waiting: what computation hides costs nothing. Waiting in two collectives at
 * once counts once.
 */
#ifndef PLUMB_ANALYZE_RANK_WAITS_H
#define PLUMB_ANALYZE_RANK_WAITS_H

#include "analyze/collectives.h"
#include "analyze/iterations.h"
#include "model/gpu_work.h"
#include "model/intervals.h"

/* Merged intervals. */
struct plumb_rank_times {
	struct plumb_interval_ns *items;
	int64_t *before; /* by item: how long those before it last */
	uint32_t count, room;
};

struct plumb_waiting_rank {
	uint32_t process, device;
	int64_t rank;              /* of the process, or PLUMB_UNKNOWN */
	int64_t first_ns, last_ns; /* of its work */
	/* Kernels but for collectives; collectives; waiting in them; and all work, copies too. */
	struct plumb_rank_times compute, collectives, waits, busy;
	/* Collectives, and how many of them are known to be one with those of other ranks. */
	uint32_t all, matched;
};

/* A set of collectives.h, in the order of their ends. */
struct plumb_rank_set {
	uint32_t set;
	uint32_t last;                   /* the rank that came last */
	uint32_t name;                   /* string: the operation or the kernel */
	int64_t end_ns;                  /* on the rank on which it ends last */
	int64_t least_ns, most_ns;       /* of what the others wait */
	uint32_t first_wait, wait_count; /* in waits */
	/* Of two ranks that send and receive: waiting is part of how pipelines work. */
	bool pair;
	bool opens; /* the first one of all its streams: start-up is part of its time */
};
struct plumb_rank_wait {
	uint32_t rank;
	int64_t ns;
};

struct plumb_rank_waits {
	struct plumb_gpu_work work;
	struct plumb_collectives together;
	struct plumb_waiting_rank *ranks; /* by rank of `together` */
	uint32_t count;
	PLUMB_VEC(struct plumb_rank_set) sets;
	PLUMB_VEC(struct plumb_rank_wait) waits;
};

/* For plumb_rank_waits_free in any case; PROFILE must stay until then. PLUMB_ESYSTEM: out of
 * memory. */
int plumb_rank_waits_find(const struct plumb_profile *profile,
                          struct plumb_rank_waits *waits) PLUMB_MUST_CHECK;
void plumb_rank_waits_free(struct plumb_rank_waits *waits);

/* What ranks are compared in. */
struct plumb_rank_range {
	int64_t from_ns, to_ns; /* equal: nothing can be compared */
	/* Level 0 of the loop with the most iterations, if it has most of the collectives. NULL:
	 * the range is all after the first collective of each stream, which waits for start-up. */
	const struct plumb_iteration_level *loop;
};
struct plumb_rank_range
plumb_rank_waits_range(const struct plumb_rank_waits *waits, const struct plumb_iterations *found);
/* Of STEPS (NAN: unknown) that take WHOLE_NS: a rank that others wait less for does not come late.
 * Ends are no more exact, and steps differ by about as much. */
int64_t plumb_rank_notable(int64_t whole_ns, double steps);

/* These parts add up to the whole. `collectives_ns` is without what computation hides. */
struct plumb_rank_sums {
	int64_t whole_ns, compute_ns, collectives_ns, idle_ns;
	int64_t copies_ns;  /* copies and sets, while no kernel runs */
	int64_t waiting_ns; /* of collectives_ns; PLUMB_UNKNOWN if too few are matched */
	int64_t hidden_ns;  /* of compute_ns: collectives ran meanwhile */
};
struct plumb_rank_sums plumb_rank_waits_sum(const struct plumb_rank_waits *waits, uint32_t rank,
                                            int64_t from_ns, int64_t to_ns);

#endif
