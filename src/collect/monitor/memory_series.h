/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is live in a pool over time, without a lock and in bounded room (struct
 * plumb_record_memory_series). Any thread notes its changes. The greatest and the least of a bin
 * are exact: they are kept where the bins are, not sampled. A change that a thread makes while
 * another one closes the bin counts in the bin before or after.
 */
#ifndef PLUMB_COLLECT_MONITOR_MEMORY_SERIES_H
#define PLUMB_COLLECT_MONITOR_MEMORY_SERIES_H

#include "collect/clock.h"

/* A series of POOL that begins now. NULL: no room. The caller commits it with the arena. */
struct plumb_record_memory_series *
plumb_memory_series_new(struct plumb_thread *thread, plumb_id pool);

/* Closes the open bin, at whose end BEFORE was live, and opens that of the time NOW, unless another
 * thread is at it. */
void
plumb_memory_series_turn(struct plumb_record_memory_series *series, uint64_t before, uint64_t now);

static inline void
plumb_memory_raise(_Atomic uint64_t *word, uint64_t to)
{
	uint64_t is = atomic_load_explicit(word, memory_order_relaxed);
	while (plumb_unlikely(is < to) &&
	       !atomic_compare_exchange_weak_explicit(word, &is, to, memory_order_relaxed,
	                                              memory_order_relaxed))
		;
}

static inline void
plumb_memory_lower(_Atomic uint64_t *word, uint64_t to)
{
	uint64_t is = atomic_load_explicit(word, memory_order_relaxed);
	while (plumb_unlikely(is > to) &&
	       !atomic_compare_exchange_weak_explicit(word, &is, to, memory_order_relaxed,
	                                              memory_order_relaxed))
		;
}

/* A change made BEFORE to LIVE, at the time NOW. RESERVED is what the allocator says then, or
 * UNTOLD. */
static inline void
plumb_memory_series_note_at(struct plumb_record_memory_series *series, uint64_t before,
                            uint64_t live, uint64_t reserved, uint64_t now)
{
	if (plumb_unlikely(now >= atomic_load_explicit(&series->edge, memory_order_acquire)))
		plumb_memory_series_turn(series, before, now);
	plumb_memory_raise(&series->now.most, live);
	plumb_memory_lower(&series->now.least, live);
	if (reserved == PLUMB_POOL_UNTOLD)
		return;
	uint64_t most = atomic_load_explicit(&series->now.most_reserved, memory_order_relaxed);
	if (most == PLUMB_POOL_UNTOLD || reserved > most)
		atomic_store_explicit(&series->now.most_reserved, reserved, memory_order_relaxed);
	atomic_store_explicit(&series->now.last_reserved, reserved, memory_order_relaxed);
}

/* The same now. SERIES may be NULL. */
static inline void
plumb_memory_series_note(struct plumb_record_memory_series *series, uint64_t before, uint64_t live,
                         uint64_t reserved)
{
	if (plumb_likely(series))
		plumb_memory_series_note_at(series, before, live, reserved,
		                            plumb_clock_coarse_ns());
}

#endif
