/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a communication library told of its operations (`plumb run --traffic`), put together: one
 * row for each group, operation, bytes, type, algorithm and protocol. Operations of several ranks
 * are one if their group, operation and number in the group agree; no clock is needed for that.
 *
 * An operation moves data from when the last rank's kernel begins until the last one ends. What a
 * rank's kernel runs before that, it waits. That compares clocks of several ranks; if the ends of
 * an operation say that the clocks differ, each rank's time above the shortest is waiting, and the
 * rank with the shortest time came last (as in rank_waits.h).
 *
 *	struct plumb_collective_facts facts;
 *	if (plumb_collective_facts_find(profile, &facts) < 0) …
 *	for each fact	for (i = 0; i < fact->rank_count; i++)
 *				facts.ranks.items[fact->first_rank + i] …
 *	plumb_collective_facts_free(&facts);
 */
#ifndef PLUMB_ANALYZE_COLLECTIVE_FACTS_H
#define PLUMB_ANALYZE_COLLECTIVE_FACTS_H

#include "base/vec.h"
#include "model/profile.h"

struct plumb_collective_fact {
	uint32_t group, ranks; /* strings, as in plumb_collective; or PLUMB_NONE */
	int64_t size;          /* ranks of the group; PLUMB_UNKNOWN */
	uint32_t operation, datatype, algorithm, protocol; /* strings, or PLUMB_NONE */
	int64_t bytes;     /* of one call on one rank; PLUMB_UNKNOWN */
	int64_t all_bytes; /* of all calls of all ranks; PLUMB_UNKNOWN; stops at INT64_MAX */
	bool pairs;        /* sends and receives: no rank comes last */
	uint64_t calls;    /* on all ranks together */
	/* How many operations they are, how many of these are known of all ranks (of two, without
	 * SIZE), and of how many of those all times are known. */
	uint64_t operations, matched, timed;
	uint64_t shared; /* calls whose kernel ran other operations too: they are not timed */
	/* Of those that are timed: from the last start to the last end, added up. If CALLS are on
	 * one rank alone, from start to end. */
	int64_t moving_ns;
	/* Of those that are timed; NAN: unknown. Bytes of the whole operation by moving_ns, and the
	 * same times how often a byte crosses a link (as NCCL's tests define both). Bytes/s. */
	double algorithm_bandwidth, bus_bandwidth;
	uint32_t first_rank, rank_count; /* in plumb_collective_facts.ranks, by rank */
};

struct plumb_collective_fact_rank {
	int64_t rank; /* in the group; PLUMB_UNKNOWN */
	uint32_t process;
	uint64_t calls;
	/* Of the operations that are timed: */
	int64_t waited_ns; /* for others */
	uint64_t last;     /* how often it came last, and the others waited notably */
	int64_t late_ns;   /* how long after the second last, then, added up */
	int64_t most_late_ns;
	int64_t caused_ns; /* what all others waited for it, added up */
};

struct plumb_collective_facts {
	PLUMB_VEC(struct plumb_collective_fact) items; /* those with the most bytes first */
	PLUMB_VEC(struct plumb_collective_fact_rank) ranks;
	uint32_t *of_row; /* by row of the table: which of ITEMS; PLUMB_NONE: no library told it */
	/* Rows of the table that the library told, and of those the ones without a kernel. */
	uint64_t told, untimed;
};

/* A file without such rows has no items. PLUMB_ESYSTEM: out of memory; free it even then. */
int plumb_collective_facts_find(const struct plumb_profile *profile,
                                struct plumb_collective_facts *facts) PLUMB_MUST_CHECK;
void plumb_collective_facts_free(struct plumb_collective_facts *facts);

/* How often each byte of an operation of SIZE ranks crosses a link: 2(n-1)/n of an all-reduce. NAN:
 * not known. */
double plumb_collective_bus_factor(const char *operation, int64_t size);
/* The bytes that algorithm bandwidth counts, if a call names BYTES: those of all ranks for an
 * all-gather. PLUMB_UNKNOWN: not known. */
int64_t plumb_collective_whole_bytes(const char *operation, int64_t size, int64_t bytes);

/* The bytes that a rank sends to other ranks in such an operation, the mean over the ranks, if a
 * call names BYTES and the library uses this algorithm and protocol. They include what the protocol
 * adds to the data, but neither single flags nor rounding. NAN: not known. */
double plumb_collective_sent_bytes(const char *operation, const char *algorithm,
                                   const char *protocol, int64_t size, int64_t bytes);

#endif
