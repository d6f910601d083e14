/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds memory, and who held it at the peak. A context has a share for each thread that
 * allocated or freed there; they are added up before they become values, because one alone may be
 * negative.
 */
#include "settle/settle_private.h"

#include <math.h>

#include "base/hash.h"

/* ---- pools ---- */

/* The GPU that the process calls ORDINAL, if its runtime described it. */
static uint32_t
device_of(struct plumb_settle_region *region, uint32_t ordinal)
{
	const struct plumb_record *record;
	uint64_t cursor = 0;

	if (ordinal == UINT32_MAX)
		return PLUMB_NONE;
	while ((record = plumb_region_next(region->reader, &cursor))) {
		const struct plumb_record_device *device = (const void *)record;
		if (record->type == PLUMB_RECORD_DEVICE && record->length >= sizeof *device &&
		    device->ordinal == ordinal)
			return plumb_settle_device(region,
			                           plumb_region_reader_id(region->reader, record));
	}
	return PLUMB_NONE;
}

/* The GPU whose streams are of CONTEXT, as the GPU runtime numbers it. */
static uint32_t
device_of_context(struct plumb_settle_region *region, uint32_t context)
{
	const struct plumb_record *record;
	uint64_t cursor = 0;

	while ((record = plumb_region_next(region->reader, &cursor))) {
		const struct plumb_record_stream *stream = (const void *)record;
		if (record->type == PLUMB_RECORD_STREAM && record->length >= sizeof *stream &&
		    stream->context == context)
			return plumb_settle_device(region, stream->device);
	}
	return PLUMB_NONE;
}

static bool
is_of_driver(const struct plumb_record_memory_pool *record)
{
	return record->head.flags & PLUMB_POOL_DRIVER;
}

uint32_t
plumb_settle_pool(struct plumb_settle_region *region, const struct plumb_record_memory_pool *record)
{
	struct plumb_track track = {
		.kind = PLUMB_TRACK_MEMORY,
		.process = region->process,
		.device = is_of_driver(record) ? device_of_context(region, record->ordinal)
		                               : device_of(region, record->ordinal),
		.name = plumb_settle_string(region, record->name),
		.tid = PLUMB_UNKNOWN,
		.stream = PLUMB_UNKNOWN,
		.gpu_context = PLUMB_UNKNOWN,
		.start_ns = PLUMB_UNKNOWN,
		.end_ns = PLUMB_UNKNOWN,
		.overhead_ns = PLUMB_UNKNOWN,
	};
	uint64_t live = atomic_load(&record->live) >> PLUMB_POOL_TAG_BITS;
	uint64_t peak = atomic_load(&record->peak);
	struct plumb_settle_pool *pool;

	if (peak > PLUMB_POOL_MOST || live > PLUMB_POOL_MOST ||
	    region->pools.count == PLUMB_POOLS_MOST) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
		                   "memory of devices", 1);
		return PLUMB_NONE;
	}
	pool = plumb_vec_add(&region->pools);
	if (!pool) {
		region->settler->no_memory = true;
		return PLUMB_NONE;
	}
	pool->record = record;
	/* The newest change may not have been compared yet. */
	pool->peak = (int64_t)(live > peak ? live : peak);
	pool->track = plumb_builder_track(region->settler->builder, &track);
	return pool->track;
}

static const struct plumb_settle_pool *
pool_of(const struct plumb_settle_region *region, uint32_t track)
{
	for (uint32_t i = 0; i < region->pools.count; i++)
		if (region->pools.items[i].track == track)
			return &region->pools.items[i];
	return NULL;
}

/* ---- shares ---- */

static bool
is_plausible(const struct plumb_observations *m)
{
	return m->count <= INT64_MAX && m->sum >= 0 && m->min >= 0 && m->min <= m->max &&
	       isfinite(m->mean) && isfinite(m->m2) && m->m2 >= 0;
}

static bool
is_share(const struct plumb_record_memory *record)
{
	const int64_t most = PLUMB_POOL_MOST;

	return is_plausible(&record->allocated) && is_plausible(&record->freed) &&
	       record->held >= -most && record->held <= most && record->peak >= 0 &&
	       record->peak <= most;
}

static struct plumb_settle_share_of_memory *
share_of(struct plumb_settle_region *region, uint32_t context, uint32_t track)
{
	uint64_t hash = plumb_hash_mix(context, track);
	struct plumb_map_cursor at;
	struct plumb_settle_share_of_memory *share;

	for (uint32_t id = plumb_map_first(&region->memory_map, hash, &at); id != PLUMB_MAP_NONE;
	     id = plumb_map_next(&region->memory_map, &at)) {
		share = &region->memory.items[id];
		if (share->context == context && share->track == track)
			return share;
	}
	share = plumb_vec_add(&region->memory);
	if (!share || plumb_map_add(&region->memory_map, hash, region->memory.count - 1)) {
		region->settler->no_memory = true;
		return NULL;
	}
	*share = (struct plumb_settle_share_of_memory){ .context = context, .track = track };
	return share;
}

static void
merge_observations(struct plumb_stat *into, const struct plumb_observations *m)
{
	struct plumb_stat stat = { m->sum, m->count, m->min, m->max, m->mean, m->m2 };

	plumb_stat_merge(into, &stat);
}

/* A + B without overflow: the sum of absurd numbers stays absurd. */
static int64_t
add_capped(int64_t a, int64_t b)
{
	int64_t sum;
	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN + 1 : INT64_MAX;
	return sum;
}

void
plumb_settle_memory(struct plumb_settle_region *region, const struct plumb_record_memory *record)
{
	const struct plumb_observations *allocated = &record->allocated, *freed = &record->freed;
	uint32_t context, track = plumb_settle_track(region, record->pool);
	const struct plumb_settle_pool *pool = pool_of(region, track);
	struct plumb_settle_share_of_memory *share;

	if (atomic_load_explicit(&record->sequence, memory_order_relaxed) & 1) {
		plumb_settle_count(region, PLUMB_SOURCE_VALUE, PLUMB_FATE_TORN, NULL, 1);
		return;
	}
	if (!allocated->count && !freed->count)
		return; /* made, and not yet added to */
	context = plumb_settle_node(region, record->node);
	if (context == PLUMB_NONE || !pool || !is_share(record)) {
		plumb_settle_count(region, PLUMB_SOURCE_VALUE, PLUMB_FATE_DAMAGED, NULL, 1);
		return;
	}
	share = share_of(region, context, track);
	if (!share)
		return;
	merge_observations(&share->allocated, allocated);
	merge_observations(&share->freed, freed);
	share->held = add_capped(share->held, record->seen == (uint64_t)pool->peak
	                                              ? record->held
	                                              : allocated->sum - freed->sum);
	/* If threads allocate in equal contexts, only the largest peak of one of them is known. */
	if (record->peak > share->peak)
		share->peak = record->peak;
	plumb_settle_count(region, PLUMB_SOURCE_VALUE, PLUMB_FATE_ATTRIBUTED, NULL, 1);
	region->settler->captured++;
}

/* ---- over time ---- */

static int64_t
told_number(uint64_t number)
{
	return number == PLUMB_POOL_UNTOLD ? PLUMB_UNKNOWN : plumb_settle_number(number);
}

/* Bin I, to which the open one adds what it has so far. */
static struct plumb_memory_bin
series_bin(const struct plumb_record_memory_series *record, uint32_t i, uint64_t live)
{
	struct plumb_memory_bin bin = record->bins[i];
	uint64_t least = atomic_load(&record->now.least), most = atomic_load(&record->now.most);
	uint64_t reserved = atomic_load(&record->now.most_reserved);

	if (i != record->open)
		return bin;
	/* The newest change may not have been noted yet. */
	least = live < least ? live : least;
	most = live > most ? live : most;
	bin.least = least < bin.least ? least : bin.least;
	bin.most = bin.last == PLUMB_POOL_UNTOLD || most > bin.most ? most : bin.most;
	bin.last = live;
	bin.last_reserved = atomic_load(&record->now.last_reserved);
	if (bin.most_reserved == PLUMB_POOL_UNTOLD ||
	    (reserved != PLUMB_POOL_UNTOLD && reserved > bin.most_reserved))
		bin.most_reserved = reserved;
	return bin;
}

static bool
is_bin(const struct plumb_memory_bin *bin)
{
	return bin->least <= bin->last && bin->last <= bin->most && bin->most <= PLUMB_POOL_MOST;
}

/* The rows of RECORD. In a bin without a change, all stays as it was. Bins before the first change
 * say nothing: a thread may be stopped for longer than a bin between making the record and noting
 * the change. False: the rows end with one that cannot be true. */
static bool
add_series(struct plumb_settle_region *region, const struct plumb_record_memory_series *record,
           const struct plumb_settle_pool *pool, int64_t start)
{
	uint64_t live = atomic_load(&pool->record->live) >> PLUMB_POOL_TAG_BITS;
	struct plumb_memory_bin bin = { 0, 0, 0, PLUMB_POOL_UNTOLD, PLUMB_POOL_UNTOLD };
	bool begun = false;

	for (uint32_t i = 0; i <= record->open; i++) {
		struct plumb_memory_bin next = series_bin(record, i, live);

		if (next.last == PLUMB_POOL_UNTOLD)
			next = (struct plumb_memory_bin){ bin.last, bin.last, bin.last,
				                          bin.last_reserved, bin.last_reserved };
		if (!is_bin(&next))
			return false;
		bin = next;
		begun = begun || bin.most || bin.most_reserved != PLUMB_POOL_UNTOLD;
		if (!begun)
			continue;
		plumb_builder_memory_series(
			region->settler->builder,
			&(struct plumb_memory_series_bin){
				.track = pool->track,
				.start_ns = start + i * (int64_t)record->width,
				.width_ns = (int64_t)record->width,
				.min_bytes = (int64_t)bin.least,
				.max_bytes = (int64_t)bin.most,
				.last_bytes = (int64_t)bin.last,
				.max_reserved_bytes = told_number(bin.most_reserved),
				.last_reserved_bytes = told_number(bin.last_reserved),
			});
	}
	return true;
}

void
plumb_settle_memory_series(struct plumb_settle_region *region,
                           const struct plumb_record_memory_series *record)
{
	uint32_t track = plumb_settle_track(region, record->pool);
	const struct plumb_settle_pool *pool = pool_of(region, track);
	int64_t start = plumb_settle_number(record->start), reach;

	if (atomic_load_explicit(&record->sequence, memory_order_relaxed) & 1) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_TORN, "memory over time",
		                   1);
		return;
	}
	if (!pool || start == PLUMB_UNKNOWN || record->open >= PLUMB_MEMORY_BINS ||
	    !record->width || record->width > INT64_MAX / (PLUMB_MEMORY_BINS + 1) ||
	    __builtin_add_overflow(start, (int64_t)record->width * PLUMB_MEMORY_BINS, &reach) ||
	    !add_series(region, record, pool, start))
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
		                   "memory over time", 1);
}

/* ---- the end ---- */

static void
add_stat(struct plumb_settle_region *region, const struct plumb_settle_share_of_memory *share,
         uint32_t metric, const struct plumb_stat *stat)
{
	struct plumb_value value = {
		.context = share->context,
		.track = share->track,
		.metric = metric,
		.sum = stat->sum,
		.count = stat->count,
		.min = stat->min,
		.max = stat->max,
		.mean = stat->mean,
		.m2 = stat->m2,
	};

	if (stat->count)
		plumb_builder_value(region->settler->builder, &value);
}

static void
add_number(struct plumb_settle_region *region, const struct plumb_settle_share_of_memory *share,
           uint32_t metric, int64_t number)
{
	struct plumb_stat one = { number, 1, number, number, (double)number, 0 };

	if (number)
		add_stat(region, share, metric, &one);
}

static void
add_pool(struct plumb_settle_region *region, const struct plumb_settle_pool *pool)
{
	const struct plumb_record_memory_pool *record = pool->record;
	uint64_t when = atomic_load(&record->peak_time);
	struct plumb_memory memory = {
		.track = pool->track,
		.peak_bytes = pool->peak,
		.peak_ns = when ? plumb_settle_number(when) : PLUMB_UNKNOWN,
		.live_bytes = (int64_t)(atomic_load(&record->live) >> PLUMB_POOL_TAG_BITS),
		.peak_allocated_bytes = told_number(atomic_load(&record->peak_allocated)),
		.peak_reserved_bytes = told_number(atomic_load(&record->peak_reserved)),
		.most_reserved_bytes = told_number(atomic_load(&record->most_reserved)),
	};

	for (uint32_t i = 0; i < region->memory.count; i++) {
		const struct plumb_settle_share_of_memory *share = &region->memory.items[i];
		if (share->track != pool->track)
			continue;
		memory.allocations =
			plumb_settle_sum(memory.allocations, (int64_t)share->allocated.count);
		memory.allocated_bytes =
			plumb_settle_sum(memory.allocated_bytes, share->allocated.sum);
		memory.frees = plumb_settle_sum(memory.frees, (int64_t)share->freed.count);
		memory.freed_bytes = plumb_settle_sum(memory.freed_bytes, share->freed.sum);
	}
	plumb_builder_memory(region->settler->builder, &memory);
}

void
plumb_settle_memories(struct plumb_settle_region *region)
{
	for (uint32_t i = 0; i < region->memory.count; i++) {
		const struct plumb_settle_share_of_memory *share = &region->memory.items[i];

		add_stat(region, share, PLUMB_METRIC_MEM_ALLOC, &share->allocated);
		add_stat(region, share, PLUMB_METRIC_MEM_FREE, &share->freed);
		add_number(region, share, PLUMB_METRIC_MEM_HELD, share->held);
		add_number(region, share, PLUMB_METRIC_MEM_PEAK, share->peak);
	}
	/* Who holds what the driver handed out is not known, so it has no row. */
	for (uint32_t i = 0; i < region->pools.count; i++)
		if (!is_of_driver(region->pools.items[i].record))
			add_pool(region, &region->pools.items[i]);
}
