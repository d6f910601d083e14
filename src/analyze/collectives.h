/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which spans of several ranks are one collective operation. The first of these rules that holds:
 *
 *  1. the same process group and number in it, as the recording says; no clock is asked. But not of
 *     what only two of a larger group do (SendRecv): each pair counts for itself;
 *  2. the same process group and operation, ending together;
 *  3. without a group: streams whose kernels of one name always end together are one
 *     communicator's, and of these those that end together;
 *  4. else one kernel name, ending together.
 *
 * Ending together is: while all of them run, within 20 µs or a quarter of the shortest; within the
 * shortest, for a group that is known, whose operations come one after another. A rank, a device of
 * a process, is there once.
 *
 *	struct plumb_collectives all;
 *	if (plumb_collectives_find(profile, &all) < 0) …
 *	// NULL: with no other rank
 *	const struct plumb_collective_set *set = plumb_collectives_of(&all, span);
 *	all.members.items[set->first + i].span …
 *	plumb_collectives_free(&all);
 */
#ifndef PLUMB_ANALYZE_COLLECTIVES_H
#define PLUMB_ANALYZE_COLLECTIVES_H

#include "base/vec.h"
#include "model/profile.h"

enum plumb_collectives_by {
	PLUMB_COLLECTIVES_BY_SEQUENCE,
	PLUMB_COLLECTIVES_BY_GROUP,
	PLUMB_COLLECTIVES_BY_STREAM,
	PLUMB_COLLECTIVES_BY_NAME,
	PLUMB_COLLECTIVES_BY,
};

struct plumb_collective_member {
	int64_t start_ns, end_ns;
	int64_t sequence; /* PLUMB_UNKNOWN */
	uint32_t span;
	uint32_t name;  /* string: of the operation where the group is known, else of the kernel */
	uint32_t group; /* the same number on all ranks of a group; PLUMB_NONE: not known */
	uint32_t size;  /* ranks of the group; UINT32_MAX: not known */
	uint32_t rank;  /* a number for each device of a process */
	uint32_t set;   /* PLUMB_NONE: with no other rank */
	uint32_t among; /* private: where others to be with are looked for; PLUMB_NONE: no more */
};
struct plumb_collective_set {
	uint32_t first, count; /* in members */
	uint32_t by;           /* enum plumb_collectives_by */
	int64_t shortest_ns;   /* of its members */
};

struct plumb_collectives {
	PLUMB_VEC(struct plumb_collective_member) members; /* by set */
	PLUMB_VEC(struct plumb_collective_set) sets;
	uint32_t *by_span; /* places in members, by span */
};

/* All spans that are collectives of a profile of several ranks; nothing of one with one. For
 * plumb_collectives_free in any case. PLUMB_ESYSTEM: memory is out. */
int plumb_collectives_find(const struct plumb_profile *profile,
                           struct plumb_collectives *found) PLUMB_MUST_CHECK;
void plumb_collectives_free(struct plumb_collectives *found);

/* What is known of SPAN; NULL: it is no collective. */
const struct plumb_collective_member *
plumb_collectives_member(const struct plumb_collectives *found, uint32_t span);
/* The set that SPAN is in; NULL: none. */
const struct plumb_collective_set *
plumb_collectives_of(const struct plumb_collectives *found, uint32_t span);

/* Private to collectives*.c: among becomes a number for each communicator that rule 3 tells,
 * PLUMB_NONE for the other members. False: memory is out. */
bool
plumb_collectives_streams(const struct plumb_profile *profile, struct plumb_collectives *found);
/* As above: how far apart two ends may lie of which the shorter one's span lasts SHORTEST. */
int64_t plumb_collectives_apart(int64_t shortest);

#endif
