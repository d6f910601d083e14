/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same iteration on several ranks (main tracks of several devices): who comes last, and how
 * long the others wait.
 *
 *	struct plumb_rank_match match;
 *	// moments[t] of found->tracks[t], or NULL
 *	if (plumb_ranks_match(profile, found, moments, marked, &match) < 0) …
 *	match.ranks[r].rank, match.items[k].straggler, plumb_rank_of(&match, k, r)->waiting_ns
 *	plumb_rank_match_free(&match);
 *
 * The rank that comes last to a collective has the shortest time in it. The other ranks wait for as
 * long as the collective lasts longer there. analyze/collectives.h says which operations are one.
 * It leaves some, because clocks differ. Of these the K-th ones of an iteration are one: for the
 * same operation of a process group, else on all ranks.
 */
#ifndef PLUMB_ANALYZE_STEPS_RANKS_H
#define PLUMB_ANALYZE_STEPS_RANKS_H

#include "analyze/collectives.h"
#include "analyze/iterations.h"
#include "analyze/steps/explain.h"
#include "analyze/steps/marked.h"

enum plumb_rank_matched {
	PLUMB_MATCHED_BY_STEP,  /* those that the program gives the same number */
	PLUMB_MATCHED_BY_TIME,  /* iterations that overlap; clocks are common */
	PLUMB_MATCHED_BY_MARK,  /* the same step of those that the program marks */
	PLUMB_MATCHED_BY_INDEX, /* from the first on */
};
enum plumb_straggler_by {
	PLUMB_STRAGGLER_UNKNOWN,
	PLUMB_STRAGGLER_BY_COLLECTIVES,
	PLUMB_STRAGGLER_BY_END,
	PLUMB_STRAGGLER_BY_DURATION,
};

struct plumb_matched_rank {
	uint32_t place; /* in found->tracks */
	int64_t rank;   /* of its process, or PLUMB_UNKNOWN */
	int64_t first;  /* its iteration with the number of item 0; not by step */
	/* by iteration: the program's own, as of plumb_marked; NULL: none */
	const int64_t *numbers;
	uint32_t straggles; /* in how many iterations it comes last */
	int64_t waiting_ns; /* mean; PLUMB_UNKNOWN without collectives */
	int64_t duration_ns;
};
struct plumb_rank_iteration {
	uint32_t iteration; /* of its track */
	int64_t waiting_ns; /* PLUMB_UNKNOWN without collectives */
};
struct plumb_matched_item {
	int64_t step;                       /* the program's number for it, or PLUMB_UNKNOWN */
	int64_t start_skew_ns, end_skew_ns; /* last less first; PLUMB_UNKNOWN: clocks differ */
	uint32_t straggler;                 /* place in ranks, PLUMB_NONE: none */
};

/* An iteration that not every rank has. */
struct plumb_left_out {
	uint32_t rank; /* place in ranks */
	uint32_t iteration;
};

struct plumb_rank_match {
	struct plumb_matched_rank *ranks;
	uint32_t rank_count; /* 0: not several ranks with iterations */
	struct plumb_matched_item *items;
	uint32_t count;
	struct plumb_rank_iteration *each;         /* by item, then rank */
	PLUMB_VEC(struct plumb_left_out) left_out; /* by rank, then iteration */
	struct plumb_collectives together;         /* which operations are one */
	bool common_clock;                         /* of all ranks: then there is a skew */
	uint32_t matched;                          /* enum plumb_rank_matched */
	uint32_t by;                               /* enum plumb_straggler_by */
	bool collectives;
};

/* MARKED[t] of found->tracks[t], which stays the caller's and is read later too. For
 * plumb_rank_match_free in any case. PLUMB_ESYSTEM: memory is out. */
int plumb_ranks_match(const struct plumb_profile *profile, const struct plumb_iterations *found,
                      struct plumb_moments *const *moments, const struct plumb_marked *marked,
                      struct plumb_rank_match *match) PLUMB_MUST_CHECK;
void plumb_rank_match_free(struct plumb_rank_match *match);

static inline const struct plumb_rank_iteration *
plumb_rank_of(const struct plumb_rank_match *match, uint32_t item, uint32_t rank)
{
	return &match->each[(size_t)item * match->rank_count + rank];
}

/* The peers of iteration NUMBER of found->tracks[PLACE], into PEERS (rank_count of them). Returns
 * how many there are. */
uint32_t
plumb_rank_peers(const struct plumb_rank_match *match, const struct plumb_iterations *found,
                 struct plumb_moments *const *moments, uint32_t place, uint32_t number,
                 struct plumb_explain_peer *peers);

#endif
