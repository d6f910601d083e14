/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is live is kept in a store of its own, so that a look never reads records: two sorted sets
 * of ranges, of allocations and of tensors. Both are bounded. So are records of single allocations;
 * what finds no room there still counts in its object's sums.
 */
#include "collect/object.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "collect/intervals.h"
#include "collect/live.h"
#include "collect/table.h"

#define LIVE 65536u           /* ranges that are live at once */
#define RANGES 65536u         /* OBJECT_RANGE records of a process */
#define TENSOR_RANGES 32768u  /* so many of them are of tensors, which come and go */
#define MEMORIES 65536u       /* handles of memory that are live at once */
#define ALLOCATOR_ROUNDS 512u /* bytes: allocators of arrays hand out multiples of it */
_Static_assert(LIVE <= PLUMB_INTERVALS_LEAST, "each live range finds room");

struct entry {
	struct plumb_object_place place;
	uint32_t memory; /* index + 1 in memories of what is mapped here; 0: it is memory itself */
	uint32_t next_free;
	bool by_name; /* a tensor of which nothing but its name told */
};

/* Memory that has a handle. */
struct memory {
	uint64_t bytes, key;
	plumb_id object;
	uint32_t ordinal;
	enum plumb_object_kind kind;
	uint32_t references, maps;
	uint32_t next_free;
};

struct store {
	struct plumb_id_table objects; /* OBJECT records by all that tells them apart */
	struct plumb_live handles;     /* indexes of memories */
	uint32_t entries_made, entries_free, memories_made, memories_free; /* free: index + 1 */
	uint32_t ranges, tensor_ranges;                                    /* records */
	struct plumb_intervals sets[2]; /* allocations; tensors */
	struct entry entries[LIVE];
	struct memory memories[MEMORIES];
};

bool plumb_traffic_wanted;
_Atomic uint64_t plumb_objects_epoch;
_Atomic uint64_t plumb_objects_ordinals;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct store *store; /* guarded by it */

/* The store, locked; NULL (and not locked): nothing is recorded, or there is no memory. */
static struct store *
take_store(void)
{
	if (plumb_likely(!plumb_traffic_wanted))
		return NULL;
	pthread_mutex_lock(&lock);
	if (plumb_unlikely(!store))
		store = plumb_map(sizeof *store, true);
	if (plumb_unlikely(!store))
		pthread_mutex_unlock(&lock);
	return store;
}

static void
give_store(void)
{
	pthread_mutex_unlock(&lock);
}

static void
change_epoch(void)
{
	atomic_fetch_add_explicit(&plumb_objects_epoch, 1, memory_order_release);
}

static void
note_ordinal(uint32_t ordinal)
{
	uint64_t bit = ordinal < 64 ? 1ull << ordinal : 0;
	if (bit & ~atomic_load_explicit(&plumb_objects_ordinals, memory_order_relaxed))
		atomic_fetch_or_explicit(&plumb_objects_ordinals, bit, memory_order_relaxed);
}

/* ---- OBJECT records ---- */

struct identity {
	plumb_id node, name, within;
	uint32_t ordinal;
	uint32_t import; /* see struct plumb_record_object */
	enum plumb_object_kind kind;
};

static bool
is_same(const struct plumb_record_object *record, const struct identity *identity)
{
	return record->node == identity->node && record->ordinal == identity->ordinal &&
	       record->kind == identity->kind && record->name == identity->name &&
	       record->within == identity->within && record->import == identity->import;
}

/* The record of IDENTITY; 0: no room. */
static plumb_id
object_of(struct store *of, struct plumb_thread *thread, const struct identity *identity)
{
	struct plumb_region *region = plumb_region_of_process();
	uint64_t mixed = plumb_mix((uint64_t)identity->node << 32 | identity->name,
	                           (uint64_t)identity->within << 32 | identity->ordinal);
	mixed = plumb_mix(mixed, (uint64_t)identity->import << 32 | identity->kind);
	uint32_t hash = (uint32_t)(mixed ^ mixed >> 32), at = hash, id;
	while ((id = plumb_id_table_next(&of->objects, hash, &at)))
		if (is_same(plumb_region_at(region, id), identity))
			return id;
	struct plumb_arena *arena = plumb_thread_arena(thread);
	struct plumb_record_object *record =
		plumb_arena_append(arena, PLUMB_RECORD_OBJECT, sizeof *record);
	if (!record)
		return 0;
	record->node = identity->node;
	record->ordinal = identity->ordinal;
	record->kind = identity->kind;
	record->name = identity->name;
	record->within = identity->within;
	record->import = identity->import;
	atomic_store_explicit(&record->touched, PLUMB_OBJECT_UNTOUCHED, memory_order_relaxed);
	atomic_store_explicit(&record->touchable, PLUMB_OBJECT_UNTOUCHED, memory_order_relaxed);
	plumb_arena_commit(arena, record);
	id = plumb_region_id(region, record);
	note_ordinal(identity->ordinal);
	/* What the table has no memory for becomes a second record, which settle adds up. */
	plumb_id_table_add(&of->objects, hash, id);
	return id;
}

static struct plumb_record_object *
record_of(plumb_id object)
{
	return object ? plumb_region_at(plumb_region_of_process(), object) : NULL;
}

static void
add_to(_Atomic uint64_t *sum, uint64_t x)
{
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + x,
	                      memory_order_relaxed);
}

/* BYTES more live in OBJECT, which are ALLOCATIONS more. */
static void
object_grows(plumb_id object, uint64_t allocations, uint64_t bytes)
{
	struct plumb_record_object *record = record_of(object);
	if (!record)
		return;
	add_to(&record->allocations, allocations);
	add_to(&record->bytes, bytes);
	add_to(&record->live, bytes);
	uint64_t live = atomic_load_explicit(&record->live, memory_order_relaxed);
	if (live > atomic_load_explicit(&record->most, memory_order_relaxed))
		atomic_store_explicit(&record->most, live, memory_order_relaxed);
}

static void
object_shrinks(plumb_id object, uint64_t bytes)
{
	struct plumb_record_object *record = record_of(object);
	if (record)
		add_to(&record->live, 0 - bytes);
}

/* ---- ranges ---- */

static bool
is_tensor(enum plumb_object_kind kind)
{
	return kind == PLUMB_OBJECT_TENSOR;
}

/* The live range of SET that ADDRESS lies in. */
static struct entry *
find_entry(struct store *of, bool tensor, uint64_t address, struct plumb_interval_at *at)
{
	struct plumb_interval_at here;
	if (!plumb_intervals_floor(&of->sets[tensor], address, &here))
		return NULL;
	struct entry *entry = &of->entries[plumb_intervals_entry(&of->sets[tensor], here)];
	if (address - entry->place.address >= entry->place.bytes)
		return NULL;
	if (at)
		*at = here;
	return entry;
}

static struct plumb_record_object_range *
range_of(const struct entry *entry)
{
	return entry->place.range ? plumb_region_at(plumb_region_of_process(), entry->place.range)
	                          : NULL;
}

static void
memory_settle(struct store *of, uint32_t index)
{
	struct memory *memory = &of->memories[index];
	if (memory->references || memory->maps)
		return;
	object_shrinks(memory->object, memory->bytes);
	memory->next_free = of->memories_free;
	of->memories_free = index + 1;
}

static void
end_entry(struct store *of, bool tensor, struct plumb_interval_at at)
{
	uint32_t index = plumb_intervals_entry(&of->sets[tensor], at);
	struct entry *entry = &of->entries[index];
	struct plumb_record_object_range *range = range_of(entry);
	if (range)
		atomic_store_explicit(&range->end, plumb_clock_ns(), memory_order_relaxed);
	if (entry->memory) {
		of->memories[entry->memory - 1].maps--;
		memory_settle(of, entry->memory - 1);
	} else {
		object_shrinks(entry->place.object, entry->place.bytes);
	}
	plumb_intervals_remove(&of->sets[tensor], at);
	entry->next_free = of->entries_free;
	of->entries_free = index + 1;
}

/* Ends all ranges that overlap [START, END). */
static void
end_overlapping(struct store *of, bool tensor, uint64_t start, uint64_t end)
{
	struct plumb_interval_at at;
	while (find_entry(of, tensor, start, &at))
		end_entry(of, tensor, at);
	while (plumb_intervals_ceiling(&of->sets[tensor], start, &at) &&
	       of->entries[plumb_intervals_entry(&of->sets[tensor], at)].place.address < end)
		end_entry(of, tensor, at);
}

/* A record of the range, if there is room for one. */
static plumb_id
range_record(struct store *of, struct plumb_thread *thread, const struct plumb_object_place *place)
{
	struct plumb_arena *arena = plumb_thread_arena(thread);
	bool tensor = is_tensor(place->kind);
	struct plumb_record_object_range *range =
		place->object && of->ranges < RANGES &&
				(!tensor || of->tensor_ranges < TENSOR_RANGES)
			? plumb_arena_append(arena, PLUMB_RECORD_OBJECT_RANGE, sizeof *range)
			: NULL;
	if (!range)
		return 0;
	range->object = place->object;
	range->address = place->address;
	range->bytes = place->bytes;
	range->key = place->key;
	range->start = plumb_clock_ns();
	plumb_arena_commit(arena, range);
	of->ranges++;
	of->tensor_ranges += tensor;
	return plumb_region_id(arena->region, range);
}

/* Makes PLACE live, and sets its record. NULL: it found no room. */
static struct entry *
put_entry(struct store *of, struct plumb_thread *thread, struct plumb_object_place *place)
{
	bool tensor = is_tensor(place->kind);
	uint64_t end = place->address + place->bytes;
	end_overlapping(of, tensor, place->address, end);
	if (!tensor)
		end_overlapping(of, true, place->address, end);
	uint32_t index = of->entries_free ? of->entries_free - 1 : of->entries_made;
	if (index >= LIVE || !plumb_intervals_put(&of->sets[tensor], place->address, index))
		return NULL;
	struct entry *entry = &of->entries[index];
	if (of->entries_free)
		of->entries_free = entry->next_free;
	else
		of->entries_made++;
	place->range = range_record(of, thread, place);
	*entry = (struct entry){ .place = *place };
	return entry;
}

/* What became of an allocation whose entry is ENTRY, for the ledger. */
static enum plumb_fate
fate_of(struct plumb_thread *thread, plumb_id object, const struct entry *entry)
{
	enum plumb_fate full = plumb_thread_arena(thread)->fate;
	if (!object)
		return full ? full : PLUMB_FATE_REGION_FULL;
	return entry && entry->place.range ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_OVERFLOWED;
}

static void
count(struct plumb_thread *thread, enum plumb_fate fate)
{
	plumb_count(thread, PLUMB_SOURCE_OBJECT, PLUMB_FATE_RECEIVED, 1);
	plumb_count(thread, PLUMB_SOURCE_OBJECT, fate, 1);
}

static bool
is_sensible(const struct plumb_allocation *a)
{
	return a->bytes && a->address && a->address + a->bytes > a->address;
}

static plumb_id
known_node(plumb_id node)
{
	return node == PLUMB_LOST ? 0 : node;
}

static uint32_t
import_of(const struct plumb_allocation *allocation)
{
	return allocation->kind == PLUMB_OBJECT_IMPORTED
	               ? (uint32_t)(allocation->key ^ allocation->key >> 32)
	               : 0;
}

void
plumb_object_add(struct plumb_thread *thread, const struct plumb_allocation *allocation)
{
	struct store *of = is_sensible(allocation) ? take_store() : NULL;
	if (!of)
		return;
	struct identity identity = {
		.node = known_node(allocation->node),
		.ordinal = allocation->ordinal,
		.kind = allocation->kind,
		.import = import_of(allocation),
	};
	if (is_tensor(allocation->kind)) {
		const struct entry *segment = find_entry(of, false, allocation->address, NULL);
		if (segment) {
			identity.within = segment->place.object;
			identity.ordinal = segment->place.ordinal;
		}
	}
	struct plumb_object_place place = {
		.object = object_of(of, thread, &identity),
		.ordinal = identity.ordinal,
		.kind = allocation->kind,
		.address = allocation->address,
		.bytes = allocation->bytes,
		.key = allocation->key,
	};
	const struct entry *entry = put_entry(of, thread, &place);
	object_grows(place.object, 1, place.bytes);
	if (!entry) /* its end will not be seen */
		object_shrinks(place.object, place.bytes);
	change_epoch();
	enum plumb_fate fate = fate_of(thread, place.object, entry);
	give_store();
	count(thread, fate);
}

void
plumb_object_allocated(struct plumb_thread *thread, uint32_t ordinal, enum plumb_object_kind kind,
                       uint64_t address, uint64_t bytes, uint64_t key)
{
	if (plumb_likely(!plumb_traffic_wanted))
		return;
	const struct plumb_allocation allocation = {
		.node = plumb_context_current(thread),
		.ordinal = ordinal,
		.kind = kind,
		.address = address,
		.bytes = bytes,
		.key = key,
	};
	plumb_object_add(thread, &allocation);
}

static bool
end_at(bool tensor, uint64_t address)
{
	struct store *of = take_store();
	struct plumb_interval_at at;
	if (!of)
		return false;
	const struct entry *entry = find_entry(of, tensor, address, &at);
	bool found = entry && entry->place.address == address;
	if (found) {
		if (!tensor)
			end_overlapping(of, true, address, address + entry->place.bytes);
		end_entry(of, tensor, at);
		change_epoch();
	}
	give_store();
	return found;
}

bool
plumb_object_freed(struct plumb_thread *thread, uint64_t address)
{
	(void)thread;
	return end_at(false, address);
}

bool
plumb_tensor_freed(struct plumb_thread *thread, uint64_t address)
{
	(void)thread;
	return end_at(true, address);
}

void
plumb_objects_freed(struct plumb_thread *thread, uint64_t address, uint64_t bytes)
{
	struct store *of = address + bytes > address ? take_store() : NULL;
	(void)thread;
	if (!of)
		return;
	struct plumb_interval_at at;
	while (plumb_intervals_ceiling(&of->sets[0], address, &at)) {
		const struct plumb_object_place *place =
			&of->entries[plumb_intervals_entry(&of->sets[0], at)].place;
		if (place->address >= address + bytes)
			break;
		end_overlapping(of, true, place->address, place->address + place->bytes);
		end_entry(of, false, at);
	}
	change_epoch();
	give_store();
}

static void
set_key(struct entry *entry, uint64_t key)
{
	struct plumb_record_object_range *range = range_of(entry);
	entry->place.key = key;
	if (range)
		range->key = key;
}

void
plumb_object_shared(uint64_t address, uint64_t key)
{
	struct store *of = take_store();
	if (!of)
		return;
	struct entry *entry = find_entry(of, false, address, NULL);
	if (entry)
		set_key(entry, key);
	give_store();
}

/* ---- names ---- */

/* Moves ENTRY to the object that differs from its own by NAME only. The other object's `most`
 * stays. An object of this one allocation gets the name itself: transfers know it already. */
static void
rename_entry(struct store *of, struct plumb_thread *thread, struct entry *entry, plumb_id name)
{
	struct plumb_record_object *old = record_of(entry->place.object);
	struct plumb_record_object_range *range = range_of(entry);
	if (!old || old->name == name)
		return;
	const struct identity identity = {
		.node = old->node,
		.name = name,
		.within = old->within,
		.ordinal = old->ordinal,
		.import = old->import,
		.kind = old->kind,
	};
	if (atomic_load_explicit(&old->allocations, memory_order_relaxed) == 1) {
		old->name = name; /* from now on it is found as neither; settle puts it together */
		return;
	}
	plumb_id object = object_of(of, thread, &identity);
	if (!object)
		return;
	struct memory *memory = entry->memory ? &of->memories[entry->memory - 1] : NULL;
	uint64_t bytes = memory ? memory->bytes : entry->place.bytes;
	bool moves = !memory || memory->object == entry->place.object;
	if (moves) {
		add_to(&old->allocations, UINT64_MAX);
		add_to(&old->bytes, 0 - bytes);
		add_to(&old->live, 0 - bytes);
		object_grows(object, 1, bytes);
	}
	if (memory)
		memory->object = object;
	entry->place.object = object;
	if (range)
		range->object = object;
}

/* What the program means by BYTES at ADDRESS; NULL: a part of the allocation WHOLE that has no
 * entry yet, or nothing if WHOLE is NULL, too. */
static struct entry *
find_named(struct store *of, uint64_t address, uint64_t bytes, struct entry *whole)
{
	struct entry *tensor = find_entry(of, true, address, NULL);
	if (tensor)
		return !bytes || !tensor->by_name ||
		                       (tensor->place.address == address &&
		                        tensor->place.bytes == bytes)
		               ? tensor
		               : NULL;
	if (!whole || !bytes)
		return whole;
	bool all = whole->place.address == address && bytes + ALLOCATOR_ROUNDS > whole->place.bytes;
	return all ? whole : NULL;
}

/* The framework that cut it out of the allocation WHOLE is not known to us. */
static struct entry *
make_named(struct store *of, struct plumb_thread *thread, plumb_id node, uint64_t address,
           uint64_t bytes, const struct entry *whole)
{
	uint64_t rest = whole->place.bytes - (address - whole->place.address);
	const struct identity identity = {
		.node = known_node(node),
		.within = whole->place.object,
		.ordinal = whole->place.ordinal,
		.kind = PLUMB_OBJECT_TENSOR,
	};
	struct plumb_object_place place = {
		.object = object_of(of, thread, &identity),
		.ordinal = identity.ordinal,
		.kind = identity.kind,
		.address = address,
		.bytes = bytes > rest ? rest : bytes,
	};
	struct entry *entry = put_entry(of, thread, &place);
	if (entry) {
		object_grows(place.object, 1, place.bytes);
		entry->by_name = true;
	}
	return entry;
}

bool
plumb_object_name(struct plumb_thread *thread, uint64_t address, uint64_t bytes, const char *name)
{
	plumb_id id = plumb_traffic_wanted ? plumb_intern(thread, name, strlen(name)) : 0;
	plumb_id node = id ? plumb_context_current(thread) : 0;
	struct store *of = id ? take_store() : NULL;
	if (!of)
		return false;
	struct entry *whole = find_entry(of, false, address, NULL);
	struct entry *entry = find_named(of, address, bytes, whole);
	bool known = entry || whole;
	if (!entry && whole)
		entry = make_named(of, thread, node, address, bytes, whole);
	if (entry)
		rename_entry(of, thread, entry, id);
	change_epoch();
	give_store();
	if (!known)
		count(thread, PLUMB_FATE_UNKNOWN_OBJECT);
	return entry != NULL;
}

bool
plumb_object_named(uint64_t address, uint64_t bytes, const char *name)
{
	struct plumb_thread *thread =
		plumb_traffic_wanted ? plumb_enter(PLUMB_CALLBACK_MEMORY) : NULL;
	if (!thread)
		return false;
	bool found = plumb_object_name(thread, address, bytes, name);
	plumb_leave(thread);
	return found;
}

/* ---- memory with a handle ---- */

static struct memory *
memory_of(struct store *of, uint64_t handle)
{
	struct plumb_live_object found;
	return handle && plumb_live_get(&of->handles, handle, &found) ? &of->memories[found.record]
	                                                              : NULL;
}

void
plumb_memory_made(struct plumb_thread *thread, const struct plumb_allocation *allocation,
                  uint64_t handle)
{
	struct store *of = handle ? take_store() : NULL;
	if (!of)
		return;
	const struct identity identity = {
		.node = known_node(allocation->node),
		.ordinal = allocation->ordinal,
		.kind = allocation->kind,
		.import = import_of(allocation),
	};
	uint32_t index = of->memories_free ? of->memories_free - 1 : of->memories_made;
	plumb_id object = object_of(of, thread, &identity);
	struct plumb_live_object put = { .record = index }, was;
	enum plumb_fate fate = fate_of(thread, object, NULL);
	if (object && index < MEMORIES &&
	    plumb_live_put(&of->handles, handle, &put, &was) != PLUMB_LIVE_FULL) {
		struct memory *memory = &of->memories[index];
		if (of->memories_free)
			of->memories_free = memory->next_free;
		else
			of->memories_made++;
		*memory = (struct memory){
			.bytes = allocation->bytes,
			.key = allocation->key,
			.object = object,
			.ordinal = allocation->ordinal,
			.kind = allocation->kind,
			.references = 1,
		};
		object_grows(object, 1, allocation->bytes);
		fate = PLUMB_FATE_ATTRIBUTED;
	}
	give_store();
	count(thread, fate);
}

bool
plumb_memory_retained(uint64_t handle)
{
	struct store *of = take_store();
	if (!of)
		return false;
	struct memory *memory = memory_of(of, handle);
	if (memory)
		memory->references++;
	give_store();
	return memory != NULL;
}

bool
plumb_memory_released(uint64_t handle)
{
	struct store *of = take_store();
	bool last = false;
	if (!of)
		return false;
	struct memory *memory = memory_of(of, handle);
	struct plumb_live_object taken;
	if (memory && memory->references && !--memory->references) {
		last = plumb_live_take(&of->handles, handle, &taken);
		memory_settle(of, (uint32_t)(memory - of->memories));
	}
	give_store();
	return last;
}

void
plumb_memory_mapped(struct plumb_thread *thread, uint64_t handle, uint64_t address, uint64_t bytes)
{
	const struct plumb_allocation sense = { .address = address, .bytes = bytes };
	struct store *of = is_sensible(&sense) ? take_store() : NULL;
	if (!of)
		return;
	struct memory *memory = memory_of(of, handle);
	enum plumb_fate fate = PLUMB_FATE_UNKNOWN_OBJECT;
	if (memory) {
		struct plumb_object_place place = {
			.object = memory->object,
			.ordinal = memory->ordinal,
			.kind = memory->kind,
			.address = address,
			.bytes = bytes,
			.key = memory->key,
		};
		if (!memory->bytes) { /* imported: the handle does not say */
			memory->bytes = bytes;
			object_grows(memory->object, 0, bytes);
		}
		memory->maps++; /* before what was there is ended: it may be the same memory */
		struct entry *entry = put_entry(of, thread, &place);
		if (entry)
			entry->memory = (uint32_t)(memory - of->memories) + 1;
		else
			memory->maps--;
		fate = fate_of(thread, place.object, entry);
		change_epoch();
	}
	give_store();
	if (fate != PLUMB_FATE_ATTRIBUTED) /* the handle counted already */
		count(thread, fate);
}

void
plumb_memory_shared(uint64_t handle, uint64_t key)
{
	struct store *of = take_store();
	if (!of)
		return;
	struct memory *memory = memory_of(of, handle);
	if (memory) {
		memory->key = key;
		uint32_t index = (uint32_t)(memory - of->memories) + 1;
		for (uint32_t i = 0; memory->maps && i < of->entries_made; i++)
			if (of->entries[i].memory == index)
				set_key(&of->entries[i], key);
	}
	give_store();
}

/* ---- what lies where ---- */

static plumb_id
look_at(bool tensors, uint64_t address, struct plumb_object_place *place)
{
	struct store *of = take_store();
	if (!of)
		return 0;
	const struct entry *entry = tensors ? find_entry(of, true, address, NULL) : NULL;
	if (!entry)
		entry = find_entry(of, false, address, NULL);
	if (entry && place)
		*place = entry->place;
	plumb_id object = entry ? entry->place.object : 0;
	give_store();
	return object;
}

plumb_id
plumb_object_at(uint64_t address, struct plumb_object_place *place)
{
	return look_at(true, address, place);
}

plumb_id
plumb_allocation_at(uint64_t address, struct plumb_object_place *place)
{
	return look_at(false, address, place);
}

uint32_t
plumb_objects_list(bool tensors, uint64_t from, struct plumb_object_place *into, uint32_t most,
                   uint64_t *epoch)
{
	struct store *of = take_store();
	struct plumb_interval_at at;
	uint32_t filled = 0;
	if (!of)
		return 0;
	if (epoch)
		*epoch = atomic_load_explicit(&plumb_objects_epoch, memory_order_acquire);
	const struct plumb_intervals *set = &of->sets[tensors];
	bool more = find_entry(of, tensors, from, &at) || plumb_intervals_ceiling(set, from, &at);
	for (; more && filled < most; more = plumb_intervals_next(set, &at))
		into[filled++] = of->entries[plumb_intervals_entry(set, at)].place;
	give_store();
	return filled;
}

/* ---- life ---- */

void
plumb_objects_start(void)
{
	plumb_traffic_wanted = plumb_collector_options()->traffic != 0;
	if (plumb_traffic_wanted)
		plumb_objects_of_tensors();
}

void
plumb_objects_renew(bool forked)
{
	struct store *was = store;
	pthread_mutex_init(&lock, NULL);
	store = NULL;
	atomic_store(&plumb_objects_ordinals, 0);
	plumb_transfers_renew(forked);
	if (forked || !was) /* a callback that goes on in the child may be in it */
		return;
	plumb_live_clear(&was->handles);
	if (was->objects.slots)
		munmap(was->objects.slots,
		       ((size_t)was->objects.mask + 1) * sizeof *was->objects.slots);
	munmap(was, sizeof *was);
}
