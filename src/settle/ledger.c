/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: what the collector counted, what settling found, and what follows from both. That is:
 * launches without a record, records of the region that were lost, and values that were lost.
 */
#include "settle/settle_private.h"

#include <math.h>

void
plumb_settle_count(struct plumb_settle_region *region, enum plumb_source source,
                   enum plumb_fate fate, const char *detail, uint64_t count)
{
	struct plumb_builder *builder = region->settler->builder;
	int64_t number = count > INT64_MAX ? INT64_MAX : (int64_t)count;
	int64_t *total = &region->ledger[source][fate];

	if (!count)
		return;
	*total = plumb_settle_sum(*total, number);
	plumb_builder_ledger(builder, region->process, source, fate,
	                     detail ? plumb_builder_text(builder, detail) : PLUMB_NONE, number);
}

void
plumb_settle_ledger(struct plumb_settle_region *region, const struct plumb_record_ledger *record)
{
	uint64_t count = atomic_load_explicit(&record->count, memory_order_relaxed);
	uint32_t detail;

	if (!record->source || record->source >= PLUMB_SOURCE_COUNT ||
	    !plumb_source_names[record->source] || record->fate >= PLUMB_FATE_COUNT) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_UNKNOWN_LAYOUT,
		                   "tallies", 1);
		return;
	}
	if (region->is_run && record->source == PLUMB_SOURCE_LOOK) {
		struct plumb_settle_run *run = &region->settler->runs.items[region->folder];
		run->looked = true;
		run->windows_told = run->windows_told || plumb_fate_is_drop[record->fate];
	}
	detail = plumb_settle_string(region, record->detail);
	plumb_settle_count(region, record->source, record->fate,
	                   plumb_builder_get_text(region->settler->builder, detail), count);
}

/* ---- overhead ---- */

/* ns that callbacks of one kind took on their thread. */
static double
cost_of(const struct plumb_record_overhead *record, int kind)
{
	double calls = (double)record->kinds[kind].calls;
	double each = (double)record->kinds[kind].empty_ns_x1000 / 1000;

	if (record->kinds[kind].timed)
		each += (double)record->kinds[kind].timed_ns / (double)record->kinds[kind].timed;
	return calls * each;
}

void
plumb_settle_overhead(struct plumb_settle_region *region,
                      const struct plumb_record_overhead *record)
{
	struct plumb_builder *builder = region->settler->builder;
	uint32_t id = plumb_settle_track(region, record->thread);
	struct plumb_track *track = plumb_builder_get_track(builder, id);
	struct plumb_process *process = plumb_builder_get_process(builder, region->process);
	double cost = 0;
	int64_t ns;

	if (!track || !process) {
		plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED, "overhead", 1);
		return;
	}
	/* GPU records are read on the GPU runtime's own thread: the program does not wait. */
	for (int kind = 0; kind < PLUMB_CALLBACK_KINDS; kind++)
		if (kind != PLUMB_CALLBACK_GPU_RECORDS)
			cost += cost_of(record, kind);
	ns = cost < 9e18 ? (int64_t)llround(cost) : INT64_MAX;
	track->overhead_ns =
		track->overhead_ns == PLUMB_UNKNOWN ? ns : plumb_settle_sum(track->overhead_ns, ns);
	if (track->overhead_ns > process->overhead_ns)
		process->overhead_ns = track->overhead_ns;
}

/* ---- what follows ---- */

static int64_t
drops_of(const struct plumb_settle_region *region, enum plumb_source source)
{
	int64_t sum = 0;

	for (int fate = 0; fate < PLUMB_FATE_COUNT; fate++)
		if (plumb_fate_is_drop[fate])
			sum = plumb_settle_sum(sum, region->ledger[source][fate]);
	return sum;
}

/* Launches whose record came: attributed ones, and those whose loss has a row of its own. A record
 * without a launch that was seen does not count. */
static int64_t
records_of_launches(const struct plumb_settle_region *region)
{
	static const enum plumb_source sources[] = {
		PLUMB_SOURCE_KERNEL,
		PLUMB_SOURCE_COPY,
		PLUMB_SOURCE_SET,
	};
	int64_t sum = 0;

	for (int i = 0; i < 3; i++) {
		int64_t known = plumb_settle_sum(region->ledger[sources[i]][PLUMB_FATE_ATTRIBUTED],
		                                 drops_of(region, sources[i]));
		known -= region->ledger[sources[i]][PLUMB_FATE_NO_LAUNCH];
		known = plumb_settle_sum(known, region->ledger[sources[i]][PLUMB_FATE_COUNTED]);
		sum = plumb_settle_sum(sum, known);
	}
	return sum;
}

/* With graphs one launch starts any number of kernels, and the numbers cannot be compared. */
static void
balance_launches(struct plumb_settle_region *region)
{
	int64_t *launch = region->ledger[PLUMB_SOURCE_LAUNCH];
	int64_t open = launch[PLUMB_FATE_RECEIVED] - drops_of(region, PLUMB_SOURCE_LAUNCH);
	int64_t came = records_of_launches(region);

	if (open <= 0)
		return;
	if (region->replays)
		came = open;
	if (came < open)
		plumb_settle_count(region, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_NOT_DELIVERED, NULL,
		                   (uint64_t)(open - came));
	if (!launch[PLUMB_FATE_ATTRIBUTED])
		plumb_settle_count(region, PLUMB_SOURCE_LAUNCH, PLUMB_FATE_ATTRIBUTED, NULL,
		                   (uint64_t)(came < open ? came : open));
}

/* What threads without a record could not count, or had no room to count. */
static void
count_lost(struct plumb_settle_region *region)
{
	const struct plumb_region_lost *lost = region->reader->header.lost;

	for (int source = 1; source < PLUMB_SOURCE_COUNT; source++) {
		if (!plumb_source_names[source])
			continue;
		plumb_settle_count(region, source, PLUMB_FATE_RECEIVED, NULL,
		                   atomic_load(&lost[source].received));
		plumb_settle_count(region, source, PLUMB_FATE_ATTRIBUTED, NULL,
		                   atomic_load(&lost[source].attributed));
		plumb_settle_count(region, source, PLUMB_FATE_REGION_FULL, NULL,
		                   atomic_load(&lost[source].full));
		plumb_settle_count(region, source, PLUMB_FATE_NO_SPACE, NULL,
		                   atomic_load(&lost[source].no_space));
	}
}

void
plumb_settle_balance(struct plumb_settle_region *region, uint64_t records)
{
	const struct plumb_region_header *header = &region->reader->header;
	const int64_t *value = region->ledger[PLUMB_SOURCE_VALUE];

	count_lost(region);
	plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED, NULL,
	                   region->reader->damaged);
	plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_REGION_FULL, NULL,
	                   atomic_load(&header->lost_full));
	plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_NO_SPACE, NULL,
	                   atomic_load(&header->lost_no_space));
	plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_ATTRIBUTED, NULL, records);
	plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_RECEIVED, NULL,
	                   (uint64_t)plumb_settle_sum((int64_t)records,
	                                              drops_of(region, PLUMB_SOURCE_REGION)));
	if (region->process == PLUMB_NONE)
		return;
	plumb_settle_count(region, PLUMB_SOURCE_VALUE, PLUMB_FATE_RECEIVED, NULL,
	                   (uint64_t)plumb_settle_sum(value[PLUMB_FATE_ATTRIBUTED],
	                                              drops_of(region, PLUMB_SOURCE_VALUE)));
	plumb_settle_count(region, PLUMB_SOURCE_PROCESS, PLUMB_FATE_RECEIVED, NULL, 1);
	plumb_settle_count(region, PLUMB_SOURCE_PROCESS, PLUMB_FATE_ATTRIBUTED, NULL, 1);
	balance_launches(region);
}
