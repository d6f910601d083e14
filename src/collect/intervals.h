/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which range does an address lie in: a sorted set of starts, each with the number of an entry. One
 * thread at a time. A look costs two binary searches, a change moves at most a block.
 */
#ifndef PLUMB_COLLECT_INTERVALS_H
#define PLUMB_COLLECT_INTERVALS_H

#include <stdbool.h>
#include <stdint.h>

#define PLUMB_INTERVALS_BLOCK 128u
#define PLUMB_INTERVALS_BLOCKS 2048u
/* So many find room, whatever came and went before. */
#define PLUMB_INTERVALS_LEAST (PLUMB_INTERVALS_BLOCKS * PLUMB_INTERVALS_BLOCK / 4)

struct plumb_interval_block {
	uint32_t count;
	uint32_t next_free;
	uint32_t entries[PLUMB_INTERVALS_BLOCK];
	uint64_t starts[PLUMB_INTERVALS_BLOCK];
};
/* Zero it to start. 3 MiB, of which what is used is touched. */
struct plumb_intervals {
	uint32_t blocks; /* in order */
	uint32_t made;
	uint32_t free;                          /* index + 1 */
	uint32_t order[PLUMB_INTERVALS_BLOCKS]; /* indexes in pool */
	uint64_t first[PLUMB_INTERVALS_BLOCKS]; /* the first start of each, in order */
	struct plumb_interval_block pool[PLUMB_INTERVALS_BLOCKS];
};

/* A place in the order. A change of the set makes it stale. */
struct plumb_interval_at {
	uint32_t block, index;
};

/* Puts ENTRY at START, which must not be there. False: it is full. */
bool plumb_intervals_put(struct plumb_intervals *set, uint64_t start, uint32_t entry);
/* The last one that starts at or before ADDRESS. False: there is none. */
bool plumb_intervals_floor(const struct plumb_intervals *set, uint64_t address,
                           struct plumb_interval_at *at);
/* The first one that starts at or after ADDRESS. False: there is none. */
bool plumb_intervals_ceiling(const struct plumb_intervals *set, uint64_t address,
                             struct plumb_interval_at *at);
/* Goes to the next one. False: there is none. */
bool plumb_intervals_next(const struct plumb_intervals *set, struct plumb_interval_at *at);
uint32_t plumb_intervals_entry(const struct plumb_intervals *set, struct plumb_interval_at at);
void plumb_intervals_remove(struct plumb_intervals *set, struct plumb_interval_at at);

#endif
