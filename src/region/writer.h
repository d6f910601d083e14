/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a region. Used inside other people's programs: never prints, exits, allocates from the
 * heap, or takes a lock; all memory is the mapped file itself. See layout.h for the format.
 */
#ifndef PLUMB_REGION_WRITER_H
#define PLUMB_REGION_WRITER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/words.h"
#include "region/layout.h"

struct plumb_region {
	struct plumb_region_header *header; /* also the base of the mapping */
	_Atomic uint32_t arenas;            /* arenas handed out */
};

/* One writer's part of a region. Zero it, set region and number, and use it from one thread at a
 * time. `fate` says why the last failed append failed. */
struct plumb_arena {
	struct plumb_region *region;
	uint32_t number;
	struct plumb_chunk_header *chunk; /* NULL before the first record */
	enum plumb_fate fate;
	uint32_t retry; /* private: appends to fail before the file system is asked again */
	/* The arena's tallies by source and fate, made when first used. */
	plumb_id ledger[PLUMB_SOURCE_COUNT][PLUMB_FATE_COUNT];
};

/*
 * Creates PATH (which must not exist), sizes it to SIZE bytes and maps it. No descriptor stays
 * open. Errors: PLUMB_ESYSTEM (no space for even the first chunk, permission, …). SIGXFSZ is
 * blocked on the calling thread meanwhile.
 */
int plumb_region_create(struct plumb_region *region, const char *path, uint64_t size,
                        struct plumb_error *error) PLUMB_MUST_CHECK;

/* As plumb_region_create, but in the process's own memory, without a file. */
int plumb_region_create_private(struct plumb_region *region, uint64_t size,
                                struct plumb_error *error) PLUMB_MUST_CHECK;

/* Unmaps. The file stays. */
void plumb_region_close(struct plumb_region *region);

/* A file of SIZE bytes is made beside the region and counts against its limit. False: there is no
 * room for it (a quarter of what is left stays for records). Any thread. */
bool plumb_region_take_beside(struct plumb_region *region, uint64_t size);
/* It was not made after all. */
void plumb_region_give_beside(struct plumb_region *region, uint64_t size);

/* Starts an arena. */
void plumb_arena_init(struct plumb_arena *arena, struct plumb_region *region);

/*
 * Appends a zeroed record of TYPE and LENGTH bytes (head counted) and returns it, or NULL when
 * there is no room (arena->fate says why). It becomes visible to readers with plumb_arena_commit;
 * until then the next append would overwrite it. A record larger than a chunk gets a chunk of its
 * own.
 */
void *plumb_arena_append(struct plumb_arena *arena, enum plumb_record_type type, size_t length);
void plumb_arena_commit(struct plumb_arena *arena, const void *record);

/* Appends a string record; 0 when there is no room. Longer than PLUMB_STRING_MAX is cut. */
plumb_id plumb_arena_string(struct plumb_arena *arena, const char *text, size_t bytes);

/* Counts in the header what has no arena to count it: COUNT units of SOURCE (0: of none) with FATE,
 * which found no room because of WHY (region full or no space). Any thread. */
void plumb_region_lost(struct plumb_region *region, enum plumb_source source, enum plumb_fate fate,
                       enum plumb_fate why, uint64_t count);

/* Adds COUNT to the arena's tally of (SOURCE, FATE). When even the tally finds no room, the
 * header counts it. */
void plumb_arena_count(struct plumb_arena *arena, enum plumb_source source, enum plumb_fate fate,
                       uint64_t count);

/* As plumb_arena_count, inline where the tally exists: for hot paths. */
static inline void
plumb_arena_tally(struct plumb_arena *arena, enum plumb_source source, enum plumb_fate fate,
                  uint64_t count)
{
	plumb_id id = arena->ledger[source][fate];
	if (!id) {
		plumb_arena_count(arena, source, fate, count);
		return;
	}
	struct plumb_record_ledger *tally =
		(void *)((char *)arena->region->header + ((size_t)id << 3));
	/* One writer: no locked instruction is needed, a reader sees a whole number. */
	atomic_store_explicit(&tally->count,
	                      atomic_load_explicit(&tally->count, memory_order_relaxed) + count,
	                      memory_order_relaxed);
}

/* Appends an ENVIRONMENT record. Returns false when there is no room or VALUE is NULL. */
bool plumb_arena_environment(struct plumb_arena *arena, const char *key, const char *value);

static inline plumb_id
plumb_region_id(const struct plumb_region *region, const void *record)
{
	return (plumb_id)(((const char *)record - (const char *)region->header) >> 3);
}

static inline void *
plumb_region_at(const struct plumb_region *region, plumb_id id)
{
	return (char *)region->header + ((size_t)id << 3);
}

/* Brackets an update in place of a record with a sequence word. */
static inline void
plumb_sequence_begin(_Atomic uint32_t *sequence)
{
	uint32_t s = atomic_load_explicit(sequence, memory_order_relaxed);
	atomic_store_explicit(sequence, s + 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
}

static inline void
plumb_sequence_end(_Atomic uint32_t *sequence)
{
	uint32_t s = atomic_load_explicit(sequence, memory_order_relaxed);
	atomic_store_explicit(sequence, s + 1, memory_order_release);
}

/* Adds one observation X. */
static inline void
plumb_observations_add(struct plumb_observations *moments, int64_t x)
{
	if (__builtin_add_overflow(moments->sum, x, &moments->sum)) /* it stops at the greatest */
		moments->sum = x < 0 ? -INT64_MAX : INT64_MAX;
	moments->count++;
	if (x < moments->min || moments->count == 1)
		moments->min = x;
	if (x > moments->max || moments->count == 1)
		moments->max = x;
	double delta = (double)x - moments->mean;
	moments->mean += delta / (double)moments->count;
	moments->m2 += delta * ((double)x - moments->mean);
}

/* Adds TIMES observations X. */
static inline void
plumb_observations_add_times(struct plumb_observations *moments, int64_t x, uint64_t times)
{
	double before = (double)moments->count, added = (double)times;
	double delta = (double)x - moments->mean;
	int64_t sum;
	if (__builtin_mul_overflow(x, times, &sum) ||
	    __builtin_add_overflow(moments->sum, sum, &moments->sum))
		moments->sum = x < 0 ? -INT64_MAX : INT64_MAX;
	if (x < moments->min || !moments->count)
		moments->min = x;
	if (x > moments->max || !moments->count)
		moments->max = x;
	moments->count += times;
	moments->mean += delta * added / (before + added);
	moments->m2 += delta * delta * before * added / (before + added);
}

/* Adds one observation X to a value. */
static inline void
plumb_value_add(struct plumb_record_value *value, int64_t x)
{
	plumb_sequence_begin(&value->sequence);
	plumb_observations_add(&value->moments, x);
	plumb_sequence_end(&value->sequence);
}

/* Adds TIMES of them. */
static inline void
plumb_value_add_times(struct plumb_record_value *value, int64_t x, uint64_t times)
{
	plumb_sequence_begin(&value->sequence);
	plumb_observations_add_times(&value->moments, x, times);
	plumb_sequence_end(&value->sequence);
}

#endif
