/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts, devices and peaks of allocations, in constant time a change and without a lock.
 *
 * A device's memory is a pool (MEMORY_POOL record) that all threads change; what one thread
 * allocated and freed at a node is a share (MEMORY record) that it alone changes. Who frees what
 * another thread allocated does so in a share of its own at the same node; settle adds shares up.
 *
 * Who holds the bytes at the peak: the peak only grows, so its bytes number it. A share keeps what
 * was live in it when the peak was last another one than now (`held`, `seen`): it is brought up to
 * date before the share changes, and a share that did not change since held what is live in it now.
 * So that no thread misses a peak between two changes of its own, whoever changes a pool first
 * makes sure that what it replaces is known as a peak, if it is one; the exchange fails when
 * somebody else was faster. The sums are exact for any number of threads.
 */
#include "collect/monitor/memory.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "collect/live.h"
#include "collect/monitor/memory_series.h"
#include "collect/thread.h"

struct pool {
	uint64_t device; /* kind << 8 | index, or OF_DRIVER | context */
	plumb_id id;
	struct plumb_record_memory_pool *record;
	struct plumb_record_memory_series *series; /* NULL: no room */
	struct plumb_live live; /* address → bytes, the allocating thread's MEMORY record */
};
#define OF_DRIVER (UINT64_C(1) << 32)
static struct pool pools[PLUMB_POOLS_MOST];
static _Atomic uint32_t pools_count;
static pthread_mutex_t pools_lock = PTHREAD_MUTEX_INITIALIZER; /* a device's first allocation */

_Atomic unsigned plumb_memory_wanted;
static plumb_memory_listener *_Atomic listeners[PLUMB_MEMORY_LISTENERS];

/* ---- pools ---- */

static uint64_t
device_of(const struct plumb_memory_change *change)
{
	return (uint64_t)change->device_kind << 8 | change->device_index;
}

const char *
plumb_memory_device_name(uint8_t device_kind)
{
	static const char *const kinds[] = {
		[PLUMB_MEMORY_CPU] = "cpu",
		[PLUMB_MEMORY_CUDA] = "cuda",
		[6] = "hip",
		[9] = "xla",
		[10] = "vulkan",
		[12] = "xpu",
		[13] = "mps",
		[15] = "hpu",
		[18] = "ipu",
		[19] = "mtia",
		[20] = "privateuseone",
	};
	return device_kind < sizeof kinds / sizeof *kinds ? kinds[device_kind] : NULL;
}

/* A device has no record but its pool's where no GPU runtime describes it. */
static void
name_device(const struct plumb_memory_change *change, char *name, size_t size)
{
	const char *kind = plumb_memory_device_name(change->device_kind);
	if (change->device_kind == PLUMB_MEMORY_CPU)
		snprintf(name, size, "CPU");
	else if (kind)
		snprintf(name, size, "%s:%u", kind, change->device_index);
	else
		snprintf(name, size, "device type %u:%u", change->device_kind,
		         change->device_index);
}

/* The record of the pool of CHANGE's device; CHANGE is NULL: of the driver in a context. */
static struct plumb_record_memory_pool *
pool_record(struct plumb_thread *thread, const struct plumb_memory_change *change, uint64_t device)
{
	char name[40] = "driver";
	if (change)
		name_device(change, name, sizeof name);
	plumb_id text = plumb_intern(thread, name, strlen(name));
	struct plumb_record_memory_pool *record =
		text ? plumb_arena_append(&thread->arena, PLUMB_RECORD_MEMORY_POOL, sizeof *record)
		     : NULL;
	if (!record)
		return NULL;
	record->name = text;
	if (change) {
		bool is_gpu = change->device_kind == PLUMB_MEMORY_CUDA;
		record->ordinal = is_gpu ? change->device_index : UINT32_MAX;
	} else {
		record->head.flags = PLUMB_POOL_DRIVER;
		record->ordinal = (uint32_t)device;
	}
	record->peak_allocated = record->peak_reserved = record->most_reserved = PLUMB_POOL_UNTOLD;
	plumb_arena_commit(&thread->arena, record);
	return record;
}

static struct pool *
find_pool(uint64_t device)
{
	uint32_t count = atomic_load_explicit(&pools_count, memory_order_acquire);
	for (uint32_t i = 0; i < count; i++)
		if (pools[i].device == device)
			return &pools[i];
	return NULL;
}

static __attribute__((noinline)) struct pool *
make_pool(struct plumb_thread *thread, const struct plumb_memory_change *change, uint64_t device)
{
	pthread_mutex_lock(&pools_lock);
	struct pool *pool = find_pool(device);
	uint32_t count = atomic_load_explicit(&pools_count, memory_order_relaxed);
	if (!pool && count < PLUMB_POOLS_MOST) {
		struct plumb_record_memory_pool *record = pool_record(thread, change, device);
		if (record) {
			pool = &pools[count];
			pool->device = device;
			pool->record = record;
			pool->id = plumb_region_id(thread->arena.region, record);
			pool->series = plumb_memory_series_new(thread, pool->id);
			if (!pool->series)
				plumb_count(thread, PLUMB_SOURCE_REGION, thread->arena.fate, 1);
			atomic_store_explicit(&pools_count, count + 1, memory_order_release);
		}
	}
	pthread_mutex_unlock(&pools_lock);
	return pool;
}

/* ---- shares ---- */

static struct plumb_record_memory *
find_share(struct plumb_thread *thread, const struct pool *pool, plumb_id node, uint32_t hash)
{
	uint32_t at = hash, id;
	while ((id = plumb_id_table_next(&thread->memory, hash, &at))) {
		struct plumb_record_memory *share = plumb_region_at(thread->arena.region, id);
		if (share->node == node && share->pool == pool->id)
			return share;
	}
	return NULL;
}

static uint32_t
hash_share(const struct pool *pool, plumb_id node)
{
	uint64_t mixed = plumb_mix(node, pool->id);
	return (uint32_t)(mixed ^ (mixed >> 32));
}

static struct plumb_record_memory *
make_share(struct plumb_thread *thread, const struct pool *pool, plumb_id node)
{
	struct plumb_record_memory *share =
		plumb_arena_append(&thread->arena, PLUMB_RECORD_MEMORY, sizeof *share);
	if (!share)
		return NULL;
	share->node = node;
	share->pool = pool->id;
	plumb_arena_commit(&thread->arena, share);
	/* Not found again for lack of memory: then it is made again, which costs room, not
	 * truth. */
	plumb_id_table_add(&thread->memory, hash_share(pool, node),
	                   plumb_region_id(thread->arena.region, share));
	return share;
}

/* What comes first to a pool on a thread: the root's share takes what finds no room later, and the
 * tallies say so. */
static void
reserve_share(struct plumb_thread *thread, const struct pool *pool)
{
	if (find_share(thread, pool, 0, hash_share(pool, 0)))
		return;
	make_share(thread, pool, 0);
	plumb_count(thread, PLUMB_SOURCE_MEMORY, PLUMB_FATE_REGION_FULL, 0);
	plumb_count(thread, PLUMB_SOURCE_MEMORY, PLUMB_FATE_NO_SPACE, 0);
}

/* The calling thread's share at NODE; NULL: no room. */
static struct plumb_record_memory *
share_at(struct plumb_thread *thread, const struct pool *pool, plumb_id node)
{
	struct plumb_record_memory *share = find_share(thread, pool, node, hash_share(pool, node));
	if (plumb_likely(share))
		return share;
	reserve_share(thread, pool);
	share = node ? make_share(thread, pool, node)
	             : find_share(thread, pool, 0, hash_share(pool, 0));
	if (!share)
		plumb_count(thread, PLUMB_SOURCE_REGION, thread->arena.fate, 1);
	return share;
}

/* ---- peaks ---- */

/* Makes sure that BYTES, which are or were live, are no more than the peak; returns the peak. */
static inline uint64_t
raise_peak(struct plumb_record_memory_pool *pool, uint64_t bytes)
{
	uint64_t peak = atomic_load_explicit(&pool->peak, memory_order_relaxed);
	while (plumb_unlikely(bytes > peak))
		if (atomic_compare_exchange_weak_explicit(
			    &pool->peak, &peak, bytes, memory_order_relaxed, memory_order_relaxed))
			return bytes;
	return peak;
}

/* Adds BYTES (negative for a free) to what is live in OF. Before that, it brings SHARE, if it is
 * not NULL, up to date with the peak. CHANGE is the change that does it. False: it cannot be. */
static bool
change_live(const struct pool *of, struct plumb_record_memory *share, int64_t bytes,
            const struct plumb_memory_change *change)
{
	struct plumb_record_memory_pool *pool = of->record;
	uint64_t old = atomic_load_explicit(&pool->live, memory_order_acquire), new, live;
	do {
		live = old >> PLUMB_POOL_TAG_BITS;
		uint64_t peak = raise_peak(pool, live);
		if (share && share->seen != peak) {
			share->held = share->allocated.sum - share->freed.sum;
			share->seen = peak;
		}
		live += (uint64_t)bytes;
		if (plumb_unlikely(live > PLUMB_POOL_MOST)) /* also: fewer than none */
			return false;
		new = live << PLUMB_POOL_TAG_BITS | ((old + 1) & ((1u << PLUMB_POOL_TAG_BITS) - 1));
	} while (!atomic_compare_exchange_weak_explicit(
		&pool->live, &old, new, memory_order_acq_rel, memory_order_acquire));
	plumb_memory_series_note(of->series, old >> PLUMB_POOL_TAG_BITS, live, change->reserved);
	return true;
}

/* After an allocation: is it a peak, and what did the allocator say then? An allocator that keeps
 * an account makes its changes one after the other. */
static void
note_peak(struct plumb_record_memory_pool *pool, const struct plumb_memory_change *change)
{
	uint64_t live =
		atomic_load_explicit(&pool->live, memory_order_relaxed) >> PLUMB_POOL_TAG_BITS;
	uint64_t before = atomic_load_explicit(&pool->peak, memory_order_relaxed);
	if (live > before) {
		raise_peak(pool, live);
		plumb_memory_raise(&pool->peak_time, plumb_clock_ns());
		atomic_store_explicit(&pool->peak_allocated, change->allocated,
		                      memory_order_relaxed);
		atomic_store_explicit(&pool->peak_reserved, change->reserved, memory_order_relaxed);
	}
	if (change->reserved == PLUMB_POOL_UNTOLD)
		return;
	uint64_t most = atomic_load_explicit(&pool->most_reserved, memory_order_relaxed);
	if (most == PLUMB_POOL_UNTOLD || change->reserved > most)
		atomic_store_explicit(&pool->most_reserved, change->reserved, memory_order_relaxed);
}

/* ---- changes ---- */

static enum plumb_fate
release_object(struct plumb_thread *thread, struct pool *pool,
               const struct plumb_live_object *object, const struct plumb_memory_change *change)
{
	struct plumb_record_memory *owner = plumb_region_at(thread->arena.region, object->record);
	struct plumb_record_memory *share = plumb_likely(object->owner == thread->arena.number)
	                                            ? owner
	                                            : share_at(thread, pool, owner->node);
	int64_t bytes = (int64_t)object->bytes;
	atomic_fetch_sub_explicit(&owner->live, bytes, memory_order_relaxed);
	if (plumb_unlikely(!share)) {
		change_live(pool, NULL, -bytes, change);
		return thread->arena.fate;
	}
	plumb_sequence_begin(&share->sequence);
	bool changed = change_live(pool, share, -bytes, change);
	if (changed)
		plumb_observations_add(&share->freed, bytes);
	plumb_sequence_end(&share->sequence);
	return changed ? PLUMB_FATE_ATTRIBUTED : PLUMB_FATE_UNKNOWN_LAYOUT;
}

static enum plumb_fate
take_free(struct plumb_thread *thread, const struct plumb_memory_change *change)
{
	struct pool *pool = find_pool(device_of(change));
	struct plumb_live_object object;
	if (!pool || !plumb_live_take(&pool->live, change->address, &object))
		return PLUMB_FATE_UNKNOWN_OBJECT;
	return release_object(thread, pool, &object, change);
}

static enum plumb_fate
take_allocation(struct plumb_thread *thread, const struct plumb_memory_change *change)
{
	enum plumb_fate fate = PLUMB_FATE_ATTRIBUTED;
	uint64_t device = device_of(change);
	struct pool *pool = find_pool(device);
	if (plumb_unlikely(!pool) && !(pool = make_pool(thread, change, device)))
		return thread->arena.fate ? thread->arena.fate : PLUMB_FATE_OVERFLOWED;
	plumb_id node = plumb_context_current(thread);
	struct plumb_record_memory *share =
		node == PLUMB_LOST ? NULL : share_at(thread, pool, node);
	if (plumb_unlikely(!share)) { /* the device's sums stay true; who holds them is lost */
		fate = thread->arena.fate ? thread->arena.fate : PLUMB_FATE_REGION_FULL;
		share = share_at(thread, pool, 0);
		if (!share)
			return fate;
	}
	int64_t bytes = (int64_t)change->bytes;
	struct plumb_live_object was, object = {
		.bytes = change->bytes,
		.record = plumb_region_id(thread->arena.region, share),
		.owner = thread->arena.number,
	};
	enum plumb_live_result put = plumb_live_put(&pool->live, change->address, &object, &was);
	if (plumb_unlikely(put == PLUMB_LIVE_FULL))
		return PLUMB_FATE_OVERFLOWED;
	if (plumb_unlikely(put == PLUMB_LIVE_REPLACED))
		release_object(thread, pool, &was, change);
	plumb_sequence_begin(&share->sequence);
	bool changed = change_live(pool, share, bytes, change);
	if (changed) {
		plumb_observations_add(&share->allocated, bytes);
		int64_t live = atomic_fetch_add_explicit(&share->live, bytes, memory_order_relaxed);
		if (live + bytes > share->peak)
			share->peak = live + bytes;
	}
	plumb_sequence_end(&share->sequence);
	if (!changed) {
		plumb_live_take(&pool->live, change->address, &object);
		return PLUMB_FATE_UNKNOWN_LAYOUT;
	}
	note_peak(pool->record, change);
	return fate;
}

static void
tell_listeners(const struct plumb_memory_change *change)
{
	for (unsigned i = 0; i < PLUMB_MEMORY_LISTENERS; i++) {
		plumb_memory_listener *listener =
			atomic_load_explicit(&listeners[i], memory_order_acquire);
		if (listener)
			listener(change);
	}
}

void
plumb_memory_changed(const struct plumb_memory_change *change)
{
	unsigned wanted = atomic_load_explicit(&plumb_memory_wanted, memory_order_relaxed);
	if (wanted & PLUMB_MEMORY_LISTEN)
		tell_listeners(change);
	if (!(wanted & PLUMB_MEMORY_RECORD))
		return;
	/* A free counts also while recording is paused: what it frees would seem to live for
	 * ever. */
	bool known = change->free && atomic_load_explicit(&pools_count, memory_order_relaxed);
	struct plumb_thread *thread = known ? plumb_enter_paused(PLUMB_CALLBACK_MEMORY)
	                                    : plumb_enter(PLUMB_CALLBACK_MEMORY);
	if (!thread)
		return;
	enum plumb_fate fate = PLUMB_FATE_UNKNOWN_LAYOUT;
	if (change->free)
		fate = take_free(thread, change);
	else if (change->bytes <= PLUMB_POOL_MOST)
		fate = take_allocation(thread, change);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_MEMORY, PLUMB_FATE_RECEIVED, 1);
	plumb_arena_tally(&thread->arena, PLUMB_SOURCE_MEMORY, fate, 1);
	plumb_leave(thread);
}

void
plumb_memory_driver(struct plumb_thread *thread, uint32_t context, int64_t bytes)
{
	static const struct plumb_memory_change untold = { .allocated = PLUMB_POOL_UNTOLD,
		                                           .reserved = PLUMB_POOL_UNTOLD };
	uint64_t device = OF_DRIVER | context;
	struct pool *pool = find_pool(device);
	if (!(atomic_load_explicit(&plumb_memory_wanted, memory_order_relaxed) &
	      PLUMB_MEMORY_RECORD))
		return;
	if (!pool && !(pool = make_pool(thread, NULL, device))) {
		plumb_count(thread, PLUMB_SOURCE_REGION, PLUMB_FATE_OVERFLOWED, 1);
		return;
	}
	if (!change_live(pool, NULL, bytes, &untold))
		plumb_count(thread, PLUMB_SOURCE_REGION, PLUMB_FATE_UNKNOWN_LAYOUT, 1);
}

/* ---- life ---- */

void
plumb_memory_start(void)
{
	if (plumb_collector_options()->memory)
		atomic_fetch_or(&plumb_memory_wanted, PLUMB_MEMORY_RECORD);
}

bool
plumb_memory_listen(plumb_memory_listener *listener)
{
	bool listens = false;
	for (unsigned i = 0; i < PLUMB_MEMORY_LISTENERS && !listens; i++)
		listens = atomic_load(&listeners[i]) == listener;
	for (unsigned i = 0; i < PLUMB_MEMORY_LISTENERS && !listens; i++) {
		plumb_memory_listener *nobody = NULL;
		listens = atomic_compare_exchange_strong(&listeners[i], &nobody, listener);
	}
	if (listens)
		atomic_fetch_or(&plumb_memory_wanted, PLUMB_MEMORY_LISTEN);
	return listens;
}

/* The bit stays set: somebody else may have begun to listen meanwhile. */
void
plumb_memory_unlisten(plumb_memory_listener *listener)
{
	for (unsigned i = 0; i < PLUMB_MEMORY_LISTENERS; i++) {
		plumb_memory_listener *own = listener;
		atomic_compare_exchange_strong(&listeners[i], &own, NULL);
	}
}

void
plumb_memory_forget(void)
{
	uint32_t count = atomic_exchange(&pools_count, 0);
	pthread_mutex_init(&pools_lock, NULL);
	for (uint32_t i = 0; i < count; i++) {
		plumb_live_clear(&pools[i].live);
		pools[i] = (struct pool){ 0 };
	}
}
