/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/monitor/memory_series.h"

#define WIDTH 4000000u       /* ns, at first: as fine as the clock */
#define LONGEST (1ull << 52) /* ns, 52 days: nothing that comes later is in it */

static const struct plumb_memory_bin untold = { PLUMB_POOL_UNTOLD, PLUMB_POOL_UNTOLD,
	                                        PLUMB_POOL_UNTOLD, PLUMB_POOL_UNTOLD,
	                                        PLUMB_POOL_UNTOLD };

struct plumb_record_memory_series *
plumb_memory_series_new(struct plumb_thread *thread, plumb_id pool)
{
	struct plumb_record_memory_series *series = plumb_arena_append(
		plumb_thread_arena(thread), PLUMB_RECORD_MEMORY_SERIES, sizeof *series);

	if (!series)
		return NULL;
	series->pool = pool;
	series->start = plumb_clock_coarse_ns();
	series->width = WIDTH;
	for (unsigned i = 0; i < PLUMB_MEMORY_BINS; i++)
		series->bins[i] = untold;
	atomic_store_explicit(&series->now.most_reserved, PLUMB_POOL_UNTOLD, memory_order_relaxed);
	atomic_store_explicit(&series->now.last_reserved, PLUMB_POOL_UNTOLD, memory_order_relaxed);
	atomic_store_explicit(&series->edge, series->start + WIDTH, memory_order_release);
	plumb_arena_commit(plumb_thread_arena(thread), series);
	return series;
}

static uint64_t
greater_told(uint64_t a, uint64_t b)
{
	return a == PLUMB_POOL_UNTOLD || (b != PLUMB_POOL_UNTOLD && b > a) ? b : a;
}

/* NEXT comes after INTO, in one bin. */
static void
merge(struct plumb_memory_bin *into, const struct plumb_memory_bin *next)
{
	if (next->last == PLUMB_POOL_UNTOLD)
		return;
	into->least = next->least < into->least ? next->least : into->least;
	into->most = greater_told(into->most, next->most);
	into->last = next->last;
	into->most_reserved = greater_told(into->most_reserved, next->most_reserved);
	if (next->last_reserved != PLUMB_POOL_UNTOLD)
		into->last_reserved = next->last_reserved;
}

static void
coarsen(struct plumb_record_memory_series *series)
{
	for (unsigned i = 0; i < PLUMB_MEMORY_BINS; i++) {
		struct plumb_memory_bin bin = untold;

		if (i < PLUMB_MEMORY_BINS / 2) {
			bin = series->bins[2 * i];
			merge(&bin, &series->bins[2 * i + 1]);
		}
		series->bins[i] = bin;
	}
	series->open /= 2;
	series->width *= 2;
}

/* What is live at the end of the open bin begins the next one. */
static struct plumb_memory_bin
take_now(struct plumb_record_memory_series *series, uint64_t before)
{
	uint64_t reserved = atomic_load_explicit(&series->now.last_reserved, memory_order_relaxed);
	struct plumb_memory_bin bin = {
		.least = atomic_exchange_explicit(&series->now.least, before, memory_order_relaxed),
		.most = atomic_exchange_explicit(&series->now.most, before, memory_order_relaxed),
		.last = before,
		.most_reserved = atomic_exchange_explicit(&series->now.most_reserved, reserved,
		                                          memory_order_relaxed),
		.last_reserved = reserved,
	};

	/* A thread may have changed the pool and not have noted it yet. */
	bin.least = bin.least < before ? bin.least : before;
	bin.most = bin.most > before ? bin.most : before;
	return bin;
}

static void
close_bin(struct plumb_record_memory_series *series, uint64_t before, uint64_t since)
{
	plumb_sequence_begin(&series->sequence);
	struct plumb_memory_bin bin = take_now(series, before);
	merge(&series->bins[series->open], &bin);
	while (since >= PLUMB_MEMORY_BINS * series->width)
		coarsen(series);
	series->open = (uint32_t)(since / series->width);
	plumb_sequence_end(&series->sequence);
}

void
plumb_memory_series_turn(struct plumb_record_memory_series *series, uint64_t before, uint64_t now)
{
	uint64_t edge = atomic_load_explicit(&series->edge, memory_order_relaxed);

	if (now < edge || now - series->start > LONGEST ||
	    !atomic_compare_exchange_strong_explicit(&series->edge, &edge, UINT64_MAX,
	                                             memory_order_acquire, memory_order_relaxed))
		return;
	close_bin(series, before, now - series->start);
	edge = series->start + (series->open + UINT64_C(1)) * series->width;
	atomic_store_explicit(&series->edge, edge, memory_order_release);
}
