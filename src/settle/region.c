/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One region: its process and clocks first, because everything else needs them; then each record by
 * its type. Records name others by id, which are settled when they are first needed.
 */
#include "settle/settle_private.h"

#include <string.h>
#include <sys/mman.h>

/* A type of record, and the length that this plumb knows. Records of a newer collector may be
 * longer. */
/* clang-format off */
#define CASE(type, structure, call)                                                                \
	case PLUMB_RECORD_##type:                                                                  \
		if (record->length < sizeof(structure))                                            \
			return false;                                                              \
		call;                                                                              \
		return true

/* What a region of `plumb run` may hold. False: the record is too short. */
static bool
take_record_of_run(struct plumb_settle_region *region, const struct plumb_record *record)
{
	const void *it = record;

	switch (record->type) {
	CASE(ENVIRONMENT, struct plumb_record_environment, plumb_settle_fact(region, it));
	CASE(LEDGER, struct plumb_record_ledger, plumb_settle_ledger(region, it));
	CASE(DEVICE_LINK, struct plumb_record_device_link, plumb_settle_link(region, it));
	default:
		return true;
	}
}

static bool
take_record(struct plumb_settle_region *region, const struct plumb_record *record)
{
	plumb_id id = plumb_region_reader_id(region->reader, record);
	const void *it = record;

	switch (record->type) {
	CASE(NODE, struct plumb_record_node, plumb_settle_node(region, id));
	CASE(VALUE, struct plumb_record_value, plumb_settle_value(region, it));
	CASE(VARIANT, struct plumb_record_variant, plumb_settle_variant(region, it));
	CASE(SHAPE, struct plumb_record_shape, plumb_settle_shape(region, it));
	CASE(ORIGIN, struct plumb_record_origin, plumb_settle_origin(region, it));
	CASE(THREAD, struct plumb_record_thread, plumb_settle_track(region, id));
	CASE(DEVICE, struct plumb_record_device, plumb_settle_device(region, id));
	CASE(STREAM, struct plumb_record_stream, plumb_settle_track(region, id));
	CASE(WORK_RING, struct plumb_record_work_ring, plumb_settle_ring(region, it));
	CASE(DEVICE_TOTAL, struct plumb_record_device_total, plumb_settle_total(region, it));
	CASE(SERIES, struct plumb_record_series, plumb_settle_series(region, it));
	CASE(MEMORY, struct plumb_record_memory, plumb_settle_memory(region, it));
	CASE(MEMORY_POOL, struct plumb_record_memory_pool, plumb_settle_track(region, id));
	CASE(MEMORY_SERIES, struct plumb_record_memory_series,
	     plumb_settle_memory_series(region, it));
	CASE(COUNTER_SERIES, struct plumb_record_counter_series,
	     plumb_settle_counter_series(region, it));
	CASE(GPU_LINES, struct plumb_record_gpu_lines, plumb_settle_gpu_lines(region, it));
	CASE(SAMPLE, struct plumb_record_sample, plumb_settle_sample(region, it));
	CASE(STALLS, struct plumb_record_stalls, plumb_settle_sampling(region, it));
	CASE(GPU_CODE, struct plumb_record_gpu_code, plumb_settle_gpu_module(region, it));
	CASE(COMMUNICATOR, struct plumb_record_communicator, plumb_settle_communicator(region, id));
	CASE(COLLECTIVE, struct plumb_record_collective, plumb_settle_collective(region, it));
	CASE(OBJECT, struct plumb_record_object, region->traffic = true);
	CASE(OBJECT_RANGE, struct plumb_record_object_range, (void)it);
	CASE(OBJECT_BIN, struct plumb_record_object_bin, (void)it);
	CASE(TRANSFER, struct plumb_record_transfer, region->traffic = true);
	CASE(COMMUNICATION, struct plumb_record_communication, region->traffic = true);
	CASE(OVERHEAD, struct plumb_record_overhead, plumb_settle_overhead(region, it));
	CASE(ENVIRONMENT, struct plumb_record_environment, plumb_settle_fact(region, it));
	CASE(LEDGER, struct plumb_record_ledger, plumb_settle_ledger(region, it));
	default:
		/* Clocks, strings and the process are settled elsewhere. Others are unknown. */
		return true;
	}
}

/* clang-format on */

/* What other records need: clocks, and the names of metrics. */
static void
take_first(struct plumb_settle_region *region)
{
	const struct plumb_record *record;
	uint64_t cursor = 0;

	while ((record = plumb_region_next(region->reader, &cursor))) {
		const void *it = record;

		if (record->type == PLUMB_RECORD_CLOCK &&
		    record->length >= sizeof(struct plumb_record_clock))
			plumb_settle_reading(region, it);
		if (record->type == PLUMB_RECORD_METRIC &&
		    record->length >= sizeof(struct plumb_record_metric))
			plumb_settle_metric(region, it);
	}
	plumb_settle_lines(region);
}

static void
take_records(struct plumb_settle_region *region)
{
	const struct plumb_record *record;
	uint64_t cursor = 0, records = 0;

	while ((record = plumb_region_next(region->reader, &cursor))) {
		if (region->is_run ? take_record_of_run(region, record)
		                   : take_record(region, record))
			records++;
		else
			plumb_settle_count(region, PLUMB_SOURCE_REGION, PLUMB_FATE_DAMAGED,
			                   "records that are too short", 1);
	}
	plumb_settle_tallies(region);
	plumb_settle_memories(region);
	plumb_settle_sampled(region);
	if (region->traffic)
		plumb_settle_region_traffic(region);
	if (!region->is_run)
		plumb_settle_copies(region);
	plumb_settle_balance(region, records);
}

/* Says that a process was killed or crashed. */
static void
take_end(struct plumb_settle_region *region)
{
	struct plumb_settler *settler = region->settler;
	bool ended = atomic_load(&region->reader->header.state) == PLUMB_REGION_ENDED;

	if (region->process == PLUMB_NONE)
		return;
	settler->processes.items[region->process].seen = region->seen;
	if (!ended)
		plumb_builder_environment(
			settler->builder, region->process, "plumb.end",
			"the process ended without its exit handlers; GPU records after the last "
			"flush are missing");
}

/* Why something of a process is missing. */
static bool
is_reason(const struct plumb_region_reader *reader, const struct plumb_record_environment *fact)
{
	static const char end[] = ".off";
	size_t bytes, length = sizeof end - 1;
	const char *key = plumb_region_string(reader, fact->key, &bytes);

	return key && bytes > length && !memcmp(key + bytes - length, end, length);
}

/* Does it say more than that there was a process, and what plumb saw of it from outside? */
static bool
tells_more(const struct plumb_region_reader *reader, const struct plumb_record *record)
{
	const void *it = record;
	const struct plumb_record_value *value = it;
	const struct plumb_record_ledger *tally = it;

	switch (record->type) {
	case PLUMB_RECORD_VALUE:
		return record->length >= sizeof *value && value->metric != PLUMB_METRIC_HOST_TIME &&
		       value->count;
	case PLUMB_RECORD_LEDGER:
		return record->length >= sizeof *tally &&
		       tally->source != PLUMB_SOURCE_HOST_SAMPLE &&
		       atomic_load_explicit(&tally->count, memory_order_relaxed);
	case PLUMB_RECORD_ENVIRONMENT:
		return record->length >= sizeof(struct plumb_record_environment) &&
		       is_reason(reader, it);
	case PLUMB_RECORD_VARIANT:
	case PLUMB_RECORD_SHAPE:
	case PLUMB_RECORD_DEVICE:
	case PLUMB_RECORD_STREAM:
	case PLUMB_RECORD_MEMORY:
	case PLUMB_RECORD_METRIC:
		return true;
	default:
		return false;
	}
}

/* The process was only looked at. It did nothing that is recorded. */
static bool
is_bystander(const struct plumb_region_reader *reader)
{
	const struct plumb_record *record;
	uint64_t cursor = 0;

	if (!reader->header.for_looks)
		return false;
	while ((record = plumb_region_next(reader, &cursor)))
		if (tells_more(reader, record))
			return false;
	return true;
}

bool
plumb_settle_one(struct plumb_settler *settler, const struct plumb_region_reader *reader,
                 uint32_t folder, bool is_run)
{
	struct plumb_settle_region region = {
		.settler = settler,
		.reader = reader,
		.folder = folder,
		.serial = ++settler->serial,
		.is_run = is_run,
		.seen = PLUMB_UNKNOWN,
		.samples = settler->stalls.samples.count,
	};
	if (!is_run && is_bystander(reader))
		return true;
	/* There is room for each place where a record may begin. Only records use it. */
	size_t room = (reader->size / 8 + 1) * sizeof *region.known;
	void *known = mmap(NULL, room, PROT_READ | PROT_WRITE,
	                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (known == MAP_FAILED) {
		settler->no_memory = true;
		return false;
	}
	region.known = known;
	plumb_settle_process(&region);
	if (is_run || region.process != PLUMB_NONE) {
		take_first(&region);
		take_records(&region);
		plumb_settle_spans(&region);
		take_end(&region);
	}
	munmap(known, room);
	plumb_vec_free(&region.stack);
	plumb_vec_free(&region.readings);
	plumb_vec_free(&region.lines);
	plumb_vec_free(&region.memory);
	plumb_vec_free(&region.pools);
	plumb_map_free(&region.memory_map);
	return !settler->no_memory;
}
