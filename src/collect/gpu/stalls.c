/* SPDX-License-Identifier: Apache-2.0 */
#include "collect/gpu/stalls.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/table.h"

/* Launches are told apart while their records take no more than this part of the limit. Then a
 * call's launches are put together, which is bounded by the program's structure again. */
#define LAUNCHES_PART 16u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by it: */
static struct plumb_id_table samples;   /* SAMPLE records by all that tells them apart */
static struct plumb_id_table functions; /* the first SAMPLE record of each function */
static struct plumb_id_table reasons;   /* likewise of each reason */
static plumb_id totals;                 /* the STALLS record */
static uint64_t launch_bytes;

void
plumb_stalls_lock(void)
{
	pthread_mutex_lock(&lock);
}

void
plumb_stalls_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static uint32_t
fold(uint64_t hash)
{
	return (uint32_t)(hash ^ hash >> 32);
}

/* Counts what finds no room. */
static void
lose(struct plumb_thread *thread, enum plumb_fate fate, uint64_t count)
{
	struct plumb_region *region = plumb_region_of_process();
	if (thread) {
		plumb_count(thread, PLUMB_SOURCE_STALL_SAMPLE, PLUMB_FATE_RECEIVED, count);
		plumb_count(thread, PLUMB_SOURCE_STALL_SAMPLE, fate, count);
	} else if (region && region->header) {
		plumb_region_lost(region, PLUMB_SOURCE_STALL_SAMPLE, PLUMB_FATE_RECEIVED,
		                  PLUMB_FATE_REGION_FULL, count);
		plumb_region_lost(region, PLUMB_SOURCE_STALL_SAMPLE, PLUMB_FATE_REGION_FULL,
		                  PLUMB_FATE_REGION_FULL, count);
	}
}

/* ---- sums ---- */

static void
add_to(_Atomic uint64_t *sum, uint64_t count)
{
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + count,
	                      memory_order_relaxed);
}

/* The STALLS record, made if it is missing; NULL: no room. */
static struct plumb_record_stalls *
totals_of(struct plumb_thread *thread)
{
	struct plumb_region *region = plumb_region_of_process();
	if (totals)
		return plumb_region_at(region, totals);
	struct plumb_arena *arena = thread ? plumb_thread_arena(thread) : NULL;
	struct plumb_record_stalls *record =
		arena ? plumb_arena_append(arena, PLUMB_RECORD_STALLS, sizeof *record) : NULL;
	if (!record)
		return NULL;
	record->exponent = plumb_collector_options()->stalls;
	record->mode = plumb_collector_options()->stalls_mode;
	plumb_arena_commit(arena, record);
	totals = plumb_region_id(region, record);
	return record;
}

void
plumb_stalls_fetched(struct plumb_thread *thread, const struct plumb_stall_fetch *fetch)
{
	struct plumb_record_stalls *record = totals_of(thread);
	if (record) {
		add_to(&record->told, fetch->told);
		add_to(&record->dropped, fetch->dropped);
		add_to(&record->system, fetch->system);
	}
	if (!thread)
		return;
	plumb_count(thread, PLUMB_SOURCE_STALL_FETCH, PLUMB_FATE_RECEIVED, 1);
	plumb_count(thread, PLUMB_SOURCE_STALL_FETCH,
	            fetch->full ? PLUMB_FATE_HARDWARE_FULL : PLUMB_FATE_ATTRIBUTED, 1);
	if (fetch->dropped)
		lose(thread, PLUMB_FATE_CUPTI_DROPPED, fetch->dropped);
	if (fetch->system)
		lose(thread, PLUMB_FATE_SYSTEM_KERNEL, fetch->system);
}

void
plumb_stalls_leave_out(struct plumb_thread *thread, enum plumb_fate fate, uint64_t count)
{
	if (count)
		lose(thread, fate, count);
}

/* ---- samples ---- */

static bool
is_marked(const char *reason)
{
	size_t length = strlen(reason), mark = sizeof PLUMB_STALL_MARK - 1;
	return length > mark && !memcmp(reason + length - mark, PLUMB_STALL_MARK, mark);
}

static bool
is_same(const struct plumb_record_sample *record, const struct plumb_stall_sample *sample)
{
	return record->module == sample->module && record->offset == sample->offset &&
	       record->function_number == sample->function_number &&
	       record->reason_number == sample->reason_number && record->device == sample->device &&
	       record->call == sample->call && record->launch == sample->launch;
}

static struct plumb_record_sample *
find_sample(const struct plumb_stall_sample *sample, uint32_t hash)
{
	struct plumb_region *region = plumb_region_of_process();
	uint32_t at = hash, id;
	while ((id = plumb_id_table_next(&samples, hash, &at))) {
		struct plumb_record_sample *record = plumb_region_at(region, id);
		if (is_same(record, sample))
			return record;
	}
	return NULL;
}

/* The text of a string that an earlier sample has, so that each is kept once. */
static plumb_id
function_of(struct plumb_thread *thread, const struct plumb_stall_sample *sample, uint32_t hash)
{
	struct plumb_region *region = plumb_region_of_process();
	uint32_t at = hash, id;
	while ((id = plumb_id_table_next(&functions, hash, &at))) {
		const struct plumb_record_sample *record = plumb_region_at(region, id);
		if (record->module == sample->module &&
		    record->function_number == sample->function_number)
			return record->function;
	}
	const char *name = sample->function ? sample->function : "?";
	return plumb_intern(thread, name, strlen(name));
}

static plumb_id
reason_of(struct plumb_thread *thread, const struct plumb_stall_sample *sample, uint32_t hash)
{
	struct plumb_region *region = plumb_region_of_process();
	uint32_t at = hash, id;
	while ((id = plumb_id_table_next(&reasons, hash, &at))) {
		const struct plumb_record_sample *record = plumb_region_at(region, id);
		if (record->reason_number == sample->reason_number &&
		    record->device == sample->device)
			return record->reason;
	}
	return plumb_intern(thread, sample->reason, strlen(sample->reason));
}

static struct plumb_record_sample *
make_sample(struct plumb_thread *thread, const struct plumb_stall_sample *sample, uint32_t hash)
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	uint32_t function_hash = fold(plumb_mix(sample->module, sample->function_number)),
		 reason_hash = fold(plumb_mix(sample->device, sample->reason_number)), at;
	plumb_id function = function_of(thread, sample, function_hash);
	plumb_id reason = reason_of(thread, sample, reason_hash);
	struct plumb_record_sample *record =
		function && reason ? plumb_arena_append(arena, PLUMB_RECORD_SAMPLE, sizeof *record)
				   : NULL;
	if (!record)
		return NULL;
	record->module = sample->module;
	record->offset = sample->offset;
	record->function = function;
	record->reason = reason;
	record->function_number = sample->function_number;
	record->reason_number = sample->reason_number;
	record->device = sample->device;
	record->call = sample->call;
	record->launch = sample->launch;
	plumb_arena_commit(arena, record);
	plumb_id id = plumb_region_id(arena->region, record);
	/* What the tables have no memory for becomes a second record, which settle adds up. */
	plumb_id_table_add(&samples, hash, id);
	at = function_hash;
	if (!plumb_id_table_next(&functions, function_hash, &at))
		plumb_id_table_add(&functions, function_hash, id);
	at = reason_hash;
	if (!plumb_id_table_next(&reasons, reason_hash, &at))
		plumb_id_table_add(&reasons, reason_hash, id);
	if (sample->launch)
		launch_bytes += sizeof *record;
	return record;
}

void
plumb_stalls_add(struct plumb_thread *thread, const struct plumb_stall_sample *given)
{
	struct plumb_stall_sample sample = *given;
	if (!sample.count || !sample.reason)
		return;
	if (sample.launch && launch_bytes > plumb_collector_options()->limit / LAUNCHES_PART)
		sample.launch = 0;
	struct plumb_record_stalls *sums = totals_of(thread);
	if (sums)
		add_to(is_marked(sample.reason) ? &sums->marked : &sums->bare, sample.count);
	uint64_t hash = plumb_mix(sample.module ^ sample.offset,
	                          (uint64_t)sample.function_number << 32 | sample.reason_number);
	hash = plumb_mix(hash ^ sample.launch, (uint64_t)sample.device << 32 | sample.call);
	struct plumb_record_sample *record = find_sample(&sample, fold(hash));
	if (!record && thread)
		record = make_sample(thread, &sample, fold(hash));
	if (record)
		add_to(&record->count, sample.count);
	else
		lose(thread, thread ? plumb_thread_arena(thread)->fate : PLUMB_FATE_REGION_FULL,
		     sample.count);
}

void
plumb_stalls_renew(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	struct plumb_id_table *tables[] = { &samples, &functions, &reasons };
	for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
		if (tables[i]->slots)
			munmap(tables[i]->slots,
			       ((size_t)tables[i]->mask + 1) * sizeof *tables[i]->slots);
		memset(tables[i], 0, sizeof *tables[i]);
	}
	totals = 0;
	launch_bytes = 0;
}
