/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts on the device → TRANSFER, OBJECT_BIN and OBJECT records. They are read where the program
 * has waited for the device anyway, on the stream that it waited for: a copy on another one could
 * wait for kernels that wait for what this thread does next. Counts only grow, so what was read
 * before is subtracted. Only the banks of sampled units are cleared, when their units have ended.
 */
#include <string.h>

#include "collect/gpu/sanitizer/runtime.h"
#include "collect/table.h"

#define PERIOD_NS 200000000u /* counts are read no more often */
#define BINS_NS 2000000000u  /* bins and granules */

/* One thread reads at a time; another one that comes leaves it to that one, or to later. */
static pthread_mutex_t reading = PTHREAD_MUTEX_INITIALIZER;
static struct plumb_id_table bin_index; /* OBJECT_BIN records; with that lock */
static struct plumb_counting_slot fresh[PLUMB_SLOTS];

/* ---- transfers ---- */

static struct plumb_record_object *
object_record(plumb_id object)
{
	return object ? plumb_region_at(plumb_region_of_process(), object) : NULL;
}

static plumb_id
object_of_range(plumb_id range)
{
	const struct plumb_record_object_range *record =
		plumb_region_at(plumb_region_of_process(), range);
	return record ? record->object : 0;
}

static enum plumb_route
route_of(const struct plumb_record_object *object)
{
	switch (object ? object->kind : 0) {
	case PLUMB_OBJECT_MANAGED:
		return PLUMB_ROUTE_MANAGED;
	case PLUMB_OBJECT_PINNED:
		return PLUMB_ROUTE_HOST_MEMORY;
	case PLUMB_OBJECT_IMPORTED:
		return PLUMB_ROUTE_IPC;
	case 0:
		return PLUMB_ROUTE_UNKNOWN;
	default:
		return PLUMB_ROUTE_PEER;
	}
}

static bool
reads(uint32_t kind)
{
	return kind == PLUMB_ACCESS_LOAD || kind == PLUMB_ACCESS_ASYNC_COPY ||
	       kind == PLUMB_ACCESS_BULK_LOAD;
}

static void
count_accesses(struct plumb_thread *thread, enum plumb_fate fate, uint64_t accesses)
{
	plumb_count(thread, PLUMB_SOURCE_ACCESS, PLUMB_FATE_RECEIVED, accesses);
	plumb_count(thread, PLUMB_SOURCE_ACCESS, fate, accesses);
}

/* SLOT has what came since the last time. With the lock of the state. */
static void
tell_slot(struct plumb_sanitizer_context *context, struct plumb_thread *thread,
          const struct plumb_counting_slot *slot)
{
	double rate = plumb_sanitizer_settings.rate;
	const struct plumb_sanitizer_site *site =
		&plumb_sanitizer_sites[slot->site < PLUMB_SITES ? slot->site : 0];
	if (site->module)
		site->module->idle = 0;
	if (slot->id >= PLUMB_COUNTING_NONE - 1) {
		count_accesses(thread, PLUMB_FATE_NO_ALLOCATION, slot->accesses);
		return;
	}
	plumb_id object = object_of_range(slot->id);
	const struct plumb_record_object *record = object_record(object);
	if (!plumb_sanitizer_wants_object(object)) {
		count_accesses(thread, PLUMB_FATE_NOT_CHOSEN, slot->accesses);
		return;
	}
	const struct plumb_sanitizer_code *code =
		site->module ? plumb_sanitizer_code_at(site->module, slot->pc) : NULL;
	struct plumb_transfer_facts facts = {
		.node = site->node,
		.kind = (enum plumb_access_kind)slot->kind,
		.route = route_of(record),
		.initiator = context->ordinal,
		.from = PLUMB_HOST_ORDINAL,
		.to = PLUMB_HOST_ORDINAL,
		.module = code ? site->module->hash : 0,
		.function = code ? code->name : NULL,
		.offset = code ? slot->pc - code->pc : 0,
		.width = slot->width,
		.accesses = plumb_estimate(slot->accesses, rate),
		.warps = plumb_estimate(slot->warps, rate),
		.bytes = plumb_estimate(plumb_counting_bytes(slot), rate),
		.variance = plumb_estimate_variance(plumb_counting_bytes(slot), rate),
	};
	uint32_t owner = record && record->kind != PLUMB_OBJECT_MANAGED ? record->ordinal
	                                                                : PLUMB_HOST_ORDINAL;
	if (reads(slot->kind)) {
		facts.from = owner;
		facts.from_object = object;
		facts.to = context->ordinal;
	} else {
		facts.from = context->ordinal;
		facts.to = owner;
		facts.to_object = object;
	}
	bool told = plumb_transfer_add(thread, &facts);
	count_accesses(thread, told ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_REGION_FULL,
	               slot->accesses);
}

/* What SLOT has more than SEEN, which is brought up to date. */
static bool
advance(struct plumb_counting_slot *slot, struct plumb_counting_slot *seen)
{
	struct plumb_counting_slot was = *seen;
	/* The one that took it may not have written what it stands for. */
	if (!slot->tag || !slot->accesses || !slot->kind || slot->accesses == was.accesses)
		return false;
	*seen = *slot;
	slot->accesses -= was.accesses;
	slot->warps -= was.warps;
	slot->bytes -= was.bytes;
	return true;
}

static bool
read_device(void *to, const void *from, size_t bytes, sanitizer_stream stream)
{
	return !SANITIZER(MemcpyDeviceToHost(to, (void *)from, bytes, stream));
}

/* Holding the lock for reading. */
static void
read_slots(struct plumb_sanitizer_context *context, sanitizer_stream stream)
{
	if (!read_device(fresh, context->slots, sizeof fresh, stream))
		return;
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (!thread)
		return;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	for (uint32_t i = 0; i < PLUMB_SLOTS; i++)
		if (advance(&fresh[i], &context->seen[i]))
			tell_slot(context, thread, &fresh[i]);
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	plumb_leave(thread);
}

/* The banks whose units have ended: of STREAM, or all. */
static void
read_banks(struct plumb_sanitizer_context *context, sanitizer_stream stream, sanitizer_stream done,
           bool whole)
{
	for (uint32_t i = 0; i < PLUMB_BANKS; i++) {
		struct plumb_bank *bank = &context->banks[i];
		struct plumb_counting_slot *slots = context->slots + i * PLUMB_BANK_SLOTS;
		size_t bytes = PLUMB_BANK_SLOTS * sizeof *slots;
		pthread_mutex_lock(&plumb_sanitizer_lock);
		bool due = bank->used && bank->closed &&
		           (whole || (bank->stream == done && !bank->several));
		bank->reading = due;
		pthread_mutex_unlock(&plumb_sanitizer_lock);
		if (!due)
			continue;
		/* The last copy says that the bank is clean, whatever stream uses it next. */
		if (!read_device(fresh, slots, bytes, stream) ||
		    SANITIZER(Memset(slots, 0, bytes, stream)) ||
		    !read_device(&fresh[PLUMB_BANK_SLOTS], slots, sizeof *slots, stream)) {
			pthread_mutex_lock(&plumb_sanitizer_lock);
			bank->reading = false;
			pthread_mutex_unlock(&plumb_sanitizer_lock);
			continue;
		}
		struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
		pthread_mutex_lock(&plumb_sanitizer_lock);
		for (uint32_t s = 0; thread && s < PLUMB_BANK_SLOTS; s++)
			if (fresh[s].tag && fresh[s].kind)
				tell_slot(context, thread, &fresh[s]);
		*bank = (struct plumb_bank){ 0 };
		context->banks_used--;
		pthread_mutex_unlock(&plumb_sanitizer_lock);
		if (thread)
			plumb_leave(thread);
	}
}

static void
read_drops(struct plumb_sanitizer_context *context, sanitizer_stream stream)
{
	struct plumb_counting_drops drops;
	if (!read_device(&drops, context->drops, sizeof drops, stream) ||
	    drops.accesses == context->seen_drops.accesses)
		return;
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (!thread)
		return;
	count_accesses(thread, PLUMB_FATE_TABLE_FULL,
	               drops.accesses - context->seen_drops.accesses);
	context->seen_drops = drops;
	plumb_leave(thread);
}

/* ---- bins ---- */

struct bin {
	plumb_id object;
	uint32_t ordinal, kind;
	uint64_t offset, width;
};

static void
add_bin(struct plumb_thread *thread, const struct bin *bin, uint64_t accesses)
{
	struct plumb_region *region = plumb_region_of_process();
	uint64_t mixed =
		plumb_mix((uint64_t)bin->object << 32 | bin->ordinal, bin->offset << 8 | bin->kind);
	mixed = plumb_mix(mixed, bin->width);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32), at = hash, id;
	struct plumb_record_object_bin *record = NULL;
	while ((id = plumb_id_table_next(&bin_index, hash, &at))) {
		record = plumb_region_at(region, id);
		if (record->object == bin->object && record->ordinal == bin->ordinal &&
		    record->kind == bin->kind && record->offset == bin->offset &&
		    record->width == bin->width)
			break;
	}
	if (!id) {
		struct plumb_arena *arena = plumb_thread_arena(thread);
		record = plumb_arena_append(arena, PLUMB_RECORD_OBJECT_BIN, sizeof *record);
		if (!record)
			return;
		record->object = bin->object;
		record->ordinal = bin->ordinal;
		record->kind = bin->kind;
		record->offset = bin->offset;
		record->width = bin->width;
		plumb_arena_commit(arena, record);
		plumb_id_table_add(&bin_index, hash, plumb_region_id(region, record));
	}
	atomic_fetch_add_explicit(&record->accesses, accesses, memory_order_relaxed);
}

static void
tell_bins(struct plumb_sanitizer_context *context, struct plumb_thread *thread,
          const struct plumb_place *place, const plumb_u64 *now)
{
	static const uint32_t kinds[PLUMB_COUNTING_GROUPS] = { PLUMB_ACCESS_LOAD,
		                                               PLUMB_ACCESS_STORE,
		                                               PLUMB_ACCESS_ATOMIC };
	struct bin bin = {
		.object = object_of_range(place->range),
		.ordinal = context->ordinal,
		.width = 1ull << place->bin_shift,
	};
	for (uint32_t group = 0; group < PLUMB_COUNTING_GROUPS; group++)
		for (uint32_t i = 0; i < place->bin_count; i++) {
			uint32_t at = place->bins + group * place->bin_count + i;
			uint64_t more = now[at] - context->seen_bins[at];
			context->seen_bins[at] = now[at];
			bin.kind = kinds[group];
			bin.offset = (uint64_t)i << place->bin_shift;
			if (more)
				add_bin(thread, &bin,
				        plumb_estimate(more, plumb_sanitizer_settings.rate));
		}
}

/* Granules of the word AT of a range that no other context touched before. */
static uint32_t
new_to_all(const struct plumb_sanitizer_context *context, const struct plumb_place *place,
           uint32_t at, uint32_t word)
{
	for (uint32_t i = 0; i < PLUMB_CONTEXTS; i++) {
		struct plumb_sanitizer_context *other = &plumb_sanitizer_contexts[i];
		if (other == context || !other->ready)
			continue;
		const struct plumb_place *its = plumb_sanitizer_place(other, place->range);
		if (its && its->range && its->bins != PLUMB_COUNTING_NONE)
			word &= ~other->seen_bits[its->bits + at];
	}
	return word;
}

static void
tell_touched(struct plumb_sanitizer_context *context, struct plumb_place *place,
             const plumb_u32 *now)
{
	const struct plumb_record_object_range *range =
		plumb_region_at(plumb_region_of_process(), place->range);
	struct plumb_record_object *object = range ? object_record(range->object) : NULL;
	uint64_t granules = 0, unset = PLUMB_OBJECT_UNTOUCHED;
	for (uint32_t i = 0; i < (place->bit_count + 31) / 32; i++) {
		uint32_t at = place->bits + i;
		uint32_t more = now[at] & ~context->seen_bits[at];
		granules += (uint32_t)__builtin_popcount(new_to_all(context, place, i, more));
		context->seen_bits[at] |= more;
	}
	if (!object)
		return;
	uint64_t bytes = granules << place->bit_shift;
	if (atomic_compare_exchange_strong(&object->touched, &unset, 0))
		atomic_store(&object->touchable, 0);
	atomic_fetch_add(&object->touched, bytes > range->bytes ? range->bytes : bytes);
	/* Once, by the first context that can reach it. */
	bool first = !place->told;
	for (uint32_t i = 0; first && i < PLUMB_CONTEXTS; i++) {
		struct plumb_sanitizer_context *other = &plumb_sanitizer_contexts[i];
		const struct plumb_place *its = other != context && other->ready
		                                        ? plumb_sanitizer_place(other, place->range)
		                                        : NULL;
		first = !its || !its->range || !its->told;
	}
	if (first)
		atomic_fetch_add(&object->touchable, range->bytes);
	place->told = 1;
}

static void
read_bins(struct plumb_sanitizer_context *context, sanitizer_stream stream)
{
	static plumb_u64 bins[PLUMB_BINS];
	static plumb_u32 bits[PLUMB_BIT_WORDS];
	pthread_mutex_lock(&plumb_sanitizer_lock);
	uint32_t bins_used = context->bins_used, bits_used = context->bits_used;
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	if (!bins_used || !read_device(bins, context->bins, bins_used * sizeof *bins, stream) ||
	    !read_device(bits, context->bits, bits_used * sizeof *bits, stream))
		return;
	struct plumb_thread *thread = plumb_enter_paused(PLUMB_CALLBACK_GPU_RECORDS);
	if (!thread)
		return;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	for (uint32_t i = 0; i < PLUMB_PLACES; i++) {
		struct plumb_place *place = &context->places[i];
		if (!place->range || place->bins == PLUMB_COUNTING_NONE ||
		    place->bins + PLUMB_COUNTING_GROUPS * place->bin_count > bins_used ||
		    !plumb_sanitizer_wants_object(object_of_range(place->range)))
			continue;
		tell_bins(context, thread, place, bins);
		/* Of a part of the launches it would say too little. */
		if (!plumb_sanitizer_settings.sampled)
			tell_touched(context, place, bits);
	}
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	plumb_leave(thread);
}

/* ---- when ---- */

/* All that was launched in the context has ended: places of two synchronisations ago are free. */
static void
advance_rings(struct plumb_sanitizer_context *context)
{
	struct plumb_ring *rings[] = { &context->tables, &context->launches };
	for (int i = 0; i < 2; i++) {
		/* While there is plenty of room, what is there can stay. */
		if (rings[i]->head - rings[i]->tail < rings[i]->capacity / 2)
			continue;
		rings[i]->tail = rings[i]->before;
		rings[i]->before = rings[i]->head;
	}
}

void
plumb_sanitizer_read(struct plumb_sanitizer_context *context, sanitizer_stream stream, bool whole,
                     bool now)
{
	uint64_t time = plumb_clock_ns();
	bool sampled = plumb_sanitizer_settings.sampled;
	if (!context || !context->ready)
		return;
	sanitizer_stream on = stream ? stream : context->null_stream;
	pthread_mutex_lock(&plumb_sanitizer_lock);
	bool due = context->dirty && (now || time - context->read_ns > PERIOD_NS ||
	                              (sampled && context->banks_used > PLUMB_BANKS / 4));
	if (whole)
		advance_rings(context);
	pthread_mutex_unlock(&plumb_sanitizer_lock);
	if (!due || pthread_mutex_trylock(&reading))
		return;
	context->read_ns = time;
	if (sampled)
		read_banks(context, on, stream, whole || now);
	else
		read_slots(context, on);
	read_drops(context, on);
	if (now || time - context->read_bins_ns > BINS_NS) {
		context->read_bins_ns = time;
		read_bins(context, on);
	}
	pthread_mutex_unlock(&reading);
	if (whole && !now)
		plumb_sanitizer_rest(context);
}

void
plumb_sanitizer_reads_renew(void)
{
	reading = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	bin_index = (struct plumb_id_table){ 0 };
}
