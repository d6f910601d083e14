/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds which spans of several ranks are one collective operation. The first rule that holds
 * decides:
 *
 *  1. They have the same process group, and the recording gives them the same number in it. No
 *     clock is used. This does not hold for what only two of a larger group do (SendRecv), because
 *     each pair has its own numbers.
 *  2. They have the same process group and operation, and end together.
 *  3. They have no group, but their streams have the same communicator, and they end together.
 *     Streams whose kernels of one name always end together have the same communicator.
 *  4. They have the same kernel name and end together.
 *
 * Spans end together if all of them run at some moment and their ends are close: within 20 µs or a
 * quarter of the shortest span. For ranks on different hosts, add how far their clocks are known to
 * be off (plumb_clock.residual_ns). If the group is known, the length of the shortest span is close
 * enough, because operations of a group come one after another. A rank is a device of a process. It
 * is in a set at most once.
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
#include "model/gpu_work.h"

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
	uint32_t span;    /* in the work that was searched */
	uint32_t track;
	uint32_t name;  /* string: the operation if the group is known, else the kernel */
	uint32_t group; /* the same number on all ranks of a group; PLUMB_NONE: not known */
	uint32_t row;   /* in the profile's collectives; PLUMB_NONE: it has none */
	uint32_t size;  /* ranks of the group; UINT32_MAX: not known */
	uint32_t rank;  /* a number for each device of a process */
	uint32_t set;   /* PLUMB_NONE: no other rank took part */
	uint32_t among; /* private: only members with the same number can match; PLUMB_NONE: none */
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
	uint32_t *rank_of; /* by track: the rank of a stream that has work, else PLUMB_NONE */
	uint32_t rank_count;
	int64_t clocks_ns; /* how far apart clocks may be that agree: those of different hosts */
};

/* Finds all spans that are collectives. A profile of one rank has none. Call plumb_collectives_free
 * even after an error. PLUMB_ESYSTEM: out of memory. */
int plumb_collectives_find(const struct plumb_profile *profile,
                           struct plumb_collectives *found) PLUMB_MUST_CHECK;
/* The same in WORK, which may be the newest work of a profile without spans. */
int plumb_collectives_find_in(const struct plumb_gpu_work *work,
                              struct plumb_collectives *found) PLUMB_MUST_CHECK;
void plumb_collectives_free(struct plumb_collectives *found);

/* What is known of SPAN; NULL: it is no collective. */
const struct plumb_collective_member *
plumb_collectives_member(const struct plumb_collectives *found, uint32_t span);
/* The set that SPAN is in; NULL: none. */
const struct plumb_collective_set *
plumb_collectives_of(const struct plumb_collectives *found, uint32_t span);

/* Private to collectives*.c: sets `among` to the number of the communicator that rule 3 finds, and
 * to PLUMB_NONE for the other members. False: out of memory. */
bool plumb_collectives_streams(struct plumb_collectives *found);
/* By context: is its GPU work communication? Malloced; NULL: out of memory. */
unsigned char *plumb_collective_contexts(const struct plumb_profile *profile);
/* Private too: how far apart two ends may be if the shorter span lasts SHORTEST. */
int64_t plumb_collectives_apart(const struct plumb_collectives *found, int64_t shortest);

#endif
